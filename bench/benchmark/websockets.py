"""Idle WebSockets through a proxy: the memory that the proxy uses for each. Only the handshake of RFC 6455 1.3 is implemented."""
import contextlib
import resource
import selectors
import socket
import ssl
import threading
import time

from . import counters, servers

FEW = 64
END = b'\r\n\r\n'
SWITCH = (b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
          b'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=' + END)
ASK = (b'GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
       b'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13' + END)


class Origin:
    """A server that switches to WebSockets and sends nothing afterwards."""

    def __init__(self):
        self.listener = socket.create_server(('127.0.0.1', 0), backlog=4096)
        self.port = self.listener.getsockname()[1]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as sockets:
            selector.register(sockets.enter_context(self.listener), selectors.EVENT_READ)
            while not self.over.is_set():
                for key, _ in selector.select(0.1):
                    if key.fileobj is self.listener:
                        selector.register(sockets.enter_context(self.listener.accept()[0]), selectors.EVENT_READ)
                    elif not self.answer(key.fileobj):
                        selector.unregister(key.fileobj)

    @staticmethod
    def answer(peer):
        """Accepts an upgrade request, which a single recv returns here; False if the peer has closed."""
        with contextlib.suppress(OSError):
            received = peer.recv(65536)
            if received.endswith(END):
                peer.sendall(SWITCH)
            if received:
                return True
        peer.close()
        return False

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def connect(server, tls):
    """One upgraded connection."""
    peer = socket.create_connection(('127.0.0.1', server.port), timeout=20 * servers.PATIENCE)
    peer = tls.wrap_socket(peer) if tls else peer
    peer.sendall(ASK)
    output = b''
    while END not in output:
        more = peer.recv(4096)
        if not more:
            break
        output += more
    if not output.startswith(b'HTTP/1.1 101'):
        peer.close()
        raise servers.BenchmarkError(f'no WebSocket: {output[:60]!r}')
    return peer


def read(server, load, setup, connect=connect):     # pylint: disable=redefined-outer-name
    """The increase of the server's memory per connection (of a proxy: two sockets), after some connections before the measurement."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    tls = None
    if setup.transport != 'plain':
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    with contextlib.ExitStack() as few:
        for _ in range(FEW):
            few.enter_context(connect(server, tls))
    time.sleep(0.5 * servers.PATIENCE)
    before = counters.memory_kib(server.pids())
    with contextlib.ExitStack() as many:
        for _ in range(load.connections):
            many.enter_context(connect(server, tls))
        time.sleep(1.0 * servers.PATIENCE)
        memory = counters.memory_kib(server.pids())
    return {'memory': memory, 'memory_connection': (memory - before) / load.connections}
