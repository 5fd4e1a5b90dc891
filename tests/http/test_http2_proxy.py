"""HTTP/2 clients, and upstream servers with HTTP/1.1: fields, bodies and trailers in both directions."""
import contextlib
import hashlib
import queue
import socket
import threading
import time

import pytest

from kit import broken_records, http2, server as server_kit, upstream as upstream_kit
from kit.lifetime import wait_for

TIMEOUT = 60 * server_kit.PATIENCE
DELAY = 0.05        # seconds, in each direction
BIG = hashlib.shake_128(b'http2').digest(20_000_000)
PATIENT = ('proxy_read_timeout', 'lingering_timeout', 'lingering_time')


def send_chunked(peer):
    peer.read_body()
    peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n'
              'Keep-Alive: timeout=5\r\n\r\n')
    for at in range(0, 300000, 10000):
        peer.send(b'2710\r\n' + BIG[at:at + 10000] + b'\r\n')
    peer.send('0\r\nX-Sum: 42\r\n\r\n')
    return True


def send_big(peer):
    peer.read_body()
    peer.send(f'HTTP/1.1 200 OK\r\nContent-Length: {len(BIG)}\r\n\r\n'.encode() + BIG)
    return True


def send_interim(peer):
    peer.read_body()
    peer.send('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    return True


def break_off(peer):
    peer.read_body()
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort')
    return False


def send_to_the_end(peer):
    peer.read_body()
    peer.send('HTTP/1.1 200 OK\r\n\r\nuntil the end')
    return False


def await_the_end(peer):
    """Does not respond; adds the path to `upstream.ended` when the connection ends."""
    peer.read_body()
    peer.stream.settimeout(None)
    if peer.at_end():
        peer.upstream.ended.append(peer.request.target)
    return False


@pytest.fixture(scope='module')
def upstream():
    made = upstream_kit.Upstream({'/chunked': send_chunked, '/big': send_big, '/interim': send_interim, '/short': break_off,
                                  '/end': send_to_the_end, '/none/1': await_the_end, '/none/2': await_the_end})
    made.ended = []
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture
def served(launch, loop, transport, upstream):
    return launch(loop, transport, server={
        'client_max_body_size': '64m', 'location': {
            '/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_set_header': {'Host': '$host'}},
            '/none/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}', **dict.fromkeys(PATIENT, broken_records.PATIENT)},
            '/streamed/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}/', 'proxy_request_buffering': 'off'},
            '/small/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}/', 'client_max_body_size': '1k'}}})


@pytest.fixture
def client(served):
    made = http2.connect(served.port, served.transport, TIMEOUT)
    yield made
    made.close()


def test_request_fields_are_converted_to_http1(client, upstream):
    response = client.fetch('/a/b%20c?x=1', authority='LOCALHOST:1234', headers=[
        ('cookie', 'a=1'), ('cookie', 'b=2'), ('te', 'trailers'), ('x-custom', 'yes'), ('accept-encoding', 'gzip')])
    seen = upstream.last()
    assert response.status == 200 and response.body == b'one GET /a/b%20c?x=1\n'
    assert seen.version == 'HTTP/1.1' and seen.header('host') == 'localhost' and seen.header('cookie') == 'a=1; b=2'
    assert seen.header('x-custom') == 'yes' and len(seen.all('host')) == 1
    assert seen.header('via').startswith('2'), 'the protocol of the received request (RFC 9110 7.6.3)'
    assert not [name for name, _ in seen.lines if name.startswith(':')]
    assert client.fetch('/head', method='HEAD').status == 200 and upstream.last().method == 'HEAD'


def test_request_bodies_are_forwarded(client, upstream):
    for prefix in ('', '/streamed'):
        for body in (b'', b'x', BIG[:100000]):
            assert client.fetch(f'{prefix}/with', method='POST', headers=[('content-length', str(len(body)))], body=body).status == 200
            assert upstream.last().body == body and upstream.last().header('content-length') == str(len(body))
            assert client.fetch(f'{prefix}/without', method='POST', body=body).status == 200
            assert upstream.last().body == body


@pytest.mark.parametrize('prefix', ['', '/streamed'])
def test_request_trailers_are_forwarded(client, upstream, prefix):
    stream = client.request(f'{prefix}/trailers', method='POST', body=b'abc', end=False)
    client.h2.send_headers(stream, [('x-sum', '7')], end_stream=True)
    client.flush()
    assert client.wait(stream).status == 200
    assert upstream.last().body == b'abc'
    assert upstream.last().trailers == ['x-sum: 7']


def test_response_fields_and_trailers_are_forwarded(client):
    chunked = client.fetch('/chunked', headers=[('te', 'trailers')])
    assert bytes(chunked.body) == BIG[:300000] and chunked.trailers == [('x-sum', '42')]
    assert not {'transfer-encoding', 'connection', 'keep-alive', 'x-hop'} & set(chunked.headers)
    interim = client.fetch('/interim')
    assert [dict(fields)[':status'] for fields in interim.interims] == ['103'] and interim.body == b'ok'
    assert client.fetch('/end').body == b'until the end'


def test_truncated_response_resets_its_stream(client):
    whole = client.request('/chunked')
    short = client.fetch('/short')
    assert short.reset == http2.INTERNAL_ERROR and short.body == b'short'
    assert bytes(client.wait(whole).body) == BIG[:300000]


def test_large_bodies_in_both_directions(client, upstream):
    down = client.request('/big')
    up = client.request('/streamed/up', method='POST', headers=[('content-length', str(len(BIG)))], body=BIG)
    received, response = client.wait(down, up)
    assert response.status == 200
    assert hashlib.sha256(received.body).digest() == hashlib.sha256(BIG).digest()
    seen = next(request for request in reversed(upstream.requests) if request.target == '/up')
    assert hashlib.sha256(seen.body).digest() == hashlib.sha256(BIG).digest()


