"""Thousands of client connections that end in ten ways, and checks of the resources that a worker holds afterwards."""
import collections
import itertools
import os
import random
import socket
import ssl
import struct
import threading
import time

from . import server as server_kit
from . import tls_end

SMALL, BODY, BIG = b'one\n', 100_000, 16 << 20
# The server's timeouts for header, send and lingering close: long in an emulated machine, where clients are slow, and short elsewhere to
# save time.
TIMEOUT_S = 3 * (server_kit.PATIENCE if os.environ.get('SLUICE_IN_GUEST') else 1)
MORE_MEMORY_KIB = 4096                        # permitted growth after all connections
PATIENCE_S = 60 * server_kit.PATIENCE         # how long a client waits for one of these timeouts
WAITING = 40                                  # limit of clients in one thread that wait at the same time
SETTINGS = {name: f'{int(TIMEOUT_S)}s' for name in
            ('client_header_timeout', 'client_body_timeout', 'send_timeout', 'lingering_timeout', 'lingering_time', 'keepalive_timeout')}


def make_files(folder, threads, body=BODY):
    """Creates the requested files. Each thread has its own file for truncation."""
    for name, size in (('small', None), ('body', body), ('big', BIG), *((f'truncated{number}', BIG) for number in range(threads))):
        with open(os.path.join(folder, name), 'wb') as stream:
            if size is None:
                stream.write(SMALL)
            else:
                stream.truncate(size)


def reset_at_close(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))


