"""The proxy cache with a scripted upstream server: storing, freshness, and reuse of responses (RFC 9111, RFC 5861)."""
import email.utils
import os
import subprocess
import threading
import time

import pytest
from kit import http2, server as server_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream

BIG = bytes(range(256)) * 1200     # more than one write


def date(offset=0):
    return email.utils.formatdate(time.time() + offset, usegmt=True)


HIT, MISS, EXPIRED, STALE, UPDATING, REVALIDATED = 'HIT', 'MISS', 'EXPIRED', 'STALE', 'UPDATING', 'REVALIDATED'

# Fields of the first request, the response (status by `Status:`), fields of the second request, and the cache status of the second
# response. {+5} and {-5} are dates this many seconds from now. Each response has a distinct body: a HIT has the body of the first one, all
# others that of the second.
ROWS = [
    # RFC 9111 3: storing
    ('', 'Cache-Control: max-age=60', '', HIT),
    ('', 'Cache-Control: s-maxage=60', '', HIT),
    ('', 'Cache-Control: max-age=0, s-maxage=60', '', HIT),
    ('', 'Cache-Control: max-age=60, s-maxage=0', '', MISS),
    ('', 'Cache-Control: public, max-age=60', '', HIT),
    ('', 'Cache-Control: max-age="60"', '', HIT),
    ('', 'cache-control: MAX-AGE=60', '', HIT),
    ('', 'Cache-Control: extension="max-age=0", max-age=60', '', HIT),
    ('', 'Cache-Control: max-age=99999999999999999999', '', HIT),
    ('', 'Cache-Control: max-age=60, extension="x, no-store', '', MISS),
    ('', 'Cache-Control: max-age=60\nCache-Control: extension="x', '', MISS),
    ('', 'Cache-Control: max-age=60; no-store', '', MISS),
    ('', 'Cache-Control: max-age=60, extension="x, no-store"', '', HIT),
    ('', 'Cache-Control: public', '', MISS),
    ('', '', '', MISS),
    ('', 'ETag: "a"', '', MISS),
    ('', 'Last-Modified: {-1000000}', '', MISS),
    ('', 'Cache-Control: no-store', '', MISS),
    ('', 'Cache-Control: no-store, max-age=60', '', MISS),
    ('', 'Cache-Control: max-age=60\nCache-Control: no-store', '', MISS),
    ('', 'Cache-Control: private, max-age=60', '', MISS),
    ('', 'Cache-Control: private="X-Secret", max-age=60', '', MISS),
    ('', 'Cache-Control: no-cache, max-age=60', '', MISS),
    ('', 'Cache-Control: no-cache="Set-Cookie", max-age=60', '', MISS),
    ('', 'Cache-Control: no-store, must-understand, max-age=60', '', HIT),
    ('', 'Status: 299\nCache-Control: no-store, must-understand, max-age=60', '', MISS),
    ('', 'Status: 299\nCache-Control: max-age=60', '', HIT),
    ('', 'Set-Cookie: a=b\nCache-Control: max-age=60', '', MISS),
    ('Cache-Control: no-store', 'Cache-Control: max-age=60', '', MISS),
    ('Authorization: Basic eDp5', 'Cache-Control: max-age=60', '', MISS),
    ('Authorization: Basic eDp5', 'Cache-Control: max-age=60, public', '', HIT),
    ('Authorization: Basic eDp5', 'Cache-Control: s-maxage=60', '', HIT),
    ('Authorization: Basic eDp5', 'Cache-Control: must-revalidate, max-age=60', '', HIT),
    ('Authorization: Basic eDp5', 'Cache-Control: proxy-revalidate, max-age=60', '', MISS),
    ('', 'Status: 404\nCache-Control: max-age=60', '', HIT),
    ('', 'Status: 301\nLocation: /x\nCache-Control: max-age=60', '', HIT),
    ('', 'Status: 503\nCache-Control: max-age=60', '', HIT),
    ('', 'Status: 206\nContent-Range: bytes 0-5/100\nCache-Control: max-age=60', '', MISS),
    # 4.2.1: freshness lifetime
    ('', 'Expires: {+60}', '', HIT),
    ('', 'Expires: {+60}\nDate: {+0}', '', HIT),
    ('', 'Expires: sat, 01 jan 2050 00:00:00 gmt', '', HIT),
    ('', 'Expires: SATURDAY, 01-JAN-50 00:00:00 GMT', '', HIT),
    ('', 'Expires: {-60}', '', MISS),
    ('', 'Expires: 0', '', MISS),
    ('', 'Expires: never', '', MISS),
    ('', 'Expires: {-60}\nCache-Control: max-age=60', '', HIT),
    ('', 'Expires: {+60}\nCache-Control: max-age=0', '', MISS),
    ('', 'Expires: {+60}\nExpires: {-60}', '', MISS),
    ('', 'Cache-Control: max-age=60, max-age=5', '', MISS),
    ('', 'Cache-Control: max-age=60, max-age=60', '', HIT),
    ('', 'Cache-Control: max-age', '', MISS),
    ('', 'Cache-Control: max-age=-1', '', MISS),
    ('', 'Cache-Control: max-age=60s', '', MISS),
    ('', 'Cache-Control: max-age=0x60', '', MISS),
    # 4.2.3: age
    ('', 'Cache-Control: max-age=60\nAge: 30', '', HIT),
    ('', 'Cache-Control: max-age=60\nAge: 60', '', MISS),
    ('', 'Cache-Control: max-age=60\nAge: 5, 100', '', HIT),
    ('', 'Cache-Control: max-age=60\nAge: 100, 5', '', MISS),
    ('', 'Cache-Control: max-age=60\nAge: x', '', HIT),
    ('', 'Cache-Control: max-age=60\nAge: 99999999999999999999', '', MISS),
    ('', 'Cache-Control: max-age=60\nDate: {-100}', '', MISS),
    ('', 'Cache-Control: max-age=60\nDate: {-10}', '', HIT),
    ('', 'Cache-Control: max-age=60\nDate: {+100}', '', HIT),
    ('', 'Cache-Control: max-age=60\nDate: yesterday', '', HIT),
    # 4.1: Vary
    ('', 'Cache-Control: max-age=60\nVary: *', '', MISS),
    ('', 'Cache-Control: max-age=60\nVary: Accept, *', '', MISS),
    ('', 'Cache-Control: max-age=60\nVary: Accept\nVary: *', '', MISS),
    ('', 'Cache-Control: max-age=60\nVary: Accept', '', HIT),
    ('Accept: a', 'Cache-Control: max-age=60\nVary: Accept', 'Accept: a', HIT),
    ('Accept: a', 'Cache-Control: max-age=60\nVary: accept', 'ACCEPT: a', HIT),
    ('Accept: a', 'Cache-Control: max-age=60\nVary: Accept', 'Accept: b', MISS),
    ('Accept: a', 'Cache-Control: max-age=60\nVary: Accept', '', MISS),
    ('Accept: a', 'Cache-Control: max-age=60', 'Accept: b', HIT),
    ('Accept: a, b', 'Cache-Control: max-age=60\nVary: Accept', 'Accept: a\nAccept: b', HIT),
    ('Accept: a\nX-Y: 1', 'Cache-Control: max-age=60\nVary: X-Y\nVary: Accept', 'X-Y: 1\nAccept: a', HIT),
    ('Accept: a\nX-Y: 1', 'Cache-Control: max-age=60\nVary: X-Y, Accept', 'X-Y: 2\nAccept: a', MISS),
    # 5.2.1: request directives
    ('', 'Cache-Control: max-age=60', 'Cache-Control: no-cache', EXPIRED),
    ('', 'Cache-Control: max-age=60', 'Pragma: no-cache', EXPIRED),
    ('', 'Cache-Control: max-age=60', 'Pragma: no-cache\nCache-Control: max-age=100', HIT),
    ('', 'Cache-Control: max-age=60', 'Cache-Control: max-age=0', EXPIRED),
    ('', 'Cache-Control: max-age=60\nAge: 30', 'Cache-Control: max-age=20', EXPIRED),
    ('', 'Cache-Control: max-age=60\nAge: 30', 'Cache-Control: max-age=40', HIT),
    ('', 'Cache-Control: max-age=60\nAge: 30', 'Cache-Control: min-fresh=40', EXPIRED),
    ('', 'Cache-Control: max-age=60\nAge: 30', 'Cache-Control: min-fresh=10', HIT),
    ('', 'Cache-Control: max-age=60', 'Cache-Control: only-if-cached', HIT),
    ('', 'Cache-Control: no-store', 'Cache-Control: only-if-cached', 504),
    # 4.2.4 and RFC 5861: stale responses (stored because they permit stale use)
    ('', 'Cache-Control: max-age=60, stale-if-error=100\nAge: 70', '', EXPIRED),
    ('', 'Cache-Control: max-age=60, stale-if-error=100\nAge: 70', 'Cache-Control: max-stale', STALE),
    ('', 'Cache-Control: max-age=60, stale-if-error=100\nAge: 70', 'Cache-Control: max-stale=30', STALE),
    ('', 'Cache-Control: max-age=60, stale-if-error=100\nAge: 70', 'Cache-Control: max-stale=5', EXPIRED),
    ('', 'Cache-Control: max-age=60, stale-if-error=100, must-revalidate\nAge: 70', 'Cache-Control: max-stale', EXPIRED),
    ('', 'Cache-Control: max-age=60, stale-if-error=100, proxy-revalidate\nAge: 70', 'Cache-Control: max-stale', EXPIRED),
    # X-Accel-Expires overrides the other fields
    ('', 'X-Accel-Expires: 60', '', HIT),
    ('', 'X-Accel-Expires: 60\nCache-Control: max-age=0', '', HIT),
    ('', 'X-Accel-Expires: 0\nCache-Control: max-age=60', '', MISS),
    ('', 'X-Accel-Expires: @99999999999', '', HIT),
    ('', 'X-Accel-Expires: @1', '', MISS),
    ('', 'Cache-Control: no-store\nX-Accel-Expires: 60', '', HIT),
    ('', 'X-Accel-Expires: 60\nCache-Control: private, no-cache\nExpires: 0', '', HIT),
    ('', 'Expires: {-60}\nX-Accel-Expires: 60', '', HIT),
    ('', 'X-Accel-Expires: 60\nCache-Control: max-age=1\nAge: 5', '', HIT),
    ('', 'X-Accel-Expires: 60\nSet-Cookie: a=b', '', MISS),
    ('', 'X-Accel-Expires: 60\nVary: *', '', MISS),
    ('', 'X-Accel-Expires: soon\nCache-Control: max-age=60', '', HIT),
    ('', 'X-Accel-Expires: soon\nCache-Control: no-store', '', MISS),
    ('', 'X-Accel-Expires: -1\nCache-Control: private', '', MISS),
    ('', 'X-Accel-Expires: @soon\nCache-Control: no-store', '', MISS),
]


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
        '/lock/': {**to, 'proxy_cache_lock': True},
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
def is_stored(served, sites, loop, transport):
    """is_stored(body) -> whether a completely stored file begins with `body`."""
    def look(body):
        for folder, _, names in os.walk(sites[loop, transport][1]):
            for name in names:
                try:
                    with open(os.path.join(folder, name), 'rb') as stream:
                        if not name.endswith('.tmp') and stream.read(len(body)) == body:
                            return True
                except FileNotFoundError:
                    continue
        return False
    return look


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


