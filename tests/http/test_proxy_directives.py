"""Directives that change the request to the upstream server, or the response to the client."""
import time

import pytest
from kit.lifetime import wait_for
from kit.upstream import Upstream

BODY = bytes(range(256)) * 2048     # 512 KiB
HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n'


def echo_request(peer):
    """Responds with the received header section and body."""
    body = peer.read_body()
    text = '\n'.join(peer.request.head).encode('latin-1') + b'\n\n' + body
    peer.send((HEAD + f'Content-Length: {len(text)}\r\n\r\n').encode() + text)
    return True


def whole(peer):
    """Sends the whole representation: this server does not support ranges."""
    peer.read_body()
    peer.send(HEAD + f'ETag: "e"\r\nContent-Length: {len(BODY)}\r\nCache-Control: max-age=60\r\n\r\n')
    if peer.request.method != 'HEAD':
        peer.send(BODY)
    return True


def ranged(peer):
    """Supports a single range."""
    peer.read_body()
    range_field = peer.request.header('range')
    first, last = (int(part) for part in range_field.split('=')[1].split('-')) if range_field else (0, len(BODY) - 1)
    part = BODY[first:last + 1]
    status = f'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{last}/{len(BODY)}\r\n' if range_field else 'HTTP/1.1 200 OK\r\n'
    peer.send(status + f'ETag: "r"\r\nCache-Control: max-age=60\r\nContent-Length: {len(part)}\r\n\r\n')
    peer.send(part)
    return True


def chunked(peer):
    peer.read_body()
    peer.send(HEAD + 'Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n')
    return True


def closes_without_response(peer):
    peer.read_body()


def sends_client_address(peer):
    """Responds with the address of the connection and the number of its request."""
    peer.read_body()
    text = f'{peer.stream.getpeername()[0]} {peer.number}'
    peer.send(HEAD + f'Content-Length: {len(text)}\r\n\r\n{text}')
    return True


@pytest.fixture(scope='module')
def upstream():
    made = Upstream({'/whole': whole, '/far': ranged, '/chunked': chunked, '/lost': closes_without_response}, name='one')
    for path in ('/set', '/set-nothing', '/no-body', '/no-fields', '/usual', '/again'):
        made.scripts[path] = echo_request
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def client(launch, loop, transport, upstream, tmp_path):
    to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}
    cache = {'path': str(tmp_path / 'cache'), 'keys_zone': 'one:1m'}
    served = launch(loop, transport, http={'proxy_cache_path': cache, 'upstream': {'two': {
        'server': [f'127.0.0.1:{upstream.port} max_fails=0', f'127.0.0.1:{upstream.port} max_fails=0']}}}, server={'location': {
            '/usual': to,
            '/set': {**to, 'proxy_set_body': '<$arg_who>'},
            '/set-nothing': {**to, 'proxy_set_body': '$arg_nobody'},
            '/no-body': {**to, 'proxy_pass_request_body': False},
            '/no-fields': {**to, 'proxy_pass_request_headers': False, 'proxy_set_header': 'X-Own yes'},
            '/lost': {'proxy_pass': 'http://two', 'proxy_set_body': 'again', 'proxy_next_upstream': ['error', 'non_idempotent']},
            '/whole': {**to, 'proxy_force_ranges': True},
            '/chunked': {**to, 'proxy_force_ranges': True},
            '/unforced': {'proxy_pass': to['proxy_pass'] + '/whole'},
            '/kept': {'proxy_pass': to['proxy_pass'] + '/whole', 'proxy_buffering': True, 'proxy_force_ranges': True},
            '/far': {**to, 'proxy_cache': 'one', 'proxy_cache_max_range_offset': '100k', 'add_header': 'X-Cache $upstream_cache_status'},
            '/paced': {'proxy_pass': to['proxy_pass'] + '/whole', 'proxy_limit_rate': '$arg_rate'},
            '/paced-kept': {'proxy_pass': to['proxy_pass'] + '/whole', 'proxy_limit_rate': '512k', 'proxy_buffering': True},
        }})
    made = served.connect(timeout=60)
    made.server = served.server
    yield made
    made.close()


