"""The status page: the format of each line, exact counters of all workers, and workers that die."""
import collections
import itertools
import json
import os
import re
import signal
import socket
import ssl
import time

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for

PATIENCE = server_kit.PATIENCE
WORKERS = 3
FIELDS = ('request_uri', 'status', 'bytes_sent', 'bytes_zero_copy', 'tls_path', 'tls_path_reason', 'ssl_session_reused')

NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"'
SAMPLE = re.compile(rf'({NAME})(?:\{{{LABEL}\}})? (\d+(?:\.\d+)?)')
HELP = re.compile(rf'# HELP ({NAME}) ((?:[^\\\n]|\\[\\n])+)')
TYPE = re.compile(rf'# TYPE ({NAME}) (counter|gauge|histogram)')


def parse(text):
    """Parses Prometheus text to {metric: {label value (None: no label): number}} and checks the syntax of every line."""
    assert text.endswith('\n') and not text.endswith('\n\n')
    metrics, kind, name = {}, None, None
    lines = iter(text[:-1].split('\n'))
    for line in lines:
        if line.startswith('#'):
            name = HELP.fullmatch(line).group(1)
            assert name.startswith('sluice_') and name not in metrics, name
            again, kind = TYPE.fullmatch(next(lines)).groups()
            assert again == name
            assert name.endswith('_total') == (kind == 'counter'), name
            metrics[name] = {}
            continue
        sample, label, value, number = SAMPLE.fullmatch(line).groups()
        suffix = sample[len(name):]
        assert sample.startswith(name) and suffix in (('_bucket', '_sum', '_count') if kind == 'histogram' else ('',)), line
        assert (label == 'le') == (suffix == '_bucket'), line
        key = suffix if suffix in ('_sum', '_count') else value
        assert key not in metrics[name], line
        metrics[name][key] = float(number) if '.' in number else int(number)
    for values in metrics.values():
        if '_count' in values:
            check_histogram(values)
    return metrics


def check_histogram(values):
    assert list(values)[-2:] == ['_sum', '_count'], 'buckets come first'
    bounds = list(values)[:-2]
    assert bounds[-1] == '+Inf' and values['+Inf'] == values['_count']
    assert [float(bound) for bound in bounds] == sorted({float(bound) for bound in bounds})
    counts = [values[bound] for bound in bounds]
    assert counts == sorted(counts)


def flattened(metrics):
    return {(name, key): number for name, values in metrics.items() for key, number in values.items()}


class Watched:
    """A server of several workers with a status page, and with the same values in its access log."""

    def __init__(self, folder, site, certificate, loop, **main):
        self.plain, self.tls = server_kit.free_port(), server_kit.free_port()
        block = {'listen': [f'127.0.0.1:{self.plain}', f'127.0.0.1:{self.tls} ssl'], 'root': site, 'ssl_ktls': 'auto',
                 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], 'server_name': 'localhost',
                 'location': {'= /status': {'status': 'on'}, '= /nginx': {'stub_status': 'on'}, '= /pid': {'return': '200 $pid'},
                              '= /closed': {'return': '444'}}}
        self.server = server_kit.Server(folder, [block], loop=loop, main={'worker_processes': WORKERS, **main}, http={
            'log_format': {'proof': '|'.join(f'${field}' for field in FIELDS)}})
        self.server.start([self.plain, self.tls])
        self.opened = 2                     # connections: start() has probed both ports
        wait_for(lambda: len(self.server.workers()) == WORKERS, 'every worker')

    def connect(self, transport, **options):
        self.opened += 1
        return http1.connect(self.plain if transport == 'plain' else self.tls, transport, timeout=20 * PATIENCE, **options)

    def log(self, lines):
        """Waits until the access log has `lines` lines and returns all of them."""
        def rows():
            return [dict(zip(FIELDS, line.split('|'))) for line in server_kit.read_text(self.server.access_path).splitlines()]
        wait_for(lambda: len(rows()) >= lines, f'{lines} lines in the log')
        return rows()


@pytest.fixture
def watch(site, certificate, tmp_path, loop):
    made = []

    def watcher(**main):
        made.append(Watched(tmp_path / f'run{len(made)}', site, certificate, loop, **main))
        return made[-1]
    yield watcher
    for watched in made:
        watched.server.stop()


