"""The rules for storing and reusing responses: keys, validation, ages and field syntax (RFC 9110, RFC 9111)."""
import email.utils
import os
import subprocess

import pytest
from cache_site import HIT, MISS, REVALIDATED, STALE, client, date, fetch, path, sites, stored, upstream  # pylint: disable=unused-import
from kit import server as server_kit
from kit.lifetime import wait_for


@pytest.fixture
def served(launch, loop, transport, new_directory, upstream, sites):
    if (loop, transport) not in sites:
        folder = new_directory()
        os.chmod(folder, 0o755)
        to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_cache': 'one'}
        location = {
            '/': to,
            '/method/': {**to, 'proxy_method': '$http_x_method'},
            '/body/': {**to, 'proxy_method': 'POST', 'proxy_set_body': '$http_x_body'},
            '/shipped/': {**to, 'proxy_cache_valid': ['404 10s'], 'proxy_cache_lock': True, 'proxy_cache_revalidate': True,
                          'proxy_cache_use_stale': ['error', 'timeout', 'updating', 'http_502', 'http_503'], 'proxy_cache_background_update': True},
            '/slices/': {**to, 'slice': '4k'},
            '/buffered/': {**to, 'proxy_buffering': True},
            '~ ^/captured/(?<kind>[a-z]+)/(.*)$': {**to, 'proxy_pass': f'http://127.0.0.1:{upstream.port}/of/$kind/$2', 'proxy_cache_key': '$1 $2 $kind $mark',
                                                   'proxy_cache_background_update': True, 'set': '$mark m-$2'},
            '~ ^/sliced_capture/(.*)$': {**to, 'proxy_pass': f'http://127.0.0.1:{upstream.port}/of/$1', 'proxy_cache_key': '$1', 'slice': '4k'},
            '/heuristic/': {**to, 'proxy_cache_heuristic': '1h'},
            '/heuristic-valid/': {**to, 'proxy_cache_heuristic': '1h', 'proxy_cache_valid': '404 10m'},
            '/targeted/': {**to, 'proxy_cache_targeted': ['Sluice-Cache-Control', 'CDN-Cache-Control']},
            '/untargeted/': {**to, 'proxy_cache_targeted': []},
            '/far/': {**to, 'proxy_cache_max_range_offset': '100'},
            '/never/': {**to, 'proxy_cache_max_range_offset': 0},
            '/ignoring/': {**to, 'proxy_ignore_headers': 'Cache-Control', 'proxy_cache_valid': '60s'},
            '/posts/': {**to, 'proxy_cache_methods': 'POST', 'proxy_cache_key': '$request_method $uri $http_x_digest'},
        }
        http = {'proxy_cache_path': {'path': str(folder / 'cache'), 'keys_zone': 'one:1m'}}
        server = {'location': location, 'add_header': 'X-Cache $upstream_cache_status always'}
        sites[loop, transport] = launch(loop, transport, server=server, http=http)
    return sites[loop, transport]


# Keys.

@pytest.mark.parametrize('where', ['http', 'location'])
@pytest.mark.parametrize('key, taken', [(None, False), ('$uri $http_x_digest', True)])
def test_caching_post_requires_proxy_cache_key(tmp_path, where, key, taken):
    cache = {'proxy_cache': 'one', 'proxy_cache_methods': 'POST', **({'proxy_cache_key': key} if key else {})}
    outer, inner = (cache, {}) if where == 'http' else ({}, cache)
    made = server_kit.Server(tmp_path, [{'listen': '127.0.0.1:1', 'location': {'/': {'proxy_pass': 'http://127.0.0.1:1', **inner}}}],
                             http={'proxy_cache_path': {'path': str(tmp_path / 'cache'), 'keys_zone': 'one:1m'}, **outer})
    answer = subprocess.run([server_kit.SLUICE, '-t', '-c', made.config_path], capture_output=True, text=True, check=False)
    assert (answer.returncode == 0) == taken
    assert taken or ('proxy_cache_methods: POST without a proxy_cache_key' in answer.stderr and '.yaml:' in answer.stderr)


