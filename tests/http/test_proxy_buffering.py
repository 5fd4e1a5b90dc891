"""Request and response bodies that are buffered while the receiver is slow: in memory, then in an unlinked temporary file."""
import os
import socket
import threading
import time

import pytest

from kit import http1, server as server_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream
from proxy_site import OK, responds_with

LARGE = bytes(range(256)) * 8192        # 2 MiB
HUGE = LARGE * 4                        # more than the socket buffers; the upstream server has a Unix socket, because TCP buffers can grow very large


def closes_without_response(peer):
    """Reads the complete request and closes the connection without a response."""
    peer.read_body()


def framed(peer, body, fields=''):
    """Sends a response with this body, in the framing that the path selects."""
    path = peer.request.target
    if 'chunked' in path:
        peer.send(OK + fields + 'Transfer-Encoding: chunked\r\n\r\n')
        peer.send(chunked(body))
    elif 'end' in path:
        peer.send(OK + fields + '\r\n')
        peer.send(body)
    else:
        peer.send(OK + fields + f'Content-Length: {len(body)}\r\n\r\n')
        peer.send(body)
    return 'end' not in path


class Responding:
    """Scripts that set `sent` when the proxy has taken the whole response."""

    def __init__(self):
        self.sent = threading.Event()

    def huge(self, peer, fields=''):
        self.sent.clear()
        keep = framed(peer, HUGE, fields)
        self.sent.set()
        return keep

    def scripts(self):
        return {
            **{f'/{kind}/huge-{framing}': self.huge for kind in ('kept', 'free', 'passed', 'small-file', 'no-folder', 'no-file')
               for framing in ('length', 'chunked', 'end')},
            '/kept/buffering-no': lambda peer: self.huge(peer, 'X-Accel-Buffering: no\r\n'),
            '/passed/buffering-yes': lambda peer: self.huge(peer, 'X-Accel-Buffering: Yes\r\n'),
            '/kept/short': responds_with(OK + 'Content-Length: 5\r\n\r\nshort', keep=True),
            '/kept/empty': responds_with(OK + 'Content-Length: 0\r\n\r\n', keep=True),
            '/kept/none': responds_with('HTTP/1.1 204 No Content\r\n\r\n', keep=True),
            '/kept/truncated': lambda peer: peer.send(OK + 'Content-Length: 9000000\r\n\r\n') or peer.send(LARGE),
            '/kept/malformed': lambda peer: peer.send((OK + 'Transfer-Encoding: chunked\r\n\r\n').encode() + chunked(LARGE)[:-5] + b'zz\r\n'),
            '/kept/events': self.events,
        }

    def events(self, peer):
        self.sent.clear()
        peer.send(OK + 'Content-Type: text/event-stream\r\n\r\ndata: 0\n\n')
        self.sent.wait(20)
        peer.send('data: 1\n\n')


@pytest.fixture(scope='module')
def responding():
    return Responding()


@pytest.fixture(scope='module')
def second_upstream(responding, new_directory):
    """An upstream server with long responses."""
    made = Upstream(responding.scripts(), name='second', path=str(new_directory() / 'second.sock'))
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def upstream():
    made = Upstream({'/early': responds_with('HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nno\n', keep=True)})
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def failing():
    """An upstream server that reads each request completely and fails."""
    made = Upstream({'/retried': closes_without_response, '/page': closes_without_response, '/post': closes_without_response,
                     '/busy': responds_with('HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n', keep=True)}, name='failing')
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def folder(new_directory):
    """The directory of temporary files, writable for the workers."""
    made = new_directory()
    made.chmod(0o777)
    return made