def page(client, form='prometheus', mark=''):
    response = client.get(f'/status?format={form}{mark}')
    assert response.status == 200 and response.headers['cache-control'] == 'no-store'
    if form == 'json':
        assert response.headers['content-type'] == 'application/json'
        return json.loads(response.body)
    assert response.headers['content-type'] == 'text/plain; version=0.0.4; charset=utf-8'
    return parse(response.body.decode())


def settled(client, mark=''):
    """The status page when every other request has ended; `mark` and a number are added to its URI."""
    numbers = itertools.count()

    def complete():
        found = page(client, mark=mark and f'&{mark}{next(numbers)}')
        return found if found['sluice_requests_total'][None] == sum(found['sluice_responses_total'].values()) + 1 else None
    return wait_for(complete, 'the end of the other requests', pause=0.05)


def connect_to_each_worker(watched, transport):
    """A connection to each worker, by its process id."""
    clients = {}
    for _ in range(300):
        client = watched.connect(transport)
        clients.setdefault(client.get('/pid').body.decode(), client)
        if len(clients) == WORKERS:
            return clients
    raise AssertionError(f'{len(clients)} of {WORKERS} workers answer')


def send_requests_of_each_kind(watched, transport, rounds=12):
    """Sends requests of all kinds; returns the number of responses for each status."""
    statuses = collections.Counter()
    for _ in range(rounds):
        client = watched.connect(transport)
        responses = [client.get('/one.txt'), client.get('/1048576.bin'), client.get('/nowhere'),
                   client.fetch('HEAD', '/1048576.bin'), client.get('/1048576.bin', Range='bytes=1-200000'),
                   client.fetch('POST', '/one.txt', body=b'x'), client.get('/folder')]
        client.send('nonsense\r\n\r\n')
        responses.append(client.read())
        statuses.update(str(response.status) for response in responses)
        closed = watched.connect(transport)
        closed.send('GET /closed HTTP/1.1\r\nHost: localhost\r\n\r\n')
        assert not closed.fill()
        statuses['444'] += 1
    assert {'200', '206', '301', '400', '404', '405', '444'} == set(statuses)
    return statuses


def test_counters_are_exact(watch, transport):
    watched = watch()
    clients = connect_to_each_worker(watched, transport)
    first, second, third = clients.values()
    wait_for(lambda: page(first)['sluice_connections_accepted_total'][None] == watched.opened, 'the probes are accepted, too')
    before = settled(first)
    known = send_requests_of_each_kind(watched, transport)
    after = settled(second, 'after')
    rows = watched.log(after['sluice_requests_total'][None])
    rows.remove([row for row in rows if '&after' in row['request_uri']][-1])

    grown = collections.Counter(after['sluice_responses_by_status_total'])
    grown.subtract(before['sluice_responses_by_status_total'])
    pages = sum(row['request_uri'].startswith('/status') for row in rows)
    assert {status: count for status, count in grown.items() if status != '200'} == \
        {status: count for status, count in known.items() if status != '200'}
    assert grown['200'] - known['200'] in range(1, pages + 1), 'the rest are pages'
    assert after['sluice_responses_by_status_total'] == collections.Counter(row['status'] for row in rows)
    assert sum(after['sluice_responses_total'].values()) == len(rows)
    assert after['sluice_responses_total']['4xx'] == sum(row['status'].startswith('4') for row in rows)
    assert after['sluice_connections_accepted_total'][None] == watched.opened
    assert after['sluice_request_duration_seconds']['_count'] == len(rows)
    check_transfers(after, rows)
    assert after['sluice_workers'][None] == WORKERS and after['sluice_worker_restarts_total'][None] == 0
    assert abs(after['sluice_start_time_seconds'][None] - time.time()) < 3600
    assert after['sluice_open_file_cache_lookups_total']['miss'] > 0 < after['sluice_open_file_cache_lookups_total']['hit']

    last = settled(third)
    assert last['sluice_requests_total'][None] > after['sluice_requests_total'][None]
    # A worker counts a connection until it has read the end of it.
    idle = {'handshake': 0, 'reading': 0, 'writing': 0, 'waiting': WORKERS}
    wait_for(lambda: settled(third)['sluice_connections'] == idle, 'only the connections to the workers remain')


