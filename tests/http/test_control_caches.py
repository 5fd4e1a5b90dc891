"""`sluice ctl caches`: sizes, and purges by key and by prefix, with their effect seen by clients."""
import json
import os
import signal
import socket
import threading

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for
from kit.load import load
from kit.upstream import Upstream
from test_control import Controlled, controlled  # pylint: disable=unused-import


class Every(dict):
    """The script of every path."""

    def __init__(self, script):
        super().__init__()
        self.script = script

    def get(self, key, default=None):
        return self.script


class Cached(Controlled):
    """A server with a control socket and a cache. The key of a response is its path and query."""

    def __init__(self, *words):
        super().__init__(*words)
        self.path = os.path.join(self.folder, 'cache')
        self.upstream = None

    def cache(self, script, workers=2, more=(), directives=None, **extra):
        self.upstream = Upstream()
        self.upstream.scripts = Every(script)
        paths = [{'path': self.path, 'keys_zone': 'one:1m', **extra}, *more]
        location = {'/': {'proxy_pass': f'http://127.0.0.1:{self.upstream.port}', 'proxy_cache': 'one', 'proxy_cache_valid': '1h',
                          'proxy_cache_key': '$request_uri', 'add_header': 'X-Cache $upstream_cache_status always',
                          **(directives or {})}}
        self.start(workers=workers, http={'proxy_cache_path': paths}, location=location)
        wait_for(lambda: {row['index'] for row in self.ctl('caches')} == {'complete'}, 'the index is complete')
        return self

    def state(self, path):
        return self.get(path).headers['x-cache']

    def store(self, *paths):
        for path in paths:
            self.get(path)
            wait_for(lambda: self.state(path) == 'HIT', path)  # pylint: disable=cell-var-from-loop

    def purge(self, verb, text):
        [row] = self.ctl('caches', verb, 'one', text)
        assert row['cache'] == 'one'
        return row['removed']

    def post(self, body):
        text = body if isinstance(body, str) else json.dumps(body)
        response = self.request(f'POST /v1/caches/purge HTTP/1.0\r\nContent-Length: {len(text)}\r\n\r\n{text}')
        return int(response.split()[1]), json.loads(response.split('\r\n\r\n', 1)[1])

    def stop(self):
        if self.server:
            self.server.stop()
        if self.upstream:
            self.upstream.stop()


@pytest.fixture(params=server_kit.LOOPS)
def cached(request, tmp_path, certificate, site):
    made = Cached(tmp_path, request.param, certificate, site)
    yield made
    made.stop()


def answer(peer):
    """A response that contains the number of requests for its path; /vary has variants."""
    peer.read_body()
    target = peer.request.target
    count = sum(one.target == target for one in list(peer.upstream.requests))
    body = f'{target} {count} ' + 'x' * 1000
    vary = 'Vary: Accept-Language\r\n' if target == '/vary' else ''
    peer.send(f'HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{vary}\r\n{body}')
    return True


def test_list(cached, tmp_path):
    cached.cache(answer, max_size='1m', more=[{'path': str(tmp_path / 'other'), 'keys_zone': 'two:1m'}])
    assert [(row['cache'], row['path'], row['entries'], row['bytes'], row['max_size']) for row in cached.ctl('caches')] == [
        ('one', cached.path, 0, 0, 1048576), ('two', str(tmp_path / 'other'), 0, 0, None)]
    cached.store('/a', '/b')
    [row] = [row for row in cached.ctl('caches') if row['cache'] == 'one']
    assert row['entries'] == 2 and 2000 < row['bytes'] < 4000
    assert cached.run('caches').stdout.split('\n')[0].split() == ['cache', 'path', 'entries', 'bytes', 'max_size', 'index']


def test_purge_of_a_key(cached):
    cached.cache(answer, workers=3)
    cached.store('/a?x=1', '/a', '/ab')
    assert cached.purge('purge', '/a?x=1') == 1
    assert [cached.state(path) for path in ('/a', '/ab', '/a?x=1', '/a')] == ['HIT', 'HIT', 'MISS', 'HIT']
    assert cached.purge('purge', '/nosuch') == 0
    assert cached.purge('purge', '/a"\\\u00e4\n') == 0


def test_purge_of_a_prefix(cached):
    """More files than one step of a helper thread examines."""
    cached.cache(answer, workers=3, manager_files=10)
    inside, outside = [f'/in/{i}' for i in range(60)], [f'/out/{i}' for i in range(10)]
    cached.store(*inside, *outside, '/in')
    assert cached.purge('purge-prefix', '/in/') == 60
    assert {cached.state(path) for path in inside} == {'MISS'}
    assert {cached.state(path) for path in [*outside, '/in']} == {'HIT'}
    cached.store(*inside)
    table = cached.run('caches', 'purge-prefix', 'one', '/').stdout.split('\n')
    assert [line.split() for line in table] == [['cache', 'removed'], ['one', '71'], []]
    assert cached.ctl('caches')[0]['entries'] == 0


def test_purge_of_a_whole_cache(cached, tmp_path):
    cached.cache(answer, more=[{'path': str(tmp_path / 'other'), 'keys_zone': 'two:1m'}])
    cached.store('/a', '/b/c', '/d?e')
    [row] = cached.ctl('caches', 'purge-all', 'one')
    assert row == {'cache': 'one', 'removed': 3}
    assert {cached.state(path) for path in ('/a', '/b/c', '/d?e')} == {'MISS'}
    assert cached.ctl('caches', 'purge-all', 'two') == [{'cache': 'two', 'removed': 0}]
    assert 'there is no cache "three"' in cached.refused('caches', 'purge-all', 'three')


