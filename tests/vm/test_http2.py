"""HTTP/2 over kernel TLS: the five checks of test_promotion.py for a large body and for ten concurrent streams, and the end of a connection.

The TLS client of the tests decrypts each record itself; hyper-h2 checks each frame.
"""
import hashlib
import re

import kernel
import pytest
from kit import http2, tls13
from kit.lifetime import wait_for

SIZES = {'1k': 1024, '64k': 64 << 10, '256k': 256 << 10, '1m': 1 << 20, '2m': 2 << 20, '8m': 8 << 20, '16m': 16 << 20, '32m': 32 << 20}
SUITE = 'TLS_AES_128_GCM_SHA256'
LARGE_WINDOWS = {'settings': {http2.h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 64 << 20}, 'connection_window': 256 << 20, 'widen': False}
ACCEPTS_NEW_KEYS = 'TlsTxRekeyOk' in kernel.counters()
FRAME = 16375


def sha256(body):
    return hashlib.sha256(body).hexdigest()


@pytest.fixture
def connect(start, certificate, loop):
    """connect(ktls, suite, **server keys) -> (server, port, client). `slow`: a small receive buffer, so that a body is sent as it is read.
    The windows are large, so that no WINDOW_UPDATE is needed, unless `window` is given."""
    clients = []

    def connector(ktls='on', suite=SUITE, window=None, slow=False, **more):
        server, port = start(loop, ktls, **more)
        sock = tls13.connect(port, timeout=300, suites=[suite], alpn=('h2',), receive_buffer=65536 if slow else 0)
        options = LARGE_WINDOWS if window is None else {'settings': {http2.h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window}}
        clients.append(http2.Client(sock, 'https', **options))
        return server, port, clients[-1]
    yield connector
    for client in clients:
        client.close()


def row_of(server, target):
    wait_for(lambda: server.access_for(target), f'a line in the access log for {target}')
    return server.access_for(target)[-1]


def path_of(server, target):
    row = row_of(server, target)
    return row['tls_path'], row['tls_path_reason'], int(row['bytes_zero_copy'])


def assert_by_kernel(server, target, size):
    """The kernel read the file from its page cache, except for the frames that contain the last page."""
    path, reason, zero_copy = path_of(server, target)
    assert (path, reason) == ('ktls-mapped', 'ok')
    assert size - 2 * FRAME <= zero_copy < size


def sequence(server, port, client):
    """The record number of the server's socket in the kernel."""
    return kernel.record_sequence(*kernel.server_socket(server.processes(), port, client.sock.getsockname()[1]))


@pytest.mark.parametrize('suite, name', [(SUITE, '32m'), *((suite, '2m') for suite in list(tls13.SUITES)[1:])])
def test_rule_20_kernel_encrypts_large_body(connect, www, loop, suite, name):
    server, port, client = connect(suite=suite)
    before = kernel.idle_counters()
    small, large = f'/1k?h2-{loop}-{suite}', f'/{name}?h2-{loop}-{suite}'
    assert sha256(client.fetch(small).body) == www['1k']
    assert kernel.counters()['TlsTxSw'] == before['TlsTxSw'], '1 KiB must not be promoted'
    assert path_of(server, small) == ('user', 'small', 0)
    assert sha256(client.fetch(large).body) == www[name]
    after = kernel.counters()
    assert after['TlsTxSw'] - before['TlsTxSw'] == 1 and after['TlsCurrTxSw'] == 1
    assert after['TlsRxSw'] == 0, 'the kernel never decrypts'
    assert_by_kernel(server, large, SIZES[name])
    assert sequence(server, port, client) == len(client.sock.records)
    assert sha256(client.fetch('/1k').body) == www['1k'], 'a small response after the promotion'
    assert sequence(server, port, client) == len(client.sock.records)
    assert kernel.counters()['TlsTxSw'] - before['TlsTxSw'] == 1, 'one connection, one promotion'


def test_ten_streams_share_a_promoted_connection(connect, www, loop):
    """Concurrent large and small bodies: after the promotion the kernel encrypts all of them, and the log has the TLS path of each stream."""
    server, port, client = connect()
    before = kernel.counters()
    names = ['8m', '1k', '2m', '64k', '1m', '1k', '256k', '1m', '2m', '64k']
    headers = [('priority', 'u=3, i')]
    streams = [client.request(f'/{name}?share-{loop}-{at}', headers=headers) for at, name in enumerate(names)]
    responses = client.wait(*streams)
    assert [sha256(response.body) for response in responses] == [www[name] for name in names]
    assert kernel.counters()['TlsTxSw'] - before['TlsTxSw'] == 1, 'one connection, one promotion'
    assert sequence(server, port, client) == len(client.sock.records)
    for at, name in enumerate(names):
        target = f'/{name}?share-{loop}-{at}'
        if SIZES[name] > 64 << 10:
            assert_by_kernel(server, target, SIZES[name])
        elif name == '64k':
            assert path_of(server, target)[:2] in (('ktls-mapped', 'ok'), ('ktls-sendfile', 'ok'))
        else:
            assert path_of(server, target) in (('user', 'small', 0), ('ktls-send', 'ok', 0))


def test_ktls_off_promotes_nothing(connect, www, loop):
    server, port, client = connect('off')
    before = kernel.counters()
    names = ['2m', '1m', '64k']
    responses = client.wait(*[client.request(f'/{name}?off-{loop}') for name in names])
    assert [sha256(response.body) for response in responses] == [www[name] for name in names]
    assert kernel.counters()['TlsTxSw'] == before['TlsTxSw']
    with pytest.raises(OSError):
        sequence(server, port, client)
    for name in names:
        assert path_of(server, f'/{name}?off-{loop}') == ('user', 'off', 0)


