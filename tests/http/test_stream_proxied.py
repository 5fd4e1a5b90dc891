"""set_real_ip_from in stream: the PROXY protocol header is used only from trusted addresses."""
import contextlib
import socket
import struct

import pytest
from kit import server as server_kit
from kit.http1 import tls_context
from kit.lifetime import wait_for
from test_stream import read_all

SIGNATURE = b'\r\n\r\n\x00\r\nQUIT\n'
V1 = b'PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n'
V1_IP6 = b'PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n'
V2 = SIGNATURE + b'\x21\x11\x00\x0c' + socket.inet_aton('192.0.2.1') + socket.inet_aton('198.51.100.1') + struct.pack('>HH', 56324, 443)
LOCAL = SIGNATURE + b'\x20\x00\x00\x00'
ADDRESSES = '$remote_addr|$remote_port|$realip_remote_addr|$proxy_protocol_addr|$proxy_protocol_port|$proxy_protocol_server_addr|$proxy_protocol_server_port'


@pytest.fixture(scope='module', params=server_kit.os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split())
def proxy_protocol_server(request, new_directory, certificate):
    folder = new_directory()
    ports = {name: server_kit.free_port() for name in ('http', 'trusted', 'untrusted', 'denied', 'tls')}
    tls = {'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], 'ssl_ktls': 'off'}

    def on(name, more='', **rest):
        return {'listen': f'127.0.0.1:{ports[name]} proxy_protocol{more}', 'return': ADDRESSES, **rest}
    made = server_kit.Server(folder, [{'listen': f'127.0.0.1:{ports["http"]}', 'return': '200 ok'}], loop=request.param, main={'stream': {
        'log_format': {'short': '$server_port $status $remote_addr'}, 'access_log': f'{folder}/stream.log short', 'preread_timeout': '1s',
        'set_real_ip_from': '127.0.0.0/8',
        'server': [on('trusted'), on('untrusted', set_real_ip_from='10.0.0.0/8'), on('denied', allow='192.0.2.0/24', deny='all'), on('tls', ' ssl', **tls)]}})
    made.ports, made.log = ports, f'{folder}/stream.log'
    yield made.start([ports['http']])
    made.stop()


def fetch_addresses(proxy_protocol_server, name, output, tls=False):
    with contextlib.suppress(ConnectionResetError), socket.create_connection(('127.0.0.1', proxy_protocol_server.ports[name]), timeout=20 * server_kit.PATIENCE) as stream:
        stream.sendall(output)
        if tls:
            stream = tls_context().wrap_socket(stream, server_hostname='localhost')
        return read_all(stream).decode()
    return ''


@pytest.mark.parametrize('header, error', [
    (V1, '192.0.2.1|56324|127.0.0.1|192.0.2.1|56324|198.51.100.1|443'), (V2, '192.0.2.1|56324|127.0.0.1|192.0.2.1|56324|198.51.100.1|443'),
    (V1_IP6, '2001:db8::1|56324|127.0.0.1|2001:db8::1|56324|2001:db8::2|443'),
])
def test_proxy_header_sets_the_client_address(proxy_protocol_server, header, error):
    assert fetch_addresses(proxy_protocol_server, 'trusted', header) == error
    assert fetch_addresses(proxy_protocol_server, 'tls', header, tls=True) == error
    addresses = fetch_addresses(proxy_protocol_server, 'untrusted', header).split('|')
    assert addresses[0] == '127.0.0.1' and addresses[3:] == error.split('|')[3:]


def test_proxy_header_without_addresses(proxy_protocol_server):
    addresses = fetch_addresses(proxy_protocol_server, 'trusted', LOCAL).split('|')
    assert addresses[0] == addresses[2] == '127.0.0.1' and addresses[3:] == ['', '', '', '']


def test_access_rules_use_the_proxied_address(proxy_protocol_server):
    assert fetch_addresses(proxy_protocol_server, 'denied', V1).startswith('192.0.2.1|')
    assert fetch_addresses(proxy_protocol_server, 'denied', V1_IP6) == ''
    assert fetch_addresses(proxy_protocol_server, 'denied', LOCAL) == ''


@pytest.mark.parametrize('output', [b'GET / HTTP/1.1\r\n\r\n', b'PROXY TCP4 1.2.3.4 nonsense\r\n', SIGNATURE + b'\x31\x11\x00\x00', b'PROXY '])
def test_missing_proxy_header_closes_the_connection(proxy_protocol_server, output):
    def lines():
        return [line for line in server_kit.read_text(proxy_protocol_server.log).splitlines() if line.startswith(f'{proxy_protocol_server.ports["trusted"]} ')]
    before = len(lines())
    assert fetch_addresses(proxy_protocol_server, 'trusted', output) == ''
    wait_for(lambda: len(lines()) > before, 'no line')
    assert lines()[-1].split()[1:] == ['200' if output == b'PROXY ' else '400', '127.0.0.1']
