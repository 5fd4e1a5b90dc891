"""The reverse proxy with common applications: uvicorn (ASGI), Python's websockets, Node.js; also killed and restarted under load."""
import collections
import contextlib
import json
import os
import socket
import threading

import pytest
from kit import programs, http1, server as server_kit
from kit.lifetime import wait_for


@pytest.fixture(scope='module')
def uvicorn():
    made = programs.uvicorn('asgi:app')
    yield made
    made.stop()


@pytest.fixture(scope='module')
def sockets(base):
    notes = base / 'sockets-notes'
    notes.write_text('')
    made = programs.python('sockets.py', str(notes))
    yield made, notes
    made.stop()


@pytest.fixture(scope='module')
def node(base):
    made = programs.node('server.js', str(base / 'node-notes'))
    yield made
    made.stop()


def before(launch, loop, transport, program, **more):
    # Without tickets: the websockets library reads and writes in two threads, which Python before 3.13 does not synchronize. A request
    # that is written while a ticket is read is sometimes not sent.
    return launch(loop, transport, server={'ssl_session_tickets': 'off', 'location': {
        '/': {'proxy_pass': f'http://127.0.0.1:{program.port}', **more}}})


# uvicorn

def test_streamed_responses_of_uvicorn(launch, loop, transport, uvicorn):
    client = before(launch, loop, transport, uvicorn).connect()
    whole = b''.join(bytes([size & 255]) * size for size in range(1, 1415))
    for _ in range(2):
        response = client.get('/stream')
        assert not response.has_length and response.body == whole
    client.close()


def test_server_sent_events_are_not_delayed(launch, loop, transport, uvicorn):
    """The application sends each event after the client has confirmed the previous one: if the proxy delays an event, the test times out."""
    served = before(launch, loop, transport, uvicorn)
    client, other = served.connect(), served.connect()
    client.send('GET /events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n')
    assert client.head().headers['content-type'] == 'text/event-stream'
    for number in range(5):
        event = b'id: %d\ndata: event %d\n\n' % (number, number)
        assert int(client.line(), 16) == len(event) and client.read_exactly(len(event) + 2) == event + b'\r\n'
        assert other.get('/seen').status == 200
    assert client.line() == '0' and client.line() == ''
    assert client.get('/seen').status == 200
    client.close()
    other.close()


def test_request_and_response_bodies_overlap(launch, loop, transport, uvicorn):
    """The client sends each piece after it has received the echo of the previous one."""
    client = before(launch, loop, transport, uvicorn).connect()
    client.send('POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n')
    assert client.head().status == 200
    back = b''
    for piece in (b'first', b'second', b'third'):
        if piece != b'first':
            client.send(b'%x\r\n%s\r\n' % (len(piece), piece))
        size = int(client.line(), 16)
        back = client.read_exactly(size + 2)[:-2]
        assert back == piece
    client.send('0\r\n\r\n')
    assert client.chunked() == b''
    assert client.get('/seen').status == 200
    client.close()


