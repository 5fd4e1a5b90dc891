"""Load balancing among upstream servers: state shared by the workers, failed servers, health checks, and sticky cookies."""
import collections
import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import threading
import time

import pytest
from kit import broken_records, http1, server as server_kit
from kit.lifetime import alive, wait_for
from kit.upstream import Upstream


class Environment:
    def __init__(self, folder, loop):
        self.folder, self.loop = folder, loop
        self.port = server_kit.free_port()
        self.upstreams, self.server = {}, None

    def upstream(self, name, scripts=None, **more):
        self.upstreams[name] = Upstream(scripts, name=name, **more)
        return self.upstreams[name]

    def start(self, servers, workers=1, location=None, name='backend', **group):
        self.server = server_kit.Server(
            self.folder, [{'listen': f'127.0.0.1:{self.port}',
                           'location': {'/': {'proxy_pass': 'http://backend', 'proxy_connect_timeout': '2s', **(location or {})},
                                        '/status': {'status': 'on'}}}],
            loop=self.loop, main={'worker_processes': workers}, http={'upstream': {name: {'server': servers, **group}}})
        self.server.start([self.port])
        self.until(' runs, ')       # all workers run: a worker that dies before this line ends the server
        return self

    def get(self, path='/', patience=30, **headers):
        with socket.create_connection(('127.0.0.1', self.port), timeout=patience) as stream:
            return http1.Client(stream).get(path, **headers)

    def responding_server(self, path='/', **headers):
        response = self.get(path, **headers)
        return response.body.decode().split()[0] if response.status == 200 else response.status

    def until(self, output):
        wait_for(lambda: output in self.server.errors(), f'"{output}" in the error log', 20)

    def stop(self):
        if self.server:
            self.server.stop()
        for one in self.upstreams.values():
            one.stop()
            assert not one.faults


@pytest.fixture(params=server_kit.LOOPS)
def environment(request, tmp_path):
    made = Environment(tmp_path, request.param)
    yield made
    made.stop()


def address(upstream, **more):
    return {'address': f'127.0.0.1:{upstream.port}', **more}


def test_failure_counts_in_all_workers(environment):
    one, two = environment.upstream('one'), environment.upstream('two')
    environment.start([address(one, fail_timeout='60s'), address(two)], workers=4)
    one.stop()
    assert [environment.responding_server() for _ in range(40)] == ['two'] * 40
    assert environment.server.errors().count('connect() failed') == 1
    assert environment.server.errors().count('is not used for 60000 ms') == 1


def test_pause_doubles_and_ends_after_success(environment):
    one, two = environment.upstream('one'), environment.upstream('two')
    environment.start([address(one, fail_timeout='200ms'), address(two)])
    one.stop()

    def third_failure():
        assert environment.responding_server() == 'two'
        return 'not used for 800 ms' in environment.server.errors()
    wait_for(third_failure, 'the third failure', 20)
    output = environment.server.errors()
    assert [output.count(f'not used for {ms} ms') for ms in (200, 400, 800)] == [1, 1, 1]
    one.start()
    wait_for(lambda: environment.responding_server() == 'one', 'a response of the server', 20)
    environment.until('is available again')


def test_max_conns_counts_all_workers(environment):
    go_on = threading.Event()

    def waits(peer):
        go_on.wait(30 * server_kit.PATIENCE)
        peer.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\none\n')
        return True
    one = environment.upstream('one', {'/waits': waits})
    environment.start([address(one, max_conns=2)], workers=4)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        requests = [pool.submit(environment.responding_server, '/waits') for _ in range(12)]
        wait_for(lambda: sum(request.done() for request in requests) == 10, 'ten error responses')
        go_on.set()
        seen = [request.result() for request in requests]
    assert collections.Counter(seen) == {'one': 2, 502: 10} and len(one.requests) == 2
    assert environment.responding_server() == 'one'


def test_counts_of_a_dead_worker_are_released(environment):
    def never(peer):
        peer.at_end()
    one = environment.upstream('one', {'/never': never})
    environment.start([address(one, max_conns=1)])
    pending = socket.create_connection(('127.0.0.1', environment.port))
    pending.sendall(b'GET /never HTTP/1.1\r\nHost: a\r\n\r\n')
    wait_for(lambda: one.requests, 'the request, which gets the only connection')
    assert environment.responding_server() == 502
    os.kill(environment.server.workers()[0], signal.SIGKILL)

    def responds():
        with contextlib.suppress(OSError, EOFError):    # connections in the queue of the dead worker are lost
            return environment.get(patience=2).status == 200
        return False
    wait_for(responds, 'a response', 20)
    pending.close()


