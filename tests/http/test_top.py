"""`sluice top`: the load of a running server, from its status page."""
import contextlib
import functools
import json
import os
import re
import subprocess
import threading
import time

import pytest

from kit import http1, server as server_kit, terminal as terminal_kit, upstream as upstream_kit
from kit.lifetime import wait_for

PATIENCE = server_kit.PATIENCE
SIZE = 65536    # of the file under load


def top(*words, **options):
    return subprocess.run([server_kit.SLUICE, 'top', *words], capture_output=True, text=True, timeout=60 * PATIENCE, check=False, **options)


def sample(url, *words):
    ran = top(url, '--once', '--json', *words)
    assert ran.returncode == 0 and ran.stderr == '', ran.stderr
    return json.loads(ran.stdout)


class Load:
    """Clients that request a path in a loop and count the responses."""

    def __init__(self, port, transport, paths):
        self.port, self.transport = port, transport
        self.running, self.responses = True, 0
        self.threads = [threading.Thread(target=self.run, args=(path,)) for path in paths]

    def run(self, path):
        client = http1.connect(self.port, self.transport, timeout=20 * PATIENCE)
        while self.running:
            client.get(path)
            self.responses += 1
        client.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_for(lambda: self.responses > len(self.threads), 'the load')
        return self

    def __exit__(self, *_):
        self.running = False
        for thread in self.threads:
            thread.join()


@pytest.fixture
def watched(start, site, certificate, tmp_path):
    """A server with a status page, files, a cache, and two upstream servers, one of which does not exist."""
    upstream = upstream_kit.Upstream()
    ports = server_kit.free_port(), server_kit.free_port()
    stream_port = server_kit.free_port()
    block = {'listen': [f'127.0.0.1:{ports[0]}', f'127.0.0.1:{ports[1]} ssl'], 'root': site, 'keepalive_requests': 1000000,
             'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1],
             'location': {'= /status': {'status': 'on'}, '/app/': {'proxy_pass': 'http://app'},
                          '/cached/': {'proxy_pass': 'http://app', 'proxy_cache': 'one', 'proxy_cache_valid': '1h'}, '= /missing': {'return': '404'}}}
    http = {'status_zone': True, 'proxy_cache_path': {'path': str(tmp_path / 'cache'), 'keys_zone': 'one:1m'},
            'upstream': {'app': {'server': [f'127.0.0.1:{upstream.port}', {'address': f'127.0.0.1:{server_kit.free_port()}', 'backup': True}]}}}
    stream = {'upstream': {'tcp': {'server': f'127.0.0.1:{ports[0]}'}},
              'server': {'listen': f'127.0.0.1:{stream_port}', 'status_zone': 'stream', 'proxy_pass': 'tcp'}}
    server = start(servers=[block], http=http, stream=stream, wait=False)
    server.plain, server.port = ports
    server.stream_port = stream_port
    server.start(ports)
    server.ready_s = int(time.time())
    yield server
    upstream.stop()


def wait_for_another_start_time(watched):
    """Waits until a server that starts now has another start time, which is in seconds."""
    wait_for(lambda: int(time.time()) > watched.ready_s, 'another second')


