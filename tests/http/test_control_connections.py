"""`sluice ctl connections`: what it lists, and that it closes one connection and no other."""
import contextlib
import json
import os
import re
import select
import signal
import socket
import ssl

import pytest
from kit import forbidden as forbidden_kit, http1, http2, server as server_kit
from kit.lifetime import BIG, wait_for
from kit.load import load
from test_control import Controlled, controlled  # pylint: disable=unused-import

TIMEOUT = 20 * server_kit.PATIENCE
LISTED_MAX = 400                    # LIMIT_CONTROL_CONNECTIONS
GET_BIG = b'GET /process-big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'


@contextlib.contextmanager
def client(port, first=b''):
    """A connection that has sent `first`, and takes few bytes of a response before they are read."""
    with socket.socket() as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.settimeout(TIMEOUT)
        stream.connect(('127.0.0.1', port))
        stream.sendall(first)
        yield stream


def name(stream):
    host, port = stream.getsockname()
    return f'{host}:{port}'


class Listed(Controlled):
    """A server whose location /held/ waits for an upstream server that never responds."""

    def __init__(self, *words):
        super().__init__(*words)
        self.silent = socket.create_server(('127.0.0.1', 0))

    def start(self, workers=2, **rest):
        held = {'/held/': {'proxy_pass': f'http://127.0.0.1:{self.silent.getsockname()[1]}'}}
        return super().start(workers=workers, location=held, **rest)

    def stop(self):
        self.silent.close()
        if self.server:
            self.server.stop()

    def listing(self):
        ran = self.run('connections', options=['--json'])
        assert ran.returncode == 0 and not ran.stderr, ran.stdout + ran.stderr
        return json.loads(ran.stdout)

    def row(self, stream, **expected):
        """The row of a client, once the server has accepted it and the row has these values."""
        def look():
            rows = [row for row in self.listing()['connections'] if row['client'] == name(stream)]
            return [row for row in rows if expected.items() <= row.items()]
        [row] = wait_for(look, f'the connection, {expected}')
        return row

    def close(self, number):
        assert self.ctl('connections', 'close', str(number)) == [{'id': number}]


@pytest.fixture(params=server_kit.LOOPS)
def listed(request, tmp_path, certificate, site, big):
    made = Listed(tmp_path, request.param, certificate, site)
    yield made
    made.stop()


def assert_reset(stream):
    """The connection ends by RST, perhaps after bytes of a response."""
    with pytest.raises(ConnectionResetError):
        while stream.recv(65536):
            pass


def at_end(stream):
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while stream.recv(65536):
            pass
    return True


def test_list(listed):
    """A connection in each state, with its path but neither query nor fields, and no other secret."""
    listed.start(workers=3)
    head = b'Host: localhost\r\nAuthorization: Basic c2VjcmV0MQ==\r\nCookie: secret2\r\n'
    with client(listed.port) as idle, client(listed.port, b'GET /half?secret3 HTTP/1.1\r\n' + head) as reading, \
            client(listed.port, b'GET /process-big.bin?token=secret4 HTTP/1.1\r\n' + head + b'\r\n') as writing, \
            client(listed.port, b'GET /held/a?secret5 HTTP/1.1\r\n' + head + b'\r\n') as held, client(listed.tls_port) as handshake:
        row = listed.row(writing, state='writing', path='/process-big.bin')
        assert row['method'] == 'GET' and row['requests'] == 1 and row['tls'] is None and row['tls_path'].startswith('plain')
        assert 0 < row['sent'] < BIG and row['received'] > len(head)
        assert row['worker'] in listed.server.workers() and row['listen'] == f'127.0.0.1:{listed.port}'
        assert row['server'] == 'localhost' and row['protocol'] == 'http/1.1' and 0 <= row['seconds'] < 600
        assert listed.row(held, path='/held/a')['state'] == 'writing'
        for stream, state, protocol in ((idle, 'waiting', 'http/1.1'), (reading, 'reading', 'http/1.1'), (handshake, 'handshake', None)):
            row = listed.row(stream, state=state)
            assert (row['method'], row['path'], row['tls_path'], row['requests'], row['sent'], row['protocol']) == (
                None, None, None, 0, 0, protocol)
        listing = listed.listing()
        assert len(listing['connections']) == 5, 'the connections to the control socket are not listed'
        assert listing['connections'] == sorted(listing['connections'], key=lambda row: row['id'])
        assert (listing['omitted'], listing['silent']) == (0, 0)
        table = listed.run('connections').stdout
        assert '/process-big.bin' in table and table.count('\n') == 6
        for text in (json.dumps(listing), table):
            assert 'secret' not in text and 'c2Vj' not in text


