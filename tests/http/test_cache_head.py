"""HEAD with the proxy cache: answered from a stored GET, or converted to one."""
import threading

import pytest
from cache_site import BIG, HIT, MISS, client, fetch, path, pipelined, served, sites, stored, upstream, wait_for_storing  # pylint: disable=unused-import
from kit import server as server_kit
from kit.lifetime import wait_for


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
