"""HTTP/2 to upstream servers (proxy_http_version: 2): fields, bodies, shared connections, limits, retries and failures."""
import hashlib
import signal
import ssl
import threading

import h2.settings
import pytest

from kit import broken_records, http1, http2, server as server_kit, site as site_kit
from kit.h2_upstream import H2Upstream
from kit.lifetime import wait_for
from kit.upstream import Upstream

TIMEOUT = 60 * server_kit.PATIENCE
BIG = hashlib.shake_128(b'upstream').digest(3_000_000)


def at_end(respond):
    return lambda stream, event: respond(stream) if event == 'end' else None


def interim(stream):
    stream.peer.h2.send_headers(stream.number, [(':status', '103'), ('link', '</a>')])
    stream.respond(200, [('content-length', '2')], b'ok')


def with_trailers(stream):
    stream.respond(200, end=False)
    stream.send(b'body', trailers=[('x-sum', '42'), ('content-length', '9')])


def break_off(stream, code=http2.INTERNAL_ERROR):
    stream.respond(200, [('content-length', '100')], b'short', end=False)
    stream.reset(code)


def refuse_first(stream, event):
    """Refuses the first stream of each path."""
    if event == 'head' and stream.header(':path') not in stream.peer.upstream.refused:
        stream.peer.upstream.refused.add(stream.header(':path'))
        stream.refused = True
        stream.reset(7)
    elif event == 'end' and not stream.refused:
        stream.respond(200, [], b'later: ' + stream.body)


def go_away(stream, event):
    """On the first connection: GOAWAY with a last stream before this one."""
    upstream = stream.peer.upstream
    if event != 'head' or upstream.gone:
        return stream.respond(200, [], b'other') if event == 'end' else None
    upstream.gone = True
    stream.peer.sock.sendall(http2.frame(http2.GOAWAY, 0, 0, (stream.number - 2).to_bytes(4, 'big') + bytes(4)))
    return None


def respond_later(stream, event):
    """Adds the stream to `waiting`; the test responds later."""
    if event == 'end':
        stream.peer.upstream.waiting.append(stream)


def malformed(stream):
    stream.peer.sock.sendall(http2.frame(http2.DATA, 0, stream.number, b'early'))


def long_field(stream):
    """A field that HPACK decoders do not accept."""
    stream.peer.sock.sendall(http2.header_block(stream.number, b'\x88', http2.literal(b'x-long', b'~' * 70000)))


SCRIPTS = {'/long-field': at_end(long_field), '/big': at_end(lambda stream: stream.respond(200, [('content-length', str(len(BIG)))], BIG)), '/interim': at_end(interim),
           '/trailers': at_end(with_trailers), '/short': at_end(break_off), '/refused': refuse_first, '/refused-post': refuse_first,
           '/gone': go_away,
           '/cancelled': at_end(lambda stream: break_off(stream, http2.CANCEL)), '/calm': at_end(lambda stream: break_off(stream, http2.ENHANCE_YOUR_CALM)),
           '/flow': at_end(lambda stream: break_off(stream, http2.FLOW_CONTROL_ERROR)),
           '/reset': at_end(lambda stream: stream.reset(2)), '/malformed': at_end(malformed), '/never': lambda stream, event: None, '/delayed': respond_later,
           '/204': at_end(lambda stream: stream.respond(204)), '/echo': at_end(lambda stream: stream.respond(200, [], bytes(stream.body)))}


def make_upstream(**options):
    made = H2Upstream(SCRIPTS, **options)
    made.refused, made.gone, made.waiting = set(), False, []
    return made


@pytest.fixture
def upstream():
    made = make_upstream()
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture
def running():
    """The servers that `serve` has started."""
    return []


