"""The reverse proxy against a scripted server behind it: what goes on, what comes back, and everything that goes wrong."""
import socket
import threading
import time

import pytest
from kit import server as server_kit
from kit.upstream import Upstream

OK = 'HTTP/1.1 200 OK\r\n'
UPGRADE = ('GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n'
           'Sec-WebSocket-Key: x\r\n\r\n')
BIG = bytes(range(256)) * 4096      # 1 MiB


def says(text, keep=False):
    """A script that reads the request and says this."""
    def script(talk):
        talk.read_body()
        talk.send(text)
        return keep
    return script


def slow_head(talk):
    for byte in OK + 'Content-Length: 4\r\n\r\nslow':
        talk.send(byte)
        time.sleep(0.002)
    return True


def slow_body(talk):
    talk.send(OK + 'Content-Length: 6\r\n\r\n')
    for byte in 'drops.':
        time.sleep(0.02)
        talk.send(byte)
    return True


def reset_midway(talk):
    talk.send(OK + 'Content-Length: 1000\r\n\r\nsome')
    time.sleep(0.1)
    talk.reset()


def never(talk):
    talk.at_end()


def half_then_never(talk):
    talk.send(OK + 'Content-Length: 1000\r\n\r\nsome')
    talk.at_end()


def answers_early(talk):
    talk.send('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n')
    time.sleep(0.2)


def swallows(talk):
    """Takes all of the request, and ends without an answer."""
    talk.read_body()


def trailers(talk):
    talk.send(OK + 'Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n')
    return True


def big(talk):
    talk.send(OK + f'Content-Length: {len(BIG)}\r\n\r\n')
    talk.send(BIG)
    return True


def big_chunked(talk):
    talk.send(OK + 'Transfer-Encoding: chunked\r\n\r\n')
    for at in range(0, len(BIG), 5000):
        piece = BIG[at:at + 5000]
        talk.send(b'%x\r\n%s\r\n' % (len(piece), piece))
    talk.send('0\r\n\r\n')
    return True


def echo(talk):
    """Changes the protocol, greets, and gives every byte back; `bye` ends it."""
    assert talk.request.header('connection').lower() == 'upgrade'
    talk.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\nhello')
    while talk.buffer or talk.fill():
        piece, talk.buffer = talk.buffer, b''
        talk.upstream.heard += piece
        talk.send(piece)
        if piece.endswith(b'bye'):
            return


def events(talk):
    talk.send(OK + 'Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n\r\n')
    for number in range(3):
        talk.send(f'data: {number}\n\n')
        time.sleep(0.8)


SCRIPTS = {
    '/socket': echo,
    '/no-socket': says(OK + 'Content-Length: 2\r\n\r\nno', keep=True),
    '/events': events,
    '/slow-head': slow_head,
    '/slow-body': slow_body,
    '/reset': reset_midway,
    '/never': never,
    '/half': half_then_never,
    '/early': answers_early,
    '/swallows': swallows,
    '/swallows-too': swallows,
    '/trailers': trailers,
    '/big': big,
    '/big-chunked': big_chunked,
    '/to-the-end': says(OK + '\r\nuntil the end'),
    '/old': says('HTTP/1.0 200 OK\r\n\r\nold'),
    '/no-content': says('HTTP/1.1 204 No Content\r\n\r\n', keep=True),
    '/not-modified': says('HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: "x"\r\n\r\n', keep=True),
    '/error': says('HTTP/1.1 503 Busy\r\nContent-Length: 5\r\nRetry-After: 7\r\n\r\nbusy\n', keep=True),
    '/interim': says('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\n\r\n' + OK +
                     'Content-Length: 2\r\n\r\nok', keep=True),
    '/fields': says(OK + 'Server: secret\r\nDate: yesterday\r\nX-Accel-Expires: 1\r\nX-Pad: x\r\nX-Powered-By: y\r\n'
                    'Keep-Alive: timeout=5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nProxy-Connection: z\r\nUpgrade: h2c\r\n'
                    'Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Keep: yes\r\nContent-Length: 2\r\n\r\nok', keep=True),
}

