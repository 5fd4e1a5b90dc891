"""Compression of responses: files, listings, error pages and proxied responses; slow readers, clients that disconnect, highly compressible
bodies."""
import gzip
import itertools
import os
import re
import socket
import subprocess
import threading
import zlib

import brotli
import pytest
import zstandard
from kit import server as server_kit, site as site_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream
from proxy_site import OK

TEXT = b''.join(b'<p class="line-%d">the %d-th line of a long page</p>\n' % (i % 13, i) for i in range(20000))
HUGE = 32 << 20
BOMB = 128 << 20
CODINGS = ['br', 'zstd', 'gzip']
ENCODED = {'gzip': 'on', 'brotli': 'on', 'zstd': 'on',
           **{f'{coding}_types': ['text/css', 'text/plain', 'application/json', 'text/event-stream'] for coding in ('gzip', 'brotli', 'zstd')}}


class Decoder:
    """An incremental decoder of one coding: `feed` returns the bytes that can be decoded so far."""

    def __init__(self, coding):
        self.coding = coding
        self.made = {'gzip': lambda: zlib.decompressobj(31), 'br': brotli.Decompressor,
                     'zstd': lambda: zstandard.ZstdDecompressor().decompressobj()}[coding]()

    def feed(self, piece):
        return self.made.process(piece) if self.coding == 'br' else self.made.decompress(piece)

    @property
    def whole(self):
        return self.made.is_finished() if self.coding == 'br' else self.made.eof


def decode(coding, body):
    decoder = Decoder(coding)
    plain = decoder.feed(body)
    assert decoder.whole, 'the body is incomplete'
    return plain


