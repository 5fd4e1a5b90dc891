"""Variables in stream: in its access log, proxy_pass, return, and hash keys."""
import contextlib
import select
import socket
import ssl
import threading
import time

import pytest
from kit import server as server_kit
from kit.http1 import tls_context
from kit.lifetime import wait_for
from test_stream import UpstreamServer, read_all

FIELDS = ('server_port', 'protocol', 'status', 'bytes_sent', 'bytes_received', 'upstream_addr', 'upstream_bytes_sent', 'upstream_bytes_received',
          'remote_addr', 'ssl_protocol', 'ssl_server_name', 'ssl_preread_server_name', 'ssl_preread_protocol', 'ssl_preread_alpn_protocols', 'tls_path',
          'session_time', 'upstream_connect_time', 'upstream_first_byte_time', 'upstream_session_time', 'bytes_zero_copy', 'connection')


def responds_with(name):
    def serve(stream):
        output = read_all(stream)
        stream.sendall(name.encode() + b' ' + output)
    return serve


def sends_client_address(stream):
    stream.sendall(stream.getpeername()[0].encode())


def receives_once(stream):
    stream.recv(65536)


class Flood:
    """An upstream server that sends until the client's direction ends."""
    def __init__(self):
        self.full, self.ended = threading.Event(), threading.Event()

    def __call__(self, stream):
        stream.setblocking(False)
        while True:
            readable, writable, _ = select.select([stream], [stream], [], 0.3)
            if readable:
                break
            if writable:
                stream.send(bytes(65536))
            else:
                self.full.set()
        self.ended.set()