GARBAGE = {
    '/closed': '',
    '/half-head': 'HTTP/1.1 200 OK\r\nContent-',
    '/noise': '\x16\x03\x01 not http\r\n\r\n',
    '/version': 'HTTP/2.0 200 OK\r\n\r\n',
    '/bare-lf': 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok',
    '/two-lengths': OK + 'Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!',
    '/both': OK + 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    '/coding': OK + 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    '/folded': OK + 'X: a\r\n b\r\nContent-Length: 0\r\n\r\n',
    '/space': OK + 'Content-Length : 0\r\n\r\n',
    '/switch': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    '/flood': 'HTTP/1.1 102 Processing\r\n\r\n' * 1000 + OK + 'Content-Length: 0\r\n\r\n',
    '/huge': OK + 'X: ' + 'a' * 70000 + '\r\n\r\n',
}
SCRIPTS.update({path: says(text) for path, text in GARBAGE.items()})

# Bodies that break once the head was passed on: the client must see a cut, never a whole answer.
BROKEN = {
    '/short': OK + 'Content-Length: 10\r\n\r\nshort',
    '/bad-chunk': OK + 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n',
    '/cut-chunk': OK + 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\nab',
    '/no-last-chunk': OK + 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
}
SCRIPTS.update({path: says(text) for path, text in BROKEN.items()})
PATIENT = {'proxy_read_timeout': '400ms'}


@pytest.fixture(scope='module')
def upstream():
    made = Upstream(SCRIPTS)
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def other():
    made = Upstream({'/busy': says('HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n', keep=True)}, name='two')
    yield made
    made.stop()


@pytest.fixture(scope='module')
def closed_port():
    return server_kit.free_port()


@pytest.fixture(scope='module')
def local(base):
    made = Upstream(name='local', path=str(base / 'upstream.sock'))
    yield made
    made.stop()


def locations(upstream, other, local, closed_port):
    to = f'http://127.0.0.1:{upstream.port}'
    return {
        '/': {'proxy_pass': to},
        '/api/': {'proxy_pass': to + '/'},
        '/deep/': {'proxy_pass': to + '/inner/path/'},
        '= /exact': {'proxy_pass': to + '/somewhere'},
        '/variable/': {'proxy_pass': 'http://127.0.0.1:$arg_port/made$uri'},
        '/variable-bare/': {'proxy_pass': 'http://$arg_host'},
        '/unix/': {'proxy_pass': f'http://unix:{local.path}:/'},
        '/unix-bare/': {'proxy_pass': f'unix:{local.path}'},
        '/group/': {'proxy_pass': 'http://group/'},
        '/busy': {'proxy_pass': 'http://group', 'proxy_next_upstream': ['error', 'http_503']},
        '/name/': {'proxy_pass': f'http://localhost:{upstream.port}/'},
        '/dead/': {'proxy_pass': f'http://127.0.0.1:{closed_port}'},
        '/no-such-name/': {'proxy_pass': 'http://no-such-name.invalid/'},
        '/never': {'proxy_pass': to, **PATIENT},
        '/half': {'proxy_pass': to, **PATIENT},
        '/events': {'proxy_pass': to, **PATIENT},
        '/socket': {'proxy_pass': to, **PATIENT, 'client_body_timeout': '300ms', 'send_timeout': '300ms'},
        '/moved/': {'proxy_pass': to + '/go/'},
        '/moved-off/': {'proxy_pass': to + '/go/', 'proxy_redirect': 'off'},
        '/go/': {'proxy_pass': to},
        '/fallback/': {'proxy_pass': f'http://127.0.0.1:{closed_port}', 'error_page': '502 /one.txt'},
        '/swallows': {'proxy_pass': to, 'error_page': '502 @second'},
        '@second': {'proxy_pass': f'http://127.0.0.1:{other.port}'},
        '/swallows-too': {'proxy_pass': to, 'error_page': '502 =200 /second'},
        '/second': {'proxy_pass': f'http://127.0.0.1:{other.port}'},
        '/one.txt': {},
        '/fields': {'proxy_pass': to, 'proxy_hide_header': 'X-Powered-By'},
        '/server': {'proxy_pass': to + '/fields', 'proxy_pass_header': 'Server'},
        '/set/': {'proxy_pass': to, 'proxy_set_header': ['X-Real-IP $remote_addr', {'Host': '$host', 'Accept': '', 'X-Added': 'a b'},
                                                         'X-Forwarded-For $proxy_add_x_forwarded_for']},
        '/lazy': {'proxy_pass': to, 'client_max_body_size': 0},
        '/limited': {'proxy_pass': to, 'client_max_body_size': 10},
    }