@pytest.fixture(scope='session')
def folder(base):
    top = base / 'compressed'
    (top / 'listed').mkdir(parents=True)
    site_kit.write(str(top), 'page.html', TEXT)
    site_kit.write(str(top), 'small.css', TEXT[:3000])
    site_kit.write(str(top), 'picture.png', TEXT[:3000])
    for number in range(50):
        site_kit.write(str(top), f'listed/file {number}.txt', str(number))
    site_kit.make_file(str(top / '65536.bin'), 65536)
    with open(top / 'huge.txt', 'wb') as stream:
        for _ in range(HUGE // len(TEXT) + 1):
            stream.write(TEXT)
        stream.truncate(HUGE)
    return str(top)


def events(peer):
    """Sends each event after the client has received the previous one: if the server delays an event, the test times out."""
    peer.send(OK + 'Content-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n\r\n')
    for number in range(5):
        peer.send(f'data: event {number}\n\n')
        assert peer.upstream.seen.acquire(timeout=20 * server_kit.PATIENCE)


def responds_with(head, body, piece=5000):
    def script(peer):
        peer.read_body()
        peer.send(OK + head + '\r\n')
        if peer.request.method == 'HEAD':
            return True
        for at in range(0, len(body), piece):
            part = body[at:at + piece]
            peer.send(b'%x\r\n%s\r\n' % (len(part), part) if 'chunked' in head else part)
        if 'chunked' in head:
            peer.send('0\r\n\r\n')
        return True
    return script


def bomb(peer):
    """A large body that compresses to very little."""
    peer.send(OK + f'Content-Type: text/plain\r\nContent-Length: {BOMB}\r\n\r\n')
    piece = bytes(1 << 20)
    for _ in range(BOMB >> 20):
        peer.send(piece)


def breaks(peer):
    peer.send(OK + 'Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n' + 'x' * 4096 + '\r\n')
    peer.reset()


def endless(peer):
    peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    peer.stream.settimeout(1.5)
    peer.send(OK + 'Content-Type: text/plain\r\nContent-Length: 10000000000\r\n\r\n')
    block = os.urandom(65536)
    try:
        while peer.upstream.sent < 400_000_000:
            peer.upstream.sent += peer.stream.send(block)
    except (TimeoutError, OSError):
        pass
    peer.upstream.stuck.set()


SCRIPTS = {
    '/up/chunked': responds_with('Content-Type: text/html\r\nTransfer-Encoding: chunked\r\nETag: "a"\r\n', TEXT),
    '/up/length': responds_with(f'Content-Type: text/html\r\nContent-Length: {len(TEXT)}\r\nVary: Accept\r\n', TEXT),
    '/up/done': responds_with(f'Content-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: {len(gzip.compress(TEXT, mtime=0))}\r\n',
                     gzip.compress(TEXT, mtime=0)),
    '/up/keep': responds_with(f'Content-Type: text/html\r\nCache-Control: public, no-transform\r\nContent-Length: {len(TEXT)}\r\n', TEXT),
    '/up/weak': responds_with(f'Content-Type: text/html\r\nETag: W/"b"\r\nContent-Length: {len(TEXT)}\r\n', TEXT),
    '/up/events': events, '/up/bomb': bomb, '/up/breaks': breaks, '/up/endless': endless,
}


@pytest.fixture(scope='module')
def upstream():
    made = Upstream(SCRIPTS)
    made.seen, made.stuck, made.sent = threading.Semaphore(0), threading.Event(), 0
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def served(launch, loop, transport, folder, upstream):
    to = f'http://127.0.0.1:{upstream.port}'
    return launch(loop, transport, server={'root': folder, 'autoindex': 'on', **ENCODED, 'location': {
        '/up/': {'proxy_pass': to}, '/direct/': {'proxy_pass': to + '/up/', 'proxy_buffering': 'off'}}})


@pytest.fixture
def client(served):
    made = served.connect()
    yield made
    made.close()


def fetch(client, target, takes, **headers):
    return client.get(target, **({'Accept-Encoding': takes} if takes else {}), **headers)


@pytest.mark.parametrize('coding', CODINGS)
@pytest.mark.parametrize('target, plain', [('/page.html', TEXT), ('/small.css', TEXT[:3000]), ('/up/chunked', TEXT), ('/up/length', TEXT),
                                           ('/direct/chunked', TEXT), ('/direct/length', TEXT)])
def test_decoded_body_equals_the_original(client, target, plain, coding):
    response = fetch(client, target, coding)
    assert response.status == 200 and response.headers['content-encoding'] == coding
    assert 'Accept-Encoding' in response.headers['vary'].split(', ')
    assert not response.has_length and 'accept-ranges' not in response.headers
    assert response.headers.get('etag', 'W/').startswith('W/')
    assert len(response.body) < len(plain) / 3
    assert decode(coding, response.body) == plain
    other = fetch(client, target, None)
    assert 'content-encoding' not in other.headers and other.body == plain
    assert 'Accept-Encoding' in other.headers['vary'].split(', ')


def without_id(page):
    """Replaces the request id, which differs in every error page."""
    return re.sub(rb'[0-9a-f]{32}', b'ID', page)


@pytest.mark.parametrize('target', ['/listed/', '/listed/?sort=size', '/nowhere'])
def test_generated_responses_are_encoded(client, target):
    plain = fetch(client, target, None)
    for coding in CODINGS:
        response = fetch(client, target, coding)
        assert response.status == plain.status and response.headers['content-encoding'] == coding
        assert without_id(decode(coding, response.body)) == without_id(plain.body)


def test_curl_decodes_compressed_responses(served, folder):
    out = os.path.join(folder, '..', 'compressed-out')
    for target in ('/page.html', '/up/chunked', '/up/length'):
        for options in (['--compressed'], [], ['--http1.0', '--no-alpn', '--compressed']):
            subprocess.run(['curl', '-sSk', *options, '-o', out, served.url(target)], check=True)
            with open(out, 'rb') as stream:
                assert stream.read() == TEXT


@pytest.mark.parametrize('target, headers', [
    ('/picture.png', {}), ('/page.html', {'Range': 'bytes=0-99'}), ('/up/keep', {}), ('/page.html', {'Cache-Control': 'no-transform'}),
    ('/page.html', {'Via': '1.1 other'})])
def test_responses_that_are_not_encoded(client, target, headers):
    response = fetch(client, target, 'gzip, br, zstd', **headers)
    assert response.status in (200, 206) and 'content-encoding' not in response.headers
    assert int(response.headers['content-length']) == len(response.body)


def test_encoded_upstream_response_is_not_encoded_again(client, upstream):
    response = fetch(client, '/up/done', 'gzip, br, zstd')
    assert response.headers['content-encoding'] == 'gzip' and gzip.decompress(response.body) == TEXT
    assert fetch(client, '/up/weak', 'gzip').headers['etag'] == 'W/"b"'


def test_encoded_response_has_weak_etag(client):
    strong = fetch(client, '/page.html', None).headers['etag']
    weak = fetch(client, '/page.html', 'gzip').headers['etag']
    assert weak == 'W/' + strong
    for takes, etag in itertools.product((None, 'gzip'), (strong, weak)):
        response = fetch(client, '/page.html', takes, If_None_Match=etag)
        assert response.status == 304 and response.headers['etag'] == etag
        assert response.headers['vary'] == 'Accept-Encoding' and 'content-encoding' not in response.headers
    assert fetch(client, '/page.html', 'gzip', If_Range=weak, Range='bytes=0-1').status == 200


def test_head_has_the_fields_of_get(client):
    for target in ('/page.html', '/up/length'):
        output = client.fetch('HEAD', target, [('Accept-Encoding', 'br')])
        got = client.fetch('GET', target, [('Accept-Encoding', 'br')])
        same = {'date', 'transfer-encoding'}
        assert {k: v for k, v in output.headers.items() if k not in same} == {k: v for k, v in got.headers.items() if k not in same}
        assert 'content-length' not in output.headers
    assert client.get('/small.css').status == 200


@pytest.mark.parametrize('target', ['/up/events', '/direct/events'])
@pytest.mark.parametrize('coding', CODINGS)
def test_server_sent_events_are_flushed(client, upstream, target, coding):
    decoder = Decoder(coding)
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {coding}\r\n\r\n')
    assert client.head().headers['content-encoding'] == coding
    plain = b''
    for number in range(5):
        expected = f'data: event {number}\n\n'.encode()
        while not plain.endswith(expected):
            size = int(client.line(), 16)
            plain += decoder.feed(client.read_exactly(size))
            assert client.read_exactly(2) == b'\r\n'
        upstream.seen.release()
    plain += decoder.feed(client.chunked())
    assert decoder.whole and plain == b''.join(b'data: event %d\n\n' % number for number in range(5))


@pytest.mark.parametrize('coding', CODINGS)
def test_file_of_several_gib_is_encoded(client, folder, coding):
    """Decodes the response piece by piece."""
    decoder, got = Decoder(coding), zlib.crc32(b'')
    client.send(f'GET /huge.txt HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {coding}\r\n\r\n')
    assert client.head().headers['content-encoding'] == coding
    length = 0
    while (size := int(client.line(), 16)) > 0:
        plain = decoder.feed(client.read_exactly(size))
        got, length = zlib.crc32(plain, got), length + len(plain)
        assert client.read_exactly(2) == b'\r\n'
    assert client.line() == ''
    with open(os.path.join(folder, 'huge.txt'), 'rb') as stream:
        expected = zlib.crc32(stream.read())
    assert decoder.whole and length == HUGE and got == expected


def test_encoding_applies_backpressure(served, upstream):
    """Backpressure: while the client does not read an endless body, the server reads only as much as its buffers take."""
    upstream.sent = 0
    upstream.stuck.clear()
    client = served.connect()
    client.send('GET /direct/endless HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n')
    assert client.head().headers['content-encoding'] == 'gzip'
    assert upstream.stuck.wait(30 * server_kit.PATIENCE)
    assert upstream.sent < 50_000_000
    client.close()


def test_small_receive_windows_get_complete_bodies(served):
    """Twelve clients at once with small receive windows: every response is complete."""
    def read(coding, out):
        client = served.connect(promoted=False)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        out[coding] = decode(coding, fetch(client, '/page.html', coding).body)
        client.close()
    found = [{} for _ in range(4)]
    threads = [threading.Thread(target=read, args=(coding, out)) for out in found for coding in CODINGS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60 * server_kit.PATIENCE)
    assert all(out == dict.fromkeys(CODINGS, TEXT) for out in found)


def test_broken_body_is_detectably_incomplete(client):
    """The client must be able to detect that an encoded body is incomplete."""
    with pytest.raises((EOFError, OSError)):
        fetch(client, '/up/breaks', 'gzip')


def test_disconnected_clients_are_released(served, upstream):
    """Clients disconnect at different points of a body. The server continues and frees everything (LeakSanitizer)."""
    for target, count in itertools.product(('/huge.txt', '/up/chunked', '/direct/endless', '/page.html'), (0, 1, 100, 20000)):
        client = served.connect(promoted=False)
        client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: br, gzip;q=0.5\r\n\r\n')
        if count:
            client.read_exactly(count)
        client.close()
    client = served.connect()
    assert decode('gzip', fetch(client, '/page.html', 'gzip').body) == TEXT
    client.close()


def memory(server):
    """Resident memory of all workers in KiB."""
    total = 0
    for pid in server.workers():
        with open(f'/proc/{pid}/status', encoding='ascii') as stream:
            total += int(next(line for line in stream if line.startswith('VmRSS')).split()[1])
    return total


@pytest.mark.parametrize('coding', CODINGS)
def test_highly_compressible_body_is_bounded_in_time_and_memory(served, coding):
    """The encoder's output is so small that the socket never blocks: only the limit per iteration interrupts the encoder, so that the worker
    can serve other clients."""
    client, other = served.connect(promoted=False), served.connect(promoted=False)
    before = memory(served.server)
    client.send(f'GET /direct/bomb HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {coding}\r\n\r\n')
    assert client.head().headers['content-encoding'] == coding
    decoder, length, requests, most = Decoder(coding), 0, 0, 0
    while (size := int(client.line(), 16)) > 0:
        length += len(decoder.feed(client.read_exactly(size)))
        assert client.read_exactly(2) == b'\r\n'
        if requests < 20:
            assert other.get('/small.css').status == 200
            requests += 1
            most = max(most, memory(served.server))
    assert client.line() == '' and decoder.whole and length == BOMB
    assert most - before < 64 << 10
    client.close()
    other.close()


def test_encoder_memory_is_limited(launch, loop, transport, folder, upstream):
    """Responses for which no encoder can be opened are sent without encoding."""
    to = f'http://127.0.0.1:{upstream.port}'
    served = launch(loop, transport, server={'root': folder, **ENCODED, 'location': {'/up/': {'proxy_pass': to}}})
    clients = []
    for _ in range(120):
        client = served.connect(promoted=False)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send('GET /huge.txt HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: br\r\n\r\n')
        clients.append(client)
    codings = [client.head().headers.get('content-encoding') for client in clients]
    assert set(codings) == {'br', None}, codings
    for client in clients:
        client.close()

    def again():
        client = served.connect(promoted=False)
        response = fetch(client, '/page.html', 'br')
        client.close()
        return response.headers.get('content-encoding') == 'br' and decode('br', response.body) == TEXT
    wait_for(again, 'the memory is available again')
