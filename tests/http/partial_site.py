"""The site of the tests of `proxy_cache_partial`: an upstream server with files of which it sends ranges, and checks of responses."""
import os
import random
import re

import pytest
from cache_site import Scripted, client, fetch, lines, path, sites  # pylint: disable=unused-import
from kit.lifetime import wait_for

PARTIAL, BYPASS = 'PARTIAL', 'BYPASS'
OLD = 'Sat, 01 Jan 2022 00:00:00 GMT'
SIZE = 40000        # more than an entry keeps in memory, and more than one write


class Origin(Scripted):
    """Serves `files` by path: [bytes, header lines], with ranges and preconditions. `turns` maps (path, request number) to a function of
    the peer that replaces the response."""

    def __init__(self):
        self.files, self.turns = {}, {}
        super().__init__()

    def add(self, path, size=SIZE, fields='ETag: "v1"\nCache-Control: max-age=60', seed=7):
        self.files[path] = [random.Random(seed).randbytes(size), fields]
        return self.files[path][0]

    def ranges(self, path):
        return [(request.header('range'), request.header('if-range')) for request in self.requests_of(path)]

    def respond(self, peer):
        peer.read_body()
        path = peer.request.target
        turn = self.turns.get((path, len(self.requests_of(path))))
        return turn(peer) if turn else self.serve_file(peer)

    def serve_file(self, peer):
        data, fields = self.files[peer.request.target]
        validators = [line.split(': ', 1)[1] for line in fields.split('\n') if line.startswith(('ETag: ', 'Last-Modified: '))]
        if peer.request.header('if-none-match') in validators:
            return self.send_response(peer, f'Status: 304\n{fields}', b'')
        expected = re.fullmatch(r'bytes=(\d*)-(\d*)', peer.request.header('range') or '')
        if not expected or peer.request.header('if-range') not in [None, *validators]:
            return self.send_response(peer, fields, data)
        if expected[1]:
            first, last = int(expected[1]), min(int(expected[2] or len(data)), len(data) - 1)
        else:
            first, last = max(0, len(data) - int(expected[2])), len(data) - 1
        if first >= len(data):
            return self.send_response(peer, f'Status: 416\nContent-Range: bytes */{len(data)}\n{fields}', b'')
        return self.send_response(peer, f'Status: 206\nContent-Range: bytes {first}-{last}/{len(data)}\n{fields}', data[first:last + 1])


@pytest.fixture(scope='module')
def upstream():
    made = Origin()
    yield made
    made.stop()
    assert not made.faults, made.faults


def configuration(upstream, folder):
    to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_cache': 'one', 'proxy_cache_partial': True}
    location = {
        '/': to,
        '/revalidate/': {**to, 'proxy_cache_revalidate': True},
        '/stale/': {**to, 'proxy_cache_use_stale': ['error', 'http_500']},
        '/background/': {**to, 'proxy_cache_background_update': True, 'proxy_cache_use_stale': 'updating', 'proxy_cache_revalidate': True},
        '/lock/': {**to, 'proxy_cache_lock': True, 'proxy_cache_lock_timeout': '1h', 'proxy_cache_lock_age': '1h'},
        '/purge/': {**to, 'proxy_cache_purge': 'PURGE 127.0.0.1'},
        '/far/': {**to, 'proxy_cache_max_range_offset': 10000},
        '/direct/': {**to, 'proxy_buffering': False},
        '/off/': {**to, 'proxy_cache_partial': False},
        '/twice/': {**to, 'proxy_cache_min_uses': 2},
        '/bypass/': {**to, 'proxy_cache_bypass': '$http_x_bypass'},
        '/packed/': {**to, 'gzip': True, 'gzip_types': 'text/plain'},
    }
    return {'location': location, 'add_header': ['X-Cache $upstream_cache_status always', 'X-Upstream "$upstream_status" always']}, \
        {'proxy_cache_path': {'path': str(folder / 'cache'), 'keys_zone': 'one:1m'}}


@pytest.fixture
def served(launch, loop, transport, new_directory, upstream, sites):
    if (loop, transport) not in sites:
        folder = new_directory()
        os.chmod(folder, 0o755)
        server, http = configuration(upstream, folder)
        sites[loop, transport] = launch(loop, transport, server=server, http=http), folder / 'cache'
    return sites[loop, transport][0]


def part(client, target, spec, fields=''):
    return fetch(client, target, f'Range: bytes={spec}\n{fields}')


def check_part(response, data, first, last, how):
    assert (response.status, response.headers.get('x-cache')) == (206, how), response
    assert response.headers['content-range'] == f'bytes {first}-{last}/{len(data)}'
    assert response.headers['content-length'] == str(last - first + 1)
    assert response.body == data[first:last + 1]


def check_whole(response, data, how):
    assert (response.status, response.headers.get('x-cache')) == (200, how), response
    assert 'content-range' not in response.headers and response.headers['content-length'] == str(len(data))
    assert response.body == data


def broken(served, target, fields=''):
    """Requests a response that breaks off; returns its header section, None if the connection ended earlier, and the body bytes received."""
    client = served.connect(promoted=False)
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n{lines(fields)}\r\n')
    try:
        head = client.head()
    except EOFError:
        return None, b''
    with pytest.raises((EOFError, OSError)):
        while len(client.buffer) < int(head.headers['content-length']):
            if not client.fill():
                raise EOFError
    got = bytes(client.buffer)
    client.close()
    return head, got


def breaks_after(upstream, count):
    """A turn that sends `count` bytes of the body and closes the connection without a reset."""
    def turn(peer):
        whole = []
        send = peer.send
        peer.send = lambda data: whole.append(data if isinstance(data, bytes) else data.encode('latin-1'))
        upstream.serve_file(peer)
        peer.send = send
        head, body = b''.join(whole).split(b'\r\n\r\n', 1)
        peer.send(head + b'\r\n\r\n' + body[:count])
        return False
    return turn


def wait_until_stored(client, target, spec):
    """Waits until a range is stored."""
    wait_for(lambda: part(client, target, spec, 'Cache-Control: only-if-cached').status == 206, f'{spec} of {target} is stored')


def sends_part(upstream, fields, data, first, last, range='own', sent=None, chunked=False):
    """A turn that sends a 206 with this range, length and framing."""
    def turn(peer):
        place = f'bytes {first}-{last}/{len(data)}' if range == 'own' else range
        body = data[first:last + 1][:sent]
        text = f'Status: 206\n{fields}' + (f'\nContent-Range: {place}' if place else '')
        if not chunked:
            return upstream.send_response(peer, text, body)
        peer.send(f'HTTP/1.1 206 X\r\n{lines(text[12:])}Transfer-Encoding: chunked\r\n\r\n')
        peer.send(b'%x\r\n%s\r\n0\r\n\r\n' % (len(body), body))
        return True
    return turn