def test_stored_post_response_is_found_by_its_key(client, upstream, path):
    target = path('/posts/')
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60', peer.request.method.encode() + peer.request.body)

    def post(body):
        client.send(f'POST {target} HTTP/1.1\r\nHost: localhost\r\nX-Digest: {body}\r\nContent-Length: {len(body)}\r\n\r\n{body}')
        return client.read('POST')
    assert post('one').body == b'POSTone' and post('two').body == b'POSTtwo'
    wait_for(lambda: post('one').headers['x-cache'] == HIT, 'it is stored')
    assert post('one').body == b'POSTone' and post('two').body == b'POSTtwo'
    assert fetch(client, target).body == b'GET'


def test_proxy_method_is_part_of_the_key(client, upstream, path):
    target = path('/method/')
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60', peer.request.method.encode())
    for method in ('GET', 'REPORT', 'SEARCH'):
        assert fetch(client, target, f'X-Method: {method}').body == method.encode()
        stored(client, target, f'X-Method: {method}')
    answer = fetch(client, target, 'X-Method: SEARCH')
    assert (answer.body, answer.headers['x-cache']) == (b'SEARCH', HIT)


def test_proxy_set_body_is_part_of_the_key(client, upstream, path):
    target = path('/body/')
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60', peer.request.body)
    for body in ('one', 'two', 'one'):
        assert fetch(client, target, f'X-Body: {body}').body == body.encode()
        stored(client, target, f'X-Body: {body}')
    assert fetch(client, target, 'X-Body: two').body == b'two'


# Responses that were never fresh.

NEVER_FRESH = ['Cache-Control: max-age=0\nETag: "1"', 'Expires: 0\nETag: "1"', 'Expires: {-1000}\nLast-Modified: {-100000}',
               'Cache-Control: max-age=0\nLast-Modified: {-100000}', 'Cache-Control: max-age=10\nAge: 20\nETag: "1"', 'Cache-Control: s-maxage=0\nETag: "1"',
               'Cache-Control: max-age=0, stale-while-revalidate=0\nETag: "1"']


def is_requested_again(client, upstream, target):
    """Sends one request; true if the cache sent a conditional request for it, which shows that the response is stored."""
    fetch(client, target)
    return upstream.requests_of(target)[-1].header('if-none-match') or upstream.requests_of(target)[-1].header('if-modified-since')


@pytest.mark.parametrize('number', range(len(NEVER_FRESH)))
@pytest.mark.parametrize('failure', [None, 'Status: 503', 'close'])
def test_never_fresh_responses_require_validation(client, upstream, path, number, failure):
    """A response that was never fresh is not used without validation, even if the upstream server fails: it may be for one user only."""
    target = path('/shipped/')
    upstream.answers[target] = NEVER_FRESH[number]
    wait_for(lambda: is_requested_again(client, upstream, target), 'it is stored and validated')
    before = len(upstream.requests_of(target))
    if failure:
        upstream.answers[target] = (lambda peer: False) if failure == 'close' else failure
    for fields in ('', 'Cache-Control: max-stale'):
        answer = fetch(client, target, fields)
        before += 1
        assert answer.headers['x-cache'] == 'EXPIRED', answer
        assert answer.status == {None: 200, 'close': 502}.get(failure, 503)
        assert failure or answer.body == f'{target} {before}'.encode()


def test_never_fresh_response_is_served_after_304(client, upstream, path):
    target = path('/shipped/')
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Status: 304\nETag: "1"' if peer.request.header('if-none-match') else
                                                          'Cache-Control: max-age=0\nETag: "1"', b'body')
    fetch(client, target)
    wait_for(lambda: fetch(client, target).headers['x-cache'] == REVALIDATED, 'it is stored')
    for _ in range(3):
        answer = fetch(client, target)
        assert (answer.headers['x-cache'], answer.status, answer.body) == (REVALIDATED, 200, b'body')


