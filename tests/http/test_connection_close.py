"""Ends of connections: every response is complete, or the client can detect that it is not, and the worker frees all resources.

The rules in the test names are those of kernel TLS in src/tls/README.md.
"""
import contextlib
import ctypes
import fcntl
import hashlib
import os
import signal
import socket
import ssl
import struct
import time

import pytest
from kit import disconnections, http1, server as server_kit, site as site_kit, tls_end
from kit.lifetime import wait_for

CONNECTIONS = int(os.environ.get('SLUICE_ENDINGS', '10000'))
THREADS = 8
TRANSPORTS = ('plain', 'user')
CLONE_NEWNET, SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8913, 0x8914, 1


@pytest.fixture(scope='module')
def files(base):
    folder = base / 'disconnections'
    folder.mkdir()
    disconnections.make_files(str(folder), THREADS)
    return str(folder), site_kit.make_file(str(folder / 'two'), 2 << 20)


@pytest.fixture
def start_server(files, certificate, tmp_path, loop):
    """start_server(**http) -> a running server; `.ports` has its ports by transport."""
    made = []

    def starter(command_prefix=(), **http):
        ports = server_kit.free_port(), server_kit.free_port()
        block = {'listen': [f'127.0.0.1:{ports[0]}', f'127.0.0.1:{ports[1]} ssl'], 'root': files[0], 'ssl_ktls': 'auto',
                 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1]}
        server = server_kit.Server(tmp_path / f'server{len(made)}', [block], loop=loop, http=http, command_prefix=command_prefix)
        made.append(server)
        server.ports = dict(zip(TRANSPORTS, ports))
        server.start(ports)             # the master listens before the first worker runs
        wait_for(server.workers, 'a worker')
        return server
    yield starter
    for server in made:
        server.stop()


