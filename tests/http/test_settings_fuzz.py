"""Request bodies through generated chains of internal redirects with different settings at each step.

Each example is a configuration, which a reload activates, and requests to it: with Content-Length or chunks, in pieces of any size,
with Expect, aborted in the middle, with a reload in between; with SLUICE_PROTOCOL=http2, in a stream. Either the scripted upstream server echoes exactly the sent body, or the
status is one that the model in settings_chain.py permits. No worker dies, and no sanitizer reports an error. SLUICE_FUZZ_SECONDS is the
duration for each loop (30), SLUICE_FUZZ_SEED the first seed (1). SLUICE_FUZZ_SHRINK=0 omits the reduction of a failure, which takes
minutes.
"""
import itertools
import os
import queue
import signal
import socket
import struct
import threading
import time
import zlib

import h2.exceptions
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
from kit import http1, server as server_kit
from kit.lifetime import wait_for
from settings_chain import PATIENCE, Actors, Case, chains, expected, locations, sizes

SECONDS = float(os.environ.get('SLUICE_FUZZ_SECONDS', '30'))
FIRST_SEED = int(os.environ.get('SLUICE_FUZZ_SEED', '1'))
PHASES = [Phase.generate, Phase.shrink] if os.environ.get('SLUICE_FUZZ_SHRINK', '1') == '1' else [Phase.generate]
HTTP2 = http1.PROTOCOL == 'http2'
EXAMPLES = 5        # for each seed, even if the time is over
MARKS = ('ERROR: AddressSanitizer', 'runtime error:', 'exited on signal', 'exited with code 1')

moments = st.sampled_from(['settle', 'settle', 'settle', 'gate', 'reload'])
plans = st.fixed_dictionaries({
    'chain': st.integers(0, 2), 'size': sizes, 'coding': st.sampled_from(['length', 'chunked']),
    'splits': st.lists(st.tuples(st.integers(0, 1000), moments), max_size=5), 'chunk': st.sampled_from([1, 100, 4096, 100000]),
    'expect': st.booleans(), 'overlaid': st.booleans(), 'gzip': st.booleans(),
    'end': st.sampled_from(['whole', 'whole', 'whole', 'whole', 'close', 'reset', 'half']),
})


class Sender:
    """Sends a request in a separate thread, because the server may stop reading for some time. `send_head` is called first; put(share) sends
    the request up to that share of 1000, and put(None) all of it."""

    def __init__(self, client, plan, name, body):
        self.client, self.head, self.rest, self.at = client, head(plan, name), encoded(plan, body), 0
        self.pieces = queue.Queue()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def send_head(self):
        self.client.stream.sendall(self.head)

    def put(self, share):
        """Positions count from the first byte of the head."""
        size = len(self.head) + len(self.rest)
        end = len(self.rest) if share is None else max(self.at, size * share // 1000 - len(self.head))
        self.pieces.put((self.rest[self.at:end], share is None))
        self.at = end

    def run(self):
        while (piece := self.pieces.get()) is not None:
            try:
                self.send(*piece)
            except (OSError, EOFError, h2.exceptions.H2Error):
                return

    def send(self, piece, _last):
        self.client.stream.sendall(piece)

    def finish(self):
        self.pieces.put(None)
        self.thread.join(PATIENCE)


class StreamSender(Sender):
    """The same for a stream of HTTP/2; without Content-Length instead of with chunks."""

    def __init__(self, client, plan, name, body):
        super().__init__(client, plan, name, b'')
        self.head, self.rest, self.stream, self.given_up = b'', body, None, False
        self.fields = fields_of(plan, name)

    def send_head(self):
        method, target, fields = self.fields
        self.stream = self.client.start(method, target, fields, more=True)

    def send(self, piece, last):
        view, response = memoryview(piece), self.client.connection.responses[self.stream]
        while not response.over and not self.given_up:
            sent = self.client.connection.send_some(self.stream, view, last)
            view = view[sent:]
            if not len(view):
                return
            if sent <= 0:
                time.sleep(0.001)           # until the main thread receives WINDOW_UPDATE

    def finish(self):
        self.given_up = True
        super().finish()


class Fuzzed(server_kit.Server):
    """A server whose configuration each example replaces."""

    def __init__(self, folder, root, loop):
        self.port, self.root = server_kit.free_port(), root
        self.refusing = socket.socket()     # bound but not listening, so that connections are refused
        self.refusing.bind(('127.0.0.1', 0))
        self.closed = self.refusing.getsockname()[1]
        self.actors, self.number, self.generation = Actors(), itertools.count(1), 0
        super().__init__(folder, [self.block([], 0)], loop=loop)
        self.start([self.port])

    def block(self, all_chains, generation):
        return {'listen': f'127.0.0.1:{self.port}', 'root': self.root, 'recursive_error_pages': True,
                'location': {'= /generation': {'return': f'200 {generation}'},
                             **locations(all_chains, self.actors.port, self.closed)}}

    def fetch(self, target):
        client = http1.connect(self.port, timeout=PATIENCE)
        try:
            return client.get(target).body.decode()
        except EOFError:        # an old worker that ends
            return None
        finally:
            client.close()

    def configure(self, all_chains):
        """Reloads and returns when a new connection reaches the new configuration."""
        self.generation = next(self.number)
        self.tree['http']['server'] = [self.block(all_chains, self.generation)]
        self.write_configuration()
        self.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.fetch('/generation') == str(self.generation), self.output)

    def connect(self):
        """Connects to a worker of the newest configuration: old workers may still accept connections that are queued on their sockets."""
        while True:
            client = http1.connect(self.port, timeout=PATIENCE)
            try:
                if client.get('/generation').body.decode() == str(self.generation):
                    return client
            except EOFError:
                pass
            client.close()

    def check(self):
        """Checks that no worker has died, and that neither a sanitizer nor the upstream server has reported a fault."""
        text = self.output()
        assert not [mark for mark in MARKS if mark in text], text[-20000:]
        assert not self.actors.faults, self.actors.faults


