"""Conditional requests whose response is not stored: the client gets a 304, and the complete response is stored."""
import os
import signal
import threading

import pytest
from cache_site import BIG, EXPIRED, HIT, MISS, client, fetch, lines, path, sites, stored, upstream  # pylint: disable=unused-import
from kit import http2, server as server_kit
from kit.lifetime import wait_for

LIMIT_DETACHED_SUBREQUESTS = 512    # src/base/limits.h
HUGE = bytes(range(256)) * 8192     # more than the server reads ahead
PAST, MODIFIED, LATER = 'Thu, 01 Jan 2009 00:00:00 GMT', 'Fri, 01 Jan 2010 00:00:00 GMT', 'Sat, 01 Jan 2011 00:00:00 GMT'
TAGGED, DATED = 'ETag: "v1"', f'Last-Modified: {MODIFIED}'

# Fields of the request, fields of the response (status by `Status:`), status of the response to the client.
ROWS = [
    ('If-None-Match: "v1"', TAGGED, 304),
    ('If-None-Match: W/"v1"', TAGGED, 304),
    ('If-None-Match: "v1"', 'ETag: W/"v1"', 304),
    ('If-None-Match: "v0", "v1"', TAGGED, 304),
    ('If-None-Match: "v0"\nIf-None-Match: "v1"', TAGGED, 304),
    ('If-None-Match: *', TAGGED, 304),
    ('If-None-Match: *', '', 304),
    ('If-None-Match: "v2"', TAGGED, 200),
    ('If-None-Match: v1', TAGGED, 200),
    ('If-None-Match: "v1"', '', 200),
    (f'If-Modified-Since: {MODIFIED}', DATED, 304),
    (f'If-Modified-Since: {LATER}', DATED, 304),
    (f'If-Modified-Since: {PAST}', DATED, 200),
    ('If-Modified-Since: yesterday', DATED, 200),
    (f'If-Modified-Since: {LATER}', 'Last-Modified: yesterday', 200),
    ('If-Modified-Since: {+1000}', '', 200),
    (f'If-None-Match: "v1"\nIf-Modified-Since: {PAST}', f'{TAGGED}\n{DATED}', 304),
    (f'If-None-Match: "v2"\nIf-Modified-Since: {LATER}', f'{TAGGED}\n{DATED}', 200),
    ('If-None-Match: "v1"\nRange: bytes=0-3', TAGGED, 304),
    ('If-None-Match: "v1"\nRange: bytes=0-3\nIf-Range: "v2"', TAGGED, 304),
    ('If-None-Match: "v1"', f'Status: 404\n{TAGGED}', 404),
    ('If-None-Match: "v1"', f'Status: 301\nLocation: /x\n{TAGGED}', 301),
    ('If-None-Match: "v1"', f'Status: 299\n{TAGGED}', 299),
]


@pytest.fixture
def served(launch, loop, transport, new_directory, upstream, sites):
    if (loop, transport) not in sites:
        folder = new_directory()
        os.chmod(folder, 0o755)
        to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_cache': 'one'}
        location = {
            '/': to,
            '/lock/': {**to, 'proxy_cache_lock': True, 'proxy_cache_lock_timeout': '1h', 'proxy_cache_lock_age': '1h'},
            '/small/': {**to, 'proxy_cache': 'small'},
            '/excluded/': {**to, 'proxy_no_cache': 1},
            '/limited/': {**to, 'proxy_limit_rate': '1m'},
            '/unbuffered/': {**to, 'proxy_buffering': False},
            '/revalidate/': {**to, 'proxy_cache_revalidate': True},
            '/hidden/': {**to, 'proxy_hide_header': 'ETag', 'gzip': True},
            '/impatient/': {**to, 'proxy_read_timeout': '300ms', 'proxy_cache_lock': True, 'proxy_cache_lock_timeout': '1h',
                            'proxy_cache_lock_age': '1h'},
            '/headless/': {**to, 'proxy_cache_convert_head': False},
            '/page/': {**to, 'error_page': '404 =404 /the/page'},
        }
        added = ['X-Cache $upstream_cache_status always', 'X-Upstream "$upstream_status $upstream_http_x_echo" always']
        http = {'proxy_cache_path': [{'path': str(folder / 'one'), 'keys_zone': 'one:1m'},
                                     {'path': str(folder / 'small'), 'keys_zone': 'small:1m', 'max_size': '300k'}]}
        sites[loop, transport] = launch(loop, transport, server={'location': location, 'add_header': added}, http=http)
    return sites[loop, transport]


