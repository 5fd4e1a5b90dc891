"""Stored responses that are stale or missing: validation, use of stale ones, updates, and concurrent requests (RFC 9111 4.3, RFC 5861)."""
import threading
import time

import pytest
from cache_site import (BIG, EXPIRED, HIT, MISS, REVALIDATED, STALE, UPDATING, client, concurrent_requests, delayed, fetch,  # pylint: disable=unused-import
                        path, pipelined, served, sites, stored, upstream, wait_for_storing)
from kit import server as server_kit
from kit.lifetime import wait_for

MAX_STALE = 'Cache-Control: max-stale'
RESPONSE_DELAY_MAX = 30 * server_kit.PATIENCE       # seconds


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


def test_concurrent_requests_are_coalesced(served, upstream, path):
    target = path('/lock/')
    upstream.answers[target] = delayed(upstream, target, lambda: time.sleep(0.4))
    responses = concurrent_requests(served, target)
    assert len(upstream.requests_of(target)) == 1
    assert {(status, body) for status, body, _ in responses} == {(200, f'{target} 1'.encode())}
    assert sorted(how for _, _, how in responses) == [HIT] * 19 + [MISS]


def test_lock_timeout_sends_the_request_upstream(served, upstream, path):
    target = path('/hasty/')
    upstream.answers[target] = delayed(upstream, target, lambda: wait_for(lambda: len(upstream.requests_of(target)) == 4, 'all requests'))
    responses = concurrent_requests(served, target, 4)
    assert len(upstream.requests_of(target)) == 4 and {status for status, _, _ in responses} == {200}


def test_uncacheable_response_releases_the_fill_lock(served, upstream, path):
    target = path('/lock/')
    upstream.answers[target] = delayed(upstream, target, lambda: time.sleep(0.1), 'Cache-Control: private')
    responses = concurrent_requests(served, target)
    assert {status for status, _, _ in responses} == {200} and len(upstream.requests_of(target)) == 20


def test_use_stale_updating_serves_concurrent_requests(client, served, upstream, path):
    target = path('/updating/')
    upstream.answers[target] = 'Cache-Control: max-age=60, stale-if-error=1\nAge: 70'
    fetch(client, target)
    stored(client, target, MAX_STALE)
    others = threading.Event()      # set when the other nine have their responses
    upstream.answers[target] = delayed(upstream, target, lambda: others.wait(RESPONSE_DELAY_MAX))
    responses = concurrent_requests(served, target, 10, lambda number: number == 9 and others.set())
    assert sorted(how for _, _, how in responses) == [EXPIRED] + [UPDATING] * 9
    assert {body for _, body, how in responses if how == UPDATING} == {f'{target} 1'.encode()}
    assert len(upstream.requests_of(target)) == 2


def test_background_update_serves_stale(client, served, upstream, path):
    target = path('/background/')
    upstream.answers[target] = 'Cache-Control: max-age=60, stale-while-revalidate=100\nAge: 70'
    fetch(client, target)
    stored(client, target, MAX_STALE)
    all_received = threading.Event()
    upstream.answers[target] = delayed(upstream, target, lambda: all_received.wait(RESPONSE_DELAY_MAX))
    responses = concurrent_requests(served, target, 10)
    assert {body for _, body, _ in responses} == {f'{target} 1'.encode()} and sorted(how for _, _, how in responses) == [STALE] + [UPDATING] * 9
    all_received.set()
    wait_for(lambda: fetch(client, target).headers['x-cache'] == HIT, 'the update')
    assert fetch(client, target).body == f'{target} 2'.encode()
    assert len(upstream.requests_of(target)) == 2


def test_background_update_outlives_its_client(served, upstream, path):
    target, client_left = path('/background/'), threading.Event()

    def respond(peer):
        if len(upstream.requests_of(target)) == 1:
            return upstream.send_response(peer, 'Cache-Control: max-age=60, stale-while-revalidate=100\nAge: 70', b'old')
        client_left.wait(RESPONSE_DELAY_MAX)
        return upstream.send_response(peer, 'Cache-Control: max-age=60', BIG)
    upstream.answers[target] = respond
    client = served.connect(promoted=False)
    fetch(client, target)
    stored(client, target, MAX_STALE)
    assert fetch(client, target).body == b'old'
    client.close()
    client = served.connect(promoted=False)
    assert fetch(client, target).body == b'old'
    client_left.set()
    wait_for(lambda: fetch(client, target).body == BIG, 'the update')
    assert len(upstream.requests_of(target)) == 2
    client.close()
