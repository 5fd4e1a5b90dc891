"""allow and deny by the client's address, in http and in stream."""
import contextlib
import socket
import threading

import pytest
from kit import server as server_kit

LOCATIONS = {
    '/': {'return': '200 open'},
    '/closed/': {'deny': 'all', 'return': '200 ok'},
    '/local/': {'deny': 'all', 'allow': ['127.0.0.0/8', '::1'], 'return': '200 ok'},
    '/but/': {'allow': '127.0.0.0/8', 'deny': ['127.0.0.1', 'all'], 'return': '200 ok'},
    '/realip/': {'set_real_ip_from': '127.0.0.1', 'allow': '192.0.2.0/24', 'deny': 'all', 'return': '200 ok'},
}


@pytest.mark.parametrize('target, client, status', [
    ('/', None, 200), ('/closed/', None, 403), ('/local/', None, 200), ('/but/', None, 403), ('/realip/', None, 403),
    ('/realip/', '192.0.2.7', 200), ('/realip/', '198.51.100.7', 403), ('/local/', '192.0.2.7', 200),
])
def test_access_is_decided_by_address(launch, loop, transport, target, client, status):
    served = launch(loop, transport, server={'location': LOCATIONS})
    asking = served.connect()
    response = asking.fetch('GET', target, [('X-Real-IP', client)] if client else [])
    assert response.status == status
    assert asking.fetch('GET', '/', []).status == 200         # the connection stays open
    asking.close()
    if status == 403:
        assert 'access forbidden by rule' in served.server.errors()


def echo(listener):
    while True:
        try:
            stream, _ = listener.accept()
        except OSError:
            return
        with stream:
            stream.sendall(b'upstream')


@pytest.fixture(scope='module')
def upstream():
    listener = socket.create_server(('127.0.0.1', 0))
    threading.Thread(target=echo, args=(listener,), daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@pytest.mark.parametrize('own, outer, let_in', [
    ({}, {}, True), ({'deny': 'all'}, {}, False), ({'allow': '127.0.0.1', 'deny': 'all'}, {}, True), ({}, {'deny': '127.0.0.0/8'}, False),
    ({'allow': 'all'}, {'deny': '127.0.0.0/8'}, True),
])
def test_access_in_stream_is_decided_by_address(loop, new_directory, upstream, own, outer, let_in):
    ports = server_kit.free_port(), server_kit.free_port()
    served = server_kit.Server(new_directory(), [{'listen': f'127.0.0.1:{ports[0]}', 'return': '200 ok'}], loop=loop, main={
        'stream': {**outer, 'server': {'listen': f'127.0.0.1:{ports[1]}', 'proxy_pass': f'127.0.0.1:{upstream}', **own}}})
    served.start(ports)
    received = b''
    with contextlib.suppress(ConnectionResetError), socket.create_connection(('127.0.0.1', ports[1]), timeout=20 * server_kit.PATIENCE) as stream:
        received = stream.recv(100)
    assert received == (b'upstream' if let_in else b'')
    served.stop()
    assert ('rejected with 403 by module access' in served.errors()) != let_in