def wait_for_storing(seconds):
    """Waits, so that the server can store a response: a client cannot observe that it was not stored, or that it needs validation."""
    time.sleep(seconds * server_kit.PATIENCE)


MAX_STALE = 'Cache-Control: max-stale'


def stored(client, path, fields=''):
    """Waits until the response is stored, which may happen after it was sent; only-if-cached prevents requests to the upstream server."""
    wait_for(lambda: fetch(client, path, fields + '\nCache-Control: only-if-cached').headers.get('x-cache') in (HIT, STALE, UPDATING),
             f'{path} is stored')


@pytest.mark.parametrize('number', range(len(ROWS)))
def test_storing_and_reuse_rules(client, upstream, is_stored, loop, transport, number):
    first, answer, second, expected = ROWS[number]
    path = f'/row-{loop}-{transport}-{number}'
    upstream.answers[path] = answer
    before = fetch(client, path, first)
    assert before.headers.get('x-cache') == MISS and before.body == f'{path} 1'.encode()
    if expected in (HIT, STALE, EXPIRED) or second.startswith('Accept'):
        wait_for(lambda: is_stored(before.body), 'it is stored')
    wait_for_storing(0.02)
    after = fetch(client, path, second)
    if expected == 504:
        assert after.status == 504 and len(upstream.requests_of(path)) == 1
        return
    assert after.headers.get('x-cache') == expected, (first, answer, second, after)
    from_store = expected in (HIT, STALE)
    assert after.body == f'{path} {1 if from_store else 2}'.encode()
    assert len(upstream.requests_of(path)) == (1 if from_store else 2)
    assert ('age' in after.headers) == (from_store or 'Age:' in answer)
    assert after.status == before.status


