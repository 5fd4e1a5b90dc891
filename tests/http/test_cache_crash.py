"""The cache with killed processes, a directory that is not writable, and several workers: it returns no incomplete response, and one
request fills it for all workers."""
import mmap
import os
import signal
import threading
import time

import pytest
from cache_site import BIG, HIT, MISS, Scripted, concurrent_requests, delayed, fetch, lines
from kit import http1, server as server_kit
from kit.lifetime import alive, kill_each, wait_for

WHOLE = BIG * 10        # 3 MB


@pytest.fixture
def upstream():
    made = Scripted()
    yield made
    made.stop()


@pytest.fixture
def cache(loop, new_directory, upstream, certificate, tls_transport):
    """cache(workers=1, **path) -> a running server; a second call starts another server with the same cache directory."""
    folder = new_directory()
    running = []

    def starter(workers=1, location=None, http=None, locations=None, **path):
        port, secret = server_kit.free_port(), server_kit.free_port()
        block = {'listen': [f'127.0.0.1:{port}', f'127.0.0.1:{secret} ssl'], 'ssl_certificate': certificate[0],
                 'ssl_certificate_key': certificate[1], 'ssl_ktls': {'user': 'off', 'ktls': 'on'}[tls_transport], 'root': str(folder), 'location': {
                     '/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_cache': 'one', 'proxy_cache_lock': True,
                           'add_header': 'X-Cache $upstream_cache_status always', **(location or {})},
                     '/file.bin': {}, **(locations or {})}}
        made = server_kit.Server(folder / f'server{len(running)}', [block], loop=loop, main={'worker_processes': workers},
                                 http={'proxy_cache_path': {'path': str(folder / 'cache'), 'keys_zone': 'one:1m', **path}, **(http or {})})
        os.chmod(made.folder, 0o755)
        made.start([port])
        made.port, made.secret, made.cache = port, secret, folder / 'cache'
        made.connect = lambda promoted=True: http1.connect(port, 'plain')
        running.append(made)
        wait_for(lambda: len(made.workers()) == workers and ' runs, ' in made.errors(), 'every worker')
        return made
    yield starter
    for made in running:
        made.stop(check=False)


def names(server):
    return [name for _, _, files in os.walk(server.cache) for name in files]


def temporary(server):
    return [name for name in names(server) if name.endswith('.tmp')]


def halting(upstream, path, halted):
    """Sends two thirds of the body, and the rest once `halted` is set."""
    def respond(peer):
        if len(upstream.requests_of(path)) > 1:
            return upstream.send_response(peer, 'Cache-Control: max-age=600', WHOLE)
        peer.send(f'HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {len(WHOLE)}\r\n\r\n')
        peer.send(WHOLE[:2000000])
        halted.wait(20)
        try:
            peer.send(WHOLE[2000000:])
        except OSError:
            pass
        return False
    return respond


def start_download(server, path):
    """Sends a request and reads the response in a thread; returns the thread and the bytes received so far."""
    got = bytearray()
    client = server.connect()
    client.send(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n')

    def read():
        while client.fill():
            got.extend(client.buffer)
            client.buffer.clear()
    thread = threading.Thread(target=read)
    thread.start()
    return thread, got


def fetched(server, path):
    client = server.connect()
    response = fetch(client, path)
    client.close()
    return response


def wait_until_stored(server, path):
    wait_for(lambda: is_stored(server, path), f'{path} is stored')


def is_stored(server, path):
    client = server.connect()
    response = fetch(client, path, 'Cache-Control: only-if-cached')
    client.close()
    return response.headers.get('x-cache') == HIT


def test_killed_worker_stores_no_incomplete_response(cache, upstream):
    halted = threading.Event()
    upstream.answers['/big'] = halting(upstream, '/big', halted)
    server = cache()
    thread, got = start_download(server, '/big')
    wait_for(lambda: temporary(server), 'it is being stored')
    worker = server.workers()[0]
    os.kill(worker, signal.SIGKILL)
    thread.join(20)
    halted.set()
    assert len(got) < len(WHOLE)
    wait_for(lambda: not alive(worker) and server.workers() and server.workers()[0] != worker, 'another worker')
    again = fetched(server, '/big')
    assert again.headers['x-cache'] == MISS and again.body == WHOLE
    wait_until_stored(server, '/big')
    assert fetched(server, '/big').body == WHOLE
    wait_for(lambda: not temporary(server), 'the temporary file of the killed worker is deleted')
    assert len(upstream.requests_of('/big')) == 2


class Load:
    """Threads that request stored and new responses one after the other until the end of the block, and compare their bodies."""

    def __init__(self, server, threads=4):
        self.server = server
        self.ended = False
        self.complete = 0               # responses
        self.interrupted = 0            # by the end of a connection
        self.wrong = []
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(threads)]

    def run(self, number):
        count = number * 7
        while not self.ended:
            count += 1
            path = f'/load{count % 20 if count % 3 else f"{number}.{count}"}'
            try:
                response = fetched(self.server, path)
            except (OSError, EOFError):
                self.interrupted += 1
                continue
            self.complete += 1
            if response.status != 200 or not response.body.startswith(f'{path} '.encode()):
                self.wrong.append((path, response.status, response.body))

    def kill_worker(self):
        """Kills the oldest of four workers after further responses, and waits for another one."""
        enough, worker = self.complete + 20, min(self.server.workers())
        wait_for(lambda: self.complete >= enough, 'further responses')
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: worker not in self.server.workers() and len(self.server.workers()) == 4, 'another worker')

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.ended = True
        for thread in self.threads:
            thread.join(60)


