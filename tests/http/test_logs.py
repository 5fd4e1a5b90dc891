"""Access and error logs: variables, JSON, log injection, a FIFO whose reader does not read."""
import json
import os
import re

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for


def test_main_format(site, tmp_path, loop):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'root': site}], loop=loop,
                               http={'access_log': {'path': str(tmp_path / 'main.log'), 'format': 'main'}}).start([port])
    http1.connect(port).get('/one.txt?main', User_Agent='the "agent"', Referer='http://from/')
    server.stop()
    line = server_kit.read_text(tmp_path / 'main.log').splitlines()[-1]
    assert re.match(r'127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /one\.txt\?main HTTP/(1\.1|2\.0)" 200 4 '
                    r'"http://from/" "the \\x22agent\\x22"', line), line
    assert f' {http1.VERSION}" ' in line


def test_json_format(site, tmp_path, loop):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'root': site}], loop=loop,
                               http={'access_log': {'path': str(tmp_path / 'json.log'), 'format': 'json'}}).start([port])
    try:
        client = http1.connect(port)
        for agent in ('plain', 'q"uote', 'back\\slash', 'ta\tb', 'h\xfcgh', '{"a":1}', ''):
            client.get('/one.txt', User_Agent=agent)
        client.get('/nowhere')
    finally:
        server.stop()
    rows = [json.loads(line) for line in (tmp_path / 'json.log').read_bytes().decode('utf-8', 'replace').splitlines()]
    assert len(rows) == 8
    assert str(rows[0]['status']) == '200' and str(rows[-1]['status']) == '404'
    assert 'tls_path' in rows[0] and 'tls_path_reason' in rows[0]


def test_lines_cannot_be_forged(served):
    client = served.connect()
    client.fetch('GET', '/one.txt?%0a127.0.0.1|200|forged')
    client.get('/one.txt?after-forging')
    served.server.access_for('/one.txt?after-forging')
    assert not any(line.startswith('127.0.0.1|200|forged') for line in server_kit.read_text(served.server.access_path).splitlines())


def test_log_fields_have_the_values_of_the_request(served):
    client = served.connect()
    mark = served.transport
    client.get(f'/1024.bin?values-{mark}')
    client.fetch('HEAD', f'/1024.bin?head-{mark}')
    client.get(f'/1024.bin?range-{mark}', Range='bytes=0-9')
    client.get(f'/nowhere?values-{mark}')
    row = served.server.access_for(f'/1024.bin?values-{mark}')[-1]
    assert (row['status'], row['body_bytes_sent'], row['request_method']) == ('200', '1024', 'GET')
    assert served.server.access_for(f'/1024.bin?head-{mark}')[-1]['body_bytes_sent'] == '0'
    assert served.server.access_for(f'/1024.bin?range-{mark}')[-1]['body_bytes_sent'] == '10'
    assert served.server.access_for(f'/nowhere?values-{mark}')[-1]['status'] == '404'
    paths = {'plain': ('plain', 'plain-sendfile'), 'user': ('user',), 'ktls': ('ktls-send', 'ktls-sendfile')}
    assert row['tls_path'] in paths[served.transport]
    if served.transport == 'plain':
        assert row['ssl_protocol'] == '-' and row['ssl_cipher'] == '-'
    else:
        assert row['ssl_protocol'] == 'TLSv1.3' and row['ssl_cipher'] == 'TLS_AES_128_GCM_SHA256'


def test_rejected_requests_are_logged(served):
    client = served.connect()
    client.send('GET /refused HTTP/1.1\r\n\r\n')
    assert client.read().status == 400
    wait_for(lambda: '|400|' in server_kit.read_text(served.server.access_path), 'the log line')


@pytest.mark.http1('files without frame heads')
def test_plain_sendfile_is_logged(launch, loop):
    served = launch(loop, 'plain')
    served.connect().get('/1048576.bin?plain')
    row = served.server.access_for('/1048576.bin?plain')[-1]
    assert row['tls_path'] == 'plain-sendfile' and row['bytes_zero_copy'] == str(1 << 20)


@pytest.mark.http1('files without frame heads')
@pytest.mark.parametrize('ranges, path, zero_copy', [
    ('0-24575', 'plain-sendfile', 24576), ('0-24574', 'plain', 0),
    (','.join(f'{at}-{at + 16383}' for at in range(0, 1 << 20, 65536)), 'plain', 0),
    ('0-99999,500000-500009', 'plain-sendfile', 100000)])
