"""Clients that end in every way there is, thousands of times, and what a worker must look like afterwards."""
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
# Of the server: head, send and lingering. In an emulated machine its clients are slow; elsewhere patience would only be waited out.
TIMEOUT_S = 3 * (server_kit.PATIENCE if os.environ.get('SLUICE_IN_GUEST') else 1)
MORE_MEMORY_KIB = 4096                        # after all connections
PATIENCE_S = 60 * server_kit.PATIENCE         # of a client that waits for one of these
WAITING = 40                                  # at most so many of a thread's clients are waiting for it at once
SETTINGS = {name: f'{int(TIMEOUT_S)}s' for name in
            ('client_header_timeout', 'client_body_timeout', 'send_timeout', 'lingering_timeout', 'lingering_time', 'keepalive_timeout')}


def make_files(folder, threads, body=BODY):
    """What the clients ask for. Files that are cut are each one thread's own."""
    for name, size in (('small', None), ('body', body), ('big', BIG), *((f'cut{number}', BIG) for number in range(threads))):
        with open(os.path.join(folder, name), 'wb') as stream:
            if size is None:
                stream.write(SMALL)
            else:
                stream.truncate(size)


def reset_at_close(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))


def open_window(stream):
    """A reader that was slow is slow no more."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)


def read_to_end(stream):
    """(bytes, how): 'orderly' (the peer said that it was all), 'cut' (TLS without close_notify) or 'reset'."""
    got = 0
    while True:
        try:
            piece = tls_end.receive(stream)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return got, 'cut'
        except (ConnectionResetError, BrokenPipeError):
            return got, 'reset'
        if not piece:
            return got, 'orderly'
        got += len(piece)


class Mix:
    """Connections of one thread to one server: each ends in another way, in an order that is the same in every run."""

    def __init__(self, port, secure, folder, number, body=BODY):
        self.port, self.secure, self.number, self.body = port, secure, number, body
        self.cut_path = os.path.join(folder, f'cut{number}')
        self.order = random.Random(number)
        self.waiting = collections.deque()    # the server's timers are to end these: (when, stream, expected ends)
        self.counts = collections.Counter()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF # some builds of Python take a cut for an end

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

    def ask(self, stream, target, *headers):
        stream.sendall('\r\n'.join([f'GET {target} HTTP/1.1', 'Host: localhost', *headers, '', '']).encode())

    def head(self, stream):
        """The answer's length and what came of its body with the head."""
        text = b''
        while b'\r\n\r\n' not in text:
            piece = stream.recv(4096)
            assert piece, f'the connection ended inside a head: {text!r}'
            text += piece
        head, _, rest = text.partition(b'\r\n\r\n')
        assert head.startswith(b'HTTP/1.1 200 '), head
        return int(head.lower().partition(b'content-length: ')[2].split(b'\r\n')[0]), len(rest)

    def take(self, stream, left):
        while left:
            piece = stream.recv(min(left, 65536))
            assert piece, f'{left} bytes are missing'
            left -= len(piece)

    # -- the endings -----------------------------------------------------------------------------------------------

    def normal(self):
        """Close is asked for; everything arrives, and the end is told."""
        stream = self.open()
        self.ask(stream, '/body', 'Connection: close')
        length, got = self.head(stream)
        more, how = read_to_end(stream)
        assert (length, got + more, how) == (self.body, self.body, 'orderly'), (length, got + more, how)
        stream.close()

    def kept(self):
        """Two answers on one connection, which the client ends."""
        stream = self.open()
        for target in ('/small', '/body'):
            self.ask(stream, target)
            length, got = self.head(stream)
            self.take(stream, length - got)
        stream.close()

    def reset_in_body(self):
        stream = self.open()
        self.ask(stream, '/big')
        self.head(stream)
        reset_at_close(stream)
        stream.close()

    def reset_in_handshake(self):
        sock = self.raw()
        sock.sendall(b'\x16\x03\x01\x02\x00\x01' if self.secure else b'GET / HT')
        reset_at_close(sock)
        sock.close()

    def gone_at_once(self):
        self.raw().close()

    def half_closed(self):
        """The client says that it has said all, and is answered."""
        stream = self.open()
        self.ask(stream, '/body')
        socket.socket.shutdown(stream, socket.SHUT_WR)
        length, got = self.head(stream)
        more, how = read_to_end(stream)
        assert (got + more, how) == (length, 'orderly'), (length, got + more, how)
        stream.close()

    def truncated(self):
        """The file gets shorter while it is sent: what came must not look whole (rule 13)."""
        os.truncate(self.cut_path, BIG)
        stream = self.open(receive_buffer=16384)
        self.ask(stream, f'/cut{self.number}', 'Connection: close')
        length, got = self.head(stream)
        os.truncate(self.cut_path, 4096)
        open_window(stream)
        more, how = read_to_end(stream)
        assert length == BIG and got + more < length, (length, got + more)
        assert how in (('cut', 'reset') if self.secure else ('orderly', 'reset')), how
        stream.close()

    def silent(self):
        """Says nothing, not even hello."""
        self.wait_for_the_end(self.raw())

    def stuck(self):
        """Asks for much and reads nothing."""
        stream = self.open(receive_buffer=4096)
        self.ask(stream, '/big')
        self.wait_for_the_end(stream)

    def lingering(self):
        """Has its answer and does not go."""
        stream = self.open()
        self.ask(stream, '/body', 'Connection: close')
        length, got = self.head(stream)
        self.take(stream, length - got)
        self.wait_for_the_end(stream)

    ENDINGS = (normal, kept, reset_in_body, reset_in_handshake, gone_at_once, half_closed, truncated, silent, stuck, lingering)

    # ---------------------------------------------------------------------------------------------------------------

    def wait_for_the_end(self, stream):
        self.waiting.append((time.monotonic() + TIMEOUT_S, stream))
        while self.waiting and (self.waiting[0][0] < time.monotonic() or len(self.waiting) > WAITING):
            self.await_one()

    def await_one(self):
        """The server's side of the oldest must end by itself: a time-out here is a failure."""
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
            self.await_one()


