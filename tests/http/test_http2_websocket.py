"""WebSockets of HTTP/2 clients by extended CONNECT (RFC 8441), proxied to HTTP/1.1 servers."""
import base64
import hashlib
import shutil
import time

import pytest
from websockets import frames

from kit import http2, programs, server as server_kit, upstream as upstream_kit
from kit.http2 import CANCEL, PROTOCOL_ERROR
from kit.lifetime import wait_for
from test_browser import browse

TIMEOUT = 30 * server_kit.PATIENCE
ENABLE_CONNECT_PROTOCOL = 8
BIG = hashlib.shake_128(b'websocket').digest(4_000_000)


def accept_of(request):
    key = request.header('sec-websocket-key')
    assert len(base64.b64decode(key, validate=True)) == 16
    return base64.b64encode(hashlib.sha1(key.encode() + b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest()).decode()


def switch(peer, accept=None, fields='Connection: Upgrade\r\nUpgrade: websocket\r\n'):
    peer.send(f'HTTP/1.1 101 Switching Protocols\r\n{fields}Sec-WebSocket-Accept: {accept or accept_of(peer.request)}\r\n'
              'Sec-WebSocket-Protocol: chat\r\n\r\n')


def echo(peer):
    """Echoes all bytes; at the end of the client's bytes it sends "over"."""
    switch(peer)
    while peer.buffer or peer.fill():
        piece, peer.buffer = peer.buffer, b''
        peer.send(piece)
    peer.send('over')


def send_with_101(peer):
    """The first bytes of the server arrive together with the 101."""
    peer.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
              f'Sec-WebSocket-Accept: {accept_of(peer.request)}\r\n\r\nhello')
    peer.at_end()


def reset(peer):
    switch(peer)
    peer.read_exactly(5)
    peer.reset()


def end(peer):
    switch(peer)
    peer.send('bye')


def watch(peer):
    """Records the end of the connection."""
    switch(peer)
    try:
        while peer.fill():
            pass
    except OSError:
        pass
    peer.upstream.ends += 1


def flood(peer):
    switch(peer)
    for at in range(0, len(BIG), 50_000):
        peer.send(BIG[at:at + 50_000])
    peer.at_end()


SCRIPTS = {
    '/echo': echo, '/first': send_with_101, '/reset': reset, '/end': end, '/watch': watch, '/flood': flood,
    '/forged': lambda peer: switch(peer, accept='s3pPLMBiTxaQ9kYGzzhZRbK+xOo='),
    '/without-upgrade': lambda peer: switch(peer, fields='Connection: Upgrade\r\n'),
    '/without-connection': lambda peer: switch(peer, fields='Upgrade: websocket\r\n'),
    '/other': lambda peer: switch(peer, fields='Connection: Upgrade\r\nUpgrade: h2c\r\n'),
    '/denied': lambda peer: peer.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno') or True,
}


@pytest.fixture(scope='module')
def upstream():
    made = upstream_kit.Upstream(SCRIPTS)
    made.ends = 0
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture
def served(launch, loop, transport, upstream):
    return launch(loop, transport, server={
        'client_body_timeout': '1s', 'send_timeout': '1s', 'client_max_body_size': '1k', 'location': {
            '/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}'},
            '= /page': {'return': '200 page'},
            '= /text': {'limit_except': {'GET': {'deny': 'all'}}, 'proxy_pass': f'http://127.0.0.1:{upstream.port}/echo'}}})


@pytest.fixture
def client(served):
    made = http2.connect(served.port, served.transport, TIMEOUT)
    made.until(lambda: announces_tunnels(made))
    yield made
    made.close()


def announces_tunnels(client):
    return client.h2.remote_settings.get(ENABLE_CONNECT_PROTOCOL) == 1


def connect_to(client, target, protocol='websocket', method='CONNECT', headers=()):
    """Requests a tunnel; returns its stream and the response, whose head has arrived."""
    stream = client.request(target, method, [(':protocol', protocol), ('sec-websocket-version', '13'), *headers], end=False)
    response = client.responses[stream]
    client.until(lambda: response.status or response.over)
    return stream, response


