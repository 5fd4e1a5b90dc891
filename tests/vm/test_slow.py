"""A slow reader and a small send buffer: 8 MiB encrypted by the kernel arrive completely, followed by close_notify."""
import hashlib
import socket
import time

import kernel
import pytest
from kit import http1, tls13


@pytest.fixture(autouse=True)
def tiny_send_buffer():
    before = kernel.set_sysctl('net.ipv4.tcp_wmem', '4096 4096 4096')
    yield
    kernel.set_sysctl('net.ipv4.tcp_wmem', before)


def read_slowly(client, target):
    """Reads a body with pauses, so that all buffers fill up; returns its SHA-256."""
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    response = client.head()
    left = int(response.headers['content-length'])
    digest = hashlib.sha256()
    rest_at = left - (1 << 20)
    while left:
        if not client.buffer and not client.fill():
            raise EOFError(f'{left} bytes are missing')
        digest.update(client.buffer[:left])
        left -= len(client.buffer[:left])
        client.buffer.clear()
        if left < rest_at:
            time.sleep(0.05)
            rest_at = left - (1 << 20)
    return digest.hexdigest()


@pytest.mark.parametrize('ktls, name', [('on', '8m'), ('off', '1m')])
def test_slow_reader_gets_the_complete_body(start, www, loop, ktls, name):
    server, port = start(loop, ktls)
    client = http1.connect(port, 'own', suites=['TLS_AES_128_GCM_SHA256'], timeout=300, receive_buffer=65536)
    target = f'/{name}?slow-{loop}'
    assert read_slowly(client, target) == www[name]
    assert client.at_end() and client.stream.closed, 'close_notify must come after the last byte'
    client.close()
    row = server.access_for(target)[-1]
    assert row['tls_path'] == ('ktls-sendfile' if ktls == 'on' else 'user')


@pytest.mark.parametrize('suite', list(tls13.SUITES))
def test_close_directly_after_a_body(start, www, loop, suite):
    """The end of a body and the alert after it survive close() of a socket with a full buffer."""
    _, port = start(loop, 'on')
    for _ in range(3):
        client = http1.connect(port, 'own', suites=[suite], timeout=300, receive_buffer=4096)
        client.send('GET /1m HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        time.sleep(0.2)
        assert hashlib.sha256(client.read().body).hexdigest() == www['1m']
        assert client.at_end() and client.stream.closed
        client.close()


@pytest.mark.parametrize('half', [False, True])
def test_rule_15_close_waits_for_a_slow_reader(start, www, loop, half):
    """Neither lingering_timeout nor the client's FIN ends a connection before the client has received all bytes."""
    _, port = start(loop, 'on', lingering_timeout='1s')
    client = http1.connect(port, 'own', suites=['TLS_AES_256_GCM_SHA384'], timeout=300, receive_buffer=4096)
    client.send('GET /1m HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    if half:
        client.stream.sock.shutdown(socket.SHUT_WR)
    left = int(client.head().headers['content-length'])
    digest = hashlib.sha256()
    for rest_at in (60000, 40000, 20000, 8000, 0):
        digest.update(client.read_exactly(left - rest_at))
        left = rest_at
        time.sleep(3 if rest_at else 0)
    assert digest.hexdigest() == www['1m']
    assert client.at_end() and client.stream.closed
    client.close()


def test_disconnection_during_a_body(start, www, loop):
    server, port = start(loop, 'on')
    for _ in range(5):
        client = http1.connect(port, 'own', suites=['TLS_AES_128_GCM_SHA256'], timeout=300)
        client.send('GET /8m HTTP/1.1\r\nHost: localhost\r\n\r\n')
        client.head()
        client.close()
    client = http1.connect(port, 'own', timeout=300)
    assert client.get('/1k').status == 200
    client.close()