def test_tls_and_http2(listed):
    listed.start()
    context = ssl.create_default_context(cafile=listed.certificate[0])
    with client(listed.tls_port) as plain, context.wrap_socket(plain, server_hostname='localhost') as stream:
        stream.sendall(GET_BIG)
        row = listed.row(stream, path='/process-big.bin', protocol='http/1.1', requests=1)
        assert row['tls'] == stream.version() and not row['tls_path'].startswith('plain')
        listed.close(row['id'])
        assert at_end(stream)
    for transport, port in (('plain', listed.port), ('tls', listed.tls_port)):
        sock = http2.dial(port, transport, timeout=TIMEOUT)
        sock.sendall(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0, b''))
        for number in (1, 3, 5):
            fields = [http2.literal(*pair) for pair in ((b':method', b'GET'), (b':scheme', b'http'), (b':authority', b'localhost'),
                                                        (b':path', b'/held/%d?secret' % number))]
            sock.sendall(http2.header_block(number, *fields, flags=http2.END_STREAM))
        row = listed.row(sock, path='/held/5', protocol='h2', requests=3)
        assert (row['tls'] is None) == (transport == 'plain') and 'secret' not in json.dumps(row)
        listed.close(row['id'])
        assert at_end(sock)
        sock.close()


def test_upgraded(listed):
    """A tunnel after 101."""
    listed.start()
    with client(listed.port, b'GET /held/socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n') as stream, \
            listed.silent.accept()[0] as upstream:
        upstream.settimeout(TIMEOUT)
        assert b'upgrade' in upstream.recv(65536).lower()
        upstream.sendall(b'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')
        assert b' 101 ' in stream.recv(65536)
        row = listed.row(stream, protocol='upgraded')
        assert (row['method'], row['path'], row['requests']) == (None, None, 0)
        listed.close(row['id'])
        assert_reset(stream)
        assert at_end(upstream)


def test_paths_are_escaped(listed):
    """No byte of a path can alter the output: JSON is escaped, and other than visible ASCII is percent-encoded."""
    listed.start(workers=1)
    paths = {b'/held/"\\u0041\\': '/held/"\\u0041\\', b'/held/%22%5c%7B': '/held/%22%5c%7B', b'/held/\xc3\xa4\xc2\x9b[31m\xff': '/held/%C3%A4%C2%9B[31m%FF',
             b'/held/' + b'x' * 1000: '/held/' + 'x' * 249, b'/held/' + b'\xc3' * 1000: '/held/' + '%C3' * 83,
             b'http://a/held/b': '/held/b'}
    for target, shown in paths.items():
        with client(listed.port, b'GET ' + target + b'?secret HTTP/1.1\r\nHost: a\r\n\r\n') as stream:
            row = listed.row(stream, path=shown)
            assert 'secret' not in json.dumps(row)
            table = listed.run('connections').stdout
            assert shown in table and 'secret' not in table and re.fullmatch(r'[\n -~]*', table)
            listed.close(row['id'])
            assert_reset(stream)


