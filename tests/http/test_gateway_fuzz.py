"""Damaged responses of FastCGI and HTTP/2 upstream servers under random settings.

Each response is sent in random pieces: complete, cut off at a random byte, or with bytes changed, inserted or removed. After damage the upstream
server closes the connection. A complete response arrives unchanged. One that was cut off is neither complete for the client nor stored, unless
its whole body was sent. The next request succeeds. No worker dies, and no sanitizer reports an error. SLUICE_FUZZ_SECONDS is the duration for
each loop (3), SLUICE_FUZZ_SEED the first seed (1).
"""
import os
import random
import socket
import struct
import time
import zlib

import pytest
from kit import fastcgi, http1, server as server_kit
from kit.h2_upstream import H2Upstream

SECONDS = float(os.environ.get('SLUICE_FUZZ_SECONDS', '3'))
SEED = int(os.environ.get('SLUICE_FUZZ_SEED', '1'))
SIZES = [0, 1, 100, 4095, 16384, 30000, 60000]      # within the initial window of HTTP/2
BODY = b''.join(b'line %d\n' % number for number in range(8000))
PLACES = 12                                         # locations of each protocol, each with its own settings

SETTINGS = {
    '{}_buffering': [True, False], '{}_buffers': ['2 4k', '8 16k'], '{}_buffer_size': ['4k', '16k'], '{}_max_temp_file_size': ['0', '8k', '1g'],
    '{}_intercept_errors': [True], '{}_request_buffering': [True, False], '{}_ignore_client_abort': [True], '{}_next_upstream': ['off'],
    'gzip': [True], 'output_buffers': ['1 4k', '1 64k'], 'limit_rate': ['20m'], 'sendfile': [True, False],
}


class Plan:
    """How a response is sent: the size of its body and of its records, the points at which the server pauses, and the damage."""

    def __init__(self, rng):
        self.size, self.step, self.length = rng.choice(SIZES), rng.choice([1, 1000, 8000, 16384]), rng.random() < 0.5
        if self.step == 1:
            self.size = min(self.size, 100)
        self.splits = [rng.random() for _ in range(rng.randrange(4))]
        self.damage = rng.choice(['none', 'cut', 'reset', 'change', 'insert', 'remove'])
        self.at, self.bytes = rng.choice([rng.random(), rng.random() ** 4]), rng.randbytes(rng.choice([1, 1, 8, 100]))

    def __repr__(self):
        return repr(self.__dict__)

    @property
    def body(self):
        return BODY[:self.size]

    def damaged(self, text):
        at = int(self.at * len(text))
        if self.damage in ('cut', 'reset'):
            return text[:at]
        if self.damage == 'change':
            return text[:at] + bytes([text[at] ^ 1 << self.bytes[0] % 8]) + text[at + 1:]
        if self.damage == 'insert':
            return text[:at] + self.bytes + text[at:]
        return text[:at] + text[at + len(self.bytes):] if self.damage == 'remove' else text

    def send(self, stream, text):
        """Returns whether the connection stays open."""
        text = self.damaged(text)
        points = [0, *sorted(int(share * len(text)) for share in self.splits), len(text)]
        for first, last in zip(points, points[1:]):
            stream.sendall(text[first:last])
            time.sleep(0.001)
        if self.damage == 'reset':
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        return self.damage == 'none'


class Application(fastcgi.Application):
    """Responds as its plan says."""

    def __init__(self, path):
        super().__init__(path)
        self.plan, self.responses = None, self

    def get(self, _script, _otherwise=None):
        return self.respond_by_plan

    def respond_by_plan(self, stream, requested):
        plan = self.plan
        head = b'Content-Type: text/plain\r\nCache-Control: max-age=60\r\n' + (b'Content-Length: %d\r\n' % plan.size if plan.length else b'') + b'\r\n'
        return plan.send(stream, fastcgi.out(head + plan.body, padding=plan.step % 8, size=plan.step) + fastcgi.end())


class Http2(H2Upstream):
    """Responds as its plan says."""

    def __init__(self):
        self.plan = None
        super().__init__()
        self.scripts = self

    def get(self, _path, _otherwise=None):
        return self.respond_by_plan

    def respond_by_plan(self, stream, event):
        if event != 'end':
            return
        plan, peer = self.plan, stream.peer
        peer.flush()
        fields = [('content-type', 'text/plain'), ('cache-control', 'max-age=60')]
        stream.respond(200, fields + ([('content-length', str(plan.size))] if plan.length else []), end=False)
        for at in range(0, plan.size, plan.step):
            peer.h2.send_data(stream.number, plan.body[at:at + plan.step])
        peer.h2.end_stream(stream.number)
        peer.closing = not plan.send(peer.sock, peer.h2.data_to_send())