def test_backup_and_down_servers(environment):
    one, two, three = (environment.upstream(name) for name in ('one', 'two', 'three'))
    environment.start([address(one), address(two, backup=True), address(three, down=True)])
    assert {environment.responding_server() for _ in range(6)} == {'one'}
    one.stop()
    assert {environment.responding_server() for _ in range(6)} == {'two'}
    assert not three.connections


def test_least_time_selects_the_fastest_server(environment):
    def slow(peer):
        time.sleep(0.2)
        peer.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nslow\n')
        return True
    fast, slow_one = environment.upstream('fast'), environment.upstream('slow', {'/': slow})
    environment.start([address(slow_one), address(fast)], least_time='header')
    seen = [environment.responding_server() for _ in range(12)]
    assert seen.count('slow') == 1 and seen.count('fast') == 11


@pytest.mark.parametrize('sticky, attributes', [
    ('cookie srv_id', ''),
    ('cookie srv_id expires=1h domain=.example.com path=/ httponly secure samesite=lax',
     '; Max-Age=3600; Domain=.example.com; Path=/; HttpOnly; Secure; SameSite=Lax'),
    ({'cookie': 'srv_id', 'path': '/app'}, '; Path=/app')])
def test_sticky_cookie_selects_the_server(environment, sticky, attributes):
    one, two, three = (environment.upstream(name) for name in ('one', 'two', 'three'))
    environment.start([address(one), address(two), address(three)], sticky=sticky)
    first = environment.get()
    name = first.body.decode().split()[0]
    cookie, rest = first.headers['set-cookie'].split(';', 1) if attributes else (first.headers['set-cookie'], '')
    assert cookie.startswith('srv_id=') and (f';{rest}' if rest else '') == attributes
    for _ in range(6):
        again = environment.get(Cookie=f'a=b; {cookie}')
        assert again.body.decode().split()[0] == name and 'set-cookie' not in again.headers
    assert len({environment.responding_server() for _ in range(6)}) == 3, 'requests without the cookie take turns'
    environment.upstreams[name].stop()
    moved = environment.get(Cookie=cookie)
    assert moved.status == 200 and moved.body.decode().split()[0] != name
    assert moved.headers['set-cookie'].split(';')[0] != cookie
    assert environment.get(Cookie='srv_id=0123456789abcdef').headers['set-cookie'].startswith('srv_id=')


def test_empty_hash_key_uses_round_robin(environment):
    names = ('first', 'second', 'third')
    environment.start([address(environment.upstream(name)) for name in names], hash='$cookie_x')
    assert sorted(environment.responding_server() for _ in range(6)) == sorted(2 * names)
    assert len({environment.responding_server(Cookie='x=1') for _ in range(6)}) == 1


def test_default_port_follows_the_scheme(tmp_path):
    """An address without a port gets the default port of its scheme: 80 for http, 443 for https."""
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{port}', 'location': {
        '/plain': {'proxy_pass': 'http://[::1]'}, '/sealed': {'proxy_pass': 'https://[::1]'}}}])
    server.start([port])
    for path in ('/plain', '/sealed'):
        with socket.create_connection(('127.0.0.1', port), timeout=30) as stream:
            http1.Client(stream).get(path)
    output = server.errors()
    server.stop()
    if 'connect() failed' not in output:
        pytest.skip('another process listens on [::1]')
    assert 'upstream: "http://[::1]:80/plain"' in output and 'upstream: "https://[::1]:443/sealed"' in output


def unhealthy(peer):
    peer.send('HTTP/1.1 503 Sick\r\nContent-Length: 0\r\n\r\n')
    return True


def healthy(peer):
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    return True


def test_health_check_by_request(environment):
    """A server that fails its health check gets no request from any worker, until it passes again."""
    one, two = environment.upstream('one', {'/healthz': healthy}), environment.upstream('two', {'/healthz': healthy})
    environment.start([address(one), address(two)], workers=3,
                health_check={'uri': '/healthz', 'interval': '50ms', 'fails': 2, 'passes': 2, 'host': 'app.test'})
    assert {environment.responding_server() for _ in range(8)} == {'one', 'two'}
    one.scripts['/healthz'] = unhealthy
    environment.until('is unhealthy: its check got an unexpected status')
    assert {environment.responding_server() for _ in range(12)} == {'two'}
    one.scripts['/healthz'] = healthy
    environment.until('is healthy: its check succeeded')
    assert {environment.responding_server() for _ in range(8)} == {'one', 'two'}
    check = next(request for request in one.requests if request.target == '/healthz')
    assert check.head == ['GET /healthz HTTP/1.1', 'Host: app.test', 'User-Agent: sluice-health-check', 'Connection: close']
    output = environment.server.errors()
    assert output.count('is unhealthy') == output.count('is healthy') == 1


