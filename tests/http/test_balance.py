"""Choosing among servers, with real ones behind: what workers know together, who is left alone, who comes back, and cookies."""
import collections
import concurrent.futures
import json
import os
import signal
import socket
import threading
import time

import pytest
from kit import http1, server as server_kit
from kit.upstream import Upstream

LOOPS = os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split()


class World:
    def __init__(self, folder, loop):
        self.folder, self.loop = folder, loop
        self.port = server_kit.free_port()
        self.upstreams, self.server = {}, None

    def upstream(self, name, scripts=None, **more):
        self.upstreams[name] = Upstream(scripts, name=name, **more)
        return self.upstreams[name]

    def start(self, servers, workers=1, location=None, **group):
        self.server = server_kit.Server(
            self.folder, [{'listen': f'127.0.0.1:{self.port}',
                           'location': {'/': {'proxy_pass': 'http://backend', 'proxy_connect_timeout': '2s', **(location or {})},
                                        '/status': {'status': 'on'}}}],
            loop=self.loop, main={'worker_processes': workers}, http={'upstream': {'backend': {'server': servers, **group}}})
        self.server.start([self.port])
        self.until(' runs, ')       # every worker: who dies before that ends the start
        return self

    def get(self, path='/', patience=30, **headers):
        with socket.create_connection(('127.0.0.1', self.port), timeout=patience) as stream:
            return http1.Client(stream).get(path, **headers)

    def who(self, path='/', **headers):
        response = self.get(path, **headers)
        return response.body.decode().split()[0] if response.status == 200 else response.status

    def until(self, said):
        deadline = time.monotonic() + 20 * server_kit.PATIENCE
        while said not in self.server.errors():
            assert time.monotonic() < deadline, self.server.errors()
            time.sleep(0.05)

    def stop(self):
        if self.server:
            self.server.stop()
        for one in self.upstreams.values():
            one.stop()
            assert not one.faults


@pytest.fixture(params=LOOPS)
def world(request, tmp_path):
    made = World(tmp_path, request.param)
    yield made
    made.stop()


def address(upstream, **more):
    return {'address': f'127.0.0.1:{upstream.port}', **more}


def test_a_failure_is_known_to_all_workers(world):
    one, two = world.upstream('one'), world.upstream('two')
    world.start([address(one, fail_timeout='60s'), address(two)], workers=4)
    one.stop()
    assert [world.who() for _ in range(40)] == ['two'] * 40
    assert world.server.errors().count('connect() failed') == 1
    assert world.server.errors().count('is left alone for 60000 ms') == 1


def test_pauses_grow_and_end(world):
    one, two = world.upstream('one'), world.upstream('two')
    world.start([address(one, fail_timeout='200ms'), address(two)])
    one.stop()
    deadline = time.monotonic() + 20 * server_kit.PATIENCE
    while 'left alone for 800 ms' not in world.server.errors():
        assert world.who() == 'two'
        assert time.monotonic() < deadline, world.server.errors()
        time.sleep(0.01)
    said = world.server.errors()
    assert [said.count(f'left alone for {ms} ms') for ms in (200, 400, 800)] == [1, 1, 1]
    one.start()
    while world.who() != 'one':
        assert time.monotonic() < deadline
        time.sleep(0.01)
    world.until('is back')


def test_the_most_requests_of_all_workers(world):
    def slow(talk):
        time.sleep(0.5)
        talk.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\none\n')
        return True
    one = world.upstream('one', {'/slow': slow})
    world.start([address(one, max_conns=2)], workers=4)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        seen = list(pool.map(lambda _: world.who('/slow'), range(12)))
    assert seen.count('one') >= 2 and set(seen) == {'one', 502}
    assert len(one.requests) == seen.count('one')
    assert world.who() == 'one'


def test_a_dead_worker_gives_back_what_it_had(world):
    def never(talk):
        talk.at_end()
    one = world.upstream('one', {'/never': never})
    world.start([address(one, max_conns=1)])
    held = socket.create_connection(('127.0.0.1', world.port))
    held.sendall(b'GET /never HTTP/1.1\r\nHost: a\r\n\r\n')
    deadline = time.monotonic() + 20 * server_kit.PATIENCE
    while not one.requests:     # nobody else asks before that: who comes first has the one connection
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert world.who() == 502
    os.kill(world.server.workers()[0], signal.SIGKILL)
    while True:
        try:    # who was queued at the dead one is not let down for this test's sake
            if world.get(patience=2).status == 200:
                break
        except (OSError, EOFError):
            pass
        assert time.monotonic() < deadline
        time.sleep(0.05)
    held.close()


def test_backups_and_those_that_are_down(world):
    one, two, three = (world.upstream(name) for name in ('one', 'two', 'three'))
    world.start([address(one), address(two, backup=True), address(three, down=True)])
    assert {world.who() for _ in range(6)} == {'one'}
    one.stop()
    assert {world.who() for _ in range(6)} == {'two'}
    assert not three.connections