def test_bytes_are_forwarded_in_both_directions(served, client, upstream):
    """A tunnel is neither a body of limited size (client_max_body_size) nor one that must arrive in time (client_body_timeout)."""
    stream, response = connect_to(client, '/echo', headers=[('sec-websocket-protocol', 'chat'), ('sec-websocket-key', 'x'), ('cookie', 'a=1')])
    assert response.status == 200 and response.headers['sec-websocket-protocol'] == 'chat'
    assert not {'upgrade', 'connection', 'sec-websocket-accept', 'content-length', 'transfer-encoding'} & set(response.headers)
    seen = upstream.last()
    assert seen.line == 'GET /echo HTTP/1.1' and seen.header('upgrade') == 'websocket' and seen.header('connection').lower() == 'upgrade'
    assert len(seen.all('sec-websocket-key')) == 1 and seen.header('sec-websocket-version') == '13' and seen.header('cookie') == 'a=1'
    assert seen.header('content-length') is None and seen.header('transfer-encoding') is None
    client.send_body(stream, b'ping', end=False)
    client.until(lambda: response.body == b'ping')
    time.sleep(2.5)
    other = client.fetch('/page')
    assert other.status == 200, 'other requests use the connection'
    client.send_body(stream, BIG, end=False)
    client.until(lambda: len(response.body) == 4 + len(BIG) or response.over)
    assert response.body[4:] == BIG
    client.send_body(stream, b'', end=True)
    client.wait(stream)
    assert response.body[4 + len(BIG):] == b'over' and response.ended and response.reset is None, 'the server can still send after END_STREAM'
    row = wait_for(lambda: [row for row in served.server.access() if row['request_uri'] == '/echo'], 'a log line')[-1]
    assert row['status'] == '200' and int(row['body_bytes_sent']) == len(response.body)


def test_each_handshake_has_a_new_key(client, upstream):
    for _ in range(2):
        connect_to(client, '/echo')
    assert len({request.header('sec-websocket-key') for request in upstream.requests[-2:]}) == 2


def test_bytes_after_the_101_are_forwarded(client):
    _, response = connect_to(client, '/first')
    client.until(lambda: response.body == b'hello')


def test_server_close_ends_the_stream(client):
    stream, response = connect_to(client, '/end')
    client.wait(stream)
    assert response.status == 200 and response.body == b'bye' and response.ended


def test_server_abort_resets_the_stream(client):
    stream, response = connect_to(client, '/reset')
    client.send_body(stream, b'12345', end=False)
    client.wait(stream)
    assert response.status == 200 and response.reset == CANCEL
    assert client.fetch('/page').status == 200


def test_client_reset_closes_the_upstream_connection(client, upstream):
    before = upstream.ends
    stream, _ = connect_to(client, '/watch')
    client.h2.reset_stream(stream, CANCEL)
    client.flush()
    assert client.fetch('/page').status == 200
    wait_for(lambda: upstream.ends > before, 'the connection to the server was not closed')


def test_connection_close_closes_all_tunnels(served, client, upstream):
    before = upstream.ends
    for _ in range(3):
        connect_to(client, '/watch')
    client.close()
    wait_for(lambda: upstream.ends == before + 3, 'the connections to the server were not closed')


def test_zero_window_applies_backpressure(served, upstream):
    """Without a window the server's bytes wait, and other streams proceed; the tunnel does not time out after it has a window again."""
    client = http2.connect(served.port, served.transport, TIMEOUT, widen=False)
    client.until(lambda: announces_tunnels(client))
    stream, response = connect_to(client, '/flood')
    client.h2.increment_flow_control_window(1 << 24)
    client.flush()
    client.until(lambda: len(response.body) == http2.WINDOW)
    assert client.fetch('/page').status == 200
    client.h2.increment_flow_control_window(len(BIG), stream)
    client.flush()
    client.until(lambda: len(response.body) == len(BIG))
    assert response.body == BIG
    client.close()


@pytest.mark.parametrize('target', ['/forged', '/without-upgrade', '/without-connection', '/other'])
def test_invalid_handshake_is_502(served, client, target):
    stream, response = connect_to(client, target)
    client.send_body(stream, b'', end=True)
    client.wait(stream)
    assert response.status == 502
    assert 'upstream sent invalid response: ' in served.server.errors()


def test_rejected_upgrade_has_its_status(client, upstream):
    """The client would take a 2xx for the tunnel; another status is passed on."""
    for target, status in (('/denied', 403), ('/plain', 501), ('/page', 501), ('/one.txt', 501)):
        stream, response = connect_to(client, target)
        client.send_body(stream, b'', end=True)
        client.wait(stream)
        assert response.status == status, target
    assert connect_to(client, '/text')[1].status == 200, 'limit_except applies as to the GET of HTTP/1.1'


@pytest.mark.parametrize('method, protocol, status', [('CONNECT', 'connect-udp', 501), ('CONNECT', 'h2c', 501), ('CONNECT', 'a b', None),
                                                      ('GET', 'websocket', None), ('POST', 'websocket', None)])