def test_client_disconnection_reaches_the_application(launch, loop, transport, uvicorn):
    served = before(launch, loop, transport, uvicorn)
    name = f'{loop}-{transport}'
    client, other = served.connect(), served.connect()
    client.send(f'GET /waits?{name} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200 and client.line() == '5' and client.read_exactly(7) == b'begun\r\n'
    client.close()
    wait_for(lambda: name in json.loads(other.get('/gone').body), 'the application does not notice the disconnection')
    other.close()


def test_request_reaches_the_application(launch, loop, transport, uvicorn):
    client = before(launch, loop, transport, uvicorn).connect()
    received = json.loads(client.fetch('GET', '/a%20b/%C3%A4?x=1&y=%2F', [('Cookie', 'a=1; b=2'), ('X-Own', 'own')]).body)
    assert received['path'] == '/a b/ä' and received['query'] == 'x=1&y=%2F'
    assert received['fields']['x-forwarded-for'] == '127.0.0.1' and received['fields']['cookie'] == 'a=1; b=2'
    assert received['fields']['x-forwarded-proto'] == ('http' if transport == 'plain' else 'https')
    assert received['fields']['x-own'] == 'own' and 'connection' not in received['fields']
    client.close()


def test_idle_connections_closed_by_the_application(launch, loop, transport):
    """The application closes idle connections at once, often while the proxy sends the next request: no client receives an error."""
    made = programs.uvicorn('asgi:app', '--timeout-keep-alive', '0')
    client = before(launch, loop, transport, made).connect()
    responses = [client.get(f'/{number}') for number in range(200)]
    assert {response.status for response in responses} == {200}
    assert len({json.loads(response.body)['port'] for response in responses}) > 2     # some connections did end
    client.close()
    made.stop()


# websockets

def websocket(served, subprotocols=('chat',), **options):
    from websockets.sync.client import connect
    options = {'subprotocols': subprotocols, 'max_size': 1 << 25, 'open_timeout': 20 * server_kit.PATIENCE, **options}
    stream = socket.create_connection(('127.0.0.1', served.port), timeout=20 * server_kit.PATIENCE)
    if served.transport == 'plain':
        return connect('ws://localhost/', sock=stream, **options)
    return connect('wss://localhost/', sock=stream, ssl=http1.tls_context(), **options)


def test_websocket_messages_of_any_size_are_echoed(launch, loop, transport, sockets):
    served = before(launch, loop, transport, sockets[0])
    with websocket(served, subprotocols=['other', 'chat']) as client:
        assert client.subprotocol == 'chat'
        for message in ('text', 'ä' * 1000, b'', bytes(range(256)), os.urandom(200_000), os.urandom(5_000_000)):
            client.send(message)
            assert client.recv(timeout=20 * server_kit.PATIENCE) == message
        fragments = ['a', 'b' * 70_000, 'c']
        client.send(fragments)
        assert client.recv(timeout=20 * server_kit.PATIENCE) == ''.join(fragments)
        assert client.ping().wait(20 * server_kit.PATIENCE)
        client.send('ping me')      # the library answers the ping in the meantime
        assert client.recv(timeout=20 * server_kit.PATIENCE) == 'you are'


def test_concurrent_websockets(launch, loop, transport, sockets):
    served = before(launch, loop, transport, sockets[0])
    with contextlib.ExitStack() as all_of_them:
        clients = [all_of_them.enter_context(websocket(served, compression=None)) for _ in range(20)]
        for number, client in enumerate(clients):
            client.send(f'{number} ' + 'x' * 30_000)
        for number, client in enumerate(clients):
            assert client.recv(timeout=20 * server_kit.PATIENCE) == f'{number} ' + 'x' * 30_000


def test_websockets_close_from_either_side(launch, loop, transport, sockets):
    from websockets.exceptions import ConnectionClosed
    program, notes = sockets
    served = before(launch, loop, transport, program)
    reason = f'of the client {loop} {transport}'
    with websocket(served) as client:
        client.send('hello')
        assert client.recv(timeout=20 * server_kit.PATIENCE) == 'hello'
        client.close(4001, reason)
    wait_for(lambda: f'4001 {reason}\n' in notes.read_text(), 'the server did not receive the reason')
    with pytest.raises(ConnectionClosed) as ended, websocket(served) as client:
        client.send('close me')
        client.recv(timeout=20 * server_kit.PATIENCE)
    assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (4002, 'as you like')


def test_rejected_upgrade_is_forwarded(launch, loop, transport, sockets):
    """A rejected upgrade is passed on, and the connection ends as the upstream server requests."""
    client = before(launch, loop, transport, sockets[0]).connect()
    response = client.get('/')
    assert response.status == 426
    client.close()


# Node

def test_node_bodies_are_forwarded(launch, loop, transport, node):
    client = before(launch, loop, transport, node).connect()
    first = int(client.get('/counted').body)
    whole = b''.join(bytes([size & 255]) * size for size in range(1, 501))
    for _ in range(3):
        assert client.get('/chunked').body == whole
    assert client.fetch('PUT', '/echo', body=b'x' * 5000).body == b'x' * 5000
    assert client.get('/nowhere').status == 404
    assert int(client.get('/counted').body) == first        # all requests used one connection
    posted = os.urandom(500_000)
    assert client.fetch('POST', '/echo', body=posted).body == posted
    client.close()


def test_node_trailers_are_forwarded(launch, loop, transport, node):
    client = before(launch, loop, transport, node).connect()
    client.send('POST /trailers HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n'
                '3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n')
    assert client.read().body == b'body'
    assert client.trailers == ['X-Length: 3', 'X-Told: 42']
    client.close()


def test_node_interim_responses_are_forwarded(launch, loop, transport, node):
    client = before(launch, loop, transport, node).connect()
    client.send('GET /hints HTTP/1.1\r\nHost: localhost\r\n\r\n')
    heads = [client.head()]
    while heads[-1].status < 200:
        heads.append(client.head())
    assert [head.status for head in heads] == [103, 102, 200]
    assert heads[0].headers['link'] == '</style.css>; rel=preload; as=style'
    assert client.read_exactly(int(heads[-1].headers['content-length'])) == b'late'
    client.close()


def test_continue_is_sent_before_the_body(launch, loop, transport, node):
    client = before(launch, loop, transport, node).connect()
    client.send('POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n')
    assert client.head().status == 100
    client.send('body')
    assert client.read().body == b'body'
    # Expect is passed on; Node.js sends 100 (Continue).
    client.send('POST /expectation HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n')
    head = client.head()
    if head.status == 100:      # no 100 if Node.js sends it together with the response: this application does not read the body
        client.send('body')
        head = client.head()
    assert (head.status, client.read_exactly(int(head.headers['content-length']))) == (200, b'100-continue')
    client.close()


def test_node_upgrade_passes_bytes_in_both_directions(launch, loop, transport, node):
    client = before(launch, loop, transport, node).connect()
    client.send('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly')
    assert client.head().status == 101
    assert client.read_exactly(5) == b'early'
    client.send(b'later' * 50_000)
    assert client.read_exactly(250_000) == b'later' * 50_000
    client.close()


# Killed and restarted under load.

class Load:
    """Clients that send requests without a pause, each with a unique id, and record the results."""

    def __init__(self, served, count):
        self.served, self.outcomes = served, {}
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.fetch, args=(number,)) for number in range(count)]
        for thread in self.threads:
            thread.start()

    def fetch(self, number):
        client, turn = self.served.connect(), 0
        while not self.stop.is_set():
            turn += 1
            method = ('GET', 'POST', 'PUT')[turn % 3]
            name = f'{method}-{number}-{turn}'
            try:
                response = client.fetch(method, f'/noted?id={name}', body=b'' if method == 'GET' else b'x' * 10)
                assert response.status != 200 or response.body == name.encode(), response
                self.outcomes[name] = response.status
                if response.closes:
                    client.close()
                    client = self.served.connect()
            except (EOFError, OSError) as error:
                self.outcomes[name] = repr(error)
                client = self.served.connect()
        client.close()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(30 * server_kit.PATIENCE)
        return self.outcomes