@pytest.fixture
def proxy(launch, loop, transport, upstream, other, local, closed_port):
    fields = ['upstream_addr', 'upstream_status']
    http = {
        'upstream': {'group': {'server': [f'127.0.0.1:{closed_port} max_fails=0', f'127.0.0.1:{upstream.port}',
                                          {'address': f'127.0.0.1:{other.port}', 'weight': 1, 'max_fails': 0}]}},
        'log_format': {'proof': '|'.join(f'${name}' for name in server_kit.ACCESS_FIELDS),
                       'up': '$request_uri ' + ' '.join(f'${name}' for name in fields)},
    }
    return launch(loop, transport, server={'location': locations(upstream, other, local, closed_port)}, http=http)


@pytest.fixture
def client(proxy):
    made = proxy.connect()
    yield made
    made.close()


def wait_for(test, what):
    deadline = time.monotonic() + 10 * server_kit.PATIENCE
    while not test():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_passes_on_and_back(client, upstream):
    response = client.get('/a/b%20c/../d?x=1&y=%2f')
    assert response.status == 200
    assert response.body == b'one GET /a/b%20c/../d?x=1&y=%2f\n'      # as it came
    assert response.headers['content-type'] == 'text/plain'
    assert response.headers['server'].startswith('sluice')
    assert upstream.last().version == 'HTTP/1.1'


@pytest.mark.parametrize('asked, passed', [
    ('/api/a?b=c', '/a?b=c'),
    ('/api/', '/'),
    ('/api/x%2Fy%3Fz', '/x/y%3Fz'),
    ('/deep/a%20b', '/inner/path/a%20b'),
    ('/exact?q', '/somewhere?q'),
    ('/unix/a', '/a'),
    ('/unix-bare/a', '/unix-bare/a'),
    ('/name/x', '/x'),
])
def test_uri_rules(client, asked, passed):
    deadline = time.monotonic() + 10 * server_kit.PATIENCE
    response = client.get(asked)
    while response.status == 502 and asked.startswith('/name') and time.monotonic() < deadline:
        response = client.get(asked)
    assert response.status == 200
    assert response.body.decode().split()[1:] == ['GET', passed]


def test_variables_in_the_target(client, upstream):
    assert client.get(f'/variable/a?port={upstream.port}').body == b'one GET /made/variable/a\n'
    assert client.get(f'/variable-bare/a?host=127.0.0.1:{upstream.port}').body.startswith(b'one GET /variable-bare/a?host=')
    assert client.get('/variable-bare/a?host=group').status == 200      # a block of that name
    assert client.get('/variable/a?port=no').status == 502
    assert client.get('/variable-bare/a').status == 502
    assert client.get('/variable-bare/a?host=a%20b').status == 502
    assert client.get('/one.txt').body == b'one\n'


