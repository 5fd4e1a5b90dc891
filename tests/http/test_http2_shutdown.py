"""The end of HTTP/2 connections by the server (RFC 9113 6.8): shutdown, reload, keepalive_requests and keepalive_time."""
import concurrent.futures
import os
import signal
import threading
import time

import pytest
from kit import http2
from kit.lifetime import refused, signal_and_wait, wait_for
from kit.server import RUNS
from test_http2 import TIMEOUT, open_client, sha256

CLIENTS, AT_ONCE, RELOADS = 3, 20, 4


@pytest.mark.parametrize('how', [signal.SIGHUP, signal.SIGQUIT])
def test_shutdown_completes_open_streams(start, loop, transport, site, how):
    server = start(loop=loop)
    port = server.plain if transport == 'plain' else server.port
    client = http2.connect(port, transport, TIMEOUT, widen=False)
    streams = [client.request('/1048576.bin') for _ in range(4)]
    client.until(lambda: client.responses[streams[0]].body)
    server.process.send_signal(how)
    client.until(lambda: client.goaway)
    client.h2.increment_flow_control_window(8 << 20)
    for stream in streams:
        client.h2.increment_flow_control_window(2 << 20, stream)
    client.flush()
    with open(os.path.join(site, '1048576.bin'), 'rb') as stream:
        whole = sha256(stream.read())
    assert [sha256(response.body) for response in client.wait(*streams)] == [whole] * 4
    client.to_end()
    assert client.goaway[0] == (2 ** 31 - 1, http2.NO_ERROR)
    assert client.goaway[-1] == (streams[-1], http2.NO_ERROR)
    client.close()
    if how == signal.SIGQUIT:
        assert server.process.wait(TIMEOUT) == 0 and refused(port)
    else:
        again = http2.connect(port, transport, TIMEOUT)
        assert again.fetch('/one.txt').status == 200
        again.close()


def test_shutdown_closes_idle_connections(start, loop, transport):
    server = start(loop=loop)
    client = http2.connect(server.plain if transport == 'plain' else server.port, transport, TIMEOUT)
    client.fetch('/one.txt')
    server.process.send_signal(signal.SIGQUIT)
    client.to_end()
    assert client.goaway == [(2 ** 31 - 1, http2.NO_ERROR), (1, http2.NO_ERROR)]
    client.close()
    assert server.process.wait(TIMEOUT) == 0


def test_unacknowledged_ping_does_not_delay_shutdown(start, loop, transport):
    """The client does not acknowledge the PING that follows the first GOAWAY."""
    server = start(loop=loop, http={'lingering_timeout': '1s', 'keepalive_timeout': '1h'})
    frames = http2.raw(server.plain if transport == 'plain' else server.port, transport, TIMEOUT)
    frames.send(frames.head(1))
    assert frames.until(http2.HEADERS, stream=1)
    assert signal_and_wait(server, signal.SIGQUIT) == 0
    assert frames.goaway() == http2.NO_ERROR
    frames.close()


def test_lingering_timeout_does_not_delay_the_second_goaway(start, loop, transport):
    """The second GOAWAY follows a second after the first, also without an acknowledgement, and names the streams that are completed."""
    server = start(loop=loop, http={'lingering_timeout': '1h', 'lingering_time': '1h', 'send_timeout': '1h'})
    frames = http2.raw(server.plain if transport == 'plain' else server.port, transport, TIMEOUT)
    frames.send(frames.head(1, '/1048576.bin'))
    assert frames.until(http2.DATA, stream=1)
    server.process.send_signal(signal.SIGQUIT)
    assert frames.until(http2.GOAWAY)[3][:4] == b'\x7f\xff\xff\xff'
    assert frames.until(http2.GOAWAY)[3][:4] == b'\0\0\0\1'
    frames.send(http2.number(http2.WINDOW_UPDATE, 0, 1 << 20) + http2.number(http2.WINDOW_UPDATE, 1, 1 << 20))
    while (found := frames.until(http2.DATA, stream=1)) and not found[1] & http2.END_STREAM:
        pass
    assert found, 'the response is completed'
    frames.close()
    assert server.process.wait(TIMEOUT) == 0


def test_keepalive_requests_ends_the_connection(launch, loop, transport):
    served = launch(loop, transport, server={'keepalive_requests': 3})
    client = open_client(served)
    for _ in range(3):
        assert client.fetch('/one.txt').status == 200
    client.to_end()
    assert client.goaway[-1] == (5, http2.NO_ERROR)
    client.close()


def test_keepalive_time_ends_the_connection(launch, loop, transport):
    """The first response after this time is the last one of the connection."""
    served = launch(loop, transport, server={'keepalive_time': '2s'})
    client = open_client(served)
    assert client.fetch('/one.txt').status == 200 and not client.goaway
    time.sleep(3)
    assert client.fetch('/one.txt').status == 200
    client.to_end()
    assert client.goaway[-1] == (3, http2.NO_ERROR)
    client.close()


def request_until_goaway(port, transport, ended):
    """Keeps AT_ONCE streams open until GOAWAY or `ended`. Returns the last stream that GOAWAY names (or None), and the responses by stream."""
    client = http2.connect(port, transport, TIMEOUT)
    while not client.goaway and not ended.is_set():
        for _ in range(AT_ONCE - sum(not response.over for response in client.responses.values())):
            client.request('/65536.bin')
        client.pump()
    while not all(response.over for response in client.responses.values()) and client.pump():
        pass
    client.close()
    return client.goaway[-1][0] if client.goaway else None, client.responses


def test_reloads_fail_no_stream(start, loop, transport):
    """Each stream up to the last one that GOAWAY names is completed (RFC 9113 6.8); a client repeats the others on a new connection."""
    server = start(loop=loop, http={'keepalive_requests': 100000})
    port, ended = server.plain if transport == 'plain' else server.port, threading.Event()

    def request_until_ended():
        found = []
        while not ended.is_set():
            found.append(request_until_goaway(port, transport, ended))
        return found
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(request_until_ended) for _ in range(CLIENTS)]
        for generation in range(2, 2 + RELOADS):
            before = len(server.access())
            wait_for(lambda before=before: len(server.access()) > before + 2 * CLIENTS * AT_ONCE, 'responses of every client')
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda generation=generation: server.errors().count(RUNS) >= generation, 'the new workers run')
        ended.set()
        connections = [connection for client in clients for connection in client.result(TIMEOUT)]
    assert sum(last is not None for last, _ in connections) >= CLIENTS, 'connections end by GOAWAY'
    for last, responses in connections:
        accepted = [response for stream, response in responses.items() if last is None or stream <= last]
        assert {(response.ended, response.status, len(response.body)) for response in accepted} == {(True, 200, 65536)}, last