def check_transfers(metrics, rows):
    """The transfers, reasons and bytes on the status page equal those in the access log."""
    def nonzero(name):
        return {key: number for key, number in metrics[name].items() if number}
    assert nonzero('sluice_transfers_total') == collections.Counter(row['tls_path'] for row in rows if row['tls_path'] != '-')
    declined = [row['tls_path_reason'] for row in rows if row['tls_path'] in ('user', 'openssl')]
    assert nonzero('sluice_ktls_declines_total') == collections.Counter(declined)
    zero_copy, sent = (sum(int(row[name]) for row in rows) for name in ('bytes_zero_copy', 'bytes_sent'))
    assert metrics['sluice_zero_copy_bytes_total'][None] == zero_copy
    # The page does not count its own bytes: the server sends them after it has built the page.
    assert sum(metrics['sluice_sent_bytes_total'].values()) == sent
    assert abs(metrics['sluice_zero_copy_ratio'][None] - zero_copy / sent) < 2e-6


def test_json_equals_prometheus(watch, transport):
    watched = watch()
    client = watched.connect(transport)
    send_requests_of_each_kind(watched, transport, rounds=1)
    wait_for(lambda: settled(client)['sluice_connections']['writing'] == 0, 'connections that have ended are gone')
    as_json, as_text = page(client, 'json'), settled(client)
    assert {'sluice_' + name for name in as_json} == set(as_text)
    moving = ('requests_total', 'responses_total', 'responses_by_status_total', 'sent_bytes_total', 'transfers_total', 'zero_copy_ratio',
              'tls_records_total', 'ktls_declines_total', 'requests_by_protocol_total')
    for name, values in as_json.items():
        shown = as_text['sluice_' + name]
        if name == 'request_duration_seconds':
            assert list(values['buckets']) == list(shown)[:-2] and shown['_count'] > values['count'] == values['buckets']['+Inf']
        elif name == 'build_info':
            assert list(values.values()) == list(shown)
        else:
            values = values if isinstance(values, dict) else {None: values}
            assert set(values) == set(shown)
            assert name in moving or values == shown, name
            assert all(shown[key] >= value for key, value in values.items()) or name == 'zero_copy_ratio'


