"""`sluice ctl upstreams add|remove`, under load: the servers that clients see, and how long a change lasts."""
import contextlib
import os
import re
import signal
import socket
import threading

import pytest
from kit import server as server_kit
from kit.dns import A, SERVFAIL, Dns
from kit.lifetime import wait_for
from kit.load import load
from kit.upstream import Upstream, plain
from test_control_upstreams import Balanced, shares


class Zoned(Balanced):
    """A server whose upstream has a zone. The upstream servers `one` and `two` are configured, `three` and `four` are not."""

    def __init__(self, *words):
        super().__init__(*words)
        self.upstreams = {name: Upstream(name=name) for name in ('one', 'two', 'three', 'four')}

    def run_with(self, workers=2, zone='app 64k ports=any', **group):
        app = {'server': [self.address('one'), self.address('two')], 'zone': zone, **group}
        fixed = {'server': self.address('one')}
        return self.start(workers=workers, http={'upstream': {'app': app, 'fixed': fixed}},
                          location={'/': {'proxy_pass': 'http://app', 'add_header': {'X-Worker': '$pid'}},
                                    '/fixed/': {'proxy_pass': 'http://fixed'}})

    def rows(self):
        return {row['server']: row for row in self.ctl('upstreams') if row['upstream'] == 'app'}

    def names(self):
        """The upstream servers in the list."""
        return {name for name in self.upstreams if self.address(name) in self.rows()}


@pytest.fixture(params=server_kit.LOOPS)
def zoned(request, tmp_path, certificate, site):
    made = Zoned(tmp_path, request.param, certificate, site)
    yield made
    made.stop()


def seen_by(bodies):
    return {body.split()[0] for body in bodies}


def test_add_and_remove(zoned):
    """Every worker uses an added server at once, and a removed one no more. No request fails."""
    zoned.run_with(workers=3)
    pids = {str(pid) for pid in zoned.server.workers()}
    pairs = set()

    def every_worker_uses(name):
        response = zoned.get('/')
        pairs.add((response.headers['x-worker'], response.body.decode().split()[0]))
        return {pid for pid, seen in pairs if seen == name} == pids
    with load(zoned.port) as clients:
        assert seen_by(clients.more()) == {'one', 'two'}
        row = zoned.change('add', 'three', 'weight=4')
        assert (row['state'], row['weight']) == ('up', 4)
        wait_for(lambda: every_worker_uses('three'), 'requests of each worker')
        assert zoned.change('remove', 'three')['state'] == 'removed'
        assert seen_by(clients.more(80)) == {'one', 'two'}
        zoned.change('add', 'four', 'backup')
        zoned.change('remove', 'one')
        assert seen_by(clients.more(80)) == {'two'}
        zoned.change('add', 'one')
        assert seen_by(clients.more(80)) == {'one', 'two'}
        wait_for(lambda: zoned.names() == {'one', 'two', 'four'} and len(zoned.rows()) == 3, 'all workers to release the state')
    errors = zoned.server.errors()
    assert f'upstream server {zoned.address("three")} was added to "app" with the weight 4' in errors
    assert f'upstream server {zoned.address("one")} was removed from "app"' in errors
    assert f'upstream server {zoned.address("four")} was added to "app" with the weight 1, as a backup' in errors


def test_down_and_slow_start(zoned):
    """An added server that is down waits for `up`; the share of one with slow_start is small at first."""
    zoned.run_with()
    with load(zoned.port) as clients:
        assert zoned.change('add', 'three', 'down', 'weight=5')['state'] == 'down'
        assert seen_by(clients.more(80)) == {'one', 'two'}
        zoned.change('up', 'three')
        assert 'three' in seen_by(clients.more(80))
        zoned.change('remove', 'three')
        zoned.change('add', 'three', 'weight=100', 'slow_start=1000h')
        assert shares(clients.more(80))['three'] <= 4
        zoned.change('remove', 'three')
        zoned.change('add', 'three', 'weight=100')
        assert shares(clients.more(80))['three'] >= 60