@pytest.mark.parametrize('allowed', ['stale-while-revalidate=100', 'stale-if-error=100'])
def test_stale_extensions_permit_stale_responses(client, upstream, path, allowed):
    target = path('/shipped/') + allowed
    upstream.answers[target] = f'Cache-Control: max-age=0, {allowed}\nETag: "1"'
    fetch(client, target)
    upstream.answers[target] = 'Status: 503'
    wait_for(lambda: fetch(client, target).headers['x-cache'] == STALE, 'it is stored')
    assert fetch(client, target).body == f'{target} 1'.encode()


@pytest.mark.parametrize('output', ['no-cache', 'max-age=0', 'no-cache, must-revalidate', 's-maxage=0'])
def test_ignored_cache_control_does_not_limit_reuse(client, upstream, path, output):
    target = path('/ignoring/') + output.replace(', ', '-')
    upstream.answers[target] = f'Cache-Control: {output}'
    fetch(client, target)
    wait_for(lambda: fetch(client, target, 'Cache-Control: only-if-cached').headers.get('x-cache') == HIT, 'it is stored')


# Preconditions.

@pytest.mark.parametrize('field', ['If-Match: "v2"', 'If-Match: *', 'If-Unmodified-Since: {-1000}'])
@pytest.mark.parametrize('method', ['GET', 'HEAD'])
def test_if_match_is_forwarded_to_the_origin(client, upstream, path, field, method):
    """RFC 9111 4.3.2: a stored response may be outdated, so the cache cannot evaluate If-Match."""
    target = path()
    upstream.answers[target] = 'Cache-Control: max-age=60\nETag: "v1"\nLast-Modified: {-100}'
    fetch(client, target)
    stored(client, target)
    upstream.answers[target] = 'Status: 412'
    answer = fetch(client, target, field, method=method)
    assert (answer.status, answer.headers['x-cache']) == (412, 'BYPASS')
    request = upstream.requests_of(target)[-1]
    assert request.header(field.split(':')[0]) and request.method == method
    assert fetch(client, target, field + '\nCache-Control: only-if-cached', method=method).status == 504
    assert fetch(client, target).headers['x-cache'] == HIT and len(upstream.requests_of(target)) == 2


def test_if_modified_since_is_compared_with_date(client, upstream, path):
    target = path()
    upstream.answers[target] = 'Cache-Control: max-age=6000\nDate: {-100}\nETag: "v1"'
    fetch(client, target)
    stored(client, target)
    assert [fetch(client, target, f'If-Modified-Since: {date(offset)}').status for offset in (-1000, -90, 0)] == [200, 304, 304]
    assert fetch(client, target, f'If-Modified-Since: {date()}\nIf-None-Match: "v2"').status == 200
    assert fetch(client, target, f'Range: bytes=0-1\nIf-Range: {date(-100)}').status == 200
    assert len(upstream.requests_of(target)) == 1


@pytest.mark.parametrize('output', ['ETag: "v2"', 'ETag: W/"v2"', 'ETag: "v2"\nLast-Modified: {-100000}', 'Last-Modified: {-5}'])
def test_status_304_of_another_version_removes_the_entry(client, upstream, path, output):
    """RFC 9111 4.3.4: the entry is dropped, and the cache repeats the request without conditions."""
    target = path('/shipped/')

    def respond(peer):
        if peer.request.header('if-none-match'):
            return upstream.send_response(peer, 'Status: 304\nCache-Control: max-age=60\n' + output, b'')
        number = len(upstream.requests_of(target))
        if number == 1:
            return upstream.send_response(peer, 'Cache-Control: max-age=0\nETag: "v1"\nLast-Modified: {-100000}', b'old body')
        return upstream.send_response(peer, 'Cache-Control: max-age=60\nETag: "v2"', b'new body')
    upstream.answers[target] = respond
    fetch(client, target)
    wait_for(lambda: len(upstream.requests_of(target)) >= 2 or fetch(client, target), 'it is stored')
    for _ in range(2):
        answer = fetch(client, target)
        assert (answer.status, answer.body, answer.headers['etag']) == (200, b'new body', '"v2"')
    wait_for(lambda: fetch(client, target).headers['x-cache'] == HIT, 'the new one is stored')
    part = fetch(client, target, 'Range: bytes=4-\nIf-Range: "v2"')
    assert (part.status, part.body) == (206, b'body')