def test_variants(cached):
    """A purge of the key or of a prefix concerns all variants."""
    cached.cache(answer)
    for verb, text in (('purge', '/vary'), ('purge-prefix', '/va')):
        languages = ('en', 'de')

        def states():
            with socket.create_connection(('127.0.0.1', cached.port), timeout=20 * server_kit.PATIENCE) as stream:
                client = http1.Client(stream)
                return [client.get('/vary', **{'Accept-Language': one}).headers['x-cache'] for one in languages]
        wait_for(lambda: states() == ['HIT', 'HIT'], 'both are stored')  # pylint: disable=cell-var-from-loop
        assert cached.purge(verb, text) >= 1
        assert states() == ['MISS', 'MISS']


def test_purge_under_load(cached):
    """After the answer to a purge no client gets an older response, and no request fails."""
    cached.cache(answer, workers=3)
    with load(cached.port, '/load/1') as clients:
        for verb, text in (('purge', '/load/1'), ('purge-prefix', '/load/')) * 5:
            before = max(int(body.split()[1]) for body in clients.more(20))
            cached.purge(verb, text)
            assert min(int(body.split()[1]) for body in clients.more(20)) > before, verb


def test_fetch_from_before_the_purge(cached):
    """A response that was requested from the upstream server before the purge is not stored afterwards."""
    begun, proceed = threading.Event(), threading.Event()

    def slow(peer):
        peer.read_body()
        begun.set()
        proceed.wait(20 * server_kit.PATIENCE)
        peer.send('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold')
        return True

    cached.cache(slow)
    for verb in ('purge', 'purge-prefix'):
        begun.clear()
        proceed.clear()
        client = threading.Thread(target=cached.get, args=('/slow',))
        client.start()
        begun.wait(20 * server_kit.PATIENCE)
        assert cached.purge(verb, '/slow') == 0
        proceed.set()
        client.join()
        assert cached.state('/slow') == 'MISS'
        cached.store('/slow')
        assert cached.purge(verb, '/slow') == 1


def test_after_restart_and_reload(cached):
    """Keys are read from the files of earlier processes, too, and a purge concerns workers of both generations."""
    cached.cache(answer)
    cached.store('/in/1', '/out/1')
    cached.server.stop()
    cached.server.start([cached.port])
    cached.until(' runs, ', 2)
    wait_for(lambda: cached.ctl('caches')[0]['index'] == 'complete', 'the index is complete')
    assert [cached.state(path) for path in ('/in/1', '/out/1')] == ['HIT', 'HIT']
    cached.reload()
    assert cached.purge('purge-prefix', '/in/') == 1
    assert [cached.state(path) for path in ('/in/1', '/out/1')] == ['MISS', 'HIT']


def test_a_worker_dies(cached):
    cached.cache(answer, workers=2)
    cached.store('/a')
    killed = cached.server.workers()[0]
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: killed not in cached.server.workers() and len(cached.server.workers()) == 2, 'its replacement')
    assert cached.purge('purge-prefix', '/') == 1 and cached.state('/a') == 'MISS'


def test_errors(cached):
    cached.cache(answer)
    assert 'there is no cache "nosuch"; the caches are: one' in cached.refused('caches', 'purge', 'nosuch', '/a')
    assert '"caches purge" takes 2 arguments, found 1' in cached.refused('caches', 'purge', 'one')
    assert '"caches" has no command "frob"' in cached.refused('caches', 'frob')
    for body, status, error in (
            ({'cache': 'one'}, 400, '/v1/caches/purge takes one of "key", "prefix" and "all": true'),
            ({'cache': 'one', 'all': False}, 400, '/v1/caches/purge takes one of "key", "prefix" and "all": true'),
            ({'cache': 'one', 'all': True, 'key': 'a'}, 400, '/v1/caches/purge takes one of "key", "prefix" and "all": true'),
            ({'cache': 'one', 'all': 'yes'}, 400, 'the field "all" is'),
            ({'cache': 'one', 'key': 'a', 'prefix': 'a'}, 400, '/v1/caches/purge takes one of "key", "prefix" and "all": true'),
            ({'key': 'a'}, 400, 'the field "cache" is missing'),
            ({'cache': 'one', 'prefix': ''}, 400, 'the field "prefix" is a text that is not empty'),
            ({'cache': 'two', 'key': 'a'}, 404, 'there is no cache "two"; the caches are: one'),
            ({'cache': 'one', 'prefix': 7}, 400, 'the field "prefix" is a text'),
            ({'cache': 'one', 'frob': 'a'}, 400, 'there is no field "frob"; /v1/caches/purge takes cache, key, prefix'),
            ('{"cache": "one"', 400, 'the body is not a JSON object')):
        assert cached.post(body)[0] == status, body
        assert cached.post(body)[1]['error'].startswith(error), cached.post(body)
    response = cached.request('DELETE /v1/caches/purge HTTP/1.0')
    assert response.startswith('HTTP/1.1 405 ') and '\r\nAllow: POST\r\n' in response


def test_without_a_cache(controlled):
    controlled.start()
    assert controlled.ctl('caches') == []
    assert 'the configuration has no cache; proxy_cache_path defines one' in controlled.refused('caches', 'purge', 'one', '/a')
