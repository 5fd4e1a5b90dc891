"""Hostile HTTP/2 clients: the server closes the connection with GOAWAY, serves other clients meanwhile, and uses limited memory."""
import struct

import pytest

from kit import http2, server as server_kit
from kit.lifetime import wait_for

TIMEOUT = 30 * server_kit.PATIENCE
GROWTH_KB = 32 << 10        # growth of the workers that one hostile connection may cause
CALM = http2.ENHANCE_YOUR_CALM


@pytest.fixture
def served(launch, loop, transport):
    made = launch(loop, transport, server={'client_header_timeout': '10s'})
    wait_for(lambda: ' runs, ' in made.server.errors(), 'the worker is ready')
    return made


@pytest.fixture
def frames(served):
    made = http2.raw(served.port, served.transport, TIMEOUT)
    yield made
    made.close()


def memory_kb(served):
    """The resident set of all workers."""
    total = 0
    for pid in served.server.workers():
        with open(f'/proc/{pid}/status', encoding='ascii') as stream:
            total += next(int(line.split()[1]) for line in stream if line.startswith('VmRSS:'))
    return total


@pytest.fixture(autouse=True)
def bystander(served):
    """A client on another connection, which gets responses before, during and after the test. Afterwards the same workers run, and their
    memory is bounded."""
    client = http2.connect(served.port, served.transport, TIMEOUT)
    assert client.fetch('/1048576.bin').status == 200
    before, workers = memory_kb(served), served.server.workers()
    yield client
    assert client.fetch('/ten.txt').body == b'0123456789'
    client.close()
    assert served.server.workers() == workers
    assert memory_kb(served) - before < GROWTH_KB


def flood(frames, bystander, pieces, limit=200):
    """Sends the pieces until the server closes the connection, at most `limit` of them. After every eighth piece the bystander sends a
    request. Returns the error code of GOAWAY, or None if the connection ends without it or is still open."""
    for count, piece in enumerate(pieces):
        if not frames.send(piece) or count >= limit:
            break
        if count % 8 == 0:
            assert bystander.fetch('/one.txt').body == b'one\n'
    return frames.goaway()


def repeated(piece, times=1000):
    while True:
        yield piece * times


def heads(frames, after=b'', each=50, **arguments):
    """Yields requests on new streams without end, `each` at a time; `after` returns the frames that follow a request."""
    stream = 1
    while True:
        yield b''.join(frames.head(number, **arguments) + (after(number) if after else b'') for number in range(stream, stream + 2 * each, 2))
        stream += 2 * each


@pytest.mark.parametrize('name, piece', [
    ('settings', http2.frame(http2.SETTINGS)),
    ('settings of changing windows', http2.frame(http2.SETTINGS, 0, 0, struct.pack('!HI', 4, 1)) +
     http2.frame(http2.SETTINGS, 0, 0, struct.pack('!HI', 4, 2))),
    ('ping', http2.frame(http2.PING, 0, 0, b'12345678')),
    ('priority', http2.frame(http2.PRIORITY, 0, 5, struct.pack('!IB', 3, 1))),
    ('priority update', http2.frame(16, 0, 0, struct.pack('!I', 3) + b'u=1')),
    ('window update', http2.number(http2.WINDOW_UPDATE, 0, 1)),
    ('settings acknowledgement', http2.frame(http2.SETTINGS, http2.ACK)),
    ('ping acknowledgement', http2.frame(http2.PING, http2.ACK, 0, b'12345678')),
    ('goaway', http2.frame(http2.GOAWAY, 0, 0, bytes(8))),
    ('unknown type', http2.frame(0x7f, 0, 0, b'x')),
], ids=lambda value: value if isinstance(value, str) else '')
def test_control_frame_flood(frames, bystander, name, piece):
    assert flood(frames, bystander, repeated(piece)) == CALM, name


