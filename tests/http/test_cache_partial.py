"""`proxy_cache_partial`: range requests complete a partially stored response; bytes of another version or position must not be mixed in."""
import os
import random
import re
import threading
import time

import pytest
from cache_site import EXPIRED, HIT, MISS, REVALIDATED, STALE, Scripted, client, fetch, lines, path, sites, wait_for_storing  # pylint: disable=unused-import
from kit.lifetime import wait_for

PARTIAL, BYPASS = 'PARTIAL', 'BYPASS'
OLD = 'Sat, 01 Jan 2022 00:00:00 GMT'
SIZE = 40000        # more than an entry keeps in memory, and more than one write


class Origin(Scripted):
    """Serves `files` by path: [bytes, header lines], with ranges and preconditions. `turns` maps (path, request number) to a function of
    the peer that replaces the response."""

    def __init__(self):
        self.files, self.turns = {}, {}
        super().__init__()

    def add(self, path, size=SIZE, fields='ETag: "v1"\nCache-Control: max-age=60', seed=7):
        self.files[path] = [random.Random(seed).randbytes(size), fields]
        return self.files[path][0]

    def ranges(self, path):
        return [(request.header('range'), request.header('if-range')) for request in self.requests_of(path)]

    def respond(self, peer):
        peer.read_body()
        path = peer.request.target
        turn = self.turns.get((path, len(self.requests_of(path))))
        return turn(peer) if turn else self.serve_file(peer)

    def serve_file(self, peer):
        data, fields = self.files[peer.request.target]
        validators = [line.split(': ', 1)[1] for line in fields.split('\n') if line.startswith(('ETag: ', 'Last-Modified: '))]
        if peer.request.header('if-none-match') in validators:
            return self.send_response(peer, f'Status: 304\n{fields}', b'')
        expected = re.fullmatch(r'bytes=(\d*)-(\d*)', peer.request.header('range') or '')
        if not expected or peer.request.header('if-range') not in [None, *validators]:
            return self.send_response(peer, fields, data)
        if expected[1]:
            first, last = int(expected[1]), min(int(expected[2] or len(data)), len(data) - 1)
        else:
            first, last = max(0, len(data) - int(expected[2])), len(data) - 1
        if first >= len(data):
            return self.send_response(peer, f'Status: 416\nContent-Range: bytes */{len(data)}\n{fields}', b'')
        return self.send_response(peer, f'Status: 206\nContent-Range: bytes {first}-{last}/{len(data)}\n{fields}', data[first:last + 1])


@pytest.fixture(scope='module')
def upstream():
    made = Origin()
    yield made
    made.stop()
    assert not made.faults, made.faults


def configuration(upstream, folder):
    to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_cache': 'one', 'proxy_cache_partial': True}
    location = {
        '/': to,
        '/revalidate/': {**to, 'proxy_cache_revalidate': True},
        '/stale/': {**to, 'proxy_cache_use_stale': ['error', 'http_500']},
        '/background/': {**to, 'proxy_cache_background_update': True, 'proxy_cache_use_stale': 'updating', 'proxy_cache_revalidate': True},
        '/lock/': {**to, 'proxy_cache_lock': True, 'proxy_cache_lock_timeout': '100s', 'proxy_cache_lock_age': '100s'},
        '/purge/': {**to, 'proxy_cache_purge': 'PURGE 127.0.0.1'},
        '/far/': {**to, 'proxy_cache_max_range_offset': 10000},
        '/direct/': {**to, 'proxy_buffering': False},
        '/off/': {**to, 'proxy_cache_partial': False},
        '/twice/': {**to, 'proxy_cache_min_uses': 2},
        '/bypass/': {**to, 'proxy_cache_bypass': '$http_x_bypass'},
        '/packed/': {**to, 'gzip': True, 'gzip_types': 'text/plain'},
    }
    return {'location': location, 'add_header': ['X-Cache $upstream_cache_status always', 'X-Upstream "$upstream_status" always']}, \
        {'proxy_cache_path': {'path': str(folder / 'cache'), 'keys_zone': 'one:1m'}}