def test_health_check_of_a_server_with_broken_tls(environment):
    """The check fails at once, although the server does not close the connection."""
    server = broken_records.NoHandshake()
    environment.start([address(server)], health_check={'uri': '/', 'https': 'on', 'interval': '50ms', 'fails': 1, 'timeout': broken_records.PATIENT})
    environment.until('is unhealthy: its check failed: TLS error')
    environment.server.stop()
    server.stop()


def test_one_worker_runs_the_health_checks(environment):
    """While a check waits for its response, no worker starts another one, even if the interval is over."""
    go_on = threading.Event()

    def waits(peer):
        go_on.wait(30)
        return healthy(peer)
    one = environment.upstream('one', {'/check': waits})
    environment.start([address(one)], workers=4, health_check={'uri': '/check', 'interval': '20ms', 'timeout': '60s'})
    assert environment.responding_server() == 'one'
    time.sleep(1)
    assert [request.target for request in one.requests].count('/check') == 1
    go_on.set()


def test_health_checks_continue_after_worker_death(environment):
    one, two = environment.upstream('one'), environment.upstream('two')
    environment.start([address(one), address(two)], workers=2, health_check='interval=100ms')
    for pid in environment.server.workers():
        before = one.connections
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda before=before: one.connections >= before + 5, 'five checks', 20)
    one.stop()
    environment.until('is unhealthy')
    assert {environment.responding_server() for _ in range(6)} == {'two'}


def test_health_checks_of_a_new_configuration_begin_with_it(environment):
    """The workers of the configuration before lead the checks until they are retired; the new ones do not wait for their next interval."""
    one = environment.upstream('one', {'/check': healthy})

    def check(number, interval):
        return {'uri': '/check', 'interval': interval, 'host': f'number-{number}'}

    def hosts():
        return [request.header('host') for request in list(one.requests) if request.target == '/check']
    environment.start([address(one)], workers=2, health_check=check(0, '1h'))
    wait_for(lambda: 'number-0' in hosts(), 'the first check')
    for number, interval in enumerate(['1h', '50ms', '1h', '50ms'], 1):
        old = environment.server.workers()
        environment.server.tree['http']['upstream']['backend']['health_check'] = check(number, interval)
        environment.server.write_configuration()
        environment.server.process.send_signal(signal.SIGHUP)
        wait_for(lambda number=number: f'number-{number}' in hosts(), f'a check after reload {number}')
        wait_for(lambda old=old: not any(alive(pid) for pid in old), 'the end of the workers before')
    before = len(hosts())
    wait_for(lambda: len(hosts()) >= before + 5, 'further checks')
    assert set(hosts()[before:]) == {'number-4'}


def test_health_check_by_connection(environment):
    one, two = environment.upstream('one'), environment.upstream('two')
    environment.start([address(one), address(two, max_fails=0)], health_check={'interval': '50ms', 'timeout': '1s'})
    two.stop()
    environment.until('is unhealthy: its check could not connect')
    assert {environment.responding_server() for _ in range(6)} == {'one'}
    assert 'connect() failed' not in environment.server.errors(), 'no request was needed to find out'
    one.stop()
    wait_for(lambda: environment.server.errors().count('is unhealthy') >= 2, 'the failed check of the other server', 20)
    assert environment.responding_server() == 502 and 'no live upstreams' in environment.server.errors()
    one.start()
    environment.until('is healthy: its check connected')
    assert environment.responding_server() == 'one'


@pytest.mark.parametrize('response, good', [
    ('HTTP/1.1 204 OK\r\n\r\n', True), ('HTTP/1.0 299 OK\r\n\r\n', True), ('HTTP/1.1 304 Same\r\n\r\n', True),
    ('HTTP/1.1 300 Many\r\n\r\n', False), ('HTTP/1.1 20', False), ('220 mail.example.com', False), ('HTTP/1.1 2x0 OK\r\n\r\n', False),
    ('', False)])
def test_health_check_match(environment, response, good):
    def responds_with(peer):
        for byte in response:
            peer.send(byte)
    one, two = environment.upstream('one', {'/check': responds_with}), environment.upstream('two', {'/check': healthy})
    environment.start([address(one), address(two)],
                health_check={'uri': '/check', 'interval': '50ms', 'match': ['200-299', '304']})
    wait_for(lambda: sum(request.target == '/check' for request in list(one.requests)) >= 4, 'four checks', 20)
    assert ('is unhealthy' in environment.server.errors()) == (not good)
    assert {environment.responding_server() for _ in range(6)} == ({'one', 'two'} if good else {'two'})


