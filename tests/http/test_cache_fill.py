"""Cache entries while they are filled: error responses, responses of unknown length above max_size, slow clients, and purges."""
import os
import threading

import pytest
from cache_site import EXPIRED, HIT, MISS, REVALIDATED, STALE, UPDATING, client, fetch, path, sites, stored, upstream  # pylint: disable=unused-import
from kit import server as server_kit
from kit.lifetime import wait_for

HUGE = b'x' * 16_000_000    # more than the socket buffers take
SOON = 'Cache-Control: max-age=60, stale-while-revalidate=100\nAge: 70'


@pytest.fixture
def served(launch, loop, transport, new_directory, upstream, sites):
    if (loop, transport) not in sites:
        folder = new_directory()
        os.chmod(folder, 0o755)
        to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_cache': 'one', 'proxy_cache_key': '$uri'}
        long_lock = {'proxy_cache_lock': True, 'proxy_cache_lock_timeout': '1h', 'proxy_cache_lock_age': '1h'}
        location = {
            '/': to,
            '/page.html': {'return': '200 page'},
            '/lock/': {**to, **long_lock, 'proxy_cache_revalidate': True},
            '/huge/': {'internal': True, 'alias': f'{folder}/huge/'},
            '/stores/': {**to, 'proxy_cache_key': '$arg_of', 'proxy_cache_revalidate': True},
            '/caught/': {**to, 'proxy_cache_key': '$arg_of', 'proxy_cache_revalidate': True, 'proxy_intercept_errors': True,
                         'error_page': '404 =404 /page.html'},
            '/small/': {**to, 'proxy_cache': 'small', **long_lock},
            '/variable/': {**to, **long_lock, 'proxy_pass': 'http://$arg_host'},
            '/purge/': {**to, 'proxy_cache_purge': 'PURGE 127.0.0.1'},
            '/away/': {'error_page': '404 = @away'},
            '@away': {**to, 'proxy_cache_background_update': True},
            '/same/': {**to, **long_lock, 'proxy_cache_key': '/away/$arg_of'},
        }
        (folder / 'huge').mkdir()
        (folder / 'huge' / 'file').write_bytes(HUGE)
        http = {'proxy_cache_path': [{'path': str(folder / 'one'), 'keys_zone': 'one:1m'},
                                     {'path': str(folder / 'small'), 'keys_zone': 'small:1m', 'max_size': '300k'}]}
        sites[loop, transport] = launch(loop, transport, server={'location': location, 'add_header': 'X-Cache $upstream_cache_status always'}, http=http)
    return sites[loop, transport]


@pytest.mark.parametrize('output, how', [('', HIT), ('\nETag: "a"', REVALIDATED)])
def test_cached_error_uses_error_page(client, upstream, path, output, how):
    """One location stores the error response; a location with an error_page for this status then uses the stored response."""
    name = path('')
    target, caught = f'/stores/?of={name}', f'/caught/?of={name}'
    age = '70' if how == REVALIDATED else '0'
    upstream.answers[target] = f'Status: 404\nCache-Control: max-age=60, stale-if-error=100\nAge: {age}{output}'
    upstream.answers[caught] = 'Status: 304\nETag: "a"'
    assert fetch(client, target).body == f'{target} 1'.encode()
    wait_for(lambda: fetch(client, target, 'Cache-Control: only-if-cached, max-stale').status == 404, 'it is stored')
    answer = fetch(client, caught)
    assert (answer.status, answer.body, answer.headers['x-cache']) == (404, b'page', how)
    assert len(upstream.requests_of(caught)) == (how == REVALIDATED)
    assert fetch(client, target, 'Cache-Control: max-stale').body == f'{target} 1'.encode()


def test_endless_response_is_not_stored(client, served, upstream, path):
    """The first client receives the whole response. The cache stores at most max_size of it, and waiting requests go to the upstream
    server."""
    target = path('/small/')
    more, first, piece = threading.Event(), threading.Event(), b'x' * 65536

    def respond(peer):
        peer.read_body()
        peer.send('HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n')
        for number in range(16):
            peer.send(b'%x\r\n%s\r\n' % (len(piece), piece))
            if number == 12 and not first.is_set():
                first.set()
                more.wait(20 * server_kit.PATIENCE)
        peer.send('0\r\n\r\n')
        return True
    upstream.answers[target] = respond
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    other = served.connect(promoted=False)
    # Thirteen pieces exceed max_size: the fill lock has been released, although the response is not complete.
    for _ in range(13):
        client.read_exactly(int(client.line(), 16) + 2)
    assert fetch(other, target).body == piece * 16
    more.set()
    client.chunked()
    assert fetch(other, target).headers['x-cache'] == MISS
    other.close()


