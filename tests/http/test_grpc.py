"""grpc_pass: calls of each kind, cancellation in both directions, and errors as a gRPC status."""
import ssl
import struct

import pytest

from kit import http2, server as server_kit, site as site_kit
from kit.h2_upstream import H2Upstream
from kit.lifetime import wait_for
from kit.nginx import import_file, left_out

TIMEOUT = 60 * server_kit.PATIENCE
HEAD = [('content-type', 'application/grpc')]
CALL = [('content-type', 'application/grpc'), ('te', 'trailers'), ('grpc-timeout', '60S')]
DONE = [('grpc-status', '0'), ('grpc-message', 'done')]


def message(text):
    """A message with its prefix: not compressed."""
    return struct.pack('!BI', 0, len(text)) + text


def unary(stream, event):
    if event == 'end':
        stream.respond(200, HEAD, end=False)
        stream.send(bytes(stream.body), trailers=DONE)


def many(stream, event):
    if event == 'end':
        stream.respond(200, HEAD, end=False)
        stream.send(b''.join(message(str(i).encode()) for i in range(100)), trailers=DONE)


def buffered(stream, event):
    if event == 'end':
        stream.respond(200, [*HEAD, ('x-accel-buffering', 'yes')], end=False)
        stream.send(message(b'buffered'), trailers=DONE)


def bidirectional(stream, event):
    """Returns each message as it arrives."""
    if event == 'head':
        stream.respond(200, HEAD, end=False)
    elif event == 'data':
        stream.send(bytes(stream.body))
        stream.body.clear()
    elif event == 'end':
        stream.send(b'', trailers=DONE)


def fails(stream, event):
    if event == 'end':
        stream.respond(200, [*HEAD, ('grpc-status', '5'), ('grpc-message', 'none')])


def breaks(stream, event):
    if event == 'end':
        stream.respond(200, HEAD, end=False)
        stream.send(message(b'part'))
        stream.reset(http2.CANCEL)


def resets(code):
    return lambda stream, event: stream.reset(code) if event == 'end' else None


SCRIPTS = {'/cancelled': resets(http2.CANCEL), '/calm': resets(http2.ENHANCE_YOUR_CALM), '/fault': resets(http2.INTERNAL_ERROR), '/echo/Unary': unary, '/echo/Many': many, '/echo/Buffered': buffered, '/echo/Both': bidirectional, '/echo/Fails': fails, '/echo/Breaks': breaks,
           '/echo/Never': lambda stream, event: None}


@pytest.fixture
def upstream():
    made = H2Upstream(SCRIPTS)
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture
def serve(loop, tmp_path):
    """serve(location, http={}) -> the port of a server with one worker."""
    running = []

    def starter(location, http=None):
        port = server_kit.free_port()
        made = server_kit.Server(tmp_path / f'server{len(running)}', [{'listen': f'127.0.0.1:{port}', 'location': location}], loop=loop, http=http)
        running.append(made)
        made.start([port])
        return port
    yield starter
    for made in running:
        made.stop()


@pytest.fixture
def client(serve, upstream):
    to = {'grpc_pass': f'grpc://127.0.0.1:{upstream.port}'}
    port = serve({'/': to, '/echo/Never': {**to, 'grpc_read_timeout': '100ms'}, '/echo/Set': {**to, 'grpc_set_header': {'X-Own': '$arg_x'}},
                  '/down': {'grpc_pass': f'127.0.0.1:{server_kit.free_port()}'}})
    made = http2.connect(port, 'plain', TIMEOUT)
    yield made
    made.close()


def status(response):
    """The gRPC status: of the trailers, or of a response without a body."""
    return dict(response.trailers or response.headers.items())['grpc-status']


def test_buffering_field_of_a_server_has_no_effect(client):
    """gRPC has no buffers for responses: the worker must not look for room in them."""
    response = client.fetch('/echo/Buffered', method='POST', headers=CALL, body=message(b'x'))
    assert (response.status, bytes(response.body), response.trailers) == (200, message(b'buffered'), DONE)


def test_unary_call_returns_message_and_trailers(client, upstream):
    text = message(b'x' * 100000)
    response = client.fetch('/echo/Unary', method='POST', headers=CALL, body=text)
    assert (response.status, bytes(response.body), response.trailers) == (200, text, DONE)
    assert response.headers['content-type'] == 'application/grpc' and 'content-length' not in response.headers
    seen = upstream.last()
    assert [seen.header(name) for name in (':method', ':scheme', 'te', 'grpc-timeout', 'content-type')] == \
        ['POST', 'http', 'trailers', '60S', 'application/grpc']
    response = client.fetch('/echo/Many', method='POST', headers=CALL, body=message(b''))
    assert bytes(response.body) == b''.join(message(str(i).encode()) for i in range(100)) and status(response) == '0'
    client.fetch('/echo/Set?x=1', method='POST', headers=CALL, body=b'')
    assert upstream.last().header('x-own') == '1' and upstream.connections == 1


def test_grpc_bind_sets_the_local_address(serve, upstream):
    client = http2.connect(serve({'/': {'grpc_pass': f'127.0.0.1:{upstream.port}', 'grpc_bind': '127.0.0.7'}}), 'plain', TIMEOUT)
    assert status(client.fetch('/echo/Unary', method='POST', headers=CALL, body=message(b''))) == '0'
    assert [peer.sock.getpeername()[0] for peer in upstream.peers] == ['127.0.0.7']
    client.close()


