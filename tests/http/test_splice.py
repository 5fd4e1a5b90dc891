"""Large upstream responses: by splice to plain clients, copied elsewhere; complete, or detectably incomplete."""
import contextlib
import hashlib
import os
import socket
import threading
import time

import pytest
from kit import http1
from kit.lifetime import wait_for
from kit.upstream import Upstream

LARGE = bytes(range(251)) * 16384       # 4 MiB, with a period that no page size divides
HUGE = LARGE * 3                        # more than all socket buffers between server and client
HEAD = 'HTTP/1.1 200 OK\r\n'


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def with_content_length(peer, body=LARGE, promised=None):
    peer.read_body()
    peer.send(HEAD + f'Content-Length: {promised or len(body)}\r\n\r\n')
    if peer.request.method != 'HEAD':
        peer.send(body)
    return promised is None


def to_the_end(peer):
    peer.send('HTTP/1.0 200 OK\r\n\r\n')
    peer.send(LARGE)


def chunked(peer, size=100000, whole=True):
    peer.send(HEAD + 'Transfer-Encoding: chunked\r\n\r\n')
    peer.send(b''.join(b'%x\r\n%s\r\n' % (len(piece), piece) for piece in (LARGE[at:at + size] for at in range(0, len(LARGE), size))))
    peer.send('0\r\n\r\n' if whole else '')
    return whole


def sends_small_pieces(peer):
    """Sends small pieces with pauses, so that the pipe becomes empty repeatedly."""
    peer.send(HEAD + 'Content-Length: 200000\r\n\r\n')
    for at in range(0, 200000, 8000):
        peer.send(LARGE[at:at + 8000])
        time.sleep(0.005)
    return True


def resets(peer):
    peer.send(HEAD + f'Content-Length: {len(LARGE)}\r\n\r\n')
    peer.send(LARGE[:300000])
    time.sleep(0.1)
    peer.reset()


def sends_excess_bytes(peer):
    peer.send(HEAD.encode() + b'Content-Length: 300000\r\n\r\n' + LARGE[:300000] + b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
    return True


def stalls(peer):
    peer.send(HEAD + f'Content-Length: {len(LARGE)}\r\n\r\n')
    peer.send(LARGE[:300000])
    peer.at_end()


SCRIPTS = {
    '/large': with_content_length,
    '/again': with_content_length,
    '/huge': lambda peer: with_content_length(peer, HUGE),
    '/least': lambda peer: with_content_length(peer, LARGE[:65536]),
    '/small': lambda peer: with_content_length(peer, LARGE[:65535]),
    '/short': lambda peer: with_content_length(peer, LARGE[:300000], 300001),
    '/to-the-end': to_the_end,
    '/chunked': chunked,
    '/chunked-small': lambda peer: chunked(peer, 999),
    '/chunked-short': lambda peer: chunked(peer, whole=False),
    '/sends_small_pieces': sends_small_pieces,
    '/resets': resets,
    '/sends_excess_bytes': sends_excess_bytes,
    '/still': stalls,
}


@pytest.fixture(scope='module')
def upstream():
    made = Upstream(SCRIPTS)
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def local(base):
    made = Upstream(SCRIPTS, path=str(base / 'splice.sock'))
    yield made
    made.stop()


@pytest.fixture
def proxy(launch, loop, transport, upstream, local):
    to = f'http://127.0.0.1:{upstream.port}'
    return launch(loop, transport, server={'location': {
        '/': {'proxy_pass': to},
        '/unix/': {'proxy_pass': f'http://unix:{local.path}:/'},
        '/copied/': {'proxy_pass': to + '/', 'sendfile': 'off'},
        '/kept/': {'proxy_pass': 'http://kept/'},
        '/once/': {'proxy_pass': 'http://once/'},
        '/still': {'proxy_pass': to, 'proxy_read_timeout': '400ms'},
        '/impatient/': {'proxy_pass': to + '/', 'send_timeout': '400ms'},
    }}, http={'upstream': {'kept': {'server': f'127.0.0.1:{upstream.port}', 'keepalive': 4},
                          'once': {'server': f'127.0.0.1:{upstream.port}', 'keepalive': 0}}})


@pytest.fixture
def client(proxy):
    made = proxy.connect()
    yield made
    made.close()


def logged(proxy, uri):
    row = proxy.server.access_for(uri)[-1]
    return row['tls_path'], int(row['bytes_zero_copy'])


def descriptors(proxy):
    """The numbers of open sockets and pipes of the worker."""
    found = []
    pid = proxy.server.workers()[0]
    for name in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f'/proc/{pid}/fd/{name}').split(':')[0])
    return found.count('socket'), found.count('pipe')


@pytest.mark.parametrize('target, size', [('/large', len(LARGE)), ('/unix/large', len(LARGE)), ('/least', 65536), ('/kept/large', len(LARGE))])
def test_large_bodies_are_spliced(proxy, client, loop, transport, target, size):
    uri = f'{target}?{loop}-{transport}'
    response = client.get(uri)
    assert response.status == 200 and sha256(response.body) == sha256(LARGE[:size])
    path, zero_copy = logged(proxy, uri)
    if transport == 'plain':
        assert path == 'plain-splice'
        assert size - 32768 <= zero_copy <= size, 'what came with the head is copied'
    else:
        assert (path, zero_copy) == ('user', 0)
    assert client.get('/again').body == LARGE, 'the connection continues'