def test_the_fastest_is_asked(world):
    def slow(talk):
        time.sleep(0.2)
        talk.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nslow\n')
        return True
    fast, slow_one = world.upstream('fast'), world.upstream('slow', {'/': slow})
    world.start([address(slow_one), address(fast)], least_time='header')
    seen = [world.who() for _ in range(12)]
    assert seen.count('slow') == 1 and seen.count('fast') == 11


@pytest.mark.parametrize('sticky, attributes', [
    ('cookie srv_id', ''),
    ('cookie srv_id expires=1h domain=.example.com path=/ httponly secure samesite=lax',
     '; Max-Age=3600; Domain=.example.com; Path=/; HttpOnly; Secure; SameSite=Lax'),
    ({'cookie': 'srv_id', 'path': '/app'}, '; Path=/app')])
def test_a_client_stays_with_its_server(world, sticky, attributes):
    one, two, three = (world.upstream(name) for name in ('one', 'two', 'three'))
    world.start([address(one), address(two), address(three)], sticky=sticky)
    first = world.get()
    name = first.body.decode().split()[0]
    cookie, rest = first.headers['set-cookie'].split(';', 1) if attributes else (first.headers['set-cookie'], '')
    assert cookie.startswith('srv_id=') and (f';{rest}' if rest else '') == attributes
    for _ in range(6):
        again = world.get(Cookie=f'a=b; {cookie}')
        assert again.body.decode().split()[0] == name and 'set-cookie' not in again.headers
    assert len({world.who() for _ in range(6)}) == 3, 'who has no cookie takes turns'
    world.upstreams[name].stop()
    moved = world.get(Cookie=cookie)
    assert moved.status == 200 and moved.body.decode().split()[0] != name
    assert moved.headers['set-cookie'].split(';')[0] != cookie
    assert world.get(Cookie='srv_id=0123456789abcdef').headers['set-cookie'].startswith('srv_id=')


def test_an_empty_hash_key_takes_turns(world):
    names = ('first', 'second', 'third')
    world.start([address(world.upstream(name)) for name in names], hash='$cookie_x')
    assert sorted(world.who() for _ in range(6)) == sorted(2 * names)
    assert len({world.who(Cookie='x=1') for _ in range(6)}) == 1


def test_an_address_without_a_port(tmp_path):
    """http and https lend [::1] ports of their own: neither is asked on the other's."""
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{port}', 'location': {
        '/plain': {'proxy_pass': 'http://[::1]'}, '/sealed': {'proxy_pass': 'https://[::1]'}}}])
    server.start([port])
    for path in ('/plain', '/sealed'):
        with socket.create_connection(('127.0.0.1', port), timeout=30) as stream:
            http1.Client(stream).get(path)
    said = server.errors()
    server.stop()
    if 'connect() failed' not in said:
        pytest.skip('somebody listens on [::1]')
    assert 'upstream: "http://[::1]:80/plain"' in said and 'upstream: "https://[::1]:443/sealed"' in said


def sick(talk):
    talk.send('HTTP/1.1 503 Sick\r\nContent-Length: 0\r\n\r\n')
    return True


def well(talk):
    talk.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    return True


def test_checks_by_request(world):
    """A server that says it is not well gets no request, by whichever worker; once it is well again, it does."""
    one, two = world.upstream('one', {'/healthz': well}), world.upstream('two', {'/healthz': well})
    world.start([address(one), address(two)], workers=3,
                health_check={'uri': '/healthz', 'interval': '50ms', 'fails': 2, 'passes': 2, 'host': 'app.test'})
    assert {world.who() for _ in range(8)} == {'one', 'two'}
    one.scripts['/healthz'] = sick
    world.until('is unhealthy: its check was answered with another status')
    assert {world.who() for _ in range(12)} == {'two'}
    one.scripts['/healthz'] = well
    world.until('is healthy: its check was answered as it should be')
    assert {world.who() for _ in range(8)} == {'one', 'two'}
    check = next(request for request in one.requests if request.target == '/healthz')
    assert check.head == ['GET /healthz HTTP/1.1', 'Host: app.test', 'User-Agent: sluice-health-check', 'Connection: close']
    said = world.server.errors()
    assert said.count('is unhealthy') == said.count('is healthy') == 1


def test_one_worker_checks_for_all(world):
    """A check that waits for its answer is the only one, however many workers there are and however often one is due."""
    go_on = threading.Event()

    def waits(talk):
        go_on.wait(30)
        return well(talk)
    one = world.upstream('one', {'/check': waits})
    world.start([address(one)], workers=4, health_check={'uri': '/check', 'interval': '20ms', 'timeout': '60s'})
    assert world.who() == 'one'
    time.sleep(1)
    assert [request.target for request in one.requests].count('/check') == 1
    go_on.set()


def test_another_worker_takes_the_checks_over(world):
    one, two = world.upstream('one'), world.upstream('two')
    world.start([address(one), address(two)], workers=2, health_check='interval=100ms')
    for pid in world.server.workers():
        before = one.connections
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 20 * server_kit.PATIENCE
        while one.connections < before + 5:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    one.stop()
    world.until('is unhealthy')
    assert {world.who() for _ in range(6)} == {'two'}