def test_what_the_server_is_told(client, upstream, proxy):
    client.ask('GET', '/told', [('Host', 'localhost:1234'), ('Connection', 'keep-alive, X-Hop, TE'), ('X-Hop', '1'), ('Keep-Alive', '5'), ('TE', 'trailers'),
                                ('Proxy-Connection', 'x'), ('Upgrade', 'h2c'), ('Proxy-Authorization', 'secret'),
                                ('X-Forwarded-For', '6.6.6.6'), ('X-Forwarded-Proto', 'gopher'), ('X-Forwarded-Host', 'evil'),
                                ('X-Forwarded-Port', '1'), ('X-Real-IP', '6.6.6.6'), ('Forwarded', 'for=6.6.6.6'), ('Via', '1.0 before'),
                                ('Cookie', 'a=b'), ('X-Custom', 'yes'), ('Accept-Encoding', 'gzip')])
    seen = upstream.last()
    names = {name.lower() for name, _ in seen.lines}
    assert names == {'host', 'via', 'cookie', 'x-custom', 'accept-encoding', 'x-forwarded-for', 'x-forwarded-proto',
                     'x-forwarded-host', 'forwarded'}
    assert seen.header('host') == f'127.0.0.1:{upstream.port}'
    assert seen.all('x-forwarded-for') == ['127.0.0.1']
    assert seen.all('x-forwarded-proto') == [proxy.scheme]
    assert seen.all('x-forwarded-host') == ['localhost:1234']
    assert seen.all('forwarded') == [f'for=127.0.0.1;host="localhost:1234";proto={proxy.scheme}']
    assert seen.all('via') == ['1.0 before', '1.1 sluice']


def test_set_header(client, upstream):
    client.ask('GET', '/set/x', [('Accept', '*/*'), ('X-Forwarded-For', '1.2.3.4'), ('X-Added', 'mine')])
    seen = upstream.last()
    assert seen.all('host') == ['localhost']
    assert seen.all('accept') == [] and seen.all('x-added') == ['a b']
    assert seen.all('x-real-ip') == ['127.0.0.1']
    assert seen.all('x-forwarded-for') == ['1.2.3.4, 127.0.0.1']


def test_fields_of_the_answer(client):
    response = client.get('/fields')
    names = [name.lower() for name, _ in response.lines]
    assert set(names) == {'server', 'date', 'set-cookie', 'x-keep', 'content-length'}
    assert names.count('set-cookie') == 2 and names.count('server') == 1
    assert response.headers['server'] != 'secret' and response.headers['date'] != 'yesterday'
    assert client.get('/server').headers['server'] == 'secret'


def test_redirects_come_back_here(client, upstream):
    def moves(talk):
        to = talk.request.target.split('?', 1)[1].replace('SELF', f'http://127.0.0.1:{upstream.port}')
        talk.send(f'HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n')
        return True
    upstream.scripts['/go/x'] = moves
    assert client.get('/moved/x?SELF/go/there?a=b').headers['location'] == '/moved/there?a=b'
    assert client.get('/moved/x?SELF/elsewhere').headers['location'] == f'http://127.0.0.1:{upstream.port}/elsewhere'
    assert client.get('/moved/x?/go/there').headers['location'] == '/go/there'
    assert client.get('/moved/x?https://example.com/go/').headers['location'] == 'https://example.com/go/'
    assert client.get('/go/x?SELF/any/where').headers['location'] == '/any/where'
    assert client.get('/moved-off/x?SELF/go/there').headers['location'] == f'http://127.0.0.1:{upstream.port}/go/there'


def test_a_connection_that_never_comes_is_504(launch, loop, transport, upstream):
    """A server whose queue is full lets nobody in; the next one is asked, and where there is none it is 504."""
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