@pytest.fixture
def served(launch, loop, transport, new_directory, upstream, sites):
    if (loop, transport) not in sites:
        folder = new_directory()
        os.chmod(folder, 0o755)
        server, http = configuration(upstream, folder)
        sites[loop, transport] = launch(loop, transport, server=server, http=http), folder / 'cache'
    return sites[loop, transport][0]


def part(client, target, spec, fields=''):
    return fetch(client, target, f'Range: bytes={spec}\n{fields}')


def check_part(response, data, first, last, how):
    assert (response.status, response.headers.get('x-cache')) == (206, how), response
    assert response.headers['content-range'] == f'bytes {first}-{last}/{len(data)}'
    assert response.headers['content-length'] == str(last - first + 1)
    assert response.body == data[first:last + 1]


def check_whole(response, data, how):
    assert (response.status, response.headers.get('x-cache')) == (200, how), response
    assert 'content-range' not in response.headers and response.headers['content-length'] == str(len(data))
    assert response.body == data


def broken(served, target, fields=''):
    """Requests a response that breaks off; returns its header section, None if the connection ended earlier, and the body bytes received."""
    client = served.connect(promoted=False)
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n{lines(fields)}\r\n')
    try:
        head = client.head()
    except EOFError:
        return None, b''
    with pytest.raises((EOFError, OSError)):
        while len(client.buffer) < int(head.headers['content-length']):
            if not client.fill():
                raise EOFError
    got = bytes(client.buffer)
    client.close()
    return head, got


def breaks_after(upstream, count):
    """A turn that sends `count` bytes of the body and closes the connection without a reset."""
    def turn(peer):
        whole = []
        send = peer.send
        peer.send = lambda data: whole.append(data if isinstance(data, bytes) else data.encode('latin-1'))
        upstream.serve_file(peer)
        peer.send = send
        head, body = b''.join(whole).split(b'\r\n\r\n', 1)
        peer.send(head + b'\r\n\r\n' + body[:count])
        return False
    return turn


def wait_until_stored(client, target, spec):
    """Waits until a range is stored."""
    wait_for(lambda: part(client, target, spec, 'Cache-Control: only-if-cached').status == 206, f'{spec} of {target} is stored')


# Storing ranges, and responses from stored ranges.

@pytest.mark.parametrize('size', [1, 100, 16384, 16385, SIZE, 1500000])
def test_stored_range_answers_contained_ranges(client, upstream, path, size):
    target = path()
    data = upstream.add(target, size + 2)
    check_part(part(client, target, f'1-{size}'), data, 1, size, MISS)
    check_part(part(client, target, f'1-{size}'), data, 1, size, HIT)
    check_part(part(client, target, f'{size}-{size}'), data, size, size, HIT)
    check_part(part(client, target, '1-1'), data, 1, 1, HIT)
    middle = (size + 1) // 2
    check_part(part(client, target, f'{middle}-{size}'), data, middle, size, HIT)
    response = part(client, target, f'1-{size}')
    assert response.headers['etag'] == '"v1"' and 'age' in response.headers
    assert upstream.ranges(target) == [(f'bytes=1-{size}', None)]


def test_suffix_and_open_ended_ranges(client, upstream, path):
    target = path()
    data = upstream.add(target)
    check_part(part(client, target, '-100'), data, SIZE - 100, SIZE - 1, MISS)
    check_part(part(client, target, '-100'), data, SIZE - 100, SIZE - 1, HIT)
    check_part(part(client, target, f'{SIZE - 50}-'), data, SIZE - 50, SIZE - 1, HIT)
    check_part(part(client, target, f'{SIZE - 50}-{SIZE * 9}'), data, SIZE - 50, SIZE - 1, HIT)
    assert len(upstream.requests_of(target)) == 1


def test_range_of_all_bytes_completes_the_entry(client, upstream, path):
    target = path()
    data = upstream.add(target)
    check_part(part(client, target, '0-'), data, 0, SIZE - 1, MISS)
    check_whole(fetch(client, target), data, HIT)
    check_part(part(client, target, '5-9'), data, 5, 9, HIT)
    assert upstream.ranges(target) == [('bytes=0-', None)]