def test_failures_of_added_servers(zoned):
    """A server that does not run gets no more requests after max_fails for fail_timeout; with max_fails=0 it is tried again."""
    zoned.run_with()
    for name in ('three', 'four'):
        zoned.upstreams[name].stop()
    with load(zoned.port) as clients:
        zoned.change('add', 'three', 'max_fails=1', 'fail_timeout=1000h')
        zoned.change('add', 'four', 'max_fails=0')
        wait_for(lambda: zoned.rows()[zoned.address('three')]['state'] == 'unavailable', 'the failure')
        for name in ('three', 'four'):
            zoned.upstreams[name].start()
        assert zoned.rows()[zoned.address('four')]['state'] == 'up'
        clients.more(20)
        assert seen_by(clients.more(80)) == {'one', 'two', 'four'}


@contextlib.contextmanager
def slow_request(zoned, running):
    """A request that `three` does not answer before the end of the block."""
    go_on = threading.Event()

    def waits(peer):
        go_on.wait(60)
        return plain(peer)
    zoned.upstreams['three'].scripts['/slow'] = waits
    slow = threading.Thread(target=lambda: running.append(zoned.get('/slow')))
    slow.start()
    try:
        yield wait_for(lambda: any(request.target == '/slow' for request in zoned.upstreams['three'].requests), 'the slow request')
    finally:
        go_on.set()
        slow.join()


def test_connections_of_an_added_server(zoned):
    """While its only connection is in use, other servers get all requests."""
    zoned.run_with()
    zoned.change('down', 'one')
    zoned.change('down', 'two')
    zoned.change('add', 'three', 'weight=100', 'max_conns=1')
    running = []
    with slow_request(zoned, running):
        zoned.change('up', 'one')
        zoned.change('up', 'two')
        with load(zoned.port) as clients:
            assert seen_by(clients.more(80)) == {'one', 'two'}
    assert running[0].body.decode().split()[0] == 'three'
    assert 'three' in {zoned.get('/').body.decode().split()[0] for _ in range(20)}


def test_a_running_request_is_completed(zoned):
    zoned.run_with()
    zoned.change('add', 'three', 'weight=100')
    running = []
    with slow_request(zoned, running):
        with load(zoned.port) as clients:
            zoned.change('remove', 'three')
            assert 'three' not in seen_by(clients.more(80))
        wait_for(lambda: zoned.rows()[zoned.address('three')]['active'] == 1, 'the request that runs')
        assert zoned.rows()[zoned.address('three')]['state'] == 'removed'
        assert f'has no server "{zoned.address("three")}"' in zoned.refused('upstreams', 'up', 'app', zoned.address('three'))
    assert running[0].status == 200 and running[0].body.decode().split()[0] == 'three'
    wait_for(lambda: zoned.names() == {'one', 'two'}, 'the end of the request')


def test_servers_change_under_load(zoned):
    """Also without pauses between the changes, and with health checks of the server that comes and goes."""
    zoned.run_with(health_check={'interval': '50ms'})
    with load(zoned.port, clients=6) as clients:
        for _ in range(25):
            zoned.change('add', 'three', 'weight=5')
            zoned.change('remove', 'three')
        zoned.change('add', 'three', 'weight=5')
        clients.more(20)
        assert 'three' in seen_by(clients.more(80))
    wait_for(lambda: len(zoned.ctl('upstreams')) == 4, 'the states of the removed servers to be released')


def test_reload_begins_again(zoned):
    zoned.run_with()
    zoned.change('add', 'three')
    zoned.change('remove', 'one')
    with load(zoned.port) as clients:
        assert seen_by(clients.more(80)) == {'two', 'three'}
        zoned.reload()
        wait_for(lambda: zoned.names() == {'one', 'two'}, 'the end of the old workers')
        assert seen_by(clients.more(80)) == {'one', 'two'}
        assert zoned.rows()[zoned.address('one')]['state'] == 'up'
        zoned.change('add', 'four')
        assert seen_by(clients.more(80)) == {'one', 'two', 'four'}