def test_checks_by_connection(world):
    one, two = world.upstream('one'), world.upstream('two')
    world.start([address(one), address(two, max_fails=0)], health_check={'interval': '50ms', 'timeout': '1s'})
    two.stop()
    world.until('is unhealthy: its check could not connect')
    assert {world.who() for _ in range(6)} == {'one'}
    assert 'connect() failed' not in world.server.errors(), 'no request was needed to find out'
    one.stop()
    deadline = time.monotonic() + 20 * server_kit.PATIENCE
    while world.server.errors().count('is unhealthy') < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert world.who() == 502 and 'no live upstreams' in world.server.errors()
    one.start()
    world.until('is healthy: its check connected')
    assert world.who() == 'one'


@pytest.mark.parametrize('answer, good', [
    ('HTTP/1.1 204 OK\r\n\r\n', True), ('HTTP/1.0 299 OK\r\n\r\n', True), ('HTTP/1.1 304 Same\r\n\r\n', True),
    ('HTTP/1.1 300 Many\r\n\r\n', False), ('HTTP/1.1 20', False), ('220 mail.example.com', False), ('HTTP/1.1 2x0 OK\r\n\r\n', False),
    ('', False)])
def test_what_a_good_answer_is(world, answer, good):
    def says(talk):
        for byte in answer:
            talk.send(byte)
    one, two = world.upstream('one', {'/check': says}), world.upstream('two', {'/check': well})
    world.start([address(one), address(two)],
                health_check={'uri': '/check', 'interval': '50ms', 'match': ['200-299', '304']})
    deadline = time.monotonic() + 20 * server_kit.PATIENCE
    while sum(request.target == '/check' for request in one.requests) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert ('is unhealthy' in world.server.errors()) == (not good)
    assert {world.who() for _ in range(6)} == ({'one', 'two'} if good else {'two'})


def test_what_the_status_page_tells(world):
    one, two, three = (world.upstream(name, {'/healthz': well}) for name in ('one', 'two', 'three'))
    world.start([address(one, fail_timeout='60s'), address(two), address(three)], workers=3,
                health_check={'uri': '/healthz', 'interval': '50ms', 'fails': 1, 'timeout': '1s', 'match': '200'})
    two.scripts['/healthz'] = sick
    world.until('is unhealthy')
    seen = [world.who() for _ in range(20)]
    assert 'two' not in seen
    page = world.get('/status?format=json').body
    known = {row['server']: row for row in json.loads(page)['upstreams']}
    assert {row['upstream'] for row in known.values()} == {'backend'} and len(known) == 3
    for name, server in world.upstreams.items():
        row = known[f'127.0.0.1:{server.port}']
        assert row['state'] == ('unhealthy' if name == 'two' else 'up')
        assert row['requests_total'] == seen.count(name) and row['failures_total'] == 0
        assert (row['header_seconds'] > 0) == (name != 'two')
    text = world.get('/status?format=prometheus').body.decode().splitlines()
    labels = f'upstream="backend",server="127.0.0.1:{two.port}"'
    assert f'sluice_upstream_state{{{labels},state="unhealthy"}} 1' in text
    assert f'sluice_upstream_requests_total{{{labels}}} 0' in text
    assert 'sluice_upstream_tls_handshakes_total{result="full"} 0' in text


@pytest.mark.parametrize('workers', [1, 3])
def test_servers_that_come_and_go_under_load(world, workers):
    """Every request that may be asked again is answered, whoever was killed meanwhile, and the counts are those of the clients."""
    names = ('one', 'two', 'three')
    for name in names:
        world.upstream(name)
    world.start([address(world.upstreams[name], fail_timeout='100ms') for name in names], workers=workers, keepalive=8)
    over = threading.Event()
    seen = collections.Counter()
    lock = threading.Lock()

    def client(number):
        asked, talk = 0, None
        while not over.is_set() or asked < 50:
            talk = talk or http1.Client(socket.create_connection(('127.0.0.1', world.port), timeout=30))
            response = talk.get(f'/{number}/{asked}')
            asked += 1
            with lock:
                seen[response.status] += 1
            if response.closes:
                talk = talk.close()
        return asked

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        clients = [pool.submit(client, number) for number in range(6)]
        for turn in range(9):
            server = world.upstreams[names[turn % 3]]
            server.stop()
            time.sleep(0.1)
            server.start()
            time.sleep(0.2)
        over.set()
        asked = sum(one.result(60) for one in clients)
    assert dict(seen) == {200: asked}, world.server.errors()[-3000:]
    rows = {row['server']: row for row in json.loads(world.get('/status?format=json').body)['upstreams']}
    assert sum(row['active'] for row in rows.values()) == 0
    assert sum(row['requests_total'] for row in rows.values()) - sum(row['failures_total'] for row in rows.values()) >= asked
    heard = sum(len(server.requests) for server in world.upstreams.values())
    assert heard >= asked, 'each was heard at least once'
