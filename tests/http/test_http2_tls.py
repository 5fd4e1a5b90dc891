"""HTTP/2 and TLS: prohibited cipher suites, client certificates of another server, early data."""
import os
import ssl
import subprocess

import pytest
from kit import http1, http2, server as server_kit, site as site_kit
from kit.authority import Authority, context as certificate_context
from test_http2 import TIMEOUT


@pytest.mark.parametrize('suite', ['ECDHE-RSA-AES128-SHA256', 'AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'])
def test_prohibited_tls_1_2_suites_select_http1(new_directory, loop, site, rsa_certificate, suite):
    """RFC 9113 appendix A prohibits suites with CBC or without an ephemeral key exchange: such a connection uses HTTP/1.1."""
    port = server_kit.free_port()
    server = server_kit.Server(new_directory(), [{
        'listen': f'127.0.0.1:{port} ssl', 'root': site, 'ssl_certificate': rsa_certificate[0], 'ssl_certificate_key': rsa_certificate[1],
        'ssl_ciphers': 'ECDHE-RSA-AES128-SHA256:AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0'}], loop=loop).start([port])
    context = http1.tls_context(maximum_version=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers(suite + ':@SECLEVEL=0')
    context.set_alpn_protocols(['h2', 'http/1.1'])
    client = http1.connect(port, 'user', timeout=TIMEOUT, context=context)
    assert client.stream.selected_alpn_protocol() == ('h2' if 'ECDHE-RSA-AES128-GCM' in suite else 'http/1.1')
    if 'ECDHE-RSA-AES128-GCM' not in suite:
        assert client.get('/one.txt').status == 200
    client.close()
    server.stop()


def test_client_certificate_of_another_server_is_421(new_directory, loop, site, certificate):
    """RFC 9110 15.5.20: 421, as in HTTP/1.1, but other streams continue."""
    authority = Authority(str(new_directory()))
    good, port = authority.client('good'), server_kit.free_port()
    block = {'listen': f'127.0.0.1:{port} ssl', 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], 'root': site}
    server = server_kit.Server(new_directory(), [
        {'server_name': 'open.test', **block},
        {'server_name': 'strict.test', 'ssl_verify_client': 'on', 'ssl_client_certificate': authority.certificate, **block}],
        loop=loop).start([port])
    client = http2.connect(port, 'user', TIMEOUT, context=certificate_context(good), server_name='open.test')
    assert client.fetch('/one.txt', authority='strict.test').status == 421
    assert client.fetch('/one.txt', authority='open.test').status == 200 and not client.goaway
    client.close()
    client = http2.connect(port, 'user', TIMEOUT, context=certificate_context(good), server_name='strict.test')
    assert client.fetch('/one.txt', authority='strict.test').status == 200
    client.close()
    server.stop()


@pytest.fixture
def shared_port(new_directory, loop, site):
    """The port of three servers; the certificate of the first one covers the host of the third one, but not that of the second one."""
    port, blocks = server_kit.free_port(), []
    for names in (('a.test', '*.shared.test'), ('b.test',), ('c.shared.test',)):
        certificate, key = site_kit.make_certificate(str(new_directory()), names[-1], names=names)
        blocks.append({'listen': f'127.0.0.1:{port} ssl', 'server_name': names[0], 'ssl_certificate': certificate, 'ssl_certificate_key': key,
                       'root': site})
    server = server_kit.Server(new_directory(), blocks, loop=loop).start([port])
    yield port
    server.stop()


def test_host_that_the_certificate_does_not_cover_is_421(shared_port):
    """RFC 9110 7.4. Clients share a connection between the hosts of its certificate (RFC 9113 9.1.1)."""
    client = http2.connect(shared_port, 'user', TIMEOUT, server_name='a.test')
    found = {host: client.fetch('/one.txt', authority=host).status for host in ('a.test', 'b.test', 'c.shared.test', 'other.test')}
    assert found == {'a.test': 200, 'b.test': 421, 'c.shared.test': 200, 'other.test': 200} and not client.goaway
    client.close()
    client = http2.connect(shared_port, 'user', TIMEOUT, server_name=None)
    assert client.fetch('/one.txt', authority='b.test').status == 200, 'a gateway'
    client.close()


@pytest.mark.http1('a client of it')
def test_http1_may_request_any_host(shared_port):
    client = http1.connect(shared_port, 'user', timeout=TIMEOUT)
    assert client.get('/one.txt', Host='b.test').status == 200, 'as nginx'
    client.close()


def send_early(port, session, early, later=b''):
    """`openssl s_client` with a saved session and early data; returns the frames of the server."""
    folder = os.path.dirname(session)
    with open(os.path.join(folder, 'early'), 'wb') as stream:
        stream.write(early)
    words = ['openssl', 's_client', '-quiet', '-connect', f'127.0.0.1:{port}', '-servername', 'localhost', '-tls1_3', '-alpn', 'h2']
    words += ['-sess_in', session, '-early_data', stream.name] if os.path.exists(session) else ['-sess_out', session]
    done = subprocess.run(words, input=later, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=TIMEOUT, check=False)
    frames, output = [], done.stdout
    while len(output) >= 9:
        length = int.from_bytes(output[:3], 'big')
        frames.append((output[3], int.from_bytes(output[5:9], 'big'), output[9:9 + length]))
        output = output[9 + length:]
    return frames


def test_unsafe_early_data_is_425(new_directory, loop, site, certificate):
    """RFC 8470: an unsafe request in early data gets 425, a safe one its response. The invalid PING makes the server close the connection."""
    port, session = server_kit.free_port(), str(new_directory() / 'session')
    server = server_kit.Server(new_directory(), [{
        'listen': f'127.0.0.1:{port} ssl', 'root': site, 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1],
        'ssl_early_data': 'on', 'location': {'= /early': {'return': '200 "early=$ssl_early_data"'}}}], loop=loop).start([port])
    encoder = http2.hpack.Encoder()
    start = http2.PREFACE + http2.frame(http2.SETTINGS)
    invalid = http2.frame(http2.PING, 0, 1, bytes(8))      # on a stream: the server closes the connection

    def head(stream, method):
        return http2.frame(http2.HEADERS, http2.END_STREAM | http2.END_HEADERS, stream, encoder.encode(
            [(':method', method), (':scheme', 'https'), (':authority', 'localhost'), (':path', '/early')]))
    assert not os.path.exists(session)
    send_early(port, session, b'', start + invalid)
    assert os.path.exists(session)
    frames = send_early(port, session, start + head(1, 'GET') + head(3, 'POST'), head(5, 'GET') + invalid)
    decoder = http2.hpack.Decoder()
    found = {stream: dict(decoder.decode(payload))[':status'] for kind, stream, payload in frames if kind == http2.HEADERS}
    bodies = {stream: payload for kind, stream, payload in frames if kind == http2.DATA and payload}
    assert (found[1], found[3]) == ('200', '425') and bodies[1] == b'early=1'
    server.stop()