def test_rejected_requests_show_no_password(listed):
    """The error page of a request whose target is an absolute URI with a password is held, too."""
    listed.start(workers=1, http={'error_page': '400 /held/'})
    with client(listed.port, b'GET http://user:secret@a/%00 HTTP/1.1\r\nHost: a\r\n\r\n') as stream:
        row = listed.row(stream, requests=1)
        assert row['path'] is None and 'secret' not in json.dumps(row)


def test_close(listed):
    """The client sees a reset; downloads of other clients and requests under load are not disturbed."""
    listed.start(workers=3)
    with load(listed.port, '/one.txt') as clients:
        with client(listed.port, GET_BIG) as closed, client(listed.port, GET_BIG) as other:
            row = listed.row(closed, path='/process-big.bin')
            kept = listed.row(other, path='/process-big.bin')
            for _ in range(5):
                clients.more(20)
                assert {row['id'], kept['id']} <= {one['id'] for one in listed.listing()['connections']}
            listed.close(row['id'])
            assert_reset(closed)
            clients.more(20)
            assert f'there is no connection {row["id"]}; GET /v1/connections lists them' in listed.refused('connections', 'close', str(row['id']))
            assert listed.row(other)['id'] == kept['id']
            assert sum(map(len, iter(lambda: other.recv(65536), b''))) > BIG
    assert listed.server.errors().count('control: the connection is closed') == 1
    wait_for(lambda: f'*{row["id"]} control: the connection is closed' in listed.server.errors(), 'a log line')


def test_close_of_each_state(listed):
    listed.start()
    for first, port in ((b'', listed.port), (b'GET / HTTP', listed.port), (b'', listed.tls_port), (b'GET /held/ HTTP/1.1\r\nHost: a\r\n\r\n', listed.port),
                        (b'GET /one.txt HTTP/1.1\r\nHost: a\r\n\r\n', listed.port)):
        with client(port, first) as stream:
            listed.close(listed.row(stream)['id'])
            assert_reset(stream)


def test_stream(listed):
    """Connections of `stream` are listed and closed, too; the upstream server sees the end."""
    with socket.create_server(('127.0.0.1', 0)) as upstream:
        upstream.settimeout(TIMEOUT)
        port = server_kit.free_port()
        listed.start(main={'stream': {'server': {'listen': f'127.0.0.1:{port}', 'proxy_pass': f'127.0.0.1:{upstream.getsockname()[1]}'}}})
        with client(port, b'hello') as stream, upstream.accept()[0] as peer, client(port) as other:
            peer.settimeout(TIMEOUT)
            assert peer.recv(100) == b'hello'
            peer.sendall(b'hi')
            assert stream.recv(100) == b'hi'
            row = listed.row(stream, protocol='stream', state='writing', sent=2, received=5)
            assert row['listen'] == f'127.0.0.1:{port}' and (row['path'], row['method'], row['requests']) == (None, None, 0)
            listed.close(row['id'])
            assert_reset(stream)
            assert at_end(peer)
            assert listed.row(other)['id'] != row['id']


def test_many(listed):
    """At most LISTED_MAX are listed, idle ones last, with the number of the others."""
    listed.start(workers=2)
    count = LISTED_MAX + 50
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(client(listed.port))
        active = stack.enter_context(client(listed.port, b'GET /held/a HTTP/1.1\r\nHost: a\r\n\r\n'))
        count += 1
        wait_for(lambda: (found := listed.listing()) and len(found['connections']) + found['omitted'] == count, 'all are accepted')
        listed.row(active, path='/held/a')
        listing = listed.listing()
        assert LISTED_MAX // 2 <= len(listing['connections']) <= LISTED_MAX and listing['silent'] == 0
        assert len(listing['connections']) + listing['omitted'] == count
        assert listed.run('connections').stdout.endswith(f'\n\nconnections that are not listed: {listing["omitted"]}\n')
        listed.close(listing['connections'][-1]['id'])


