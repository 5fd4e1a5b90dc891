"""https:// servers behind the proxy: trusted, named, or not spoken to."""
import os
import socket
import ssl
import threading

import pytest
from kit import site as site_kit
from kit.upstream import Upstream

BIG = bytes(range(256)) * 8000


def big(talk):
    talk.send(f'HTTP/1.1 200 OK\r\nContent-Length: {len(BIG)}\r\n\r\n'.encode() + BIG)
    return True


def to_the_end(talk):
    talk.send('HTTP/1.1 200 OK\r\n\r\nuntil the end')
    if talk.request.target.endswith('/said'):
        talk.stream.unwrap()    # close_notify


over = threading.Event()


def broken_record(talk):
    """A beginning and a record that is none, in one packet; then it just stays."""
    raw = socket.socket(fileno=os.dup(talk.stream.fileno()))
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    talk.send('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome')
    raw.send(b'\x17\x03\x03\x00\x40' + b'x' * 64)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    over.wait(30)
    raw.close()


def server_side(certificate, version=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    if version:
        context.maximum_version = version
    return context


@pytest.fixture(scope='module')
def inner(base):
    """A certificate for the server behind: OpenSSL takes no wildcard right below the top."""
    (base / 'inner').mkdir()
    names = ('localhost', 'inner.localhost', 'a.localhost', 'b.localhost')
    return site_kit.make_certificate(str(base / 'inner'), name='inner', names=names)


@pytest.fixture(scope='module', params=['TLSv1_3', 'TLSv1_2'])
def upstream(request, inner):
    made = Upstream({'/big': big, '/broken-record': broken_record, '/end/said': to_the_end, '/end/cut': to_the_end}, tls=server_side(inner, getattr(ssl.TLSVersion, request.param)))
    yield made
    made.stop()


@pytest.fixture(scope='module')
def plain():
    made = Upstream()
    yield made
    made.stop()


@pytest.fixture
def proxy(launch, loop, transport, upstream, plain, inner):
    to = f'https://localhost:{upstream.port}'
    trusted = {'proxy_ssl_trusted_certificate': inner[0]}
    return launch(loop, transport, server={'location': {
        '/': {'proxy_pass': to, **trusted},
        '/address/': {'proxy_pass': f'https://127.0.0.1:{upstream.port}', **trusted},
        '/name/': {'proxy_pass': f'https://127.0.0.1:{upstream.port}', 'proxy_ssl_name': 'inner.localhost', **trusted},
        '/other/': {'proxy_pass': to, 'proxy_ssl_name': 'other.example', **trusted},
        '/unknown/': {'proxy_pass': to},
        '/unverified/': {'proxy_pass': to, 'proxy_ssl_verify': False},
        '/clear/': {'proxy_pass': f'https://127.0.0.1:{plain.port}', 'proxy_ssl_verify': False},
        '/broken-record': {'proxy_pass': to, 'proxy_read_timeout': '400ms', **trusted},
        '/one.txt': {},
    }})


@pytest.fixture
def client(proxy):
    made = proxy.connect()
    assert any(made.get('/warm').status == 200 for _ in range(50))      # perhaps not before "localhost" is resolved
    yield made
    made.close()


def test_trusted_and_named(client, upstream):
    assert client.get('/a').body == b'one GET /a\n'
    assert 'localhost' in upstream.server_names
    assert client.get('/big').body == BIG
    assert client.ask('POST', '/up', body=BIG[:900000]).status == 200
    assert upstream.last().body == BIG[:900000]
    assert upstream.last().header('x-forwarded-proto') in ('http', 'https')
    before = upstream.connections
    assert [client.get('/kept').status for _ in range(5)] == [200] * 5
    assert upstream.connections == before


def test_addresses_and_other_names(client, upstream):
    assert client.get('/address/').status == 200
    assert None in upstream.server_names
    assert client.get('/name/').status == 200
    assert 'inner.localhost' in upstream.server_names
    assert client.get('/unverified/').status == 200


def test_an_end_that_nobody_vouches_for_is_a_cut(client, proxy):
    """Where the end of the connection is the end of the answer, close_notify tells it from a connection that somebody cut."""
    assert client.get('/end/said').body == b'until the end'
    client.send('GET /end/cut HTTP/1.1\r\nHost: localhost\r\n\r\n')
    with pytest.raises(EOFError):       # where all came at once, not even the head may have left
        assert client.head().status == 200
        client.chunked()
    assert 'close_notify' in proxy.server.errors()


def test_a_server_that_stays_after_a_broken_record_is_not_waited_for(client):
    over.clear()
    client.send('GET /broken-record HTTP/1.1\r\nHost: localhost\r\n\r\n')
    with pytest.raises(EOFError):
        client.take(1000)
    over.set()


@pytest.mark.parametrize('path, why', [('/other/', 'mismatch'), ('/unknown/', 'self'), ('/clear/', '')])
def test_nothing_is_said_to_strangers(client, proxy, upstream, plain, path, why):
    before = len(upstream.requests) + len(plain.requests)
    assert client.get(path).status == 502
    assert len(upstream.requests) + len(plain.requests) == before
    said = [line for line in proxy.server.errors().splitlines() if 'TLS to upstream' in line and 'failed' in line]
    assert any(why in line.lower() for line in said), said
    assert client.get('/one.txt').status == 200


def test_plain_and_sealed_connections_are_not_mixed(launch, loop, transport, upstream, inner):
    """One server, asked under two names and settings: a connection that was made for one is not taken for the other."""
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