@pytest.mark.parametrize('method, body', [('GET', b''), ('POST', b'of the client'), ('PUT', BODY[:100000])])
def test_proxy_set_body_replaces_the_body(client, upstream, method, body):
    response = client.fetch(method, '/set?who=me', body=body)
    assert response.status == 200 and response.body.endswith(b'\n\n<me>')
    assert upstream.last().header('content-length') == '4'


def test_empty_proxy_set_body(client, upstream):
    assert client.fetch('POST', '/set-nothing', body=b'body').body.endswith(b'\n\n')
    assert upstream.last().header('content-length') == '0'
    assert client.get('/usual').status == 200


def test_proxy_set_body_is_sent_to_the_next_server(client, upstream):
    before = len(upstream.requests)
    assert client.fetch('POST', '/lost', body=b'x').status == 502
    requested = upstream.requests[before:]
    assert [request.body for request in requested] == [b'again', b'again']


def test_proxy_pass_request_body_off(client, upstream):
    assert client.fetch('POST', '/no-body', body=b'secret').body.endswith(b'\n\n')
    assert upstream.last().header('content-length') == '0'
    client.send('POST /no-body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nsecret\r\n0\r\n\r\n')
    assert client.read('POST').body.endswith(b'\n\n')
    assert upstream.last().header('transfer-encoding') is None
    assert client.fetch('POST', '/usual', body=b'body').body.endswith(b'\n\nbody')


def test_proxy_pass_request_headers_off(client, upstream):
    assert client.fetch('POST', '/no-fields', [('X-Secret', '1'), ('Cookie', 'a=b')], body=b'body').body.endswith(b'\n\nbody')
    names = {name.lower() for name, _ in upstream.last().lines}
    assert names == {'host', 'via', 'x-own', 'content-length', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded'}
    client.fetch('GET', '/usual', [('X-Secret', '1')])
    assert upstream.last().header('x-secret') == '1'


@pytest.mark.parametrize('path', ['/whole', '/kept'])
def test_force_ranges_answers_206(client, path):
    for spec, first, last in (('0-0', 0, 0), ('100-299999', 100, 299999), ('-5', len(BODY) - 5, len(BODY) - 1),
                               ('524280-', 524280, len(BODY) - 1), ('0-', 0, len(BODY) - 1)):
        response = client.fetch('GET', path, [('Range', f'bytes={spec}')])
        assert response.status == 206 and response.body == BODY[first:last + 1], spec
        assert response.headers['content-range'] == f'bytes {first}-{last}/{len(BODY)}'
    response = client.get(path)
    assert response.status == 200 and response.body == BODY and response.headers['accept-ranges'] == 'bytes'


def test_force_ranges_with_invalid_ranges(client):
    response = client.fetch('GET', '/whole', [('Range', f'bytes={len(BODY)}-')])
    assert response.status == 416 and response.headers['content-range'] == f'bytes */{len(BODY)}'
    for fields in ([('Range', 'bytes=0-1, 5-6')], [('Range', 'lines=0-1')], [('Range', 'bytes=0-1'), ('If-Range', '"other"')]):
        response = client.fetch('GET', '/whole', fields)
        assert response.status == 200 and response.body == BODY, fields
    assert client.fetch('GET', '/whole', [('Range', 'bytes=0-1'), ('If-Range', '"e"')]).body == BODY[:2]
    assert client.fetch('GET', '/unforced', [('Range', 'bytes=0-1')]).status == 200
    assert client.fetch('GET', '/chunked', [('Range', 'bytes=0-1')]).body == b'abcd'
    head = client.fetch('HEAD', '/whole', [('Range', 'bytes=0-1')])
    assert head.status == 200 and head.headers['content-length'] == str(len(BODY))


def test_distant_range_is_not_fetched_completely(client, upstream):
    for _ in range(2):
        response = client.fetch('GET', '/far', [('Range', 'bytes=200000-200009')])
        assert response.status == 206 and response.body == BODY[200000:200010] and response.headers['x-cache'] == 'MISS'
        assert upstream.last().header('range') == 'bytes=200000-200009'
    assert client.fetch('GET', '/far', [('Range', 'bytes=10-19')]).headers['x-cache'] == 'MISS'
    assert upstream.last().header('range') is None

    def stored():
        response = client.fetch('GET', '/far', [('Range', 'bytes=200000-200009')])
        assert response.status == 206 and response.body == BODY[200000:200010]
        return response.headers['x-cache'] == 'HIT'
    wait_for(stored, 'the complete response is stored')


@pytest.mark.parametrize('path', ['/paced?rate=512k', '/paced-kept'])
def test_proxy_limit_rate_is_not_exceeded(client, path):
    began = time.monotonic()
    response = client.get(path)
    took = time.monotonic() - began
    assert response.body == BODY
    assert took >= (len(BODY) - 262144) / 524288      # the first 256 KiB may arrive at once, the rest follows at the rate


def test_proxy_limit_rate_of_zero_is_unlimited(client):
    for rate in ('', '0', 'nonsense', '999g'):
        assert client.get(f'/paced?rate={rate}').body == BODY
    assert '"nonsense" is not a size' in client.server.errors()


def test_disconnection_during_a_throttled_body(client, upstream):
    client.send('GET /paced?rate=1k HTTP/1.1\r\nHost: localhost\r\n\r\n')
    client.fill()
    client.close()
    assert client.server.process.poll() is None


IMITATIONS = ['X_Forwarded_For', 'x_forwarded-proto', 'X-Forwarded_Host', 'X_Real_IP', 'Content_Length', 'Transfer_Encoding', 'Proxy_Authorization',
              'If_None_Match', 'Accept_Encoding']


@pytest.mark.parametrize('trusted', [False, True])
def test_underscores_do_not_forge_server_fields(launch, loop, transport, upstream, trusted):
    """CGI applications get the same variable for a field name with "-" and with "_"."""
    served = launch(loop, transport, http={'underscores_in_headers': 'on', **({'set_real_ip_from': '127.0.0.1'} if trusted else {})}, server={
        'location': {'/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_set_header': ['X-User bob', 'X_Role guest', 'X-None ""'],
                           'add_header': 'X-Seen "<$http_x_forwarded_for>" always'}}})
    client = served.connect()
    fields = [(name, '7') for name in IMITATIONS]
    response = client.fetch('GET', '/usual', [*fields, ('X_User', 'evil'), ('X-Role', 'evil'), ('X_None', 'evil'), ('X_Own', '1')])
    client.close()
    assert response.status == 200 and response.headers['x-seen'] == '<>'
    names = [name.lower() for name, _ in upstream.last().lines]
    assert not {name.lower() for name in IMITATIONS} & set(names)
    assert not {'x_user', 'x-role', 'x_none', 'x-none'} & set(names) and 'x_own' in names
    assert upstream.last().all('X-User') == ['bob'] and upstream.last().all('X_Role') == ['guest']
    assert upstream.last().header('x-forwarded-for') == '127.0.0.1'