def test_short_spans_are_copied(launch, site, loop, ranges, path, zero_copy):
    """A range below 24 KiB is read into the output buffer; a longer one is sent by sendfile."""
    served = launch(loop, 'plain')
    target = f'/1048576.bin?{ranges}'
    response = served.connect().get(target, Range=f'bytes={ranges}')
    assert response.status == 206
    with open(f'{site}/1048576.bin', 'rb') as stream:
        whole = stream.read()
    at = 0
    for first, last in (map(int, one.split('-')) for one in ranges.split(',')):
        at = response.body.index(whole[first:last + 1], at) + last + 1 - first
    row = served.server.access_for(target)[-1]
    assert (row['tls_path'], int(row['bytes_zero_copy'])) == (path, zero_copy)


def test_fifo_without_a_reader(site, tmp_path, loop):
    """Log lines are dropped, counted and reported in the error log; no request waits."""
    port = server_kit.free_port()
    fifo = tmp_path / 'fifo'
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'root': site}], loop=loop,
                               http={'access_log': {'path': str(fifo), 'format': 'proof'}, 'keepalive_requests': '1000000'})
    server.start([port])
    try:
        client = http1.connect(port, timeout=20 * server_kit.PATIENCE)
        for _ in range(1500):         # more than the capacity of the pipe and of the batch (1 MiB)
            client.send('GET /one.txt?' + 'a' * 2000 + ' HTTP/1.1\r\nHost: localhost\r\n\r\n')
            assert client.read().status == 200
        wait_for(lambda: client.get('/one.txt') and re.search('dropped|lost', server.errors()), 'the number of dropped lines', 90, pause=0.2)
    finally:
        server.stop()


def test_lines_lost_on_a_full_disk_are_counted(site, tmp_path, loop):
    """Lines that cannot be written are counted, and the error log has the reason."""
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'root': site}], loop=loop,
                               http={'access_log': {'path': '/dev/full', 'format': 'proof'}})
    server.start([port])
    for _ in range(3):
        assert http1.connect(port).get('/one.txt').status == 200
    server.stop()
    assert re.search(r'"/dev/full": \d+ lines dropped: No space left on device', server.errors()), server.errors()[-2000:]


def read_available(reader):
    try:
        return os.read(reader, 65536)
    except BlockingIOError:
        return b''


def wait_for_lines(reader, part, count):
    """Waits until `count` lines with this part have been written."""
    received = bytearray()

    def complete():
        received.extend(read_available(reader))
        return received.count(part) == count
    wait_for(complete, lambda: f'{count} lines with {part}: {received}')


def test_log_reader_may_end(site, tmp_path, loop):
    port = server_kit.free_port()
    fifo = tmp_path / 'fifo'
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'root': site}], loop=loop,
                               http={'access_log': {'path': str(fifo), 'format': 'proof'}, 'keepalive_requests': '1000000'})
    server.start([port])
    try:
        client = http1.connect(port, timeout=20)
        for name in ('first', 'second'):
            for _ in range(20):
                assert client.get(f'/one.txt?{name}').status == 200
            reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
            wait_for_lines(reader, f'/one.txt?{name}|'.encode(), 20)
            os.close(reader)
    finally:
        server.stop()


def test_access_log_off_creates_no_file(site, tmp_path, loop):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'root': site}], loop=loop,
                               http={'access_log': 'off'}).start([port])
    assert http1.connect(port).get('/one.txt').status == 200
    server.stop()
    assert not os.path.exists(server.access_path)


@pytest.mark.parametrize('template, expected', [
    ('$request_method $uri $args', 'GET /echo a=b'), ('$host', 'localhost'), ('$arg_a', 'b'), ('$scheme', '{scheme}'),
    ('$is_args$query_string', '?a=b'), ('$request_uri', '/echo?a=b'), ('$http_x_test', 'tested'), ('$cookie_name', 'value'),
    ('$remote_addr', '127.0.0.1'), ('$server_addr:$server_port', '127.0.0.1:{port}'), ('$server_protocol', http1.VERSION),
    ('$server_name', 'localhost'), ('${host}x', 'localhostx'), ('$request', f'GET /echo?a=b {http1.VERSION}'), ('$https', '{https}'),
    ('$ssl_server_name', '{sni}'), ('$document_uri', '/echo'), ('$connection_requests', '1'), ('$content_length', ''),
    ('$ssl_protocol', '{protocol}')])
def test_variables_have_the_values_of_the_request(launch, loop, transport, template, expected):
    served = launch(loop, transport, server={'location': {'= /echo': {'return': f'200 "[{template}]"'}}})
    body = served.connect(promoted=False).fetch('GET', '/echo?a=b', [('X-Test', 'tested'), ('Cookie', 'other=1; name=value')]).body.decode()
    tls = transport != 'plain'
    assert body == '[' + expected.format(scheme=served.scheme, port=served.port, https='on' if tls else '',
                                         sni='localhost' if tls else '', protocol='TLSv1.3' if tls else '') + ']'
