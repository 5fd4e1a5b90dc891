"""Settings that change within an exchange, because an internal redirect leads to a location with other values.

The table has each location setting that affects the request body or the sending of the response, in both directions. Each row is tested
with a redirect after the header section, during the body, and after the body, with Content-Length and with chunks; with HTTP/2
(SLUICE_PROTOCOL), without Content-Length instead of with chunks.
"""
import contextlib
import gzip
import signal
import threading

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream

HTTP2 = http1.PROTOCOL == 'http2'
PIECE = bytes(range(256)) * (16 if HTTP2 else 32)       # the body fits into the buffers of a socket, or into the window of a stream
PIECES = 12
BODY = PIECE * PIECES
MOMENTS = {'head': 0, 'arriving': PIECES // 2, 'whole': PIECES}

# setting, value in the first location, value in the location after the redirect
CHANGES = [
    ('client_body_buffer_size', '64k', '1k'), ('client_body_buffer_size', '1k', '64k'), ('client_body_buffer_size', '16m', '4k'),
    ('client_max_body_size', '1m', '1k'), ('client_max_body_size', '0', '1k'), ('client_max_body_size', '1m', '0'),
    ('proxy_request_buffering', True, False), ('proxy_request_buffering', False, True),
    ('proxy_buffering', True, False), ('proxy_buffering', False, True),
    ('proxy_buffers', '8 32k', '2 4k'), ('proxy_buffers', '2 4k', '8 32k'),
    ('proxy_max_temp_file_size', '1g', '0'), ('proxy_max_temp_file_size', '0', '1g'),
    ('output_buffers', '2 32k', '1 4k'), ('output_buffers', '1 4k', '2 128k'),
    ('sendfile', True, False), ('sendfile', False, True), ('tcp_nodelay', True, False), ('tcp_nodelay', False, True),
    ('limit_rate', '0', '20m'), ('limit_rate', '20m', '0'), ('proxy_limit_rate', '0', '20m'), ('proxy_limit_rate', '20m', '0'),
    ('client_min_rate', '0', '1'), ('client_min_rate', '1', '0'), ('gzip', True, False), ('gzip', False, True),
    ('client_body_timeout', '60s', '90s'), ('client_body_timeout', '90s', '60s'), ('send_timeout', '60s', '90s'),
    ('keepalive_timeout', '75s', '0'), ('keepalive_timeout', '0', '75s'), ('keepalive_requests', 1000, 1), ('keepalive_requests', 1, 1000),
    ('lingering_close', 'always', 'off'), ('reset_timedout_connection', False, True), ('server_tokens', True, False),
]
# A response of such a location ends the connection. HTTP/2 compares the number of requests when one begins, like nginx.
ENDS = [('keepalive_timeout', '0')] if HTTP2 else [('keepalive_timeout', '0'), ('keepalive_requests', 1)]


def echo(peer):
    """Responds with the body of the request."""
    body = peer.read_body()
    peer.send(b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
    return True


class Gates(Upstream):
    """Responds to auth_request: a request for /gate/403 gets status 403 once the test opens this gate for the case in X-Case."""

    def __init__(self):
        self.cases = {}
        super().__init__()
        self.scripts = self

    def get(self, path, plain):
        return self.respond_after_gate if path.startswith('/gate/') else echo

    def respond_after_gate(self, peer):
        case = self.cases[peer.request.header('x-case')]
        status = peer.request.target.rsplit('/', 1)[1]
        case.requested.append(status)
        assert case.opened[status].wait(60)
        peer.send(f'HTTP/1.1 {status} Gate\r\nContent-Length: 0\r\n\r\n')
        return True


class Case:
    """One request: the gates that it has reached, and those that the test has opened."""

    def __init__(self):
        self.requested, self.opened = [], {'403': threading.Event(), '200': threading.Event()}


@pytest.fixture(scope='module')
def gates():
    made = Gates()
    yield made
    made.stop()
    assert not made.faults, made.faults


def block_of(changes, to):
    """Two locations for each change: the first one denies the request after gate 403, and its error page waits for gate 200."""
    made = {'= /one.txt': {}, '/gate/': {'internal': True, 'proxy_pass': to, 'keepalive_timeout': 0, 'client_body_buffer_size': '2k'}}
    for number, (name, before, after) in enumerate(changes):
        made[f'/change{number}/'] = {name: before, 'auth_request': '/gate/403', 'error_page': f'403 = @change{number}'}
        made[f'@change{number}'] = {name: after, 'auth_request': '/gate/200', 'proxy_pass': to}
    return made


@pytest.fixture
def served(launch, loop, transport, gates):
    return launch(loop, transport, server={'location': block_of(CHANGES, f'http://127.0.0.1:{gates.port}')})


def start_post(client, target, headers, length):
    """Sends the head of a POST request; `length` None: chunked, or in HTTP/2 without Content-Length. Returns the stream in HTTP/2."""
    headers = [('Host', 'localhost'), *headers]
    if length is not None:
        headers.append(('Content-Length', str(length)))
    if HTTP2:
        return client.start('POST', target, headers, more=True)
    if length is None:
        headers.append(('Transfer-Encoding', 'chunked'))
    lines = ''.join(f'{name}: {value}\r\n' for name, value in headers)
    client.send(f'POST {target} HTTP/1.1\r\n{lines}\r\n')
    return None


def send_part(client, stream, part, chunked, last):
    if HTTP2:
        client.attempt(lambda: client.connection.send_body(stream, part, end=last))
    elif chunked:
        client.send(b'%x\r\n%s\r\n%s' % (len(part), part, b'0\r\n\r\n' if last else b''))
    else:
        client.send(part)


def post(client, target, headers, body, coding):
    stream = start_post(client, target, headers, len(body) if coding == 'length' else None)
    send_part(client, stream, body, coding != 'length', last=True)


def ends(request, response, expected):
    """True if the response ends the connection. In HTTP/2, GOAWAY may follow the response."""
    while HTTP2 and expected and not response.closes and request.client.connection.pump():
        pass
    return response.closes


class Request:
    """A POST request whose body is sent in steps: the server has received each step before the next one."""

    def __init__(self, served, gates, path, coding, fields=()):
        self.served, self.coding, self.sent = served, coding, 0
        self.case = gates.cases[str(id(self))] = Case()
        self.client, self.other = served.connect(), served.connect()
        self.stream = start_post(self.client, path, [('X-Case', str(id(self))), *fields], len(BODY) if coding == 'length' else None)

    def send_piece(self, last):
        send_part(self.client, self.stream, PIECE, self.coding == 'chunked', last)

    def send_up_to(self, count):
        for number in range(self.sent, count):
            self.send_piece(number + 1 == PIECES)
            assert self.other.get('/one.txt').status == 200
        self.sent = count

    def open_gate(self, status):
        wait_for(lambda: status in self.case.requested, f'the gate {status}')
        self.case.opened[status].set()

    def close(self):
        for gate in self.case.opened.values():
            gate.set()
        self.client.close()
        self.other.close()


@pytest.mark.parametrize('number', range(len(CHANGES)), ids=[f'{name} {before} to {after}' for name, before, after in CHANGES])
def test_settings_change_with_the_location(served, gates, number):
    name, _before, after = CHANGES[number]
    for coding in ('length', 'chunked'):
        for moment, pieces in MOMENTS.items():
            request = Request(served, gates, f'/change{number}/', coding, [('Accept-Encoding', 'gzip')] if name == 'gzip' else [])
            request.send_up_to(pieces)
            request.open_gate('403')
            wait_for(lambda: '200' in request.case.requested, 'the second location')    # noqa: B023
            request.send_up_to(PIECES)
            request.open_gate('200')
            response = request.client.read()
            body = gzip.decompress(response.body) if response.headers.get('content-encoding') == 'gzip' else response.body
            assert response.status == 200 and body == BODY, (coding, moment, response)
            assert ('content-encoding' in response.headers) == ((name, after) == ('gzip', True))
            closes = (name, after) in ENDS
            assert ends(request, response, closes) == closes, (coding, moment)
            if not closes:
                assert request.client.get('/one.txt').body == b'one\n'
            request.close()


def test_subrequest_retains_settings_of_the_parent(launch, loop, transport, gates):
    """The location of the auth_request subrequest has its own settings, but the settings of the connection and the body come from the
    parent request."""
    to = f'http://127.0.0.1:{gates.port}'
    served = launch(loop, transport, server={'location': {
        **block_of([], to), '/child/': {'client_body_buffer_size': '64k', 'auth_request': '/gate/200', 'proxy_pass': to}}})
    for coding in ('length', 'chunked'):
        request = Request(served, gates, '/child/', coding)
        request.send_up_to(PIECES // 2)
        request.open_gate('200')
        request.send_up_to(PIECES)
        response = request.client.read()
        assert response.body == BODY and not response.closes
        assert request.client.get('/one.txt').body == b'one\n'
        request.close()


# redirects to the second location: (directives of the first location, the body that arrives there)
REDIRECTS = {
    'try_files': ({'try_files': '/no-such-file @second'}, BODY),
    'error_page': ({'return': 503, 'error_page': '503 = @second'}, BODY),
    'error_page by path': ({'return': 503, 'error_page': '503 = /second/'}, b''),
    'accel': ({'proxy_request_buffering': True, 'accel': '@second'}, BODY),
    'accel by path': ({'proxy_request_buffering': True, 'accel': '/second/'}, b''),
    'when': ({'when': {'$http_x_case': {'client_body_buffer_size': '1k', 'proxy_pass': 'upstream'}}}, BODY),
}


def block_with_upstreams(directives, to):
    block = {'client_body_buffer_size': '64k', **directives}
    if 'accel' in block:
        block.update({'proxy_pass': to['accel'], 'proxy_set_header': {'X-Place': block.pop('accel')}})
    if 'when' in block:
        block['when'] = {'$http_x_case': {**block['when']['$http_x_case'], 'proxy_pass': to['echo']}}
    return block


@pytest.fixture(scope='module')
def redirecting_upstream():
    def script(peer):
        peer.read_body()
        peer.send(f'HTTP/1.1 200 OK\r\nX-Accel-Redirect: {peer.request.header("x-place")}\r\nContent-Length: 0\r\n\r\n')
        return True
    made = Upstream()
    made.scripts = type('Everywhere', (), {'get': lambda self, path, plain: script})()
    yield made
    made.stop()
    assert not made.faults


@pytest.mark.parametrize('redirect', sorted(REDIRECTS))
def test_settings_change_by_each_redirect(launch, loop, transport, gates, redirecting_upstream, redirect):
    to = {'echo': f'http://127.0.0.1:{gates.port}', 'accel': f'http://127.0.0.1:{redirecting_upstream.port}'}
    small = {'client_body_buffer_size': '1k', 'proxy_pass': to['echo']}
    directives, body = REDIRECTS[redirect]
    served = launch(loop, transport, server={'location': {
        '= /one.txt': {}, '/first/': block_with_upstreams(directives, to), '@second': small, '/second/': small}})
    for coding in ('length', 'chunked'):
        request = Request(served, gates, '/first/', coding)
        with contextlib.suppress(OSError):      # the server may have responded and closed before the whole body was sent
            request.send_up_to(PIECES)
        response = request.client.read()
        assert response.status == 200 and response.body == body, (coding, response)
        # The connection ends if the unread rest of the body is too long to be discarded.
        assert redirect == 'error_page by path' or request.client.get('/one.txt').body == b'one\n'
        request.close()


def test_reload_during_the_body(tmp_path, site, loop, gates):
    """A request keeps the settings with which it began; the next connection has the new ones."""
    to = f'http://127.0.0.1:{gates.port}'
    port = server_kit.free_port()

    def block(buffer, most, generation):
        return {'listen': f'127.0.0.1:{port}', 'root': site, 'location': {
            '= /one.txt': {}, '= /generation': {'return': f'200 {generation}'},
            '/': {'client_body_buffer_size': buffer, 'client_max_body_size': most, 'proxy_pass': to}}}
    server = server_kit.Server(tmp_path / 'reloaded', [block('1m', '1m', 1)], loop=loop).start([port])
    try:
        request = Request(Plain(port), gates, '/upload', 'length')
        request.send_up_to(PIECES // 2)
        server.tree['http']['server'] = [block('1k', '1k', 2)]
        server.write_configuration()
        old = set(server.workers())
        server.process.send_signal(signal.SIGHUP)
        request.other.close()
        wait_for(lambda: Plain(port).body('/generation') == b'2', 'the new configuration')
        for number in range(PIECES // 2, PIECES):
            request.send_piece(number + 1 == PIECES)
        response = request.client.read()
        assert response.status == 200 and response.body == BODY
        request.close()
        wait_for(lambda: not old & set(server.workers()), 'the end of the old worker')
        client = Plain(port).connect()
        assert client.fetch('POST', '/upload', body=BODY).status == 413
        client.close()
    finally:
        server.stop()


class Plain:
    """The connect() of Served for a port without TLS."""

    def __init__(self, port):
        self.port = port

    def connect(self):
        return http1.connect(self.port, timeout=60)

    def body(self, target):
        client = self.connect()
        try:
            return client.get(target).body
        except EOFError:
            return None
        finally:
            client.close()


# A body that is rejected or incomplete is not passed on by the location of the error page.
@pytest.mark.parametrize('coding, size, buffering, status', [
    ('length', 5000, False, 413), ('length', 5000, True, 413), ('chunked', 5000, True, 413), ('bad chunk', 0, True, 400)])
def test_rejected_body_is_not_forwarded(launch, loop, transport, gates, coding, size, buffering, status):
    to = f'http://127.0.0.1:{gates.port}'
    served = launch(loop, transport, server={'location': {'/': {
        'proxy_pass': to, 'client_max_body_size': '1k', 'proxy_request_buffering': buffering, 'error_page': '400 413 @page'},
        '@page': {'proxy_pass': to, 'client_max_body_size': 0}}})
    client = served.connect()
    before = len(gates.requests)
    if coding == 'bad chunk':
        client.send('POST /refused HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n')
    else:
        post(client, '/refused', [], b'x' * size, coding)
    response = client.read()
    assert response.status == status and response.body == b''
    seen = gates.requests[before:]
    assert [(request.method, request.body, request.header('transfer-encoding')) for request in seen] == [('POST', b'', None)]
    client.close()


@pytest.mark.parametrize('outer, laid, field, size, status', [
    ('1k', '1m', 'X-Case: 1', 5000, 200), ('1k', '1m', 'X-None: 1', 5000, 413), ('1m', '1k', 'X-Case: 1', 5000, 413),
    ('1m', '1k', 'X-None: 1', 5000, 200), ('1k', '0', 'X-Case: 1', 5000, 200)])
def test_body_size_limit_in_when(launch, loop, transport, gates, outer, laid, field, size, status):
    to = f'http://127.0.0.1:{gates.port}'
    served = launch(loop, transport, server={'location': {f'/{first}-{second}/': {
        'proxy_pass': to, 'client_max_body_size': first, 'when': {'$http_x_case': {'client_max_body_size': second}}}
        for first, second in (('1k', '1m'), ('1m', '1k'), ('1k', '0'))}})
    for coding in ('length', 'chunked'):
        client = served.connect()
        post(client, f'/{outer}-{laid}/', [tuple(field.split(': '))], b'x' * size, coding)
        assert client.read().status == status, coding
        client.close()


def refusing(peer):
    """Reads the complete request and responds with 503."""
    peer.read_body()
    peer.send('HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy')
    return True


def test_recursive_error_pages_of_upstream_errors(launch, loop, transport):
    """recursive_error_pages also applies to upstream responses (proxy_intercept_errors)."""
    upstream = Upstream({'/': refusing})
    to = f'http://127.0.0.1:{upstream.port}'
    pages = {'/': {'return': 502, 'error_page': '502 = @busy'}, '@last': {'return': '200 last'},
             '@busy': {'proxy_pass': to, 'proxy_intercept_errors': True, 'error_page': '503 = @last'}}
    for recursive, expected in ((True, (200, b'last')), (False, (503, b'busy'))):
        client = launch(loop, transport, server={'recursive_error_pages': recursive, 'location': pages}).connect()
        response = client.get('/')
        assert (response.status, response.body) == expected
        client.close()
    upstream.stop()


def test_mirror_gets_no_partial_body(launch, loop, transport, gates):
    """The first upstream server has received a part of the body, so the mirror must not get the rest."""
    upstream = Upstream({'/mirrored': refusing, '/copy': echo})
    to = f'http://127.0.0.1:{upstream.port}'
    served = launch(loop, transport, server={'location': {
        '= /one.txt': {}, '/mirrored': {'proxy_pass': to, 'proxy_intercept_errors': True, 'error_page': '503 @again'},
        '@again': {'mirror': '/copy', 'proxy_pass': to}, '/copy': {'internal': True, 'proxy_pass': to}}})
    client = served.connect()
    assert client.fetch('POST', '/mirrored', body=BODY).status == 502 # the status of the failed error page
    assert client.get('/one.txt').status == 200
    assert [request.target for request in upstream.requests] == ['/mirrored']
    assert 'mirror: no copies were sent: a part of the body was not buffered' in served.server.errors()
    client.close()
    upstream.stop()


def test_early_response_to_an_unbuffered_body(launch, loop, transport, tmp_path):
    """A body that cannot be buffered is passed on as it arrives. After an early response the rest is discarded, and the connection
    continues."""
    def early(peer):
        peer.read_exactly(len(PIECE) * 6)
        peer.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly')
        peer.upstream.responded.set()
        while peer.fill():
            peer.buffer = b''
    folder = tmp_path / 'bodies'
    upstream = Upstream({'/early': early})
    upstream.responded = threading.Event()
    served = launch(loop, transport, server={'location': {'= /one.txt': {}, '/early': {
        'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_request_buffering': True, 'client_body_temp_path': str(folder)}}})
    folder.rmdir()
    client, other = served.connect(), served.connect()
    client.send(f'POST /early HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(BODY)}\r\n\r\n')
    client.send(PIECE * 6)
    assert upstream.responded.wait(60)
    assert client.head().status == 200 and client.read_exactly(5) == b'early'
    for _ in range(6):
        client.send(PIECE)
        assert other.get('/one.txt').status == 200
    assert client.get('/one.txt').body == b'one\n'
    client.close()
    other.close()
    upstream.stop()