def open_window(stream):
    """Lets a slow reader receive at full speed."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)


def read_to_end(stream):
    """Returns (bytes, end). The end is 'orderly' (close_notify, or FIN on a plain connection), 'truncated' (TLS without close_notify) or
    'reset'."""
    got = 0
    while True:
        try:
            piece = tls_end.receive(stream)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return got, 'truncated'
        except (ConnectionResetError, BrokenPipeError):
            return got, 'reset'
        if not piece:
            return got, 'orderly'
        got += len(piece)


class DisconnectingClients:
    """The connections of one thread to one server. Their ends vary, in an order that is the same in every run."""

    def __init__(self, port, secure, folder, number, body=BODY):
        self.port, self.secure, self.number, self.body = port, secure, number, body
        self.truncated_path = os.path.join(folder, f'truncated{number}')
        self.order = random.Random(number)
        self.waiting = collections.deque()    # connections that the server's timers must end: (time, stream)
        self.counts = collections.Counter()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF # some builds of Python report a TLS end without close_notify as an orderly one

    def raw(self, receive_buffer=0):
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(PATIENCE_S)
        sock.connect(('127.0.0.1', self.port))
        return sock

    def open(self, receive_buffer=0):
        sock = self.raw(receive_buffer)
        if self.secure:
            sock = self.context.wrap_socket(sock, server_hostname='localhost', suppress_ragged_eofs=False)
        return sock

    def send_request(self, stream, target, *headers):
        stream.sendall('\r\n'.join([f'GET {target} HTTP/1.1', 'Host: localhost', *headers, '', '']).encode())

    def head(self, stream):
        """Reads the header section; returns Content-Length and the number of body bytes already received."""
        text = b''
        while b'\r\n\r\n' not in text:
            piece = stream.recv(4096)
            assert piece, f'the connection ended inside a head: {text!r}'
            text += piece
        head, _, rest = text.partition(b'\r\n\r\n')
        assert head.startswith(b'HTTP/1.1 200 '), head
        return int(head.lower().partition(b'content-length: ')[2].split(b'\r\n')[0]), len(rest)

    def read_exactly(self, stream, left):
        while left:
            piece = stream.recv(min(left, 65536))
            assert piece, f'{left} bytes are missing'
            left -= len(piece)

    def normal(self):
        """Requests with Connection: close; the response is complete and the connection ends in good order."""
        stream = self.open()
        self.send_request(stream, '/body', 'Connection: close')
        length, got = self.head(stream)
        more, how = read_to_end(stream)
        assert (length, got + more, how) == (self.body, self.body, 'orderly'), (length, got + more, how)
        stream.close()

    def keep_alive(self):
        """Receives two responses on one connection and closes it."""
        stream = self.open()
        for target in ('/small', '/body'):
            self.send_request(stream, target)
            length, got = self.head(stream)
            self.read_exactly(stream, length - got)
        stream.close()

    def reset_in_body(self):
        stream = self.open()
        self.send_request(stream, '/big')
        self.head(stream)
        reset_at_close(stream)
        stream.close()

    def reset_in_handshake(self):
        sock = self.raw()
        sock.sendall(b'\x16\x03\x01\x02\x00\x01' if self.secure else b'GET / HT')
        reset_at_close(sock)
        sock.close()

    def closed_at_once(self):
        self.raw().close()

    def half_closed(self):
        """Shuts down its sending side after the request, and receives the complete response."""
        stream = self.open()
        self.send_request(stream, '/body')
        socket.socket.shutdown(stream, socket.SHUT_WR)
        length, got = self.head(stream)
        more, how = read_to_end(stream)
        assert (got + more, how) == (length, 'orderly'), (length, got + more, how)
        stream.close()

    def truncated(self):
        """Truncates the file while the server sends it: the client must be able to detect that the response is incomplete."""
        os.truncate(self.truncated_path, BIG)
        stream = self.open(receive_buffer=16384)
        self.send_request(stream, f'/truncated{self.number}', 'Connection: close')
        length, got = self.head(stream)
        os.truncate(self.truncated_path, 4096)
        open_window(stream)
        more, how = read_to_end(stream)
        assert length == BIG and got + more < length, (length, got + more)
        assert how in (('truncated', 'reset') if self.secure else ('orderly', 'reset')), how
        stream.close()

    def silent(self):
        """Sends nothing, not even a ClientHello."""
        self.expect_server_close(self.raw())

    def not_reading(self):
        """Requests a large file and reads nothing."""
        stream = self.open(receive_buffer=4096)
        self.send_request(stream, '/big')
        self.expect_server_close(stream)

    def lingering(self):
        """Receives the response and does not close."""
        stream = self.open()
        self.send_request(stream, '/body', 'Connection: close')
        length, got = self.head(stream)
        self.read_exactly(stream, length - got)
        self.expect_server_close(stream)

    ENDINGS = (normal, keep_alive, reset_in_body, reset_in_handshake, closed_at_once, half_closed, truncated, silent, not_reading, lingering)

    def expect_server_close(self, stream):
        self.waiting.append((time.monotonic() + TIMEOUT_S, stream))
        while self.waiting and (self.waiting[0][0] < time.monotonic() or len(self.waiting) > WAITING):
            self.wait_for_oldest()

    def wait_for_oldest(self):
        """The server must end the oldest waiting connection; a timeout of the client is a failure."""
        _, stream = self.waiting.popleft()
        open_window(stream)
        read_to_end(stream)
        stream.close()

    def run(self, count):
        names = list(itertools.islice(itertools.cycle(self.ENDINGS), count))
        self.order.shuffle(names)
        for ending in names:
            ending(self)
            self.counts[ending.__name__] += 1
        while self.waiting:
            self.wait_for_oldest()


def run_mix(port, secure, folder, count, threads, body=BODY):
    """Runs `count` connections in `threads` threads and raises the first failure. Returns the number of connections for each end."""
    all_clients = [DisconnectingClients(port, secure, folder, number, body) for number in range(threads)]
    faults = []

    def run(clients):
        try:
            clients.run(count // threads)
        except Exception as fault:  # pylint: disable=broad-except
            faults.append(fault)
    runners = [threading.Thread(target=run, args=(clients,)) for clients in all_clients]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    if faults:
        raise faults[0]
    return sum((clients.counts for clients in all_clients), collections.Counter())


def descriptors(pid):
    """The open descriptors of a process by kind: {'socket': n, 'pipe': m, 'anon_inode': k, '/path': 1, ...}."""
    found = collections.Counter()
    for name in os.listdir(f'/proc/{pid}/fd'):
        try:
            target = os.readlink(f'/proc/{pid}/fd/{name}')
        except FileNotFoundError:
            continue
        found[target if target.startswith('/') else target.partition(':')[0]] += 1
    return found


def memory_kib(pid):
    """Resident memory; None under AddressSanitizer, which keeps freed memory."""
    with open(f'/proc/{pid}/maps', encoding='ascii', errors='replace') as stream:
        if 'libasan' in stream.read():
            return None
    with open(f'/proc/{pid}/status', encoding='ascii') as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith('VmRSS:'))


def descriptors_without_files(pid):
    """The descriptors of a process without files, of which the file cache keeps some open."""
    return {name: count for name, count in descriptors(pid).items() if not name.startswith('/')}


def idle_descriptors(pid):
    """The descriptors of an idle process, once they have not changed for a second: the last connections of the previous test need time to
    end."""
    found, since = descriptors_without_files(pid), time.monotonic()
    while time.monotonic() < since + 1:
        time.sleep(0.1)
        if descriptors_without_files(pid) != found:
            found, since = descriptors_without_files(pid), time.monotonic()
    return found


def wait_for_descriptors(pid, before):
    """Waits until the descriptors are those of `before`, or until the time limit; returns the descriptors."""
    deadline = time.monotonic() + PATIENCE_S
    while descriptors_without_files(pid) != before and time.monotonic() < deadline:
        time.sleep(0.2)
    return descriptors_without_files(pid)


def check_for_leaks(server, port, secure, folder, count, threads, body=BODY, parts=1):
    """Runs the clients once as warm-up, then `parts` times, and checks that the worker's descriptors are the same after each part. Memory may
    grow in one part that has more concurrent requests than those before it. A leak grows in every part, so the smallest growth is
    compared with the limit."""
    pid, = server.workers()
    expected = idle_descriptors(pid)
    run_mix(port, secure, folder, min(count, threads * 100), threads, body)
    expected['anon_inode'] = descriptors(pid)['anon_inode']        # the warm-up has started the helper threads
    assert wait_for_descriptors(pid, expected) == expected
    files, memory = len(descriptors(pid)), [memory_kib(pid)]
    for _ in range(parts):
        ended = run_mix(port, secure, folder, count // parts, threads, body)
        assert sum(ended.values()) == count // parts // threads * threads and len(ended) == len(DisconnectingClients.ENDINGS), ended
        assert wait_for_descriptors(pid, expected) == expected, 'all sockets, pipes and other descriptors are closed'
        memory.append(memory_kib(pid))
    assert len(descriptors(pid)) <= files, descriptors(pid)
    if memory[0] is not None:
        grown = [after - before for before, after in zip(memory, memory[1:])]
        print(f'{count} connections: {grown} KiB beside {memory[0]}, {sum(descriptors(pid).values())} descriptors')
        assert min(grown) <= MORE_MEMORY_KIB // parts, f'{grown} KiB more than before'
    assert server.workers() == [pid], 'the worker has not been replaced'