@pytest.fixture
def proxy(launch, loop, transport, upstream, second_upstream, failing, folder):
    to = f'http://127.0.0.1:{upstream.port}'
    responses = {'proxy_pass': f'unix:{second_upstream.path}', 'proxy_buffering': 'on', 'proxy_temp_path': str(folder)}
    group = {'proxy_pass': 'http://group', 'proxy_next_upstream': ['error', 'http_503']}
    return launch(loop, transport, http={
        'proxy_request_buffering': 'on', 'client_body_temp_path': str(folder), 'client_max_body_size': '8m',
        'upstream': {'one': {'server': f'unix:{second_upstream.path} max_conns=1 max_fails=0'},
                     'group': {'server': [f'127.0.0.1:{failing.port} max_fails=0', f'127.0.0.1:{upstream.port} backup']}},
    }, server={'location': {
        '/': {'proxy_pass': to},
        '/variable': {'proxy_pass': 'http://$arg_host'},
        '/limited': {'proxy_pass': to, 'client_max_body_size': 10},
        '/nowhere': {'proxy_pass': to, 'client_body_temp_path': '/proc'},
        '/streamed': {'proxy_pass': to, 'proxy_request_buffering': 'off'},
        '/retried': group, '/busy': group, '/post': group,
        '/page': {'proxy_pass': f'http://127.0.0.1:{failing.port}', 'error_page': '502 @second'},
        '@second': {'proxy_pass': to},
        '/kept/': responses,
        '/free/': {**responses, 'proxy_pass': 'http://one'},
        '/passed/': {**responses, 'proxy_buffering': 'off'},
        '/small-file/': {**responses, 'proxy_buffers': '4 4k', 'proxy_max_temp_file_size': '1m'},
        '/no-file/': {**responses, 'proxy_max_temp_file_size': 0},
        '/no-folder/': {**responses, 'proxy_temp_path': '/proc'},
        '/slow': {'proxy_pass': to, 'client_body_timeout': '300ms'},
        '/slow-streamed': {'proxy_pass': to, 'client_body_timeout': '300ms', 'proxy_request_buffering': 'off'},
    }})


@pytest.fixture
def client(proxy):
    made = proxy.connect()
    yield made
    made.close()


def chunked(body, size=7000, trailers=''):
    pieces = [body[at:at + size] for at in range(0, len(body), size)]
    return b''.join(b'%x\r\n%s\r\n' % (len(piece), piece) for piece in pieces) + b'0\r\n' + trailers.encode() + b'\r\n'


@pytest.mark.parametrize('size', [0, 1, 16383, 16384, 16385, 100_000, len(LARGE)])
def test_body_is_passed_on_unchanged(client, upstream, size):
    response = client.fetch('PUT', f'/sized/{size}', body=LARGE[:size])
    assert response.status == 200 and upstream.last().body == LARGE[:size]


