"""`proxy_cache_partial`: range requests complete a partially stored response; bytes of another version or position must not be mixed in."""
import pytest
from cache_site import HIT, MISS, client, fetch, path, sites, wait_for_storing  # pylint: disable=unused-import
from partial_site import OLD, PARTIAL, SIZE, check_part, check_whole, part, sends_part, served, upstream  # pylint: disable=unused-import


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