def test_unread_ping_acknowledgements_are_limited(served, bystander):
    """The client does not read the acknowledgements: the server queues a limited number of them."""
    frames = http2.raw(served.port, served.transport, TIMEOUT)
    for _ in range(400):
        if not frames.send(http2.frame(http2.PING, 0, 0, b'12345678') * 200):
            break
    else:
        assert frames.goaway() == CALM
    assert bystander.fetch('/one.txt').status == 200
    frames.close()


@pytest.mark.parametrize('flags, payload', [(0, b''), (8, bytes(1)), (8, b'\xff' + bytes(255))], ids=['empty', 'padded', 'padding'])
def test_empty_data_flood_ends_the_connection(frames, bystander, flags, payload):
    frames.send(frames.head(1, method='POST', flags=http2.END_HEADERS))
    assert flood(frames, bystander, repeated(http2.frame(http2.DATA, flags, 1, payload), 100)) == CALM


def test_window_update_flood(frames, bystander):
    frames.send(frames.head(1, '/1048576.bin'))
    assert flood(frames, bystander, repeated(http2.number(http2.WINDOW_UPDATE, 1, 1))) == CALM


@pytest.mark.parametrize('increment', [1, 0x10000])
def test_window_update_flood_of_a_closed_stream(frames, bystander, increment):
    frames.send(frames.head(1))
    frames.until(http2.DATA, stream=1)
    assert flood(frames, bystander, repeated(http2.number(http2.WINDOW_UPDATE, 1, increment))) == CALM


def test_requests_after_goaway_use_up_credit(launch, loop, transport, bystander):
    """The server ignores streams beyond the last stream of its GOAWAY, but they use up the credit of the connection."""
    served = launch(loop, transport, server={'keepalive_requests': 1})
    frames = http2.raw(served.port, served.transport, TIMEOUT)
    frames.send(frames.head(1, '/1048576.bin'))
    ping = frames.until(http2.PING)
    frames.send(http2.frame(http2.PING, http2.ACK, 0, ping[3]))
    frames.until(http2.GOAWAY)
    assert flood(frames, bystander, (b''.join(frames.head(number) for number in range(at, at + 200, 2)) for at in range(3, 1 << 20, 200))) == CALM
    frames.close()


def test_rapid_reset_ends_the_connection(frames, bystander):
    """CVE-2023-44487: the client resets each stream right after its request."""
    assert flood(frames, bystander, heads(frames, lambda number: http2.number(http2.RST_STREAM, number, http2.CANCEL), target='/1048576.bin')) == CALM


@pytest.mark.parametrize('name, after', [
    ('window overflow', lambda number: http2.number(http2.WINDOW_UPDATE, number, 0x7fffffff)),
    ('window of 0', lambda number: http2.number(http2.WINDOW_UPDATE, number, 0)),
    ('data after the end', lambda number: http2.frame(http2.DATA, http2.END_STREAM, number, b'x')),
    ('own dependency', lambda number: http2.frame(http2.PRIORITY, 0, number, struct.pack('!IB', number, 1))),
], ids=lambda value: value if isinstance(value, str) else '')
def test_made_you_reset_ends_the_connection(frames, bystander, name, after):
    """CVE-2025-8671: the client makes the server reset its streams."""
    assert flood(frames, bystander, heads(frames, after, target='/1048576.bin')) == CALM, name


def test_malformed_request_flood(frames, bystander):
    assert flood(frames, bystander, heads(frames, headers=[('connection', 'close')])) == CALM


def test_streams_beyond_the_limit_are_refused(frames, bystander):
    """The client opens 10,000 streams and reads nothing: the server refuses those beyond the limit, then closes the connection."""
    code = flood(frames, bystander, heads(frames, each=100, target='/1048576.bin'), limit=100)
    assert code == CALM


def test_memory_of_unfinished_requests_is_limited(served, frames, bystander):
    """Requests with unfinished bodies use no more memory than the permitted number of streams."""
    before = memory_kb(served)
    code = flood(frames, bystander, heads(frames, each=100, method='POST', flags=http2.END_HEADERS, target='/missing'), limit=100)
    assert code == CALM and memory_kb(served) - before < GROWTH_KB