def test_only_if_cached_requires_stored_bytes(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    check_part(part(client, target, '0-99', 'Cache-Control: only-if-cached'), data, 0, 99, HIT)
    assert part(client, target, '0-100', 'Cache-Control: only-if-cached').status == 504
    assert fetch(client, target, 'Cache-Control: only-if-cached').status == 504
    assert len(upstream.requests_of(target)) == 1


def test_preconditions_use_a_stored_range(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    response = part(client, target, '0-99', 'If-None-Match: "v1"')
    assert response.status == 304 and 'content-range' not in response.headers and response.headers['x-cache'] == HIT
    check_part(part(client, target, '0-99', 'If-None-Match: "v2"'), data, 0, 99, HIT)
    check_part(part(client, target, '0-99', 'If-Range: "v1"'), data, 0, 99, HIT)
    assert len(upstream.requests_of(target)) == 1
    check_whole(part(client, target, '0-99', 'If-Range: "v0"'), data, PARTIAL)      # the client has another version, so it must get the whole representation
    assert upstream.ranges(target)[1:] == [(f'bytes=100-{SIZE - 1}', '"v1"')]


NOT_KEPT = {
    'weak': ('ETag: W/"v1"\nCache-Control: max-age=60', {}),
    'weak beside a date': (f'ETag: W/"v1"\nLast-Modified: {OLD}\nCache-Control: max-age=60', {}),
    'no validator': ('Cache-Control: max-age=60', {}),
    'no etag': ('ETag: v1\nCache-Control: max-age=60', {}),
    'two etags': ('ETag: "v1"\nETag: "v2"\nCache-Control: max-age=60', {}),
    'a date of now': ('Last-Modified: {-5}\nCache-Control: max-age=60', {}),
    'not to be stored': ('ETag: "v1"\nCache-Control: no-store', {}),
    'private': ('ETag: "v1"\nCache-Control: private, max-age=60', {}),
    'without a lifetime': ('ETag: "v1"', {}),
    'a cookie': ('ETag: "v1"\nSet-Cookie: a=b\nCache-Control: max-age=60', {}),
    'any request': ('ETag: "v1"\nVary: *\nCache-Control: max-age=60', {}),
    'an unknown length': ('ETag: "v1"\nCache-Control: max-age=60', {'range': 'bytes 100-199/*'}),
    'another first': ('ETag: "v1"\nCache-Control: max-age=60', {'range': f'bytes 101-200/{SIZE}'}),
    'another last': ('ETag: "v1"\nCache-Control: max-age=60', {'range': f'bytes 100-198/{SIZE}'}),
    'more than it has': ('ETag: "v1"\nCache-Control: max-age=60', {'range': 'bytes 100-199/150'}),
    'backwards': ('ETag: "v1"\nCache-Control: max-age=60', {'range': f'bytes 199-100/{SIZE}'}),
    'overflow': ('ETag: "v1"\nCache-Control: max-age=60', {'range': 'bytes 100-199/18446744073709551716'}),
    'overflow of a position': ('ETag: "v1"\nCache-Control: max-age=60', {'range': f'bytes 18446744073709551716-18446744073709551815/{SIZE}'}),
    'no range': ('ETag: "v1"\nCache-Control: max-age=60', {'range': None}),
    'two ranges': (f'ETag: "v1"\nCache-Control: max-age=60\nContent-Range: bytes 0-99/{SIZE}', {}),
    'another unit': ('ETag: "v1"\nCache-Control: max-age=60', {'range': f'items 100-199/{SIZE}'}),
    'several parts': ('ETag: "v1"\nCache-Control: max-age=60\nContent-Type: multipart/byteranges; boundary=x', {}),
    'shorter than its Content-Length': ('ETag: "v1"\nCache-Control: max-age=60', {'sent': 50}),
    'no framing': ('ETag: "v1"\nCache-Control: max-age=60', {'chunked': True}),
}


def sends_part(upstream, fields, data, first, last, range='own', sent=None, chunked=False):
    """A turn that sends a 206 with this range, length and framing."""
    def turn(peer):
        place = f'bytes {first}-{last}/{len(data)}' if range == 'own' else range
        body = data[first:last + 1][:sent]
        text = f'Status: 206\n{fields}' + (f'\nContent-Range: {place}' if place else '')
        if not chunked:
            return upstream.send_response(peer, text, body)
        peer.send(f'HTTP/1.1 206 X\r\n{lines(text[12:])}Transfer-Encoding: chunked\r\n\r\n')
        peer.send(b'%x\r\n%s\r\n0\r\n\r\n' % (len(body), body))
        return True
    return turn


@pytest.mark.parametrize('name', NOT_KEPT)
def test_unsuitable_206_responses_are_not_stored(client, upstream, path, name):
    """The response is passed on unchanged and not used for the next request."""
    target = path()
    fields, particulars = NOT_KEPT[name]
    data = upstream.add(target)
    upstream.turns[target, 1] = sends_part(upstream, fields, data, 100, 199, **particulars)
    response = part(client, target, '100-199')
    assert response.status == 206 and response.body == data[100:200][:particulars.get('sent')]
    wait_for_storing(0.05)
    check_part(part(client, target, '100-199'), data, 100, 199, MISS)
    check_part(part(client, target, '100-199'), data, 100, 199, HIT)
    assert upstream.ranges(target) == [('bytes=100-199', None)] * 2


def test_range_beyond_end_is_416(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    assert part(client, target, f'{SIZE}-').status == 416
    check_part(part(client, target, '0-99'), data, 0, 99, HIT)


# Completing a stored range.

@pytest.mark.parametrize('prefix', ['/', '/direct/'])
@pytest.mark.parametrize('stored, expected, requested', [
    ((0, 99), None, (100, None)),
    ((0, 99), (0, 199), (100, 199)),
    ((0, 99), (50, 199), (100, 199)),
    ((0, 99), (100, 199), (100, 199)),
    ((0, 20000), None, (20001, None)),
    ((0, SIZE - 2), None, (SIZE - 1, None)),
    ((100, None), None, (0, 99)),
    ((100, 199), (0, 99), (0, 99)),
    ((100, 199), (0, 199), (0, 99)),
    ((100, 199), (0, 150), (0, 99)),
    ((20000, 39000), (19999, 30000), (19999, 19999)),
    ((20000, 39000), (30000, None), (39001, None)),
])
def test_missing_ranges_are_requested(client, upstream, path, prefix, stored, expected, requested):
    target = path(prefix)
    data = upstream.add(target)

    def fill(pair):
        return (pair[0], SIZE - 1 if pair[1] is None else pair[1])
    stored, requested = fill(stored), fill(requested)
    check_part(part(client, target, f'{stored[0]}-{stored[1]}'), data, *stored, MISS)
    for how in (PARTIAL, HIT):
        if expected is None:
            check_whole(fetch(client, target), data, how)
        else:
            first, last = fill(expected)
            check_part(part(client, target, f'{first}-{last}'), data, first, last, how)
    both = min(stored[0], requested[0]), max(stored[1], requested[1])
    check_part(part(client, target, f'{both[0]}-{both[1]}'), data, *both, HIT)
    assert upstream.ranges(target)[1:] == [(f'bytes={requested[0]}-{requested[1]}', '"v1"')]


@pytest.mark.parametrize('step', [1000, 17000])
def test_successive_ranges_complete_the_entry(client, upstream, path, step):
    target = path()
    data = upstream.add(target)
    for first in range(0, SIZE, step):
        last = min(first + step, SIZE) - 1
        check_part(part(client, target, f'{first}-{last}'), data, first, last, PARTIAL if first else MISS)
    check_whole(fetch(client, target), data, HIT)
    assert [range_field for range_field, _ in upstream.ranges(target)] == [f'bytes={first}-{min(first + step, SIZE) - 1}' for first in range(0, SIZE, step)]


def test_large_stored_range_is_completed(client, upstream, path):
    target = path()
    size = 5_000_001
    data = upstream.add(target, size)
    check_part(part(client, target, f'0-{size - 1000}'), data, 0, size - 1000, MISS)
    check_whole(fetch(client, target), data, PARTIAL)
    check_whole(fetch(client, target), data, HIT)


def test_gaps_on_both_sides_are_one_request(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '100-199')
    check_part(part(client, target, '50-300'), data, 50, 300, MISS)
    check_part(part(client, target, '50-300'), data, 50, 300, HIT)
    check_whole(fetch(client, target), data, MISS)
    check_whole(fetch(client, target), data, HIT)
    assert upstream.ranges(target) == [('bytes=100-199', None), ('bytes=50-300', None), (None, None)]


def test_longer_of_two_disjoint_ranges_is_retained(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '100-199')
    check_part(part(client, target, '300-310'), data, 300, 310, MISS)
    check_part(part(client, target, '100-199'), data, 100, 199, HIT)
    check_part(part(client, target, '300-500'), data, 300, 500, MISS)
    check_part(part(client, target, '300-500'), data, 300, 500, HIT)
    check_part(part(client, target, '100-199'), data, 100, 199, MISS)


def test_several_ranges_get_the_complete_response(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    check_whole(part(client, target, '0-9,20-29'), data, PARTIAL)
    assert upstream.ranges(target)[1:] == [(f'bytes=100-{SIZE - 1}', '"v1"')]


def test_last_modified_is_the_if_range_validator(client, upstream, path):
    target = path()
    data = upstream.add(target, fields=f'Last-Modified: {OLD}\nCache-Control: max-age=60')
    part(client, target, '0-99')
    check_whole(fetch(client, target), data, PARTIAL)
    assert upstream.ranges(target)[1:] == [(f'bytes=100-{SIZE - 1}', OLD)]


def test_completion_replaces_stored_fields(client, upstream, path):
    """The fields of the newer response replace the stored ones."""
    target = path()
    data = upstream.add(target, fields='ETag: "v1"\nCache-Control: max-age=60\nX-One: old\nX-Two: old\nContent-Type: text/x')
    part(client, target, '0-99')
    upstream.turns[target, 2] = sends_part(upstream, 'ETag: "v1"\nCache-Control: max-age=30\nX-Two: new', data, 100, SIZE - 1)
    for how in (PARTIAL, HIT):
        response = fetch(client, target)
        check_whole(response, data, how)
        assert [response.headers[name] for name in ('etag', 'cache-control', 'x-one', 'x-two', 'content-type')] == \
            ['"v1"', 'max-age=30', 'old', 'new', 'text/x']


def test_no_store_on_a_206_removes_the_entry(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    upstream.turns[target, 2] = sends_part(upstream, 'ETag: "v1"\nCache-Control: no-store', data, 100, SIZE - 1)
    check_whole(fetch(client, target), data, PARTIAL)
    check_part(part(client, target, '0-99'), data, 0, 99, MISS)


# Stale ranges.

def age(upstream, target, fields='ETag: "v1"\nCache-Control: max-age=1'):
    return upstream.add(target, fields=fields)


def until_stale(client, target):
    """Waits until the stored response has become stale."""
    wait_for(lambda: part(client, target, '0-99', 'Cache-Control: only-if-cached').status == 504, f'{target} is stale')


def test_stale_range_is_revalidated(client, upstream, path):
    target = path('/revalidate/')
    data = age(upstream, target)
    part(client, target, '0-99')
    until_stale(client, target)
    check_part(part(client, target, '10-20'), data, 10, 20, REVALIDATED)
    assert upstream.last().header('if-none-match') == '"v1"' and upstream.last().header('range') == 'bytes=10-20'
    upstream.files[target][1] = 'ETag: "v1"\nCache-Control: max-age=60'
    time.sleep(2.1)     # the response would be 504 also before the update is stored
    check_part(part(client, target, '10-20'), data, 10, 20, REVALIDATED)
    wait_for(lambda: part(client, target, '0-99', 'Cache-Control: only-if-cached').status == 206, 'it is fresh again')
    check_part(part(client, target, '0-99'), data, 0, 99, HIT)
    assert len(upstream.requests_of(target)) == 3


def test_changed_version_replaces_a_stale_range(client, upstream, path):
    target = path('/revalidate/')
    age(upstream, target)
    part(client, target, '0-99')
    until_stale(client, target)
    data = upstream.add(target, fields='ETag: "v2"\nCache-Control: max-age=60', seed=11)
    check_part(part(client, target, '10-20'), data, 10, 20, EXPIRED)
    check_part(part(client, target, '10-20'), data, 10, 20, HIT)
    check_part(part(client, target, '0-9'), data, 0, 9, PARTIAL)


def test_if_range_of_the_client_is_respected(client, upstream, path):
    """The client's If-Range goes to the upstream server: otherwise the client would combine a part of the new version with its old one."""
    target = path('/revalidate/')
    age(upstream, target)
    part(client, target, '0-99')
    until_stale(client, target)
    data = upstream.add(target, fields='ETag: "v2"\nCache-Control: max-age=60', seed=11)
    check_whole(part(client, target, '10-20', 'If-Range: "v1"'), data, EXPIRED)


def test_stale_range_is_refreshed_by_a_range_request(client, upstream, path):
    """The cache requests the client's range; the response renews the freshness of the whole stored part."""
    target = path()
    data = age(upstream, target)
    part(client, target, '0-99')
    until_stale(client, target)
    upstream.files[target][1] = 'ETag: "v1"\nCache-Control: max-age=60'
    check_part(part(client, target, '10-20'), data, 10, 20, EXPIRED)
    assert upstream.last().header('if-none-match') is None and upstream.ranges(target)[1:] == [('bytes=10-20', None)]
    wait_for(lambda: part(client, target, '0-99', 'Cache-Control: only-if-cached').status == 206, 'it is fresh again')
    assert part(client, target, '0-99').body == data[:100]


def test_stale_range_is_completed(client, upstream, path):
    target = path()
    data = age(upstream, target)
    part(client, target, '0-99')
    until_stale(client, target)
    upstream.files[target][1] = 'ETag: "v1"\nCache-Control: max-age=60'
    check_whole(fetch(client, target), data, PARTIAL)
    check_whole(fetch(client, target), data, HIT)
    assert upstream.ranges(target)[1:] == [(f'bytes=100-{SIZE - 1}', '"v1"')]


def test_stale_range_is_served_on_errors(client, upstream, path):
    target = path('/stale/')
    data = age(upstream, target)
    part(client, target, '0-99')
    until_stale(client, target)
    for number in (2, 3, 4):
        upstream.turns[target, number] = lambda peer: upstream.send_response(peer, 'Status: 500', b'no')
    check_part(part(client, target, '10-20'), data, 10, 20, STALE)
    assert fetch(client, target).status == 500        # this part is not stored
    assert part(client, target, '90-110').status == 500


def test_stale_range_is_served_during_an_update(client, upstream, path):
    target = path('/background/')
    data = age(upstream, target)
    part(client, target, '0-99')
    time.sleep(2.1)     # a request, even with only-if-cached, would start the update
    upstream.files[target][1] = 'ETag: "v1"\nCache-Control: max-age=60'
    check_part(part(client, target, '10-20'), data, 10, 20, STALE)
    wait_for(lambda: part(client, target, '0-99').headers['x-cache'] == HIT, 'it is fresh again')
    assert len(upstream.requests_of(target)) == 2 and upstream.last().header('if-none-match') == '"v1"'


# Together with other functions of the cache.

def test_head_completes_the_entry(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    response = fetch(client, target, method='HEAD')
    assert (response.status, response.headers['content-length'], response.headers['x-cache']) == (200, str(SIZE), PARTIAL)
    wait_for(lambda: fetch(client, target, 'Cache-Control: only-if-cached').status == 200, 'the stored response is complete')
    check_whole(fetch(client, target), data, HIT)
    assert [(request.method, request.header('range')) for request in upstream.requests_of(target)] == [('GET', 'bytes=0-99'), ('GET', f'bytes=100-{SIZE - 1}')]


def test_ranges_of_vary_variants_are_separate(client, upstream, path):
    target = path()
    data = upstream.add(target, fields='ETag: "v1"\nVary: X-Kind\nCache-Control: max-age=60')
    other = random.Random(99).randbytes(SIZE)
    for number in (2, 4):
        def turn(peer):
            upstream.files[target] = [other, 'ETag: "o1"\nVary: X-Kind\nCache-Control: max-age=60']
            upstream.serve_file(peer)
            upstream.files[target] = [data, 'ETag: "v1"\nVary: X-Kind\nCache-Control: max-age=60']
            return True
        upstream.turns[target, number] = turn
    check_part(part(client, target, '0-99', 'X-Kind: a'), data, 0, 99, MISS)
    check_part(part(client, target, '0-99', 'X-Kind: b'), other, 0, 99, MISS)
    check_part(part(client, target, '0-99', 'X-Kind: a'), data, 0, 99, HIT)
    check_part(part(client, target, '0-99', 'X-Kind: b'), other, 0, 99, HIT)
    check_whole(fetch(client, target, 'X-Kind: a'), data, PARTIAL)
    check_whole(fetch(client, target, 'X-Kind: b'), other, PARTIAL)
    check_whole(fetch(client, target, 'X-Kind: a'), data, HIT)
    check_whole(fetch(client, target, 'X-Kind: b'), other, HIT)
    assert upstream.ranges(target)[2:] == [(f'bytes=100-{SIZE - 1}', '"v1"'), (f'bytes=100-{SIZE - 1}', '"o1"')]


def test_purge_removes_stored_ranges(client, upstream, path):
    target = path('/purge/')
    data = upstream.add(target)
    part(client, target, '0-99')
    assert fetch(client, target, method='PURGE').status == 204
    assert fetch(client, target, method='PURGE').status == 404
    check_part(part(client, target, '0-99'), data, 0, 99, MISS)


def test_unsafe_method_removes_stored_ranges(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    assert fetch(client, target, method='DELETE').status == 200
    check_part(part(client, target, '0-99'), data, 0, 99, MISS)


def test_concurrent_completions_are_coalesced(served, client, upstream, path):
    target = path('/lock/')
    data = upstream.add(target)
    part(client, target, '0-99')
    arrived, go = threading.Event(), threading.Event()

    def slow(peer):
        arrived.set()
        go.wait(20)
        return upstream.serve_file(peer)
    upstream.turns[target, 2] = slow
    got = []

    def one():
        own = served.connect(promoted=False)
        got.append(fetch(own, target))
        own.close()
    concurrent_requests = [threading.Thread(target=one) for _ in range(4)]
    concurrent_requests[0].start()
    assert arrived.wait(20)
    for thread in concurrent_requests[1:]:
        thread.start()
    wait_for_storing(0.2)
    go.set()
    for thread in concurrent_requests:
        thread.join(30)
    assert [response.body == data for response in got] == [True] * 4
    assert sorted(response.headers['x-cache'] for response in got) == [HIT] * 3 + [PARTIAL]
    assert len(upstream.requests_of(target)) == 2


def test_ranges_below_max_range_offset_fetch_the_whole(client, upstream, path):
    target, other = path('/far/'), path('/far/')
    data = upstream.add(target)
    check_part(part(client, target, '9999-20000'), data, 9999, 20000, MISS)
    check_whole(fetch(client, target), data, HIT)
    assert upstream.ranges(target) == [(None, None)]
    data = upstream.add(other)
    check_part(part(client, other, '10000-20000'), data, 10000, 20000, MISS)
    check_part(part(client, other, '10000-20000'), data, 10000, 20000, HIT)
    assert upstream.ranges(other) == [('bytes=10000-20000', None)]


def test_server_without_range_support(client, upstream, path):
    target = path()
    data = upstream.add(target)
    upstream.turns[target, 1] = lambda peer: upstream.send_response(peer, 'ETag: "v1"\nCache-Control: max-age=60', data)
    check_part(part(client, target, '100-199'), data, 100, 199, MISS)
    check_whole(fetch(client, target), data, HIT)


def test_unrequested_206_is_not_stored(client, upstream, path):
    """A 206 to a request without Range is passed on and not stored."""
    target = path()
    data = upstream.add(target)
    upstream.turns[target, 1] = sends_part(upstream, 'ETag: "v1"\nCache-Control: max-age=60', data, 0, 99)
    response = fetch(client, target)
    assert response.status == 206 and response.body == data[:100]
    wait_for_storing(0.05)
    check_whole(fetch(client, target), data, MISS)


def test_disabled_partial_caching_fetches_the_whole(served, client, upstream, path):
    target, other = path('/off/'), path('/off/')
    data = upstream.add(target)
    check_part(part(client, target, '100-199'), data, 100, 199, MISS)
    assert upstream.ranges(target) == [(None, None)]
    data = upstream.add(other)
    upstream.turns[other, 1] = breaks_after(upstream, 20000)
    broken(served, other)
    wait_for_storing(0.1)
    check_whole(fetch(client, other), data, MISS)
    assert upstream.ranges(other) == [(None, None)] * 2


def test_ranges_are_stored_after_min_uses(client, upstream, path):
    target = path('/twice/')
    data = upstream.add(target)
    check_part(part(client, target, '0-99'), data, 0, 99, MISS)
    check_part(part(client, target, '0-99'), data, 0, 99, MISS)
    check_part(part(client, target, '0-99'), data, 0, 99, HIT)
    check_whole(fetch(client, target), data, PARTIAL)


def test_bypass_replaces_stored_range(client, upstream, path):
    target = path('/bypass/')
    upstream.add(target)
    part(client, target, '0-99')
    data = upstream.add(target, fields='ETag: "v2"\nCache-Control: max-age=60', seed=12)
    check_whole(fetch(client, target, 'X-Bypass: 1'), data, BYPASS)
    check_part(part(client, target, '0-99'), data, 0, 99, HIT)
    assert fetch(client, target, method='DELETE').status == 200
    check_part(part(client, target, '0-99'), data, 0, 99, MISS)


def test_encoded_responses_use_stored_ranges(client, upstream, path):
    target = path('/packed/')
    upstream.files[target] = [b'text ' * 4000, 'ETag: "v1"\nContent-Type: text/plain\nCache-Control: max-age=60']
    part(client, target, '0-99')
    response = fetch(client, target, 'Accept-Encoding: gzip')
    assert response.status == 200 and response.headers['content-encoding'] == 'gzip' and response.headers['x-cache'] == PARTIAL
    check_whole(fetch(client, target), upstream.files[target][0], HIT)


def stored_bytes(folder):
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue
    return total


def test_max_size_bounds_incomplete_responses(launch, loop, transport, new_directory, upstream):
    """Stored ranges grow, become complete and are evicted; meanwhile each response has the bytes of its range."""
    folder, most = new_directory(), 300 * 1024
    os.chmod(folder, 0o755)
    server, http = configuration(upstream, folder)
    http['proxy_cache_path'].update(max_size='300k', manager_sleep='10ms')
    client = launch(loop, transport, server=server, http=http).connect(promoted=False)
    targets = [f'/full-{loop}-{transport}-{number}' for number in range(24)]
    files = {target: upstream.add(target, seed=number) for number, target in enumerate(targets)}
    dice, seen = random.Random(24), []
    for _ in range(6):
        for target in targets:
            first = dice.randrange(0, SIZE - 1)
            last = dice.choice([min(first + 15000, SIZE - 1), SIZE - 1])
            answer = part(client, target, f'{first}-{last}')
            assert answer.status == 206 and answer.headers['content-range'] == f'bytes {first}-{last}/{SIZE}'
            assert answer.body == files[target][first:last + 1]
            seen.append(answer.headers['x-cache'])
            if answer.headers['x-cache'] in (MISS, PARTIAL):   # requested again before it is evicted
                again = part(client, target, f'{first}-{last}')
                assert again.body == answer.body
                seen.append(again.headers['x-cache'])
        wait_for(lambda: stored_bytes(folder / 'cache') <= most, 'the cache is within max_size')
    assert {MISS, PARTIAL, HIT} <= set(seen)
    assert sum(len(data) for data in files.values()) > 2 * most
    assert len([target for target in targets if part(client, target, '0-9').headers['x-cache'] == MISS]) > 4   # some were evicted
    client.close()
