"""gunzip: gzip-encoded upstream responses are decoded for clients that do not accept gzip."""
import gzip
import os
import socket
import subprocess
import threading

import pytest
from kit import server as server_kit, site as site_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream
from proxy_site import OK
from test_compress import memory, responds_with

TEXT = b''.join(b'<p class="line-%d">the %d-th line of a long page</p>\n' % (i % 13, i) for i in range(20000))
PACKED = gzip.compress(TEXT, mtime=0)
MEMBERS = gzip.compress(TEXT[:1000], mtime=0) + gzip.compress(b'', mtime=0) + gzip.compress(TEXT[1000:], mtime=0)
BOMB = 64 << 20
HEAD = 'Content-Type: text/html\r\nContent-Encoding: gzip\r\nETag: "a"\r\nAccept-Ranges: bytes\r\n'


def length(body):
    return f'{HEAD}Content-Length: {len(body)}\r\n'


def part(peer):
    peer.read_body()
    peer.send('HTTP/1.1 206 Partial Content\r\n' + length(PACKED[5:10]) + f'Content-Range: bytes 5-9/{len(PACKED)}\r\n\r\n')
    peer.send(PACKED[5:10])
    return True


def error(peer):
    peer.read_body()
    peer.send('HTTP/1.1 503 Busy\r\n' + length(PACKED) + '\r\n')
    peer.send(PACKED)
    return True


def flushed(peer):
    """Sends each event after the client has received the previous one."""
    stream = gzip.zlib.compressobj(6, gzip.zlib.DEFLATED, 31)
    peer.send(OK + 'Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\nX-Accel-Buffering: no\r\n\r\n')
    for number in range(5):
        peer.send(stream.compress(b'data: event %d\n\n' % number) + stream.flush(gzip.zlib.Z_SYNC_FLUSH))
        assert peer.upstream.seen.acquire(timeout=20 * server_kit.PATIENCE)
    peer.send(stream.flush())


SCRIPTS = {
    '/length': responds_with(length(PACKED), PACKED), '/chunked': responds_with(HEAD + 'Transfer-Encoding: chunked\r\n', PACKED),
    '/drops': responds_with(HEAD + 'Transfer-Encoding: chunked\r\n', PACKED[:1], 1), '/members': responds_with(length(MEMBERS), MEMBERS, 7),
    '/none': responds_with(length(b''), b''), '/kept': responds_with('Cache-Control: no-transform\r\n' + length(PACKED), PACKED),
    '/bomb': responds_with(length(bomb := gzip.compress(bytes(BOMB), mtime=0)), bomb),
    '/truncated': responds_with(length(PACKED[:-1]), PACKED[:-1]), '/truncated-chunked': responds_with(HEAD + 'Transfer-Encoding: chunked\r\n', PACKED[:-9]),
    '/trailing': responds_with(length(PACKED + b'more'), PACKED + b'more'), '/noise': responds_with(length(TEXT), TEXT),
    '/sum': responds_with(length(PACKED), PACKED[:-8] + b'wrong' + PACKED[-3:]), '/part': part, '/error': error, '/flushed': flushed,
}
BROKEN = ['truncated', 'truncated-chunked', 'trailing', 'noise', 'sum', 'drops']


@pytest.fixture(scope='session')
def folder(base):
    top = base / 'gunzip'
    top.mkdir()
    site_kit.write(str(top), 'page.html', 'not this one')
    site_kit.write(str(top), 'page.html.gz', PACKED)
    site_kit.make_file(str(top / '65536.bin'), 65536)
    return str(top)


@pytest.fixture(scope='module')
def upstream():
    made = Upstream(SCRIPTS)
    made.seen = threading.Semaphore(0)
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def served(launch, loop, transport, folder, upstream, new_directory):
    to = f'http://127.0.0.1:{upstream.port}/'
    return launch(loop, transport, http={'proxy_cache_path': {'path': f'{new_directory()}/cache', 'keys_zone': 'one:1m'}}, server={
        'root': folder, 'gzip_static': 'always', 'gunzip': 'on', 'proxy_force_ranges': 'on', 'location': {
            '/up/': {'proxy_pass': to}, '/direct/': {'proxy_pass': to, 'proxy_buffering': 'off'}, '/off/': {'proxy_pass': to, 'gunzip': 'off'},
            '/cached/': {'proxy_pass': to, 'proxy_cache': 'one', 'proxy_cache_valid': '1h', 'proxy_set_header': 'Accept-Encoding gzip',
                         'add_header': 'X-Cache $upstream_cache_status'}}})


@pytest.fixture
def client(served):
    made = served.connect()
    yield made
    made.close()


TARGETS = ['/page.html', '/up/length', '/up/chunked', '/up/members', '/direct/length', '/direct/chunked', '/cached/length', '/cached/chunked']


@pytest.mark.parametrize('target', TARGETS)
def test_coding_by_accept_encoding(client, target):
    for _ in range(2):
        response = client.get(target)
        assert response.status == 200 and response.body == TEXT
        assert 'content-encoding' not in response.headers and 'accept-ranges' not in response.headers
        assert response.headers['etag'].startswith('W/"') and not response.has_length
        assert response.headers['vary'] == 'Accept-Encoding'
        encoded = client.get(target, Accept_Encoding='gzip')
        assert encoded.headers['content-encoding'] == 'gzip' and gzip.decompress(encoded.body) == TEXT
        assert encoded.headers['vary'] == 'Accept-Encoding' and encoded.headers['etag'].startswith('"')