def test_killed_workers_under_load_leave_index_and_limits_intact(cache, upstream):
    """Some of the workers are killed with the lock of a zone, or between two changes of it."""
    upstream.other_answer = 'Cache-Control: max-age=600'
    server = cache(workers=4, location={'limit_conn': 'open 1000', 'limit_req': 'zone=rate burst=100000 nodelay'},
                   locations={'/last': {'limit_conn': 'open 1', 'return': '200 ok'}},
                   http={'limit_conn_zone': '$server_port zone=open:1m', 'limit_req_zone': '$server_port zone=rate:1m rate=100000r/s'})
    with Load(server) as load:
        for _ in range(16):
            load.kill_worker()
    assert load.wrong == [] and load.complete > 16 * 20
    wait_for(lambda: fetched(server, '/last').status == 200, 'no request of a killed worker is counted')
    wait_for(lambda: not temporary(server), 'the temporary files of killed workers are deleted')
    bodies = {f'/load{number}': fetched(server, f'/load{number}').body for number in range(20)}
    for path, body in bodies.items():
        wait_until_stored(server, path)
        assert fetched(server, path).body == body


def test_restart_after_kill_serves_complete_responses(cache, upstream):
    halted = threading.Event()
    upstream.answers['/big'] = halting(upstream, '/big', halted)
    for path in ('/whole', '/truncated', '/damaged'):
        upstream.answers[path] = 'Cache-Control: max-age=600'
    server = cache(workers=2)
    bodies = {path: fetched(server, path).body for path in ('/whole', '/truncated', '/damaged')}
    for path in bodies:
        wait_until_stored(server, path)
    start_download(server, '/big')
    wait_for(lambda: temporary(server), 'it is being stored')
    killed = server.processes()
    kill_each(killed)
    server.process.wait()
    wait_for(lambda: not any(alive(process) for process in killed), 'all are dead, and their locks are free')
    halted.set()
    for folder, _, files in os.walk(server.cache):
        for name in files:
            path = os.path.join(folder, name)
            with open(path, 'r+b') as stream:
                content = stream.read()
                if content.startswith(b'/truncated'):
                    stream.truncate(len(content) - 1)
                if content.startswith(b'/damaged'):
                    stream.seek(len(content) - 100)
                    stream.write(b'x')
    server = cache(workers=2)
    wait_until_stored(server, '/whole')
    wait_for(lambda: not temporary(server) and len(names(server)) == 1, 'incomplete and damaged files are deleted')
    before = len(upstream.requests)
    assert fetched(server, '/whole').body == bodies['/whole'] and len(upstream.requests) == before
    for path in ('/truncated', '/damaged'):
        again = fetched(server, path)
        assert again.headers['x-cache'] == MISS and again.body == f'{path} 2'.encode()
    assert fetched(server, '/big').body == WHOLE


def test_stored_range_is_completed_after_a_kill(cache, upstream):
    """After the kill the stored range is still valid, and no file of the interrupted completion remains."""
    halted = threading.Event()
    requests = []

    def respond(peer):
        expected = peer.request.header('range')
        requests.append((expected, peer.request.header('if-range')))
        first = int(expected[6:].split('-')[0]) if expected else 0
        last = int(expected[6:].split('-')[1]) if expected else len(WHOLE) - 1
        peer.send(f'HTTP/1.1 206 X\r\nCache-Control: max-age=600\r\nETag: "v1"\r\nContent-Range: bytes {first}-{last}/{len(WHOLE)}\r\n'
                  f'Content-Length: {last + 1 - first}\r\n\r\n')
        peer.send(WHOLE[first:last + 1 if len(requests) != 2 else 2000000])
        if len(requests) == 2:
            halted.wait(20)
            return False
        return True
    upstream.answers['/part'] = respond
    server = cache(location={'proxy_cache_partial': True})
    client = server.connect()
    assert fetch(client, '/part', 'Range: bytes=0-999999').body == WHOLE[:1000000]
    client.close()
    start_download(server, '/part')
    wait_for(lambda: temporary(server), 'the completion is being stored')
    killed = server.processes()
    kill_each(killed)
    server.process.wait()
    wait_for(lambda: not any(alive(process) for process in killed), 'all are dead, and their locks are free')
    halted.set()
    server = cache(location={'proxy_cache_partial': True})
    wait_for(lambda: not temporary(server) and len(names(server)) == 1, 'the incomplete file is deleted')
    client = server.connect()
    wait_for(lambda: fetch(client, '/part', 'Range: bytes=10-999999\nCache-Control: only-if-cached').body == WHOLE[10:1000000], 'the span is known')
    again = fetch(client, '/part')
    assert again.status == 200 and again.headers['x-cache'] == 'PARTIAL' and again.body == WHOLE
    client.close()
    wait_until_stored(server, '/part')
    assert fetched(server, '/part').body == WHOLE
    assert requests == [('bytes=0-999999', None)] + [(f'bytes=1000000-{len(WHOLE) - 1}', '"v1"')] * 2