def test_other_protocol_fields_are_rejected(served, upstream, method, protocol, status):
    count = len(upstream.requests)
    raw = http2.Frames(http2.dial(served.port, served.transport, TIMEOUT), scheme='http' if served.transport == 'plain' else 'https')
    raw.send(raw.head(1, '/echo', method, [(':protocol', protocol)], flags=http2.END_HEADERS))
    received = next(frame for frame in iter(raw.next, None) if frame[2] == 1)
    if status:
        assert received[0] == http2.HEADERS and (':status', str(status)) in raw.decoder.decode(received[3])
    else:
        assert received[0] == http2.RST_STREAM and int.from_bytes(received[3], 'big') == PROTOCOL_ERROR
    assert len(upstream.requests) == count


def test_enable_connect_protocol_requires_an_upgrading_location(launch, loop, transport, upstream):
    """The setting is not sent where no location can proxy an upgrade; then :protocol is malformed."""
    served = launch(loop, transport, server={'location': {
        '/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_http_version': '2'}, '= /page': {'return': '200 page'}}})
    client = http2.connect(served.port, served.transport, TIMEOUT)
    assert client.fetch('/page').status == 200
    assert not announces_tunnels(client)
    assert connect_to(client, '/page')[1].reset == PROTOCOL_ERROR
    client.close()


@pytest.fixture(scope='module')
def sockets(base):
    notes = base / 'http2-sockets-notes'
    notes.write_text('')
    made = programs.python('sockets.py', str(notes))
    yield made, notes
    made.stop()


def send_frame(client, stream, opcode, data, end=False):
    client.send_body(stream, frames.Frame(opcode, data).serialize(mask=True), end=end)


def test_websockets_library_as_server(launch, loop, transport, sockets):
    """Messages, and the closing handshake, with the server of the `websockets` library."""
    program, notes = sockets
    served = launch(loop, transport, server={'location': {'/': {'proxy_pass': f'http://127.0.0.1:{program.port}'}}})
    client = http2.connect(served.port, served.transport, TIMEOUT)
    client.until(lambda: announces_tunnels(client))
    streams = [connect_to(client, '/', headers=[('sec-websocket-protocol', 'chat')]) for _ in range(10)]
    for number, (stream, response) in enumerate(streams):
        assert response.status == 200 and response.headers['sec-websocket-protocol'] == 'chat'
        send_frame(client, stream, frames.Opcode.TEXT, f'number {number}'.encode())
    for number, (stream, response) in enumerate(streams):
        expected = frames.Frame(frames.Opcode.TEXT, f'number {number}'.encode()).serialize(mask=False)
        client.until(lambda: len(response.body) >= len(expected))
        assert response.body == expected
        reason = f'{number} {loop} {transport}'
        send_frame(client, stream, frames.Opcode.CLOSE, frames.Close(4001, reason).serialize(), end=True)
        client.wait(stream)
        close = frames.Frame(frames.Opcode.CLOSE, frames.Close(4001, reason).serialize())
        assert response.ended and response.body[len(expected):] == close.serialize(mask=False)
        wait_for(lambda: f'4001 {reason}\n' in notes.read_text(), 'no closing handshake')
    client.close()


PAGE = '''<!doctype html><title>a socket</title><script>
(async () => {
  await fetch('/style.css');    // opens the connection that the socket then uses
  const socket = new WebSocket('wss://' + location.host + '/socket', 'chat');
  const found = await new Promise((done, failed) => {
    socket.onopen = () => socket.send('from a browser');
    socket.onmessage = message => { socket.close(4003, 'seen'); done({received: message.data, protocol: socket.protocol}); };
    socket.onerror = () => failed('error');
  });
  await fetch('/done?' + new URLSearchParams(found));
})().catch(error => fetch('/done?' + new URLSearchParams({error})));
</script>
'''


@pytest.mark.skipif(shutil.which('chromium') is None, reason='chromium is not installed')
def test_browser_opens_a_websocket(launch, loop, base, tmp_path, sockets):
    folder = base / 'socket-page'
    folder.mkdir(exist_ok=True)
    (folder / 'index.html').write_text(PAGE)
    (folder / 'style.css').write_text('p{}')
    program, notes = sockets
    served = launch(loop, 'user', server={'root': str(folder), 'location': {
        '= /done': {'return': 204}, '= /socket': {'proxy_pass': f'http://127.0.0.1:{program.port}'}}})
    assert browse(served, '/', tmp_path) == {'received': 'from a browser', 'protocol': 'chat'}
    wait_for(lambda: '4003 seen\n' in notes.read_text(), 'no closing handshake')
    rows = wait_for(lambda: [row for row in served.server.access() if row['request_uri'] == '/socket'], 'a log line')
    assert [row['status'] for row in rows] == ['200'], 'HTTP/1.1 has 101'