@pytest.mark.parametrize('path, output', [
    ('/tmp/x', 'takes a mapping'),
    ({'path': '/tmp/x'}, 'requires path and keys_zone'),
    ({'keys_zone': 'one:1m'}, 'requires path and keys_zone'),
    ({'path': '/tmp/x', 'keys_zone': 'one'}, 'keys_zone takes NAME:SIZE'),
    ({'path': '/tmp/x', 'keys_zone': ':1m'}, 'keys_zone takes NAME:SIZE'),
    ({'path': '/tmp/x', 'keys_zone': 'one:1k'}, '32k to 64g'),
    ({'path': '/tmp/x', 'keys_zone': 'one:1m', 'levels': '1:3'}, 'levels takes one to three digits'),
    ({'path': '/tmp/x', 'keys_zone': 'one:1m', 'levels': '1:1:1:1'}, 'levels takes one to three digits'),
    ({'path': '/tmp/x', 'keys_zone': 'one:1m', 'size': '1g'}, 'size'),
    ([{'path': '/tmp/x', 'keys_zone': 'one:1m'}, {'path': '/tmp/y', 'keys_zone': 'one:1m'}], 'already used by another cache'),
])
def test_invalid_cache_paths_are_rejected(tmp_path, path, output):
    made = server_kit.Server(tmp_path, [{'listen': '127.0.0.1:1'}], http={'proxy_cache_path': path})
    answer = subprocess.run([server_kit.SLUICE, '-t', '-c', made.config_path], capture_output=True, text=True, check=False)
    assert answer.returncode == 1 and output in answer.stderr and '.yaml:' in answer.stderr


def test_unopenable_cache_directory_is_a_start_error(tmp_path):
    made = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{server_kit.free_port()}'}],
                             http={'proxy_cache_path': {'path': str(tmp_path / 'no' / 'such'), 'keys_zone': 'one:1m'}})
    answer = subprocess.run([server_kit.SLUICE, '-c', made.config_path], capture_output=True, text=True, check=False)
    assert answer.returncode == 1 and 'cannot be opened (2: No such file or directory)' in answer.stderr + made.errors()


def test_hit_has_age_and_stored_fields(client, upstream, path):
    target = path()
    upstream.answers[target] = 'Cache-Control: max-age=60\nAge: 7\nX-Powered-By: y\nX-Accel-Expires: 60\nConnection: X-Hop\nX-Hop: 1\nContent-Type: text/x'
    fetch(client, target)
    stored(client, target)
    response = fetch(client, target)
    assert 7 <= int(response.headers['age']) <= 9
    assert response.headers['content-type'] == 'text/x' and response.headers['x-powered-by'] == 'y'
    assert 'x-hop' not in response.headers and 'x-accel-expires' not in response.headers
    assert [name for name, _ in response.lines].count('Age') == 1


@pytest.mark.parametrize('size', [0, 1, 16384, 16385, len(BIG)])
def test_bodies_of_each_size_are_stored(client, upstream, path, size):
    target = path()

    def respond(peer):
        return upstream.send_response(peer, 'Cache-Control: max-age=60', BIG[:size])
    upstream.answers[target] = respond
    assert fetch(client, target).body == BIG[:size]
    stored(client, target)
    for _ in range(3):
        response = fetch(client, target)
        assert response.headers['x-cache'] == HIT and response.body == BIG[:size]
    assert len(upstream.requests_of(target)) == 1