@pytest.fixture
def serve(loop, tmp_path, certificate, running):
    """serve(location, http={}) -> the port of a server with one worker."""
    def starter(location, http=None):
        port = server_kit.free_port()
        made = server_kit.Server(tmp_path / f'server{len(running)}', [{'listen': f'127.0.0.1:{port}', 'location': location, 'client_max_body_size': '64m'}], loop=loop, http=http,
                                 main={'worker_processes': 1})
        running.append(made)
        made.start([port])
        return port
    yield starter
    for made in running:
        made.stop()


def to(upstream, **more):
    return {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_http_version': '2', **more}


@pytest.fixture
def client(serve, upstream):
    made = http2.connect(serve({'/': to(upstream), '/kept': to(upstream, proxy_request_buffering='on')}), 'plain', TIMEOUT)
    yield made
    made.close()


def test_requests_and_responses_are_forwarded(client, upstream):
    response = client.fetch('/a?b=c', headers=[('x-own', '1'), ('te', 'trailers'), ('cookie', 'a=1'), ('cookie', 'b=2')], authority='a.test')
    seen = upstream.last()
    assert (response.status, bytes(response.body)) == (200, b'one GET /a?b=c\n')
    assert [seen.header(name) for name in (':scheme', ':authority', 'x-own', 'te', 'cookie')] == \
        ['http', f'127.0.0.1:{upstream.port}', '1', 'trailers', 'a=1; b=2']
    assert not {'host', 'connection', 'upgrade'} & {name for name, _ in seen.fields}
    head = client.fetch('/head', method='HEAD')
    assert (head.status, head.headers['content-length'], head.body) == (200, '15', b'')
    assert client.fetch('/204').status == 204
    assert bytes(client.fetch('/big').body) == BIG
    found = client.fetch('/interim')
    assert [dict(fields)['link'] for fields in found.interims] == ['</a>'] and found.body == b'ok'
    assert client.fetch('/trailers', headers=[('te', 'trailers')]).trailers == [('x-sum', '42')]


@pytest.mark.parametrize('size', [0, 1, 65535, 65536, len(BIG)])
def test_request_bodies_are_forwarded(client, upstream, size):
    for headers in ([], [('content-length', str(size))]):
        assert bytes(client.fetch('/echo', method='POST', headers=headers, body=BIG[:size]).body) == BIG[:size]
        assert upstream.last().header('content-length') == (str(size) if headers else None)


def test_request_trailers_are_forwarded(client, upstream):
    """Except fields that must not be trailers, such as those that name the client."""
    stream = client.request('/x', method='POST', body=b'abc', end=False)
    client.h2.send_headers(stream, [('x-forwarded-for', '192.0.2.1'), ('x-sum', '7'), ('authorization', 'Basic x'), ('content-length', '9')], end_stream=True)
    client.flush()
    assert client.wait(stream).status == 200 and upstream.last().trailers == [('x-sum', '7')]


def test_exchanges_share_a_connection(client, upstream):
    streams = [client.request(f'/delayed?{i}') for i in range(50)]
    wait_for(lambda: len(upstream.waiting) == 50, 'all requests')
    assert upstream.connections == 1
    with upstream.peers[0].lock:
        for stream in upstream.waiting:
            stream.respond(200, [], stream.header(':path').encode())
        upstream.peers[0].flush()
    for i, response in enumerate(client.wait(*streams)):
        assert response.body == f'/delayed?{i}'.encode()
    assert client.fetch('/after').status == 200 and upstream.connections == 1


def test_max_concurrent_streams_of_the_server_is_respected(serve):
    upstream = make_upstream(settings={h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 3})
    client = http2.connect(serve({'/': to(upstream)}), 'plain', TIMEOUT)
    streams = [client.request(f'/delayed?{i}') for i in range(10)]
    wait_for(lambda: len(upstream.waiting) == 10, 'all requests')
    assert 4 <= upstream.connections <= 10
    for peer in upstream.peers:
        with peer.lock:
            for stream in [found for found in upstream.waiting if found.peer is peer]:
                stream.respond(200)
            peer.flush()
    assert all(response.status == 200 for response in client.wait(*streams))
    client.close()
    upstream.stop()
    assert not upstream.faults


def test_retries_after_refused_stream(client, upstream):
    assert bytes(client.fetch('/refused', method='GET').body) == b'later: '
    assert bytes(client.fetch('/kept/refused', method='POST', body=b'abc').body) != b'', 'another path'
    refused = client.fetch('/refused-post', method='POST', headers=[('content-length', '0')])
    assert (refused.status, refused.body) == (200, b'later: '), 'a POST, too: it was not processed'


def test_retries_after_goaway(client, upstream):
    assert client.fetch('/a').status == 200
    response = client.fetch('/gone', method='POST', headers=[('content-length', '0')])
    assert (response.status, response.body, upstream.connections) == (200, b'other', 2)
    assert client.fetch('/b').status == 200 and upstream.connections == 2


def test_stream_errors_affect_one_stream(client, upstream):
    delayed = client.request('/delayed')
    wait_for(lambda: upstream.waiting, 'the request')
    assert client.fetch('/reset').status == 502
    assert client.fetch('/short').reset == http2.INTERNAL_ERROR
    assert client.fetch('/malformed').status == 502
    upstream.faults.clear() # hyper-h2 regards the client's RST_STREAM as one of a stream that it has not opened
    with upstream.peers[0].lock:
        upstream.waiting[0].respond(200, [], b'delayed')
        upstream.peers[0].flush()
    assert client.wait(delayed).body == b'delayed' and upstream.connections == 1


def test_reset_codes_of_requests_are_forwarded(client):
    """Those about a request are passed on; those about the upstream connection are not."""
    codes = {'/cancelled': http2.CANCEL, '/calm': http2.ENHANCE_YOUR_CALM, '/flow': http2.INTERNAL_ERROR, '/short': http2.INTERNAL_ERROR}
    assert {target: client.fetch(target).reset for target in codes} == codes


def test_a_field_that_is_too_long_fails_its_response_only(client, upstream):
    assert [client.fetch(target).status for target in ('/long-field', '/one', '/long-field', '/one')] == [502, 200, 502, 200]
    assert upstream.connections == 1
    upstream.faults.clear() # as above


def test_lost_connection_fails_its_streams(client, upstream):
    streams = [client.request('/delayed'), client.request('/delayed')]
    wait_for(lambda: len(upstream.waiting) == 2, 'the requests')
    upstream.peers[0].sock.shutdown(2)
    assert [response.status for response in client.wait(*streams)] == [502, 502]
    assert client.fetch('/a').status == 200 and upstream.connections == 2


def test_client_reset_is_forwarded(client, upstream):
    stream = client.request('/never')
    wait_for(lambda: upstream.requests, 'the request')
    client.h2.reset_stream(stream, http2.CANCEL)
    client.flush()
    wait_for(lambda: upstream.last().reset_code == http2.CANCEL, 'the cancellation')
    assert client.fetch('/a').status == 200 and upstream.connections == 1


def test_proxy_read_timeout_resets_the_stream(serve, upstream):
    client = http2.connect(serve({'/': to(upstream, proxy_read_timeout='100ms'), '/delayed': to(upstream)}), 'plain', TIMEOUT)
    delayed = client.request('/delayed')
    wait_for(lambda: upstream.waiting, 'the request')
    assert client.fetch('/never').status == 504
    wait_for(lambda: upstream.last().reset_code == http2.CANCEL, 'the cancellation')
    with upstream.peers[0].lock:
        upstream.waiting[0].respond(200)
        upstream.peers[0].flush()
    assert client.wait(delayed).status == 200 and upstream.connections == 1
    client.close()


def test_unreachable_server_is_skipped(serve, upstream):
    group = {'upstream': {'group': {'server': [f'127.0.0.1:{server_kit.free_port()}', f'127.0.0.1:{upstream.port}']}}}
    port = serve({'/': {'proxy_pass': 'http://group', 'proxy_http_version': '2'}}, group)
    client = http2.connect(port, 'plain', TIMEOUT)
    for _ in range(3):
        assert client.fetch('/a').status == 200
    assert upstream.connections == 1
    client.close()


def test_keepalive_requests_limits_a_connection(serve, upstream):
    group = {'upstream': {'group': {'server': f'127.0.0.1:{upstream.port}', 'keepalive_requests': 2}}}
    client = http2.connect(serve({'/': {'proxy_pass': 'http://group', 'proxy_http_version': '2'}}, group), 'plain', TIMEOUT)
    for _ in range(6):
        assert client.fetch('/a').status == 200
    assert upstream.connections == 3
    wait_for(lambda: sum(len(peer.goaways) for peer in upstream.peers) == 3, 'GOAWAY of each connection')
    client.close()


def test_slow_client_does_not_block_other_streams(client, upstream):
    client.widen = False
    slow = client.request('/big')
    client.until(lambda: len(client.responses[slow].body) == http2.WINDOW)
    client.h2.increment_flow_control_window(100000)
    client.flush()
    assert client.fetch('/a').status == 200
    client.h2.increment_flow_control_window(2 * len(BIG))
    client.h2.increment_flow_control_window(2 * len(BIG), slow)
    client.flush()
    assert bytes(client.wait(slow).body) == BIG


def test_server_without_http2_is_502(serve, base):
    upstream = Upstream()
    client = http2.connect(serve({'/': to(upstream)}), 'plain', TIMEOUT)
    assert client.fetch('/a').status == 502
    client.close()
    upstream.stop()


@pytest.fixture(scope='module')
def inner(base):
    (base / 'inner-h2').mkdir(exist_ok=True)
    return site_kit.make_certificate(str(base / 'inner-h2'), name='inner', names=('localhost',))


def server_side(inner):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*inner)
    return context


