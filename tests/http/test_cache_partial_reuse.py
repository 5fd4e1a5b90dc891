"""Stored ranges that are stale, and stored ranges together with other functions of the cache."""
import os
import random
import threading
import time

from cache_site import EXPIRED, HIT, MISS, REVALIDATED, STALE, client, fetch, path, sites, wait_for_storing  # pylint: disable=unused-import
from kit.lifetime import wait_for
from partial_site import (BYPASS, PARTIAL, SIZE, breaks_after, broken, check_part, check_whole, configuration,  # pylint: disable=unused-import
                          part, sends_part, served, upstream)


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
    threads = [threading.Thread(target=one) for _ in range(4)]
    threads[0].start()
    assert arrived.wait(20)
    for thread in threads[1:]:
        thread.start()
    wait_for_storing(0.2)
    go.set()
    for thread in threads:
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