def test_bidirectional_messages(client):
    stream = client.request('/echo/Both', method='POST', headers=CALL, end=False)
    response = client.responses[stream]
    client.until(lambda: response.status == 200)
    for i in range(10):
        client.send_body(stream, message(b'%d' % i), end=False)
        client.until(lambda count=i + 1: len(response.body) == 6 * count)
    client.h2.end_stream(stream)
    client.flush()
    assert client.wait(stream).trailers == DONE


def test_trailers_only_response(client):
    response = client.fetch('/echo/Fails', method='POST', headers=CALL, body=message(b''))
    assert (response.status, response.body, response.headers['grpc-status'], response.headers['grpc-message']) == (200, b'', '5', 'none')
    assert not response.trailers


def test_server_reset_is_forwarded(client):
    response = client.fetch('/echo/Breaks', method='POST', headers=CALL, body=message(b''))
    assert response.reset == http2.CANCEL and not response.trailers and message(b'part').startswith(bytes(response.body))


def test_client_reset_is_forwarded(client, upstream):
    stream = client.request('/echo/Both', method='POST', headers=CALL, end=False)
    client.until(lambda: client.responses[stream].status == 200)
    client.h2.reset_stream(stream, http2.CANCEL)
    client.flush()
    wait_for(lambda: upstream.last().reset_code == http2.CANCEL, 'the cancellation')
    assert status(client.fetch('/echo/Unary', method='POST', headers=CALL, body=message(b''))) == '0' and upstream.connections == 1


@pytest.mark.parametrize('path, code, plain', [('/down', '14', 502), ('/echo/Never', '4', 504)])
def test_errors_become_grpc_status(client, path, code, plain):
    response = client.fetch(path, method='POST', headers=CALL, body=message(b''))
    assert (response.status, response.headers['content-type'], response.headers['grpc-status']) == (200, 'application/grpc', code)
    assert not response.body and not response.trailers
    assert client.fetch(path, method='POST', body=message(b'')).status == plain, 'not a gRPC call'


def test_codes_of_streams_without_a_response(client):
    codes = {'/cancelled': '1', '/calm': '8', '/fault': '14'}
    assert {path: status(client.fetch(path, method='POST', headers=CALL, body=message(b''))) for path in codes} == codes


def test_grpcs_pass_verifies_the_upstream_server(serve, base):
    (base / 'inner-grpc').mkdir(exist_ok=True)
    inner = site_kit.make_certificate(str(base / 'inner-grpc'), name='inner', names=('localhost',))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*inner)
    upstream = H2Upstream(SCRIPTS, tls=context)
    group = {'upstream': {'localhost': {'server': f'127.0.0.1:{upstream.port}'}}}
    port = serve({'/': {'grpc_pass': 'grpcs://localhost', 'grpc_ssl_trusted_certificate': inner[0]}, '/echo/Many': {'grpc_pass': 'grpcs://localhost'}}, group)
    client = http2.connect(port, 'plain', TIMEOUT)
    assert status(client.fetch('/echo/Unary', method='POST', headers=CALL, body=message(b'x'))) == '0'
    assert status(client.fetch('/echo/Many', method='POST', headers=CALL, body=message(b'x'))) == '14', 'not trusted'
    client.close()
    upstream.stop()
    assert upstream.last().header(':scheme') == 'https'


def test_grpcio_client_and_server(serve):
    grpc = pytest.importorskip('grpc', reason='grpcio is not installed')
    from concurrent import futures

    def handle(details):
        kinds = {'/echo/Unary': grpc.unary_unary_rpc_method_handler(lambda text, context: text),
                 '/echo/Many': grpc.unary_stream_rpc_method_handler(lambda text, context: iter([text] * 50)),
                 '/echo/Both': grpc.stream_stream_rpc_method_handler(lambda texts, context: (text for text in texts)),
                 '/echo/Fails': grpc.unary_unary_rpc_method_handler(lambda text, context: context.abort(grpc.StatusCode.NOT_FOUND, 'none'))}
        return kinds.get(details.method)

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            return handle(details)

    server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[Handler()])
    inner = server.add_insecure_port('127.0.0.1:0')
    server.start()
    with grpc.insecure_channel(f'127.0.0.1:{serve({"/": {"grpc_pass": f"127.0.0.1:{inner}"}})}') as channel:
        assert channel.unary_unary('/echo/Unary')(b'one', timeout=TIMEOUT) == b'one'
        assert list(channel.unary_stream('/echo/Many')(b'x', timeout=TIMEOUT)) == [b'x'] * 50
        texts = [str(i).encode() * 1000 for i in range(100)]
        assert list(channel.stream_stream('/echo/Both')(iter(texts), timeout=TIMEOUT)) == texts
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary('/echo/Fails')(b'x', timeout=TIMEOUT)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND and caught.value.details() == 'none'
    server.stop(0)


def test_import_of_grpc_directives(tmp_path):
    conf, out = tmp_path / 'nginx.conf', tmp_path / 'sluice.yaml'
    conf.write_text('events { } http { server { listen 127.0.0.1:1; location /a/ { grpc_pass grpcs://127.0.0.1:2; grpc_read_timeout 5m; '
                    'grpc_set_header X-A b; grpc_bind 127.0.0.1; grpc_socket_keepalive on; } } }')
    made, errors = import_file(conf, out)
    text = out.read_text()
    assert made == 2 and left_out(errors) == ['grpc_socket_keepalive'], errors
    assert 'grpc_pass: grpcs://127.0.0.1:2' in text and 'grpc_read_timeout: 5m' in text and 'grpc_ssl_verify: off' in text and 'X-A' in text