@pytest.mark.parametrize('alpn, status', [(('h2',), 200), (('http/1.1',), 502), ((), 502)])
def test_alpn_without_h2_is_502(serve, inner, alpn, status):
    upstream = make_upstream(tls=server_side(inner), alpn=alpn)
    group = {'upstream': {'localhost': {'server': f'127.0.0.1:{upstream.port}'}}}
    port = serve({'/': {'proxy_pass': 'https://localhost', 'proxy_http_version': '2', 'proxy_ssl_trusted_certificate': inner[0]}}, group)
    client = http2.connect(port, 'plain', TIMEOUT)
    assert client.fetch('/a').status == status
    if status == 200:
        assert upstream.last().header(':scheme') == 'https' and bytes(client.fetch('/big').body) == BIG and upstream.connections == 1
    client.close()
    upstream.stop()


def test_sluice_as_upstream_server(serve, launch, loop, transport):
    inner = launch(loop, transport)
    upstream = {'proxy_pass': f'{inner.scheme}://localhost:{inner.port}', 'proxy_http_version': '2', 'proxy_ssl_verify': 'off'}
    client = http2.connect(serve({'/': upstream}), 'plain', TIMEOUT)
    streams = [client.request('/65536.bin') for _ in range(20)]
    assert all(response.status == 200 and len(response.body) == 65536 for response in client.wait(*streams))
    client.close()