@pytest.mark.parametrize('workers', [1, 2])
def test_a_replaced_worker_follows(zoned, workers):
    zoned.run_with(workers=workers)
    zoned.change('add', 'three', 'weight=2')
    zoned.change('remove', 'one')
    before = zoned.server.workers()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: len(set(zoned.server.workers()) - set(before)) == workers, 'the replacements')
    with load(zoned.port) as clients:
        assert seen_by(clients.more(80)) == {'two', 'three'}
    wait_for(lambda: zoned.names() == {'two', 'three'}, 'the state of the removed server to be released')
    assert zoned.rows()[zoned.address('three')]['weight'] == 2


def test_an_unhealthy_server(zoned):
    """Health checks begin, also if the worker that makes them gets no request."""
    zoned.run_with(health_check={'interval': '100ms'})
    zoned.upstreams['three'].stop()
    zoned.change('add', 'three')
    wait_for(lambda: zoned.rows()[zoned.address('three')]['state'] == 'unhealthy', 'the check')


def test_the_sandbox_permits_ports_of_the_zone(zoned):
    zoned.run_with(zone=f'app 64k ports={zoned.upstreams["three"].port}')
    zoned.change('add', 'three', 'weight=20')
    assert 'three' in {zoned.get('/').body.decode().split()[0] for _ in range(20)}
    version = re.search(r'landlock \(version (\d+)', zoned.server.errors())
    if not version or int(version[1]) < 4:
        pytest.skip('this kernel does not limit ports')
    error = zoned.refused('upstreams', 'add', 'app', zoned.address('four'))
    port = zoned.upstreams['four'].port
    assert f'permits no connection to port {port}; add it to the zone of "app" ("ports={port}") and reload' in error


def test_refused(zoned):
    zoned.run_with()
    one, three = zoned.address('one'), zoned.address('three')
    assert f'the upstream "app" has a server {one} already' in zoned.refused('upstreams', 'add', 'app', one)
    assert f'the upstream "app" has no server {three}' in zoned.refused('upstreams', 'remove', 'app', three)
    assert 'there is no upstream "nosuch"; the upstreams are app, fixed' in zoned.refused('upstreams', 'add', 'nosuch', three)
    assert 'the upstream "fixed" has no zone' in zoned.refused('upstreams', 'add', 'fixed', three)
    assert 'is not an address of a server' in zoned.refused('upstreams', 'add', 'app', '127.0.0.1:99999')
    assert 'the field "weight" is a number from 1 to 65535' in zoned.refused('upstreams', 'add', 'app', three, 'weight=0')
    assert 'the field "fail_timeout" is a time' in zoned.refused('upstreams', 'add', 'app', three, 'fail_timeout=soon')
    assert 'the field "slow_start" is a time' in zoned.refused('upstreams', 'add', 'app', three, 'slow_start=5')
    assert '"upstreams add" has no option "resolve"' in zoned.refused('upstreams', 'add', 'app', three, 'resolve')
    zoned.change('remove', 'two')
    assert f'{one} is the last server of the upstream "app"' in zoned.refused('upstreams', 'remove', 'app', one)
    assert zoned.get('/').body.startswith(b'one ') and zoned.get('/fixed/').body.startswith(b'one ')


