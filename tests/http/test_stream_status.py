"""`status_zone` in stream: connections of servers on the status page, counted by several workers."""
import collections
import contextlib
import json
import os
import signal
import socket
import ssl
import threading

import pytest
from kit import http1, server as server_kit
from kit.http1 import tls_context
from kit.lifetime import wait_for
from test_status_zone import SAMPLE
from test_stream import UpstreamServer, echo, read_all

WORKERS = 2
TIMEOUT = 30 * server_kit.PATIENCE
FIELDS = ('server_port', 'status', 'bytes_sent', 'bytes_received')


class Zoned:
    """Servers of stream with zones, whose port names them, and a status page."""

    def __init__(self, folder, loop, certificate):
        self.upstream = UpstreamServer(echo)
        names = ('echo', 'text', 'closed', 'dead', 'shop_one', 'shop_two', 'quiet', 'tls', 'preread', 'status')
        self.ports = {name: server_kit.free_port() for name in names}
        self.log = folder / 'stream.log'

        def on(name, more='', **rest):
            return {'listen': f'127.0.0.1:{self.ports[name]}{more}', **rest}
        tls = {'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], 'proxy_pass': self.upstream.address}
        self.servers = [
            on('echo', proxy_pass=self.upstream.address, server_name='echo.test'), on('text', **{'return': 'hello'}),
            on('closed', proxy_pass=self.upstream.address, deny='all'),
            on('dead', proxy_pass=f'127.0.0.1:{server_kit.free_port()}'),
            on('shop_one', proxy_pass=self.upstream.address, status_zone='shop'), on('shop_two', status_zone='shop', **{'return': 'two'}),
            on('quiet', proxy_pass=self.upstream.address, status_zone='off'),
            on('tls', ' ssl', server_name='one.test', **tls), on('tls', ' ssl', server_name='two.test', **tls),
            on('preread', ssl_preread=True, preread_buffer_size='512', proxy_pass=self.upstream.address, status_zone='preread'),
        ]
        self.server = server_kit.Server(folder, [on('status', location={'= /status': {'status': 'on'}})], loop=loop, main={
            'worker_processes': WORKERS, 'stream': {'log_format': {'proof': '|'.join(f'${field}' for field in FIELDS)}, 'status_zone': True,
                                                    'access_log': {'path': str(self.log), 'format': 'proof'}, 'server': self.servers}})
        self.server.start([self.ports['status']])
        wait_for(lambda: server_kit.RUNS in self.server.errors(), 'every worker')     # a start ends with any of them

    def fetch(self, name, output=b'', server_name=None):
        """Sends `output` and returns everything that is received."""
        with socket.create_connection(('127.0.0.1', self.ports[name]), timeout=TIMEOUT) as stream:
            if server_name:
                with tls_context().wrap_socket(stream, server_hostname=server_name) as sealed:
                    sealed.sendall(output)
                    received = sealed.recv(65536)
                    with contextlib.suppress(ssl.SSLError):
                        sealed.unwrap()
                return received
            with contextlib.suppress(ConnectionError):
                stream.sendall(output)
                stream.shutdown(socket.SHUT_WR)
                return read_all(stream)
            return b''

    def page(self, form='json'):
        client = http1.connect(self.ports['status'])
        answer = client.get(f'/status?format={form}')
        client.close()
        assert answer.status == 200
        return json.loads(answer.body) if form == 'json' else answer.body.decode()

    def zones(self):
        return {zone['zone']: zone for zone in self.page()['stream_zones']}

    def connections(self, zone):
        return self.zones()[zone]['connections_total']

    def until_active(self, **expected):
        """Waits until these zones, and no others, have so many open connections. A dot in a name is written as `_`."""
        def active():
            return {name.replace('.', '_'): zone['active'] for name, zone in self.zones().items() if zone['active']}
        wait_for(lambda: active() == expected, f'open connections: {expected}')

    def until(self, zone, count):
        wait_for(lambda: self.connections(zone) >= count, f'{count} connections of {zone}')
        return self.zones()[zone]

    def named(self, name):
        """The name of the zone of a server without server_name."""
        return f'127.0.0.1:{self.ports[name]}'

    def reload(self, runs):
        self.server.write_configuration()
        self.server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.server.errors().count(server_kit.RUNS) >= runs, 'the new generation')


