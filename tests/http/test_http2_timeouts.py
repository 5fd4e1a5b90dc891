"""Timeouts of HTTP/2 streams: a stream that waits for its client ends, while other streams of the connection proceed."""
import time

import pytest

from kit import http2, server as server_kit, upstream as upstream_kit

TIMEOUT = 30 * server_kit.PATIENCE
BUSY = 6            # seconds of traffic on other streams, several times the timeouts


@pytest.fixture(scope='module')
def upstream():
    made = upstream_kit.Upstream()
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture
def served(launch, loop, transport, upstream):
    return launch(loop, transport, server={
        'send_timeout': '2s', 'client_body_timeout': '2s', 'client_header_timeout': '2s', 'lingering_timeout': '1s', 'location': {
            '/to/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}'},
            '/long_timeout/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'client_body_timeout': '1h'},
            '= /65536.bin': {'limit_rate': '16k'}}})


def keep_busy(seconds, work, until=lambda: False):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not until():
        work()
        time.sleep(0.02)    # fewer requests than keepalive_requests


def test_send_timeout_ends_a_blocked_stream(served):
    client = http2.connect(served.port, served.transport, TIMEOUT, widen=False, connection_window=1 << 24)
    stalled = client.request('/1048576.bin')
    client.until(lambda: len(client.responses[stalled].body) == http2.WINDOW)
    responses = []
    keep_busy(BUSY, lambda: responses.append(client.fetch('/one.txt').status), lambda: client.responses[stalled].over)
    assert client.responses[stalled].reset == http2.CANCEL, 'the responses of other streams extend the timeout'
    assert len(client.responses[stalled].body) == http2.WINDOW
    assert set(responses) == {200} and client.fetch('/one.txt').status == 200
    client.close()


def test_progress_restarts_the_send_timeout(served):
    client = http2.connect(served.port, served.transport, TIMEOUT, widen=False, connection_window=1 << 24)
    slow = client.request('/1048576.bin')
    response = client.responses[slow]
    client.until(lambda: len(response.body) == http2.WINDOW)
    for number in range(1, 7):
        time.sleep(0.7)
        client.h2.increment_flow_control_window(10_000, slow)
        client.flush()
        client.until(lambda number=number: len(response.body) == http2.WINDOW + number * 10_000)
    client.h2.increment_flow_control_window(1 << 20, slow)
    client.flush()
    assert len(client.wait(slow).body) == 1 << 20
    client.close()


def test_client_body_timeout_ends_a_stalled_stream(served, upstream):
    before = len(upstream.requests)
    client = http2.connect(served.port, served.transport, TIMEOUT)
    stalled = client.request('/to/stalled', method='POST', headers=[('content-length', '10')], end=False)
    client.send_body(stalled, b'part', end=False)
    delayed = client.request('/long_timeout/late', method='POST', headers=[('content-length', '4')], end=False)
    busy = client.request('/to/busy', method='POST', end=False)

    def send():
        client.send_body(busy, b'x' * 100, end=False)
        time.sleep(0.1)
        assert client.fetch('/one.txt').status == 200
    keep_busy(BUSY, send, lambda: client.responses[stalled].over)
    assert client.responses[stalled].status == 408, 'the bodies of other streams extend the timeout'
    assert not client.responses[delayed].over, 'a location has its own timeout'
    client.send_body(busy, b'y')
    client.send_body(delayed, b'late')
    assert [response.status for response in client.wait(busy, delayed)] == [200, 200]
    bodies = {request.target: request.body for request in upstream.requests[before:]}
    assert bodies['/long_timeout/late'] == b'late' and bodies['/to/busy'].endswith(b'xy')
    client.close()


def test_client_header_timeout_ends_the_connection(served):
    """The connection ends, because no later frame can be parsed; the response in progress is completed."""
    client = http2.Frames(http2.dial(served.port, served.transport, TIMEOUT), scheme='http' if served.transport == 'plain' else 'https')
    client.send(client.head(1, '/65536.bin'))
    client.send(http2.frame(http2.HEADERS, http2.END_STREAM, 3, client.fields('/one.txt')[:3]))
    frames = list(iter(client.next, None))
    goaways = [int.from_bytes(frame[3][:4], 'big') for frame in frames if frame[0] == http2.GOAWAY]
    assert goaways[-1] == 1, 'stream 3 was not processed'
    data = [frame for frame in frames if frame[0] == http2.DATA]
    assert sum(len(frame[3]) for frame in data) == 65535, 'the window'
    assert not [frame for frame in frames if frame[2] == 3]


def test_client_header_timeout_is_not_extended(served):
    """The connection ends while the client still sends CONTINUATION frames."""
    client = http2.Frames(http2.dial(served.port, served.transport, TIMEOUT))
    client.send(http2.frame(http2.HEADERS, http2.END_STREAM, 1, client.fields('/one.txt')[:3]))
    client.sock.settimeout(0.3)
    for _ in range(100):
        try:
            goaway = client.until(http2.GOAWAY)
            break
        except TimeoutError:
            client.send(http2.frame(http2.CONTINUATION, 0, 1, b''))
    else:
        pytest.fail('CONTINUATION frames extend the timeout')
    assert int.from_bytes(goaway[3][4:8], 'big') == http2.NO_ERROR