def test_sample_under_load(watched):
    url = f'http://127.0.0.1:{watched.plain}/status'
    with Load(watched.port, 'user', [f'/{SIZE}.bin']), Load(watched.plain, 'plain', [f'/{SIZE}.bin', '/app/x', '/missing']):
        found = sample(url, '--interval', '2')
    assert 2 <= found['interval_seconds'] < 2 + 20 * PATIENCE and found['restarted'] is False
    assert found['version'] and found['workers'] == 1 and abs(found['start_time_seconds'] - time.time()) < 600
    assert found['requests_per_second'] > 2
    classes = found['responses_per_second']
    assert classes['2xx'] > 1 and classes['4xx'] > 0 and classes['5xx'] == 0
    # Each total is that of its parts. The page is read while responses are in progress: at most one per client is counted in part.
    assert abs(sum(classes.values()) - found['requests_per_second']) <= 5
    paths = {path['path']: path for path in found['paths']}
    assert abs(sum(path['bytes_per_second'] for path in paths.values()) - found['bytes_per_second']) < 1
    assert abs(sum(path['share'] for path in paths.values()) - 1) < 1e-4
    encrypted = [path for name, path in paths.items() if not name.startswith('plain')]
    assert sum(path['bytes_per_second'] for path in encrypted) > SIZE / 4 and paths['plain']['responses_per_second'] > 0
    assert found['bytes_per_second'] > sum(path['responses_per_second'] for path in encrypted) * SIZE * 0.5
    assert found['connections']['handshake'] == 0 and sum(found['connections'].values()) >= 4
    latency = found['latency_seconds']
    assert 0 <= latency['p50'] <= latency['p90'] <= latency['p99']
    first, second = (upstream for upstream in found['upstreams'] if upstream['upstream'] != 'tcp')
    assert first['upstream'] == second['upstream'] == 'app' and first['state'] == 'up' and first['requests_per_second'] > 1
    locations = {location['zone']: location for location in found['locations']}
    app, missing, idle = (locations[f'127.0.0.1:{watched.plain} {name}'] for name in ('/app/', '= /missing', '= /status'))
    assert app['requests_per_second'] > 1 and app['failures_per_second'] == 0 and 0 <= app['active'] < 5
    assert 0 <= app['latency_seconds']['p50'] <= app['latency_seconds']['p99']
    assert missing['requests_per_second'] > 1 and 0 < idle['requests_per_second'] <= 1
    assert second['requests_per_second'] == second['active'] == 0 and first['answer_seconds'] > 0


def test_server_zones_and_caches(watched):
    url = f'http://127.0.0.1:{watched.plain}/status'
    with Load(watched.plain, 'plain', ['/cached/x', '/missing']):
        found = sample(url)
    [server] = [zone for zone in found['server_zones'] if zone['requests_per_second'] > 1]
    assert server['requests_per_second'] > 2 and server['failures_per_second'] == 0 and server['latency_seconds']['p50'] >= 0
    [cache] = found['caches']
    assert cache['cache'] == 'one' and cache['files'] == 1 and cache['bytes'] > 0 and cache['max_bytes'] is None
    assert cache['hits_per_second'] > 1 and 0.5 < cache['hit_ratio'] <= 1
    assert cache['responses_per_second'] < server['requests_per_second']


def test_stream_zones(watched):
    """Connections that end, and the open ones."""
    stop = threading.Event()

    def connect():
        while not stop.is_set():
            client = http1.connect(watched.stream_port, timeout=20 * PATIENCE)
            assert client.get('/missing').status == 404
            client.close()
    thread = threading.Thread(target=connect)
    thread.start()
    open_ones = [http1.connect(watched.stream_port, timeout=20 * PATIENCE) for _ in range(3)]
    try:
        assert all(client.get('/missing').status == 404 for client in open_ones)
        found = sample(f'http://127.0.0.1:{watched.plain}/status')
    finally:
        stop.set()
        thread.join()
    [zone] = found['stream_zones']
    assert zone['zone'] == 'stream' and zone['connections_per_second'] > 1 and zone['failures_per_second'] == 0
    assert 3 <= zone['active'] <= 5 and zone['latency_seconds']['p50'] >= 0
    for client in open_ones:
        client.close()


def test_handshakes_are_counted(watched):
    stop = threading.Event()

    def connect():
        while not stop.is_set():
            http1.connect(watched.port, 'user', timeout=20 * PATIENCE).close()
    thread = threading.Thread(target=connect)
    thread.start()
    try:
        found = sample(f'http://127.0.0.1:{watched.plain}/status')
    finally:
        stop.set()
        thread.join()
    assert found['tls_handshakes_per_second']['full'] > 0 and found['accepted_per_second'] > found['tls_handshakes_per_second']['full'] / 2