def run_mix(port, secure, folder, count, threads, body=BODY):
    """`count` connections by so many threads; raises the first failure. Returns how many ended in which way."""
    mixes = [Mix(port, secure, folder, number, body) for number in range(threads)]
    faults = []

    def run(mix):
        try:
            mix.run(count // threads)
        except Exception as fault:  # pylint: disable=broad-except
            faults.append(fault)
    runners = [threading.Thread(target=run, args=(mix,)) for mix in mixes]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    if faults:
        raise faults[0]
    return sum((mix.counts for mix in mixes), collections.Counter())


def descriptors(pid):
    """What a process holds: {'socket': n, 'pipe': m, 'anon_inode': k, '/path': 1, ...}."""
    found = collections.Counter()
    for name in os.listdir(f'/proc/{pid}/fd'):
        try:
            target = os.readlink(f'/proc/{pid}/fd/{name}')
        except FileNotFoundError:
            continue
        found[target if target.startswith('/') else target.partition(':')[0]] += 1
    return found


def memory_kib(pid):
    """Resident memory; None under a sanitizer, which keeps what is freed."""
    with open(f'/proc/{pid}/maps', encoding='ascii', errors='replace') as stream:
        if 'libasan' in stream.read():
            return None
    with open(f'/proc/{pid}/status', encoding='ascii') as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith('VmRSS:'))


def held_by(pid):
    """Its descriptors without the files, of which the cache keeps some."""
    return {name: count for name, count in descriptors(pid).items() if not name.startswith('/')}


def at_rest(pid):
    """What it holds while nobody asks: the last connections of a test that was before need a moment to go."""
    held, since = held_by(pid), time.monotonic()
    while time.monotonic() < since + 1:
        time.sleep(0.1)
        if held_by(pid) != held:
            held, since = held_by(pid), time.monotonic()
    return held


def settled(pid, before):
    """What it holds once it is as before, or after a long time what it holds then."""
    deadline = time.monotonic() + PATIENCE_S
    while held_by(pid) != before and time.monotonic() < deadline:
        time.sleep(0.2)
    return held_by(pid)


def check_nothing_is_left(server, port, secure, folder, count, threads, body=BODY, parts=1):
    """
    The mix, first a part of it to warm up, as crowded as the rest; then the worker holds what it held. Its memory may
    grow once, where a concurrent_requests was denser than those before; what leaks grows with each part, so the least growth counts.
    """
    pid, = server.workers()
    held = at_rest(pid)
    run_mix(port, secure, folder, min(count, threads * 100), threads, body)
    held['anon_inode'] = descriptors(pid)['anon_inode']        # the helper threads have been started
    assert settled(pid, held) == held
    files, memory = len(descriptors(pid)), [memory_kib(pid)]
    for _ in range(parts):
        ended = run_mix(port, secure, folder, count // parts, threads, body)
        assert sum(ended.values()) == count // parts // threads * threads and len(ended) == len(Mix.ENDINGS), ended
        assert settled(pid, held) == held, 'sockets, pipes and others are all given back'
        memory.append(memory_kib(pid))
    assert len(descriptors(pid)) <= files, descriptors(pid)
    if memory[0] is not None:
        grown = [after - before for before, after in zip(memory, memory[1:])]
        print(f'{count} connections: {grown} KiB beside {memory[0]}, {sum(descriptors(pid).values())} descriptors')
        assert min(grown) <= MORE_MEMORY_KIB // parts, f'{grown} KiB more than before'
    assert server.workers() == [pid], 'it is the same worker still'
