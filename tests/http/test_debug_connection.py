"""The debug log of chosen clients: `debug_connection`."""
import re
import socket

import pytest

from kit import http1, http2, server as server_kit
from kit.lifetime import wait_for
from test_stream import UpstreamServer

TIMEOUT = 30 * server_kit.PATIENCE
OTHERS = '192.0.2.0/24'


def launch_with(launch, loop, chosen, **main):
    # An X-Forwarded-For of a trusted peer changes the client's address, but not the choice.
    return lambda transport: launch(loop, transport, main={'error_log': {'path': 'error.log', 'level': 'error'}, **main,
                                                           'events': {'use': loop, 'debug_connection': chosen}},
                                    server={'set_real_ip_from': '127.0.0.1', 'location': {
                                        '= /moved': {'rewrite': '^ /one.txt last'}, '= /closed': {'return': 444}}})


def lines(served, level='debug'):
    return re.findall(rf'\[{level}\] \d+#0: \*\d+ (.*)', served.server.errors())


def test_chosen_http2_client_logs_frames(launch, loop, transport):
    served = launch_with(launch, loop, [OTHERS, '127.0.0.0/8'])(transport)
    before = len(lines(served))     # the server of an earlier case may be used again
    client = http2.connect(served.port, served.transport, TIMEOUT)
    assert client.fetch('/moved?secret', headers=[('authorization', 'Basic c2VjcmV0')]).status == 200
    client.h2.ping(b'\1\2\3\4\5\6\7\x08')
    assert client.fetch('/closed').reset is not None
    assert client.fetch('/missing').status == 404
    client.h2.close_connection(last_stream_id=0)
    client.flush()
    client.close()
    text = wait_for(lambda: re.search('received GOAWAY.*closed .*', '\n'.join(lines(served)[before:]), re.S) and
                    '\n'.join(lines(served)[before:]), 'the end of the connection is not in the log')
    in_order = [r'^accepted, client: 127\.0\.0\.1:\d+, listen: 127\.0\.0\.1:\d+$',
                *([r'^handshake done: TLSv1\.3, TLS_\w+$'] if transport != 'plain' else []), '^protocol: h2$',
                r'^received SETTINGS, stream 0, .*MAX_CONCURRENT_STREAMS=100', '^received HEADERS, stream 1, .*END_STREAM END_HEADERS$',
                '^request received, stream: 1, client: 127.0.0.1, server: localhost, request: "GET /moved.secret HTTP/2.0"',
                '^location "/moved"', '^module rewrite: internal redirect', '^location "/"', '^module static: (responded|pending)',
                r'^sent HEADERS, stream 1, \d+ bytes, END_HEADERS$', '^sent DATA, stream 1, 4 bytes, END_STREAM$',
                r'^response sent: status 200, \d+ bytes, 4 of the body, (plain|user|ktls)',
                '^received PING, stream 0, 8 bytes, 0x0102030405060708$', '^sent PING, stream 0, 8 bytes, ACK, 0x0102030405060708$',
                '^request received, stream: 3', r'^sent RST_STREAM, stream 3, 4 bytes, INTERNAL_ERROR \(2\)$', '^response aborted: ',
                r'^sent DATA, stream 5, \d+ bytes, END_STREAM$', r'^received GOAWAY, stream 0, \d+ bytes, last stream 0, NO_ERROR \(0\)$', r'^closed \(\d\)$']
    at = 0
    for pattern in in_order:
        found = re.compile(pattern, re.M).search(text, at)
        assert found, f'{pattern} is not in this order:\n{text}'
        at = found.end() if pattern.startswith(('^sent', '^received')) and 'PING' not in pattern else found.start()
    # The client may have closed the connection before the server learns that its last response was sent.
    assert re.search('^response sent: status 404', text, re.M)
    assert 'c2VjcmV0' not in text, 'header fields can hold credentials'
    assert any('failed (2: No such file or directory)' in line for line in lines(served, 'info')), 'messages of other levels, too'


@pytest.mark.http1('its debug log')
def test_chosen_http1_client_logs_requests(launch, loop, transport):
    served = launch_with(launch, loop, '127.0.0.1')(transport)
    client = served.connect()
    assert client.get('/one.txt').status == 200
    client.send('GET /\0 HTTP/1.1\r\n\r\n')
    assert client.read().status == 400
    client.close()
    text = wait_for(lambda: 'request rejected' in '\n'.join(lines(served)) and '\n'.join(lines(served)), 'the requests are not in the log')
    assert 'protocol: http/1.1' in text and 'request: "GET /one.txt HTTP/1.1"' in text
    assert re.search('^request rejected: status 400', text, re.M) and 'frame' not in text


