"""`proxy_cache_partial` with upstream servers that send another range than requested, and with responses that break off: bytes of another
version or position must not be mixed in."""
import threading

import pytest
from cache_site import HIT, MISS, client, fetch, path, sites, wait_for_storing  # pylint: disable=unused-import
from kit.lifetime import wait_for
from partial_site import (OLD, PARTIAL, SIZE, breaks_after, broken, check_part, check_whole, part,  # pylint: disable=unused-import
                          sends_part, served, upstream, wait_until_stored)


# An upstream server that violates the request for the missing range. Each function makes the second response; the client must receive the
# server's current representation.

def wrong(**particulars):
    def make(upstream, target, data):
        return sends_part(upstream, particulars.pop('fields', 'ETag: "v1"\nCache-Control: max-age=60'), data, particulars.pop('first', 100),
                     particulars.pop('last', SIZE - 1), **particulars)
    return make


def responds(text, body=b''):
    return lambda upstream, target, data: lambda peer: upstream.send_response(peer, text, body)


HOSTILE = {
    'another first': lambda: wrong(first=99),
    'another first and last': lambda: wrong(first=101, last=SIZE - 2),
    'fewer bytes than requested': lambda: wrong(last=SIZE - 2),
    'only what is stored': lambda: wrong(first=0, last=99),
    'an overlap': lambda: wrong(first=50),
    'everything': lambda: wrong(first=0),
    'bytes of another place': lambda: wrong(first=0, last=SIZE - 101, range=f'bytes 0-{SIZE - 101}/{SIZE}'),
    'an unknown length': lambda: wrong(range=f'bytes 100-{SIZE - 1}/*'),
    'a longer whole': lambda: wrong(range=f'bytes 100-{SIZE - 1}/{SIZE + 1}'),
    'a shorter whole': lambda: wrong(last=SIZE - 11, range=f'bytes 100-{SIZE - 11}/{SIZE - 10}'),
    'longer than its Content-Range': lambda: wrong(first=99, range=f'bytes 100-{SIZE - 1}/{SIZE}'),
    'shorter than its Content-Range': lambda: wrong(first=101, range=f'bytes 100-{SIZE - 1}/{SIZE}'),
    'overflow': lambda: wrong(range=f'bytes 100-18446744073709551615/{SIZE}'),
    'wrap': lambda: wrong(range=f'bytes 18446744073709551716-{SIZE - 1}/{SIZE}'),
    'backwards': lambda: wrong(range=f'bytes {SIZE - 1}-100/{SIZE}'),
    'no place': lambda: wrong(range=None),
    'two places': lambda: wrong(fields=f'ETag: "v1"\nCache-Control: max-age=60\nContent-Range: bytes 0-99/{SIZE}'),
    'several parts': lambda: wrong(fields='ETag: "v1"\nCache-Control: max-age=60\nContent-Type: multipart/byteranges; boundary=x'),
    'no framing': lambda: wrong(chunked=True),
    'another validator': lambda: wrong(fields='ETag: "v2"\nCache-Control: max-age=60'),
    'a weak validator': lambda: wrong(fields='ETag: W/"v1"\nCache-Control: max-age=60'),
    'no validator': lambda: wrong(fields='Cache-Control: max-age=60'),
    'a date alone': lambda: wrong(fields=f'Last-Modified: {OLD}\nCache-Control: max-age=60'),
    'two validators': lambda: wrong(fields='ETag: "v1"\nETag: "v2"\nCache-Control: max-age=60'),
    'another coding': lambda: wrong(fields='ETag: "v1"\nContent-Encoding: x\nCache-Control: max-age=60'),
    'none of it': lambda: responds(f'Status: 416\nContent-Range: bytes */{SIZE}'),
    'not modified': lambda: responds('Status: 304\nETag: "v1"'),
}


@pytest.mark.parametrize('changed', [False, True])
@pytest.mark.parametrize('name', HOSTILE)
def test_mismatched_206_refetches_the_whole(client, upstream, path, name, changed):
    """No byte of the stored part is sent then: the cache requests the whole representation, without conditions."""
    target = path()
    data = upstream.add(target)
    check_part(part(client, target, '0-99'), data, 0, 99, MISS)
    upstream.turns[target, 2] = HOSTILE[name]()(upstream, target, data)
    if changed:
        data = upstream.add(target, SIZE + 5, fields='ETag: "v3"\nCache-Control: max-age=60', seed=8)
    check_whole(fetch(client, target), data, MISS)
    assert upstream.ranges(target)[1:] == [(f'bytes=100-{SIZE - 1}', '"v1"'), (None, None)]
    check_whole(fetch(client, target), data, HIT)
    check_part(part(client, target, '0-99'), data, 0, 99, HIT)


@pytest.mark.parametrize('name', ['another validator', 'an overlap', 'none of it'])
def test_mismatched_206_repeats_the_request_without_if_range(client, upstream, path, name):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    upstream.turns[target, 2] = HOSTILE[name]()(upstream, target, data)
    check_part(part(client, target, f'50-{SIZE - 1}'), data, 50, SIZE - 1, MISS)
    assert upstream.ranges(target)[1:] == [(f'bytes=100-{SIZE - 1}', '"v1"'), (f'bytes=50-{SIZE - 1}', None)]
    check_part(part(client, target, f'50-{SIZE - 1}'), data, 50, SIZE - 1, HIT)