@pytest.mark.parametrize('window', [1000, 65535])
def test_http2_ranges_during_storing(served, upstream, path, window):
    """The upstream server pauses inside and after each range: only the bytes of the range are sent. Several clients read at a time."""
    middle = 150000
    spans = [(0, middle - 1), (0, middle + 2), (5, 5), (middle - 3, middle + 3), (middle - 20000, middle - 10001), (len(BIG) - 3, len(BIG) - 1)]
    targets = [path() for _ in spans]

    def respond(peer):
        peer.send(f'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {len(BIG)}\r\n\r\n')
        for at in range(0, len(BIG), 10000):
            peer.send(BIG[at:at + 10000])
            time.sleep(0.002)       # the server has sent what it received when the next bytes come
        return True
    upstream.answers.update({target: respond for target in targets})
    client = http2.connect(served.port, served.transport, 60 * server_kit.PATIENCE, settings={http2.h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
    streams = [client.request(target, headers=[('range', f'bytes={first}-{last}')]) for target, (first, last) in zip(targets, spans)]
    for answer, (first, last) in zip(client.wait(*streams), spans):
        assert answer.reset is None and answer.status == 206 and answer.headers['x-cache'] == MISS
        assert answer.headers['content-range'] == f'bytes {first}-{last}/{len(BIG)}' and bytes(answer.body) == BIG[first:last + 1]
    client.close()
    with_http1 = served.connect(promoted=False)
    for target in targets:
        stored(with_http1, target)
        assert fetch(with_http1, target).body == BIG
    with_http1.close()


def test_stored_chunked_body_has_content_length(client, upstream, path):
    target = path()

    def respond(peer):
        peer.send('HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n')
        for piece in range(0, len(BIG), 7000):
            part = BIG[piece:piece + 7000]
            peer.send(b'%x\r\n%s\r\n' % (len(part), part))
        peer.send('0\r\n\r\n')
        return True
    upstream.answers[target] = respond
    assert fetch(client, target).body == BIG
    stored(client, target)
    response = fetch(client, target)
    assert response.headers['content-length'] == str(len(BIG)) and response.body == BIG


def test_incomplete_responses_are_not_stored(served, upstream, path):
    target = path()

    def respond(peer):
        if len(upstream.requests_of(target)) == 1:
            peer.send(f'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {len(BIG)}\r\n\r\n')
            peer.send(BIG[:200000])
            return False
        return upstream.send_response(peer, 'Cache-Control: max-age=60', BIG)
    upstream.answers[target] = respond
    client = served.connect(promoted=False)
    with pytest.raises(EOFError):
        fetch(client, target)
    client.close()
    client = served.connect(promoted=False)
    response = fetch(client, target)
    assert response.headers['x-cache'] == MISS and response.body == BIG
    client.close()


def test_head_is_answered_from_a_stored_get(client, upstream, path):
    target = path('/headless/')
    upstream.answers[target] = 'Cache-Control: max-age=60'
    assert fetch(client, target, method='HEAD').headers['x-cache'] == MISS
    assert fetch(client, target, method='HEAD').headers['x-cache'] == MISS
    first = fetch(client, target)
    stored(client, target)
    response = fetch(client, target, method='HEAD')
    assert response.headers['x-cache'] == HIT and response.headers['content-length'] == str(len(first.body))
    assert [request.method for request in upstream.requests_of(target)] == ['HEAD', 'HEAD', 'GET']


def test_head_is_converted_to_get(client, upstream, path):
    """The complete body is stored although the client receives none of it; the upstream variables are set."""
    target = path()
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60\nETag: "v1"\nX-Echo: this', BIG)
    first = fetch(client, target, 'Range: bytes=0-9', method='HEAD')
    assert (first.status, first.headers['x-cache'], first.headers['content-length'], first.headers['x-echo']) == (200, MISS, str(len(BIG)), 'this')
    stored(client, target)
    again = fetch(client, target)
    assert again.headers['x-cache'] == HIT and again.body == BIG
    assert fetch(client, target, 'If-None-Match: "v1"', method='HEAD').status == 304
    assert [(request.method, request.header('range')) for request in upstream.requests_of(target)] == [('GET', None)]
    assert first.headers['x-upstream'] == f'127.0.0.1:{upstream.port} 200'


def test_head_of_an_uncacheable_response(client, upstream, path):
    target = path()
    for answer, status in [('', 200), ('Status: 404\nCache-Control: no-store', 404), ('Status: 304\nETag: "v1"', 304), ('Status: 503', 503)]:
        upstream.answers[target] = answer
        response = fetch(client, target, method='HEAD')
        assert (response.status, response.headers['x-cache']) == (status, MISS)
    assert len(upstream.requests_of(target)) == 4 and fetch(client, target, 'Cache-Control: only-if-cached', method='HEAD').status == 504


def test_head_of_a_stale_response(client, upstream, path):
    target = path('/revalidate/')
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=0\nETag: "v1"' if not peer.request.header('if-none-match') else
                                                          'Status: 304\nCache-Control: max-age=60', b'body')
    assert fetch(client, target, method='HEAD').headers['x-cache'] == MISS
    wait_for(lambda: fetch(client, target, method='HEAD').headers['x-cache'] in ('REVALIDATED', HIT), 'it was stored')
    assert fetch(client, target).body == b'body'
    assert {request.method for request in upstream.requests_of(target)} == {'GET'}


def test_head_counts_once(client, upstream, path):
    target = path('/twice/')
    upstream.answers[target] = 'Cache-Control: max-age=60'
    for _ in range(2):
        assert fetch(client, target, method='HEAD').headers['x-cache'] == MISS
    assert fetch(client, target, 'Cache-Control: only-if-cached').status == 504
    assert fetch(client, target, method='HEAD').headers['x-cache'] == MISS
    stored(client, target)


def test_head_of_an_unreachable_server_is_502(client, served):
    assert fetch(client, '/gone/', method='HEAD').status == 502
    assert fetch(client, '/gone/again', method='HEAD').status == 502


def test_ranges_and_conditions_use_the_stored_response(client, upstream, path):
    target = path()

    def respond(peer):
        assert not peer.request.all('range') and not peer.request.all('if-none-match')
        return upstream.send_response(peer, f'Cache-Control: max-age=60\nETag: "v1"\nContent-Type: text/plain\nLast-Modified: {date(-100000)}', BIG)
    upstream.answers[target] = respond
    first = fetch(client, target, 'Range: bytes=0-9\nIf-None-Match: "v2"')
    assert (first.status, first.body) == (206, BIG[:10])
    stored(client, target)
    part = fetch(client, target, 'Range: bytes=1000-1999')
    assert part.status == 206 and part.body == BIG[1000:2000] and part.headers['content-range'] == f'bytes 1000-1999/{len(BIG)}'
    many = fetch(client, target, 'Range: bytes=0-1,5-6')
    assert many.status == 206 and many.headers['content-type'].startswith('multipart/byteranges; boundary=')
    assert many.body.count(b'Content-Type: text/plain\r\n') == 2
    assert fetch(client, target, f'Range: bytes={len(BIG)}-').status == 416
    assert fetch(client, target, 'Range: bytes=0-9\nIf-Range: "v2"').body == BIG
    same = fetch(client, target, 'If-None-Match: "v1"')
    assert same.status == 304 and same.headers['etag'] == '"v1"' and 'age' in same.headers and 'content-type' not in same.headers
    assert fetch(client, target, f'If-Modified-Since: {date()}').status == 304
    assert fetch(client, target, 'If-None-Match: "v2"').status == 200
    assert len(upstream.requests_of(target)) == 1


def test_vary_variants_are_stored_separately(client, upstream, path):
    target = path()
    upstream.answers[target] = 'Cache-Control: max-age=60\nVary: Accept-Language'
    bodies = {}
    for language in ('de', 'en', 'fr'):
        bodies[language] = fetch(client, target, f'Accept-Language: {language}').body
        stored(client, target, f'Accept-Language: {language}')
    assert len(set(bodies.values())) == 3 and len(upstream.requests_of(target)) == 3
    for language, body in bodies.items():
        response = fetch(client, target, f'Accept-Language: {language}')
        assert response.headers['x-cache'] == HIT and response.body == body


@pytest.mark.parametrize('method', ['POST', 'PUT', 'DELETE', 'PATCH', 'UNKNOWN'])
def test_unsafe_method_invalidates_the_uri(client, upstream, path, method):
    target, other, foreign = path(), path(), path()
    for one in (target, other, foreign):
        upstream.answers[one] = 'Cache-Control: max-age=60\nVary: X-V'
        for value in '12':
            fetch(client, one, f'X-V: {value}')
            stored(client, one, f'X-V: {value}')

    def respond(peer):
        if peer.request.method == 'GET':
            return upstream.send_response(peer, 'Cache-Control: max-age=60', b'again')
        return upstream.send_response(peer, f'Status: {"500" if peer.request.header("x-fail") else "200"}\nContent-Location: http://localhost{other}\n'
                             f'Location: http://elsewhere{foreign}', b'done')
    upstream.answers[target] = respond
    fetch(client, target, 'X-Fail: 1', method=method)
    assert fetch(client, target, 'X-V: 1').headers['x-cache'] == HIT
    fetch(client, target, method=method)
    for value in '12':
        assert fetch(client, other, f'X-V: {value}').headers['x-cache'] == MISS
    assert fetch(client, target, 'X-V: 1').headers['x-cache'] == MISS
    assert fetch(client, foreign, 'X-V: 1').headers['x-cache'] == HIT


def test_proxy_cache_valid_sets_freshness(client, upstream, path):
    for prefix, answer, saved in (('/valid/', '', True), ('/valid/', 'Status: 404', True), ('/valid/', 'Status: 500', False),
                                 ('/valid/', 'Status: 410', False), ('/any/', 'Status: 500', True),
                                 ('/valid/', 'Cache-Control: max-age=0', False), ('/valid/', 'Age: 1000', True)):
        target = path(prefix)
        upstream.answers[target] = answer
        fetch(client, target)
        if saved:
            stored(client, target)
        else:
            wait_for_storing(0.05)
        assert (fetch(client, target).headers['x-cache'] == HIT) == saved, (prefix, answer)


def test_proxy_cache_min_uses_delays_storing(client, upstream, path):
    target = path('/twice/')
    upstream.answers[target] = 'Cache-Control: max-age=60'
    for _ in range(3):
        assert fetch(client, target).headers['x-cache'] == MISS
    stored(client, target)
    assert len(upstream.requests_of(target)) == 3


def test_proxy_cache_bypass_and_proxy_no_cache(client, upstream, path):
    target = path('/bypass/')
    upstream.answers[target] = 'Cache-Control: max-age=60'
    fetch(client, target, 'X-Never: 1')
    wait_for_storing(0.05)
    assert fetch(client, target).headers['x-cache'] == MISS
    stored(client, target)
    assert fetch(client, target, 'X-Bypass: 0').headers['x-cache'] == HIT
    newer = fetch(client, target, 'X-Bypass: 1')
    assert newer.headers['x-cache'] == 'BYPASS'
    wait_for(lambda: fetch(client, target).body == newer.body, 'what was fetched past the cache is kept')
    assert fetch(client, target, 'Cookie: nocache=yes').headers['x-cache'] == 'BYPASS'


def test_proxy_ignore_headers_applies_to_storing(client, upstream, path):
    target = path('/ignore/')
    upstream.answers[target] = 'Cache-Control: no-store, private\nSet-Cookie: a=b\nVary: *'
    fetch(client, target)
    stored(client, target)
    assert fetch(client, target).headers['set-cookie'] == 'a=b'


def test_proxy_ignore_headers_applies_to_requests(client, upstream, path):
    target = path('/deaf/')
    upstream.answers[target] = 'Cache-Control: max-age=60'
    fetch(client, target)
    stored(client, target)
    for fields in ('Cache-Control: no-cache', 'Cache-Control: max-age=0', 'Pragma: no-cache'):
        assert fetch(client, target, fields).headers['x-cache'] == HIT


def test_proxy_cache_key_selects_the_entry(client, upstream, path):
    target = path('/key/')
    upstream.answers[target + '?a'] = 'Cache-Control: max-age=60'
    fetch(client, target + '?a')
    stored(client, target + '?a')
    assert fetch(client, target + '?b').headers['x-cache'] == HIT


def test_proxy_cache_use_stale_serves_on_errors(client, upstream, path):
    for failure in ('close', 'late', 'Status: 500', 'Status: 404'):
        target = path('/stale/')
        saved = 'Cache-Control: max-age=60, stale-if-error=1\nAge: 70'

        def respond(peer, target=target, failure=failure, saved=saved):
            if len(upstream.requests_of(target)) == 1:
                return upstream.send_response(peer, saved, target.encode())
            if failure == 'late':
                return peer.at_end() and False
            return False if failure == 'close' else upstream.send_response(peer, failure, b'failed')
        upstream.answers[target] = respond
        fetch(client, target)
        stored(client, target, 'Cache-Control: max-stale')
        response = fetch(client, target)
        assert (response.status, response.body, response.headers['x-cache']) == (200, target.encode(), STALE), failure


@pytest.mark.parametrize('output, stale', [('max-age=60, stale-if-error=100', True), ('max-age=60, stale-if-error=5, stale-while-revalidate=0', False),
                                           ('max-age=60, stale-if-error=100, must-revalidate', False)])
def test_stale_if_error_needs_no_directive(client, upstream, path, output, stale):
    target = path() + str(len(output))

    def respond(peer):
        if len(upstream.requests_of(target)) == 1:
            return upstream.send_response(peer, f'Cache-Control: {output}\nAge: 70', b'kept')
        return upstream.send_response(peer, 'Status: 503', b'failed')
    upstream.answers[target] = respond
    fetch(client, target)
    if 'must-revalidate' in output:
        wait_for_storing(0.05)
    else:
        stored(client, target, MAX_STALE)
    response = fetch(client, target)
    assert (response.status, response.body) == ((200, b'kept') if stale else (503, b'failed'))


def test_status_304_updates_the_stored_response(client, upstream, path):
    target = path('/revalidate/')
    requests = []

    def respond(peer):
        if peer.request.header('if-none-match'):
            requests.append((peer.request.header('if-none-match'), peer.request.header('if-modified-since')))
            return upstream.send_response(peer, 'Status: 304\nETag: "v1"\nCache-Control: max-age=60\nX-New: 2\nContent-Type: text/y\nContent-Encoding: none', b'')
        return upstream.send_response(peer, 'Cache-Control: max-age=60\nAge: 70\nETag: "v1"\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\n'
                             'X-New: 1\nX-Old: 1\nContent-Type: text/x', BIG)
    upstream.answers[target] = respond
    fetch(client, target)
    wait_for_storing(0.05)
    response = fetch(client, target)
    assert response.headers['x-cache'] == REVALIDATED and response.status == 200 and response.body == BIG
    assert response.headers['x-new'] == '2' and response.headers['x-old'] == '1' and response.headers['content-type'] == 'text/y'
    assert requests == [('"v1"', 'Sun, 06 Nov 1994 08:49:37 GMT')]
    wait_for(lambda: fetch(client, target).headers['x-cache'] == HIT, 'it is fresh again')
    again = fetch(client, target)
    assert again.headers['x-new'] == '2' and again.body == BIG
    assert fetch(client, target, 'Cache-Control: no-cache').headers['x-cache'] == REVALIDATED
    assert fetch(client, target, 'Cache-Control: no-cache\nIf-None-Match: "v1"').status == 304


def pipelined(client, *requests):
    """The responses to requests that are sent at once."""
    client.send(''.join(f'{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n' for method, path in requests))
    return [client.read(method) for method, _ in requests]


@pytest.mark.http1('requests that wait for the response before them')
@pytest.mark.parametrize('number', range(5))
def test_pipelined_request_after_revalidation_is_a_hit(client, upstream, path, number):
    """Only the request that caused the 304 is REVALIDATED, as in nginx: the new header section is stored before its response is sent."""
    target = path('/revalidate/')
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Status: 304\nCache-Control: max-age=60' if peer.request.header('if-none-match') else
                                                          'Cache-Control: max-age=60\nAge: 70\nETag: "v1"', b'body')
    assert fetch(client, target).headers['x-cache'] == MISS
    responses = pipelined(client, *[('GET', target)] * 3)
    assert [(answer.headers['x-cache'], answer.body) for answer in responses] == [(REVALIDATED, b'body'), (HIT, b'body'), (HIT, b'body')]
    assert len(upstream.requests_of(target)) == 2


