"""HTTP/2 (RFC 9113): over TLS by ALPN, and over plain connections by prior knowledge."""
import collections
import gzip
import hashlib
import json
import os
import re
import struct
import subprocess

import pytest

from kit import http1, http2, server as server_kit
from kit.lifetime import wait_for
from kit.server import read_text

TIMEOUT = 30 * server_kit.PATIENCE
HTTP = {'log_format': {'proof': '$server_protocol|$request|$status|$body_bytes_sent'},
        'limit_req_zone': '$uri zone=minute:64k rate=1r/m', 'limit_conn_zone': '$uri zone=open:64k'}


@pytest.fixture(scope='module')
def passwords(base):
    path = base / 'http2-users'
    digest = subprocess.run(['openssl', 'passwd', '-6', 'wonder'], capture_output=True, text=True, check=True).stdout
    path.write_text(f'anna:{digest}')
    path.chmod(0o644)
    return str(path)


@pytest.fixture
def locations(passwords):
    return {
        '= /no-response': {'return': '444'},
        '= /padded': {'add_header': {'X-Padded': ' $arg_a ', 'X-Blank': ' $arg_b '}, 'return': '204'},
        '= /moved': {'return': '301 /one.txt'},
        '= /protocol': {'return': '200 "$server_protocol|$scheme|$host|$request|$http_cookie|$http_x_repeated"'},
        '= /numbers': {'return': '200 "$http2|$http2_stream_id|$connection_requests"'},
        '= /hints': {'preload': ['/style.css as=style'], 'default_type': 'text/html', 'return': '200 <p>page'},
        '= /65537.bin': {'gzip': 'on', 'gzip_types': '*'},
        '= /limited': {'limit_req': 'zone=minute', 'return': '200 ok'},
        '= /single': {'limit_conn': 'open 1', 'rewrite': '^ /1048576.bin break'},
        '= /closed': {'auth_basic': 'Members', 'auth_basic_user_file': passwords, 'return': '200 "in $remote_user"'},
        '= /paged': {'error_page': '404 /one.txt'},
        '= /inner': {'rewrite': '^ /ten.txt last'},
    }


@pytest.fixture
def served(launch, loop, transport, locations):
    return launch(loop, transport, server={'location': locations}, http=HTTP)


def open_client(served, **options):
    return http2.connect(served.port, served.transport, TIMEOUT, **options)


@pytest.fixture
def client(served):
    made = open_client(served)
    yield made
    made.close()


def content(served, name):
    with open(os.path.join(served.root, name), 'rb') as stream:
        return stream.read()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def test_head_has_the_fields_of_get(served, client):
    response = client.fetch('/one.txt')
    assert (response.status, bytes(response.body), response.headers['content-length']) == (200, b'one\n', '4')
    assert 'connection' not in response.headers and 'transfer-encoding' not in response.headers
    head = client.fetch('/one.txt', method='HEAD')
    assert head.status == 200 and not head.body and head.headers['content-length'] == '4'
    assert head.headers['etag'] == response.headers['etag']
    assert client.fetch('/empty.txt').status == 200
    big = client.fetch('/1048576.bin')
    assert bytes(big.body) == content(served, '1048576.bin')


def test_conditions_and_ranges(served, client):
    response = client.fetch('/ten.txt')
    unchanged = client.fetch('/ten.txt', headers=[('if-none-match', response.headers['etag'])])
    assert unchanged.status == 304 and not unchanged.body
    part = client.fetch('/ten.txt', headers=[('range', 'bytes=2-4')])
    assert (part.status, bytes(part.body), part.headers['content-range']) == (206, b'234', 'bytes 2-4/10')
    parts = client.fetch('/65536.bin', headers=[('range', 'bytes=0-9,65530-')])
    boundary = re.fullmatch('multipart/byteranges; boundary=(.*)', parts.headers['content-type']).group(1).strip('"').encode()
    pieces = [piece.split(b'\r\n\r\n', 1)[1] for piece in bytes(parts.body).split(b'--' + boundary)[1:-1]]
    whole = content(served, '65536.bin')
    assert parts.status == 206 and pieces == [whole[:10] + b'\r\n', whole[65530:] + b'\r\n']
    assert len(parts.body) == int(parts.headers['content-length'])
    assert client.fetch('/ten.txt', headers=[('range', 'bytes=20-')]).status == 416


