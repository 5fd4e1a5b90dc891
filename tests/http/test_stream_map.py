"""map and geo in stream: SNI selects upstream servers without decryption, and addresses select texts."""
import socket
import ssl

import pytest
from kit import server as server_kit, site as site_kit
from kit.lifetime import wait_for
from test_stream import UpstreamServer, read_all

NAMES = ('a', 'b', 'wild')


class TlsUpstream:
    """A TLS server with its own certificate that sends its name."""

    def __init__(self, folder, name):
        folder.mkdir()
        certificate = site_kit.make_certificate(str(folder), name=name, names=(f'{name}.test', f'deep.{name}.test'))
        self.authority = certificate[0]
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*certificate)
        self.name = name
        self.upstreams = UpstreamServer(self.serve)

    def serve(self, stream):
        with self.context.wrap_socket(stream, server_side=True) as sealed:
            sealed.sendall(f'{self.name} received {sealed.recv(100).decode()}'.encode())


class Mapped:
    def __init__(self, loop, folder):
        self.servers = {name: TlsUpstream(folder / f'inner-{name}', name) for name in NAMES}
        self.ports = {name: server_kit.free_port() for name in ('http', 'names', 'plain', 'text')}
        self.log = folder / 'stream.log'
        plain = UpstreamServer(lambda stream: stream.sendall(b'plain'))

        def on(name, **rest):
            return {'listen': f'127.0.0.1:{self.ports[name]}', **rest}
        self.server = server_kit.Server(
            folder, [on('http', **{'return': '200 "$kind of $remote_addr"'})], loop=loop, http={'map': {'$remote_addr $kind': {'default': 'http'}}},
            main={'stream': {
                'map': {'$ssl_preread_server_name $backend': {'hostnames': True, 'a.test': 'first', 'b.test': 'second', '*.wild.test': self.servers['wild'].upstreams.address,
                                                              'nowhere.test': 'no address', 'default': plain.address},
                        '$ssl_preread_server_name $part': {r'~^(?<label>[a-z]+)\.(.+)$': '$label/$1/$2', 'default': 'none'},
                        '$status $quality': {'200': 'good', 'default': 'bad'},
                        '$server_port $kind': {'default': 'stream'}},
                'geo': {'$near': {'default': 'far', '127.0.0.0/8': 'near', '127.0.0.9': 'nearest'}, '$server_addr $there': {'127.0.0.1': 'here'}},
                'log_format': {'proof': '$server_port|$backend|$part|$quality|$near|$upstream_addr'},
                'access_log': {'path': str(self.log), 'format': 'proof'},
                'upstream': {'first': {'server': self.servers['a'].upstreams.address}, 'second': {'server': self.servers['b'].upstreams.address}},
                'server': [on('names', ssl_preread=True, proxy_pass='$backend'), on('plain', proxy_pass='$backend'),
                           on('text', **{'return': '$near $there $kind $part'})]}})
        self.server.start([self.ports['http']])

    def connect(self, name, source='127.0.0.1'):
        stream = socket.create_connection(('127.0.0.1', self.ports[name]), source_address=(source, 0))
        stream.settimeout(30 * server_kit.PATIENCE)
        return stream

    def line(self, name):
        """The last row of the log for this server."""
        def find():
            rows = [line.split('|') for line in server_kit.read_text(str(self.log)).splitlines()]
            return [row[1:] for row in rows if row[0] == str(self.ports[name])]
        return wait_for(find, f'no line of {name}')


@pytest.fixture(scope='module', params=server_kit.os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split())
def mapped(request, new_directory):
    made = Mapped(request.param, new_directory())
    yield made
    made.server.stop()


@pytest.mark.parametrize('requests, server', [('a.test', 'a'), ('b.test', 'b'), ('A.TEST', 'a'), ('deep.wild.test', 'wild')])
def test_map_of_sni_selects_the_server(mapped, requests, server):
    """The client verifies that server's certificate: no proxy in between has ended TLS."""
    one = mapped.servers[server]
    context = ssl.create_default_context(cafile=one.authority)
    with context.wrap_socket(mapped.connect('names'), server_hostname=requests) as sealed:
        sealed.sendall(requests.encode())
        assert read_all(sealed).decode() == f'{server} received {requests}'
    first, rest = requests.lower().split('.', 1)
    expected = {'a': 'first', 'b': 'second'}.get(server, one.upstreams.address)

    def error():
        return [row for row in mapped.line('names') if row[0] == expected and row[1].lower() == f'{first}/{first}/{rest}'
                and row[2:] == ['good', 'near', one.upstreams.address]]
    wait_for(error, 'no such line')


def test_map_value_without_an_address_is_an_error(mapped):
    with mapped.connect('names') as stream, pytest.raises((ssl.SSLError, ConnectionError)):
        ssl._create_unverified_context().wrap_socket(stream, server_hostname='nowhere.test')
    wait_for(lambda: [row for row in mapped.line('names') if row[0] == 'no address' and row[2] == 'bad'], 'no such line')
    assert 'the evaluated value is not an address' in mapped.server.errors()


def test_missing_sni_selects_the_default(mapped):
    with mapped.connect('plain') as stream:
        assert read_all(stream) == b'plain'
    assert mapped.line('plain')[0][1] == 'none'


@pytest.mark.parametrize('source, near', [('127.0.0.1', 'near'), ('127.0.0.9', 'nearest')])
def test_geo_maps_addresses(mapped, source, near):
    """Variables of the same name are independent in http and stream."""
    with mapped.connect('text', source) as stream:
        assert read_all(stream).decode() == f'{near} here stream none'
    with mapped.connect('http') as stream:
        stream.sendall(b'GET / HTTP/1.0\r\n\r\n')
        assert read_all(stream).endswith(b'http of 127.0.0.1')