def responds_with(reason, fields='Cache-Control: max-age=60'):
    def respond(peer):
        if peer.request.header('if-none-match'):
            peer.send(f'HTTP/1.1 304 Unchanged\r\n{lines(fields)}\r\n')
        else:
            peer.send(f'HTTP/1.1 {reason}\r\n{lines(fields)}Content-Length: 4\r\n\r\nbody')
        return True
    return respond


@pytest.mark.http1('reason phrases')
@pytest.mark.parametrize('output, stored', [
    ('200 All (really) is well', 'All (really) is well'), ('404 Not here', 'Not here'), ('200 M\xfcnchen\tok', 'M\xfcnchen\tok'),
    ('200 ', 'OK'), ('200', 'OK'), ('299 Mostly', 'Mostly'), ('299', ''), ('200 ' + 'x' * 256, 'x' * 256), ('200 ' + 'x' * 257, 'OK')],
    ids=['words', 'of an error', 'other bytes', 'empty', 'none', 'of an unknown status', 'none of an unknown status', 'long', 'too long'])
def test_reason_phrase_is_stored(client, upstream, path, output, stored):
    target = path('/revalidate/')
    upstream.answers[target] = responds_with(output)
    assert fetch(client, target).headers['x-cache'] == MISS
    for method in ('GET', 'HEAD'):
        answer = fetch(client, target, method=method)
        assert (answer.headers['x-cache'], answer.reason, answer.status) == (HIT, stored, int(output[:3]))