def test_errors_and_redirects(client):
    missing = client.fetch('/missing')
    assert missing.status == 404 and b'404' in missing.body
    moved = client.fetch('/moved')
    assert moved.status == 301 and moved.headers['location'].endswith('/one.txt')
    folder = client.fetch('/folder')
    assert folder.status == 301 and folder.headers['location'].endswith('/folder/')
    assert client.fetch('/one.txt', method='DELETE').status == 405
    assert client.fetch('/one.txt', method='PROPFIND').status == 501
    assert client.fetch('/../../etc/passwd').status == 400


def test_values_have_no_whitespace_at_their_ends(client):
    """RFC 9113 8.2.1; hyper-h2 rejects such a response."""
    response = client.fetch('/padded?a=x')
    assert (response.status, response.headers['x-padded'], response.headers['x-blank']) == (204, 'x', '')


def test_status_444_resets_the_stream_only(client):
    """In HTTP/1.1, 444 closes the connection; in HTTP/2 it resets the stream, because other streams use the connection."""
    other = client.request('/1048576.bin')
    closed = client.fetch('/no-response')
    assert closed.reset is not None and closed.status is None
    assert len(client.wait(other).body) == 1 << 20
    assert client.fetch('/one.txt').status == 200


def test_early_hints_and_gzip(served, client):
    hinted = client.fetch('/hints', headers=[('sec-fetch-mode', 'navigate')])
    assert hinted.interims == [[(':status', '103'), ('link', '</style.css>; rel=preload; as=style')]]
    assert client.fetch('/hints').interims == []
    assert hinted.status == 200 and bytes(hinted.body) == b'<p>page'
    packed = client.fetch('/65537.bin', headers=[('accept-encoding', 'gzip')])
    assert packed.headers['content-encoding'] == 'gzip' and 'content-length' not in packed.headers
    assert gzip.decompress(bytes(packed.body)) == content(served, '65537.bin')


def test_variables_and_cookies(served, client):
    """Cookie crumbs are joined (RFC 9113 8.2.3)."""
    response = client.fetch('/protocol', headers=[('cookie', 'a=1'), ('cookie', 'b=2; c=3'), ('cookie', 'd=4')], authority='LOCALHOST')
    scheme = 'http' if served.transport == 'plain' else 'https'
    assert response.body.decode() == f'HTTP/2.0|{scheme}|localhost|GET /protocol HTTP/2.0|a=1; b=2; c=3; d=4|'
    repeated = client.fetch('/protocol', headers=[('x-repeated', '1'), ('x-repeated', '2')])
    assert repeated.body.decode().endswith('|1, 2')


def test_variables_number_streams_and_requests(served, client):
    name = 'h2c' if served.transport == 'plain' else 'h2'
    assert [client.fetch('/numbers').body.decode() for _ in range(3)] == [f'{name}|1|1', f'{name}|3|2', f'{name}|5|3']


def test_access_log_names_http2(served, client):
    client.fetch('/ten.txt?logged-h2')
    wait_for(lambda: 'HTTP/2.0|GET /ten.txt?logged-h2 HTTP/2.0|200|10\n' in read_text(served.server.access_path), 'the line')


PATHS = {'plain': ('plain', 'plain-mapped'), 'user': ('user', 'user'), 'ktls': ('ktls-send', 'ktls-mapped')}


def test_access_log_has_the_transfer_of_each_stream(launch, loop, transport):
    """The response of bytes ends between two spans of the file."""
    http = {'log_format': {'proof': '$request_uri|$tls_path|$bytes_sent|$body_bytes_sent|$bytes_zero_copy'}}
    served = launch(loop, transport, server={'location': {'= /bytes': {'return': '200 "only bytes"'}}}, http=http)
    client = open_client(served, widen=False, connection_window=4 << 20)
    query = f'?{transport}'                 # both transports share a server
    file = client.request('/1048576.bin' + query)
    client.until(lambda: len(client.responses[file].body) == http2.WINDOW)
    assert bytes(client.fetch('/bytes' + query).body) == b'only bytes'
    client.h2.increment_flow_control_window(2 << 20, file)
    client.flush()
    assert len(client.wait(file).body) == 1 << 20
    client.close()
    wait_for(lambda: read_text(served.server.access_path).count(query) == 2, 'two lines')
    lines = {line[0]: line[1:] for line in (row.split('|') for row in read_text(served.server.access_path).splitlines())}
    of_bytes, of_files = PATHS[transport]
    path, sent, body, zero_copy = lines['/bytes' + query]
    assert (path, body, zero_copy) == (of_bytes, '10', '0') and 10 < int(sent) < 400
    path, sent, body, zero_copy = lines['/1048576.bin' + query]
    assert (path, body) == (of_files, '1048576')
    if transport == 'user':
        assert zero_copy == '0'
    else:                                   # the frames that contain the last page are copied
        assert (1 << 20) - 2 * 16375 <= int(zero_copy) < 1 << 20
    assert (1 << 20) + 65 * 9 < int(sent) < (1 << 20) + 2000