def encoded(plan, body):
    """The body in the framing of the plan."""
    if plan['coding'] == 'length':
        return body
    step = max(plan['chunk'], len(body) // 2000)
    chunks = (body[at:at + step] for at in range(0, len(body), step))
    return b''.join(b'%x\r\n%s\r\n' % (len(chunk), chunk) for chunk in chunks) + b'0\r\n\r\n'


def fields_of(plan, name):
    """Method, target and fields of the request."""
    fields = [('Host', 'localhost'), ('X-Case', name)]
    if plan['coding'] == 'length':
        fields.append(('Content-Length', str(plan['size'])))
    elif not HTTP2:
        fields.append(('Transfer-Encoding', 'chunked'))
    fields += [('Expect', '100-continue')] * plan['expect'] + [('X-When', '1')] * plan['overlaid'] + [('Accept-Encoding', 'gzip')] * plan['gzip']
    return 'POST', f'/chain{plan["chain"]}/x', fields


def head(plan, name):
    method, target, fields = fields_of(plan, name)
    return '\r\n'.join([f'{method} {target} HTTP/1.1', *(f'{name}: {value}' for name, value in fields), '', '']).encode()


def send_all(server, case, plan, sender, all_chains):
    """Sends the request in pieces, with an event of the plan after each of them; returns whether it reloaded the server."""
    reloaded = False
    sender.send_head()
    assert server.fetch('/one.txt') in ('one\n', None)        # the server has received the header section, so a reload does not treat the connection as idle
    for share, moment in sorted(plan['splits']):
        sender.put(share)
        if moment == 'gate':
            case.gate.set()
        elif moment == 'reload':
            server.configure(all_chains)
            reloaded = True
        assert server.fetch('/one.txt') in ('one\n', None)
    if plan['end'] == 'whole':
        sender.put(None)
    case.gate.set()
    return reloaded


def cancel(client, stream):
    """Resets the stream. The connection continues, unless the settings of a location end it."""
    client.attempt(lambda: client.connection.h2.reset_stream(stream, 8))
    client.streams.clear()
    check_alive(client)


def check_alive(client):
    try:
        assert client.get('/one.txt').body == b'one\n'
    except EOFError:
        assert HTTP2 and client.connection.goaway       # keepalive_timeout or keepalive_requests


def disconnect(client, plan, sender):
    if plan['end'] == 'half' and HTTP2:
        cancel(client, sender.stream)
    elif plan['end'] == 'reset':
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    elif plan['end'] == 'half':
        client.stream.shutdown(socket.SHUT_WR)
        while client.fill():
            client.buffer.clear()
    client.close()


def check_answer(response, case, expected, leave):
    assert response.status in expected.statuses, (response.status, expected.statuses, response.body[:200])
    if response.status != 200:
        return
    body = response.body
    if response.headers.get('content-encoding') == 'gzip':
        body = zlib.decompress(body, 31)
    if leave == 'return':
        assert body == b'returned'
    else:
        assert body == (case.body if expected.body else b''), (len(body), len(case.body))


def run_plan(server, plan, all_chains):
    chain = all_chains[plan['chain'] % len(all_chains)]
    plan = {**plan, 'chain': plan['chain'] % len(all_chains)}
    name = str(next(server.number))
    case = server.actors.cases[name] = Case(bytes(bytearray((at * 7 + at // 251) % 256 for at in range(plan['size']))))
    client = server.connect()
    sender = (StreamSender if HTTP2 else Sender)(client, plan, name, case.body)
    try:
        reloaded = send_all(server, case, plan, sender, all_chains)
        if plan['end'] != 'whole':
            sender.finish()
            disconnect(client, plan, sender)
            return
        response = client.read('POST')
        check_answer(response, case, expected(chain, plan['size'], plan['coding'], plan['overlaid']), chain[-1]['leave'])
        # The connection ends if the unread chunks are too long to be discarded.
        drained = HTTP2 or plan['coding'] == 'length' or plan['size'] in case.seen or plan['size'] < 8000
        if drained and not response.closes and not reloaded:
            sender.finish()
            check_alive(client)
    finally:
        case.gate.set()
        client.close()
        sender.finish()
        del server.actors.cases[name]
        assert not case.faults, case.faults


def run_seed(server, number):
    @seed(number)
    @settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False,
              phases=PHASES)
    @given(all_chains=st.lists(chains, min_size=1, max_size=3), some=st.lists(plans, min_size=1, max_size=6))
    def example(all_chains, some):
        server.configure(all_chains)
        for plan in some:
            run_plan(server, plan, all_chains)
            server.check()
    example()


def test_bodies_through_internal_redirect_chains(tmp_path, site, loop):
    server = Fuzzed(tmp_path / 'fuzzed', site, loop)
    end = time.monotonic() + SECONDS
    try:
        for number in itertools.count(FIRST_SEED):
            run_seed(server, number)
            if time.monotonic() > end:
                break
    except BaseException:
        print('seed', number, server.output()[-5000:])        # to be repeated with SLUICE_FUZZ_SEED
        raise
    finally:
        server.stop(check=False)
        server.actors.stop()
        server.refusing.close()
    text = server.output()
    assert not [mark for mark in server_kit.SANITIZER_MARKS if mark in text], text[-20000:]


pytestmark = pytest.mark.filterwarnings('ignore::hypothesis.errors.NonInteractiveExampleWarning')