@pytest.mark.http1('reason phrases')
def test_reason_phrase_is_used_for_its_status_only(client, upstream, path):
    target = path('/revalidate/')
    upstream.answers[target] = responds_with('200 Mine', 'Cache-Control: max-age=60\nETag: "v1"')
    fetch(client, target)
    for fields, line in (('Range: bytes=1-2', (206, 'Partial Content')), ('If-None-Match: "v1"', (304, 'Not Modified')),
                         ('Range: bytes=9-', (416, 'Range Not Satisfiable')), ('Cache-Control: no-cache', (200, 'Mine')), ('', (200, 'Mine'))):
        answer = fetch(client, target, fields)
        assert (answer.status, answer.reason) == line
    assert len(upstream.requests_of(target)) == 2


@pytest.mark.http1('requests that wait for the response before them')
@pytest.mark.parametrize('framing, body', [('Content-Length: 4', 'body'), ('Transfer-Encoding: chunked', '4\r\nbody\r\n0\r\n\r\n'),
                                           ('Content-Length: 65536', 'b' * 65536), ('Content-Length: 0', '')], ids=['short', 'chunked', 'one write', 'empty'])
def test_pipelined_request_after_head_is_a_hit(client, upstream, path, framing, body):
    """The upstream request is a GET; its body is stored before the response to HEAD is sent."""
    target = path()

    def respond(peer):
        peer.send(f'HTTP/1.1 200 Mine\r\nCache-Control: max-age=60\r\n{framing}\r\n\r\n')
        wait_for_storing(0.05)
        peer.send(body)
        return True
    upstream.answers[target] = respond
    responses = pipelined(client, ('HEAD', target), ('GET', target))
    assert [(answer.headers['x-cache'], answer.status, answer.reason) for answer in responses] == [(MISS, 200, 'Mine'), (HIT, 200, 'Mine')]
    assert len(upstream.requests_of(target)) == 1 and len(responses[1].body) == (4 if framing.endswith('chunked') else len(body))


