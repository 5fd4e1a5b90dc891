"""The proxy cache with a scripted upstream server: storing, freshness, and reuse of responses (RFC 9111, RFC 5861)."""
import os
import subprocess
import time

import pytest
from cache_site import (BIG, EXPIRED, HIT, MISS, STALE, client, date, fetch, lines, path, served, sites, stored,  # pylint: disable=unused-import
                        upstream, wait_for_storing)
from kit import http2, server as server_kit
from kit.lifetime import wait_for

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


@pytest.mark.parametrize('second', ['/./one', '/link'])
def test_two_caches_with_one_directory_are_a_start_error(tmp_path, second):
    (tmp_path / 'link').symlink_to(tmp_path / 'one')
    paths = [{'path': f'{tmp_path}/one', 'keys_zone': 'one:1m'}, {'path': f'{tmp_path}{second}', 'keys_zone': 'two:1m'}]
    (tmp_path / 'one').mkdir()
    made = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{server_kit.free_port()}'}], http={'proxy_cache_path': paths})
    answer = subprocess.run([server_kit.SLUICE, '-c', made.config_path], capture_output=True, text=True, check=False, timeout=30)
    output = answer.stderr + made.errors()
    assert answer.returncode == 1 and f'directory "{tmp_path}{second}" is already used by another cache' in output


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


def test_get_with_a_body_is_not_cached(client, upstream, path):
    target = path()
    upstream.answers[target] = 'Cache-Control: max-age=60'
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nevil')
    first = client.read('GET')
    assert first.status == 200 and first.headers.get('x-cache', '') == ''
    wait_for_storing(0.05)
    assert fetch(client, target).headers['x-cache'] == MISS


def test_proxy_cache_methods_permits_post(client, upstream, path):
    for prefix, stored in (('/posts/', True), ('/', False)):
        target = path(prefix)
        upstream.answers[target] = 'Cache-Control: max-age=60'
        assert fetch(client, target, 'Content-Length: 0', method='POST').status == 200
        wait_for_storing(0.05)
        assert (fetch(client, target, 'Content-Length: 0', method='POST').headers.get('x-cache') == HIT) == stored


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