def test_tls_handshakes_are_counted(watch):
    watched = watch()
    client = watched.connect('plain')
    before = settled(client)['sluice_tls_handshakes_total']
    context = http1.tls_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    session = None
    for _ in range(3):
        sock = socket.create_connection(('127.0.0.1', watched.tls), timeout=20 * PATIENCE)
        with context.wrap_socket(sock, server_hostname='localhost', session=session) as secure:
            session = session or secure.session
            secure.sendall(b'GET /one.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
            while secure.recv(65536):
                pass
    for nonsense in (b'GET / HTTP/1.1\r\n\r\n', b'\x16\x03\x01\x00\x04\x02\x00\x00\x00'):
        with socket.create_connection(('127.0.0.1', watched.tls), timeout=20 * PATIENCE) as sock:
            sock.sendall(nonsense)
            while sock.recv(65536):
                pass
    after = settled(client)['sluice_tls_handshakes_total']
    assert {end: after[end] - before[end] for end in after} == {'full': 1, 'resumed': 2, 'failed': 2}


def test_counts_of_a_dead_worker_remain(watch, transport):
    watched = watch()
    clients = connect_to_each_worker(watched, transport)
    send_requests_of_each_kind(watched, transport, rounds=3)
    victim, survivor = list(clients)[:2]
    wait_for(lambda: settled(clients[survivor])['sluice_connections']['waiting'] == WORKERS, 'the other connections are closed')
    before = settled(clients[survivor])
    os.kill(int(victim), signal.SIGKILL)
    wait_for(lambda: len(watched.server.workers()) == WORKERS and int(victim) not in watched.server.workers(), 'a successor')
    after = settled(clients[survivor])
    assert after['sluice_worker_restarts_total'][None] == 1
    assert after['sluice_connections']['waiting'] == WORKERS - 1, 'its connections ended with it'
    assert after['sluice_responses_by_status_total']['404'] == before['sluice_responses_by_status_total']['404']
    successors = connect_to_each_worker(watched, transport)
    assert victim not in successors
    send_requests_of_each_kind(watched, transport, rounds=2)
    for client in successors.values():
        last = settled(client)
        assert last['sluice_responses_by_status_total']['404'] == before['sluice_responses_by_status_total']['404'] + 2
        gauges = ('sluice_connections', 'sluice_zero_copy_ratio', 'sluice_exchange_memory_bytes')
        assert all(flattened(last)[key] >= number for key, number in flattened(before).items() if key[0] not in gauges)


@pytest.mark.http1('a request in pieces')
def test_slow_request_is_counted_in_its_bucket(watch):
    watched = watch()
    client, slow = watched.connect('plain'), watched.connect('plain')
    slow.send('GET /one.txt HTTP/1.1\r\n')
    time.sleep(0.6 * PATIENCE)
    slow.send('Host: localhost\r\n\r\n')
    assert slow.read().status == 200
    took = settled(client)['sluice_request_duration_seconds']
    assert took['_count'] > took['0.5'] and took['_sum'] >= 0.5


@pytest.mark.http1('a request in pieces')
def test_reading_connections_are_counted(watch, transport):
    watched = watch()
    client, half = watched.connect('plain'), watched.connect(transport)
    half.send('GET /one.txt HT')
    wait_for(lambda: page(client)['sluice_connections']['reading'] == 1, 'a request in its middle')
    half.send('TP/1.1\r\nHost: localhost\r\n\r\n')
    half.read()
    wait_for(lambda: page(client)['sluice_connections'] == {'handshake': 0, 'reading': 0, 'writing': 0, 'waiting': 2}, 'two that wait')
    with socket.create_connection(('127.0.0.1', watched.tls), timeout=20 * PATIENCE):
        wait_for(lambda: page(client)['sluice_connections']['handshake'] == 1, 'a handshake')


def test_stub_status_format(watch):
    watched = watch()
    client = watched.connect('plain')
    expected = re.compile(r'Active connections: 1 \nserver accepts handled requests\n (\d+) \1 (\d+) \nReading: 0 Writing: 1 Waiting: 0 \n')
    wait_for(lambda: expected.fullmatch(client.get('/nginx').body.decode()), 'the format of nginx')
    # The kernel may not have reported the end of the first response before a quick second request: the connection then counts as writing.
    numbers = [int(re.search(r'\n \d+ \d+ (\d+) \n', client.get('/nginx').body.decode()).group(1)) for _ in range(2)]
    assert numbers[1] == numbers[0] + 1
    idle = watched.connect('plain')
    idle.get('/one.txt')
    wait_for(lambda: b'Reading: 0 Writing: 1 Waiting: 1 ' in client.get('/nginx').body, 'the other connection is idle')
    idle.close()
    wait_for(lambda: b'Active connections: 1 ' in client.get('/nginx').body, 'it is gone')
    assert b'Reading: 0 Writing: 1 Waiting: 0 ' in client.get('/nginx').body
    client.close()
    # Workers decrement the same counter that they incremented.
    last = watched.connect('plain')
    wait_for(lambda: page(last)['sluice_connections'] == {'handshake': 0, 'reading': 0, 'writing': 0, 'waiting': 1}, 'only this one')


def test_lost_log_lines_are_counted(site, tmp_path, loop):
    port = server_kit.free_port()
    block = {'listen': [f'127.0.0.1:{port}'], 'root': site, 'location': {'= /status': {'status': 'prometheus', 'access_log': 'off'}}}
    server = server_kit.Server(tmp_path / 'run', [block], loop=loop, http={'access_log': {'path': '/dev/full', 'format': 'proof'}})
    server.start([port])
    client = http1.connect(port)
    for _ in range(5):
        client.get('/one.txt')
    wait_for(lambda: page(client)['sluice_access_log_lines_dropped_total'][None] == 5, 'five lines')
    server.stop()


def test_first_workers_serve_before_the_master_continues(site, tmp_path, loop):
    """The master is stopped while its first worker starts."""
    port = server_kit.free_port()
    block = {'listen': [f'127.0.0.1:{port}'], 'root': site, 'location': {'= /status': {'status': 'prometheus'}}}
    server = server_kit.Server(tmp_path / 'run', [block], loop=loop, main={'worker_processes': 1})
    server.start([])
    try:
        wait_for(server.workers, 'a worker', pause=0)
        server.process.send_signal(signal.SIGSTOP)
        metrics = page(http1.connect(port))
        assert metrics['sluice_workers'][None] == metrics['sluice_generation'][None] == 1
    finally:
        server.process.send_signal(signal.SIGCONT)
        server.stop()
