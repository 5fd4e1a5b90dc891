"""The reverse proxy with failing upstream servers, and with requests that cannot be passed on."""
import socket
import ssl

import pytest
from kit import tls_end
from kit.lifetime import wait_for
from proxy_site import BROKEN, GARBAGE, client, closed_port, local, other, proxy, upstream  # noqa: F401


def test_connect_timeout_is_504(launch, loop, transport, upstream):
    """A server with a full accept queue does not accept the connection. The proxy tries the next server; without one the status is 504."""
    listener = socket.socket()
    listener.bind(('127.0.0.1', 0))
    listener.listen(0)
    waiting = []
    for _ in range(6):
        waiting.append(socket.socket())
        waiting[-1].setblocking(False)
        waiting[-1].connect_ex(listener.getsockname())
    full = f'127.0.0.1:{listener.getsockname()[1]}'
    soon = {'proxy_connect_timeout': '300ms'}
    served = launch(loop, transport, server={'location': {'/': {'proxy_pass': f'http://{full}', **soon},
                                                          '/either': {'proxy_pass': 'http://both', **soon}}},
                    http={'upstream': {'both': {'server': [full, f'127.0.0.1:{upstream.port} backup']}}})
    client = served.connect()
    assert client.get('/').status == 504
    assert client.get('/either').body == b'one GET /either\n'
    assert 'upstream timed out (110: Connection timed out) while connecting to upstream' in served.server.errors()
    client.close()
    for stream in (*waiting, listener):
        stream.close()


def test_error_response_is_forwarded(client):
    response = client.get('/error')
    assert response.status == 503 and response.body == b'busy\n' and response.headers['retry-after'] == '7'


@pytest.mark.parametrize('path', sorted(GARBAGE))
def test_invalid_responses_are_502(client, proxy, path):
    response = client.get(path)
    assert response.status == 502, response
    assert client.alive()
    if path != '/closed':
        wait_for(lambda: 'upstream sent invalid response' in proxy.server.errors() and f'GET {path} ' in proxy.server.errors(),
                 'no line in the error log')


@pytest.mark.parametrize('path', sorted(BROKEN) + ['/reset', '/half'])
def test_truncated_bodies_are_detectable(proxy, path):
    client = proxy.connect()
    client.send(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    with pytest.raises(EOFError):       # if all bytes arrived at once, the header section may not have been sent
        assert client.head().status == 200
        if path in ('/short', '/reset', '/half'):
            client.read_exactly(10 if path == '/short' else 1000)
        else:
            client.chunked()
    client.close()


@pytest.mark.parametrize('path', sorted(BROKEN) + ['/reset', '/half'])
def test_http10_client_detects_incomplete_response(proxy, path):
    """In HTTP/1.0 the end of the connection ends a body of unknown length: after an incomplete one the proxy must signal an error."""
    client = proxy.connect()
    if proxy.transport != 'plain':
        client.stream.suppress_ragged_eofs = False      # report an end without close_notify as an error
    client.send(f'GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n')
    response = b''
    with pytest.raises((ConnectionResetError, ssl.SSLEOFError) if proxy.transport != 'plain' else ConnectionResetError):
        while (piece := tls_end.receive(client.stream)):
            response += piece
        assert not response or b'Content-Length' in response        # Content-Length shows that the response is incomplete
        raise ConnectionResetError
    client.close()


def test_missing_response_is_504(client, proxy):
    assert client.get('/never').status == 504
    assert client.get('/dead/').status == 502
    assert client.get('/no-such-name/').status == 502
    assert client.alive()
    output = proxy.server.errors()
    assert 'upstream timed out (110: Connection timed out) while reading response header from upstream' in output
    assert 'connect() failed (111: Connection refused) while connecting to upstream' in output
    assert 'host not found' in output


def test_error_page_replaces_502(client):
    response = client.get('/fallback/x')
    assert response.status == 502 and response.body == b'one\n'


@pytest.mark.parametrize('coding', ['length', 'chunked'])
def test_sent_body_is_not_announced_again(proxy, other, coding):
    """The body was sent to the first server and cannot be sent again to the server of the error page. With the Content-Length of the first
    request, that server would read the next request as the body."""
    body = 'Content-Length: 100\r\n\r\n' + 'x' * 100 if coding == 'length' else 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'
    before = len(other.requests)
    client = proxy.connect()
    client.send('POST /closes HTTP/1.1\r\nHost: localhost\r\n' + body)
    assert client.read().status == 502
    assert len(other.requests) == before
    client.send('POST /closes-too HTTP/1.1\r\nHost: localhost\r\n' + body)
    assert client.read().body == b'two GET /second\n'
    assert other.last().header('transfer-encoding') is None and other.last().header('content-length') in (None, '0')
    client.send('GET /closes HTTP/1.1\r\nHost: localhost\r\n' + body)
    assert client.read().status == 502
    assert len(other.requests) == before + 1
    assert client.get('/closes').body == b'two GET /closes\n'       # without a body, the error page is requested
    client.close()


def test_early_response_to_a_long_body(proxy):
    client = proxy.connect()
    client.send('POST /early HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n' + 'x' * 100)
    response = client.read()
    assert response.status == 413 and response.body == b'no\n'
    client.close()


def test_oversize_body_is_413(client, proxy, upstream):
    assert client.fetch('POST', '/limited', body=b'0123456789').status == 200
    assert client.fetch('POST', '/limited', body=b'0123456789a').status == 413
    chunked = proxy.connect()
    chunked.send('POST /limited HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n' + 'b\r\n0123456789a\r\n0\r\n\r\n')
    assert chunked.read().status == 413
    chunked.close()


@pytest.mark.parametrize('line', [
    'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd',
    'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: a\r\n X: folded\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
    'GET / HTTP/1.1\nHost: a\n\n',
    'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n',
])
def test_ambiguous_requests_are_400(proxy, upstream, line):
    client = proxy.connect()
    client.send(line)
    assert client.read().status == 400
    client.close()
    # Requests of other tests may still arrive; those of this test have their own Host.
    assert not [request for request in upstream.requests if request.header('x-forwarded-host') in ('a', 'b')]
