"""stream: TCP connections in both directions, independent half-close, and failures."""
import contextlib
import hashlib
import os
import select
import signal
import socket
import ssl
import struct
import threading
import time

import pytest
from kit import server as server_kit, tls_end
from kit.http1 import tls_context
from kit.lifetime import peers_of, refused, wait_for

LARGE = bytes(range(251)) * 16384       # 4 MiB
LINGER = struct.pack('ii', 1, 0)


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def read_all(stream):
    """Reads until the peer ends its direction."""
    pieces = []
    with contextlib.suppress(ssl.SSLEOFError):
        while piece := tls_end.receive(stream):
            pieces.append(piece)
    return b''.join(pieces)


def echo(stream):
    while piece := stream.recv(65536):
        stream.sendall(piece)
    stream.shutdown(socket.SHUT_WR)


def responds_with_hash(stream):
    """Reads to the end of one direction, then sends the hash in the other direction."""
    stream.sendall(sha256(read_all(stream)).encode())


def sends_then_receives(stream):
    """Sends, ends its direction first, and records the bytes that arrive afterwards."""
    stream.sendall(LARGE)
    stream.shutdown(socket.SHUT_WR)
    UpstreamServer.received.append(read_all(stream))


def slow(stream):
    for at in range(0, 300000, 10000):
        stream.sendall(LARGE[at:at + 10000])
        time.sleep(0.005)


def resets(stream):
    stream.sendall(LARGE[:200000])
    time.sleep(0.1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)


def silent(stream):
    UpstreamServer.received.append(read_all(stream))


def never_closes(stream):
    """Responds and never closes its side."""
    stream.recv(1)
    stream.sendall(b'pong')
    threading.Event().wait(60)


