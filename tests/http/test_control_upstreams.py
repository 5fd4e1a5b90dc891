"""`sluice ctl upstreams down|drain|up|weight`, under load: the effect that clients see, and how long it lasts."""
import collections
import json
import os
import signal
import threading

import pytest
from kit import server as server_kit
from kit.lifetime import wait_for
from kit.load import load
from kit.upstream import Upstream, plain
from test_control import Controlled


class Balanced(Controlled):
    """A server with a control socket and upstream servers."""

    def __init__(self, *words):
        super().__init__(*words)
        self.upstreams = {}

    def balance(self, names=('one', 'two', 'three'), workers=2, server=None, **group):
        self.upstreams = {name: Upstream(name=name) for name in names}
        servers = [{'address': self.address(name), **(server or {})} for name in names]
        return self.start(workers=workers, http={'upstream': {'app': {'server': servers, **group}}}, location={'/': {'proxy_pass': 'http://app'}})

    def address(self, name):
        return f'127.0.0.1:{self.upstreams[name].port}'

    def change(self, verb, name, *words):
        [row] = self.ctl('upstreams', verb, 'app', self.address(name), *words)
        assert row['server'] == self.address(name)
        return row

    def rows(self):
        return {row['server']: row for row in self.ctl('upstreams')}

    def stop(self):
        if self.server:
            self.server.stop()
        for one in self.upstreams.values():
            one.stop()


@pytest.fixture(params=server_kit.LOOPS)
def balanced(request, tmp_path, certificate, site):
    made = Balanced(tmp_path, request.param, certificate, site)
    yield made
    made.stop()


def shares(seen):
    return collections.Counter(body.split()[0] for body in seen)


def test_down_and_up(balanced):
    """After `down` the server gets no request from any worker, after `up` it gets its share again, and no request fails."""
    balanced.balance(workers=3)
    with load(balanced.port) as clients:
        assert set(shares(clients.more())) == {'one', 'two', 'three'}
        assert balanced.change('down', 'one')['state'] == 'down'
        assert set(shares(clients.more(80))) == {'two', 'three'}
        assert balanced.change('down', 'three')['state'] == 'down'
        assert set(shares(clients.more())) == {'two'}
        assert balanced.change('up', 'one')['state'] == 'up'
        assert set(shares(clients.more())) == {'one', 'two'}
    assert {server: row['state'] for server, row in balanced.rows().items()} == {
        balanced.address('one'): 'up', balanced.address('two'): 'up', balanced.address('three'): 'down'}
    errors = balanced.server.errors()
    assert '[notice] ' in errors and f'upstream server {balanced.address("one")} of "app" is down, before: up' in errors
    assert f'upstream server {balanced.address("one")} of "app" is up, before: down' in errors
    balanced.change('down', 'one')
    balanced.change('down', 'two')
    assert balanced.get('/').status == 502, 'all servers are down'


def test_weight(balanced):
    balanced.balance(names=('one', 'two'), workers=1)
    with load(balanced.port) as clients:
        seen = shares(clients.more())
        assert abs(seen['one'] - seen['two']) <= 4
        assert balanced.change('weight', 'one', '9')['weight'] == 9
        assert shares(clients.more(100))['one'] >= 86
        balanced.change('weight', 'two', '36')
        assert shares(clients.more(100))['two'] >= 76
    assert 'of "app" has the weight 9, before: 1' in balanced.server.errors()


def test_drain_keeps_sticky_sessions_and_running_requests(balanced):
    balanced.balance(sticky='cookie srv')
    go_on = threading.Event()

    def waits(peer):
        go_on.wait(60)
        return plain(peer)
    for one in balanced.upstreams.values():
        one.scripts['/slow'] = waits
    first = balanced.get('/')
    name, cookie = first.body.decode().split()[0], first.headers['set-cookie']
    running = []
    slow = threading.Thread(target=lambda: running.append(balanced.get('/slow', Cookie=cookie)))
    slow.start()
    wait_for(lambda: any(request.target == '/slow' for request in balanced.upstreams[name].requests), 'the slow request')
    with load(balanced.port) as clients, load(balanced.port, Cookie=cookie) as session:
        assert balanced.change('drain', name)['state'] == 'draining'
        assert set(shares(clients.more())) == {'one', 'two', 'three'} - {name}
        assert set(shares(session.more())) == {name}
        assert balanced.change('down', name)['state'] == 'down'
        assert name not in shares(session.more())
    assert balanced.rows()[balanced.address(name)]['active'] == 1, 'the request that runs'
    go_on.set()
    slow.join()
    assert running[0].status == 200 and running[0].body.decode().split()[0] == name
    wait_for(lambda: balanced.rows()[balanced.address(name)]['active'] == 0, 'the end of the request')