@pytest.fixture
def zoned(tmp_path, loop, certificate):
    made = Zoned(tmp_path, loop, certificate)
    yield made
    made.server.stop()
    made.upstream.listener.close()


def test_connections_of_all_workers_under_load(zoned):
    """The counts of every zone are exact, and those of the access log."""
    def client():
        for count in range(10):
            assert zoned.fetch('echo', b'x' * 1000 * count) == b'x' * 1000 * count
            assert zoned.fetch('text') == b'hello'
            for name in ('closed', 'dead', 'quiet', 'shop_one', 'shop_two'):
                zoned.fetch(name)
            for name in ('one.test', 'two.test'):
                assert zoned.fetch('tls', b'sealed', name) == b'sealed'
    threads = [threading.Thread(target=client) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    expected = {'echo.test': (40, '2xx'), zoned.named('text'): (40, '2xx'), zoned.named('closed'): (40, '4xx'), zoned.named('dead'): (40, '5xx'),
                'shop': (80, '2xx'), 'one.test': (40, '2xx'), 'two.test': (40, '2xx'), 'preread': (0, '2xx')}
    for name, (count, kind) in expected.items():
        zone = zoned.until(name, count)
        assert zone['connections_total'] == zone['sessions_total'][kind] == sum(zone['sessions_total'].values()) == count, name
        assert zone['session_duration_seconds']['count'] == count
    zones = zoned.zones()
    assert zones.keys() == expected.keys()
    assert zones['echo.test']['sent_bytes_total'] == zones['echo.test']['received_bytes_total'] == 4 * 45000
    assert zones[zoned.named('text')]['sent_bytes_total'] == 40 * len('hello')
    ports = {zoned.named('text'): ['text'], zoned.named('dead'): ['dead'], zoned.named('closed'): ['closed'], 'echo.test': ['echo'], 'shop': ['shop_one', 'shop_two']}
    for name, servers in ports.items():
        compare_with_log(zoned, zones[name], {str(zoned.ports[server]) for server in servers})


def compare_with_log(zoned, zone, ports):
    def rows():
        lines = server_kit.read_text(zoned.log).splitlines()
        return [row for row in (dict(zip(FIELDS, line.split('|'))) for line in lines) if row['server_port'] in ports]
    wait_for(lambda: len(rows()) == zone['connections_total'], 'every line')
    assert sum(int(row['bytes_sent']) for row in rows()) == zone['sent_bytes_total']
    assert sum(int(row['bytes_received']) for row in rows()) == zone['received_bytes_total']
    classes = collections.Counter(row['status'][0] + 'xx' for row in rows())
    assert classes == {name: count for name, count in zone['sessions_total'].items() if count}


def test_a_connection_counts_when_it_ends(zoned):
    with socket.create_connection(('127.0.0.1', zoned.ports['echo']), timeout=TIMEOUT) as stream:
        stream.sendall(b'open')
        assert stream.recv(100) == b'open'
        assert zoned.connections('echo.test') == 0
    assert zoned.until('echo.test', 1)['sent_bytes_total'] == 4


def test_open_connections_are_active(zoned):
    """In the default server until the client has sent its server name, then in the server of that name."""
    zoned.until_active()
    with contextlib.ExitStack() as open_ones:
        def connect(name):
            return open_ones.enter_context(socket.create_connection(('127.0.0.1', zoned.ports[name]), timeout=TIMEOUT))
        for count in range(1, 4):
            connect('echo')
            zoned.until_active(echo_test=count)
        stream = connect('tls')
        zoned.until_active(echo_test=3, one_test=1)
        sealed = open_ones.enter_context(tls_context().wrap_socket(stream, server_hostname='two.test'))
        zoned.until_active(echo_test=3, two_test=1)
        connect('preread').sendall(b'\x16\x03\x01')
        zoned.until_active(echo_test=3, two_test=1, preread=1)
        zoned.reload(2)
        connect('echo')
        zoned.until_active(echo_test=4, two_test=1, preread=1)
        sealed.sendall(b'still open')
        assert sealed.recv(100) == b'still open'
    zoned.until_active()
    assert zoned.until('echo.test', 4)['connections_total'] == 4


def test_open_connections_of_a_killed_worker_are_not_active(zoned):
    with socket.create_connection(('127.0.0.1', zoned.ports['echo']), timeout=TIMEOUT):
        zoned.until_active(echo_test=1)
        former = set(zoned.server.workers())
        for pid in former:
            os.kill(pid, signal.SIGKILL)
        zoned.until_active()
    assert zoned.connections('echo.test') == 0
    assert zoned.fetch('echo', b'again') == b'again'
    zoned.until('echo.test', 1)
    zoned.until_active()


def test_a_connection_without_a_server_name_counts_in_the_default_server(zoned):
    """A ClientHello that exceeds the buffer, and a client that goes away before."""
    hello = b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + bytes(600)
    zoned.fetch('preread', hello)
    assert zoned.until('preread', 1)['sessions_total']['4xx'] == 1
    zoned.fetch('preread', hello[:20])
    zone = zoned.until('preread', 2)
    assert zone['sessions_total']['2xx'] == 1 and zone['received_bytes_total'] == 0


def test_reload_and_a_dead_worker(zoned):
    """Zones with the same name continue, also with connections of the former workers; those of a killed worker keep their counts."""
    assert zoned.fetch('text') == b'hello'
    zoned.until(zoned.named('text'), 1)
    with socket.create_connection(('127.0.0.1', zoned.ports['shop_one']), timeout=TIMEOUT) as stream:
        stream.sendall(b'open')
        assert stream.recv(100) == b'open'
        zoned.servers[1]['status_zone'] = 'text'
        zoned.servers[6]['status_zone'] = 'loud'
        zoned.reload(2)
    assert zoned.until('shop', 1)['sessions_total']['2xx'] == 1
    assert zoned.named('text') not in zoned.zones() and zoned.connections('text') == 0
    for _ in range(10):
        zoned.fetch('quiet')
    zoned.until('loud', 10)
    wait_for(lambda: len(zoned.server.workers()) == WORKERS, 'the end of the former workers')
    former = set(zoned.server.workers())
    for pid in former:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not former & set(zoned.server.workers()) and len(zoned.server.workers()) == WORKERS, 'the replacements')
    assert zoned.connections('loud') == 10
    zoned.fetch('quiet')
    assert zoned.until('loud', 11)['connections_total'] == 11


def test_formats(zoned):
    """Prometheus text, JSON and HTML have the same values."""
    for _ in range(3):
        zoned.fetch('shop_two')
    found = zoned.until('shop', 3)
    text = zoned.page('prometheus')
    own = [SAMPLE.fullmatch(line) for line in text.splitlines() if line.startswith('sluice_stream_zone') and 'zone="shop"' in line]
    values = {(one.group(2), one.group(5)): float(one.group(6)) for one in own}
    assert len(own) == len(values) == 3 + 1 + 6 + 17
    assert values['active', None] == found['active'] == 0 and '# TYPE sluice_stream_zone_active gauge\n' in text
    assert values['connections_total', None] == values['session_duration_seconds_count', None] == found['connections_total'] == 3
    assert values['sent_bytes_total', None] == found['sent_bytes_total'] == 9 and values['received_bytes_total', None] == 0
    assert {value: number for (metric, value), number in values.items() if metric == 'sessions_total'} == found['sessions_total']
    assert text.count('# TYPE sluice_stream_zone_session_duration_seconds histogram\n') == 1
    assert '<h2>Servers of stream</h2>' in zoned.page('html') and '<tr><td>shop<td>3<td>0<td>0<td>' in zoned.page('html')
