"""HTTP/1.1 on the wire: pipelining, keep-alive, HEAD, Expect, slow and broken requests, limits (RFC 9110, 9112)."""
import re
import socket
import time

import pytest
from kit import http1, http2, server as server_kit

GET = b'GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n'


def test_pipelined_requests_are_answered_in_order(client):
    targets = [b'/one.txt', b'/ten.txt', b'/empty.txt', b'/nowhere', b'/1024.bin', b'/65536.bin'] * 20
    client.send(b''.join(GET % target for target in targets))
    bodies = {}
    for target in targets:
        response = client.read()
        assert response.status == (404 if target == b'/nowhere' else 200)
        body = re.sub(b'<code>[0-9a-f]{32}</code>', b'', response.body)     # each error page has the id of its request
        assert bodies.setdefault(target, body) == body
    assert bodies[b'/one.txt'] == b'one\n' and bodies[b'/empty.txt'] == b''


def test_pipelined_requests_with_bodies(client):
    body = b'POST /one.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n0123456789'
    chunked = b'GET /ten.txt HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n'
    client.send((body + chunked + GET % b'/one.txt') * 5)
    for _ in range(5):
        assert client.read().status == 405
        assert client.read().body == b'0123456789'
        assert client.read().body == b'one\n'


def test_request_byte_by_byte(client):
    request = (b'\r\nGET /folder/../one.txt?x HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n'
               b'5;a="b"\r\nhello\r\n0\r\nX: y\r\n\r\n' + GET % b'/ten.txt')
    for at in range(len(request)):
        client.send(request[at:at + 1])
    assert client.read().body == b'one\n'
    assert client.read().body == b'0123456789'


@pytest.mark.parametrize('size', [2, 3, 7, 50])
def test_requests_in_small_segments(client, size):
    request = b''.join(GET % target for target in (b'/one.txt', b'/ten.txt', b'/one.txt'))
    for at in range(0, len(request), size):
        client.send(request[at:at + size])
        time.sleep(0.001)
    assert [client.read().body for _ in range(3)] == [b'one\n', b'0123456789', b'one\n']


def test_head_has_the_fields_of_get(client):
    for target in ('/one.txt', '/65536.bin', '/', '/folder', '/nowhere', '/.hidden', '/empty.txt'):
        got, head = client.get(target), client.fetch('HEAD', target)
        assert head.status == got.status
        ignored = {'date'}
        assert {k: v for k, v in head.headers.items() if k not in ignored} == \
            {k: v for k, v in got.headers.items() if k not in ignored}
    assert client.alive()


def test_head_with_range_and_conditions(client):
    etag = client.get('/ten.txt').headers['etag']
    assert client.fetch('HEAD', '/ten.txt', [('If-None-Match', etag)]).status == 304
    response = client.fetch('HEAD', '/ten.txt', [('Range', 'bytes=0-3')])
    assert response.status == 200      # RFC 9110 14.2: Range is defined for GET only
    assert client.alive()


def test_responses_have_date_and_framing(client):
    for target in ('/one.txt', '/nowhere', '/folder', '/empty.txt'):
        response = client.get(target)
        assert response.headers['date'].endswith(' GMT')
        assert 'content-length' in response.headers or 'transfer-encoding' in response.headers


def test_options_asterisk_is_answered_without_allow(client):
    response = client.fetch('OPTIONS', '*')
    assert response.status == 204
    assert 'allow' not in response.headers      # Allow requires a location, which OPTIONS * does not have
    assert client.alive()


def test_status_405_has_allow(client):
    response = client.fetch('POST', '/one.txt', body=b'hello')
    assert response.status == 405
    assert {'GET', 'HEAD'} <= {word.strip() for word in response.headers['allow'].split(',')}
    assert client.alive()


def test_expect_continue_then_body(client):
    """The server may send the final status at once, because it does not read the body, or send 100 (Continue) first. In both cases the
    next request is parsed correctly."""
    client.send(b'POST /one.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n')
    response = client.head()
    if response.status == 100:
        client.send(b'hello')
        response = client.read()
        assert response.status == 405
    else:
        assert response.status == 405
        client.read_exactly(int(response.headers['content-length']))
        if not response.closes:
            client.send(b'hello')
    if not response.closes:
        assert client.alive()


def test_http_1_0_requests(served):
    client = served.connect()
    client.send(b'GET /one.txt HTTP/1.0\r\n\r\n')
    response = client.read()
    assert response.status == 200 and response.body == b'one\n'
    assert 'transfer-encoding' not in response.headers
    assert client.at_end()


def test_connection_close_is_honoured(served):
    client = served.connect()
    response = client.get('/one.txt', Connection='close')
    assert response.closes and client.at_end()


def test_half_closed_client_receives_the_response(served):
    """A client that half-closes after its request (RFC 9112 9.6) receives the response."""
    if served.transport != 'plain':
        pytest.skip('TLS has its own close')
    client = served.connect()
    client.send(GET % b'/65536.bin')
    client.stream.shutdown(socket.SHUT_WR)
    assert len(client.read().body) == 65536
    assert client.at_end()