@pytest.fixture
def upstreams(tmp_path):
    made = {'fastcgi': Application(str(tmp_path / 'application')), 'http2': Http2()}
    yield made
    made['http2'].stop()
    assert not made['fastcgi'].faults and not made['http2'].faults, (made['fastcgi'].faults, made['http2'].faults)


def locations(rng, upstreams):
    to = {'fastcgi': {'fastcgi_pass': f'unix:{upstreams["fastcgi"].path}'},
          'http2': {'proxy_pass': f'http://127.0.0.1:{upstreams["http2"].port}', 'proxy_http_version': '2'}}
    made = {'= /one.txt': {}}
    for protocol, passed in to.items():
        prefix = 'fastcgi' if protocol == 'fastcgi' else 'proxy'
        for number in range(PLACES):
            chosen = {name.format(prefix): rng.choice(values) for name, values in SETTINGS.items() if rng.random() < 0.4}
            if protocol == 'fastcgi':
                chosen['fastcgi_keep_conn'] = rng.random() < 0.5
            elif rng.random() < 0.5:
                chosen['proxy_cache'] = 'stored'
            made[f'/{protocol}{number}/'] = {**passed, **chosen}
    return made


@pytest.fixture
def proxy(start, loop, upstreams, tmp_path, site):
    (tmp_path / 'cache').mkdir()
    (tmp_path / 'cache').chmod(0o777)
    port = server_kit.free_port()
    places = locations(random.Random(SEED), upstreams)
    block = {'listen': f'127.0.0.1:{port}', 'root': site, 'location': places}
    made = start(loop, servers=[block], wait=False, http={'proxy_cache_path': {'path': str(tmp_path / 'cache'), 'keys_zone': 'stored:1m'}})
    made.fuzzed = port
    made.kept = [place for place, settings in places.items() if settings.get('fastcgi_keep_conn') or 'proxy_http_version' in settings]
    return made.start([port])


def fetch(client, target, gzip):
    response = client.get(target, **({'Accept_Encoding': 'gzip'} if gzip else {}))
    if response.headers.get('content-encoding') == 'gzip':
        response.body = zlib.decompress(response.body, 31)
    return response


def run(rng, number, proxy, upstreams):
    protocol = rng.choice(list(upstreams))
    place, upstream, gzip = f'/{protocol}{rng.randrange(PLACES)}/', upstreams[protocol], rng.random() < 0.3
    target = f'{place}{number}'
    plan = upstream.plan = Plan(rng)
    client = http1.connect(proxy.fuzzed)
    try:
        response = fetch(client, target, gzip)
    except (EOFError, http1.BadResponse):
        assert plan.damage != 'none', plan
        response = None
    if response and plan.damage in ('none', 'cut', 'reset'):
        assert response.status == 200 or plan.damage != 'none' and response.status == 502, (plan, response)
        assert response.status != 200 or response.body == plan.body, (plan, response)
    if response is None or response.closes:
        client.close()
        client = http1.connect(proxy.fuzzed)
    if plan.damage not in ('cut', 'reset'):
        target += '-next'               # the damaged response may be stored
    upstream.plan = Plan(rng)
    upstream.plan.damage = 'none'
    expected = plan.body if response and response.status == 200 and plan.damage in ('cut', 'reset') else upstream.plan.body
    again = fetch(client, target, gzip)
    if again.status == 502 and place in proxy.kept and plan.damage != 'none':
        again = fetch(client, target, gzip)     # that request was on the damaged connection
    assert again.status == 200 and again.body in (expected, upstream.plan.body), (plan, upstream.plan, again)
    client.close()


def test_damaged_responses(proxy, upstreams):
    deadline, number = time.monotonic() + SECONDS, SEED
    while number == SEED or time.monotonic() < deadline:
        try:
            run(random.Random(number), number, proxy, upstreams)
        except BaseException:
            print('seed', number, proxy.output()[-5000:])
            raise
        number += 1
    print(number - SEED, 'responses')
    assert proxy.stop() == 0