@pytest.mark.parametrize('chosen', [OTHERS, 'unix:', ['::1', OTHERS]])
def test_other_clients_log_no_debug_lines(launch, loop, transport, chosen):
    """The level of error_log applies to them; the address of a header field does not matter."""
    served = launch_with(launch, loop, chosen)(transport)
    client = served.connect()
    assert client.get('/missing', X_Real_IP='192.0.2.1').status == 404
    client.close()
    other = http2.connect(served.port, served.transport, TIMEOUT)
    assert other.fetch('/one.txt').status == 200
    other.close()
    assert not lines(served) and not lines(served, 'info')


def test_error_log_level_debug_logs_frames(start):
    """error_log's level debug applies to all clients."""
    server = start(error_log={'path': 'error.log', 'level': 'debug'})
    client = http2.connect(server.plain)
    assert client.fetch('/one.txt').status == 200
    client.close()
    wait_for(lambda: 'sent DATA, stream 1, 4 bytes, END_STREAM' in server.errors(), 'no frame in the log')


def test_unix_socket_clients_are_chosen(tmp_path, site, loop):
    import socket
    path = str(tmp_path / 'socket')
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'unix:{path}'], 'root': site}], loop=loop,
                               main={'error_log': {'path': 'error.log', 'level': 'error'}, 'events': {'use': loop, 'debug_connection': 'unix:'}})
    server.start([])
    try:
        wait_for(lambda: (tmp_path / 'socket').exists(), 'no socket')
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)
            client = http1.Client(sock)
            assert client.get('/one.txt').status == 200
        wait_for(lambda: 'request: "GET /one.txt HTTP/1.1"' in server.errors(), 'no request in the log')
        assert 'accepted, client: unix:, listen: unix:' in server.errors()
    finally:
        server.stop()


@pytest.mark.parametrize('chosen', [True, False], ids=['chosen', 'others'])
def test_chosen_stream_clients_log_debug_lines(loop, tmp_path, certificate, chosen):
    """The same lines with and without TLS; the first upstream server refuses connections."""
    upstream, dead = UpstreamServer(lambda sock: sock.sendall(b'hello')), f'127.0.0.1:{server_kit.free_port()}'
    ports, http_port = [server_kit.free_port() for _ in range(2)], server_kit.free_port()
    server = server_kit.Server(tmp_path / 'streams', [{'listen': f'127.0.0.1:{http_port}', 'return': '200 ok'}], loop=loop, main={
        'error_log': {'path': str(tmp_path / 'streams' / 'error.log'), 'level': 'error'},
        'events': {'use': loop, 'debug_connection': '127.0.0.1' if chosen else OTHERS},
        'stream': {'upstream': {'both': {'server': [dead, f'{upstream.address} backup']}},
                   'server': [{'listen': f'127.0.0.1:{ports[0]}', 'proxy_pass': 'both'},
                              {'listen': f'127.0.0.1:{ports[1]} ssl', 'server_name': 'named.test', 'proxy_pass': upstream.address, 'deny': '127.0.0.2',
                               'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1]}]}}).start([http_port])
    for port in ports:
        sock = socket.create_connection(('127.0.0.1', port), timeout=TIMEOUT)
        sock = http1.tls_context().wrap_socket(sock, server_hostname='named.test') if port == ports[1] else sock
        assert sock.recv(5) == b'hello'
        sock.close()
    server.stop()
    upstream.listener.close()
    text = server.errors()
    if not chosen:
        assert '[debug]' not in text and 'accepted' not in text
        return
    for number, port in enumerate(ports):
        in_order = [rf'accepted, client: 127\.0\.0\.1:\d+, listen: 127\.0\.0\.1:{port}$',
                    *([r'handshake done: TLSv1\.3, TLS_\w+$', 'server "named.test"$'] if number else ['server ""$', f'connecting to upstream "{dead}"$']),
                    f'connecting to upstream "{upstream.address}"$', f'connected to upstream "{upstream.address}"$',
                    r'closed: status 200, 0 bytes received, 5 sent$']
        connections = re.findall(rf'\[debug\] \d+#0: \*(\d+) {in_order[0]}', text, re.M)
        found = '\n'.join(re.findall(rf'\[debug\] \d+#0: \*{connections[-1]} (.*)', text))
        assert re.search('.*'.join(in_order).replace('$.*', r'\n(?:.*\n)*?'), found, re.M), found