@pytest.fixture
def other(served):
    made = served.connect(promoted=False)
    yield made
    made.close()


@pytest.fixture
def held(upstream):
    """held(target, body, chunked) -> an event, without which the upstream server sends the head and a third of the body only."""
    events = []

    def make(target, body=HUGE, chunked=False, end=None):
        go = threading.Event()
        events.append(go)

        def respond(peer):
            peer.read_body()
            framing = 'Transfer-Encoding: chunked' if chunked else f'Content-Length: {len(body)}'
            peer.send(f'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{TAGGED}\r\nX-Echo: this\r\nContent-Type: text/plain\r\n{framing}\r\n\r\n')
            for piece in (body[:len(body) // 3], body[len(body) // 3:]):
                peer.send(b'%x\r\n%s\r\n' % (len(piece), piece) if chunked else piece)
                assert go.wait(60 * server_kit.PATIENCE)
                if end:
                    return end(peer)
            peer.send('0\r\n\r\n' if chunked else '')
            return True
        upstream.answers[target] = respond
        return go
    yield make
    for go in events:
        go.set()


@pytest.mark.parametrize('number', range(len(ROWS)))
@pytest.mark.parametrize('method', ['GET', 'HEAD'])
def test_conditions_are_evaluated_for_a_response_that_is_stored(client, upstream, path, method, number):
    fields, answer, status = ROWS[number]
    target = path()
    status_line, more = answer.split('\n', 1) if answer.startswith('Status: ') else ('Status: 200', answer)
    upstream.answers[target] = lambda peer: upstream.send_response(peer, f'{status_line}\nCache-Control: max-age=60\n{more}', BIG)
    first = fetch(client, target, fields, method=method)
    assert (first.status, first.headers['x-cache'], first.body) == (status, MISS, BIG if status != 304 and method == 'GET' else b'')
    for name, value in (line.split(': ', 1) for line in lines(more).splitlines()):
        assert first.headers[name.lower()] == value
    if status == 304:
        assert 'content-length' not in first.headers and 'content-type' not in first.headers and 'transfer-encoding' not in first.headers
    stored(client, target)
    again = fetch(client, target)
    assert (again.status, again.headers['x-cache'], again.body) == (int(status_line[8:]), HIT, BIG)
    request, = upstream.requests_of(target)
    assert request.method == 'GET' and not [name for name, _ in request.lines if name.lower().startswith(('if-', 'range'))]


@pytest.mark.parametrize('method', ['GET', 'HEAD'])
def test_next_request_is_a_hit_after_a_short_body(client, upstream, path, method):
    for number in range(20):
        target = path()
        upstream.answers[target] = f'Cache-Control: max-age=60\n{TAGGED}'
        assert fetch(client, target, 'If-None-Match: "v1"', method=method).status == 304
        again = fetch(client, target, 'If-None-Match: "v1"')
        assert (again.status, again.headers['x-cache'], number) == (304, HIT, number)
        assert len(upstream.requests_of(target)) == 1


@pytest.mark.parametrize('prefix', ['/', '/lock/', '/limited/', '/unbuffered/', '/page/'])
@pytest.mark.parametrize('chunked', [False, True])
def test_304_does_not_wait_for_the_body(client, other, upstream, held, path, prefix, chunked):
    """The client's connection continues with other requests, and its end does not interrupt the storing."""
    target, next_target = path(prefix), path()
    go = held(target, chunked=chunked)
    upstream.answers[next_target] = ''
    first = fetch(client, target, 'If-None-Match: "v1"')
    assert (first.status, first.body, first.headers['etag'], first.headers['x-cache'], first.headers['x-upstream']) == (304, b'', '"v1"', MISS, '200 this')
    assert 'connection' not in first.headers
    assert fetch(client, next_target).body == f'{next_target} 1'.encode()
    client.close()
    assert fetch(other, next_target).body == f'{next_target} 2'.encode()    # the server has handled the end of `client`
    go.set()
    stored(other, target)
    again = fetch(other, target)
    assert again.headers['x-cache'] == HIT and again.body == HUGE and again.headers['content-type'] == 'text/plain'
    assert len(upstream.requests_of(target)) == 1


def test_access_log_of_a_304(client, served, held, path):
    """The line is written at the end of the response, and the storing adds none."""
    target = path()
    go = held(target)
    assert fetch(client, target, 'If-None-Match: "v1"').status == 304
    row, = served.server.access_for(target)
    assert (row['status'], row['body_bytes_sent']) == ('304', '0')
    go.set()
    stored(client, target)
    served.server.access_for(target, 2)
    assert [row['status'] for row in served.server.access() if row['request_uri'] == target].count('304') == 1


def test_waiting_requests_get_the_stored_response(client, other, served, upstream, held, path):
    """The fill lock remains with the response that is being stored."""
    target = path('/lock/')
    go = held(target)
    assert fetch(client, target, 'If-None-Match: "v1"').status == 304
    other.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    client.close()
    third = served.connect(promoted=False)
    upstream.answers['/third'] = ''
    assert fetch(third, '/third').status == 200     # the server has received the request of `other`
    third.close()
    go.set()
    answer = other.read()
    assert (answer.headers['x-cache'], answer.body) == (HIT, HUGE)
    assert len(upstream.requests_of(target)) == 1


def test_client_that_disconnects_before_the_304_releases_the_lock(client, other, upstream, held, path):
    """A short body is stored before the response: the end of the client interrupts that, as without conditions."""
    target = path('/lock/')
    go = held(target, body=b'short body')
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: "v1"\r\n\r\n')
    wait_for(lambda: upstream.requests_of(target), 'the request')
    client.close()
    upstream.answers[target] = f'Cache-Control: max-age=60\n{TAGGED}'
    answer = fetch(other, target, 'If-None-Match: "v1"')
    go.set()
    assert answer.status == 304 and len(upstream.requests_of(target)) == 2
    assert fetch(other, target).body == f'{target} 2'.encode()


@pytest.mark.parametrize('body', [HUGE, b'short body'])
@pytest.mark.parametrize('chunked', [False, True])
def test_incomplete_response_is_not_stored(client, upstream, held, path, body, chunked):
    target = path('/lock/')
    go = held(target, body, chunked, end=lambda peer: False)
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: "v1"\r\n\r\n')
    wait_for(lambda: upstream.requests_of(target), 'the request')
    go.set()
    assert client.read('GET').status == 304
    upstream.answers[target] = f'Cache-Control: max-age=60\n{TAGGED}'
    again = fetch(client, target)
    assert (again.headers['x-cache'], again.body) == (MISS, f'{target} 2'.encode())


def test_upstream_that_stops_is_given_up(client, upstream, held, path):
    """proxy_read_timeout applies to the rest of the response, too."""
    target = path('/impatient/')
    held(target)
    assert fetch(client, target, 'If-None-Match: "v1"').status == 304
    upstream.answers[target] = 'Cache-Control: max-age=60'
    answer = fetch(client, target)      # waits for the fill lock
    assert (answer.headers['x-cache'], answer.body) == (MISS, f'{target} 2'.encode())


def test_response_above_the_maximum_size_is_not_stored(client, upstream, held, path):
    target = path('/small/')
    go = held(target, chunked=True)
    first = fetch(client, target, 'If-None-Match: "v1"')
    go.set()
    assert first.status == 304
    upstream.answers[target] = f'Cache-Control: max-age=60\n{TAGGED}'
    assert fetch(client, target).headers['x-cache'] == MISS


def test_changed_response_in_place_of_a_stale_one(client, upstream, path):
    target = path('/revalidate/')
    upstream.answers[target] = 'Cache-Control: max-age=60, stale-if-error=100\nAge: 70\nETag: "v0"'
    assert fetch(client, target).headers['x-cache'] == MISS
    stored(client, target, 'Cache-Control: max-stale')
    upstream.answers[target] = lambda peer: upstream.send_response(peer, f'Cache-Control: max-age=60\n{TAGGED}', HUGE)
    first = fetch(client, target, 'If-None-Match: "v1"')
    assert (first.status, first.headers['x-cache'], first.headers['etag']) == (304, EXPIRED, '"v1"')
    wait_for(lambda: fetch(client, target).headers['x-cache'] == HIT, 'it is stored')
    assert fetch(client, target).body == HUGE
    assert [request.header('if-none-match') for request in upstream.requests_of(target)][:2] == [None, '"v0"']


@pytest.mark.parametrize('answer', ['Cache-Control: no-store', 'Cache-Control: private, max-age=60', 'Cache-Control: no-cache',
                                    'Cache-Control: max-age=60\nSet-Cookie: a=b', 'Cache-Control: max-age=60\nVary: *', 'X-Accel-Expires: 0'])
def test_response_whose_fields_forbid_storing_is_sent(client, upstream, path, answer):
    target = path()
    upstream.answers[target] = f'{TAGGED}\n{answer}'
    first = fetch(client, target, 'If-None-Match: "v1"')
    assert (first.status, first.body) == (200, f'{target} 1'.encode())


# Prefix, fields of the response, fields of the request, body.
UNSTORED = {
    'no lifetime': ('/', '', '', BIG),
    'proxy_no_cache': ('/excluded/', 'Cache-Control: max-age=60', '', BIG),
    'above the maximum size': ('/small/', 'Cache-Control: max-age=60', '', HUGE),
    'authorized': ('/', 'Cache-Control: max-age=60', '\nAuthorization: Basic eDp5', BIG),
}


@pytest.mark.parametrize('why', UNSTORED)
@pytest.mark.parametrize('method', ['GET', 'HEAD'])
def test_conditions_are_evaluated_for_a_response_that_is_not_stored(client, upstream, path, method, why):
    """As in nginx, unless fields of the response forbid to store it."""
    prefix, answer, fields, body = UNSTORED[why]
    target = path(prefix)
    upstream.answers[target] = lambda peer: upstream.send_response(peer, f'{TAGGED}\n{answer}', body)
    for tag, status in (('v1', 304), ('v2', 200), ('v1', 304)):
        response = fetch(client, target, f'If-None-Match: "{tag}"{fields}', method=method)
        assert (response.status, response.headers['x-cache'], response.headers['etag']) == (status, MISS, '"v1"')
        assert response.body == (body if status == 200 and method == 'GET' else b'')
        assert ('content-length' in response.headers) == (status == 200)
    assert not [name for request in upstream.requests_of(target) for name, _ in request.lines if name.lower().startswith('if-')]


def test_response_without_end_that_is_not_stored(client, served, upstream, held, path):
    """The 304 does not wait for the body, and only a part of it is received: the connection to the upstream server is closed."""
    target = path('/excluded/')
    closed = threading.Event()

    def respond(peer):
        peer.read_body()
        peer.send(f'HTTP/1.1 200 OK\r\n{TAGGED}\r\nTransfer-Encoding: chunked\r\n\r\n')
        try:
            while True:
                peer.send(b'10000\r\n%s\r\n' % bytes(65536))
        except OSError:
            closed.set()
        return False
    upstream.answers[target] = respond
    assert fetch(client, target, 'If-None-Match: "v1"').status == 304
    assert closed.wait(60 * server_kit.PATIENCE)


def test_error_page_is_not_conditional(client, upstream, path):
    target = path('/page/')
    upstream.answers[target] = 'Status: 404\nCache-Control: max-age=60'
    upstream.answers['/the/page'] = f'Cache-Control: max-age=60\n{TAGGED}'
    assert fetch(client, target, 'If-None-Match: "v1"').status == 404


def test_hidden_validator(client, upstream, path):
    """The condition is compared with the stored response, as for a hit."""
    target = path('/hidden/')
    upstream.answers[target] = f'Cache-Control: max-age=60\n{TAGGED}'
    for cache in (MISS, HIT):
        answer = fetch(client, target, 'If-None-Match: "v1"\nAccept-Encoding: gzip')
        assert (answer.status, answer.headers['x-cache'], answer.headers.get('etag')) == (304, cache, None)


def test_http2(served, other, upstream, held, path):
    """A 304 ends its stream; the end of the connection does not interrupt the storing."""
    targets = [path() for _ in range(5)]
    gates = [held(target, chunked=number % 2 == 1) for number, target in enumerate(targets)]
    client = http2.connect(served.port, served.transport, 60 * server_kit.PATIENCE)
    streams = [client.request(target, headers=[('if-none-match', '"v1"')]) for target in targets]
    assert [(answer.status, answer.body) for answer in client.wait(*streams)] == [(304, b'')] * 5
    client.close()
    for go in gates:
        go.set()
    for target in targets:
        stored(other, target)
        assert fetch(other, target).body == HUGE and len(upstream.requests_of(target)) == 1


def test_many_at_once(served, client, upstream, path):
    """All clients leave after their 304; each response is stored."""
    targets = [path() for _ in range(60)]
    for target in targets:
        upstream.answers[target] = lambda peer: upstream.send_response(peer, f'Cache-Control: max-age=60\n{TAGGED}', BIG)
    clients = [served.connect(promoted=False) for _ in targets]
    for one, target in zip(clients, targets):
        one.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: "v1"\r\n\r\n')
    for one in clients:
        assert one.read('GET').status == 304
        one.close()
    for target in targets:
        stored(client, target)
        assert fetch(client, target).body == BIG and len(upstream.requests_of(target)) == 1


def test_graceful_reload_completes_the_storing(client, served, upstream, held, path):
    """The old worker ends when it has stored the response."""
    target = path()
    go = held(target)
    assert fetch(client, target, 'If-None-Match: "v1"').status == 304
    client.close()
    server = served.server
    before, old = server.errors().count(server_kit.RUNS), set(server.workers())
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: server.errors().count(server_kit.RUNS) > before, 'the new worker runs')
    assert old < set(server.workers())
    go.set()
    wait_for(lambda: not old & set(server.workers()), 'the end of the old worker')
    fresh = served.connect(promoted=False)
    stored(fresh, target)
    assert fetch(fresh, target).body == HUGE and len(upstream.requests_of(target)) == 1
    fresh.close()


def test_response_is_sent_above_the_limit_of_detached_subrequests(served, client, upstream, held, path):
    if served.transport != 'plain':
        pytest.skip('hundreds of requests: one transport is enough')
    targets, limit = [path() for _ in range(LIMIT_DETACHED_SUBREQUESTS + 1)], LIMIT_DETACHED_SUBREQUESTS
    body = bytes(100_000)
    gates = [held(target, body) for target in targets]
    for target in targets[:limit]:
        assert fetch(client, target, 'If-None-Match: "v1"').status == 304
    client.send(f'GET {targets[limit]} HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: "v1"\r\n\r\n')
    assert client.head().status == 200
    for go in gates:
        go.set()
    assert client.read_exactly(len(body)) == body
    stored(client, targets[limit])
    stored(client, targets[0])