def test_many_commands(listed):
    """Above the rate of queries, commands wait, and none fails."""
    listed.start(workers=1)
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(client(listed.port)) for _ in range(40)]
        wait_for(lambda: len(listed.listing()['connections']) == 40, 'all are accepted')
        for row in listed.listing()['connections']:
            listed.close(row['id'])
        for stream in streams:
            assert_reset(stream)


def test_both_generations(listed):
    """A worker of the former generation lists and closes its connections."""
    listed.start()
    with client(listed.port, GET_BIG) as stream:
        former = set(listed.server.workers())
        row = listed.row(stream, path='/process-big.bin')
        listed.reload()
        assert listed.row(stream)['worker'] == row['worker'] and row['worker'] in former
        listed.close(row['id'])
        assert_reset(stream)
    wait_for(lambda: len(listed.ctl('workers')) == 2, 'the end of the former generation')


@contextlib.contextmanager
def control_requests(path, count=16):
    """Asks for the list on several connections: a worker that does not run may have accepted some of them."""
    with contextlib.ExitStack() as stack:
        streams = []
        for _ in range(count):
            stream = stack.enter_context(socket.socket(socket.AF_UNIX))
            stream.settimeout(TIMEOUT)
            wait_for(lambda: stream.connect_ex(path) == 0, 'room in the backlog')  # pylint: disable=cell-var-from-loop
            stream.sendall(b'GET /v1/connections HTTP/1.0\r\n\r\n')
            streams.append(stream)
        yield streams


def listings(path, count=16):
    """The responses with status 200, when all requests have a response."""
    with control_requests(path, count) as streams:
        texts = [b''.join(iter(lambda: stream.recv(65536), b'')).decode() for stream in streams]  # pylint: disable=cell-var-from-loop
    return [json.loads(text.split('\r\n\r\n', 1)[1]) for text in texts if text.startswith('HTTP/1.1 200 ')]


def first_listing(streams):
    """The first response with status 200."""
    waiting = list(streams)
    while True:
        ready, _, _ = select.select(waiting, [], [], TIMEOUT)
        assert ready, 'a response'
        for stream in ready:
            waiting.remove(stream)
            text = b''.join(iter(lambda: stream.recv(65536), b'')).decode()  # pylint: disable=cell-var-from-loop
            if text.startswith('HTTP/1.1 200 '):
                return json.loads(text.split('\r\n\r\n', 1)[1])


def test_a_worker_that_does_not_respond(listed):
    """The list of the others follows after a time. A connection of the hanging worker is not found."""
    listed.start(workers=2)
    with client(listed.port) as stream:
        row = listed.row(stream)
        stopped = [pid for pid in listed.server.workers() if pid != row['worker']][0]
        os.kill(stopped, signal.SIGSTOP)
        try:
            with control_requests(listed.socket) as streams:
                listing = first_listing(streams)
            assert listing['silent'] == 1 and row['id'] in {one['id'] for one in listing['connections']}
        finally:
            os.kill(stopped, signal.SIGCONT)


def test_errors(listed):
    listed.start(workers=1)

    def post(body):
        response = listed.request(f'POST /v1/connections/close HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}')
        return int(response.split()[1]), json.loads(response.split('\r\n\r\n', 1)[1])['error']
    assert post('{"id": 0}') == (400, 'the field "id" is a number from 1 to 18446744073709551615')
    assert post('{"id": "a"}')[0] == 400 and post('{}') == (400, 'the field "id" is missing')
    assert post('{"id": 18446744073709551615}') == (404, 'there is no connection 18446744073709551615; GET /v1/connections lists them')
    assert 'the field "id" is a number' in listed.refused('connections', 'close', 'all')
    assert '"connections close" takes 1 argument, found 0' in listed.refused('connections', 'close')
    response = listed.request('DELETE /v1/connections HTTP/1.0')
    assert response.startswith('HTTP/1.1 405 ') and '\r\nAllow: GET, HEAD\r\n' in response