def test_underscored_trailers_are_removed(launch, loop, transport, upstream):
    served = launch(loop, transport, http={'underscores_in_headers': 'on'},
                    server={'location': {'/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}}})
    client = served.connect()
    client.send('POST /usual HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX_Forwarded_For: 1.2.3.4\r\nX_Own: 1\r\n\r\n')
    assert client.read('POST').status == 200
    client.close()
    assert upstream.last().trailers == ['X_Own: 1']


def test_connections_are_reused_for_the_same_proxy_bind_only(launch, loop):
    """Connections are reused only for the same local address; a location without one does not use those of another."""
    upstream = Upstream({path: sends_client_address for path in ('/bound', '/same', '/other', '/off', '/family')})
    to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}
    served = launch(loop, 'plain', server={'proxy_bind': '127.0.0.7', 'location': {
        '/bound': to, '/same': {**to, 'proxy_bind': '127.0.0.7'}, '/other': {**to, 'proxy_bind': '127.0.0.8'}, '/off': {**to, 'proxy_bind': 'off'},
        '/family': {**to, 'proxy_bind': '::1'}}})
    client = served.connect()
    responses = [client.get(path).body.decode() for path in ('/bound', '/same', '/other', '/off', '/bound', '/other', '/off')]
    assert [text.split()[0] for text in responses] == ['127.0.0.7', '127.0.0.7', '127.0.0.8', '127.0.0.1', '127.0.0.7', '127.0.0.8', '127.0.0.1']
    first = int(responses[0].split()[1])
    assert [int(text.split()[1]) - first for text in responses] == [0, 1, 0, 0, 2, 1, 1]
    assert client.get('/family').status == 502
    client.close()
    upstream.stop()
