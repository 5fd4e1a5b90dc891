"""`proxy_protocol` towards upstream servers: a PROXY protocol header with the client's address precedes all other bytes."""
import socket
import ssl
import struct
import threading

import pytest

from kit import server as server_kit
from kit.lifetime import wait_for
from kit.upstream import UpstreamConnection, Upstream, plain

SIGNATURE = b'\r\n\r\n\0\r\nQUIT\n'


def read_exactly(stream, count):
    got = b''
    while len(got) < count:
        piece = stream.recv(count - len(got))
        assert piece, f'the connection ended inside the header: {got!r}'
        got += piece
    return got


def read_proxy_header(stream):
    """Reads a header; returns (version, source, destination), each an address and a port. Reads byte by byte, so that no following byte is
    lost."""
    got = read_exactly(stream, 6)
    if got == b'PROXY ':
        while not got.endswith(b'\r\n'):
            got += read_exactly(stream, 1)
        words = got.decode().split()
        assert words[1] == 'TCP4' and len(words) == 6, words
        return 1, (words[2], int(words[4])), (words[3], int(words[5]))
    got += read_exactly(stream, 10)
    assert got[:12] == SIGNATURE and got[12:14] == b'\x21\x11', got
    rest = read_exactly(stream, struct.unpack('!H', got[14:16])[0])
    one, two, from_port, to_port = struct.unpack('!4s4sHH', rest)
    return 2, (socket.inet_ntoa(one), from_port), (socket.inet_ntoa(two), to_port)


class ProxyProtocolServer(Upstream):
    """An upstream server that expects a PROXY protocol header, then TLS if `sealed`. With `echo` it sends all bytes back."""

    def __init__(self, sealed=None, echo=False):
        self.headers, self.sealed, self.echo = [], sealed, echo
        super().__init__(name='proxy_protocol_server')

    def serve(self, stream):
        try:
            self.headers.append(read_proxy_header(stream))
            if self.sealed:
                stream = self.sealed.wrap_socket(stream, server_side=True)
            if self.echo:
                while piece := stream.recv(65536):
                    stream.sendall(piece)
            else:
                peer = UpstreamConnection(self, stream)
                peer.read_head()
                while plain(peer):
                    peer.read_head()
        except (EOFError, OSError):
            pass
        except Exception as error:
            self.faults.append(repr(error))
        stream.close()


@pytest.fixture(scope='module')
def proxy_protocol_server():
    made = ProxyProtocolServer()
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def sealed(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    made = ProxyProtocolServer(sealed=context)
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def echoing():
    made = ProxyProtocolServer(echo=True)
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def ordinary():
    made = Upstream()
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def proxy(launch, loop, transport, proxy_protocol_server, sealed, ordinary):
    to = f'http://127.0.0.1:{proxy_protocol_server.port}'
    return launch(loop, transport, server={'location': {
        '/v1': {'proxy_pass': to, 'proxy_protocol': 'on'},
        '/v2': {'proxy_pass': to, 'proxy_protocol': 'v2'},
        '/sealed': {'proxy_pass': f'https://127.0.0.1:{sealed.port}', 'proxy_protocol': 'v2', 'proxy_ssl_verify': 'off'},
        '/off': {'proxy_pass': f'http://127.0.0.1:{ordinary.port}'},
    }})


@pytest.mark.parametrize('path,version', [('/v1', 1), ('/v2', 2)])
def test_proxy_protocol_header_precedes_the_request(proxy, proxy_protocol_server, path, version):
    client = proxy.connect()
    ours = client.socket.getsockname()
    assert client.get(path).body.startswith(b'proxy_protocol_server GET')
    assert proxy_protocol_server.headers[-1] == (version, tuple(ours), ('127.0.0.1', proxy.port))
    client.close()


def test_header_precedes_tls(proxy, sealed):
    client = proxy.connect()
    ours = client.socket.getsockname()
    assert client.get('/sealed').body.startswith(b'proxy_protocol_server GET /sealed')
    assert sealed.headers[-1] == (2, tuple(ours), ('127.0.0.1', proxy.port))
    client.close()


def test_connections_are_not_shared_between_clients(proxy, proxy_protocol_server):
    before = proxy_protocol_server.connections
    for number in range(3):
        client = proxy.connect()
        ours = client.socket.getsockname()
        for _ in range(2):
            assert client.get(f'/v1?{number}').status == 200
            assert proxy_protocol_server.headers[-1][1] == tuple(ours)
        client.close()
    assert proxy_protocol_server.connections == before + 6
    assert proxy_protocol_server.last().header('connection') == 'close'


def test_other_servers_get_no_proxy_header(proxy, ordinary):
    client = proxy.connect()
    assert client.get('/off').status == 200
    client.close()


@pytest.mark.parametrize('word,version', [('on', 1), ('v2', 2)])
def test_stream_sends_proxy_header(tmp_path, loop, echoing, word, version):
    port = server_kit.free_port()
    made = server_kit.Server(tmp_path / 'server', [{'listen': f'127.0.0.1:{server_kit.free_port()}'}], loop=loop, main={
        'stream': {'proxy_protocol': word, 'server': [{'listen': f'127.0.0.1:{port}', 'proxy_pass': f'127.0.0.1:{echoing.port}'}]}})
    made.start([port])
    results = []

    def fetch(number):
        with socket.create_connection(('127.0.0.1', port)) as stream:
            stream.settimeout(20 * server_kit.PATIENCE)
            stream.sendall(b'hello %d' % number)
            results.append((read_exactly(stream, 7), (version, stream.getsockname(), ('127.0.0.1', port)) in echoing.headers))
    threads = [threading.Thread(target=fetch, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30 * server_kit.PATIENCE)
    made.stop()
    assert sorted(results) == [(b'hello %d' % number, True) for number in range(4)]


class HeaderRequired(ProxyProtocolServer):
    """An upstream server that expects a header without addresses and closes connections without one."""
    WORDS = {'on': b'PROXY UNKNOWN\r\n', 'v2': SIGNATURE + b'\x20\x00\x00\x00'}

    def __init__(self, version):
        self.version = version
        super().__init__()

    def serve(self, stream):
        try:
            word = self.WORDS[self.version]
            self.headers.append(read_exactly(stream, len(word)))
            peer = UpstreamConnection(self, stream)
            peer.read_head()
            plain(peer)
        except (AssertionError, EOFError, OSError):
            pass
        stream.close()


@pytest.mark.parametrize('version', ['on', 'v2'])
def test_health_check_sends_proxy_header(launch, loop, version):
    made = HeaderRequired(version)
    group = {'server': f'127.0.0.1:{made.port} max_fails=0',
             'health_check': {'uri': '/well', 'interval': '50ms', 'proxy_protocol': version}}
    served = launch(loop, 'plain', http={'upstream': {'checked': group}}, server={'location': {'/': {'proxy_pass': 'http://checked'}}})
    wait_for(lambda: len(made.requests) >= 2, 'no check has come through')
    assert set(made.headers) == {HeaderRequired.WORDS[version]}
    assert 'is unhealthy' not in served.server.errors()
    made.stop()