def traced_transfer(connect, ktls, www, path):
    """Traces one response of 2 MiB; returns the bytes by system call, the trace, and the descriptor."""
    server, port, client = connect(ktls)
    client.fetch('/1k')
    pid, number = kernel.server_socket(server.processes(), port, client.sock.getsockname()[1])
    strace = kernel.Strace(pid, str(path))
    body = client.fetch('/2m').body
    trace = strace.stop()
    assert sha256(body) == www['2m']
    return kernel.bytes_by_call(trace, number), trace, number


def test_rule_20_system_calls_with_ktls(connect, www, tmp_path):
    sums, trace, number = traced_transfer(connect, 'on', www, tmp_path / 'trace')
    assert f'setsockopt({number}, SOL_TCP, TCP_ULP' in trace and f'setsockopt({number}, SOL_TLS, ' in trace
    assert re.search(r'mmap\(NULL, \d+, PROT_READ, MAP_SHARED, ', trace)
    read = sum(map(int, re.findall(r'preadv2\(.*\)\s+= (\d+)', trace)))
    assert read < 2 * FRAME + 1024, 'the last frames are read, and single bytes of others'
    assert 2 << 20 < sum(sums.values()) < (2 << 20) + 8192, f'the body, and heads of frames: {sums}'
    assert len(re.findall(rf'(?:sendmsg|sendto|sendfile)\({number}, ', trace)) < 40, 'many frames per call'


def test_rule_20_system_calls_without_ktls(connect, www, loop, tmp_path):
    sums, trace, number = traced_transfer(connect, 'off', www, tmp_path / 'trace')
    assert 'sendfile' not in sums and f'setsockopt({number}, SOL_TLS, ' not in trace
    if loop == 'epoll':                              # a send by io_uring is no separate system call
        assert sum(sums.values()) > 2 << 20, 'ciphertext is longer than the body'


def test_rule_15_close_notify_follows_the_last_frame(connect, www, loop):
    """keepalive_requests: GOAWAY, then all accepted streams are completed, then close_notify by the kernel."""
    server, port, client = connect(keepalive_requests=3)
    before = kernel.counters()['TlsTxSw']
    responses = client.wait(*[client.request(f'/2m?close-{loop}') for _ in range(3)])
    assert [sha256(response.body) for response in responses] == [www['2m']] * 3
    client.to_end()
    assert client.goaway and client.goaway[-1][1] == http2.NO_ERROR
    assert client.sock.closed, 'the kernel encrypts close_notify'
    assert kernel.counters()['TlsTxSw'] - before == 1
    assert_by_kernel(server, f'/2m?close-{loop}', 2 << 20)


def test_rule_09_key_update_in_the_middle(connect, www, loop):
    """If the kernel accepts a second key, the server sets it between two frames. Otherwise the server completes the streams with the old
    key as far as the flow-control windows permit, and reads no more from this client."""
    server, port, client = connect(slow=True)
    streams = [client.request('/8m'), client.request('/2m')]
    client.until(lambda: len(client.responses[streams[0]].body) > 1 << 20)
    client.sock.key_update(True)
    responses = client.wait(*streams)
    assert [sha256(response.body) for response in responses] == [www['8m'], www['2m']]
    assert client.sock.generation == (1 if ACCEPTS_NEW_KEYS else 0)
    if ACCEPTS_NEW_KEYS:
        assert sha256(client.fetch('/1m').body) == www['1m']
        return
    client.to_end()
    assert client.goaway and client.goaway[-1][1] == http2.NO_ERROR
    assert client.sock.closed, 'close_notify under the old key'


def test_reset_in_the_middle_of_a_body(connect, www, loop):
    """RST_STREAM ends one stream between two frames. The other streams and the connection continue, promoted as before."""
    server, port, client = connect(window=1 << 20, slow=True)
    before = kernel.counters()['TlsTxSw']
    target = f'/16m?reset-{loop}'
    reset, completed = client.request(target, headers=[('priority', 'i')]), client.request('/8m', headers=[('priority', 'i')])
    client.until(lambda: len(client.responses[reset].body) > 1 << 20)
    client.h2.reset_stream(reset, http2.CANCEL)
    client.flush()
    assert sha256(client.wait(completed).body) == www['8m']
    assert len(client.responses[reset].body) < 16 << 20
    row = row_of(server, target)
    assert row['tls_path'] == 'ktls-mapped'
    assert 1 << 20 < int(row['bytes_zero_copy']) < 16 << 20
    assert sha256(client.fetch('/1m').body) == www['1m']
    assert sequence(server, port, client) == len(client.sock.records)
    assert kernel.counters()['TlsTxSw'] - before == 1


def test_connection_closed_in_the_middle_of_a_body(connect, www, loop):
    """The client closes during two promoted bodies: the worker releases the socket and serves the next client."""
    server, _, client = connect(window=1 << 20, slow=True)
    before = kernel.idle_counters()
    targets = [f'/16m?closed-{loop}', f'/8m?closed-{loop}']
    streams = [client.request(target, headers=[('priority', 'i')]) for target in targets]
    client.until(lambda: all(len(client.responses[stream].body) > 1 << 20 for stream in streams))
    client.sock.close()
    for target in targets:
        assert row_of(server, target)['tls_path'] == 'ktls-mapped'
    assert kernel.idle_counters()['TlsTxSw'] - before['TlsTxSw'] == 1
    _, _, other = connect()
    assert sha256(other.fetch('/1m').body) == www['1m']