@pytest.mark.parametrize('known, output', [('"v1"', ''), ('"v1"', 'ETag: "v1"'), ('"v1"', 'ETag: W/"v1"'), ('W/"v1"', 'ETag: "v1"')])
def test_status_304_retains_the_stored_etag(client, upstream, path, known, output):
    target = path('/shipped/')
    upstream.answers[target] = lambda peer: upstream.send_response(peer, f'Status: 304\n{output}' if peer.request.header('if-none-match') else
                                                          f'Cache-Control: max-age=0\nETag: {known}', b'body')
    fetch(client, target)
    wait_for(lambda: fetch(client, target).headers['x-cache'] == REVALIDATED, 'it is stored')
    answer = fetch(client, target)
    assert (answer.body, answer.headers['etag'], answer.headers['x-cache']) == (b'body', known, REVALIDATED)


# Date and Age.

def moment(text):
    return email.utils.parsedate_to_datetime(text).timestamp()


def test_upstream_date_is_forwarded_and_stored(client, upstream, path):
    target, then = path(), date(-1000)
    upstream.answers[target] = f'Cache-Control: max-age=6000\nDate: {then}'
    first = fetch(client, target)
    assert first.headers['date'] == then and 'age' not in first.headers
    stored(client, target)
    second = fetch(client, target)
    assert second.headers['date'] == then and 1000 <= int(second.headers['age']) <= 1100


@pytest.mark.parametrize('output', ['', 'Date: yesterday', 'Date: {-100}\nDate: {-200}'])
def test_missing_date_is_set_to_the_time_of_receipt(client, upstream, path, output):
    target = path()
    upstream.answers[target] = f'Cache-Control: max-age=6000\n{output}'
    before = int(moment(date()))
    first = fetch(client, target)
    after = moment(date())
    stored(client, target)
    for answer in (first, fetch(client, target)):
        assert [name.lower() for name, _ in answer.lines].count('date') == 1
        assert before <= moment(answer.headers['date']) <= after


def test_status_304_updates_date(client, upstream, path):
    target, then = path('/shipped/'), date(-500)
    upstream.answers[target] = lambda peer: upstream.send_response(peer, f'Status: 304\nDate: {then}' if peer.request.header('if-none-match') else
                                                          'Cache-Control: max-age=0\nETag: "1"\nDate: {-1000}', b'body')
    fetch(client, target)
    wait_for(lambda: fetch(client, target).headers['x-cache'] == REVALIDATED, 'it is stored')
    assert fetch(client, target).headers['date'] == then


def test_accept_ranges_is_sent_once(client, upstream, path):
    target = path()
    upstream.answers[target] = 'Cache-Control: max-age=60\nAccept-Ranges: bytes\nContent-Range: bytes 0-1/2\nETag: "1"'
    fetch(client, target)
    stored(client, target)
    for fields in ('', 'Range: bytes=0-1', 'If-None-Match: "1"'):
        names = [name.lower() for name, _ in fetch(client, target, fields).lines]
        assert names.count('accept-ranges') == 1 and len(names) == len(set(names)), fields


# A response that a client has received completely is available to the next request.

BODIES = {'nothing': b'', 'a byte': b'x', 'a little': b'x' * 1000, 'several reads': b'0123456789' * 20_000}


