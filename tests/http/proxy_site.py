"""The site of the reverse proxy tests: a scripted upstream server, and the locations that pass requests to it."""
import socket
import time

import pytest
from kit import server as server_kit
from kit.upstream import Upstream

OK = 'HTTP/1.1 200 OK\r\n'

UPGRADE = ('GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n'
           'Sec-WebSocket-Key: x\r\n\r\n')

BIG = bytes(range(256)) * 4096      # 1 MiB


def responds_with(text, keep=False):
    """A script that reads the request and sends this text."""
    def script(peer):
        peer.read_body()
        peer.send(text)
        return keep
    return script


def slow_head(peer):
    for byte in OK + 'Content-Length: 4\r\n\r\nslow':
        peer.send(byte)
        time.sleep(0.002)
    return True


def slow_body(peer):
    peer.send(OK + 'Content-Length: 6\r\n\r\n')
    for byte in 'drops.':
        time.sleep(0.02)
        peer.send(byte)
    return True


def reset_midway(peer):
    peer.send(OK + 'Content-Length: 1000\r\n\r\nsome')
    time.sleep(0.1)
    peer.reset()


def never(peer):
    peer.at_end()


def stalls_in_body(peer):
    peer.send(OK + 'Content-Length: 1000\r\n\r\nsome')
    peer.at_end()


def responds_early(peer):
    """Responds before the body has arrived. A close with unread bytes would reset the connection: reads until the proxy closes."""
    peer.send('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n')
    while peer.fill():
        pass


def closes_without_response(peer):
    """Reads the complete request and closes the connection without a response."""
    peer.read_body()


def trailers(peer):
    peer.send(OK + 'Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n')
    return True


def big(peer):
    peer.send(OK + f'Content-Length: {len(BIG)}\r\n\r\n')
    peer.send(BIG)
    return True


def big_chunked(peer):
    peer.send(OK + 'Transfer-Encoding: chunked\r\n\r\n')
    for at in range(0, len(BIG), 5000):
        piece = BIG[at:at + 5000]
        peer.send(b'%x\r\n%s\r\n' % (len(piece), piece))
    peer.send('0\r\n\r\n')
    return True


def echo(peer):
    """Accepts the upgrade, sends "hello" and echoes all bytes; a piece that ends with `bye` ends the connection."""
    assert peer.request.header('connection').lower() == 'upgrade'
    peer.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\nhello')
    while peer.buffer or peer.fill():
        piece, peer.buffer = peer.buffer, b''
        peer.upstream.received += piece
        peer.send(piece)
        if piece.endswith(b'bye'):
            return


def events(peer):
    """Pauses longer than proxy_read_timeout between the events."""
    peer.send(OK + 'Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n\r\n')
    for number in range(3):
        peer.send(f'data: {number}\n\n')
        time.sleep(0.8)


def heartbeats(peer):
    """Sends 102 (Processing) several times (the number is the query), then the final response."""
    for number in range(int(peer.request.target.split('?')[1])):
        peer.send(f'HTTP/1.1 102 Processing\r\nX-Beat: {number}\r\n\r\n')
    peer.send(OK + 'Content-Length: 4\r\n\r\ndone')
    return True


def wants_the_body(peer):
    """Checks that no byte of the body arrives before the 100 (Continue)."""
    assert peer.request.header('expect') == '100-continue'
    peer.stream.settimeout(0.2)
    try:
        peer.early = bool(peer.buffer or peer.fill())
    except TimeoutError:
        peer.early = False
    peer.stream.settimeout(30)
    peer.send('HTTP/1.1 100 Continue\r\n\r\n')
    body = peer.read_body()
    peer.send(OK + f'Content-Length: {len(body) + 6}\r\n\r\n{peer.early:<6}' + body.decode())
    return True


def rejects_the_body(peer):
    """Sends a final status instead of 100 (Continue)."""
    assert peer.request.header('expect') == '100-continue'
    peer.send('HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 3\r\n\r\nno\n')
    peer.upstream.unsent = peer.at_end()


SCRIPTS = {
    '/wants': wants_the_body,
    '/rejects': rejects_the_body,
    '/socket': echo,
    '/no-socket': responds_with(OK + 'Content-Length: 2\r\n\r\nno', keep=True),
    '/events': events,
    '/slow-head': slow_head,
    '/slow-body': slow_body,
    '/reset': reset_midway,
    '/never': never,
    '/half': stalls_in_body,
    '/early': responds_early,
    '/closes': closes_without_response,
    '/closes-too': closes_without_response,
    '/trailers': trailers,
    '/big': big,
    '/big-chunked': big_chunked,
    '/to-the-end': responds_with(OK + '\r\nuntil the end'),
    '/old': responds_with('HTTP/1.0 200 OK\r\n\r\nold'),
    '/no-content': responds_with('HTTP/1.1 204 No Content\r\n\r\n', keep=True),
    '/not-modified': responds_with('HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: "x"\r\n\r\n', keep=True),
    '/error': responds_with('HTTP/1.1 503 Busy\r\nContent-Length: 5\r\nRetry-After: 7\r\n\r\nbusy\n', keep=True),
    '/interim': responds_with('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\n\r\n' + OK +
                     'Content-Length: 2\r\n\r\nok', keep=True),
    '/flood': responds_with('HTTP/1.1 102 Processing\r\n\r\n' * 10000 + OK + 'Content-Length: 2\r\n\r\nok', keep=True),
    '/heartbeats': heartbeats,
    '/own-words': responds_with('HTTP/1.1 200 All (really) is well\r\nContent-Length: 2\r\n\r\nok', keep=True),
    '/own-status': responds_with('HTTP/1.1 299 Mostly\r\nContent-Length: 0\r\n\r\n', keep=True),
    '/no-words': responds_with('HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n', keep=True),
    '/own-error': responds_with('HTTP/1.1 503 Nap\r\nContent-Length: 0\r\n\r\n', keep=True),
    '/bare-lf': responds_with('HTTP/1.1 200 OK\nContent-Length: 2\nX-Own: a\r\n\nok', keep=True),
    '/bare-lf-chunks': responds_with('HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nok\n0\nX-Sum: 42\n\n', keep=True),
    '/fields': responds_with(OK + 'Server: secret\r\nDate: yesterday\r\nX-Accel-Expires: 1\r\nX-Pad: x\r\nX-Powered-By: y\r\n'
                    'Keep-Alive: timeout=5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nProxy-Connection: z\r\nUpgrade: h2c\r\n'
                    'Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Keep: yes\r\nContent-Length: 2\r\n\r\nok', keep=True),
}

