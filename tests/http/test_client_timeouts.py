"""client_min_rate: the server disconnects clients that send or receive below this rate, and no slow clients above it."""
import concurrent.futures
import os
import socket
import ssl
import time

import pytest

from kit import http2, server as server_kit, site as site_kit
from kit.lifetime import wait_for

SIZE = 24 * 1024 * 1024
LONG = 110          # seconds: two windows of 30, a third one in which the worker queries the kernel, and a margin


@pytest.fixture(scope='module')
def large(site):
    site_kit.make_file(os.path.join(site, 'patience.bin'), SIZE)


@pytest.fixture
def servers(launch, large):
    """One server for each loop, so that their waiting times overlap."""
    away = server_kit.free_port()
    return [launch(loop, 'plain', server={'send_timeout': '10m', 'location': {
        '/': {},
        '/to': {'proxy_pass': f'http://127.0.0.1:{away}', 'proxy_request_buffering': 'on'},
        '/any/': {'proxy_pass': f'http://127.0.0.1:{away}', 'client_min_rate': '0', 'proxy_request_buffering': 'on'},
    }}) for loop in server_kit.LOOPS]


def connect(served, transport):
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    stream.settimeout(30 * server_kit.PATIENCE)
    stream.connect(('127.0.0.1', served.ports['plain' if transport == 'plain' else 'tls']))
    if transport == 'plain':
        return stream
    easy = ssl.create_default_context()
    easy.check_hostname, easy.verify_mode = False, ssl.CERT_NONE
    return easy.wrap_socket(stream, server_hostname='localhost')


def send_slowly(served, transport, target, seconds):
    """Sends a byte every half second; returns the response, or b'' without one, and the duration."""
    began = time.monotonic()
    with connect(served, transport) as stream:
        stream.sendall(f'POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n'.encode())
        stream.settimeout(0.5)
        while time.monotonic() - began < seconds:
            try:
                stream.sendall(b'x')
                return stream.recv(1000), time.monotonic() - began
            except (TimeoutError, ssl.SSLWantReadError):
                continue
            except OSError:
                break
    return b'', time.monotonic() - began


def receive_slowly(served, transport, rate, seconds):
    """Receives `rate` bytes per second for `seconds`, then the rest; returns the number of bytes."""
    began, received = time.monotonic(), 0
    with connect(served, transport) as stream:
        stream.sendall(b'GET /patience.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        try:
            while time.monotonic() - began < seconds:
                received += len(stream.recv(rate // 2))
                time.sleep(0.5)
            while True:
                piece = stream.recv(1 << 20)
                received += len(piece)
                if not piece:
                    return received
        except OSError:
            return received


def widen_slowly(served, transport, increment, seconds):
    """One stream of an HTTP/2 connection gets a window of `increment` bytes per second, others any. Returns the code of its RST_STREAM, or
    None, and the duration."""
    client = http2.connect(served.ports['plain' if transport == 'plain' else 'tls'], transport, 30 * server_kit.PATIENCE, widen=False,
                           connection_window=1 << 24)
    slow = client.request('/patience.bin')
    client.until(lambda: len(client.responses[slow].body) == http2.WINDOW)
    began = time.monotonic()
    while time.monotonic() - began < seconds and not client.responses[slow].over:
        client.h2.increment_flow_control_window(increment, slow)
        client.flush()
        assert client.fetch('/one.txt').status == 200
        time.sleep(1)
    client.close()
    return client.responses[slow].reset, time.monotonic() - began


def test_client_min_rate_closes_only_slower_clients(servers):
    sides = [(served, transport) for served in servers for transport in ('plain', 'user')]
    with concurrent.futures.ThreadPoolExecutor(6 * len(sides)) as pool:
        refused = [pool.submit(send_slowly, *side, '/to', LONG) for side in sides]
        allowed = [pool.submit(send_slowly, *side, '/any/', LONG) for side in sides]
        slow = [pool.submit(receive_slowly, *side, 20, LONG) for side in sides]
        whole = [pool.submit(receive_slowly, *side, 4000, LONG) for side in sides]
        reset = [pool.submit(widen_slowly, *side, 100, LONG) for side in sides]
        widened = [pool.submit(widen_slowly, *side, 4000, LONG) for side in sides]
        for one in refused:
            response, took = one.result()
            assert response.startswith(b'HTTP/1.1 408 ') and took >= 29
        for one in allowed:
            assert one.result()[0] == b''
        for one in slow:
            assert one.result() < SIZE
        for one in whole:
            assert one.result() > SIZE
        for one in reset:
            code, took = one.result()
            assert code == http2.CANCEL and took >= 29
        for one in widened:
            assert one.result()[0] is None
    for served in servers:
        output = served.server.errors()
        assert output.count('sends less than 240 bytes a second (client_min_rate)') == 2
        assert output.count('takes less than 240 bytes a second (client_min_rate)') == 2
        wait_for(lambda served=served: served.connect().get('/one.txt').status == 200, 'others are served')