def tls_server(certificate, name):
    """A function that performs a TLS handshake, sends `name` and echoes all bytes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    def serve(stream):
        with context.wrap_socket(stream, server_side=True) as sealed:
            sealed.sendall(name.encode())
            while piece := sealed.recv(65536):
                sealed.sendall(piece)
    return serve


class UpstreamServer:
    """An upstream server that calls one function for each connection."""
    received = []

    def __init__(self, what, path=None):
        self.what, self.connections = what, 0
        self.listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.listener.bind(path or ('127.0.0.1', 0))
        if path:
            os.chmod(path, 0o777)
        self.address = f'unix:{path}' if path else f'127.0.0.1:{self.listener.getsockname()[1]}'
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                stream, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self.serve, args=(stream,), daemon=True).start()

    def serve(self, stream):
        stream.settimeout(30)
        with contextlib.suppress(OSError):
            self.what(stream)
        stream.close()


class Streams:
    def __init__(self, loop, server, ports, paths):
        self.loop, self.server, self.ports, self.paths = loop, server, ports, paths

    def connect(self, name):
        if name in self.paths:
            stream = socket.socket(socket.AF_UNIX)
            stream.connect(self.paths[name])
        else:
            stream = socket.create_connection(('127.0.0.1', self.ports[name]))
        stream.settimeout(30 * server_kit.PATIENCE)
        return stream

    def descriptors(self):
        found = []
        pid = self.server.workers()[0]
        for name in os.listdir(f'/proc/{pid}/fd'):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f'/proc/{pid}/fd/{name}').split(':')[0])
        return found.count('socket'), found.count('pipe')


@pytest.fixture(scope='module')
def upstreams(base, certificate):
    made = {what.__name__: UpstreamServer(what) for what in (echo, responds_with_hash, sends_then_receives, slow, resets, silent, never_closes)}
    for name in ('tls_one', 'tls_two'):
        made[name] = UpstreamServer(tls_server(certificate, name))
    made['local'] = UpstreamServer(echo, str(base / 'stream.sock'))
    yield made
    for one in made.values():
        one.listener.close()


def launch_streams(loop, new_directory, certificate, upstreams):
    folder = new_directory()
    ports = {name: server_kit.free_port() for name in (*upstreams, 'group', 'dead', 'tls', 'quiet', 'whole', 'preread', 'preread_timeout', 'paced', 'paced_tls', 'preread_return', 'no_half_close', 'http')}
    paths = {'to-unix': str(folder / 'listen.sock')}
    closed = f'127.0.0.1:{server_kit.free_port()}'
    servers = [{'listen': f'127.0.0.1:{ports[name]}', 'proxy_pass': one.address} for name, one in upstreams.items()]
    servers += [
        {'listen': f'unix:{paths["to-unix"]}', 'proxy_pass': upstreams['local'].address},
        {'listen': f'127.0.0.1:{ports["group"]}', 'proxy_pass': 'group'},
        {'listen': f'127.0.0.1:{ports["dead"]}', 'proxy_pass': closed},
        {'listen': f'127.0.0.1:{ports["quiet"]}', 'proxy_pass': upstreams['silent'].address, 'proxy_timeout': '400ms',
         'preread_timeout': '1h'},
        {'listen': f'127.0.0.1:{ports["whole"]}', 'proxy_pass': upstreams['sends_then_receives'].address, 'proxy_half_close': 'off'},
        {'listen': f'127.0.0.1:{ports["paced"]}', 'proxy_pass': upstreams['echo'].address, 'proxy_upload_rate': '400k', 'proxy_download_rate': '1m'},
        {'listen': f'127.0.0.1:{ports["paced_tls"]} ssl', 'server_name': 'localhost', 'proxy_pass': upstreams['sends_then_receives'].address,
         'proxy_download_rate': '2m', 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], 'ssl_ktls': 'off'},
        {'listen': f'127.0.0.1:{ports["tls"]} ssl', 'server_name': 'echo.test', 'proxy_pass': upstreams['echo'].address,
         'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], 'ssl_ktls': 'off'},
        {'listen': f'127.0.0.1:{ports["tls"]} ssl', 'server_name': 'counts.test', 'proxy_pass': upstreams['responds_with_hash'].address,
         'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], 'ssl_ktls': 'off'},
    ]
    servers += [
        {'listen': f'127.0.0.1:{ports["preread"]}', 'ssl_preread': 'on', 'proxy_pass': upstreams['echo'].address},
        {'listen': f'127.0.0.1:{ports["preread"]}', 'ssl_preread': 'on', 'server_name': 'one.test', 'proxy_pass': upstreams['tls_one'].address},
        {'listen': f'127.0.0.1:{ports["preread"]}', 'ssl_preread': 'on', 'server_name': '*.two.test', 'proxy_pass': upstreams['tls_two'].address},
        {'listen': f'127.0.0.1:{ports["preread_timeout"]}', 'ssl_preread': 'on', 'preread_timeout': '300ms', 'preread_buffer_size': '512',
         'proxy_pass': upstreams['echo'].address},
        {'listen': f'127.0.0.1:{ports["preread_return"]}', 'ssl_preread': 'on', 'return': f'{"x" * 30000} $ssl_preread_server_name\n'},
        {'listen': f'127.0.0.1:{ports["no_half_close"]}', 'proxy_pass': upstreams['never_closes'].address, 'proxy_half_close': 'off'},
    ]
    made = server_kit.Server(folder, [{'listen': f'127.0.0.1:{ports["http"]}', 'return': '200 ok'}], loop=loop, main={'stream': {
        'upstream': {'group': {'server': [f'{closed} max_fails=0', upstreams['echo'].address]}},
        'server': servers,
    }})
    return Streams(loop, made.start([ports['http'], ports['echo']]), ports, paths)


@pytest.fixture(scope='module', params=server_kit.LOOPS)
def streams(request, new_directory, certificate, upstreams):
    made = launch_streams(request.param, new_directory, certificate, upstreams)
    yield made
    made.server.stop()


def send_in_background(stream, body):
    def work():
        with contextlib.suppress(OSError):
            stream.sendall(body)
            stream.shutdown(socket.SHUT_WR)
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def echoed(stream, body):
    """Sends `body` over TLS and returns the echo. One thread does both, because two threads must not share an SSL object."""
    stream.setblocking(False)
    sent, got = 0, b''
    while len(got) < len(body):
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if sent < len(body):
                sent += stream.send(body[sent:sent + 65536])
        try:
            piece = stream.recv(65536)
            assert piece, f'the end after {len(got)} bytes'
            got += piece
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            ready = select.select([stream], [stream] if sent < len(body) else [], [], 30 * server_kit.PATIENCE)
            assert any(ready), f'nothing moves after {len(got)} bytes'
    return got


@pytest.mark.parametrize('name', ['echo', 'local', 'to-unix', 'group'])
def test_bytes_in_both_directions(streams, name):
    stream = streams.connect(name)
    for word in (b'a', b'small', b'x' * 5000):
        stream.sendall(word)
        got = b''
        while len(got) < len(word):
            got += stream.recv(65536)
        assert got == word
    thread = send_in_background(stream, LARGE)
    assert sha256(read_all(stream)) == sha256(LARGE)
    thread.join()
    stream.close()


def test_half_close_of_the_client_is_forwarded(streams):
    stream = streams.connect('responds_with_hash')
    stream.sendall(LARGE)
    stream.shutdown(socket.SHUT_WR)
    assert read_all(stream).decode() == sha256(LARGE)
    stream.close()


def test_half_close_of_the_server_is_forwarded(streams):
    UpstreamServer.received.clear()
    stream = streams.connect('sends_then_receives')
    assert sha256(read_all(stream)) == sha256(LARGE)
    stream.sendall(LARGE)
    stream.shutdown(socket.SHUT_WR)
    wait_for(lambda: UpstreamServer.received, 'the upstream server receives the end')
    assert sha256(UpstreamServer.received[0]) == sha256(LARGE)
    stream.close()


def test_proxy_half_close_off_ends_both_directions(streams):
    UpstreamServer.received.clear()
    stream = streams.connect('whole')
    assert sha256(read_all(stream)) == sha256(LARGE)
    wait_for(lambda: UpstreamServer.received, 'the upstream server receives the end, although the client has not sent one')
    stream.close()


def test_open_server_side_does_not_delay_quit(streams, new_directory, certificate, upstreams):
    """QUIT waits until all bytes for the upstream server are sent, but not until that server closes."""
    made = launch_streams(streams.loop, new_directory, certificate, upstreams)
    wait_for(made.server.workers, 'a worker serves')
    for _ in range(4):
        stream = made.connect('no_half_close')
        stream.sendall(b'x')
        assert stream.recv(4) == b'pong'
        stream.close()
    made.server.stop(signal.SIGQUIT)
    assert 'did not end' not in made.server.errors()


@pytest.mark.parametrize('ends', [False, True])
def test_return_after_preread(streams, ends):
    """`return` may use variables from the preread bytes, and its text arrives completely, whether the client has half-closed or not."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = tls_context().wrap_bio(incoming, outgoing, server_hostname='one.test')
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    for output, name in ((outgoing.read(), b'one.test'), (b'GET /', b'')):
        stream = streams.connect('preread_return')
        stream.sendall(output)
        if ends:
            stream.shutdown(socket.SHUT_WR)
        assert read_all(stream) == b'x' * 30000 + b' ' + name + b'\n'
        stream.close()


