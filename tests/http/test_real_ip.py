"""The client's address behind another proxy: set_real_ip_from, the PROXY protocol, and the fields for upstream servers."""
import socket
import ssl
import struct

import pytest
from kit import http1, server as server_kit
from kit.upstream import Upstream

SIGNATURE = b'\r\n\r\n\x00\r\nQUIT\n'
IP4 = socket.inet_aton('192.0.2.1') + socket.inet_aton('198.51.100.1') + struct.pack('>HH', 56324, 443)
IP6 = socket.inet_pton(socket.AF_INET6, '2001:db8::1') + socket.inet_pton(socket.AF_INET6, '2001:db8::2') + struct.pack('>HH', 56324, 443)
V1 = b'PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n'
V2 = SIGNATURE + b'\x21\x11\x00\x13' + IP4 + b'\x04\x00\x01x\x05\x00\x00'
ADDRESSES = '$remote_addr|$remote_port|$realip_remote_addr|$proxy_protocol_addr|$proxy_protocol_port|$proxy_protocol_server_addr|$proxy_protocol_server_port'
TRUSTED = ['127.0.0.1', '10.0.0.0/8', '2001:db8:ffff::/48']


def header(name, recursive=False, trusted=TRUSTED):
    return {'set_real_ip_from': trusted, 'real_ip_header': name, 'real_ip_recursive': recursive, 'return': '200 ' + ADDRESSES}


@pytest.fixture(scope='module')
def dead():
    return server_kit.free_port()


@pytest.fixture
def real_ip_server(launch, loop, transport, dead):
    locations = {
        '/': {'return': '200 ' + ADDRESSES},
        '/real/': header('X-Real-IP'),
        '/last/': header('X-Forwarded-For'),
        '/all/': header('X-Forwarded-For', True),
        '/forwarded/': header('Forwarded', True),
        '/untrusted/': header('X-Forwarded-For', True, ['192.0.2.0/24']),
        '/dead/': {'proxy_pass': f'http://127.0.0.1:{dead}', 'set_real_ip_from': '127.0.0.1'},
    }
    return launch(loop, transport, server={'location': locations})


@pytest.mark.parametrize('target, fields, address', [
    ('/', [('X-Real-IP', '192.0.2.7'), ('X-Forwarded-For', '192.0.2.7')], '127.0.0.1'),
    ('/real/', [], '127.0.0.1'),
    ('/real/', [('X-Real-IP', '192.0.2.7')], '192.0.2.7'),
    ('/real/', [('X-Real-IP', '2001:db8::7')], '2001:db8::7'),
    ('/real/', [('X-Real-IP', 'nonsense')], '127.0.0.1'),
    ('/real/', [('X-Real-IP', '192.0.2.7:99999')], '127.0.0.1'),
    ('/real/', [('X-Real-IP', '192.0.2.7\x0b')], None),
    ('/untrusted/', [('X-Forwarded-For', '198.51.100.9')], '127.0.0.1'),
    ('/last/', [('X-Forwarded-For', '198.51.100.9, 10.0.0.1')], '10.0.0.1'),
    ('/all/', [('X-Forwarded-For', '6.6.6.6, 198.51.100.9, 10.0.0.1')], '198.51.100.9'),
    ('/all/', [('X-Forwarded-For', '6.6.6.6, 198.51.100.9'), ('X-Forwarded-For', '10.0.0.1,10.2.3.4')], '198.51.100.9'),
    ('/all/', [('X-Forwarded-For', '10.0.0.2, 10.0.0.1')], '10.0.0.2'),
    ('/all/', [('X-Forwarded-For', '6.6.6.6, what, 10.0.0.1')], '10.0.0.1'),
    ('/all/', [('X-Forwarded-For', '198.51.100.9:4711')], '198.51.100.9'),
    ('/all/', [('X-Forwarded-For', '[2001:db8::9]:4711, 2001:db8:ffff::1')], '2001:db8::9'),
    ('/all/', [('X-Forwarded-For', '6.6.6.6, 198.51.100.9' + ', 10.0.0.1' * 30)], '198.51.100.9'),
    ('/all/', [('X-Forwarded-For', '198.51.100.9' + ', 10.0.0.1' * 100)], '10.0.0.1'),
    ('/forwarded/', [('Forwarded', 'for=198.51.100.9;proto=https, for=10.0.0.1')], '198.51.100.9'),
    ('/forwarded/', [('Forwarded', 'proto=https;For="[2001:db8::9]:4711";by=10.0.0.1')], '2001:db8::9'),
    ('/forwarded/', [('Forwarded', 'for=198.51.100.9, for=unknown')], '127.0.0.1'),
    ('/forwarded/', [('Forwarded', 'by=198.51.100.9')], '127.0.0.1'),
    ('/forwarded/', [('Forwarded', 'for=6.6.6.6;by="a, b", for=198.51.100.9;host="a,b", , for="10.0.0.1",')], '198.51.100.9'),
    # A Host that a proxy passes on in a quoted string is no list.
    ('/forwarded/', [('Forwarded', 'host="a;for=6.6.6.6;b";for=198.51.100.9')], '198.51.100.9'),
    ('/forwarded/', [('Forwarded', 'for=198.51.100.9;host="a\\",for=6.6.6.6;b=\\""')], '198.51.100.9'),
    # A quotation mark of the client does not hide what the proxies appended.
    ('/last/', [('X-Forwarded-For', '", 198.51.100.9')], '198.51.100.9'),
    ('/all/', [('X-Forwarded-For', '", 198.51.100.9, 10.0.0.1')], '198.51.100.9'),
    ('/forwarded/', [('Forwarded', 'for=", for=198.51.100.9, for=10.0.0.1')], '198.51.100.9'),
])
def test_real_ip_header_sets_the_client_address(real_ip_server, target, fields, address):
    client = real_ip_server.connect()
    response = client.fetch('GET', target, fields)
    if address is None:
        assert response.status == 400
    else:
        output = response.body.decode().split('|')
        assert output[0] == address and output[2] == '127.0.0.1' and output[3:] == ['', '', '', '']
        assert (output[1] == '4711') == any('4711' in value for _, value in fields)
    client.close()