def test_modules_decide_for_each_stream(client):
    responses = client.wait(client.request('/limited'), client.request('/limited'))
    assert 429 in [response.status for response in responses] and {response.status for response in responses} <= {200, 429}
    assert client.fetch('/closed').status == 401
    assert client.fetch('/closed', headers=[('authorization', 'Basic YW5uYTp3b25kZXI=')]).body == b'in anna'
    paged = client.fetch('/paged')
    assert (paged.status, bytes(paged.body)) == (404, b'one\n')
    assert client.fetch('/inner').body == b'0123456789'


def test_limit_conn_counts_streams(served):
    client = open_client(served, widen=False, connection_window=4 << 20)
    first = client.request('/single')
    client.until(lambda: client.responses[first].body)
    assert client.fetch('/single').status == 429
    client.h2.reset_stream(first)
    client.flush()
    wait_for(lambda: client.fetch('/single', method='HEAD').status == 200, 'the count falls with the stream')
    client.close()


def test_hundred_concurrent_streams(served):
    whole = sha256(content(served, '65537.bin'))
    client = open_client(served)
    for response in client.wait(*[client.request('/65537.bin') for _ in range(100)]):
        assert sha256(response.body) == whole
    client.close()


def test_window_of_one_byte_limits_data_frames(served):
    client = open_client(served, settings={http2.h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 1})
    responses = client.wait(client.request('/1024.bin'), client.request('/ten.txt'))
    assert [bytes(response.body) for response in responses] == [content(served, '1024.bin'), b'0123456789']
    assert client.longest_data == 1
    client.close()


def test_negative_window_sends_no_data(served):
    """RFC 9113 6.9.2."""
    frames = http2.raw(served.port, served.transport, TIMEOUT, settings=struct.pack('!HI', 4, 20000))
    frames.send(frames.head(1, '/65536.bin'))
    received = 0
    while received < 20000:
        received += len(frames.until(http2.DATA, stream=1)[3])
    frames.send(http2.frame(http2.SETTINGS, 0, 0, struct.pack('!HI', 4, 10000)) + http2.number(http2.WINDOW_UPDATE, 1, 10000) +
                http2.frame(http2.PING, 0, 0, b'the end.'))
    assert frames.until(http2.DATA, http2.PING)[0] == http2.PING, 'the window is 0'
    frames.send(http2.number(http2.WINDOW_UPDATE, 1, 1))
    assert len(frames.until(http2.DATA, stream=1)[3]) == 1
    frames.close()


def test_rst_stream_ends_one_stream(served):
    client = open_client(served, widen=False, connection_window=4 << 20)
    first, second = client.request('/1048576.bin'), client.request('/1048576.bin')
    client.until(lambda: client.responses[first].body and client.responses[second].body)
    client.h2.reset_stream(first, http2.CANCEL)
    client.h2.increment_flow_control_window(4 << 20, second)
    client.flush()
    assert sha256(client.wait(second).body) == sha256(content(served, '1048576.bin'))
    assert client.fetch('/one.txt').body == b'one\n'
    client.close()


def test_zero_window_times_out(launch, loop, transport):
    served = launch(loop, transport, server={'send_timeout': '1s', 'lingering_timeout': '1s'})
    client = open_client(served, widen=False)
    stalled = client.request('/1048576.bin')
    response = client.wait(stalled)
    assert response.reset == http2.CANCEL and len(response.body) == http2.WINDOW
    client.h2.increment_flow_control_window(1 << 20)
    client.flush()
    assert client.fetch('/one.txt').status == 200, 'the connection lives'
    client.close()