GARBAGE = {
    '/closed': '',
    '/half-head': 'HTTP/1.1 200 OK\r\nContent-',
    '/noise': '\x16\x03\x01 not http\r\n\r\n',
    '/version': 'HTTP/2.0 200 OK\r\n\r\n',
    '/two-lengths': OK + 'Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!',
    '/both': OK + 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    '/coding': OK + 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    '/folded': OK + 'X: a\r\n b\r\nContent-Length: 0\r\n\r\n',
    '/space': OK + 'Content-Length : 0\r\n\r\n',
    '/options': OK + 'Connection: ' + 'a,' * 33 + '\r\nContent-Length: 0\r\n\r\n',
    '/interim-options': 'HTTP/1.1 103 Early Hints\r\n' + 'Connection: a\r\n' * 33 + '\r\n' + OK + 'Content-Length: 0\r\n\r\n',
    '/switch': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    '/huge': OK + 'X: ' + 'a' * 70000 + '\r\n\r\n',
}

SCRIPTS.update({path: responds_with(text) for path, text in GARBAGE.items()})

# Bodies with a fault after the header section: the client must detect an incomplete response.
BROKEN = {
    '/short': OK + 'Content-Length: 10\r\n\r\nshort',
    '/bad-chunk': OK + 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n',
    '/truncated-chunk': OK + 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\nab',
    '/no-last-chunk': OK + 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
}

SCRIPTS.update({path: responds_with(text) for path, text in BROKEN.items()})

IMPATIENT = {'proxy_read_timeout': '400ms'}


@pytest.fixture(scope='module')
def upstream():
    made = Upstream(SCRIPTS)
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def other():
    made = Upstream({'/busy': responds_with('HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n', keep=True)}, name='two')
    yield made
    made.stop()


@pytest.fixture(scope='module')
def closed_port():
    return server_kit.free_port()


@pytest.fixture(scope='module')
def local(new_directory):
    made = Upstream(name='local', path=str(new_directory() / 'upstream.sock'))
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
        '/set-args/': {'proxy_pass': f'unix:{local.path}', 'set': '$args a=b'},
        '/group/': {'proxy_pass': 'http://group/'},
        '/busy': {'proxy_pass': 'http://group', 'proxy_next_upstream': ['error', 'http_503']},
        '/name/': {'proxy_pass': f'http://localhost:{upstream.port}/'},
        '/dead/': {'proxy_pass': f'http://127.0.0.1:{closed_port}'},
        '/no-such-name/': {'proxy_pass': 'http://no-such-name.invalid/'},
        '/never': {'proxy_pass': to, **IMPATIENT},
        '/half': {'proxy_pass': to, **IMPATIENT},
        '/events': {'proxy_pass': to, **IMPATIENT},
        '/socket': {'proxy_pass': to, **IMPATIENT, 'client_body_timeout': '300ms', 'send_timeout': '300ms'},
        '/moved/': {'proxy_pass': to + '/go/'},
        '/moved-off/': {'proxy_pass': to + '/go/', 'proxy_redirect': 'off'},
        '/go/': {'proxy_pass': to},
        '/fallback/': {'proxy_pass': f'http://127.0.0.1:{closed_port}', 'error_page': '502 /one.txt'},
        '/closes': {'proxy_pass': to, 'error_page': '502 @second'},
        '@second': {'proxy_pass': f'http://127.0.0.1:{other.port}'},
        '/closes-too': {'proxy_pass': to, 'error_page': '502 =200 /second'},
        '/second': {'proxy_pass': f'http://127.0.0.1:{other.port}'},
        '/one.txt': {},
        '/own-error/intercepted': {'proxy_pass': to + '/own-error', 'proxy_intercept_errors': 'on', 'error_page': '503 /one.txt'},
        '/fields': {'proxy_pass': to, 'proxy_hide_header': 'X-Powered-By'},
        '/server': {'proxy_pass': to + '/fields', 'proxy_pass_header': 'Server'},
        '/set/': {'proxy_pass': to, 'proxy_set_header': ['X-Real-IP $remote_addr', {'Host': '$host', 'Accept': '', 'X-Added': 'a b'},
                                                         'X-Forwarded-For $proxy_add_x_forwarded_for']},
        '/reads_late': {'proxy_pass': to, 'client_max_body_size': 0},
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