@pytest.mark.parametrize('target', TARGETS)
def test_curl_gets_decoded_bodies(served, folder, target):
    out = os.path.join(folder, '..', 'gunzip-out')
    for options in ([], ['--compressed'], ['--http1.0', '--no-alpn'], ['--http2'], ['-r', '0-99']):
        if (options == ['--http2'] and served.transport == 'plain') or (options == ['--compressed'] and target == '/up/members'):
            continue  # HTTP/2 requires TLS, and curl decodes only the first gzip member
        subprocess.run(['curl', '-sSk', *options, '-o', out, served.url(target)], check=True)
        with open(out, 'rb') as stream:
            assert stream.read() == TEXT, options


@pytest.mark.parametrize('location', ['up', 'direct', 'cached'])
@pytest.mark.parametrize('target', BROKEN)
def test_invalid_gzip_is_detectable(served, location, target):
    """The client must be able to detect an invalid response, even if parts of it can be decoded."""
    client = served.connect()
    with pytest.raises((EOFError, OSError)):
        client.get(f'/{location}/{target}')
    client.close()
    done = subprocess.run(['curl', '-sSk', '-o', '/dev/null', served.url(f'/{location}/{target}')], check=False, capture_output=True)
    assert done.returncode != 0
    client = served.connect()
    assert client.get('/page.html').body == TEXT
    client.close()


def test_head_has_the_fields_of_get(client):
    for target in ('/page.html', '/up/length'):
        output, got = client.fetch('HEAD', target, []), client.fetch('GET', target, [])
        same = {'date', 'transfer-encoding'}
        assert {k: v for k, v in output.headers.items() if k not in same} == {k: v for k, v in got.headers.items() if k not in same}
        assert 'content-length' not in output.headers and 'content-encoding' not in output.headers
    assert client.get('/up/length').body == TEXT


@pytest.mark.parametrize('target', ['/page.html', '/cached/length'])
def test_decoded_response_has_weak_etag(client, target):
    wait_for(lambda: client.get(target).headers.get('x-cache', 'HIT') == 'HIT', 'the response is stored')
    strong, weak = client.get(target, Accept_Encoding='gzip').headers['etag'], client.get(target).headers['etag']
    assert weak == 'W/' + strong
    for etag in (strong, weak):
        response = client.get(target, If_None_Match=f'"x\\", {etag}')
        assert response.status == 304 and response.headers['etag'] == etag and response.headers['vary'] == 'Accept-Encoding'


@pytest.mark.parametrize('target', ['/page.html', '/cached/length', '/up/length'])
def test_ranges_apply_to_encoded_bytes_only(client, target):
    """Ranges are ignored for decoded responses; ranges of the encoded bytes are sent to clients that accept gzip."""
    for spans in ('bytes=0-99', 'bytes=0-1,5-6', 'bytes=99999999-', 'bytes=-1'):
        response = client.get(target, Range=spans)
        assert response.status == 200 and response.body == TEXT
    part = client.get(target, Range='bytes=10-19', Accept_Encoding='gzip')
    assert part.status == 206 and part.body == PACKED[10:20] and part.headers['content-encoding'] == 'gzip'


def test_partial_and_excluded_responses_are_unchanged(client):
    response = client.get('/up/part')
    assert response.status == 206 and response.body == PACKED[5:10] and response.headers['content-encoding'] == 'gzip'
    assert response.headers['vary'] == 'Accept-Encoding'
    for target in ('/up/kept', '/off/length'):
        response = client.get(target)
        assert response.headers['content-encoding'] == 'gzip' and response.body == PACKED and response.headers['etag'] == '"a"'


def test_error_responses_and_empty_bodies(client):
    response = client.get('/up/error')
    assert response.status == 503 and response.body == TEXT and 'content-encoding' not in response.headers
    response = client.get('/up/none')
    assert response.status == 200 and response.body == b''


@pytest.mark.parametrize('location', ['up', 'direct'])
def test_server_sent_events_are_flushed(client, upstream, location):
    client.send(f'GET /{location}/flushed HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert 'content-encoding' not in client.head().headers
    plain = b''
    for number in range(5):
        while not plain.endswith(b'data: event %d\n\n' % number):
            plain += client.read_exactly(int(client.line(), 16))
            assert client.read_exactly(2) == b'\r\n'
        upstream.seen.release()
    assert plain + client.chunked() == b''.join(b'data: event %d\n\n' % number for number in range(5))


def test_highly_compressed_body_is_bounded_in_time_and_memory(served):
    """A small response that decodes to a very large one: the server decodes it only as fast as the client reads, and serves other clients
    meanwhile."""
    client, other = served.connect(promoted=False), served.connect(promoted=False)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    assert other.get('/page.html').body == TEXT     # the worker runs
    before, most, got = memory(served.server), 0, 0
    client.send('GET /direct/bomb HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert 'content-encoding' not in client.head().headers
    while (size := int(client.line(), 16)) > 0:
        assert client.read_exactly(size) == bytes(size)
        assert client.read_exactly(2) == b'\r\n'
        got += size
        if got < 1 << 20:
            assert other.get('/page.html').body == TEXT
        most = max(most, memory(served.server)) if got < 4 << 20 else most
    assert client.line() == '' and got == BOMB
    assert most - before < 16 << 10
    client.close()
    other.close()


def test_disconnected_clients_are_released(served):
    for target in ('/direct/bomb', '/page.html', '/up/chunked'):
        for count in (0, 1, 20000):
            client = served.connect(promoted=False)
            client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
            if count:
                client.read_exactly(count)
            client.close()
    client = served.connect()
    assert client.get('/page.html').body == TEXT
    client.close()