class Logged:
    def __init__(self, loop, folder, certificate):
        self.flood = Flood()
        self.upstreams = {'a': UpstreamServer(responds_with('a')), 'b': UpstreamServer(responds_with('b')), 'hello': UpstreamServer(receives_once),
                          'client': UpstreamServer(sends_client_address), 'flood': UpstreamServer(self.flood)}
        names = ('plain', 'text', 'long', 'variable', 'keyed', 'other', 'dead', 'second', 'closed', 'tls', 'preread', 'small', 'own', 'off', 'bound', 'misbound', 'sealed', 'spliced', 'half', 'late', 'http')
        self.ports = {name: server_kit.free_port() for name in names}
        self.log = folder / 'stream.log'
        self.own = folder / 'own.log'
        a, b = self.upstreams['a'].address, self.upstreams['b'].address
        dead = f'127.0.0.1:{server_kit.free_port()}'
        tls = {'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], 'ssl_ktls': 'off'}

        def on(name, more='', **rest):
            return {'listen': f'127.0.0.1:{self.ports[name]}{more}', **rest}
        self.server = server_kit.Server(folder, [on('http', **{'return': '200 ok'})], loop=loop, main={'stream': {
            'log_format': {'proof': '|'.join(f'${field}' for field in FIELDS), 'short': '$status $upstream_addr'},
            'access_log': {'path': str(self.log), 'format': 'proof'},
            'upstream': {'keyed': {'server': [a, b], 'hash': '$server_port'}, 'second': {'server': [f'{dead} max_fails=0', f'{a} backup']}},
            'server': [
                on('plain', proxy_pass=a), on('spliced', proxy_pass=a),
                on('text', **{'return': 'you are $remote_addr, on $server_port by $protocol'}),
                on('long', **{'return': '${server_port}' + 'x' * 70000}),
                on('variable', proxy_pass='127.0.0.1:$server_port'.replace('$server_port', self.upstreams['b'].address.split(':')[1] + '$ssl_protocol')),
                on('keyed', proxy_pass='keyed'), on('other', proxy_pass='keyed'),
                on('dead', proxy_pass=dead), on('second', proxy_pass='second'), on('closed', proxy_pass=a, deny='all'),
                on('tls', ' ssl', server_name='named.test', proxy_pass=a, **tls),
                on('sealed', ' ssl', server_name='named.test', proxy_pass=a, deny='all', **tls),
                on('preread', ssl_preread=True, proxy_pass=self.upstreams['hello'].address),
                on('small', ssl_preread=True, preread_buffer_size='512', proxy_pass=a),
                on('bound', proxy_pass=self.upstreams['client'].address, proxy_bind='127.0.0.7'),
                on('misbound', proxy_pass=self.upstreams['client'].address, proxy_bind='::1'),
                on('half', proxy_pass=self.upstreams['flood'].address, proxy_half_close=False),
                on('late', proxy_pass='second', ssl_preread=True, proxy_next_upstream_timeout='1s'),
                on('own', proxy_pass=a, access_log=f'{self.own} short'), on('off', proxy_pass=a, access_log='off'),
            ]}})
        self.server.start([self.ports['http']])

    def connect(self, name):
        stream = socket.create_connection(('127.0.0.1', self.ports[name]))
        stream.settimeout(30 * server_kit.PATIENCE)
        return stream

    def fetch(self, name, output=b''):
        """Sends `output` and returns everything that is received."""
        with self.connect(name) as stream:
            stream.sendall(output)
            stream.shutdown(socket.SHUT_WR)
            return read_all(stream)

    def rows(self, name):
        port = str(self.ports[name])
        lines = server_kit.read_text(str(self.log)).splitlines()
        return [row for row in (dict(zip(FIELDS, line.split('|'))) for line in lines) if row['server_port'] == port]

    def row(self, name):
        return wait_for(lambda: self.rows(name), f'no line of {name}')[-1]


@pytest.fixture(scope='module', params=server_kit.os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split())
def logged(request, new_directory, certificate):
    made = Logged(request.param, new_directory(), certificate)
    yield made
    made.server.stop()
    for one in made.upstreams.values():
        one.listener.close()


def test_each_connection_is_logged(logged):
    assert logged.fetch('plain', b'x' * 100000) == b'a ' + b'x' * 100000
    row = logged.row('plain')
    assert (row['protocol'], row['status'], row['remote_addr']) == ('TCP', '200', '127.0.0.1')
    assert row['bytes_sent'] == row['upstream_bytes_received'] == '100002'
    assert row['bytes_received'] == row['upstream_bytes_sent'] == '100000'
    assert row['upstream_addr'] == logged.upstreams['a'].address
    assert row['ssl_protocol'] == row['ssl_preread_server_name'] == '-'
    assert all(float(row[name]) >= 0 for name in ('session_time', 'upstream_connect_time', 'upstream_first_byte_time', 'upstream_session_time'))
    assert len(logged.rows('plain')) == 1


def test_large_transfers_are_spliced(logged):
    """After the first 64 KiB, the bytes for the client do not pass through the process. A small response does."""
    body = b'x' * (4 << 20)
    assert logged.fetch('spliced', body) == b'a ' + body
    assert len(body) // 2 < int(logged.row('spliced')['bytes_zero_copy']) < len(body)
    assert logged.fetch('spliced', b'x' * 10000) == b'a ' + b'x' * 10000
    wait_for(lambda: len(logged.rows('spliced')) == 2, 'no second line')
    assert logged.rows('spliced')[1]['bytes_zero_copy'] == '0'


def test_spliced_bytes_are_sent_before_the_end(logged):
    """Without proxy_half_close, the end of the client's direction ends the connection after the bytes that are queued for the client."""
    with logged.connect('half') as stream:
        assert logged.flood.full.wait(30 * server_kit.PATIENCE), 'no buffer is full'
        stream.shutdown(socket.SHUT_WR)
        assert logged.flood.ended.wait(30 * server_kit.PATIENCE), 'the end is not forwarded'
        received = len(read_all(stream))
    assert received == int(logged.row('half')['bytes_sent'])


def test_return_is_logged(logged):
    output = logged.fetch('text', b'ignored')
    assert output == f'you are 127.0.0.1, on {logged.ports["text"]} by TCP'.encode()
    row = logged.row('text')
    assert (row['status'], row['bytes_sent'], row['upstream_addr']) == ('200', str(len(output)), '-')


def test_long_return_text_is_sent_completely(logged):
    assert logged.fetch('long') == str(logged.ports['long']).encode() + b'x' * 70000
    assert logged.row('long')['bytes_sent'] == '70005'


def test_variables_in_proxy_pass(logged):
    assert logged.fetch('variable', b'x') == b'b x'
    assert logged.row('variable')['upstream_addr'] == logged.upstreams['b'].address


def test_variables_in_hash_keys(logged):
    output = {name: {logged.fetch(name, b'') for _ in range(8)} for name in ('keyed', 'other')}
    assert all(len(responses) == 1 for responses in output.values())


@pytest.mark.parametrize('name, status', [('dead', '502'), ('closed', '403')])
def test_failed_connections_have_their_status(logged, name, status):
    assert logged.fetch(name) == b''
    row = logged.row(name)
    assert (row['status'], row['bytes_sent'], row['upstream_bytes_received']) == (status, '0', '0' if name == 'dead' else '-')
    assert row['upstream_connect_time'] == '-'


def test_denied_client_receives_close_notify(logged):
    stream = tls_context().wrap_socket(logged.connect('sealed'), server_hostname='named.test', suppress_ragged_eofs=False)
    stream.sendall(b'x' * 1000)
    assert stream.recv(1) == b''
    stream.close()
    assert logged.row('sealed')['status'] == '403'


def test_proxy_bind_sets_the_source_address(logged):
    assert logged.fetch('bound') == b'127.0.0.7'
    assert logged.fetch('misbound') == b'' and logged.row('misbound')['status'] == '502'


def test_upstream_addresses_are_listed_in_order(logged):
    assert logged.fetch('second', b'x') == b'a x'
    row = logged.row('second')
    first, second = row['upstream_addr'].split(', ')
    assert second == logged.upstreams['a'].address and first != second
    assert (row['status'], row['upstream_bytes_sent'], row['upstream_bytes_received']) == ('200', '0, 1', '0, 3')


def test_time_before_the_first_server_does_not_count(logged):
    """proxy_next_upstream_timeout begins with the first server, not with the connection of the client."""
    with logged.connect('late') as stream:
        time.sleep(1.2)
        stream.sendall(b'x')
        stream.shutdown(socket.SHUT_WR)
        assert read_all(stream) == b'a x'


def test_terminated_tls_is_logged(logged):
    with tls_context().wrap_socket(logged.connect('tls'), server_hostname='named.test') as stream:
        stream.sendall(b'x')
        with contextlib.suppress(ssl.SSLError):     # the peer's close_notify follows ours
            stream.unwrap()
    row = logged.row('tls')
    assert (row['ssl_protocol'], row['ssl_server_name'], row['status']) == ('TLSv1.3', 'named.test', '200')
    with logged.connect('tls') as stream:
        stream.sendall(b'\x16\x03\x01\x00\x05nonsense')
        read_all(stream)
    wait_for(lambda: len(logged.rows('tls')) == 2, 'no second line')
    assert logged.rows('tls')[1]['status'] == '500'


def test_preread_tls_is_logged(logged):
    context = tls_context()
    context.set_alpn_protocols(['h2', 'http/1.1'])
    with contextlib.suppress(OSError, ssl.SSLError):
        context.wrap_socket(logged.connect('preread'), server_hostname='Preread.test')
    row = logged.row('preread')
    assert (row['ssl_preread_server_name'], row['ssl_preread_protocol'], row['ssl_preread_alpn_protocols']) == ('preread.test', 'TLSv1.3', 'h2,http/1.1')
    assert int(row['bytes_received']) > 100 and row['bytes_received'] == row['upstream_bytes_sent']
    context.set_alpn_protocols(['x' * 200, 'y' * 200, 'z' * 200])
    with contextlib.suppress(OSError, ssl.SSLError):
        context.wrap_socket(logged.connect('small'), server_hostname='preread.test')
    assert logged.row('small')['status'] == '400'        # more than preread_buffer_size


def test_access_log_of_a_server(logged):
    assert logged.fetch('own', b'x') == b'a x' and logged.fetch('off', b'x') == b'a x'
    assert wait_for(lambda: server_kit.read_text(str(logged.own)), 'no line') == f'200 {logged.upstreams["a"].address}\n'
    assert not logged.rows('own') and not logged.rows('off')


@pytest.mark.parametrize('block, output', [
    ({'proxy_pass': '127.0.0.1:$arg_port'}, 'arg_port'), ({'proxy_pass': '127.0.0.1:1', 'return': 'x'}, 'both proxy_pass and return'),
    ({'proxy_pass': '127.0.0.1:1', 'proxy_bind': 'here'}, 'not a local address'),
    ({'proxy_pass': '127.0.0.1:1', 'access_log': 'x.log combined'}, 'no log format'), ({}, 'neither proxy_pass nor return'),
])
def test_invalid_configurations_are_rejected(new_directory, block, output):
    ports = server_kit.free_port(), server_kit.free_port()
    made = server_kit.Server(new_directory(), [{'listen': f'127.0.0.1:{ports[0]}'}], main={'stream': {'server': {'listen': f'127.0.0.1:{ports[1]}', **block}}})
    with pytest.raises(RuntimeError, match=output):
        made.start([ports[0]])