def test_drain_moves_keys_of_hash(balanced):
    """A key binds no session: new clients may have it, too. The keys of the other servers stay."""
    balanced.balance(hash='$arg_k')
    before = {key: balanced.get(f'/?k={key}').body.decode().split()[0] for key in range(30)}
    balanced.change('drain', 'one')
    after = {key: balanced.get(f'/?k={key}').body.decode().split()[0] for key in range(30)}
    assert 'one' in before.values() and 'one' not in after.values()
    assert all(after[key] == name for key, name in before.items() if name != 'one')


def test_up_ends_the_pause_of_a_failed_server(balanced):
    balanced.balance(server={'fail_timeout': '300s'})
    balanced.upstreams['one'].stop()
    wait_for(lambda: balanced.get('/').status == 200 and balanced.rows()[balanced.address('one')]['state'] == 'unavailable', 'the failure')
    balanced.upstreams['one'].start()
    balanced.change('up', 'one')
    with load(balanced.port) as clients:
        assert set(shares(clients.more())) == {'one', 'two', 'three'}


@pytest.mark.parametrize('workers', [1, 2])
def test_a_killed_worker(balanced, workers):
    """Also if no other worker holds the state."""
    balanced.balance(workers=workers)
    balanced.change('down', 'one')
    balanced.change('weight', 'two', '7')
    for pid in balanced.server.workers():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: len(balanced.server.workers()) == workers, 'the replacements')
    rows = balanced.rows()
    assert rows[balanced.address('one')]['state'] == 'down' and rows[balanced.address('two')]['weight'] == 7
    with load(balanced.port) as clients:
        assert set(shares(clients.more())) == {'two', 'three'}


def test_reload(balanced):
    """The changes stay, except those of a value that the new configuration changes."""
    balanced.balance()
    balanced.change('down', 'one')
    balanced.change('weight', 'two', '7')
    balanced.change('drain', 'three')
    servers = balanced.server.tree['http']['upstream']['app']['server']
    with load(balanced.port) as clients:
        balanced.reload()
        assert set(shares(clients.more())) == {'two'}
        rows = balanced.rows()
        assert [rows[balanced.address(name)]['state'] for name in ('one', 'two', 'three')] == ['down', 'up', 'draining']
        servers[1]['weight'] = 3
        servers[2]['down'] = True
        balanced.server.write_configuration()
        balanced.reload()
        rows = balanced.rows()
        assert [(rows[balanced.address(name)]['state'], rows[balanced.address(name)]['weight']) for name in ('one', 'two', 'three')] == [
            ('down', 1), ('up', 3), ('down', 1)]
        balanced.change('up', 'three')
        assert set(shares(clients.more())) == {'two', 'three'}, 'a server that is down in the configuration'


def test_wrong_words(balanced):
    balanced.balance(names=('one', 'two'))
    one, two = balanced.address('one'), balanced.address('two')
    assert 'there is no upstream "nosuch"; the upstreams are app' in balanced.refused('upstreams', 'down', 'nosuch', one)
    assert f'the upstream "app" has no server "127.0.0.1:1"; its servers are {one}, {two}' in balanced.refused('upstreams', 'up', 'app', '127.0.0.1:1')
    assert 'the field "weight" is a number from 1 to 65535' in balanced.refused('upstreams', 'weight', 'app', one, '0')
    assert 'the field "weight" is a number from 1 to 65535' in balanced.refused('upstreams', 'weight', 'app', one, 'heavy')
    assert '"upstreams down" takes 2 arguments, found 1' in balanced.refused('upstreams', 'down', 'app')
    assert {(row['state'], row['weight']) for row in balanced.rows().values()} == {('up', 1)}


def test_body_in_pieces(balanced):
    """The worker waits for the body; a client that goes away meanwhile changes nothing."""
    balanced.balance(names=('one', 'two'))
    body = json.dumps({'upstream': 'app', 'server': balanced.address('one'), 'state': 'down'}).encode()
    head = f'PATCH /v1/upstreams HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n'.encode()
    with balanced.connect() as stream:
        stream.sendall(head)
        assert stream.recv(100) == b'HTTP/1.1 100 Continue\r\n\r\n'
        stream.sendall(body[:20])
    with balanced.connect() as stream:
        stream.sendall(head)
        assert stream.recv(100) == b'HTTP/1.1 100 Continue\r\n\r\n'
        for at in range(0, len(body) - 1, 30):
            stream.sendall(body[at:at + 30])
            assert balanced.rows()[balanced.address('one')]['state'] == ('up' if at + 30 < len(body) else 'down')
        response = b''.join(iter(lambda: stream.recv(65536), b''))
    assert response.startswith(b'HTTP/1.1 200 ') and b'"state": "down"' in response