@pytest.mark.parametrize('framing', ['Content-Length: 300000', 'Transfer-Encoding: chunked'])
def test_head_response_does_not_wait_for_the_body(client, upstream, path, framing):
    target, answered, over = path(), threading.Event(), []

    def respond(peer):
        peer.send(f'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{framing}\r\n\r\n')
        peer.send(('15f90\r\n' if 'chunked' in framing else '') + 'b' * 90000)
        over.append(answered.wait(10 * server_kit.PATIENCE))
        peer.send('\r\n0\r\n\r\n' if 'chunked' in framing else 'b' * 210000)
        return True
    upstream.answers[target] = respond
    assert fetch(client, target, method='HEAD').headers['x-cache'] == MISS
    answered.set()
    stored(client, target)
    assert over == [True] and len(fetch(client, target).body) == (90000 if 'chunked' in framing else 300000)


def test_head_is_answered_if_the_body_is_truncated(client, upstream, path):
    target = path()

    def respond(peer):
        peer.send('HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 40\r\n\r\nbody')
        return False
    upstream.answers[target] = respond
    for _ in range(2):
        answer = fetch(client, target, method='HEAD')
        assert (answer.status, answer.headers['x-cache'], answer.headers['content-length']) == (200, MISS, '40')


def test_forwarded_host_is_part_of_the_key(served, client, upstream, path):
    target = path()
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60', peer.request.header('x-forwarded-host').encode())

    def fetch_with_session(host):
        client.send(f'GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n')
        return client.read('GET')
    for host in ('evil.example', 'localhost:81', 'localhost'):
        first = fetch_with_session(host)
        assert (first.headers['x-cache'], first.body) == (MISS, host.encode())
    client.send(f'GET http://localhost:82{target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.read('GET').body == b'localhost:82'
    stored(client, target)
    assert fetch(client, target).body == b'localhost'


@pytest.mark.parametrize('name', ['X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Port'])
def test_trusted_forwarded_fields_are_part_of_the_key(client, upstream, path, name):
    """The redirect for http must not be served for https: X-Forwarded fields are part of the key if they come from a trusted proxy."""
    for prefix, expected in (('/trusted/', ['a', 'b', 'b']), ('/', None)):
        target = path(prefix)
        upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60', (peer.request.header(name) or '').encode())
        responses = []
        for value in ('a', 'b', 'b'):
            responses.append(fetch(client, target, f'{name}: {value}'))
            stored(client, target, f'{name}: {value}')
        if expected:
            assert [answer.body.decode() for answer in responses] == expected
        assert [answer.headers['x-cache'] for answer in responses] == ([MISS, MISS, HIT] if expected else [MISS, HIT, HIT])


def test_rewritten_path_is_part_of_the_key(client, upstream, path):
    target = path('/turned/')
    other = target.replace('/turned/', '/other/')
    for one in (target, other):
        upstream.answers[one] = 'Cache-Control: max-age=60'
    assert fetch(client, target, 'X-Turn: 1').body.startswith(other.encode())
    stored(client, target, 'X-Turn: 1')
    assert fetch(client, target).body.startswith(target.encode())
    stored(client, target)
    assert fetch(client, target, 'X-Turn: 1').body.startswith(other.encode())


def test_fields_removed_by_connection_do_not_select_variants(client, upstream, path):
    target = path()
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60\nVary: Accept-Language',
                                                          (peer.request.header('accept-language') or 'none').encode())
    assert fetch(client, target, 'Accept-Language: fr\nConnection: Accept-Language').body == b'none'
    wait_for_storing(0.05)
    assert fetch(client, target, 'Accept-Language: fr\nConnection: keep-alive').body == b'fr'
    stored(client, target, 'Accept-Language: fr')
    assert fetch(client, target, 'Accept-Language: fr\nConnection: Accept-Language').body == b'fr'


def test_get_with_a_body_is_not_cached(client, upstream, path):
    target = path()
    upstream.answers[target] = 'Cache-Control: max-age=60'
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nevil')
    first = client.read('GET')
    assert first.status == 200 and first.headers.get('x-cache', '') == ''
    wait_for_storing(0.05)
    assert fetch(client, target).headers['x-cache'] == MISS


@pytest.mark.parametrize('output', ['Set-Cookie: who=me', 'Vary: Accept', 'Vary: *'])
def test_private_304_does_not_update_the_stored_response(client, upstream, path, output):
    target = path('/revalidate/')

    def respond(peer):
        if peer.request.header('if-none-match'):
            return upstream.send_response(peer, f'Status: 304\nETag: "v1"\nCache-Control: max-age=60\n{output}', b'')
        return upstream.send_response(peer, 'Cache-Control: max-age=60\nAge: 70\nETag: "v1"', b'one')
    upstream.answers[target] = respond
    fetch(client, target)
    wait_for_storing(0.05)
    name, _, value = output.partition(': ')
    renewed = fetch(client, target, 'Accept: a')
    assert renewed.headers['x-cache'] == REVALIDATED and renewed.headers[name.lower()] == value
    wait_for_storing(0.05)
    other = fetch(client, target, 'Accept: b')
    assert other.headers['x-cache'] == MISS and name.lower() not in other.headers