def test_killed_server_causes_no_failed_requests(launch, loop, transport, new_directory):
    """Two upstream servers; one of them is killed (SIGKILL) during requests and restarted. A request that may be retried never fails. Any
    other is processed at most once. Clients, upstream servers and access log agree on the counts."""
    notes = [new_directory() / 'notes', new_directory() / 'notes']
    servers = [programs.node('server.js', str(note)) for note in notes]
    group = {'group': {'server': [f'127.0.0.1:{made.port} max_fails=1 fail_timeout=50ms' for made in servers]}}
    served = launch(loop, transport, http={'upstream': group},
                    server={'location': {'/': {'proxy_pass': 'http://group', 'proxy_request_buffering': True}}})
    load = Load(served, 4)
    for number in range(6):
        before_kill = len(load.outcomes)
        wait_for(lambda: len(load.outcomes) > before_kill + 60, 'no response arrives')
        victim = servers[number % 2]
        victim.kill()
        before_start = len(load.outcomes)
        wait_for(lambda: len(load.outcomes) > before_start + 60, 'no response arrives while one server is down')
        served_before = notes[number % 2].stat().st_size
        victim.start()
        wait_for(lambda: notes[number % 2].stat().st_size > served_before, 'the restarted server gets requests again')
    outcomes = load.end()
    for made in servers:
        made.stop()
    done = collections.Counter(line for note in notes for line in note.read_text().split())
    repeatable = {name: outcome for name, outcome in outcomes.items() if not name.startswith('POST')}
    assert set(repeatable.values()) == {200}, collections.Counter(repeatable.values())
    posts = {name: outcome for name, outcome in outcomes.items() if name.startswith('POST')}
    assert set(posts.values()) <= {200, 502}, collections.Counter(posts.values())
    assert all(done[name] >= 1 for name in repeatable)
    assert all(done[name] == 1 for name, outcome in posts.items() if outcome == 200)
    assert all(done[name] <= 1 for name, outcome in posts.items() if outcome == 502)
    assert set(done) <= set(outcomes)
    counted = collections.Counter(outcomes.values())

    def logged():
        rows = collections.Counter(int(row['status']) for row in served.server.access() if row['request_uri'].startswith('/noted'))
        return rows == counted
    wait_for(logged, f'the access log and the clients have different counts: {counted}')