def test_connections_of_the_control_socket_stay_open(listed):
    listed.start(workers=1)
    with listed.connect() as stream:
        stream.sendall(b'GET /v1/connections HTTP/1.1\r\nHost: a\r\n\r\n')
        assert b'"connections": []' in stream.recv(65536)
        for number in range(1, 10):
            assert 'there is no connection' in listed.refused('connections', 'close', str(number))
        stream.sendall(b'GET /v1/connections HTTP/1.0\r\n\r\n')
        assert b'"connections": []' in stream.recv(65536)


def test_many_queries(listed):
    """Queries above the limits are refused; the server and the master continue."""
    listed.start(workers=2)
    before = set(listed.server.workers())
    with control_requests(listed.socket, 300) as streams:
        codes = {b''.join(iter(lambda: stream.recv(65536), b'')).split()[1] for stream in streams}  # pylint: disable=cell-var-from-loop
    assert codes == {b'200', b'503'}
    wait_for(lambda: listed.run('connections').returncode == 0, 'a later query')
    assert set(listed.server.workers()) == before and listed.get().status == 200


def test_a_client_that_goes(listed):
    """Its query is cancelled; others follow."""
    listed.start(workers=1)
    for _ in range(10):
        with control_requests(listed.socket, 5):
            pass
    wait_for(lambda: listed.run('connections').returncode == 0, 'a later query')
    assert listed.listing()['connections'] == []


@pytest.mark.parametrize('control, count', [(False, 1), (True, 100000)])
@pytest.mark.parametrize('loop', server_kit.LOOPS)
def test_a_worker_that_sends_forbidden_queries_is_killed(forbidden, tmp_path, loop, control, count):
    """A query although there is no control socket, and far too many queries."""
    main = {'control': f'unix:{tmp_path}/control.sock'} if control else {}
    server = forbidden(loop, location={'/one.txt': {'return': '200 ok'}}, worker_processes=2, **main)
    before = set(server.workers())
    forbidden_kit.attempt(server, 'query', str(count))
    wait_for(lambda: len(server.workers()) == 2 and set(server.workers()) != before, 'a new worker')
    [victim] = before - set(server.workers())
    assert f'worker process {victim} sent a malformed message: it is killed' in server.errors()
    assert all(http1.connect(server.plain).get('/one.txt').status == 200 for _ in range(8))


@pytest.mark.parametrize('loop', server_kit.LOOPS)
def test_the_master_drops_too_many_queries(forbidden, tmp_path, loop):
    server = forbidden(loop, location={'/one.txt': {'return': '200 ok'}}, worker_processes=2, control=f'unix:{tmp_path}/control.sock')
    before = set(server.workers())
    assert forbidden_kit.attempt(server, 'query', '1000') == 0
    wait_for(lambda: [one for one in listings(f'{tmp_path}/control.sock', 1) if one['silent'] == 0], 'a later query')
    assert set(server.workers()) == before and http1.connect(server.plain).get('/one.txt').status == 200


@pytest.mark.parametrize('how', ['malformed', 'endless'])
@pytest.mark.parametrize('loop', server_kit.LOOPS)
def test_a_worker_that_sends_malformed_responses(forbidden, tmp_path, loop, how):
    """Malformed rows are ignored, and valid ones bounded; the rows of other workers are listed."""
    server = forbidden(loop, location={'/one.txt': {'return': '200 ok'}}, worker_processes=2, control=f'unix:{tmp_path}/control.sock')
    hostile = forbidden_kit.request(server, f'respond&value={how}')
    wait_for(lambda: 'waits for a query' in server.output(), 'the worker waits')
    [listing] = wait_for(lambda: [one for one in listings(f'{tmp_path}/control.sock') if one['silent'] or one['omitted']], 'its response')
    assert len(listing['connections']) <= LISTED_MAX
    if how == 'malformed':
        assert listing['silent'] == 1 and 'x' * 8 not in json.dumps(listing)
    else:
        assert listing['omitted'] > 1 << 60
    assert hostile.read().body == b'0'
    assert http1.connect(server.plain).get('/one.txt').status == 200
