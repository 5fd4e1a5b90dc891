"""Memory of a proxy for each idle WebSocket. Implements only the opening handshake of RFC 6455 1.3."""
import contextlib
import resource
import selectors
import socket
import threading
import time

from . import counters, servers

WARMUP_CONNECTIONS = 64
HEADER_END = b'\r\n\r\n'
UPGRADE_RESPONSE = (b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
          b'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=' + HEADER_END)
UPGRADE_REQUEST = (b'GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
       b'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13' + HEADER_END)


class Origin:
    """An origin server that accepts upgrades to WebSocket and sends no frames."""

    def __init__(self):
        self.listener = socket.create_server(('127.0.0.1', 0), backlog=4096)
        self.port = self.listener.getsockname()[1]
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as sockets:
            selector.register(sockets.enter_context(self.listener), selectors.EVENT_READ)
            while not self.stopping.is_set():
                for key, _ in selector.select(0.1):
                    if key.fileobj is self.listener:
                        selector.register(sockets.enter_context(self.listener.accept()[0]), selectors.EVENT_READ)
                    elif not self.accept_upgrade(key.fileobj):
                        selector.unregister(key.fileobj)

    @staticmethod
    def accept_upgrade(peer):
        """Responds to an upgrade request; a single recv must return all of it. Returns False if the peer has closed."""
        with contextlib.suppress(OSError):
            received = peer.recv(65536)
            if received.endswith(HEADER_END):
                peer.sendall(UPGRADE_RESPONSE)
            if received:
                return True
        peer.close()
        return False

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()


def connect(server, tls):
    """Returns an upgraded connection."""
    peer = socket.create_connection(('127.0.0.1', server.port), timeout=20 * servers.PATIENCE)
    peer = tls.wrap_socket(peer) if tls else peer
    peer.sendall(UPGRADE_REQUEST)
    response = b''
    while HEADER_END not in response:
        received = peer.recv(4096)
        if not received:
            break
        response += received
    if not response.startswith(b'HTTP/1.1 101'):
        peer.close()
        raise servers.BenchmarkError(f'no WebSocket: {response[:60]!r}')
    return peer


def read_idle_memory(server, load, setup, connect=connect):     # pylint: disable=redefined-outer-name
    """One reading: the increase of the server's memory per connection. The connections of the warm-up are closed before the
    measurement."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    tls = servers.client_context(setup)
    with contextlib.ExitStack() as warmup:
        for _ in range(WARMUP_CONNECTIONS):
            warmup.enter_context(connect(server, tls))
    time.sleep(0.5 * servers.PATIENCE)
    before = counters.memory_kib(server.pids())
    with contextlib.ExitStack() as connections:
        for _ in range(load.connections):
            connections.enter_context(connect(server, tls))
        time.sleep(1.0 * servers.PATIENCE)
        memory = counters.memory_kib(server.pids())
    return {'memory': memory, 'memory_connection': (memory - before) / load.connections}