@pytest.mark.parametrize('same', [True, False])
def test_complete_response_replaces_a_stored_range(client, upstream, path, same):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    if same:
        upstream.turns[target, 2] = lambda peer: upstream.send_response(peer, 'ETag: "v1"\nCache-Control: max-age=60', data)
    else:
        data = upstream.add(target, fields='ETag: "v2"\nCache-Control: max-age=60', seed=9)
    check_part(part(client, target, '50-150'), data, 50, 150, MISS)
    check_whole(fetch(client, target), data, HIT)
    assert len(upstream.requests_of(target)) == 2


def test_failure_retains_the_stored_range(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    upstream.turns[target, 2] = lambda peer: upstream.send_response(peer, 'Status: 503', b'busy')
    assert fetch(client, target).status == 503
    check_whole(fetch(client, target), data, PARTIAL)


def test_status_404_removes_the_stored_range(client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '0-99')
    upstream.turns[target, 2] = lambda peer: upstream.send_response(peer, 'Status: 404', b'none')
    assert fetch(client, target).status == 404
    check_part(part(client, target, '0-99'), data, 0, 99, MISS)


# Responses that break off.

@pytest.mark.parametrize('prefix', ['/', '/direct/'])
@pytest.mark.parametrize('count', [1, 16384, 30000, SIZE - 1])
def test_received_part_of_a_truncated_response_is_stored(served, client, upstream, path, count, prefix):
    target = path(prefix)
    data = upstream.add(target)
    upstream.turns[target, 1] = breaks_after(upstream, count)
    head, got = broken(served, target)
    assert (head is None or head.status == 200) and data[:count].startswith(got)
    wait_until_stored(client, target, f'0-{count - 1}')
    assert part(client, target, f'0-{count}', 'Cache-Control: only-if-cached').status == 504
    check_whole(fetch(client, target), data, PARTIAL)
    check_whole(fetch(client, target), data, HIT)
    assert upstream.ranges(target) == [(None, None), (f'bytes={count}-{SIZE - 1}', '"v1"')]


@pytest.mark.parametrize('fields', ['ETag: W/"v1"\nCache-Control: max-age=60', 'Cache-Control: max-age=60', 'ETag: "v1"\nCache-Control: no-store'])
def test_truncated_responses_are_stored_only_with_a_validator(served, client, upstream, path, fields):
    target = path()
    data = upstream.add(target, fields=fields)
    upstream.turns[target, 1] = breaks_after(upstream, 20000)
    broken(served, target)
    wait_for_storing(0.1)
    check_whole(fetch(client, target), data, MISS)
    assert upstream.ranges(target) == [(None, None)] * 2


def test_repeated_truncation_extends_the_stored_range(served, client, upstream, path):
    target = path()
    data = upstream.add(target)
    for number in range(1, 5):
        upstream.turns[target, number] = breaks_after(upstream, 7000)
        head, got = broken(served, target)
        assert head is None or (head.status == 200 and head.headers['content-length'] == str(SIZE))
        assert data[:7000 * number].startswith(got)
        wait_until_stored(client, target, f'0-{7000 * number - 1}')
    check_whole(fetch(client, target), data, PARTIAL)
    check_whole(fetch(client, target), data, HIT)
    assert [range_field for range_field, _ in upstream.ranges(target)] == [None] + [f'bytes={7000 * number}-{SIZE - 1}' for number in range(1, 5)]


def test_received_part_of_a_truncated_range_is_stored(served, client, upstream, path):
    target = path()
    data = upstream.add(target)
    upstream.turns[target, 1] = breaks_after(upstream, 500)
    head, got = broken(served, target, 'Range: bytes=1000-1999')
    assert (head is None or head.status == 206) and data[1000:1500].startswith(got)
    wait_until_stored(client, target, '1000-1499')
    check_part(part(client, target, '1000-1999'), data, 1000, 1999, PARTIAL)
    assert upstream.ranges(target)[1:] == [('bytes=1500-1999', '"v1"')]


def test_truncation_before_the_stored_range_retains_it(served, client, upstream, path):
    target = path()
    data = upstream.add(target)
    part(client, target, '10000-20000')
    upstream.turns[target, 2] = breaks_after(upstream, 500)
    broken(served, target, 'Range: bytes=0-15000')
    wait_for_storing(0.1)
    check_part(part(client, target, '10000-20000'), data, 10000, 20000, HIT)
    check_part(part(client, target, '0-15000'), data, 0, 15000, PARTIAL)
    check_part(part(client, target, '0-20000'), data, 0, 20000, HIT)


def test_version_change_between_ranges_replaces_the_entry(served, client, upstream, path):
    target = path()
    upstream.add(target)
    upstream.turns[target, 1] = breaks_after(upstream, 20000)
    broken(served, target)
    wait_until_stored(client, target, '0-19999')
    data = upstream.add(target, fields='ETag: "v2"\nCache-Control: max-age=60', seed=10)
    check_whole(fetch(client, target), data, MISS)
    check_whole(fetch(client, target), data, HIT)
    assert upstream.ranges(target)[1:] == [(f'bytes=20000-{SIZE - 1}', '"v1"')]


def test_client_disconnection_stores_the_received_range(served, client, upstream, path):
    target = path()
    data = upstream.add(target)
    gone = threading.Event()

    def turn(peer):
        peer.send(f'HTTP/1.1 200 OK\r\nETag: "v1"\r\nCache-Control: max-age=60\r\nContent-Length: {SIZE}\r\n\r\n')
        peer.send(data[:30000])
        gone.wait(20)
        return False
    upstream.turns[target, 1] = turn
    leaving = served.connect(promoted=False)
    leaving.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    leaving.head()
    wait_for(lambda: len(leaving.buffer) >= 30000 or not leaving.fill(), 'the bytes of the server')
    leaving.close()
    wait_until_stored(client, target, '0-29999')
    gone.set()
    check_whole(fetch(client, target), data, PARTIAL)
