"""Long-lived proxied connections: keep-alive, backpressure, upgraded protocols, events."""
import contextlib
import socket
import threading
import time

import pytest
from kit import server as server_kit
from kit.disconnections import memory_kib
from kit.lifetime import wait_for
from proxy_site import BIG, OK, UPGRADE, client, closed_port, local, other, proxy, upstream  # noqa: F401


def test_upstream_connections_are_reused(client, upstream):
    client.get('/warm')
    before = upstream.connections
    for number in range(20):
        assert client.get(f'/kept/{number}').status == 200
    assert client.fetch('POST', '/kept', body=b'x' * 5000).status == 200
    assert upstream.connections == before


def test_closed_idle_connection_is_retried(client, upstream, proxy):
    """The upstream server closes a kept connection while the next request uses it: the proxy retries, and the client receives no error."""
    def resets_after_response(peer):
        peer.send(OK + 'Content-Length: 2\r\n\r\nok')
        peer.read_head()
        peer.reset()
    upstream.scripts['/resets_after_response'] = resets_after_response
    for _ in range(5):
        assert client.get('/resets_after_response').status == 200
        assert client.get('/next').status == 200


def test_failed_request_goes_to_the_next_server(client, other, upstream):
    seen = [client.get('/group/x').body.split()[0] for _ in range(12)]
    assert set(seen) == {b'one', b'two'}, seen
    assert [client.get('/busy').status for _ in range(4)] == [200] * 4


def test_client_disconnection_closes_the_upstream_connection(proxy, upstream):
    gone = threading.Event()

    def waits(peer):
        if peer.at_end():
            gone.set()
    upstream.scripts['/left'] = waits
    before = len(upstream.requests)
    client = proxy.connect()
    client.send('GET /left HTTP/1.1\r\nHost: localhost\r\n\r\n')
    wait_for(lambda: len(upstream.requests) > before, 'no request arrived')
    client.close()
    assert gone.wait(10 * server_kit.PATIENCE)
    assert proxy.server.access_for('/left')[0]['status'] == '499'