class DelayedPath:
    """Forwards one connection, each byte DELAY after it was received."""

    def __init__(self, port):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.target = port
        threading.Thread(target=self.connect, daemon=True).start()

    def connect(self):
        near, far = self.listener.accept()[0], socket.create_connection(('127.0.0.1', self.target))
        for source, destination in ((near, far), (far, near)):
            pieces = queue.Queue()
            threading.Thread(target=self.receive, args=(source, pieces), daemon=True).start()
            threading.Thread(target=self.send, args=(destination, pieces), daemon=True).start()

    def receive(self, source, pieces):
        while piece := http2.receive(source):
            pieces.put((time.monotonic() + DELAY, piece))
        pieces.put((0, b''))

    def send(self, destination, pieces):
        with contextlib.suppress(OSError):      # the other end has closed
            while (found := pieces.get())[1]:
                time.sleep(max(0, found[0] - time.monotonic()))
                destination.sendall(found[1])
            destination.shutdown(socket.SHUT_WR)


def test_windows_of_an_upload_grow_with_the_delay(served, upstream):
    """With windows of 64 KiB, a path with a delay of 100 ms would carry 5 Mbit/s."""
    client = http2.connect(DelayedPath(served.port).port, served.transport, TIMEOUT)
    stream, body = client.request('/streamed/slow', method='POST', end=False), BIG[:6_000_000]
    windows = [client.h2.local_flow_control_window(stream)]
    while body:
        client.send_body(stream, body[:windows[-1]], end=False)
        body = body[windows[-1]:]
        assert not body or client.pump()
        windows.append(client.h2.local_flow_control_window(stream))
    client.h2.end_stream(stream)
    client.flush()
    assert client.wait(stream).status == 200 and upstream.last().body == BIG[:6_000_000]
    assert windows[0] <= 65536 and max(windows) > 4 * 65536
    client.close()


def test_upload_above_client_max_body_size_is_413(client):
    """The connection and its other streams continue, with and without Content-Length."""
    for headers in ([('content-length', '100000')], []):
        response = client.fetch('/small/up', method='POST', headers=headers, body=BIG[:100000])
        assert response.status == 413
    assert client.fetch('/after').status == 200


def test_discarded_body_after_an_internal_redirect(launch, loop, transport):
    """The request for the error page of 413 has no body, but DATA frames of the original body still arrive, some in the same read."""
    served = launch(loop, transport, server={'error_page': '413 /one.txt', 'client_max_body_size': '1k'})
    frames = http2.raw(served.port, served.transport, TIMEOUT)
    for stream in range(1, 41, 2):
        frames.send(frames.head(stream, '/ten.txt', 'POST', [('content-length', '2000')], http2.END_HEADERS) +
                    http2.frame(http2.DATA, 0, stream, bytes(1000)) + http2.frame(http2.DATA, http2.END_STREAM, stream, bytes(1000)))
        found = frames.until(http2.HEADERS, http2.RST_STREAM, stream=stream)
        assert found[0] == http2.HEADERS
        assert dict(frames.decoder.decode(found[3]))[':status'] == '413'
    frames.close()


def test_wrong_content_length_is_malformed(served, upstream):
    """RFC 9113 8.1.1."""
    frames = http2.raw(served.port, served.transport, TIMEOUT)
    for stream, length, body in ((1, '3', b'abcd'), (3, '5', b'abcd')):
        frames.send(frames.head(stream, '/streamed/wrong', 'POST', [('content-length', length)], http2.END_HEADERS) +
                    http2.frame(http2.DATA, http2.END_STREAM, stream, body))
        assert frames.until(http2.RST_STREAM, stream=stream)[3][-1] == http2.PROTOCOL_ERROR
    frames.send(frames.head(5, '/fine'))
    assert frames.until(http2.HEADERS, stream=5)
    frames.close()
    assert not [request for request in upstream.requests if request.target == '/wrong' and request.body == b'abcd']


def test_expect_100_continue_is_answered(client):
    stream = client.request('/streamed/expect', method='POST', headers=[('expect', '100-continue'), ('content-length', '3')], end=False)
    client.until(lambda: client.responses[stream].interims)
    assert dict(client.responses[stream].interims[0])[':status'] == '100'
    client.send_body(stream, b'abc')
    assert client.wait(stream).status == 200


def test_rst_stream_closes_the_upstream_connection(launch, loop, transport):
    gone = []

    def wait_for_end(peer):
        peer.read_body()
        gone.append(peer.at_end())
        return False
    upstream = upstream_kit.Upstream({'/wait': wait_for_end})
    served = launch(loop, transport, server={'location': {'/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}}})
    client = http2.connect(served.port, served.transport, TIMEOUT)
    stream = client.request('/wait')
    wait_for(lambda: upstream.requests, 'the request')
    client.h2.reset_stream(stream, http2.CANCEL)
    client.flush()
    wait_for(lambda: gone == [True], 'the end of the upstream connection')
    assert client.fetch('/after').status == 200
    client.close()
    upstream.stop()


def test_invalid_record_of_the_client_ends_its_upstream_requests(client, served, upstream):
    """At once: without a wait until the client has read the alert and closed."""
    if served.transport == 'plain':
        pytest.skip('not TLS')
    paths = ['/none/1', '/none/2']
    upstream.requests.clear()
    upstream.ended.clear()
    for path in paths:
        client.request(path)
    wait_for(lambda: {request.target for request in upstream.requests} >= set(paths), 'not all requests arrive')
    assert not upstream.ended
    broken_records.send(client.sock)
    wait_for(lambda: sorted(upstream.ended) == paths, 'the upstream requests continue')