@pytest.mark.parametrize('prefix', ['/', '/buffered/', '/slices/'])
@pytest.mark.parametrize('size', BODIES)
@pytest.mark.parametrize('more', ['', 'Vary: Accept', 'chunked'])
def test_response_is_stored_when_the_client_has_it(client, served, upstream, path, prefix, size, more):
    def respond(peer):
        body = BODIES[size]
        if more == 'chunked':
            pieces = b''.join(b'%x\r\n%s\r\n' % (len(piece), piece) for piece in (body[at:at + 7000] for at in range(0, len(body), 7000)))
            peer.send(b'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n' + pieces + b'0\r\n\r\n')
            return True
        fields = f'Cache-Control: max-age=60\nETag: "1"\n{more}'
        expected = peer.request.header('range')
        if not expected or not body:
            return upstream.send_response(peer, fields, body)
        first, last = map(int, expected[6:].split('-'))
        piece = body[first:last + 1]
        return upstream.send_response(peer, f'Status: 206\nContent-Range: bytes {first}-{first + len(piece) - 1}/{len(body)}\n{fields}', piece)
    other = served.connect(promoted=False)
    for _ in range(10):
        target = path(prefix)
        upstream.answers[target] = respond
        assert fetch(client, target).body == BODIES[size]
        for one in (client, other):
            answer = fetch(one, target)
            assert (answer.headers['x-cache'], answer.body) == (HIT, BODIES[size])
    other.close()


def test_disconnection_before_the_response_is_stored(served, upstream, path):
    """The client disconnects while the response waits for the disk: the exchange must not be resumed."""
    targets = [path() for _ in range(30)]
    for target in targets:
        upstream.answers[target] = 'Cache-Control: max-age=60'
        client = served.connect(promoted=False)
        client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
        client.close()
    client = served.connect(promoted=False)
    for target in targets:
        assert fetch(client, target).status == 200
    client.close()


# Captures of regular expressions in requests that the cache makes itself.

def test_background_update_retains_captures(client, upstream, path):
    names = [path('')[1:] for _ in range(2)]
    for name in names:
        upstream.answers[f'/of/kind/{name}'] = 'Cache-Control: max-age=0, stale-while-revalidate=1000'
        assert fetch(client, f'/captured/kind/{name}').body == f'/of/kind/{name} 1'.encode()
        assert fetch(client, f'/captured/kind/{name}').headers['x-cache'] == STALE
        wait_for(lambda name=name: len(upstream.requests_of(f'/of/kind/{name}')) == 2, 'the update')
        wait_for(lambda name=name: fetch(client, f'/captured/kind/{name}').body == f'/of/kind/{name} 2'.encode(), 'the updated response')
    assert not upstream.requests_of('/of//')


def test_head_converted_to_get_retains_captures(client, upstream, path):
    name = path('')[1:]
    upstream.answers[f'/of/kind/{name}'] = 'Cache-Control: max-age=60\nX-Name: ' + name
    assert fetch(client, f'/captured/kind/{name}', method='HEAD').headers['x-name'] == name
    stored(client, f'/captured/kind/{name}')
    assert len(upstream.requests_of(f'/of/kind/{name}')) == 1


def test_slice_requests_retain_captures(client, upstream, path):
    def respond(peer):
        body = peer.request.target.encode() * 1000
        first, last = map(int, peer.request.header('range')[6:].split('-'))
        last = min(last, len(body) - 1)
        return upstream.send_response(peer, f'Status: 206\nContent-Range: bytes {first}-{last}/{len(body)}\nCache-Control: max-age=60\nETag: "1"', body[first:last + 1])
    for name in [path('')[1:] for _ in range(2)]:
        upstream.answers[f'/of/{name}'] = respond
        for _ in range(2):
            assert fetch(client, f'/sliced_capture/{name}').body == f'/of/{name}'.encode() * 1000