@pytest.mark.parametrize('target, size', [('/small', 65535), ('/copied/large', len(LARGE)), ('/chunked', len(LARGE)),
                                          ('/chunked-small', len(LARGE))])
def test_unsuitable_bodies_are_copied(proxy, client, loop, transport, target, size):
    uri = f'{target}?copied-{loop}-{transport}'
    assert sha256(client.get(uri).body) == sha256(LARGE[:size])
    assert logged(proxy, uri) == ('plain' if transport == 'plain' else 'user', 0)


def test_close_delimited_body_is_spliced_as_chunks(proxy, client, loop, transport):
    """Without Content-Length the bytes in the pipe are sent as chunks."""
    uri = f'/to-the-end?{loop}-{transport}'
    response = client.get(uri)
    assert not response.has_length and sha256(response.body) == sha256(LARGE)
    path, zero_copy = logged(proxy, uri)
    assert (path, zero_copy > len(LARGE) // 2) == (('plain-splice', True) if transport == 'plain' else ('user', False))
    old = proxy.connect()
    assert sha256(old.fetch('GET', '/to-the-end', version='HTTP/1.0').body) == sha256(LARGE)
    old.close()


def test_head_response_without_body(client):
    response = client.fetch('HEAD', '/large')
    assert response.headers['content-length'] == str(len(LARGE)) and response.body == b''
    assert client.get('/large').body == LARGE


def test_upstream_connections_are_reused(proxy, client, upstream):
    assert client.get('/kept/large').body == LARGE
    before = upstream.connections
    for _ in range(4):
        assert client.get('/kept/large').body == LARGE
    assert upstream.connections == before


def test_excess_bytes_belong_to_no_response(proxy, client, upstream):
    before = upstream.connections
    for _ in range(3):
        assert client.get('/kept/sends_excess_bytes').body == LARGE[:300000]
        assert client.get('/kept/large').body == LARGE
    assert upstream.connections - before >= 3, 'a connection with bytes too many is not used again'


def test_slow_server_body_is_complete(client):
    assert client.get('/sends_small_pieces').body == LARGE[:200000]


@pytest.mark.parametrize('target', ['/large', '/chunked', '/chunked-small'])
def test_slow_client_gets_the_complete_body(proxy, transport, target):
    client = proxy.connect()
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    for _ in range(20):
        time.sleep(0.01)
        client.fill()
    assert sha256(client.read().body) == sha256(LARGE)
    client.close()


@pytest.mark.parametrize('target, output', [('/short', 'before the end of the body'), ('/chunked-short', 'before the end of the body'),
                                            ('/resets', 'Connection reset'), ('/still', 'timed out')])
def test_truncated_bodies_are_detectable(proxy, client, target, output):
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    with pytest.raises(EOFError):
        client.read()
    wait_for(lambda: output in proxy.server.errors(), output)


def test_send_timeout_ends_a_spliced_body(proxy, upstream):
    client = proxy.connect()
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.send('GET /impatient/huge?nobody HTTP/1.1\r\nHost: localhost\r\n\r\n')
    row = proxy.server.access_for('/impatient/huge?nobody')[-1]
    assert int(row['body_bytes_sent']) < len(HUGE)
    client.close()


def disconnect_after(proxy, target, seconds):
    client = proxy.connect()
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    client.fill()
    time.sleep(seconds)
    client.close()


def test_resources_are_released(proxy, client, transport):
    """Clients that disconnect, and upstream servers that reset, truncate and stall: afterwards the worker has as many sockets as before,
    and no more pipes than the pool keeps."""
    assert client.get('/once/large').body == LARGE
    sockets, _ = descriptors(proxy)
    for _ in range(2):
        threads = [threading.Thread(target=disconnect_after, args=(proxy, f'/once{target}', 0.02 * number))
                   for number in range(5) for target in ('/large', '/resets', '/short', '/still', '/sends_small_pieces', '/to-the-end', '/chunked')]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    wait_for(lambda: descriptors(proxy)[0] <= sockets and descriptors(proxy)[1] <= 2 * 16, f'{descriptors(proxy)}, before: {sockets}')
    assert client.get('/large').body == LARGE


def test_pipe_limit_falls_back_to_copying(proxy, transport):
    """Each stopped response holds a pipe until no pipe is left; the bytes of further responses are copied. No response waits for a pipe."""
    if transport != 'plain':
        pytest.skip('by user-space TLS everything is copied')
    standing = [http1.connect(proxy.port) for _ in range(150)]
    for number, one in enumerate(standing):
        one.send(f'GET /huge?standing-{number} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    for one in standing:
        one.fill()                      # each response has begun, so each has an entry for its path in the log
    wait_for(lambda: descriptors(proxy)[1] == 2 * 128, 'pipes are taken')
    for one in (standing[0], standing[-1]):
        assert sha256(one.read().body) == sha256(HUGE)
    for one in standing:
        one.close()
    paths = [logged(proxy, f'/huge?standing-{number}')[0] for number in range(len(standing))]
    assert set(paths) == {'plain-splice', 'plain'}
    wait_for(lambda: descriptors(proxy)[1] <= 2 * 16, 'the others are closed')