def test_access_log_has_the_client_address(real_ip_server):
    client = real_ip_server.connect()
    assert client.fetch('GET', '/dead/', [('X-Real-IP', '192.0.2.77')]).status == 502
    client.close()
    assert 'client: 192.0.2.77' in real_ip_server.server.errors()


@pytest.fixture(scope='module')
def upstream():
    made = Upstream()
    yield made
    made.stop()


FORWARDED = [('X-Forwarded-For', '192.0.2.7'), ('X-Forwarded-Proto', 'gopher'), ('X-Forwarded-Host', 'public.example'), ('X-Forwarded-Port', '444'),
             ('X-Real-IP', '192.0.2.7'), ('Forwarded', 'for=192.0.2.7;proto=gopher')]


@pytest.mark.parametrize('trusted', [True, False])
def test_forwarded_fields_of_the_upstream_request(launch, loop, transport, upstream, trusted):
    served = launch(loop, transport, server={'set_real_ip_from': '127.0.0.0/8' if trusted else '10.0.0.0/8', 'real_ip_header': 'X-Forwarded-For',
                                             'location': {'/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}}})
    client = served.connect()
    assert client.fetch('GET', '/forwarded', FORWARDED).status == 200
    client.close()
    seen = {name.lower(): value for name, value in upstream.last().lines if name.lower().startswith(('x-', 'forw'))}
    own = f'for=127.0.0.1;host="localhost";proto={served.scheme}'
    assert seen == ({'x-forwarded-for': '192.0.2.7, 127.0.0.1', 'x-forwarded-proto': 'gopher', 'x-forwarded-host': 'public.example',
                     'x-forwarded-port': '444', 'x-real-ip': '192.0.2.7', 'forwarded': 'for=192.0.2.7;proto=gopher, ' + own} if trusted else
                    {'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': served.scheme, 'x-forwarded-host': 'localhost', 'forwarded': own})


class ProxyProtocolServer:
    """A server whose connections begin with a PROXY protocol header."""

    def __init__(self, folder, loop, transport, certificate, upstream):
        self.transport = transport
        self.port = server_kit.free_port()
        block = {'listen': f'127.0.0.1:{self.port} proxy_protocol' + (' ssl' if transport != 'plain' else ''), 'client_header_timeout': '1s',
                 'location': {'/': {'return': '200 ' + ADDRESSES}, '/real/': header('proxy_protocol'), '/untrusted/': header('proxy_protocol', False, ['10.0.0.0/8']),
                              '/proxy/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'set_real_ip_from': '127.0.0.1',
                                          'real_ip_header': 'proxy_protocol'}}}
        if transport != 'plain':
            block.update(ssl_certificate=certificate[0], ssl_certificate_key=certificate[1])
        self.server = server_kit.Server(folder, [block], loop=loop)
        self.server.start([self.port])

    def connect(self, header, pieces=1):
        stream = socket.create_connection(('127.0.0.1', self.port), timeout=20)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(header), max(1, len(header) // pieces)):
            stream.sendall(header[at:at + max(1, len(header) // pieces)])
        if self.transport != 'plain':
            stream = http1.tls_context().wrap_socket(stream, server_hostname='localhost')
        return http1.Client(stream)


@pytest.fixture(scope='module')
def proxy_protocol_servers():
    made = {}
    yield made
    for served in made.values():
        served.server.stop()


@pytest.fixture
def proxy_protocol_server(proxy_protocol_servers, new_directory, loop, transport, certificate, upstream):
    if (loop, transport) not in proxy_protocol_servers:
        proxy_protocol_servers[loop, transport] = ProxyProtocolServer(new_directory(), loop, transport, certificate, upstream)
    return proxy_protocol_servers[loop, transport]


@pytest.mark.parametrize('header, output', [
    (V1, ['192.0.2.1', '56324', '198.51.100.1', '443']),
    (V2, ['192.0.2.1', '56324', '198.51.100.1', '443']),
    (SIGNATURE + b'\x21\x21\x00\x24' + IP6, ['2001:db8::1', '56324', '2001:db8::2', '443']),
    (SIGNATURE + b'\x21\x11\x0f\xf0' + IP4 + b'\x04' + struct.pack('>H', 4080 - 15) + b'x' * (4080 - 15), ['192.0.2.1', '56324', '198.51.100.1', '443']),
    (b'PROXY UNKNOWN\r\n', ['', '', '', '']),
    (SIGNATURE + b'\x20\x00\x00\x00', ['', '', '', '']),
])
@pytest.mark.parametrize('pieces', [1, 3, 20])
def test_proxy_header_sets_the_client_address(proxy_protocol_server, header, output, pieces):
    client = proxy_protocol_server.connect(header, pieces)
    for _ in range(2):
        assert client.get('/').body.decode().split('|')[3:] == output
    assert client.get('/').body.decode().split('|')[0] == '127.0.0.1'
    assert client.get('/real/').body.decode().split('|')[0] == (output[0] or '127.0.0.1')
    assert client.get('/untrusted/').body.decode().split('|')[0] == '127.0.0.1'
    client.close()


def test_header_does_not_make_request_fields_trusted(proxy_protocol_server, upstream):
    client = proxy_protocol_server.connect(V1)
    assert client.fetch('GET', '/proxy/', FORWARDED).status == 200
    assert upstream.last().all('x-forwarded-for') == ['192.0.2.1'] and upstream.last().header('x-real-ip') is None
    client.close()


@pytest.mark.parametrize('header', [b'GET / HTTP/1.1\r\nHost: a\r\n\r\n', b'PROXY TCP4 1.1.1.1 1.1.1.1 1\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n', b'\x16\x03\x01\x02',
                                      SIGNATURE + b'\x21\x11\x00\x0e' + IP4 + b'\x04\x00', SIGNATURE + b'\x21\x11\xff\xff' + IP4, b'PROXY TCP4 1.1.1.1 ', b''])
def test_missing_header_closes_without_response(proxy_protocol_server, header):
    """Without a complete and valid header the connection is closed without a response."""
    stream = socket.create_connection(('127.0.0.1', proxy_protocol_server.port), timeout=20)
    stream.sendall(header)
    try:
        assert stream.recv(100) == b''
    except ConnectionResetError:
        pass
    stream.close()


def test_only_listeners_with_proxy_protocol_accept_the_header(real_ip_server):
    """On a listener without proxy_protocol, the header is a bad request."""
    stream = socket.create_connection(('127.0.0.1', real_ip_server.ports['plain']), timeout=20)
    stream.sendall(V1 + b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert stream.recv(100).startswith(b'HTTP/1.1 400 ')
    stream.close()
    with pytest.raises((ssl.SSLError, OSError)):
        stream = socket.create_connection(('127.0.0.1', real_ip_server.ports['tls']), timeout=20)
        stream.sendall(V1)
        http1.tls_context().wrap_socket(stream)