@pytest.mark.parametrize('how', ['it still holds', 'it stands elsewhere'])
def test_slow_client_does_not_hold_the_fill_lock(client, served, upstream, path, how):
    """The fill lock is released when the 304 or the X-Accel-Redirect arrives, even if the client reads slowly."""
    target = path('/lock/')
    arrived, go = threading.Event(), threading.Event()
    first = how == 'it stands elsewhere'

    def respond(peer):
        if not first and len(upstream.requests_of(target)) == 1:
            return upstream.send_response(peer, 'Cache-Control: max-age=60, stale-if-error=1\nAge: 70\nETag: "a"', HUGE)
        arrived.set()
        assert go.wait(20 * server_kit.PATIENCE)
        return upstream.send_response(peer, 'X-Accel-Redirect: /huge/file' if first else 'Status: 304\nETag: "a"\nCache-Control: max-age=60', b'')
    upstream.answers[target] = respond
    if not first:
        assert fetch(client, target).body == HUGE
        wait_for(lambda: fetch(client, target, 'Cache-Control: only-if-cached, max-stale').status == 200, 'it is stored')
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert arrived.wait(20 * server_kit.PATIENCE)
    other = served.connect(promoted=False)
    other.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    third = served.connect(promoted=False)
    assert fetch(third, '/page.html').body == b'page'     # the response proves that the worker has processed the request of `other`
    go.set()
    assert client.head().status == 200
    assert other.read().body == HUGE
    for one in (other, third):
        one.close()


def test_target_from_a_variable_outlives_the_wait_for_the_fill_lock(client, served, upstream, path):
    """A worker creates at most 1000 groups from variables. While one request waits for the lock, others need more of them."""
    target = path('/variable/')
    holder, waiter = f'{target}?host=127.0.0.1:{upstream.port}', f'{target}?host=127.0.0.1:0{upstream.port}'
    arrived, go = threading.Event(), threading.Event()

    def respond(peer):
        arrived.set()
        assert go.wait(20 * server_kit.PATIENCE)
        return upstream.send_response(peer, 'Cache-Control: no-store', b'held')
    upstream.answers[holder] = respond
    upstream.answers[waiter] = 'Cache-Control: no-store'
    client.send(f'GET {holder} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert arrived.wait(20 * server_kit.PATIENCE)
    other = served.connect(promoted=False)
    other.send(f'GET {waiter} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    closed_port = server_kit.free_port()
    for subnet in range(5):
        third = served.connect(promoted=False)
        for last in range(202):
            assert fetch(third, f'/variable/{subnet}/{last}?host=127.1.{subnet}.{last + 1}:{closed_port}').status == 502
        third.close()
    go.set()
    assert client.read().body == b'held'
    assert other.read().body == f'{waiter} 1'.encode()
    other.close()


def test_fetch_begun_before_a_purge_is_not_stored(client, served, upstream, path):
    target = path('/purge/')
    arrived, go = threading.Event(), threading.Event()

    def respond(peer):
        if len(upstream.requests_of(target)) > 1:
            return upstream.send_response(peer, 'Cache-Control: max-age=60', b'new')
        arrived.set()
        assert go.wait(20 * server_kit.PATIENCE)
        return upstream.send_response(peer, 'Cache-Control: max-age=60', b'old')
    upstream.answers[target] = respond
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert arrived.wait(20 * server_kit.PATIENCE)
    other = served.connect(promoted=False)
    assert fetch(other, target, method='PURGE').status == 404
    go.set()
    assert client.read().body == b'old'
    answer = fetch(client, target)
    while answer.headers['x-cache'] != HIT:     # a response may be stored after it was sent
        assert answer.body == b'new'
        answer = fetch(client, target)
    assert answer.body == b'new'
    other.close()


def test_fetch_begun_before_an_unsafe_method_is_not_stored(client, served, upstream, path):
    """As above, with Vary, where the entry of the URI and the stored response are separate."""
    target = path()
    arrived, go = threading.Event(), threading.Event()

    def respond(peer):
        if peer.request.method == 'POST' or len(upstream.requests_of(target)) > 2:
            return upstream.send_response(peer, 'Cache-Control: max-age=60\nVary: X-V', b'new')
        arrived.set()
        assert go.wait(20 * server_kit.PATIENCE)
        return upstream.send_response(peer, 'Cache-Control: max-age=60\nVary: X-V', b'old')
    upstream.answers[target] = respond
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nX-V: 1\r\n\r\n')
    assert arrived.wait(20 * server_kit.PATIENCE)
    other = served.connect(promoted=False)
    assert fetch(other, target, method='POST').status == 200
    go.set()
    assert client.read().body == b'old'
    answer = fetch(client, target, 'X-V: 1')
    while answer.headers['x-cache'] != HIT:
        assert answer.body == b'new'
        answer = fetch(client, target, 'X-V: 1')
    assert answer.body == b'new'
    other.close()


def test_background_update_uses_the_parents_location(client, served, upstream, path):
    """The background update runs in the named location of its parent, which no URI reaches; waiting requests get the fill lock when it
    ends."""
    target = path('/away/')
    upstream.answers[target] = SOON
    assert fetch(client, target).headers['x-cache'] == MISS
    stored(client, target)
    assert fetch(client, target).headers['x-cache'] in (STALE, UPDATING)
    wait_for(lambda: len(upstream.requests_of(target)) >= 2, 'the update')
    other = '/same/?of=' + target[len('/away/'):]
    upstream.answers[other] = 'Cache-Control: max-age=60'
    wait_for(lambda: fetch(client, other).headers['x-cache'] == EXPIRED, 'the right to fetch')