def test_status_page_is_valid_for_any_name(environment):
    """A name that is not cut off between the bytes of a character, and one that is: the zone stores 63 bytes."""
    for name in ('a"\\\t\x1bä', 'ä' * 40):
        environment.start([address(environment.upstream(name))], name=name)
        rows = json.loads(environment.get('/status?format=json').body)['upstreams']
        shown = name if len(name) < 20 else 'ä' * 31 + '\ufffd'
        assert [row['upstream'] for row in rows] == [shown]
        label = shown.replace('\\', '\\\\').replace('"', '\\"')
        assert f'sluice_upstream_requests_total{{upstream="{label}",' in environment.get('/status?format=prometheus').body.decode()
        environment.server.stop()


def test_status_page_shows_peer_states(environment):
    one, two, three = (environment.upstream(name, {'/healthz': healthy}) for name in ('one', 'two', 'three'))
    environment.start([address(one, fail_timeout='60s'), address(two), address(three)], workers=3,
                health_check={'uri': '/healthz', 'interval': '50ms', 'fails': 1, 'timeout': '1s', 'match': '200'})
    two.scripts['/healthz'] = unhealthy
    environment.until('is unhealthy')
    seen = [environment.responding_server() for _ in range(20)]
    assert 'two' not in seen
    page = environment.get('/status?format=json').body
    known = {row['server']: row for row in json.loads(page)['upstreams']}
    assert {row['upstream'] for row in known.values()} == {'backend'} and len(known) == 3
    for name, server in environment.upstreams.items():
        row = known[f'127.0.0.1:{server.port}']
        assert row['state'] == ('unhealthy' if name == 'two' else 'up')
        assert row['requests_total'] == seen.count(name) and row['failures_total'] == 0
        assert (row['header_seconds'] > 0) == (name != 'two')
        assert row['response_duration_seconds']['count'] == row['response_duration_seconds']['buckets']['+Inf'] == seen.count(name)
        assert (row['response_duration_seconds']['sum'] > 0) == (name != 'two')
    text = environment.get('/status?format=prometheus').body.decode().splitlines()
    labels = f'upstream="backend",server="127.0.0.1:{one.port}"'
    assert f'sluice_upstream_response_duration_seconds_bucket{{{labels},le="+Inf"}} {seen.count("one")}' in text
    assert f'sluice_upstream_response_duration_seconds_count{{{labels}}} {seen.count("one")}' in text
    labels = f'upstream="backend",server="127.0.0.1:{two.port}"'
    assert f'sluice_upstream_state{{{labels},state="unhealthy"}} 1' in text
    assert f'sluice_upstream_requests_total{{{labels}}} 0' in text
    assert 'sluice_upstream_tls_handshakes_total{result="full"} 0' in text


@pytest.mark.parametrize('workers', [1, 3])
def test_killed_upstream_servers_cause_no_errors(environment, workers):
    """Every request that may be retried succeeds while servers die and restart; the counters equal the counts of the clients."""
    names = ('one', 'two', 'three')
    for name in names:
        environment.upstream(name)
    environment.start([address(environment.upstreams[name], fail_timeout='100ms') for name in names], workers=workers, keepalive=8)
    over = threading.Event()
    seen = collections.Counter()
    lock = threading.Lock()

    def client(number):
        requested, peer = 0, None
        while not over.is_set() or requested < 50:
            peer = peer or http1.Client(socket.create_connection(('127.0.0.1', environment.port), timeout=30))
            response = peer.get(f'/{number}/{requested}')
            requested += 1
            with lock:
                seen[response.status] += 1
            if response.closes:
                peer = peer.close()
        return requested

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        clients = [pool.submit(client, number) for number in range(6)]
        try:
            for turn in range(9):
                server = environment.upstreams[names[turn % 3]]
                server.stop()
                answered = sum(seen.values())
                wait_for(lambda answered=answered: sum(seen.values()) > answered + 30, 'responses of the other servers')
                server.start()
                before = len(server.requests)
                wait_for(lambda server=server, before=before: len(server.requests) > before, 'the server gets requests again')
        finally:
            over.set()
        requested = sum(one.result(60) for one in clients)
    assert dict(seen) == {200: requested}, environment.server.errors()[-3000:]
    rows = {row['server']: row for row in json.loads(environment.get('/status?format=json').body)['upstreams']}
    assert sum(row['active'] for row in rows.values()) == 0
    assert sum(row['requests_total'] for row in rows.values()) - sum(row['failures_total'] for row in rows.values()) >= requested
    received = sum(len(server.requests) for server in environment.upstreams.values())
    assert received >= requested, 'each request has reached a server'