def test_unix_sockets_and_stream(zoned):
    path = os.path.join(zoned.folder, 'app.sock')
    zoned.upstreams['local'] = Upstream(name='local', path=path)
    port = server_kit.free_port()
    zoned.start(main={'stream': {'upstream': {'tcp': {'server': zoned.address('one'), 'zone': 'tcp'}},
                                 'server': {'listen': f'127.0.0.1:{port}', 'proxy_pass': 'tcp'}}})

    def name():
        with socket.create_connection(('127.0.0.1', port), timeout=20 * server_kit.PATIENCE) as stream:
            stream.sendall(b'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
            head = stream.recv(65536)
            return (head if head.endswith(b'\n') and b'\r\n\r\n' in head[:-4] else head + stream.recv(65536)).split(b'\r\n\r\n')[1].split()[0]
    assert name() == b'one'
    [row] = zoned.ctl('upstreams', 'add', 'tcp', f'unix:{path}')
    assert row['server'] == f'unix:{path}'
    zoned.ctl('upstreams', 'remove', 'tcp', zoned.address('one'))
    assert {name() for _ in range(6)} == {b'local'}


@pytest.fixture
def names(zoned):
    """A name server; `three` and `four` have different addresses and one port."""
    made = Dns()
    port = zoned.upstreams['three'].port
    zoned.upstreams['four'].stop()
    zoned.upstreams['four'] = Upstream(name='four', port=port, address='127.0.0.2')
    made.added = f'app.test:{port}'
    made.zone['app.test', A] = [(3600, '127.0.0.1')]
    made.settings = {'resolver': f'127.0.0.1:{made.port} valid=100ms', 'resolver_timeout': '2s'}
    yield made
    made.stop()


def test_names(zoned, names):
    """The addresses of an added name are used by all workers at once, and followed."""
    port = zoned.upstreams['three'].port
    zoned.run_with(workers=3, **names.settings)
    with load(zoned.port) as clients:
        [row] = zoned.ctl('upstreams', 'add', 'app', names.added, 'weight=4')
        assert (row['server'], row['state'], row['weight']) == (f'127.0.0.1:{port}', 'up', 4)
        assert seen_by(clients.more(80)) == {'one', 'two', 'three'}
        names.zone['app.test', A] = [(3600, '127.0.0.1'), (3600, '127.0.0.2')]
        wait_for(lambda: 'four' in seen_by(clients.more()), 'the second address')
        names.zone['app.test', A] = [(3600, '127.0.0.2')]
        wait_for(lambda: 'three' not in seen_by(clients.more()), 'the end of the first address')
        assert f'has a server {names.added} already' in zoned.refused('upstreams', 'add', 'app', names.added)
        assert 'is an address of a name' in zoned.refused('upstreams', 'remove', 'app', f'127.0.0.2:{port}')
        [row] = zoned.ctl('upstreams', 'remove', 'app', names.added)
        assert (row['server'], row['state']) == (f'127.0.0.2:{port}', 'removed')
        assert seen_by(clients.more(80)) == {'one', 'two'}
        assert f'has no server {names.added}' in zoned.refused('upstreams', 'remove', 'app', names.added)
    errors = zoned.server.errors()
    assert f'upstream server {names.added} was added to "app" with the weight 4' in errors
    assert f'upstream server {names.added} was removed from "app"' in errors


def test_name_that_cannot_be_resolved(zoned, names):
    """The error names host and reason. While the name server does not respond, other requests are served."""
    zoned.run_with(workers=1, **names.settings)
    assert 'the host "nosuch.test" cannot be resolved: ' in zoned.refused('upstreams', 'add', 'app', 'nosuch.test:80')
    names.zone['app.test'] = SERVFAIL
    assert 'the host "app.test" cannot be resolved: ' in zoned.refused('upstreams', 'add', 'app', names.added)
    names.zone['app.test'] = None
    asked = threading.Thread(target=lambda: zoned.refused('upstreams', 'add', 'app', names.added))
    before = len(names.questions)
    asked.start()
    wait_for(lambda: len(names.questions) > before, 'the query')
    assert seen_by([zoned.get('/').body.decode() for _ in range(4)]) == {'one', 'two'}
    asked.join()
    assert zoned.names() == {'one', 'two'}
    assert 'was added' not in zoned.server.errors()


def test_name_of_a_replaced_worker(zoned, names):
    """A worker that replaces another one has the name, also while the name server fails; a reload ends it."""
    zoned.run_with(workers=1, **names.settings)
    zoned.ctl('upstreams', 'add', 'app', names.added)
    names.zone['app.test'] = SERVFAIL
    [former] = zoned.server.workers()
    os.kill(former, signal.SIGKILL)
    wait_for(lambda: zoned.server.workers() not in ([], [former]), 'the replacement')
    with load(zoned.port) as clients:
        assert seen_by(clients.more(80)) == {'one', 'two', 'three'}
        zoned.reload()
        wait_for(lambda: 'three' not in seen_by(clients.more()), 'the configuration without it')
    assert zoned.names() == {'one', 'two'}