def test_http2_off_selects_http1(launch, loop, transport):
    """With HTTP/2 off, ALPN selects http/1.1, and a preface gets an HTTP/1.1 error response."""
    served = launch(loop, transport, server={'http2': 'off'})
    if transport == 'plain':
        client = http1.connect(served.port, timeout=TIMEOUT)
        client.send(http2.PREFACE + http2.frame(http2.SETTINGS))
        assert client.head().status == 505
    else:
        context = http1.tls_context()
        context.set_alpn_protocols(['h2', 'http/1.1'])
        client = http1.connect(served.port, transport, timeout=TIMEOUT, context=context)
        assert client.stream.selected_alpn_protocol() == 'http/1.1'
        assert client.get('/one.txt').status == 200
    client.close()


@pytest.mark.http1('a client of it')
def test_http1_clients_are_served(served):
    client = served.connect()
    assert client.get('/protocol').body.startswith(b'HTTP/1.1|')
    client.close()


def test_preface_arrives_byte_by_byte(served):
    sock = http2.dial(served.port, served.transport, TIMEOUT)
    whole = http2.PREFACE + http2.frame(http2.SETTINGS) + http2.frame(http2.PING, 0, 0, b'12345678')
    for byte in whole:
        sock.sendall(bytes([byte]))
    frames = http2.Frames.__new__(http2.Frames)
    frames.sock, frames.buffer, frames.ended = sock, bytearray(), False
    assert frames.next()[0] == http2.SETTINGS
    assert frames.until(http2.PING)[3] == b'12345678'
    frames.close()


def test_http2_max_concurrent_streams_is_announced(launch, loop, transport):
    served = launch(loop, transport, server={'http2_max_concurrent_streams': 2})
    frames = http2.raw(served.port, served.transport, TIMEOUT)
    settings = frames.until(http2.SETTINGS)[3]
    values = dict(struct.iter_unpack('!HI', settings))
    assert values[3] == 2
    frames.send(b''.join(frames.head(stream, '/1048576.bin') for stream in (1, 3, 5)))
    refusal = frames.until(http2.RST_STREAM)
    assert refusal[2] == 5 and refusal[3] == struct.pack('!I', http2.REFUSED_STREAM)
    frames.send(http2.number(http2.RST_STREAM, 1, http2.CANCEL) + frames.head(7, '/one.txt'))
    assert frames.until(http2.HEADERS, stream=7)
    frames.close()


def status(served):
    """The metrics of the status page; those with a label that is not printed yet are 0."""
    client = served.connect()
    page = json.loads(client.get('/status').body)
    client.close()
    return {name: collections.Counter(value) if isinstance(value, dict) else value for name, value in page.items()}


@pytest.mark.http1('a client of it')
def test_status_page_counts_streams(launch, loop, transport):
    served = launch(loop, transport, server={'http2_max_concurrent_streams': 2, 'location': {'= /status': {'status': 'json'}}})
    before = status(served)

    def grown(name, label=None):
        now = status(served)[name]
        return now - before[name] if label is None else now[label] - before[name][label]
    frames = http2.raw(served.port, served.transport, TIMEOUT)
    frames.send(b''.join(frames.head(stream, '/1048576.bin') for stream in (1, 3, 5)))
    assert frames.until(http2.RST_STREAM)[2] == 5
    assert grown('http2_streams') == grown('http2_streams_total') == grown('requests_by_protocol_total', 'HTTP/2.0') == 2
    assert grown('http2_resets_sent_total', 'REFUSED_STREAM') == 1
    frames.send(http2.number(http2.RST_STREAM, 1, http2.CANCEL) + http2.frame(http2.DATA, 0, 0, b'x'))
    assert frames.goaway() == http2.PROTOCOL_ERROR
    frames.close()
    wait_for(lambda: grown('http2_streams') == 0, 'the streams of a closed connection are counted')
    assert grown('http2_resets_received_total', 'CANCEL') == grown('http2_connection_errors_total', 'PROTOCOL_ERROR') == 1


def test_http2_chunk_size_limits_data_frames(launch, loop, transport):
    served = launch(loop, transport, server={'http2_chunk_size': '1k'})
    client = open_client(served)
    assert bytes(client.fetch('/65536.bin').body) == content(served, '65536.bin')
    assert client.longest_data == 1024
    client.close()
