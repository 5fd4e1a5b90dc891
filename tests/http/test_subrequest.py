"""auth_request and mirror: subrequests that decide on access, and subrequests that copy the request without delaying the client."""
import contextlib
import json
import os
import socket
import threading
import time

import pytest
from kit import server as server_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream


class Gate:
    """An event for which scripts wait."""
    event = threading.Event()


def responds_with(status, fields='', body=''):
    def respond(peer):
        peer.read_body()
        peer.send(f'HTTP/1.1 {status} Status\r\n{fields}Content-Length: {len(body)}\r\n\r\n{body}')
        return True
    return respond


def by_query(peer):
    """Responds to /auth/by_query?200 with the status in the query."""
    peer.read_body()
    peer.send(f'HTTP/1.1 {peer.request.target.split("?")[1]} Status\r\nWWW-Authenticate: Basic realm="one"\r\n'
              'WWW-Authenticate: Bearer\r\nX-User: ann\r\nContent-Length: 4\r\n\r\nbody')
    return True


def waits(peer):
    peer.read_body()
    Gate.event.wait(30)
    peer.send('HTTP/1.1 200 Status\r\nContent-Length: 0\r\n\r\n')
    return True


def drip(peer):
    """Sends the header section at once, and the body when the gate opens."""
    peer.read_body()
    peer.send('HTTP/1.1 200 Status\r\nContent-Length: 4\r\n\r\n')
    Gate.event.wait(30)
    peer.send('last')
    return True


@pytest.fixture(scope='module')
def auth_server():
    made = Upstream({'/auth/by_query': by_query, '/auth/waits': waits, '/auth/drip': drip, '/mirror/waits': waits, '/auth/resets': lambda peer: peer.reset()},
                    name='auth')
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture(scope='module')
def upstream():
    made = Upstream(name='upstream')
    yield made
    made.stop()