def test_workers_coalesce_concurrent_requests(cache, upstream):
    upstream.answers['/slow'] = delayed(upstream, '/slow', lambda: time.sleep(0.4))
    server = cache(workers=4)
    responses = concurrent_requests(server, '/slow', 40)
    assert len(upstream.requests_of('/slow')) == 1
    assert {(status, body) for status, body, _ in responses} == {(200, b'/slow 1')} and len(responses) == 40


def test_killed_worker_releases_the_fill_lock(cache, upstream):
    halted = threading.Event()
    upstream.answers['/big'] = halting(upstream, '/big', halted)
    server = cache(workers=1, location={'proxy_cache_lock_age': '1h', 'proxy_cache_lock_timeout': '1h'})
    start_download(server, '/big')
    wait_for(lambda: temporary(server), 'it is being stored')
    os.kill(server.workers()[0], signal.SIGKILL)
    halted.set()
    wait_for(lambda: server.workers(), 'another worker')
    assert fetched(server, '/big').body == WHOLE


def test_disconnection_releases_the_fill_lock(cache, upstream):
    halted = threading.Event()
    upstream.answers['/big'] = halting(upstream, '/big', halted)
    server = cache()
    client = server.connect()
    client.send('GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n')
    wait_for(lambda: len(upstream.requests_of('/big')) == 1, 'the first request')
    thread, got = start_download(server, '/big')
    client.stream.close()
    halted.set()
    wait_for(lambda: bytes(got).endswith(WHOLE), 'the second has it')
    server.stop(check=False)
    thread.join(20)


def test_max_size_limits_the_directory(cache, upstream):
    server = cache(max_size='1m', manager_sleep='10ms')

    def respond(peer):
        return upstream.send_response(peer, 'Cache-Control: max-age=600', BIG)
    for number in range(12):
        upstream.answers[f'/{number}'] = respond
        assert fetched(server, f'/{number}').body == BIG
    wait_until_stored(server, '/11')
    wait_for(lambda: len(names(server)) <= 3, 'the oldest are gone')
    assert is_stored(server, '/11')


def test_unwritable_directory_stores_nothing(cache, upstream):
    upstream.answers['/a'] = 'Cache-Control: max-age=600'
    server = cache()
    os.rename(server.cache, str(server.cache) + '-away')
    for path, _, _ in os.walk(str(server.cache) + '-away'):
        os.rmdir(path)
    for number in range(3):
        assert fetched(server, '/a').body == f'/a {number + 1}'.encode()
    wait_for(lambda: server.errors().count('without being stored') == 1, 'one log line')


@pytest.mark.parametrize('secret', [False, True])
def test_hit_is_sent_by_sendfile(cache, upstream, secret, tls_transport):
    server = cache(location={'proxy_cache_key': '$request_uri'})        # http and https have the same cache key
    (server.cache.parent / 'file.bin').write_bytes(WHOLE)

    def respond(peer):
        return upstream.send_response(peer, 'Cache-Control: max-age=600', WHOLE)
    upstream.answers['/big'] = respond
    fetched(server, '/big')
    wait_until_stored(server, '/big')
    client = http1.connect(server.secret, 'user') if secret else server.connect()
    for path, state in (('/file.bin', None), ('/big', HIT)):
        response = fetch(client, path)
        assert response.body == WHOLE and response.headers.get('x-cache') == state
    fetch(client, '/after')
    client.close()
    server.access_for('/after')         # there is one worker, so the log lines of all earlier requests have been written
    file, hit = server.access_for('/file.bin')[-1], server.access_for('/big')[-1]
    for field in ('tls_path', 'tls_path_reason', 'body_bytes_sent'):
        assert hit[field] == file[field], field
    # Of a mapping the last page is copied: the body of a file in the cache begins within a page.
    copied = abs(int(hit['bytes_zero_copy']) - int(file['bytes_zero_copy']))
    assert copied == 0 if http1.FILE_PATH == 'sendfile' else copied < mmap.PAGESIZE
    secret_path = {'user': 'user', 'ktls': f'ktls-{http1.FILE_PATH}'}[tls_transport]
    assert hit['tls_path'] == (secret_path if secret else f'plain-{http1.FILE_PATH}')