def test_idle_server_by_host_name(watched):
    """`localhost` may have an IPv6 address that refuses the connection: the next address is tried."""
    found = sample(f'http://localhost:{watched.plain}/status?format=json')
    assert found['requests_per_second'] * found['interval_seconds'] == pytest.approx(1, abs=0.01), 'the request of the second reading'
    assert found['bytes_per_second'] > 0


def test_restart_between_the_readings(watched):
    """The counters begin at 0 again; the rates are those since the restart, not negative or huge."""
    client = http1.connect(watched.plain)
    for _ in range(50):
        client.get('/one.txt')
    client.close()
    before = server_kit.read_text(watched.access_path).count('/status')
    process = subprocess.Popen([server_kit.SLUICE, 'top', f'http://127.0.0.1:{watched.plain}/status', '--once', '--json', '--interval', '5'],
                               stdout=subprocess.PIPE, text=True)
    wait_for(lambda: server_kit.read_text(watched.access_path).count('/status') > before, 'the first reading')
    watched.stop()
    wait_for_another_start_time(watched)
    watched.start([watched.plain])
    output, _ = process.communicate(timeout=60 * PATIENCE)
    assert process.returncode == 0
    found = json.loads(output)
    assert found['restarted'] is True and 0 < found['requests_per_second'] < 2


PAGE = b'{"requests_total": 1, "upstreams": [{"upstream": "\\u001b[2J\\r\\n", "server": "s", "state": "up"}]}'


