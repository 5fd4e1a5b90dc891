"""Proves for splice that the kernel encrypts a large upstream response, and that its bytes do not pass through the process.

The checks are those for files (test_promotion.py): the kernel's counters, the hash of the body, the system calls and the access log.
With kernel TLS off, all of them except the hash must have the opposite results.
"""
import hashlib
import time

import kernel
import pytest
from kit import http1, tls13
from kit.upstream import Upstream

SUITES = list(tls13.SUITES)
SIZE = 2 << 20
BODY = bytes(range(251)) * (SIZE // 251 + 1)


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def responds_with(size):
    def script(peer):
        peer.read_body()
        peer.send(f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n')
        peer.send(BODY[:size])
        return True
    return script


@pytest.fixture(scope='module')
def upstream():
    made = Upstream({'/2m': responds_with(SIZE), '/64k': responds_with(65536), '/63k': responds_with(65535), '/1k': responds_with(1024)})
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def proxy(start, upstream):
    def starter(loop, ktls):
        return start(loop, ktls, location={'/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}})
    return starter


def connect(port, suite=SUITES[0]):
    return http1.connect(port, 'own', suites=[suite], timeout=300)


@pytest.mark.parametrize('suite', SUITES)
def test_rule_20_kernel_encrypts_spliced_body(proxy, loop, suite):
    server, port = proxy(loop, 'on')
    before = kernel.counters()
    client = connect(port, suite)
    assert sha256(client.get('/1k').body) == sha256(BODY[:1024])
    assert sha256(client.get('/63k').body) == sha256(BODY[:65535])
    assert kernel.counters()['TlsTxSw'] == before['TlsTxSw'], 'small responses are not promoted'
    target = f'/2m?splice-{loop}-{suite}'
    assert sha256(client.get(target).body) == sha256(BODY[:SIZE])
    assert kernel.counters()['TlsTxSw'] - before['TlsTxSw'] == 1
    assert kernel.counters()['TlsRxSw'] == 0
    row = server.access_for(target)[-1]
    assert (row['tls_path'], row['tls_path_reason']) == ('ktls-splice', 'ok')
    assert SIZE - 32768 <= int(row['bytes_zero_copy']) <= SIZE
    assert sha256(client.get('/1k').body) == sha256(BODY[:1024]), 'the connection continues'
    again = client.fetch('GET', '/2m', [('Connection', 'close')])
    assert sha256(again.body) == sha256(BODY[:SIZE])
    assert client.at_end() and client.stream.closed, 'close_notify follows'
    client.close()


def traced_transfer(server, port, path):
    """Traces one 2 MiB response; returns the bytes by system call, the trace, and the descriptor."""
    client = connect(port)
    client.get('/1k')
    pid, number = kernel.server_socket(server.processes(), port, client.stream.getsockname()[1])
    strace = kernel.Strace(pid, str(path))
    body = client.get('/2m').body
    trace = strace.stop()
    client.close()
    assert sha256(body) == sha256(BODY[:SIZE])
    return kernel.bytes_by_call(trace, number), trace, number


def test_rule_20_splice_system_calls_with_ktls(proxy, loop, tmp_path):
    server, port = proxy(loop, 'on')
    sums, trace, number = traced_transfer(server, port, tmp_path / 'trace')
    assert f'setsockopt({number}, SOL_TLS, ' in trace
    assert SIZE - 32768 <= sums.pop('splice') <= SIZE, 'the body was sent by splice'
    assert sum(sums.values()) < 32768, f'only the head, and body bytes received with it, were sent by other calls: {sums}'


def test_rule_20_splice_system_calls_without_ktls(proxy, loop, tmp_path):
    server, port = proxy(loop, 'off')
    before = kernel.counters()
    sums, trace, number = traced_transfer(server, port, tmp_path / 'trace')
    assert 'splice' not in sums
    assert f'setsockopt({number}, SOL_TLS, ' not in trace
    assert kernel.counters()['TlsTxSw'] == before['TlsTxSw']


def test_rule_18_splice_to_a_slow_client(proxy, loop):
    """A client that begins to read when all buffers are full receives everything, without a stall."""
    _, port = proxy(loop, 'on')
    client = connect(port)
    client.send('GET /2m HTTP/1.1\r\nHost: localhost\r\n\r\n')
    time.sleep(2)
    assert sha256(client.read().body) == sha256(BODY[:SIZE])
    client.close()
