"""The site of the cache tests: a scripted upstream server, and the locations that cache its responses."""
import email.utils
import os
import threading
import time

import pytest
from kit import server as server_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream

BIG = bytes(range(256)) * 1200     # more than one write


def date(offset=0):
    return email.utils.formatdate(time.time() + offset, usegmt=True)


HIT, MISS, EXPIRED, STALE, UPDATING, REVALIDATED = 'HIT', 'MISS', 'EXPIRED', 'STALE', 'UPDATING', 'REVALIDATED'


def filled(text):
    """Replaces {+5} by the date in five seconds."""
    while '{' in text:
        front, rest = text.split('{', 1)
        offset, rest = rest.split('}', 1)
        text = front + date(int(offset)) + rest
    return text


def lines(text):
    return ''.join(f'{line}\r\n' for line in filled(text).split('\n') if line)


class Scripted(Upstream):
    """Responds according to `answers`, by path: header lines, or a function of the peer. Each body has the number of the request."""

    def __init__(self, **options):
        self.answers = {}
        self.other_answer = ''
        super().__init__(**options)
        self.scripts = self

    def get(self, path, default):
        return self.respond

    def requests_of(self, path):
        return [request for request in self.requests if request.target == path]

    def respond(self, peer):
        peer.read_body()
        path = peer.request.target
        answer = self.answers.get(path, self.other_answer)
        if callable(answer):
            return answer(peer)
        return self.send_response(peer, answer, f'{path} {len(self.requests_of(path))}'.encode())

    def send_response(self, peer, answer, body):
        status = '200'
        if answer.startswith('Status: '):
            status, _, answer = answer[8:].partition('\n')
        head = f'HTTP/1.1 {status} X\r\n{lines(answer)}Content-Length: {len(body)}\r\n\r\n'.encode()
        peer.send(head if peer.request.method == 'HEAD' or status == '304' else head + body)
        return True


@pytest.fixture(scope='module')
def upstream():
    made = Scripted()
    yield made
    made.stop()
    assert not made.faults, made.faults


def cached_site(launch, loop, transport, new_directory, upstream, workers=1, **extra):
    folder = new_directory()
    os.chmod(folder, 0o755)
    to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_cache': 'one', 'add_header': ['X-Cache $upstream_cache_status always', 'X-Upstream "$upstream_addr $upstream_status" always']}
    location = {
        '/': to,
        '/valid/': {**to, 'proxy_cache_valid': ['60s', '404 60s', '410 0']},
        '/any/': {**to, 'proxy_cache_valid': 'any 60s'},
        '/twice/': {**to, 'proxy_cache_min_uses': 3},
        '/bypass/': {**to, 'proxy_cache_bypass': ['$http_x_bypass', '$cookie_nocache'], 'proxy_no_cache': '$http_x_never'},
        '/ignore/': {**to, 'proxy_ignore_headers': ['Cache-Control', 'Set-Cookie', 'Vary'], 'proxy_cache_valid': '60s'},
        '/deaf/': {**to, 'proxy_cache_obey_requests': False},
        '/stale/': {**to, 'proxy_cache_use_stale': ['error', 'timeout', 'http_500', 'http_404'], 'proxy_read_timeout': '300ms'},
        '/revalidate/': {**to, 'proxy_cache_revalidate': True},
        '/lock/': {**to, 'proxy_cache_lock': True, 'proxy_cache_lock_timeout': '1h', 'proxy_cache_lock_age': '1h'},
        '/hasty/': {**to, 'proxy_cache_lock': True, 'proxy_cache_lock_timeout': '200ms'},
        '/background/': {**to, 'proxy_cache_background_update': True, 'proxy_cache_use_stale': 'updating'},
        '/updating/': {**to, 'proxy_cache_use_stale': 'updating'},
        '/posts/': {**to, 'proxy_cache_methods': 'POST', 'proxy_cache_key': '$request_method $uri'},
        '/purge/': {**to, 'proxy_cache_purge': 'PURGE 127.0.0.1'},
        '/guarded/': {**to, 'proxy_cache_purge': 'PURGE 10.0.0.0/8'},
        '/turned/': {**to, 'when': {'$http_x_turn': {'rewrite': '^/turned/(.*)$ /other/$1 break'}}},
        '/trusted/': {**to, 'set_real_ip_from': '127.0.0.1'},
        '/headless/': {**to, 'proxy_cache_convert_head': False},
        '/gone/': {**to, 'proxy_pass': 'http://127.0.0.1:1'},
        '/key/': {**to, 'proxy_cache_key': 'mine $uri'},
    }
    http = {'proxy_cache_path': {'path': str(folder / 'cache'), 'keys_zone': 'one:1m', **extra}}
    return launch(loop, transport, server={'location': location}, http=http, main={'worker_processes': workers}), folder / 'cache'


@pytest.fixture(scope='module')
def sites():
    return {}


@pytest.fixture
def served(launch, loop, transport, new_directory, upstream, sites):
    if (loop, transport) not in sites:
        sites[loop, transport] = cached_site(launch, loop, transport, new_directory, upstream)
    return sites[loop, transport][0]


@pytest.fixture
def client(served):
    made = served.connect(promoted=False)
    yield made
    made.close()


@pytest.fixture
def path(request, loop, transport):
    """path() -> a path that no other test uses."""
    numbers = iter(range(1000))

    def make(prefix='/'):
        return f'{prefix}{loop}-{transport}-{abs(hash(request.node.name))}-{next(numbers)}'
    return make


def fetch(client, path, fields='', method='GET'):
    client.send(f'{method} {path} HTTP/1.1\r\nHost: localhost\r\n{lines(fields)}\r\n')
    return client.read(method)


def pipelined(client, *requests):
    """The responses to requests that are sent at once."""
    client.send(''.join(f'{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n' for method, path in requests))
    return [client.read(method) for method, _ in requests]


def wait_for_storing(seconds):
    """Waits, so that the server can store a response: a client cannot observe that it was not stored, or that it needs validation."""
    time.sleep(seconds * server_kit.PATIENCE)


def stored(client, path, fields=''):
    """Waits until the response is stored, which may happen after it was sent; only-if-cached prevents requests to the upstream server."""
    wait_for(lambda: fetch(client, path, fields + '\nCache-Control: only-if-cached').headers.get('x-cache') in (HIT, STALE, UPDATING),
             f'{path} is stored')


def concurrent_requests(served, target, count=20, received=lambda number: None):
    """Sends `count` requests at once; returns status, body and cache status of each. Calls `received` with the number of responses so far."""
    responses = []

    def one():
        client = served.connect(promoted=False)
        response = fetch(client, target)
        responses.append((response.status, response.body, response.headers.get('x-cache')))
        received(len(responses))
        client.close()
    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return responses


def delayed(upstream, target, wait, answer='Cache-Control: max-age=60'):
    """A script that responds when `wait` returns."""
    def respond(peer):
        wait()
        return upstream.send_response(peer, answer, f'{target} {len(upstream.requests_of(target))}'.encode())
    return respond