def test_continuation_flood(frames, bystander):
    """CVE-2024-27316: frames without END_HEADERS."""
    frames.send(frames.head(1, flags=0))
    block = frames.encoder.encode([('x-' + 'a' * 20, 'b' * 4000)], huffman=False)
    assert flood(frames, bystander, repeated(http2.frame(http2.CONTINUATION, 0, 1, block), 1)) == CALM


def test_empty_continuation_flood(frames, bystander):
    frames.send(frames.head(1, flags=0))
    assert flood(frames, bystander, repeated(http2.frame(http2.CONTINUATION, 0, 1))) == CALM


def test_hpack_bomb(frames, bystander):
    """One octet refers to a field of 4,000 bytes in the dynamic table."""
    frames.send(frames.head(1, headers=[('x-bomb', 'b' * 3900)]))
    frames.until(http2.HEADERS, stream=1)
    bomb = frames.fields(headers=[('x-bomb', 'b' * 3900)])
    octet = bomb[-1:]
    assert octet[0] & 0x80, 'an indexed field'
    frames.send(http2.frame(http2.HEADERS, http2.END_STREAM | http2.END_HEADERS, 3, bomb + octet * 16000))
    assert frames.goaway() == CALM


def test_long_header_list_is_431(served, bystander):
    """A header section that exceeds large_client_header_buffers gets 431, and the connection continues."""
    client = http2.connect(served.port, served.transport, TIMEOUT)
    for fields in ([('x-long', 'a' * 9000)], [(f'x-{i}', 'a' * 4000) for i in range(12)], [(f'x-{i}', 'a') for i in range(1001)]):
        client.h2.remote_settings.update({http2.h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 1 << 20})
        client.h2.remote_settings.acknowledge()
        response = client.fetch('/one.txt', headers=fields)
        assert response.status == 431, fields[0][0]
        assert client.fetch('/one.txt').status == 200
    client.close()


@pytest.mark.parametrize('name, value, status', [(b'x-long', b'~' * 70000, b'431'), (b'n' * 150000, b'x', b'431'), (b'n' * 70000, b'~' * 70000, b'431'),
                                                 (b':path', b'/' * 70000, b'414')], ids=['value', 'name', 'both', 'path'])
def test_strings_longer_than_a_decoder_accepts(frames, bystander, name, value, status):
    """HPACK decoders accept 64 KiB. Literals that enter the dynamic table empty it."""
    for stream, kind in ((1, 0x40), (3, 0)):
        pseudo = [(':method', 'GET'), (':scheme', frames.scheme), (':authority', 'localhost')]
        fields = frames.encoder.encode(pseudo if name == b':path' else [*pseudo, (':path', '/one.txt'), ('x-table', 'x')])
        frames.send(http2.header_block(stream, fields, http2.literal(name, value, kind)))
        head = frames.until(http2.HEADERS, http2.GOAWAY, stream=stream)
        assert dict(frames.decoder.decode(head[3], raw=True))[b':status'] == status
        frames.encoder = http2.hpack.Encoder()      # its table was emptied
    frames.send(frames.head(5))
    assert dict(frames.decoder.decode(frames.until(http2.HEADERS, stream=5)[3]))[':status'] == '200'


def test_unfinished_header_section_times_out(launch, loop, transport):
    served = launch(loop, transport, server={'client_header_timeout': '1s', 'lingering_timeout': '1s'})
    frames = http2.raw(served.port, served.transport, TIMEOUT)
    frames.send(frames.head(1, flags=0))
    assert frames.goaway() is not None and frames.ended
    frames.close()


@pytest.mark.parametrize('kind', ['first byte', 'preface', 'frame head'])
def test_incomplete_preface_times_out(launch, loop, transport, kind):
    served = launch(loop, transport, server={'client_header_timeout': '1s', 'lingering_timeout': '1s'})
    sock = http2.dial(served.port, served.transport, TIMEOUT)
    whole = http2.PREFACE + http2.frame(http2.SETTINGS)
    sock.sendall(whole[:{'first byte': 1, 'preface': 20, 'frame head': 28}[kind]])
    while http2.receive(sock):
        pass
    sock.close()