def test_tls_is_terminated(streams):
    """SNI selects the virtual server and thereby the upstream server."""
    for name, response in (('echo.test', b'hello'), ('counts.test', sha256(b'hello').encode())):
        stream = tls_context().wrap_socket(streams.connect('tls'), server_hostname=name, suppress_ragged_eofs=False)
        stream.sendall(b'hello')
        if name == 'echo.test':
            assert stream.recv(5) == response
            assert sha256(echoed(stream, LARGE)) == sha256(LARGE)
        stream.close()


@pytest.mark.parametrize('requests, found', [('one.test', 'tls_one'), ('ONE.test', 'tls_one'), ('www.two.test', 'tls_two')])
def test_ssl_preread_selects_the_server(streams, requests, found):
    """The connection is passed on unchanged: certificate and close_notify come from the upstream server."""
    stream = tls_context().wrap_socket(streams.connect('preread'), server_hostname=requests)
    assert stream.recv(7).decode() == found
    assert sha256(echoed(stream, LARGE)) == sha256(LARGE)
    stream.close()


def test_ssl_preread_byte_by_byte(streams):
    """A ClientHello that arrives byte by byte, as far as the network permits."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = tls_context().wrap_bio(incoming, outgoing, server_hostname='one.test')
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    stream = streams.connect('preread')
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in outgoing.read():
        stream.sendall(bytes([byte]))
    assert stream.recv(5)[:2] == b'\x16\x03', 'a ServerHello'
    stream.close()


def test_non_tls_uses_the_default(streams):
    stream = streams.connect('preread')
    stream.sendall(b'GET / HTTP/1.1\r\n\r\n')
    assert stream.recv(100) == b'GET / HTTP/1.1\r\n\r\n'
    stream.close()


@pytest.mark.parametrize('output', [b'', b'\x16\x03\x01'])
def test_preread_timeout_resets_the_connection(streams, output):
    stream = streams.connect('preread_timeout')
    stream.sendall(output)
    with pytest.raises(ConnectionResetError):
        stream.recv(1)
    stream.close()


def test_preread_buffer_size_is_limited(streams):
    """The connection is refused and ends in good order, although not all received bytes were read."""
    stream = streams.connect('preread_timeout')
    stream.sendall(b'\x16\x03\x01\x10\x00\x01\x00\x0f\xfc\x03\x03' + b'x' * 32 + b'\x00\x0f\x00' + b'x' * 1000)
    assert stream.recv(1) == b''
    stream.close()


def test_single_bytes_do_not_extend_the_preread(streams):
    """preread_timeout applies to all of the preread phase: otherwise a client that sends single bytes could prolong it forever."""
    stream, output = streams.connect('preread_timeout'), b'\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03' + b'x' * 240
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        for byte in output:
            stream.sendall(bytes([byte]))
            time.sleep(0.05)
    stream.close()


def test_slow_clients_and_servers(streams):
    stream = streams.connect('slow')
    assert read_all(stream) == LARGE[:300000]
    stream.close()
    stream = streams.connect('sends_then_receives')
    time.sleep(0.3)
    assert sha256(read_all(stream)) == sha256(LARGE)
    stream.close()


def test_rate_limits_are_not_exceeded(streams):
    """Neither copied nor spliced bytes exceed the rate, and all of them arrive."""
    body = LARGE[:600_000]
    began = time.monotonic()
    stream = streams.connect('paced')
    thread = send_in_background(stream, body)
    assert read_all(stream) == body
    assert time.monotonic() - began > (600_000 - 60_000) / 409_600      # the first read may exceed it
    thread.join()
    stream.close()
    began = time.monotonic()
    stream = tls_context().wrap_socket(streams.connect('paced_tls'), server_hostname='localhost')
    assert sha256(read_all(stream)) == sha256(LARGE)
    assert time.monotonic() - began > (len(LARGE) - 300_000) / 2_097_152
    stream.close()


def test_disconnection_during_a_rate_limit_delay(streams):
    """A connection that ends while the rate limit delays it frees everything."""
    for _ in range(20):
        stream = streams.connect('paced')
        stream.sendall(LARGE[:200_000])
        stream.close()
    wait_for(lambda: streams.descriptors()[0] < 40, 'their sockets are closed')


def test_reset_is_forwarded(streams):
    stream = streams.connect('resets')
    with pytest.raises(ConnectionResetError):
        read_all(stream)
    stream.close()


def test_connection_refused_by_the_server(streams):
    stream = streams.connect('dead')
    stream.sendall(b'x' * 1000)
    assert stream.recv(1) == b''
    stream.close()
    wait_for(lambda: 'connect() failed' in streams.server.errors(), 'a log line')


def test_proxy_timeout_resets_idle_connections(streams):
    stream = streams.connect('quiet')
    with pytest.raises(ConnectionResetError):
        stream.recv(1)
    stream.close()


def test_resources_are_released(streams):
    stream = streams.connect('echo')
    stream.sendall(b'a')
    stream.recv(1)
    stream.close()
    wait_for(lambda: peers_of(streams.server.workers()[0]) <= {0}, 'no connection is open')
    sockets, _ = streams.descriptors()

    def disconnect_after(name, number):
        left = streams.connect(name)
        with contextlib.suppress(OSError):
            left.setblocking(False)
            left.send(LARGE)
            time.sleep(0.02 * number)
            if number % 2:
                left.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        left.close()
    threads = [threading.Thread(target=disconnect_after, args=(name, number)) for number in range(8)
               for name in ('echo', 'responds_with_hash', 'sends_then_receives', 'resets', 'slow', 'silent', 'dead', 'local')]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    wait_for(lambda: streams.descriptors()[0] <= sockets and streams.descriptors()[1] <= 4 * 16,
             f'{streams.descriptors()}, before: {sockets}')


@pytest.mark.parametrize('loop', ['epoll', 'io_uring'])
def test_quit_completes_connections(loop, new_directory, certificate, upstreams):
    made = launch_streams(loop, new_directory, certificate, upstreams)
    stream = made.connect('echo')
    stream.sendall(b'before')
    assert stream.recv(6) == b'before'
    made.server.process.send_signal(signal.SIGQUIT)
    wait_for(lambda: refused(made.ports['echo']), 'it accepts no longer')
    thread = send_in_background(stream, LARGE)
    assert sha256(read_all(stream)) == sha256(LARGE)
    thread.join()
    stream.close()
    assert made.server.process.wait(20 * server_kit.PATIENCE) == 0


@pytest.mark.parametrize('stream, output', [
    ({'server': {'listen': 4000}}, 'neither proxy_pass nor return'),
    ({'server': {'proxy_pass': '127.0.0.1:1'}}, 'no listen'),
    ({'server': {'listen': 4000, 'proxy_pass': 'no address'}}, 'not an address of a server'),
    ({'server': {'listen': 4000, 'proxy_pass': '127.0.0.1:1', 'root': 'www'}}, 'root'),
    ({'server': {'listen': '4000 ssl', 'proxy_pass': '127.0.0.1:1'}}, 'no certificate'),
    ({'server': {'listen': '127.0.0.1:4001', 'proxy_pass': '127.0.0.1:1'}}, 'http and of stream'),
    ({}, 'stream has no server'),
])
def test_invalid_configurations_are_rejected(new_directory, stream, output):
    made = server_kit.Server(new_directory(), [{'listen': '127.0.0.1:4001', 'return': '200 ok'}], main={'stream': stream})
    with pytest.raises(RuntimeError, match=output):
        made.start([1])