def test_http1_clients_are_proxied(serve, upstream):
    client = http1.connect(serve({'/': to(upstream)}), 'plain', timeout=TIMEOUT)
    assert client.get('/a').body == b'one GET /a\n' and client.fetch('HEAD', '/a').headers['content-length'] == '12'
    upgraded = client.fetch('GET', '/b', [('Connection', 'Upgrade'), ('Upgrade', 'websocket')])
    assert upgraded.status == 200 and not {'upgrade', 'connection'} & {name for name, _ in upstream.last().fields}
    client.send('POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n')
    assert client.read('POST').body == b'abc'
    assert client.get('/trailers').body == b'body' and client.get('/big').body == BIG
    assert client.fetch('POST', '/echo', [('Expect', '100-continue')], b'abc').body == b'abc'
    assert upstream.last().header('expect') is None and upstream.connections == 1
    client.close()


@pytest.mark.parametrize('more', [{'proxy_buffering': 'on'}, {'proxy_buffering': 'on', 'proxy_buffers': '2 4k', 'proxy_max_temp_file_size': '0'},
                                  {'proxy_limit_rate': '20m'}, {'proxy_force_ranges': 'on'}, {'proxy_protocol': 'on'}])
def test_bodies_with_each_buffering(serve, upstream, more):
    if 'proxy_protocol' in more:
        upstream.proxied = True
    client = http2.connect(serve({'/': to(upstream, **more)}), 'plain', TIMEOUT)
    assert bytes(client.fetch('/big').body) == BIG
    part = client.fetch('/big', headers=[('range', 'bytes=1000-1999')])
    assert bytes(part.body) == (BIG[1000:2000] if 'proxy_force_ranges' in more else BIG)
    assert upstream.connections == (2 if 'proxy_protocol' in more else 1)
    assert all(peer.proxy_header.startswith(b'PROXY TCP4 127.0.0.1') for peer in upstream.peers if upstream.proxied)
    client.close()


