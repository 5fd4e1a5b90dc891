"""The longest interval between two responses that one client receives, without and with a binary upgrade of the server."""
import contextlib
import os
import socket
import subprocess
import threading
import time

from . import servers

TIMEOUT_S = 20
HEADER_END = b'\r\n\r\n'


class Client(threading.Thread):
    """Sends `rate` requests per second on one connection, one at a time, until stop(). Connects again if the server closes, and repeats
    a request that the server did not answer. `times` are the monotonic times of the responses; a fault ends the thread."""

    def __init__(self, port, tls, target, rate):
        super().__init__(daemon=True)
        self.address, self.tls, self.interval = ('127.0.0.1', port), tls, 1 / rate
        self.request = f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode()
        self.times, self.connections, self.fault, self.stopping = [], 0, None, threading.Event()
        self.peer = None

    def connect(self):
        peer = socket.create_connection(self.address, timeout=TIMEOUT_S)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections += 1
        return self.tls.wrap_socket(peer) if self.tls else peer

    def receive(self):
        """Receives one response. Returns False if the server closed before its first byte."""
        received = b''
        while HEADER_END not in received:
            piece = self.peer.recv(65536)
            if not piece:
                if received:
                    raise servers.BenchmarkError('a response is incomplete')
                return False
            received += piece
        head, _, body = received.partition(HEADER_END)
        if not head.startswith(b'HTTP/1.1 200 '):
            raise servers.BenchmarkError(f'unexpected response {head[:40]!r}')
        left = int(head.lower().partition(b'content-length: ')[2].partition(b'\r\n')[0]) - len(body)
        while left > 0:
            piece = self.peer.recv(65536)
            if not piece:
                raise servers.BenchmarkError('a response is incomplete')
            left -= len(piece)
        if b'connection: close' in head.lower():
            self.disconnect()
        return True

    def disconnect(self):
        if self.peer:
            self.peer.close()
        self.peer = None

    def exchange(self):
        self.peer = self.peer or self.connect()
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            self.peer.sendall(self.request)
            if self.receive():
                return True
        self.disconnect()
        return False

    def run(self):
        due = time.monotonic()
        try:
            while not self.stopping.is_set():
                if self.exchange():
                    self.times.append(time.monotonic())
                    due = max(due + self.interval, self.times[-1] - 1)      # delayed requests of at most one second are sent at once
                    time.sleep(max(0, due - time.monotonic()))
        except (OSError, ValueError, servers.BenchmarkError) as fault:
            self.fault = fault
        self.disconnect()

    def stop(self):
        self.stopping.set()
        self.join()
        if self.fault:
            raise servers.BenchmarkError(f'the client: {self.fault}')


def longest_gap(times, begin, end):
    """The longest interval between two consecutive times, of those intervals that overlap [begin, end]."""
    gaps = [later - earlier for earlier, later in zip(times, times[1:]) if later > begin and earlier < end]
    if not gaps:
        raise servers.BenchmarkError('the client received no responses')
    return max(gaps)


def upgrade(server, sluice):
    """Upgrades the server to the same binary, and waits until the old master has ended. Returns the new master's process ID."""
    done = subprocess.run([sluice, '-s', 'upgrade', '-c', server.command[-1]], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise servers.BenchmarkError(f'upgrade failed: {done.stderr.strip()[-300:]}')
    server.process.wait(TIMEOUT_S * servers.PATIENCE)
    with open(os.path.join(server.folder, f'sluice-{server.port}.pid'), encoding='utf-8') as stream:
        return int(stream.read())


def end(pid):
    """Ends the new master, which is not a child of this process."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 15)
        for _ in range(int(100 * servers.PATIENCE)):
            time.sleep(0.1)
            os.kill(pid, 0)
        os.kill(pid, 9)


def read(server, load, setup, sluice, seconds):
    """One reading: the longest gaps in seconds before the upgrade ('baseline_gap') and from its begin until `seconds` after it."""
    client = Client(server.port, servers.client_context(setup), f'/{load.size}', load.rate)
    client.start()
    pid = None
    try:
        time.sleep(seconds)
        begin = time.monotonic()
        pid = upgrade(server, sluice)
        completed = time.monotonic()
        time.sleep(seconds)
    finally:
        client.stop()
        if pid:
            end(pid)
    return {'baseline_gap': longest_gap(client.times, 0, begin), 'upgrade_gap': longest_gap(client.times, begin, completed + seconds),
            'upgrade_seconds': completed - begin, 'client_connections': client.connections,
            'responses': len(client.times), 'seconds': 2 * seconds + completed - begin}