@pytest.fixture
def tiny_send_buffers():
    """A network namespace in which a send buffer has 4 KiB. Without the privilege for it, the test runs in the present namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open('/proc/thread-self/ns/net', encoding='ascii') as home:
        if libc.unshare(CLONE_NEWNET) != 0:
            yield
            return
        try:
            with socket.socket() as sock:
                name = struct.pack('16sH14x', b'lo', 0)
                flags = struct.unpack_from('H', fcntl.ioctl(sock, SIOCGIFFLAGS, name), 16)[0]
                fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack('16sH14x', b'lo', flags | IFF_UP))
            with open('/proc/sys/net/ipv4/tcp_wmem', 'w', encoding='ascii') as limits:
                limits.write('4096 4096 4096')
            yield
        finally:
            assert libc.setns(home.fileno(), CLONE_NEWNET) == 0


def read_slowly(client, length):
    """Reads a body with pauses, so that all buffers fill up; returns its SHA-256."""
    digest, left = hashlib.sha256(), length
    while left:
        piece = client.read_exactly(min(left, 65536))
        digest.update(piece)
        left -= len(piece)
        if left % (1 << 18) < 65536:
            time.sleep(0.02)
    return digest.hexdigest()


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_rule_15_orderly_close(tiny_send_buffers, start_server, files, transport):
    """With a slow reader and a small send buffer, all bytes arrive, followed by close_notify and FIN."""
    server = start_server()
    client = http1.connect(server.ports[transport], 'own' if transport == 'user' else 'plain', timeout=60 * server_kit.PATIENCE,
                           **({'receive_buffer': 4096} if transport == 'user' else {}))
    client.send('GET /two HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    assert read_slowly(client, int(client.head().headers['content-length'])) == files[1]
    assert client.at_end()
    if transport == 'user':
        assert client.stream.closed, 'close_notify was received'
        assert client.stream.sock.recv(1) == b'', 'then FIN, no reset'
    client.close()


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_rule_13_file_truncated_while_sent(start_server, files, transport):
    """A file is truncated while it is sent: the response is short, and the client can detect that."""
    server = start_server()
    clients = disconnections.DisconnectingClients(server.ports[transport], transport == 'user', files[0], 0)
    clients.truncated()
    row = server.access_for('/truncated0')[-1]
    assert row['status'] == '200' and int(row['body_bytes_sent']) < disconnections.BIG
    assert 'a file was truncated while it was sent' in server.errors()
    clients.normal()


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_rule_15_quit_completes_responses(tiny_send_buffers, start_server, files, transport):
    """After QUIT the server completes the responses to slow readers, closes each connection in good order, and ends."""
    server = start_server()
    clients = []
    for _ in range(3):
        client = http1.connect(server.ports[transport], 'own' if transport == 'user' else 'plain', timeout=60 * server_kit.PATIENCE)
        client.send('GET /two HTTP/1.1\r\nHost: localhost\r\n\r\n')
        clients.append((client, int(client.head().headers['content-length'])))
    server.process.send_signal(signal.SIGQUIT)
    for client, length in clients:
        assert read_slowly(client, length) == files[1]
        assert client.at_end() and (transport == 'plain' or client.stream.closed)
        client.close()
    assert server.process.wait(20 * server_kit.PATIENCE) == 0


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_rule_15_term_closes_at_once(start_server, files, transport):
    """TERM does not wait for slow readers; over TLS, the interrupted responses end without close_notify."""
    server = start_server(send_timeout='10m')
    clients = disconnections.DisconnectingClients(server.ports[transport], transport == 'user', files[0], 0)
    streams = [clients.open(receive_buffer=16384) for _ in range(20)]
    for stream in streams:
        clients.send_request(stream, '/big')
    heads = [clients.head(stream) for stream in streams]
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20 * server_kit.PATIENCE) == 0
    for stream, (length, got) in zip(streams, heads):
        more, how = disconnections.read_to_end(stream)
        assert got + more < length
        assert how != 'orderly' or transport == 'plain'
        stream.close()


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_rule_15_resources_of_10000_connections_are_released(start_server, files, transport):
    """Ten thousand connections with ten kinds of end: afterwards the worker holds none of their descriptors and memory."""
    server = start_server(**disconnections.SETTINGS)
    disconnections.check_for_leaks(server, server.ports[transport], transport == 'user', files[0], CONNECTIONS, THREADS, parts=6)


def drop_from_page_cache(path):
    """Drops the file from the page cache, if the file system permits it."""
    with open(path, 'rb') as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_rule_17_more_uncached_bodies_than_threads(start_server, files, transport):
    """A hundred concurrent requests for ranges of a file outside the page cache; small responses in between are served."""
    server = start_server()
    path = os.path.join(files[0], 'two')
    with open(path, 'rb') as stream:
        whole = stream.read()
    readers = [http1.connect(server.ports[transport], transport, timeout=60 * server_kit.PATIENCE) for _ in range(100)]
    small = http1.connect(server.ports[transport], transport, timeout=60 * server_kit.PATIENCE)
    for attempt in range(3):
        drop_from_page_cache(path)
        for number, reader in enumerate(readers):
            reader.send(f'GET /two HTTP/1.1\r\nHost: localhost\r\nRange: bytes={number * 20000}-{number * 20000 + 99999}\r\n\r\n')
        assert small.get('/small').body == disconnections.SMALL
        for number, reader in enumerate(readers):
            response = reader.read()
            assert response.status == 206 and response.body == whole[number * 20000:number * 20000 + 100000]
        assert small.get('/small').body == disconnections.SMALL, attempt
    for client in (small, *readers):
        client.close()


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_rule_17_uncached_bodies_without_descriptors(start_server, files, transport):
    """The descriptors are exhausted while bodies are sent: these are completed, and the server accepts connections again afterwards."""
    server = start_server(command_prefix=['prlimit', '--nofile=40'], open_file_cache='off')

    def status(path):
        """The status of a response on a new connection; None if the server closes the connection instead."""
        with contextlib.suppress(EOFError, OSError):
            return http1.connect(server.ports[transport], transport, timeout=60 * server_kit.PATIENCE).get(path).status
        return None

    assert status('/small') == 200
    worker = server.workers()
    readers = []
    for _ in range(8):
        drop_from_page_cache(os.path.join(files[0], 'two'))
        reader = http1.connect(server.ports[transport], transport, timeout=60 * server_kit.PATIENCE)
        reader.send('GET /two HTTP/1.1\r\nHost: localhost\r\n\r\n')
        readers.append((reader, int(reader.head().headers['content-length'])))
    connections = [socket.create_connection(('127.0.0.1', server.ports['plain'])) for _ in range(60)]
    wait_for(lambda: 'out of file descriptors' in server.errors(), 'no descriptor left', 20)
    assert status('/body') in (None, 200, 503)
    for reader, length in readers:
        drop_from_page_cache(os.path.join(files[0], 'two'))
        assert read_slowly(reader, length) == files[1]
        reader.close()
    for sock in connections:
        sock.close()
    wait_for(lambda: status('/small') == 200, 'it serves again', 20)
    assert server.workers() == worker, 'the worker has not been replaced'


class FailingStream:
    """A stream whose recv raises the exception of some Python versions for an end without close_notify."""
    def __init__(self, kind, number, reason, ragged):
        self.error = kind(number, reason)
        self.error.reason, self.suppress_ragged_eofs = reason, ragged

    def recv(self, _):
        raise self.error


@pytest.mark.parametrize('kind, number', [(ssl.SSLError, ssl.SSL_ERROR_SSL), (ssl.SSLEOFError, ssl.SSL_ERROR_EOF)])
def test_missing_close_notify_raises_ssl_eof_error(kind, number):
    with pytest.raises(ssl.SSLEOFError):
        tls_end.receive(FailingStream(kind, number, 'UNEXPECTED_EOF_WHILE_READING', False))
    assert tls_end.receive(FailingStream(ssl.SSLError, ssl.SSL_ERROR_SSL, 'UNEXPECTED_EOF_WHILE_READING', True)) == b''
    with pytest.raises(ssl.SSLError, match='BAD_RECORD_MAC') as fault:
        tls_end.receive(FailingStream(ssl.SSLError, ssl.SSL_ERROR_SSL, 'BAD_RECORD_MAC', True))
    assert not isinstance(fault.value, ssl.SSLEOFError)