def response(body, head='HTTP/1.1 200 OK\r\nContent-Type: application/json'):
    return lambda peer: peer.send(f'{head}\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body)


def endless(peer):
    peer.send(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"requests_total": 1, "x": "')
    with contextlib.suppress(OSError):
        while True:
            peer.send(b'x' * 65536)


HOSTILE = {
    '/404': (response(PAGE, 'HTTP/1.1 404 Not Found'), 'status 404'),
    '/text': (response(b'sluice_requests_total 1\n', 'HTTP/1.1 200 OK\r\nContent-Type: text/plain'), 'needs "status: on" or "status: json"'),
    '/untyped': (response(PAGE, 'HTTP/1.1 200 OK'), 'is not a status page'),
    '/other': (response(b'{"a": 1}'), 'not the JSON form of a status page'),
    '/number': (response(b'{"requests_total": 18446744073709551616}'), 'not the JSON form'),
    '/deep': (response(b'{"a": ' + b'[' * 100000), 'more values than'),
    '/truncated': (lambda peer: peer.send(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}'), 'invalid response'),
    '/head': (lambda peer: peer.send(b'HTTP/1.1 200 OK\r\nX: ' + b'x' * 100000 + b'\r\n\r\n'), 'invalid response'),
    '/garbage': (lambda peer: peer.send(b'\x1b[2J\xff\xfe SSH-2.0\r\n\r\n'), 'invalid response'),
    '/nothing': (lambda peer: None, 'invalid response'),
    '/endless': (endless, 'longer than'),
    '/reset': (lambda peer: peer.reset(), 'cannot read the response'),
}


@pytest.fixture
def hostile():
    made = upstream_kit.Upstream({'/page': response(PAGE), **{path: script for path, (script, _) in HOSTILE.items()}})
    yield made
    made.stop()


@pytest.mark.parametrize('path', HOSTILE)
def test_invalid_pages_are_rejected(hostile, path):
    ran = top(f'http://127.0.0.1:{hostile.port}{path}', '--once', '--json')
    assert ran.returncode == 1 and ran.stdout == ''
    assert HOSTILE[path][1] in ran.stderr and ran.stderr.startswith('sluice: [error] ') and ran.stderr.count('\n') == 1
    assert '\x1b' not in ran.stderr and '\ufffd' not in ran.stderr


def test_control_characters_are_escaped(hostile):
    ran = top(f'http://127.0.0.1:{hostile.port}/page', '--once', '--json')
    assert ran.returncode == 0 and '\x1b' not in ran.stdout and '\r' not in ran.stdout
    assert json.loads(ran.stdout)['upstreams'][0]['upstream'] == '\x1b[2J\r\n'


def test_silent_server_times_out(hostile):
    hostile.scripts['/silent'] = lambda peer: peer.at_end()
    ran = top(f'http://127.0.0.1:{hostile.port}/silent', '--once', '--json')
    assert ran.returncode == 1 and ran.stdout == '' and 'Connection timed out' in ran.stderr


def test_unreachable_server_is_an_error():
    ran = top(f'http://127.0.0.1:{server_kit.free_port()}/', '--once', '--json')
    assert ran.returncode == 1 and 'cannot connect to 127.0.0.1:' in ran.stderr and 'Connection refused' in ran.stderr


@pytest.mark.parametrize('words, fault', [
    (['https://127.0.0.1/', '--once', '--json'], 'must begin with http://'),
    (['http://127.0.0.1:x/', '--once', '--json'], 'the port must be a number'),
    (['http://host.invalid/', '--once', '--json'], 'has no address'),
    (['--json'], 'requires "--once"'),
])
def test_invalid_arguments_are_rejected(words, fault):
    ran = top(*words)
    assert ran.returncode == 1 and ran.stdout == '' and fault in ran.stderr


def test_unwritable_output_is_an_error(hostile):
    with open('/dev/full', 'w', encoding='utf-8') as full:
        ran = subprocess.run([server_kit.SLUICE, 'top', f'http://127.0.0.1:{hostile.port}/page', '--once', '--json'], stdout=full,
                             stderr=subprocess.PIPE, text=True, timeout=60 * PATIENCE, check=False)
    assert ran.returncode == 1 and 'cannot write the output' in ran.stderr


# The live view.

@pytest.fixture
def view():
    """view(URL, OPTION..., columns=..., lines=..., VARIABLE=...) -> a terminal in which `sluice top` runs; skipped in a build without it."""
    made = []

    def opener(*words, **options):
        if '-Dtop=enabled' in top_output_without_view():
            pytest.skip('built with -Dtop=disabled')
        made.append(terminal_kit.Terminal([server_kit.SLUICE, 'top', *words], **options))
        return made[-1]
    yield opener
    for terminal in made:
        terminal.close()


@functools.cache
def top_output_without_view():
    """What `sluice top` prints without a terminal: in a build without the live view, the build option."""
    return top('http://127.0.0.1/', stdin=subprocess.DEVNULL).stderr


def rate(rows, start):
    """The number after a text at the start of a line."""
    text = next(row for row in rows if row.startswith(start))[len(start):].split()[0]
    number, unit = re.fullmatch(r'([\d.]+)([kMG]?)(?:/s)?', text).groups()
    return float(number) * {'': 1, 'k': 1e3, 'M': 1e6, 'G': 1e9}[unit]


def is_busy(rows):
    """True if the screen is complete and shows requests."""
    return re.match(r'Requests +[\d.]+[kMG]?/s ', rows[1]) and rate(rows, 'Requests') > 2 and rows[23].startswith('q quit')


def test_view_under_load(watched, view):
    with Load(watched.port, 'user', [f'/{SIZE}.bin']), Load(watched.plain, 'plain', ['/app/x', '/missing']):
        shown = view(f'http://127.0.0.1:{watched.plain}/status')
        rows = shown.wait_for(is_busy, 'requests per second')
    assert re.fullmatch(rf'sluice \S+  http://127\.0\.0\.1:{watched.plain}/status  up \d\d:\d\d:\d\d  workers 1', rows[0])
    assert [row.split()[0] for row in rows[1:6]] == ['Requests', 'Sent', 'Connections', 'Handshakes', 'Latency']
    assert rate(rows, 'Connections') >= 4 and re.search(r'2xx [1-9]', rows[1]) and re.search(r'4xx (0\.)?[1-9]', rows[1])
    heading = rows.index('SEND PATH                           BYTES/S    SHARE  RESPONSES/S')
    assert any(re.match(r'(user|openssl|ktls-\S+) +[\d.]+ [KMG]iB +[1-9][\d.]*% ', row) for row in rows[heading + 1:])
    heading = next(number for number, row in enumerate(rows) if row.startswith('UPSTREAM'))
    assert re.match(r'app +127\.0\.0\.1:\d+ +up +[1-9]', rows[heading + 1]) and re.match(r'app .* up +0 +0 +0 ', rows[heading + 2])
    heading = next(number for number, row in enumerate(rows) if row.startswith('LOCATION'))
    assert re.match(r'127\.0\.0\.1:\d+ \S.* +[1-9][\d.]*k? +0 +[\d.]+ +[\d.]+ [mu]?s$', rows[heading + 1])
    assert rows[23] == 'q quit  s sort: requests  l locations  z servers  t streams  c caches  h help' and all(len(row) <= 80 for row in rows)
    shown.press('q')
    assert shown.wait_for_exit() == 0 and '\x1b[?1049l' in shown.text, 'the former screen of the terminal returns'


def test_lists_under_load(watched, view):
    """The keys choose server zones, caches and locations; upstream servers stay."""
    def row_after(heading, pattern):
        def look(rows):
            at = [number for number, row in enumerate(rows) if row.startswith(heading)]
            return at and re.match(pattern, rows[at[0] + 1]) and any(row.startswith('UPSTREAM') for row in rows)
        return look
    with Load(watched.plain, 'plain', ['/cached/x', '/missing']):
        shown = view(f'http://127.0.0.1:{watched.plain}/status')
        shown.wait_for(row_after('LOCATION', r'127\.0\.0\.1:\d+ \S'), 'locations')
        shown.press('z')
        rows = shown.wait_for(row_after('SERVER ZONE', r'\S.* +[1-9][\d.]*k? +0 +[\d.]+ +[\d.]+ [mu]?s$'), 'zones of servers')
        assert not any(row.startswith('LOCATION') for row in rows)
        shown.press('c')
        rows = shown.wait_for(row_after('CACHE', r'one +[1-9][\d.]*k? +[1-9][\d.]*k? +(100|[5-9]\d)\.\d% +1 +[\d.]+ [KM]?i?B +-$'), 'the cache')
        assert not any(row.startswith('SERVER ZONE') for row in rows)
        shown.press('t')
        rows = shown.wait_for(row_after('STREAM ZONE', r'stream +0 +0 +0 +-$'), 'zones of stream')
        assert not any(row.startswith('CACHE') for row in rows)
        shown.press('l')
        shown.wait_for(row_after('LOCATION', r'127\.0\.0\.1:\d+ \S'), 'locations again')
    shown.press('q')
    assert shown.wait_for_exit() == 0


def test_keys_change_the_view(hostile, view):
    shown = view(f'http://127.0.0.1:{hostile.port}/page')
    shown.wait_for('SEND PATH', 'the second reading')
    for keys, column in (('s', 'failures'), ('\x1bOC', 'active'), ('\x1bOD', 'failures'), ('sss', 'name'), ('s', 'requests')):
        shown.press(keys)
        shown.wait_for(f's sort: {column}', f'after {keys!r}')
    shown.press('h')
    shown.wait_for('left arrow', 'the help')
    shown.press('s')
    shown.wait_for('SEND PATH', 'any key ends the help')
    assert 's sort: requests' in shown.rows[23]
    shown.press('q')
    assert shown.wait_for_exit() == 0


def test_names_are_escaped(hostile, view):
    shown = view(f'http://127.0.0.1:{hostile.port}/page')
    shown.wait_for(r'\x1b[2J\x0d\x0a', 'the name of an upstream server, escaped')


def test_view_follows_the_terminal_size(hostile, view):
    """The view follows the size of the terminal, down to one cell."""
    shown = view(f'http://127.0.0.1:{hostile.port}/page', columns=120, lines=40)
    shown.wait_for(lambda rows: rows[39].startswith('q quit') and 'SEND PATH' in '\n'.join(rows), '40 lines')
    for columns, lines in ((80, 24), (40, 10), (300, 60), (80, 24)):
        shown.resize(columns, lines)
        rows = shown.wait_for(lambda rows, last=lines - 1: rows[last].startswith('q quit'), f'{columns}x{lines}')
        assert rows[0].startswith('sluice')
    for columns, lines in ((1, 1), (80, 24)):
        shown.resize(columns, lines)
    shown.wait_for(lambda rows: rows[23].startswith('q quit'), 'the usual size again')
    shown.press('q')
    assert shown.wait_for_exit() == 0


def test_colours_follow_the_environment(hostile, view):
    url = f'http://127.0.0.1:{hostile.port}/page'
    shown = view(url)
    shown.wait_for('SEND PATH', 'the tables')
    assert 36 in shown.style_of('SEND PATH') and 7 in shown.style_of('sluice')
    for environment in ({'NO_COLOR': '1'}, {'TERM': 'vt100'}):
        plain = view(url, **environment)
        plain.wait_for('SEND PATH', f'the tables, {environment}')
        assert 1 in plain.style_of('SEND PATH') and 7 in plain.style_of('sluice')
        assert not any(30 <= number <= 49 for row in plain.cells for _, style in row for number in style)
        plain.press('q')
        assert plain.wait_for_exit() == 0


def test_view_continues_after_a_server_restart(watched, view):
    shown = view(f'http://127.0.0.1:{watched.plain}/status')
    shown.wait_for('SEND PATH', 'the tables')
    watched.stop()
    rows = shown.wait_for('Connection refused', 'the fault')
    assert 'SEND PATH' in '\n'.join(rows), 'the last values stay'
    wait_for_another_start_time(watched)
    watched.start([watched.plain])
    shown.wait_for('The server has restarted.', 'the restart')
    shown.wait_for('q quit', 'no fault')
    shown.press('q')
    assert shown.wait_for_exit() == 0


def test_silent_server_does_not_block_the_keys(hostile, view):
    hostile.scripts['/silent'] = lambda peer: peer.at_end()
    shown = view(f'http://127.0.0.1:{hostile.port}/silent')
    wait_for(lambda: any(request.target == '/silent' for request in hostile.requests), 'the request')
    shown.press('h')
    shown.wait_for('left arrow', 'the help', seconds=4)
    shown.press('q')
    assert shown.wait_for_exit() == 0


def test_closed_terminal_ends_the_view(hostile, view):
    shown = view(f'http://127.0.0.1:{hostile.port}/page')
    shown.wait_for('SEND PATH', 'the tables')
    os.close(shown.master)
    shown.master = None
    shown.process.wait(20 * PATIENCE)


def test_unknown_terminal_is_an_error(hostile, view):
    url = f'http://127.0.0.1:{hostile.port}/page'
    shown = view(url, TERM='nosuch')
    assert shown.wait_for_exit() == 1 and 'is not known' in shown.text and '--once' in shown.text
    ran = top(url, stdin=subprocess.DEVNULL)
    assert ran.returncode == 1 and 'needs a terminal' in ran.stderr


def test_once_as_text(watched, hostile):
    ran = top(f'http://127.0.0.1:{watched.plain}/status', '--once')
    assert ran.returncode == 0 and ran.stderr == ''
    lines = ran.stdout.splitlines()
    assert lines[0].startswith('sluice ') and lines[1].startswith('Requests') and 'q quit' not in ran.stdout
    assert all(any(line.startswith(heading) for line in lines) for heading in ('LOCATION', 'SERVER ZONE', 'STREAM ZONE', 'CACHE', 'UPSTREAM')) and all(len(line) <= 80 for line in lines)
    ran = top(f'http://127.0.0.1:{hostile.port}/page', '--once')
    assert ran.returncode == 0 and r'\x1b[2J' in ran.stdout and '\x1b' not in ran.stdout