def test_no_cache_response_is_stored_and_revalidated(client, upstream, path):
    target = path('/revalidate/')

    def respond(peer):
        if peer.request.header('if-none-match'):
            return upstream.send_response(peer, 'Status: 304\nETag: "v1"', b'')
        return upstream.send_response(peer, 'Cache-Control: no-cache\nETag: "v1"', b'one')
    upstream.answers[target] = respond
    fetch(client, target)
    wait_for_storing(0.05)
    for _ in range(3):
        response = fetch(client, target)
        assert response.headers['x-cache'] == REVALIDATED and response.body == b'one'


def test_response_to_revalidation_replaces_the_entry(client, upstream, path):
    target = path('/revalidate/')
    upstream.answers[target] = 'Cache-Control: max-age=60\nAge: 70\nETag: "v1"'
    fetch(client, target)
    wait_for_storing(0.05)
    response = fetch(client, target)
    assert response.headers['x-cache'] == EXPIRED and response.body == f'{target} 2'.encode()
    assert upstream.requests_of(target)[1].header('if-none-match') == '"v1"'


def concurrent_requests(served, target, count=20):
    """Sends `count` requests at once; returns status, body and cache status of each."""
    targets = []

    def one():
        client = served.connect(promoted=False)
        response = fetch(client, target)
        targets.append((response.status, response.body, response.headers.get('x-cache')))
        client.close()
    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return targets


def slow(upstream, target, answer='Cache-Control: max-age=60', delay=0.4):
    def respond(peer):
        time.sleep(delay)
        return upstream.send_response(peer, answer, f'{target} {len(upstream.requests_of(target))}'.encode())
    return respond


def test_concurrent_requests_are_coalesced(served, upstream, path):
    target = path('/lock/')
    upstream.answers[target] = slow(upstream, target)
    responses = concurrent_requests(served, target)
    assert len(upstream.requests_of(target)) == 1
    assert {(status, body) for status, body, _ in responses} == {(200, f'{target} 1'.encode())}
    assert sorted(how for _, _, how in responses) == [HIT] * 19 + [MISS]


def test_lock_timeout_sends_the_request_upstream(served, upstream, path):
    target = path('/hasty/')
    upstream.answers[target] = slow(upstream, target, delay=0.8)
    responses = concurrent_requests(served, target, 4)
    assert len(upstream.requests_of(target)) == 4 and {status for status, _, _ in responses} == {200}


def test_uncacheable_response_releases_the_fill_lock(served, upstream, path):
    target = path('/lock/')
    upstream.answers[target] = slow(upstream, target, 'Cache-Control: private', 0.1)
    began = time.monotonic()
    responses = concurrent_requests(served, target)
    assert {status for status, _, _ in responses} == {200} and len(upstream.requests_of(target)) == 20
    assert time.monotonic() - began < 5


def test_use_stale_updating_serves_concurrent_requests(client, served, upstream, path):
    target = path('/updating/')
    upstream.answers[target] = 'Cache-Control: max-age=60, stale-if-error=1\nAge: 70'
    fetch(client, target)
    stored(client, target, MAX_STALE)
    upstream.answers[target] = slow(upstream, target)
    responses = concurrent_requests(served, target, 10)
    assert sorted(how for _, _, how in responses) == [EXPIRED] + [UPDATING] * 9
    assert {body for _, body, how in responses if how == UPDATING} == {f'{target} 1'.encode()}
    assert len(upstream.requests_of(target)) == 2


def test_proxy_cache_methods_permits_post(client, upstream, path):
    for prefix, stored in (('/posts/', True), ('/', False)):
        target = path(prefix)
        upstream.answers[target] = 'Cache-Control: max-age=60'
        assert fetch(client, target, 'Content-Length: 0', method='POST').status == 200
        wait_for_storing(0.05)
        assert (fetch(client, target, 'Content-Length: 0', method='POST').headers.get('x-cache') == HIT) == stored


def test_background_update_serves_stale(client, served, upstream, path):
    target = path('/background/')
    upstream.answers[target] = 'Cache-Control: max-age=60, stale-while-revalidate=100\nAge: 70'
    fetch(client, target)
    stored(client, target, MAX_STALE)
    upstream.answers[target] = slow(upstream, target)
    began = time.monotonic()
    responses = concurrent_requests(served, target, 10)
    assert {body for _, body, _ in responses} == {f'{target} 1'.encode()} and sorted(how for _, _, how in responses) == [STALE] + [UPDATING] * 9
    wait_for(lambda: fetch(client, target).headers['x-cache'] == HIT, 'the update')
    assert fetch(client, target).body == f'{target} 2'.encode()
    assert len(upstream.requests_of(target)) == 2 and time.monotonic() - began > 0.3


def test_background_update_outlives_its_client(served, upstream, path):
    target = path('/background/')

    def respond(peer):
        if len(upstream.requests_of(target)) == 1:
            return upstream.send_response(peer, 'Cache-Control: max-age=60, stale-while-revalidate=100\nAge: 70', b'old')
        time.sleep(0.2)
        return upstream.send_response(peer, 'Cache-Control: max-age=60', BIG)
    upstream.answers[target] = respond
    client = served.connect(promoted=False)
    fetch(client, target)
    stored(client, target, MAX_STALE)
    assert fetch(client, target).body == b'old'
    client.close()
    client = served.connect(promoted=False)
    wait_for(lambda: fetch(client, target).body == BIG, 'the update')
    assert len(upstream.requests_of(target)) == 2
    client.close()


def test_purge_removes_the_entry(client, upstream, path):
    target, guarded = path('/purge/'), path('/guarded/')
    for one in (target, guarded):
        upstream.answers[one] = 'Cache-Control: max-age=60\nVary: X-V'
        for value in '12':
            fetch(client, one, f'X-V: {value}')
            stored(client, one, f'X-V: {value}')
    assert fetch(client, target, method='PURGE').status == 204
    assert fetch(client, target, method='PURGE').status == 404
    for value in '12':
        assert fetch(client, target, f'X-V: {value}').headers['x-cache'] == MISS
    assert fetch(client, guarded, method='PURGE').status == 403
    assert fetch(client, guarded, 'X-V: 1').headers['x-cache'] == HIT
