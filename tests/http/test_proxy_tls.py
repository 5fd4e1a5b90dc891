"""https:// upstream servers: verification, server names, and failed handshakes."""
import itertools
import os
import socket
import ssl
import subprocess
import threading

import pytest
from kit import broken_records, server as server_kit, site as site_kit
from kit.authority import Authority
from kit.upstream import Upstream

BIG = bytes(range(256)) * 8000


def big(peer):
    peer.send(f'HTTP/1.1 200 OK\r\nContent-Length: {len(BIG)}\r\n\r\n'.encode() + BIG)
    return True


def in_records(peer):
    """The body in records of many lengths: by Content-Length, in chunks, or up to the end of the connection."""
    framing = peer.request.target.rsplit('/', 1)[1]
    field = {'length': f'Content-Length: {len(BIG)}\r\n', 'chunks': 'Transfer-Encoding: chunked\r\n', 'end': ''}[framing]
    peer.send(f'HTTP/1.1 200 OK\r\n{field}\r\n')
    at, lengths = 0, itertools.cycle([65536, 16384, 1, 16383, 100, 100, 40000, 16384, 5000])
    while at < len(BIG):
        part = BIG[at:at + next(lengths)]
        peer.send(f'{len(part):x}\r\n'.encode() + part + b'\r\n' if framing == 'chunks' else part)
        at += len(part)
    if framing == 'chunks':
        peer.send('0\r\n\r\n')
    if framing == 'end':
        peer.stream.unwrap()    # close_notify
    return framing != 'end'


def to_the_end(peer):
    peer.send('HTTP/1.1 200 OK\r\n\r\nuntil the end')
    if peer.request.target.endswith('/close_notify'):
        peer.stream.unwrap()    # close_notify


over = threading.Event()


def broken_record(peer):
    """Sends an invalid TLS record, for /broken-record/body after the beginning of a response and in the same segment, and keeps the
    connection open until the test is over."""
    cork = socket.socket(fileno=os.dup(peer.stream.fileno()))
    cork.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    if peer.request.target.endswith('/body'):
        peer.send('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome')
    broken_records.send(peer.stream)
    cork.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    over.wait()
    cork.close()