def test_responses_are_cached(serve, upstream, new_directory):
    http = {'proxy_cache_path': {'path': str(new_directory() / 'cache'), 'keys_zone': 'one:1m'}}
    port = serve({'/': to(upstream, proxy_cache='one', proxy_cache_valid='1h')}, http)
    client = http2.connect(port, 'plain', TIMEOUT)
    assert bytes(client.fetch('/big').body) == BIG

    def stored():
        before = len(upstream.requests)
        return bytes(client.fetch('/big').body) == BIG and len(upstream.requests) == before
    wait_for(stored, 'a stored response')
    client.close()


def test_304_while_the_response_is_stored(serve, upstream, new_directory):
    """The stream continues without the client."""
    http = {'proxy_cache_path': {'path': str(new_directory() / 'cache'), 'keys_zone': 'one:1m'}}
    port = serve({'/': to(upstream, proxy_cache='one', proxy_cache_valid='1h', proxy_cache_lock='on', proxy_cache_lock_timeout='1h')}, http)
    client = http2.connect(port, 'plain', TIMEOUT)
    answer = client.fetch('/big', headers=[('if-none-match', '*')])
    assert (answer.status, answer.body) == (304, b'')
    client.close()
    client = http2.connect(port, 'plain', TIMEOUT)
    assert bytes(client.fetch('/big').body) == BIG
    assert len(upstream.requests) == 1 and upstream.last().reset_code is None
    client.close()


def test_304_whose_stream_does_not_end(serve, upstream, new_directory):
    """The stored response is sent, or replaced by an error page. The end of the exchange resets the stream, on which the server still could send."""
    answered = []

    def answer(stream, event):
        if event == 'end' and stream.header('if-none-match'):
            answered.append(stream)
            stream.respond(304, [('etag', '"1"')], end=False)
        elif event == 'end':
            stream.respond(404 if 'missing' in stream.header(':path') else 200, [('etag', '"1"'), ('cache-control', 'max-age=0')], b'stored')
    upstream.scripts.update(dict.fromkeys(('/found', '/missing', '/replaced/missing'), answer))
    http = {'proxy_cache_path': {'path': str(new_directory() / 'cache'), 'keys_zone': 'one:1m'}}
    cached = to(upstream, proxy_cache='one', proxy_cache_revalidate='on', proxy_cache_key='$arg_key', proxy_read_timeout='1h')
    port = serve({'/': cached, '/replaced/': {**cached, 'proxy_intercept_errors': 'on', 'error_page': '404 = /other'}, '/other': to(upstream)}, http)
    client = http2.connect(port, 'plain', TIMEOUT)

    def stored(path):
        response = client.fetch(path)
        assert bytes(response.body) == b'stored'
        return len(answered) > 0
    wait_for(lambda: stored('/found?key=1'), 'a revalidation')
    wait_for(lambda: answered[-1].reset_code == http2.CANCEL, 'the reset of the stream')
    answered.clear()
    wait_for(lambda: stored('/missing?key=2'), 'a revalidation')
    response = client.fetch('/replaced/missing?key=2')
    assert (response.status, bytes(response.body)) == (200, b'one GET /other\n') and len(answered) == 2
    wait_for(lambda: answered[-1].reset_code == http2.CANCEL, 'the reset of the stream')
    client.close()


