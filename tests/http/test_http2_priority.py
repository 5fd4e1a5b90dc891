"""Priorities (RFC 9218) end to end: an urgent response overtakes all that is not in the socket, and the socket has little."""
import fcntl
import struct
import termios
import time

import pytest
from kit import http2, server as server_kit
from kit.lifetime import wait_for

TIMEOUT = 60 * server_kit.PATIENCE
VIDEOS, VIDEO = 10, 1 << 20
FRAME, SHARE = 16384, 32        # SHARE: H2_SHARE
UNSENT = 128 * 1024             # LIMIT_HTTP2_UNSENT
WINDOW = 1 << 30
QUIET = 0.5                     # seconds
PRIORITY_UPDATE = 16            # the type of a frame


def queues(port, client_port):
    """(bytes that the server has not sent or that are not acknowledged, bytes that it has not read) of the server's socket, as the kernel counts."""
    with open('/proc/net/tcp', encoding='ascii') as table:
        for line in table:
            fields = line.split()
            if fields[1].endswith(f':{port:04X}') and fields[2].endswith(f':{client_port:04X}'):
                return tuple(int(number, 16) for number in fields[4].split(':'))
    raise AssertionError('the connection is not in /proc/net/tcp')


def unread(sock):
    """The bytes in the client's socket."""
    return struct.unpack('i', fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(4)))[0]


class Viewer:
    """A client with a small receive buffer that has requested ten large files, and has read nothing of them."""

    def __init__(self, served):
        self.port = served.port
        self.client = http2.raw(served.port, served.transport, TIMEOUT, settings=struct.pack('!HI', 4, WINDOW), receive_buffer=65536)
        self.client.send(http2.number(http2.WINDOW_UPDATE, 0, WINDOW))
        self.client.send(b''.join(self.client.head(1 + 2 * number, f'/{VIDEO}.bin', headers=[('priority', 'u=5, i')])
                                  for number in range(VIDEOS))) # at once: one response alone is not limited
        self.wait_until_blocked()

    def wait_until_blocked(self):
        self.last, self.since = None, 0
        wait_for(self.is_blocked, 'the socket takes no more')

    def is_blocked(self):
        """True once the queues have been the same for a while: the kernels of both ends delay acknowledgements."""
        found = queues(self.port, self.client.sock.getsockname()[1])[0], unread(self.client.sock)
        if found != self.last or not found[0]:
            self.last, self.since = found, time.monotonic()
        return time.monotonic() - self.since >= QUIET

    def request(self, stream, target, priority):
        self.send(self.client.head(stream, target, headers=[('priority', priority)]))

    def send(self, frame):
        """Sends a frame, and waits until the server has read it; the socket may have taken more meanwhile."""
        self.client.send(frame)
        wait_for(lambda: queues(self.port, self.client.sock.getsockname()[1])[1] == 0, 'the server reads the request')
        self.wait_until_blocked()

    def bytes_before(self, stream):
        """The bytes of other responses that arrive before this response is complete."""
        others = 0
        while (found := self.client.next()) is not None:
            if found[2] == stream:
                if found[1] & http2.END_STREAM:
                    return others
            elif found[0] == http2.DATA:
                others += len(found[3])
        raise AssertionError('the connection ended')

    def read_videos(self, count):
        """Reads the rest of the videos, `count` bytes."""
        ended = 0
        while ended < VIDEOS and (found := self.client.next()) is not None:
            if found[0] == http2.DATA:
                count -= len(found[3])
                ended += found[1] & http2.END_STREAM
        assert (ended, count) == (VIDEOS, 0)


@pytest.fixture
def viewer(launch, loop, transport):
    made = []

    def make():
        made.append(Viewer(launch(loop, transport)))
        return made[-1]
    yield make
    for one in made:
        one.client.close()


def test_urgent_response_overtakes_running_ones(viewer):
    """It arrives after what was in the sockets and one record, which waits for the server's socket."""
    one = viewer()
    assert one.last[0] < 3 * UNSENT
    one.request(101, '/one.txt', 'u=0')
    before = one.bytes_before(101)
    assert before <= sum(one.last) + FRAME
    one.read_videos(VIDEOS * VIDEO - before)


def test_priority_update_makes_a_response_urgent(viewer):
    one = viewer()
    one.request(101, '/one.txt', 'u=7')
    one.send(http2.frame(PRIORITY_UPDATE, 0, 0, struct.pack('!I', 101) + b'u=0'))
    before = one.bytes_before(101)
    assert before <= sum(one.last) + FRAME
    one.read_videos(VIDEOS * VIDEO - before)


def test_less_urgent_response_waits_for_its_share(viewer):
    """The same request with a lower urgency: it gets one of SHARE frames, and so it does not wait for the ends of all others."""
    one = viewer()
    one.request(101, '/one.txt', 'u=7')
    before = one.bytes_before(101)
    assert sum(one.last) + FRAME < before < sum(one.last) + 4 * SHARE * FRAME