def server_side(certificate, version=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    if version:
        context.maximum_version = version
    return context


@pytest.fixture(scope='module')
def inner(base):
    """A certificate for the upstream server with explicit names: OpenSSL accepts no wildcard directly below a top-level domain."""
    (base / 'inner').mkdir()
    names = ('localhost', 'inner.localhost', 'a.localhost', 'b.localhost')
    return site_kit.make_certificate(str(base / 'inner'), name='inner', names=names)


@pytest.fixture(scope='module', params=['TLSv1_3', 'TLSv1_2'])
def upstream(request, inner):
    made = Upstream({'/big': big, '/records/length': in_records, '/records/chunks': in_records, '/records/end': in_records,
                     '/spooled/length': in_records, '/spooled/chunks': in_records, '/broken-record/head': broken_record, '/broken-record/body': broken_record, '/end/close_notify': to_the_end, '/end/truncated': to_the_end}, tls=server_side(inner, getattr(ssl.TLSVersion, request.param)))
    yield made
    made.stop()


@pytest.fixture(scope='module')
def plain():
    made = Upstream()
    yield made
    made.stop()


@pytest.fixture
def proxy(launch, loop, transport, upstream, plain, inner):
    to = 'https://localhost' # an upstream group of this name with max_fails=0, because some tests cause failures
    trusted = {'proxy_ssl_trusted_certificate': inner[0]}
    group = {'upstream': {'localhost': {'server': f'127.0.0.1:{upstream.port} max_fails=0'}}}
    return launch(loop, transport, http=group, server={'location': {
        '/': {'proxy_pass': to, **trusted},
        '/address/': {'proxy_pass': f'https://127.0.0.1:{upstream.port}', **trusted},
        '/name/': {'proxy_pass': f'https://127.0.0.1:{upstream.port}', 'proxy_ssl_name': 'inner.localhost', **trusted},
        '/name-and-port/': {'proxy_pass': f'https://127.0.0.1:{upstream.port}', 'proxy_ssl_name': 'inner.localhost:443', **trusted},
        '/spooled/': {'proxy_pass': to, 'proxy_buffering': True, **trusted},
        '/other/': {'proxy_pass': to, 'proxy_ssl_name': 'other.example', **trusted},
        '/unknown/': {'proxy_pass': to},
        '/unverified/': {'proxy_pass': to, 'proxy_ssl_verify': False},
        '/clear/': {'proxy_pass': f'https://127.0.0.1:{plain.port}', 'proxy_ssl_verify': False},
        '/broken-record': {'proxy_pass': to, 'proxy_read_timeout': broken_records.PATIENT, **trusted},
        '/one.txt': {},
    }})


@pytest.fixture
def client(proxy):
    made = proxy.connect()
    assert made.get('/warm').status == 200
    yield made
    made.close()


def test_trusted_certificate_with_matching_name(client, upstream):
    assert client.get('/a').body == b'one GET /a\n'
    assert 'localhost' in upstream.server_names
    assert client.get('/big').body == BIG
    assert client.fetch('POST', '/up', body=BIG[:900000]).status == 200
    assert upstream.last().body == BIG[:900000]
    assert upstream.last().header('x-forwarded-proto') in ('http', 'https')
    before = upstream.connections
    assert [client.get('/kept').status for _ in range(5)] == [200] * 5
    assert upstream.connections == before


@pytest.mark.parametrize('path', ['/records/length', '/records/chunks', '/records/end', '/spooled/length', '/spooled/chunks'])
def test_records_of_a_large_body_are_complete_and_in_order(client, proxy, path):
    assert client.get(path).body == BIG
    slow = proxy.connect()      # the server waits for it with a part of the body, and records of the next receive
    slow.send(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.get(path).body == BIG
    assert slow.read().body == BIG
    slow.close()


def test_proxy_ssl_name_and_address_names(client, upstream):
    assert client.get('/address/').status == 200
    assert None in upstream.server_names
    assert client.get('/name/').status == 200
    assert 'inner.localhost' in upstream.server_names
    assert client.get('/name-and-port/a').status == 200
    assert 'inner.localhost:443' not in upstream.server_names   # SNI has no port; an earlier test may already have sent it on a kept connection
    assert client.get('/unverified/').status == 200


def test_missing_close_notify_is_a_truncation(client, proxy):
    """A response that ends with the connection is complete only if close_notify precedes the end."""
    assert client.get('/end/close_notify').body == b'until the end'
    client.send('GET /end/truncated HTTP/1.1\r\nHost: localhost\r\n\r\n')
    with pytest.raises(EOFError):       # if all bytes arrived at once, the header section may not have been sent
        assert client.head().status == 200
        client.chunked()
    assert 'close_notify' in proxy.server.errors()


@pytest.fixture
def open_until_the_end():
    over.clear()
    yield
    over.set()


def tls_errors(server):
    return [line for line in server.errors().splitlines() if 'TLS to upstream "localhost" failed' in line]


def test_invalid_record_ends_the_response(client, proxy, open_until_the_end):
    """The server aborts the response at once: it does not wait until the upstream server has read the alert and closed."""
    client.send('GET /broken-record/body HTTP/1.1\r\nHost: localhost\r\n\r\n')
    with pytest.raises(EOFError):
        client.read_exactly(1000)
    assert 1 <= len(tls_errors(proxy.server)) <= 2      # two if the record arrived with the head, on a connection that was reused
    assert 'TLS failed (71: Protocol error) while reading' in proxy.server.errors()


def test_invalid_record_before_the_response_is_502(client, proxy, open_until_the_end):
    assert client.get('/broken-record/head').status == 502
    assert tls_errors(proxy.server)         # two if the first connection was reused
    assert client.get('/a').status == 200


def test_failed_handshake_with_a_server_that_does_not_close_is_502(launch, loop):
    upstream = broken_records.NoHandshake()
    location = {'proxy_pass': f'https://localhost:{upstream.port}', 'proxy_connect_timeout': broken_records.PATIENT}
    site = launch(loop, 'plain', server={'location': {'/': location}})
    client = site.connect()
    assert client.get('/').status == 502
    assert len(tls_errors(site.server)) == 1
    assert 'TLS failed (71: Protocol error) while connecting to upstream' in site.server.errors()
    client.close()
    upstream.stop()


@pytest.mark.parametrize('path, why', [('/other/', 'mismatch'), ('/unknown/', 'self'), ('/clear/', '')])
def test_unverified_upstream_gets_no_request(client, proxy, upstream, plain, path, why):
    before = len(upstream.requests) + len(plain.requests)
    assert client.get(path).status == 502
    assert len(upstream.requests) + len(plain.requests) == before
    output = [line for line in proxy.server.errors().splitlines() if 'TLS to upstream' in line and 'failed' in line]
    assert any(why in line.lower() for line in output), output
    assert client.get('/one.txt').status == 200


def test_idle_plain_and_tls_connections_are_separate(launch, loop, transport, upstream, inner):
    """One server with two sets of TLS settings: a kept connection is reused only with the settings that it was opened with."""
    group = {'group': {'server': f'127.0.0.1:{upstream.port}'}}
    trusted = {'proxy_ssl_trusted_certificate': inner[0]}
    client = launch(loop, transport, http={'upstream': group}, server={'location': {
        '/a/': {'proxy_pass': 'https://group', 'proxy_ssl_name': 'a.localhost', **trusted},
        '/b/': {'proxy_pass': 'https://group', 'proxy_ssl_name': 'b.localhost', **trusted},
        '/bad/': {'proxy_pass': 'https://group', 'proxy_ssl_name': 'bad.example', **trusted},
        '/plain/': {'proxy_pass': 'http://group'},
    }}).connect()
    assert client.get('/a/').status == 200 and 'a.localhost' in upstream.server_names
    assert client.get('/b/').status == 200 and 'b.localhost' in upstream.server_names
    assert client.get('/bad/').status == 502
    assert client.get('/plain/').status == 502
    assert client.get('/a/').status == 200
    client.close()


def connection_properties(peer):
    """Responds with TLS version, cipher, whether the session was resumed, and the client's name."""
    stream = peer.stream
    subject = dict(pair[0] for pair in (stream.getpeercert() or {}).get('subject', ())).get('commonName', 'nobody')
    body = f'{stream.version()} {stream.cipher()[0]} {"resumed" if stream.session_reused else "full"} {subject}'
    peer.send(f'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}')


@pytest.fixture(scope='module')
def own(base):
    """The proxy's client certificate."""
    (base / 'own').mkdir()
    return site_kit.make_certificate(str(base / 'own'), name='own', names=('proxy.example',))


@pytest.fixture
def verifying_upstream(inner, own):
    """An upstream server that requires a client certificate."""
    context = server_side(inner)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(own[0])
    made = Upstream({'/': connection_properties}, tls=context)
    yield made
    made.stop()


@pytest.fixture
def describing_upstream(inner):
    made = Upstream({'/': connection_properties}, tls=server_side(inner))
    yield made
    made.stop()


def to(upstream, inner, **more):
    return {'proxy_pass': f'https://127.0.0.1:{upstream.port}', 'proxy_ssl_name': 'localhost',
            'proxy_ssl_trusted_certificate': inner[0], **more}


def fetch(launch, loop, location, **more):
    client = launch(loop, 'plain', server={'location': {'= /': location}, **more}).connect()
    response = client.get('/')
    again = client.get('/')
    client.close()
    return response, again


def test_proxy_ssl_certificate_is_sent(launch, loop, verifying_upstream, inner, own, tmp_path):
    shown = {'proxy_ssl_certificate': own[0], 'proxy_ssl_certificate_key': own[1]}
    response, _ = fetch(launch, loop, to(verifying_upstream, inner, **shown))
    assert response.status == 200 and response.body.split()[3] == b'own'
    both = tmp_path / 'both.pem'
    both.write_text(open(own[0], encoding='ascii').read() + open(own[1], encoding='ascii').read(), encoding='ascii')
    assert fetch(launch, loop, to(verifying_upstream, inner, proxy_ssl_certificate=str(both)))[0].status == 200
    before = len(verifying_upstream.requests)
    assert fetch(launch, loop, to(verifying_upstream, inner))[0].status == 502
    assert len(verifying_upstream.requests) == before


@pytest.mark.parametrize('settings, protocol, cipher', [
    ({'proxy_ssl_protocols': 'TLSv1.2', 'proxy_ssl_ciphers': 'ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256'},
     b'TLSv1.2', b'AES128-GCM'),
    ({'proxy_ssl_protocols': 'TLSv1.3', 'proxy_ssl_ciphers': 'TLS_CHACHA20_POLY1305_SHA256'}, b'TLSv1.3', b'CHACHA20'),
    ({}, b'TLSv1.3', b'')])
def test_proxy_ssl_protocols_and_ciphers(launch, loop, describing_upstream, inner, settings, protocol, cipher):
    response, _ = fetch(launch, loop, to(describing_upstream, inner, **settings))
    assert response.body.split()[0] == protocol and cipher in response.body.split()[1]


def test_unsupported_protocol_is_502(launch, loop, inner):
    old = Upstream(tls=server_side(inner, ssl.TLSVersion.TLSv1_2))
    assert fetch(launch, loop, to(old, inner, proxy_ssl_protocols='TLSv1.3'))[0].status == 502
    assert fetch(launch, loop, to(old, inner))[0].status == 200
    old.stop()


@pytest.mark.parametrize('reuse', [True, False])
@pytest.mark.parametrize('protocol', ['TLSv1.2', 'TLSv1.3'])
def test_sessions_are_resumed(launch, loop, describing_upstream, inner, protocol, reuse):
    responses = fetch(launch, loop, to(describing_upstream, inner, proxy_ssl_protocols=protocol, proxy_ssl_session_reuse=reuse))
    assert [response.body.split()[2] for response in responses] == [b'full', b'resumed' if reuse else b'full']


@pytest.fixture
def authority(tmp_path):
    return Authority(str(tmp_path / 'authority'), 'inside')


def test_revoked_certificate_is_rejected(launch, loop, authority, inner):
    good, bad = authority.client('localhost'), authority.client('localhost-too')
    authority.revoke(bad)
    lists = {'proxy_ssl_trusted_certificate': authority.certificate, 'proxy_ssl_crl': authority.crl()}
    for certificate, name, expected in ((good, 'localhost', 200), (bad, 'localhost-too', 502)):
        upstream = Upstream(tls=server_side(certificate))
        assert fetch(launch, loop, to(upstream, inner, **{**lists, 'proxy_ssl_name': name}))[0].status == expected
        upstream.stop()


def test_encrypted_client_key_is_loaded(launch, loop, verifying_upstream, inner, own, tmp_path):
    sealed, passwords = tmp_path / 'sealed.key', tmp_path / 'passwords'
    subprocess.run(['openssl', 'pkey', '-in', own[1], '-aes256', '-passout', 'pass:right one', '-out', sealed], check=True)
    passwords.write_text('wrong\nright one\n', encoding='ascii')
    shown = {'proxy_ssl_certificate': own[0], 'proxy_ssl_certificate_key': str(sealed), 'proxy_ssl_password_file': str(passwords)}
    assert fetch(launch, loop, to(verifying_upstream, inner, **shown))[0].status == 200


@pytest.mark.parametrize('words, protocol', [('MaxProtocol TLSv1.2', b'TLSv1.2'), ('MinProtocol TLSv1.3', b'TLSv1.3')])
def test_proxy_ssl_conf_command_applies(launch, loop, describing_upstream, inner, words, protocol):
    response, _ = fetch(launch, loop, to(describing_upstream, inner, proxy_ssl_conf_command=[words, 'Options PrioritizeChaCha']))
    assert response.body.split()[0] == protocol


def test_proxy_ssl_server_name_off_sends_no_sni(launch, loop, describing_upstream, inner):
    assert fetch(launch, loop, to(describing_upstream, inner, proxy_ssl_server_name=False))[0].status == 200
    assert describing_upstream.server_names == [None, None]
    assert fetch(launch, loop, to(describing_upstream, inner))[0].status == 200
    assert describing_upstream.server_names[2:] == ['localhost'] * 2


@pytest.mark.parametrize('settings, output', [
    ({'proxy_ssl_certificate': '/nowhere/client.pem'}, 'No such file'),
    ({'proxy_ssl_certificate': 'own', 'proxy_ssl_certificate_key': 'inner'}, 'mismatch'),
    ({'proxy_ssl_ciphers': 'NO-SUCH-CIPHER'}, 'no cipher'),
    ({'proxy_ssl_ciphers': 'TLS_NO_SUCH_SUITE'}, 'TLS to the server cannot be set up'),
    ({'proxy_ssl_trusted_certificate': '/nowhere/ca.pem'}, 'No such file'),
    ({'proxy_ssl_crl': '/nowhere/list.crl'}, 'No such file'),
    ({'proxy_ssl_crl': 'own'}, 'TLS to the server cannot be set up'),
    ({'proxy_ssl_certificate': 'own', 'proxy_ssl_certificate_key': 'sealed'}, 'TLS to the server cannot be set up'),
    ({'proxy_ssl_certificate': 'own', 'proxy_ssl_certificate_key': 'sealed', 'proxy_ssl_password_file': 'own'}, 'TLS to the server cannot be set up'),
    ({'proxy_ssl_certificate': 'own', 'proxy_ssl_certificate_key': 'sealed', 'proxy_ssl_password_file': '/nowhere/passwords'}, 'No such file'),
    ({'proxy_ssl_conf_command': 'NoSuchCommand x'}, 'unknown cmd name'),
    ({'proxy_ssl_conf_command': 'MinProtocol TLSv1'}, 'unsupported protocol'),
    ({'proxy_ssl_conf_command': 'Options'}, 'a command of OpenSSL and its value')])
def test_invalid_settings_are_start_errors(tmp_path, own, inner, settings, output):
    sealed = str(tmp_path / 'sealed.key')
    subprocess.run(['openssl', 'pkey', '-in', own[1], '-aes256', '-passout', 'pass:secret', '-out', sealed], check=True)
    files = {'own': own[0], 'inner': inner[1], 'sealed': sealed}
    port = server_kit.free_port()
    settings = {key: files.get(value, value) for key, value in settings.items()}
    server = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{port}', 'location': {
        '/': {'proxy_pass': 'https://127.0.0.1:1', **settings}}}])
    with pytest.raises(RuntimeError) as error:
        server.start([port])
    assert output in str(error.value) and 'sluice.yaml:' in str(error.value)