def test_slow_client_applies_backpressure(proxy, upstream):
    """Backpressure: while the client does not read an endless response, the proxy reads only as much as its buffers take."""
    sent = [0]

    def endless(peer):
        peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        peer.stream.settimeout(1.5)
        peer.send(OK + 'Content-Length: 1000000000\r\n\r\n')
        try:
            while sent[0] < 200_000_000:
                sent[0] += peer.stream.send(b'x' * 65536)
        except TimeoutError:
            stalled.set()
    stalled = threading.Event()
    upstream.scripts['/endless'] = endless
    client = proxy.connect()
    client.send('GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    assert stalled.wait(20 * server_kit.PATIENCE)
    assert sent[0] < 50_000_000
    client.close()


def test_slow_server_applies_backpressure(proxy, upstream):
    release = threading.Event()

    def reads_late(peer):
        release.wait(20)
        peer.read_body()
        peer.send(OK + 'Content-Length: 2\r\n\r\nok')
        return True
    upstream.scripts['/reads_late'] = reads_late
    client = proxy.connect()
    client.send('POST /reads_late HTTP/1.1\r\nHost: localhost\r\nContent-Length: 104857600\r\n\r\n')
    given, block = 0, b'y' * 65536
    client.stream.settimeout(1.5)
    try:
        while given < 104857600:
            given += client.stream.send(block[:104857600 - given])
    except (TimeoutError, OSError):
        pass
    assert given < 50_000_000
    release.set()
    client.close()


def test_websocket_upgrade(proxy, upstream):
    """A WebSocket requires no configuration, may be idle longer than the timeouts, and works in both directions."""
    client = proxy.connect()
    client.send(UPGRADE.format('/socket') + 'early')
    head = client.head()
    assert head.status == 101 and head.headers['upgrade'] == 'websocket' and head.headers['connection'] == 'upgrade'
    assert head.headers['sec-websocket-accept'] == 'y'
    assert 'content-length' not in head.headers and 'transfer-encoding' not in head.headers
    assert client.read_exactly(10) == b'helloearly'
    time.sleep(1)
    client.send('after a while')
    assert client.read_exactly(13) == b'after a while'
    received = []
    reader = threading.Thread(target=lambda: received.append(client.read_exactly(len(BIG))))
    reader.start()
    client.send(BIG)
    reader.join(20 * server_kit.PATIENCE)
    assert received == [BIG]
    client.send('bye')
    assert client.read_exactly(3) == b'bye' and client.at_end()
    client.close()
    assert proxy.server.access_for('/socket')[-1]['status'] == '101', server_kit.read_text(proxy.server.access_path)


def test_disconnection_of_an_upgraded_client(proxy, upstream):
    """The last bytes of the client reach the upstream server, followed by the end of the connection."""
    upstream.received = b''
    client = proxy.connect()
    client.send(UPGRADE.format('/socket'))
    assert client.head().status == 101 and client.read_exactly(5) == b'hello'
    client.send(b'z' * 300000 + b'last')
    if proxy.transport == 'plain':
        client.stream.shutdown(socket.SHUT_WR)
    else:
        reader = threading.Thread(target=lambda: client.read_exactly(300004))
        reader.start()
        reader.join(20 * server_kit.PATIENCE)
        client.close()
    wait_for(lambda: upstream.received.endswith(b'last') and len(upstream.received) == 300004, 'not all arrived')
    client.close()


def open_upgraded(server):
    """Opens an upgraded connection."""
    client = server.connect()
    client.send(UPGRADE.format('/socket'))
    assert client.head().status == 101 and client.read_exactly(5) == b'hello'
    return client


def test_memory_of_idle_websockets(proxy, upstream):
    """An idle upgraded connection uses memory for its two sockets, their state and the fields of the access log, but holds no buffers and no
    exchange."""
    (pid,) = proxy.server.workers()
    if proxy.transport != 'plain' or memory_kib(pid) is None:      # the memory of a TLS connection depends on the OpenSSL version
        pytest.skip('counted without TLS, and without a sanitizer')
    with contextlib.ExitStack() as silent:
        for _ in range(50):
            silent.callback(open_upgraded(proxy).close)
        before = memory_kib(pid)
        for _ in range(250):
            silent.callback(open_upgraded(proxy).close)
        each = (memory_kib(pid) - before) / 250
        print(f'{each:.2f} KiB each')
        assert each < 4


END_FIELDS = ('request_uri', 'status', 'http_x', 'bytes_sent', 'body_bytes_sent', 'request_length', 'upstream_bytes_sent',
              'upstream_bytes_received', 'request_completion', 'upstream_status', 'request_time', 'upstream_response_time')


def test_access_log_of_a_websocket(launch, loop, transport, upstream):
    """The access log has variables that get their values at the change of the protocol, and variables that get them only at the end."""
    served = launch(loop, transport, server={'location': {'/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}}},
                    http={'log_format': {'proof': '|'.join(f'${name}' for name in END_FIELDS)}})
    client = served.connect()
    request = UPGRADE.format('/socket').replace('\r\n', '\r\nX: a"b\r\n', 1)
    client.send(request)
    head = client.head()
    assert head.status == 101
    time.sleep(0.3)
    client.send('z' * 100000 + 'bye')
    assert len(client.read_exactly(100008)) == 100008 and client.at_end()
    client.close()
    wait_for(lambda: server_kit.read_text(served.server.access_path).count('\n') == 1, 'no log line')
    line = dict(zip(END_FIELDS, server_kit.read_text(served.server.access_path).rstrip('\n').split('|')))
    assert line['request_uri'] == '/socket' and line['status'] == line['upstream_status'] == '101' and line['http_x'] == 'a\\x22b'
    assert line['body_bytes_sent'] == '100008' and int(line['bytes_sent']) > 100100
    assert int(line['request_length']) == len(request) + 100003
    assert int(line['upstream_bytes_sent']) > 100003 and int(line['upstream_bytes_received']) > 100100
    assert line['request_completion'] == 'OK' and float(line['request_time']) >= 0.3 and float(line['upstream_response_time']) >= 0.3


def test_websocket_is_counted_until_its_end(launch, loop, transport, upstream):
    """limit_conn counts an upgraded connection until its end."""
    served = launch(loop, transport, http={'limit_conn_zone': '$server_name zone=open:1m'}, server={'location': {
        '/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'limit_conn': 'open 1'}}})

    def statuses():
        return [row['status'] for row in served.server.access() if row['request_uri'] == '/socket']

    before = len(statuses())        # the server may be that of the transport before
    first, second = open_upgraded(served), served.connect()
    second.send(UPGRADE.format('/socket'))
    assert second.head().status == 429
    second.close()
    first.send('bye')
    assert first.read_exactly(3) == b'bye' and first.at_end()
    first.close()
    wait_for(lambda: len(statuses()) == before + 2, 'no log lines')
    assert sorted(statuses()[before:]) == ['101', '429']
    open_upgraded(served).close()
    wait_for(lambda: len(statuses()) == before + 3, 'no log line')


def test_rejected_upgrade(client, upstream):
    client.send(UPGRADE.format('/no-socket'))
    assert client.read().body == b'no'
    assert client.get('/next').status == 200
    for protocol in ('h2c', 'HTTP/2.0', 'TLS/1.0', 'websocket, h2c'):
        client.fetch('GET', '/next', [('Connection', 'Upgrade'), ('Upgrade', protocol)])
        assert upstream.last().header('upgrade') is None and upstream.last().header('connection') is None
    client.fetch('GET', '/next', [('Upgrade', 'websocket')])
    assert upstream.last().header('upgrade') is None


def test_server_sent_events_are_not_delayed(client):
    client.send('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().headers['content-type'].startswith('text/event-stream')
    for number in range(3):
        assert client.line() == '9' and client.read_exactly(11) == b'data: %d\n\n\r\n' % number
    assert client.line() == '0'