@pytest.fixture
def served(launch, loop, transport, auth_server, upstream):
    Gate.event.clear()
    auth_server.requests.clear()
    upstream.requests.clear()
    subrequest_target = {'internal': True, 'proxy_pass': f'http://127.0.0.1:{auth_server.port}',
                'proxy_set_header': {'X-Original-URI': '$request_uri', 'X-Original-Method': '$request_method', 'X-Id': '$request_id'}}
    passed = {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_set_header': {'X-Id': '$request_id'}}
    return launch(loop, transport, server={'client_max_body_size': '4m', 'location': {
        '/auth/': subrequest_target,
        '/mirror/': subrequest_target,
        '/guarded/': {'auth_request': '/auth/by_query?$arg_status', **passed},
        '/named/': {'auth_request': '/auth/by_query?$arg_status', 'auth_request_set': [{'$user': '$upstream_http_x_user', '$how': '$upstream_status'}, '$where $uri'],
                    'error_page': '403 =200 /denied', **passed,
                    'proxy_set_header': {'X-User': '$user', 'X-How': '$how', 'X-Where': '$where'}},
        '/denied': {'return': '200 "not $user: $how"'},
        '/guarded/open/': {'auth_request': 'off', **passed},
        '/waiting/': {'auth_request': '/auth/waits', **passed},
        '/dripping/': {'auth_request': '/auth/drip', **passed},
        '/broken/': {'auth_request': '/auth/resets', **passed},
        '/file/': {'auth_request': '/auth/by_query?$arg_status', 'return': '200 ok'},
        '/either/': {'auth_request': '/auth/by_query?$arg_status', 'satisfy': 'any', 'allow': '192.0.2.1', 'deny': 'all', 'return': '200 ok'},
        '/near/': {'auth_request': '/auth/by_query?$arg_status', 'satisfy': 'any', 'allow': '127.0.0.1', 'return': '200 ok'},
        '/page/': {'auth_request': '/auth/by_query?$arg_status', 'error_page': ['401 /login', '403 =200 /login'], 'return': '200 ok'},
        '/login': {'return': '200 "log in"'},
        '/copied/': {'mirror': ['/mirror/one', '/mirror/two?own=1'], **passed},
        '/bodiless-copy/': {'mirror': '/mirror/one', 'mirror_request_body': False, **passed},
        '/streamed/': {'mirror': ['/mirror/one', '/mirror/two'], 'proxy_request_buffering': False, **passed},
        '/lost/': {'mirror': '/mirror/one', 'client_body_temp_path': '/proc', **passed},
        '/short/': {'mirror': '/mirror/one', 'client_max_body_size': '1k', **passed},
        '/slow-copy/': {'mirror': '/mirror/waits', **passed},
        '= /one.txt': {'mirror': '/mirror/one'},
    }})


@pytest.fixture
def client(served):
    made = served.connect()
    yield made
    made.close()


@pytest.mark.parametrize('auth_status, status', [('200', 200), ('204', 200), ('299', 200), ('401', 401), ('403', 403), ('302', 500), ('404', 500), ('500', 500)])
def test_auth_request_decides_on_access(client, served, auth_server, upstream, auth_status, status):
    response = client.get(f'/guarded/x?status={auth_status}')
    assert response.status == status
    assert [request.target for request in upstream.requests] == ([f'/guarded/x?status={auth_status}'] if status == 200 else [])
    assert [request.target for request in auth_server.requests] == [f'/auth/by_query?{auth_status}']
    assert response.headers.get('www-authenticate') == ('Basic realm="one", Bearer' if status == 401 else
                                                        'Basic realm="one", Bearer' if status == 403 else None)
    assert client.get('/guarded/open/').status == 200           # the connection stays open
    assert len(auth_server.requests) == 1
    if status == 500:
        assert f'auth_request: unexpected status {auth_status}' in served.server.errors()


def test_auth_subrequest_has_no_body_and_conditions(client, auth_server, upstream):
    fields = [('Cookie', 'a=b'), ('If-None-Match', '"x"'), ('Range', 'bytes=0-1'), ('Expect', '100-continue')]
    response = client.fetch('POST', '/guarded/form?status=200', fields, b'hello')
    assert response.status == 200
    seen, passed = auth_server.last(), upstream.last()
    assert (seen.method, seen.target, seen.body) == ('GET', '/auth/by_query?200', b'')
    names = [name.lower() for name, _ in seen.lines]
    assert not {'content-length', 'transfer-encoding', 'expect', 'if-none-match', 'range'} & set(names)
    assert seen.header('cookie') == 'a=b'
    assert (seen.header('x-original-uri'), seen.header('x-original-method')) == ('/guarded/form?status=200', 'POST')
    assert (passed.method, passed.body) == ('POST', b'hello')
    assert seen.header('x-id') == passed.header('x-id') and len(seen.header('x-id')) == 32


def test_auth_response_fields_are_variables(client, upstream):
    assert client.get('/named/x?status=200').status == 200
    assert [upstream.last().header(name) for name in ('x-user', 'x-how', 'x-where')] == ['ann', '200', '/auth/by_query']
    assert client.get('/named/x?status=403').body == b'not ann: 403'
    assert client.get('/denied').body == b'not : '


def test_auth_subrequest_has_no_upgrade(client, auth_server):
    response = client.fetch('GET', '/guarded/x?status=403', [('Connection', 'upgrade'), ('Upgrade', 'websocket')])
    assert response.status == 403
    assert auth_server.last().header('upgrade') is None


def test_auth_upstream_connection_is_reused(client, auth_server):
    before = auth_server.connections
    for _ in range(5):
        assert client.get('/guarded/x?status=200').status == 200
    assert auth_server.connections <= before + 1


def test_internal_location_is_404(client):
    assert client.get('/auth/by_query?200').status == 404


def test_disconnected_client_causes_no_further_request(client, served, auth_server, upstream):
    target = f'/waiting/{time.monotonic_ns()}'      # the server of an earlier case may be used again
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    wait_for(lambda: auth_server.requests, 'no subrequest arrives')
    client.close()
    assert served.server.access_for(target)[0]['status'] == '499'     # the server detects the disconnection while the gate is closed
    Gate.event.set()
    assert served.connect().get('/guarded/y?status=200').status == 200
    assert [request.target for request in upstream.requests] == ['/guarded/y?status=200']


def test_auth_response_body_is_not_awaited(client, auth_server):
    assert client.get('/dripping/x').status == 200      # the gate is closed
    Gate.event.set()


def test_a_failed_subrequest_sends_no_request(client, auth_server, upstream):
    assert client.get('/broken/x').status == 500
    assert not upstream.requests


@pytest.mark.parametrize('target, status', [
    ('/either/x?status=200', 200), ('/either/x?status=401', 401), ('/either/x?status=403', 403), ('/either/x?status=500', 500),
    ('/near/x?status=401', 200), ('/file/x?status=200', 200), ('/file/x?status=403', 403), ('/page/x?status=401', 401), ('/page/x?status=403', 200),
])
def test_auth_request_directives(client, target, status):
    response = client.get(target)
    assert response.status == status
    if target.startswith('/page/'):
        assert response.body == b'log in'


def test_mirror_copies_the_request(client, auth_server, upstream):
    response = client.fetch('PUT', '/copied/x?y=z', [('X-Test', 'this')], b'hello')
    assert response.status == 200 and response.body == b'upstream PUT /copied/x?y=z\n'
    wait_for(lambda: len(auth_server.requests) == 2, 'too few mirrored requests')
    assert sorted(request.line for request in auth_server.requests) == ['PUT /mirror/one?y=z HTTP/1.1', 'PUT /mirror/two?own=1 HTTP/1.1']
    assert all(request.header('x-test') == 'this' and request.header('x-original-uri') == '/copied/x?y=z' for request in auth_server.requests)
    assert upstream.last().body == b'hello'


def big(length):
    return bytes(range(256)) * (length // 256)


def post(client, target, body, chunked):
    if not chunked:
        return client.fetch('POST', target, [], body)
    client.send(f'POST {target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'.encode() + b'%x\r\n%b\r\n0\r\n\r\n' % (len(body), body))
    return client.read()


@pytest.mark.parametrize('where', ['/copied/x', '/streamed/x'])
@pytest.mark.parametrize('length', [256, 16 << 10, 64 << 10, 3 << 20])
@pytest.mark.parametrize('chunked', [False, True])
def test_mirror_copies_the_body(client, auth_server, upstream, where, length, chunked):
    """A body in memory, and one in a file (more than client_body_buffer_size), is sent to the upstream server and to all mirrors."""
    body = big(length)
    response = post(client, where, body, chunked)
    assert response.status == 200 and upstream.last().body == body
    wait_for(lambda: len(auth_server.requests) == 2 and all(request.body == body for request in auth_server.requests), 'the body of a copy')
    assert {request.header('content-length') for request in auth_server.requests} == {str(length)}
    assert client.get('/copied/again').status == 200
    wait_for(lambda: len(auth_server.requests) == 4, 'its copies, too')       # otherwise they could arrive during the next test


def test_mirror_request_body_off(client, auth_server, upstream):
    assert client.fetch('POST', '/bodiless-copy/x', [], b'hello').status == 200
    wait_for(lambda: auth_server.requests, 'no subrequest arrives')
    assert auth_server.last().body == b'' and auth_server.last().header('content-length') in (None, '0')
    assert upstream.last().body == b'hello'


def test_unbuffered_body_is_not_mirrored(client, served, auth_server, upstream):
    """The request itself is passed on unbuffered."""
    assert client.fetch('POST', '/lost/x', [], big(3 << 20)).status == 200
    assert upstream.last().body == big(3 << 20)
    assert client.fetch('POST', '/lost/x', [], b'hello').status == 200
    wait_for(lambda: auth_server.requests, 'no subrequest arrives')
    assert [request.body for request in auth_server.requests] == [b'hello']
    assert 'mirror: no copies were sent: the body could not be buffered' in served.server.errors()


def test_oversize_or_incomplete_body_is_not_mirrored(client, served, auth_server):
    assert client.fetch('POST', '/short/x', [], b'x' * 2000).status == 413
    chunked = served.connect()
    assert post(chunked, '/short/x', b'x' * 2048, True).status == 413
    chunked.close()
    left = served.connect()
    left.send(b'POST /copied/left HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nsome')
    left.close()
    row = served.server.access_for('/copied/left', 1)[0]
    assert int(row['status']) in (400, 499) and not auth_server.requests


def test_mirror_of_head_and_of_local_responses(client, auth_server):
    assert client.fetch('HEAD', '/one.txt', []).status == 200
    wait_for(lambda: auth_server.requests, 'no subrequest arrives')
    assert auth_server.last().line == 'HEAD /mirror/one HTTP/1.1'


def test_slow_mirror_delays_no_request(client, served, auth_server):
    for _ in range(3):                                   # on one connection, while the gate is closed
        assert client.get('/slow-copy/x').status == 200
    wait_for(lambda: len(auth_server.requests) == 3, 'too few mirrored requests')
    client.close()
    assert not Gate.event.is_set()
    again = served.connect()
    assert again.get('/slow-copy/x').status == 200
    wait_for(lambda: len(auth_server.requests) == 4, 'too few mirrored requests')
    Gate.event.set()
    again.close()
    assert len(served.server.access_for('/slow-copy/x', 4)) == 4
    assert not [row for row in served.server.access() if row['request_uri'].startswith('/mirror')]


@pytest.mark.parametrize('line, output', [('auth_request: nowhere', 'not a path of this server'), ('auth_request_set: $user', 'takes a variable and its value'),
                                        ('auth_request_set: $host x', 'is built in and cannot be set'), ('auth_request_set: host x', 'not a variable name'), ('mirror: http://127.0.0.1/', 'not a path of this server')])
def test_invalid_configuration(new_directory, line, output):
    key, value = line.split(': ')
    made = server_kit.Server(new_directory(), [{'listen': f'127.0.0.1:{server_kit.free_port()}', key: value}])
    with pytest.raises(RuntimeError, match=output):
        made.start([1])


def test_pending_mirrors_are_limited(launch, loop):
    """A mirror that does not respond: the number of pending copies is limited, the client is not delayed, and after the end of a copy another
    one may begin."""
    with socket.socket() as holder:
        holder.bind(('127.0.0.1', server_kit.free_port()))
        holder.listen(4096)
        holder.setblocking(False)
        served = launch(loop, 'plain', server={'location': {
            '= /one.txt': {'mirror': '/copy'},
            '/copy': {'internal': True, 'proxy_pass': f'http://127.0.0.1:{holder.getsockname()[1]}'}}})
        client = served.connect()
        for _ in range(600):
            assert client.get('/one.txt').body == b'one\n'
        copies = accepted(holder)
        assert len(copies) == 512
        assert 'mirror: the subrequest failed' in served.server.errors()
        for copy in copies:
            copy.close()
        wait_for(lambda: client.get('/one.txt').body == b'one\n' and accepted(holder), 'another copy')
        client.close()


def accepted(holder):
    found = []
    with contextlib.suppress(BlockingIOError):
        while True:
            found.append(holder.accept()[0])
    return found


@pytest.fixture
def updating(launch, loop, new_directory):
    """The responses to auth_request are stored, and updated in the background. The second one waits for the gate, then fails."""
    folder = new_directory()
    os.chmod(folder, 0o755)

    def respond(peer):
        peer.read_body()
        if len(made.requests) == 1:
            peer.send('HTTP/1.1 200 OK\r\nCache-Control: max-age=60, stale-while-revalidate=600\r\nAge: 70\r\nContent-Length: 0\r\n\r\n')
            return True
        Gate.event.wait(30)
        peer.reset()
        return False
    made = Upstream({'/auth': respond}, name='updated')
    Gate.event.clear()
    served = launch(loop, 'plain', server={'location': {
        '= /auth': {'proxy_pass': f'http://127.0.0.1:{made.port}', 'proxy_set_header': {'X-Id': '$request_id'}, 'proxy_cache': 'one', 'proxy_cache_key': 'auth',
                    'proxy_cache_background_update': True, 'add_header': 'X-Cache $upstream_cache_status'},
        '/guarded': {'auth_request': '/auth', 'return': '200 ok'},
        '/id': {'return': '200 $request_id'}}},
        http={'proxy_cache_path': {'path': str(folder / 'cache'), 'keys_zone': 'one:1m'}},
        main={'worker_processes': 1, 'error_log': {'path': str(folder / 'error.json'), 'level': 'info', 'format': 'json'}})
    yield served, made, folder / 'error.json'
    Gate.event.set()
    made.stop()
    assert not made.faults


def test_background_update_of_a_subrequest_outlives_the_request(updating):
    """The update logs the identifier of the client's request, which has ended, and whose memory later requests use."""
    served, upstream, log = updating
    client = served.connect()
    assert client.get('/guarded').status == 200
    wait_for(lambda: client.fetch('GET', '/auth', [('Cache-Control', 'only-if-cached, max-stale')]).status == 200, 'the response is stored')
    assert client.get('/guarded').status == 200
    wait_for(lambda: len(upstream.requests) == 2, 'no update')
    later = [client.get('/id').body for _ in range(20)]
    assert len(set(later)) == 20
    Gate.event.set()
    wait_for(lambda: 'while reading response' in server_kit.read_text(log), 'no line')
    rows = [json.loads(line) for line in server_kit.read_text(log).splitlines()]
    assert [row['request_id'] for row in rows if row['level'] == 'error'] == [upstream.last().header('x-id')]
    client.close()