def test_trailers_of_a_replaced_response(serve, upstream):
    """The trailers of a response that is replaced by an error page, or by that of another server, are not sent."""
    def missing(stream):
        stream.respond(404, end=False)
        stream.send(b'missing', trailers=[('x-sum', '42')])

    def other(stream):
        stream.respond(200, end=False)
        stream.send(b'other', end=True)
    upstream.scripts.update({'/missing': at_end(missing), '/other': at_end(other)})
    port = serve({'/': to(upstream, proxy_intercept_errors='on', error_page='404 = /other')})
    client = http2.connect(port, 'plain', TIMEOUT)
    response = client.fetch('/missing', headers=[('te', 'trailers')])
    assert (response.status, bytes(response.body), response.trailers) == (200, b'other', [])
    client.close()


def test_quit_completes_open_streams(loop, tmp_path, upstream):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{port}', 'location': {'/': to(upstream)}}], loop=loop).start([port])
    idle, client = http2.connect(port, 'plain', TIMEOUT), http2.connect(port, 'plain', TIMEOUT)
    assert idle.fetch('/a').status == 200
    idle.close()
    stream = client.request('/delayed')
    wait_for(lambda: upstream.waiting, 'the request')
    server.process.send_signal(signal.SIGQUIT)
    client.until(lambda: client.goaway)
    with upstream.peers[0].lock:
        upstream.waiting[0].respond(200, [], b'delayed')
        upstream.peers[0].flush()
    assert client.wait(stream).body == b'delayed'
    client.to_end().close()
    assert server.process.wait(TIMEOUT) == 0
    server.stop(check=False)


def test_reload_closes_idle_connections(loop, tmp_path, upstream):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{port}', 'location': {'/': to(upstream)}}], loop=loop).start([port])
    client = http2.connect(port, 'plain', TIMEOUT)
    assert client.fetch('/a').status == 200
    client.close()
    before = server.workers()
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: server.workers() and not set(before) & set(server.workers()), 'new workers')
    client = http2.connect(port, 'plain', TIMEOUT)
    assert client.fetch('/b').status == 200 and upstream.connections == 2
    client.close()
    server.stop()


def test_invalid_tls_record_ends_the_responses(serve, inner, running):
    """At once: a request without a response gets 502, a response that has begun is aborted, and the next request uses another connection."""
    over = threading.Event()

    def broken(stream, event):
        if event == 'end' and stream.header(':path') == '/broken':
            broken_records.send(stream.peer.sock)
            over.wait()
    upstream = make_upstream(tls=server_side(inner))
    upstream.scripts = {**SCRIPTS, '/begun': at_end(lambda stream: stream.respond(200, [('content-length', '100')], b'some', end=False)), '/broken': broken}
    port = serve({'/': {'proxy_pass': f'https://localhost:{upstream.port}', 'proxy_http_version': '2', 'proxy_ssl_trusted_certificate': inner[0],
                        'proxy_read_timeout': broken_records.PATIENT}})
    begun, client = (http1.connect(port, 'plain', timeout=TIMEOUT) for _ in range(2))
    begun.send('GET /begun HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert begun.head().status == 200
    assert client.get('/broken').status == 502
    with pytest.raises(EOFError):
        begun.read_exactly(1000)
    assert running[0].errors().count('TLS failed (71: Protocol error) while reading') == 2
    assert client.get('/after').status == 200 and upstream.connections == 2
    over.set()
    client.close()
    begun.close()
    upstream.stop()