def test_disconnections_at_each_stage(served):
    for bytes_sent in (b'', b'GET', GET % b'/1048576.bin', b'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhal'):
        for _ in range(10):
            client = served.connect()
            client.send(bytes_sent)
            client.close()
    client = served.connect()
    assert client.alive()


def test_reset_during_a_response(served):
    for _ in range(10):
        client = served.connect()
        client.send((GET % b'/1048576.bin') * 4)
        client.head()
        raw = client.stream
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0') if hasattr(raw, 'setsockopt') else None
        client.close()
    client = served.connect()
    assert client.alive()


def test_keepalive_requests_closes_the_connection(launch, loop, transport):
    served = launch(loop, transport, server={'keepalive_requests': '3'})
    client = served.connect(promoted=False)
    assert [client.get('/one.txt').closes for _ in range(3)] == [False, False, True]
    assert client.at_end()


def test_keepalive_timeout_closes_the_connection(launch, loop, transport):
    served = launch(loop, transport, server={'keepalive_timeout': '1s'})
    client = served.connect()
    client.get('/one.txt')
    assert client.at_end()


def test_header_timeout_is_408(launch, loop, transport):
    served = launch(loop, transport, server={'client_header_timeout': '1s'})
    client = served.connect()
    client.send(b'GET /one.txt HTTP/1.1\r\nHost: loc')
    response = client.read()
    assert response.status == 408 and response.closes and client.at_end()


def test_single_bytes_do_not_extend_the_header_timeout(launch, loop):
    served = launch(loop, 'plain', server={'client_header_timeout': '1s'})
    client = served.connect()
    client.send(b'G')
    usual_timeout = client.stream.gettimeout()
    client.stream.settimeout(0.1)
    for _ in range(200):
        try:
            client.fill()
            break
        except TimeoutError:
            client.send(b'E')
    else:
        pytest.fail('single bytes extend the timeout')
    client.stream.settimeout(usual_timeout)
    assert client.read().status == 408


def test_silent_connection_is_closed_without_a_response(launch, loop, transport):
    served = launch(loop, transport, server={'client_header_timeout': '1s'})
    assert served.connect().at_end()


def test_client_max_body_size_is_413(launch, loop, transport):
    served = launch(loop, transport, server={'client_max_body_size': '10'})
    client = served.connect()
    assert client.fetch('POST', '/one.txt', body=b'0123456789').status == 405
    response = client.fetch('POST', '/one.txt', body=b'0123456789a')
    assert response.status == 413
    client = served.connect()
    client.send(b'POST /one.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n')
    assert client.head().status == 413


def test_large_client_header_buffers_limit_is_431(launch, loop, transport):
    served = launch(loop, transport, server={'client_header_buffer_size': '1k', 'large_client_header_buffers': '4 8k'})
    client = served.connect()
    assert client.get('/one.txt?' + 'a' * 7000).status == 200
    assert client.get('/one.txt', X_Long='a' * 7000).status == 200
    assert client.fetch('GET', '/one.txt', [(f'X-{n}', 'a' * 7000) for n in range(3)]).status == 200
    assert client.get('/one.txt?' + 'a' * 9000).status == 414


def test_max_headers_is_431(launch, loop):
    served = launch(loop, 'plain', server={'max_headers': '10'})
    client = served.connect()
    assert client.fetch('GET', '/one.txt', [(f'X-{n}', '1') for n in range(9)]).status == 200
    assert client.fetch('GET', '/one.txt', [(f'X-{n}', '1') for n in range(10)]).status == 431
    client = http2.connect(served.port)
    assert client.fetch('/one.txt', headers=[(f'x-{n}', '1') for n in range(9)]).status == 200
    assert client.fetch('/one.txt', headers=[(f'x-{n}', '1') for n in range(10)]).status == 431, ':authority counts as Host does'
    client.close()


def test_host_selects_the_server(site, certificate, tmp_path, loop):
    port = server_kit.free_port()
    folders = {}
    names = {'first': ['first.test'], 'exact': ['www.exact.test'], 'star': ['*.exact.test'], 'tail': ['www.tail.*']}
    blocks = []
    for folder, server_names in names.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'who').write_text(folder)
        folders[folder] = str(tmp_path / folder)
        blocks.append({'listen': [f'127.0.0.1:{port}'], 'server_name': server_names, 'root': folders[folder]})
    server = server_kit.Server(tmp_path / 'run', blocks, loop=loop).start([port])
    try:
        from kit import http1
        client = http1.connect(port)
        for host, expected in (('first.test', 'first'), ('www.exact.test', 'exact'), ('WWW.EXACT.TEST:80', 'exact'),
                               ('a.exact.test', 'star'), ('a.b.exact.test', 'star'), ('exact.test', 'first'),
                               ('www.tail.org', 'tail'), ('nobody', 'first'),
                               ('www.exact.test.', 'exact')):
            assert client.get('/who', Host=host).body == expected.encode(), host
        client.close()
    finally:
        server.stop()