@pytest.mark.parametrize('method', ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND'])
def test_methods(client, upstream, method):
    response = client.ask(method, '/m', body=b'some bytes')
    assert response.status == 200 and upstream.last().method == method and upstream.last().body == b'some bytes'
    assert upstream.last().header('content-length') == '10'


def test_head_and_bodiless(client):
    response = client.ask('HEAD', '/x')
    assert response.status == 200 and response.headers['content-length'] == str(len('one HEAD /x\n'))
    assert client.get('/no-content').status == 204
    response = client.get('/not-modified')
    assert response.status == 304 and response.headers['etag'] == '"x"'
    assert client.get('/after').status == 200


def test_bodies_go_both_ways(client, upstream):
    assert client.get('/big').body == BIG
    assert client.get('/big-chunked').body == BIG
    assert client.get('/slow-head').body == b'slow'
    assert client.get('/slow-body').body == b'drops.'
    assert client.ask('POST', '/up', body=BIG).status == 200
    assert upstream.last().body == BIG
    client.send(b'POST /chunks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    for _ in range(20):
        client.send(b'3e8\r\n' + b'c' * 1000 + b'\r\n')
    client.send(b'0\r\nX-Sum: 7\r\n\r\n')
    assert client.read().status == 200
    assert upstream.last().body == b'c' * 20000 and upstream.last().trailers == ['X-Sum: 7']
    assert upstream.last().header('transfer-encoding') == 'chunked'


def test_ends_and_versions(proxy):
    for path, body in (('/to-the-end', b'until the end'), ('/old', b'old')):
        client = proxy.connect()
        response = client.get(path)
        assert response.body == body and response.headers['transfer-encoding'] == 'chunked'
        assert client.alive()
        response = client.ask('GET', path, version='HTTP/1.0')
        assert response.body == body
        assert client.at_end()
        client.close()


def test_errors_of_the_application_are_its_own(client):
    response = client.get('/error')
    assert response.status == 503 and response.body == b'busy\n' and response.headers['retry-after'] == '7'


def test_trailers_and_interims(client):
    client.send('GET /trailers HTTP/1.1\r\nHost: localhost\r\n\r\n')
    response = client.head()
    assert response.headers['transfer-encoding'] == 'chunked'
    assert client.line() == '3' and client.take(5) == b'abc\r\n'
    assert [client.line() for _ in range(3)] == ['0', 'X-Sum: 42', '']
    client.send('GET /interim HTTP/1.1\r\nHost: localhost\r\n\r\n')
    early = client.head()
    assert early.status == 103 and early.lines == [('Link', '</a>')]
    assert client.read().body == b'ok'
    assert client.ask('GET', '/interim', version='HTTP/1.0').body == b'ok'


def test_no_origin_comes_in_trailers(client, upstream):
    """A server that joins trailers to the head must not take the client's word there, either."""
    client.send('POST /told HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\nX-Forwarded-For: 6.6.6.6\r\n'
                'Forwarded: for=6.6.6.6\r\nx-real-ip: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n\r\n')
    assert client.read().status == 200
    assert upstream.last().trailers == ['X-Sum: 1']


def test_expect_100(client, upstream):
    client.send('POST /expected HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n')
    assert client.head().status == 100
    client.send('body')
    assert client.read().status == 200
    assert upstream.last().body == b'body' and upstream.last().header('expect') is None


@pytest.mark.parametrize('path', sorted(GARBAGE))
def test_bad_answers_are_502(client, proxy, path):
    response = client.get(path)
    assert response.status == 502, response
    assert client.alive()
    if path != '/closed':
        wait_for(lambda: 'upstream sent an invalid answer' in proxy.server.errors() and f'GET {path} ' in proxy.server.errors(),
                 'no line in the error log')


@pytest.mark.parametrize('path', sorted(BROKEN) + ['/reset', '/half'])
def test_broken_bodies_are_cut(proxy, path):
    client = proxy.connect()
    client.send(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    with pytest.raises(EOFError):       # where all came at once, not even the head may have left
        assert client.head().status == 200
        if path in ('/short', '/reset', '/half'):
            client.take(10 if path == '/short' else 1000)
        else:
            client.chunked()
    client.close()


def test_no_answer_is_504(client, proxy):
    assert client.get('/never').status == 504
    assert client.get('/dead/').status == 502
    assert client.get('/no-such-name/').status == 502
    assert client.alive()
    said = proxy.server.errors()
    assert 'upstream timed out (110: Connection timed out) while reading response header from upstream' in said
    assert 'connect() failed (111: Connection refused) while connecting to upstream' in said
    assert 'host not found' in said


def test_error_pages_hold(client):
    response = client.get('/fallback/x')
    assert response.status == 502 and response.body == b'one\n'


@pytest.mark.parametrize('coding', ['length', 'chunked'])
def test_a_body_that_is_gone_is_not_promised_to_another(proxy, other, coding):
    """An error page is another server's, but the body went to the first: its Content-Length would swallow the next request."""
    body = 'Content-Length: 100\r\n\r\n' + 'x' * 100 if coding == 'length' else 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'
    before = len(other.requests)
    client = proxy.connect()
    client.send('POST /swallows HTTP/1.1\r\nHost: localhost\r\n' + body)
    assert client.read().status == 502
    assert len(other.requests) == before
    client.send('POST /swallows-too HTTP/1.1\r\nHost: localhost\r\n' + body)
    assert client.read().body == b'two GET /second\n'
    assert other.last().header('transfer-encoding') is None and other.last().header('content-length') in (None, '0')
    client.send('GET /swallows HTTP/1.1\r\nHost: localhost\r\n' + body)
    assert client.read().status == 502
    assert len(other.requests) == before + 1
    assert client.get('/swallows').body == b'two GET /swallows\n'       # where there is no body, the page is asked for
    client.close()


def test_an_early_answer_to_a_long_body(proxy):
    client = proxy.connect()
    client.send('POST /early HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n' + 'x' * 100)
    response = client.read()
    assert response.status == 413 and response.body == b'no\n'
    client.close()


def test_a_body_that_is_too_long(client, proxy, upstream):
    assert client.ask('POST', '/limited', body=b'0123456789').status == 200
    assert client.ask('POST', '/limited', body=b'0123456789a').status == 413
    chunked = proxy.connect()
    chunked.send('POST /limited HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n' + 'b\r\n0123456789a\r\n0\r\n\r\n')
    assert chunked.read().status == 413
    chunked.close()


def test_connections_are_kept(client, upstream):
    client.get('/warm')
    before = upstream.connections
    for number in range(20):
        assert client.get(f'/kept/{number}').status == 200
    assert client.ask('POST', '/kept', body=b'x' * 5000).status == 200
    assert upstream.connections == before


def test_a_stale_connection_is_no_error(client, upstream, proxy):
    """The server ends a kept connection just as it is used again: asked anew, and nobody notices."""
    def stale(talk):
        talk.send(OK + 'Content-Length: 2\r\n\r\nok')
        talk.read_head()
        talk.reset()
    upstream.scripts['/stale'] = stale
    for _ in range(5):
        assert client.get('/stale').status == 200
        assert client.get('/next').status == 200


def test_groups_go_on_to_the_next(client, other, upstream):
    seen = [client.get('/group/x').body.split()[0] for _ in range(12)]
    assert set(seen) == {b'one', b'two'}, seen
    assert [client.get('/busy').status for _ in range(4)] == [200] * 4


def test_who_leaves_is_left(proxy, upstream):
    gone = threading.Event()

    def waits(talk):
        if talk.at_end():
            gone.set()
    upstream.scripts['/left'] = waits
    before = len(upstream.requests)
    client = proxy.connect()
    client.send('GET /left HTTP/1.1\r\nHost: localhost\r\n\r\n')
    wait_for(lambda: len(upstream.requests) > before, 'it was never asked')
    client.close()
    assert gone.wait(10 * server_kit.PATIENCE)
    assert proxy.server.access_for('/left')[0]['status'] == '499'


def test_a_slow_client_stops_the_server(proxy, upstream):
    """Backpressure: of an endless answer only what fits into buffers is taken while the client reads nothing."""
    sent = [0]

    def endless(talk):
        talk.stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        talk.stream.settimeout(1.5)
        talk.send(OK + 'Content-Length: 1000000000\r\n\r\n')
        try:
            while sent[0] < 200_000_000:
                sent[0] += talk.stream.send(b'x' * 65536)
        except TimeoutError:
            pass
    upstream.scripts['/endless'] = endless
    client = proxy.connect()
    client.send('GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    last = -1
    while sent[0] != last:
        last = sent[0]
        time.sleep(0.5)
    assert sent[0] < 50_000_000
    client.close()


def test_a_slow_server_stops_the_client(proxy, upstream):
    release = threading.Event()

    def lazy(talk):
        release.wait(20)
        talk.read_body()
        talk.send(OK + 'Content-Length: 2\r\n\r\nok')
        return True
    upstream.scripts['/lazy'] = lazy
    client = proxy.connect()
    client.send('POST /lazy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 104857600\r\n\r\n')
    given, block = 0, b'y' * 65536
    client.stream.settimeout(1.5)
    try:
        while given < 104857600:
            given += client.stream.send(block[:104857600 - given])
    except (TimeoutError, OSError):
        pass
    assert given < 50_000_000
    release.set()
    client.close()


def test_upgrade(proxy, upstream):
    """A WebSocket needs no words in the configuration, may be quiet longer than any timeout, and holds in both directions."""
    client = proxy.connect()
    client.send(UPGRADE.format('/socket') + 'early')
    head = client.head()
    assert head.status == 101 and head.headers['upgrade'] == 'websocket' and head.headers['connection'] == 'upgrade'
    assert head.headers['sec-websocket-accept'] == 'y'
    assert 'content-length' not in head.headers and 'transfer-encoding' not in head.headers
    assert client.take(10) == b'helloearly'
    time.sleep(1)
    client.send('after a while')
    assert client.take(13) == b'after a while'
    received = []
    reader = threading.Thread(target=lambda: received.append(client.take(len(BIG))))
    reader.start()
    client.send(BIG)
    reader.join(20 * server_kit.PATIENCE)
    assert received == [BIG]
    client.send('bye')
    assert client.take(3) == b'bye' and client.at_end()
    client.close()
    assert proxy.server.access_for('/socket')[-1]['status'] == '101'


def test_the_end_of_an_upgraded_client(proxy, upstream):
    """What the client said last arrives, and then its end."""
    upstream.heard = b''
    client = proxy.connect()
    client.send(UPGRADE.format('/socket'))
    assert client.head().status == 101 and client.take(5) == b'hello'
    client.send(b'z' * 300000 + b'last')
    if proxy.transport == 'plain':
        client.stream.shutdown(socket.SHUT_WR)
    else:
        reader = threading.Thread(target=lambda: client.take(300004))
        reader.start()
        reader.join(20 * server_kit.PATIENCE)
        client.close()
    wait_for(lambda: upstream.heard.endswith(b'last') and len(upstream.heard) == 300004, 'not all arrived')
    client.close()


def test_no_upgrade(client, upstream):
    client.send(UPGRADE.format('/no-socket'))
    assert client.read().body == b'no'
    assert client.get('/next').status == 200
    for protocol in ('h2c', 'HTTP/2.0', 'TLS/1.0', 'websocket, h2c'):
        client.ask('GET', '/next', [('Connection', 'Upgrade'), ('Upgrade', protocol)])
        assert upstream.last().header('upgrade') is None and upstream.last().header('connection') is None
    client.ask('GET', '/next', [('Upgrade', 'websocket')])
    assert upstream.last().header('upgrade') is None


def test_events_come_as_they_happen(client):
    client.send('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().headers['content-type'].startswith('text/event-stream')
    for number in range(3):
        assert client.line() == '9' and client.take(11) == b'data: %d\n\n\r\n' % number
    assert client.line() == '0'


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
def test_nothing_ambiguous_passes(proxy, upstream, line):
    before = len(upstream.requests)
    client = proxy.connect()
    client.send(line)
    assert client.read().status == 400
    client.close()
    assert len(upstream.requests) == before
