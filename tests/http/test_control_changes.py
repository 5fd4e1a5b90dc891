"""Each command of `sluice ctl` that changes something, under load: its effect that clients see, and its one line in the error log."""
import json
import os
import re
import socket
import threading

import pytest
from kit import server as server_kit
from kit.lifetime import wait_for
from kit.load import load
from test_control_connections import assert_reset, client, name
from test_control_log_level import becomes_quiet, debugging
from test_control_ticket_keys import fetch
from test_control_upstreams import shares
from test_control_upstreams_servers import Zoned, seen_by


class Recorder:
    """A socket before the control socket. It keeps method, path and fields of the requests."""

    def __init__(self, path, target):
        self.path, self.target, self.requests = path, target, []
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            with self.listening.accept()[0] as stream:
                request = stream.recv(65536)
                if not request:
                    return
                head, body = request.decode().split('\r\n\r\n', 1)
                method, target = head.split(' ')[:2]
                self.requests.append((method, target.split('?')[0], set(json.loads(body or '{}'))))
                with socket.socket(socket.AF_UNIX) as server:
                    server.connect(self.target)
                    server.sendall(request)
                    for piece in iter(lambda: server.recv(65536), b''):  # pylint: disable=cell-var-from-loop
                        stream.sendall(piece)

    def stop(self):
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(self.path)
        self.thread.join()
        self.listening.close()
        os.unlink(self.path)


class Changed(Zoned):
    """Location / has the upstream servers `one` and `two`, and location /cached/ a cache."""

    def run_changed(self):
        group = {'server': [self.address('one'), self.address('two')], 'zone': 'app 64k ports=any'}
        cached = {'proxy_pass': 'http://app', 'proxy_cache': 'one', 'proxy_cache_valid': '1h', 'proxy_cache_key': '$request_uri',
                  'add_header': 'X-Cache $upstream_cache_status always'}
        self.start(http={'upstream': {'app': group}, 'proxy_cache_path': {'path': os.path.join(self.folder, 'cache'), 'keys_zone': 'one:1m'}},
                   location={'/': {'proxy_pass': 'http://app'}, '/cached/': cached})
        wait_for(lambda: self.ctl('caches')[0]['index'] == 'complete', 'the index of the cache')

    def changes(self):
        """The lines about changes."""
        return re.findall(r'\[notice\] \d+#\d+: (.*control: .*)', self.server.errors())

    def log_line(self, expected, *words):
        """Runs a command, and compares the one line that is added."""
        before = len(self.changes())
        self.ctl(*words)
        wait_for(lambda: len(self.changes()) > before, f'a line about {words}')
        [line] = self.changes()[before:]
        assert re.fullmatch(expected, line), line

    def upstream(self, verb, server, line, *words):
        self.log_line(f'control: upstream server {self.address(server)} {line}', 'upstreams', verb, 'app', self.address(server), *words)

    def cache_state(self, path='/cached/1'):
        return self.get(path).headers['x-cache']

    def store(self):
        wait_for(lambda: self.cache_state() == 'HIT', 'the response in the cache')


@pytest.fixture(params=server_kit.LOOPS)
def changed(request, tmp_path, certificate, site):
    made = Changed(tmp_path, request.param, certificate, site)
    yield made
    made.stop()


@pytest.fixture
def recorder(changed):
    """Records the requests of the commands."""
    changed.run_changed()
    made = Recorder(os.path.join(changed.folder, 'recorder.sock'), changed.socket)
    changed.socket = made.path
    yield made
    changed.socket = made.target
    made.stop()


def change_state(changed, clients):
    changed.upstream('down', 'one', 'of "app" is down, before: up')
    assert seen_by(clients.more(80)) == {'two'}
    changed.upstream('drain', 'one', 'of "app" is draining, before: down')
    assert seen_by(clients.more(80)) == {'two'}
    changed.upstream('up', 'one', 'of "app" is up, before: draining')
    assert seen_by(clients.more(80)) == {'one', 'two'}


def change_weight(changed, clients):
    changed.upstream('weight', 'one', 'of "app" has the weight 19, before: 1', '19')
    assert shares(clients.more(100))['one'] >= 80
    changed.upstream('weight', 'one', 'of "app" has the weight 1, before: 19', '1')


def add_and_remove(changed, clients):
    changed.upstream('add', 'three', 'was added to "app" with the weight 8', 'weight=8', 'max_conns=1000', 'max_fails=3', 'fail_timeout=30s',
                     'slow_start=1ms')
    assert shares(clients.more(100))['three'] >= 60
    changed.upstream('remove', 'three', 'was removed from "app"')
    assert seen_by(clients.more(80)) == {'one', 'two'}
    changed.upstream('add', 'four', 'was added to "app" with the weight 1, as a backup', 'backup')
    assert seen_by(clients.more(80)) == {'one', 'two'}
    changed.upstream('remove', 'four', 'was removed from "app"')
    changed.upstream('add', 'four', 'was added to "app" with the weight 1, down', 'down')
    assert seen_by(clients.more(80)) == {'one', 'two'}
    changed.upstream('up', 'four', 'of "app" is up, before: down')
    assert seen_by(clients.more(80)) == {'one', 'two', 'four'}
    changed.upstream('remove', 'four', 'was removed from "app"')


def purge(changed, clients):
    for command, words, line in (('purge', ['/cached/1'], 'the key "/cached/1"'), ('purge-prefix', ['/cached/'], 'the prefix "/cached/"'),
                                 ('purge-all', [], 'all keys')):
        changed.store()
        changed.log_line(f'control: cache "one": purged {line}, entries removed: 1', 'caches', command, 'one', *words)
        assert changed.cache_state() == 'MISS'
        clients.more()


def close_connection(changed, clients):
    with client(changed.port) as closed:
        def rows():
            listing = json.loads(changed.run('connections', options=['--json']).stdout)
            return [row for row in listing['connections'] if row['client'] == name(closed)]
        [row] = wait_for(rows, 'the connection')
        changed.log_line(rf'\*{row["id"]} control: the connection is closed(, .*)?', 'connections', 'close', str(row['id']))
        assert_reset(closed)
        clients.more()


def rotate(changed, clients):
    before = fetch(changed.tls_port, '-tls1_3')[1]
    changed.log_line('control: session tickets are encrypted with a new key', 'ticket-keys', 'rotate')
    assert fetch(changed.tls_port, '-tls1_3')[1] != before
    clients.more()


def change_log_level(changed, clients):
    changed.log_line('control: the error log has the level debug, before: info', 'log-level', 'debug')
    wait_for(lambda: debugging(changed) == set(changed.server.workers()), 'lines of level debug of each worker')
    changed.log_line('control: the error log has the level notice, before: debug', 'log-level', 'notice')
    becomes_quiet(changed, clients)


def test_each_change(changed, recorder):
    """A resource of the control socket that changes something, or a field of it, that no command here uses is an error."""
    with load(changed.port) as clients:
        for one in (change_state, change_weight, add_and_remove, purge, close_connection, rotate, change_log_level):
            one(changed, clients)
    resources = json.loads(changed.request('GET /v1 HTTP/1.0').split('\r\n\r\n', 1)[1])['resources']
    changing = {(row['method'], row['path']): set((row['fields'] or '').split(', ')) - {''} for row in resources if row['method'] != 'GET'}
    used = {}
    for method, path, fields in recorder.requests:
        if method != 'GET':
            used.setdefault((method, path), set()).update(fields)
    assert used == changing