@pytest.mark.parametrize('encoded', ['%2Fb', '%41b', 'a//b', '%3Fb'])
def test_background_update_retains_percent_encoding(client, upstream, path, encoded):
    target = path('/shipped/') + encoded
    upstream.answers[target] = 'Cache-Control: max-age=0, stale-while-revalidate=1000'
    fetch(client, target)
    assert fetch(client, target).headers['x-cache'] == STALE
    wait_for(lambda: len(upstream.requests_of(target)) == 2, 'the update')


# Ranges of responses that are not stored yet.

LONG = bytes(range(256)) * 2000


@pytest.mark.parametrize('prefix', ['/', '/buffered/'])
@pytest.mark.parametrize('expected, part', [('0-9', LONG[:10]), ('7-7', LONG[7:8]), ('100000-300000', LONG[100000:300001]), ('-5', LONG[-5:]),
                                          (f'{len(LONG) - 1}-', LONG[-1:]), ('0-', LONG)])
def test_range_miss_is_206_and_stores_the_whole(client, upstream, path, prefix, expected, part):
    target = path(prefix)

    def respond(peer):
        assert not peer.request.header('range')
        return upstream.send_response(peer, 'Cache-Control: max-age=60\nETag: "1"', LONG)
    upstream.answers[target] = respond
    first = fetch(client, target, f'Range: bytes={expected}')
    assert (first.status, first.body, first.headers['x-cache']) == (206, part, MISS)
    again = fetch(client, target)
    assert (again.status, again.body, again.headers['x-cache']) == (200, LONG, HIT)
    assert first.headers['content-range'] == fetch(client, target, f'Range: bytes={expected}').headers['content-range']


def test_range_is_complete_before_the_response_is_truncated(client, upstream, path):
    target = path()

    def respond(peer):
        peer.send(f'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: "1"\r\nContent-Length: {len(LONG)}\r\n\r\n')
        peer.send(LONG[:1000])
        return False
    upstream.answers[target] = respond
    for _ in range(2):
        answer = fetch(client, target, 'Range: bytes=0-9')
        assert (answer.status, answer.body, answer.headers['x-cache']) == (206, LONG[:10], MISS)


@pytest.mark.parametrize('fields, status', [(f'Range: bytes={len(LONG)}-', 416), ('Range: bytes=0-9\nIf-Range: "2"', 200), ('Range: bytes=0-1,5-6', 200),
                                            ('Range: lines=0-1', 200)])
def test_invalid_and_multiple_ranges_of_a_miss(client, upstream, path, fields, status):
    target = path()
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60\nETag: "1"', LONG)
    answer = fetch(client, target, fields)
    assert answer.status == status and (status == 416 or answer.body == LONG)


def test_range_of_an_empty_response(client, upstream, path):
    target = path()
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60\nETag: "1"', b'')
    for _ in range(2):
        answer = fetch(client, target, 'Range: bytes=0-9')
        assert (answer.status, answer.headers['content-range']) == (416, 'bytes */0')


@pytest.mark.parametrize('prefix, expected, passed', [('/never/', 'bytes=0-0', True), ('/never/', 'bytes=-5', True), ('/never/', '', False),
                                                    ('/far/', 'bytes=99-', False), ('/far/', 'bytes=100-', True), ('/far/', 'bytes=-5', True),
                                                    ('/', 'bytes=-5', False)])
def test_ranges_above_max_range_offset_are_forwarded(client, upstream, path, prefix, expected, passed):
    target = path(prefix)
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60\nETag: "1"', LONG)
    fetch(client, target, f'Range: {expected}' if expected else '')
    assert upstream.requests_of(target)[0].header('range') == (expected if passed else None)
    assert fetch(client, target).headers['x-cache'] == (MISS if passed else HIT)


# Heuristic freshness and targeted fields.