@pytest.mark.parametrize('size', [0, 10, 100_000])
def test_buffered_chunked_body_has_content_length(client, upstream, size):
    client.send('PUT /chunked HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.send(chunked(LARGE[:size]))
    assert client.read('PUT').status == 200
    assert upstream.last().body == LARGE[:size]
    assert upstream.last().header('content-length') == str(size) and not upstream.last().header('transfer-encoding')


def test_trailers_follow_the_chunks(client, upstream):
    client.send('PUT /trailers HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n')
    client.send(chunked(LARGE[:50_000], trailers='X-Sum: 42\r\n'))
    assert client.read('PUT').status == 200
    assert upstream.last().body == LARGE[:50_000] and upstream.last().trailers == ['X-Sum: 42']


def test_request_is_sent_after_the_complete_body(client, upstream, folder):
    before = len(upstream.requests), upstream.connections
    client.send(f'PUT /late HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(LARGE)}\r\n\r\n')
    client.send(LARGE[:-1])
    assert (len(upstream.requests), upstream.connections) == before
    assert not os.listdir(folder), 'a temporary file has a name'
    client.send(LARGE[-1:])
    assert client.read('PUT').status == 200
    assert upstream.last().body == LARGE


def test_buffering_off_forwards_the_request_at_once(client, upstream):
    before = len(upstream.requests)
    client.send('PUT /streamed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n')
    wait_for(lambda: len(upstream.requests) > before, 'no request arrived')
    client.send('body')
    assert client.read('PUT').status == 200


@pytest.mark.parametrize('size', [10, 500_000])
@pytest.mark.parametrize('path', ['/retried', '/busy'])
def test_body_is_sent_again_to_the_next_server(client, upstream, failing, path, size):
    before = len(failing.requests)
    assert client.fetch('PUT', path, body=LARGE[:size]).status == 200
    assert upstream.last().body == LARGE[:size] and upstream.last().target == path
    if path == '/retried':
        assert failing.requests[before].body == LARGE[:size]


def test_non_idempotent_request_is_not_retried(client, upstream, failing):
    before = len(upstream.requests)
    assert client.fetch('POST', '/post', body=b'x' * 1000).status == 502
    assert len(upstream.requests) == before and failing.last().body == b'x' * 1000


def test_body_is_sent_to_the_error_page(client, upstream):
    assert client.fetch('PUT', '/page', body=LARGE[:300_000]).status == 502
    assert upstream.last().body == LARGE[:300_000]


def test_bodies_on_one_connection(client, upstream):
    """Requests with bodies of different sizes on one connection: each body arrives unchanged."""
    for size in (5, 40_000, 0, 300_000, 16_384, 1):
        assert client.fetch('PUT', '/row', body=LARGE[7:7 + size]).status == 200
        assert upstream.last().body == LARGE[7:7 + size]


def test_early_response_ends_buffering(client):
    assert client.fetch('PUT', '/early', body=LARGE[:100_000]).status == 403


def test_continue_is_sent_before_the_upstream_is_connected(client, upstream):
    before = len(upstream.requests)
    client.send('PUT /continue HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 20000\r\n\r\n')
    assert client.head().status == 100
    assert len(upstream.requests) == before
    client.send(LARGE[:20_000])
    assert client.read('PUT').status == 200
    assert upstream.last().body == LARGE[:20_000]


def test_target_from_a_variable_outlives_the_wait_for_a_body(client, proxy, upstream):
    """A worker creates at most 1000 groups from variables. While one request waits for its body, others need more of them."""
    closed_port = server_kit.free_port()
    client.send(f'PUT /variable?host=127.0.0.1:{upstream.port} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n')
    assert client.head().status == 100
    for subnet in range(5):
        other = proxy.connect()
        for last in range(202):
            assert other.get(f'/variable?host=127.1.{subnet}.{last + 1}:{closed_port}').status == 502
        other.close()
    client.send('body')
    assert client.read('PUT').status == 200
    assert upstream.last().body == b'body'


def test_oversize_body_is_413_without_an_upstream_request(client, proxy, upstream):
    before = len(upstream.requests)
    client.send('PUT /limited HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.send(chunked(b'x' * 11))
    assert client.read('PUT').status == 413
    bad = proxy.connect()
    bad.send('PUT /bad HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n')
    assert bad.read('PUT').status == 400
    bad.close()
    assert len(upstream.requests) == before


@pytest.mark.parametrize('target', ['/slow', '/slow-streamed'])
def test_stalled_request_body_is_408(proxy, target):
    client = proxy.connect()
    client.send(f'PUT {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nsl')
    time.sleep(0.1)
    client.send('ow')
    assert client.read('PUT').status == 408
    client.close()


def test_client_disconnection_sends_no_request(proxy, upstream):
    before = len(upstream.requests)
    for size in (0, 10, 100_000):
        client = proxy.connect()
        client.send(f'PUT /gone/{size} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(LARGE)}\r\n\r\n')
        client.send(LARGE[:size])
        client.close()
        wait_for(lambda size=size: proxy.server.access_for(f'/gone/{size}'), 'no line in the log')
        assert proxy.server.access_for(f'/gone/{size}')[0]['status'] == '499'
    assert len(upstream.requests) == before


def test_unwritable_directory_forwards_the_body_unbuffered(client, proxy, upstream):
    """All bytes arrive, and one log line has the reason why the body is not buffered."""
    count = proxy.server.errors().count('creating a temporary file in "/proc" failed')
    assert client.fetch('PUT', '/nowhere', body=LARGE).status == 200
    assert upstream.last().body == LARGE
    client.send('PUT /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.send(chunked(LARGE))
    assert client.read('PUT').status == 200
    assert upstream.last().body == LARGE and upstream.last().header('transfer-encoding') == 'chunked'
    assert client.fetch('PUT', '/nowhere', body=b'short').status == 200
    output = proxy.server.errors().count('creating a temporary file in "/proc" failed')
    assert output - count == 2


def test_concurrent_buffered_requests(proxy, upstream):
    def fetch(number, results):
        client = proxy.connect()
        body = LARGE[number:number + 200_000 + number]
        results[number] = client.fetch('PUT', f'/many/{number}', body=body).status
        client.close()
    results = {}
    threads = [threading.Thread(target=fetch, args=(number, results)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60 * server_kit.PATIENCE)
    assert results == dict.fromkeys(range(24), 200)
    requested = {request.target: request.body for request in upstream.requests if request.target.startswith('/many/')}
    assert all(requested[f'/many/{number}'] == LARGE[number:number + 200_000 + number] for number in range(24))


# Responses.

def request_without_reading(proxy, target):
    """Sends a request with a small receive buffer and does not read the response."""
    client = proxy.connect()
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    return client


@pytest.mark.parametrize('framing', ['length', 'chunked', 'end'])
def test_buffered_response_releases_the_upstream_connection(proxy, responding, folder, framing):
    """The proxy takes the whole response and releases the upstream connection before the client has read a byte."""
    responding.sent.clear()
    slow = request_without_reading(proxy, f'/free/huge-{framing}')
    assert responding.sent.wait(20 * server_kit.PATIENCE), 'a slow client delays the upstream server'
    assert not os.listdir(folder), 'a temporary file has a name'
    other = proxy.connect()
    wait_for(lambda: other.get('/free/short').status == 200, 'the only permitted connection is still in use')
    assert slow.read().body == HUGE
    assert other.get('/free/short').status == 200
    slow.close()
    other.close()
    assert proxy.server.access_for(f'/free/huge-{framing}')[0]['body_bytes_sent'] == str(len(HUGE))


@pytest.mark.parametrize('target', ['/passed/huge-length', '/kept/buffering-no', '/no-file/huge-length', '/no-folder/huge-chunked',
                                    '/small-file/huge-end'])
def test_full_buffers_apply_backpressure(proxy, responding, target):
    responding.sent.clear()
    slow = request_without_reading(proxy, target)
    assert not responding.sent.wait(1)
    assert slow.read().body == HUGE
    assert responding.sent.wait(20 * server_kit.PATIENCE)
    slow.close()


def test_x_accel_buffering_controls_buffering(proxy, responding):
    responding.sent.clear()
    slow = request_without_reading(proxy, '/passed/buffering-yes')
    assert responding.sent.wait(20 * server_kit.PATIENCE)
    response = slow.read()
    assert response.body == HUGE and 'x-accel-buffering' not in response.headers
    slow.close()


def test_fast_client_gets_the_same_body(client):
    for target in ('/kept/huge-length', '/small-file/huge-chunked', '/no-folder/huge-length', '/kept/huge-chunked'):
        assert client.get(target).body == HUGE
    assert client.get('/kept/short').body == b'short'
    assert client.get('/kept/empty').body == b''
    assert client.get('/kept/none').status == 204
    assert client.fetch('HEAD', '/kept/x').status == 200
    assert client.get('/kept/short').body == b'short'


def test_temporary_file_is_sent_by_sendfile(proxy, responding):
    """Transports that send files by sendfile also send the temporary file by sendfile."""
    responding.sent.clear()
    slow = request_without_reading(proxy, f'/kept/huge-length?{proxy.transport}')
    assert responding.sent.wait(20 * server_kit.PATIENCE)
    assert slow.read().body == HUGE
    slow.close()
    row = proxy.server.access_for(f'/kept/huge-length?{proxy.transport}')[0]
    assert row['tls_path'] == {'plain': f'plain-{http1.FILE_PATH}', 'user': 'user', 'ktls': f'ktls-{http1.FILE_PATH}'}[proxy.transport], row
    if proxy.transport != 'user':
        assert int(row['bytes_zero_copy']) > len(LARGE)


def test_missing_directory_is_logged_once(proxy, responding):
    output = 'creating a temporary file in "/proc" failed'
    before = proxy.server.errors().count(output)
    slow = request_without_reading(proxy, '/no-folder/huge-length')
    wait_for(lambda: proxy.server.errors().count(output) > before, output)
    assert slow.read().body == HUGE
    slow.close()
    assert proxy.server.errors().count(output) == before + 1


@pytest.mark.parametrize('target', ['/kept/truncated', '/kept/malformed'])
def test_truncated_body_is_detectable(proxy, target):
    """The bytes before the fault are passed on, and the client can detect that the response is incomplete."""
    client = proxy.connect()
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    while client.fill():
        pass
    assert len(client.buffer) > len(LARGE) // 2
    assert LARGE.startswith(client.buffer) if target == '/kept/truncated' else not client.buffer.endswith(b'\r\n0\r\n\r\n')
    client.close()


def test_server_sent_events_are_not_delayed(proxy, responding):
    client = request_without_reading(proxy, '/kept/events')
    head = client.head()
    assert head.status == 200
    while b'data: 0' not in client.buffer:
        assert client.fill()
    responding.sent.set()
    while b'data: 1' not in client.buffer:
        assert client.fill()
    client.close()


def test_disconnections_at_each_stage(proxy, responding):
    """Clients disconnect at different points of a response; the next client receives a complete one."""
    for wait in (0, 0.01, 0.1, 0.5):
        client = request_without_reading(proxy, '/kept/huge-length')
        time.sleep(wait)
        client.close()
    client = proxy.connect()
    assert client.get('/kept/huge-length').body == HUGE
    client.close()


def test_concurrent_buffered_responses(proxy):
    def fetch(number, results):
        client = proxy.connect(timeout=60)
        if number % 2:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.send(f'GET /kept/huge-{("length", "chunked", "end")[number % 3]} HTTP/1.1\r\nHost: localhost\r\n\r\n')
        time.sleep(number % 4 / 10)
        results[number] = client.read().body == HUGE
        client.close()
    results = {}
    threads = [threading.Thread(target=fetch, args=(number, results)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60 * server_kit.PATIENCE)
    assert results == dict.fromkeys(range(12), True)