@pytest.mark.parametrize('prefix, answer, stored', [
    ('/heuristic/', 'Last-Modified: {-10000}', True),
    ('/heuristic/', 'Last-Modified: {-10000}\nAge: 500', True),
    ('/heuristic/', 'Last-Modified: {-10000}\nAge: 2000', False),
    ('/heuristic/', 'Last-Modified: {-10000000}\nAge: 4000', False),
    ('/heuristic/', 'Last-Modified: {+10}', False),
    ('/heuristic/', 'Last-Modified: yesterday', False),
    ('/heuristic/', 'ETag: "1"', False),
    ('/heuristic/', 'Last-Modified: {-10000}\nCache-Control: max-age=0', False),
    ('/heuristic/', 'Last-Modified: {-10000}\nExpires: 0', False),
    ('/heuristic/', 'Last-Modified: {-10000}\nCache-Control: private', False),
    ('/heuristic/', 'Last-Modified: {-10000}\nX-Accel-Expires: 0', False),
    ('/heuristic/', 'Status: 404\nLast-Modified: {-10000}', True),
    ('/heuristic/', 'Status: 302\nLast-Modified: {-10000}', False),
    ('/heuristic/', 'Status: 302\nLast-Modified: {-10000}\nCache-Control: public', True),
    ('/heuristic-valid/', 'Status: 404\nLast-Modified: {+0}', True),
    ('/', 'Last-Modified: {-10000}', False),
])
def test_heuristic_freshness_is_limited(client, upstream, path, prefix, answer, stored):
    target = path(prefix)
    upstream.answers[target] = answer
    fetch(client, target)
    second = fetch(client, target)
    assert second.headers['x-cache'] == (HIT if stored else MISS) and 'warning' not in second.headers


@pytest.mark.parametrize('prefix, answer, stored', [
    ('/', 'CDN-Cache-Control: max-age=60', True),
    ('/', 'CDN-Cache-Control: max-age=60\nCache-Control: no-store\nExpires: 0', True),
    ('/', 'CDN-Cache-Control: no-store\nCache-Control: max-age=60', False),
    ('/', 'CDN-Cache-Control: must-revalidate\nExpires: {+60}', False),
    ('/', 'CDN-Cache-Control: max-age=60,\nCache-Control: no-store', False),
    ('/', 'CDN-Cache-Control: max-age=0,\nCache-Control: max-age=60', True),
    ('/', 'CDN-Cache-Control: \nCache-Control: max-age=60', True),
    ('/', 'CDN-Cache-Control: max-age="60"\nCache-Control: max-age=60', False),
    ('/', 'CDN-Cache-Control: max-age=60\nSet-Cookie: a=b', False),
    ('/', 'CDN-Cache-Control: max-age=60\nCache-Control: foo="x, no-store', True),
    ('/', 'Sluice-Cache-Control: max-age=60', False),
    ('/targeted/', 'Sluice-Cache-Control: max-age=60\nCDN-Cache-Control: no-store', True),
    ('/targeted/', 'Sluice-Cache-Control: max-age=60,\nCDN-Cache-Control: max-age=60\nCache-Control: no-store', True),
    ('/targeted/', 'Sluice-Cache-Control: private\nCDN-Cache-Control: max-age=60', False),
    ('/untargeted/', 'CDN-Cache-Control: max-age=60', False),
    ('/ignoring/', 'CDN-Cache-Control: no-store\nCache-Control: max-age=60', False),
])
def test_cdn_cache_control_precedes_cache_control(client, upstream, path, prefix, answer, stored):
    target = path(prefix)
    upstream.answers[target] = answer
    first = fetch(client, target)
    assert fetch(client, target).headers['x-cache'] == (HIT if stored else MISS)
    assert [value for name, value in first.lines if name == 'CDN-Cache-Control'] == [line.partition(': ')[2] for line in answer.split('\n')
                                                                                     if line.startswith('CDN-Cache-Control')]
