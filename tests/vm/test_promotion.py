"""The kernel encrypts the bytes of large files, and they arrive complete.

For each TLS 1.3 suite and each loop backend there are five independent checks: (1) the kernel's counters, (2) the kernel's record
number compared with the number of records that the test's client decrypted, (3) the hash of the body, (4) the system calls and the
access log, and (5) the same checks with kernel TLS off, where (1), (2) and (4) must have the opposite results.
"""
import hashlib

import kernel
import pytest
from kit import http1, tls13

SUITES = list(tls13.SUITES)


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def open_connection(port, suite):
    return http1.connect(port, 'own', suites=[suite], timeout=300)


def server_socket_of(server, port, client):
    return kernel.server_socket(server.processes(), port, client.stream.getsockname()[1])


def large_file_of(suite):
    """(file, size): the first suite sends a larger file; that of the others still has many records."""
    return ('8m', 8 << 20) if suite == SUITES[0] else ('2m', 2 << 20)


@pytest.mark.parametrize('suite', SUITES)
def test_rule_20_kernel_encrypts_large_body(start, www, loop, suite):
    server, port = start(loop, 'on')
    before = kernel.idle_counters()
    client = open_connection(port, suite)
    name, size = large_file_of(suite)
    first, target = f'/1k?{loop}-{suite}', f'/{name}?{loop}-{suite}'

    small = client.get(first)
    assert small.status == 200 and sha256(small.body) == www['1k']
    assert kernel.counters()['TlsTxSw'] == before['TlsTxSw'], '1 KiB must not be promoted'
    row = server.access_for(first)[-1]
    assert (row['tls_path'], row['tls_path_reason']) == ('user', 'small')

    large = client.get(target)
    assert large.status == 200 and sha256(large.body) == www[name]
    after = kernel.counters()
    assert after['TlsTxSw'] - before['TlsTxSw'] == 1
    assert after['TlsCurrTxSw'] == 1
    assert after['TlsRxSw'] == 0, 'the kernel never decrypts'
    row = server.access_for(target)[-1]
    assert row['tls_path'] == 'ktls-sendfile'
    assert int(row['bytes_zero_copy']) == size
    assert row['ssl_cipher'] == suite and row['ssl_protocol'] == 'TLSv1.3'

    assert kernel.record_sequence(*server_socket_of(server, port, client)) == len(client.stream.records)
    again = client.get('/1k')
    assert sha256(again.body) == www['1k'], 'a small response after the promotion'
    assert kernel.record_sequence(*server_socket_of(server, port, client)) == len(client.stream.records)
    last = client.get('/1m', Connection='close')
    assert sha256(last.body) == www['1m']
    assert client.at_end() and client.stream.closed, 'the kernel encrypts close_notify'
    assert kernel.counters()['TlsTxSw'] - before['TlsTxSw'] == 1, 'one connection, one promotion'
    client.close()


@pytest.mark.parametrize('suite', SUITES)
def test_rule_20_ktls_off_promotes_nothing(start, www, loop, suite):
    server, port = start(loop, 'off')
    before = kernel.counters()
    client = open_connection(port, suite)
    target = f'/2m?off-{loop}-{suite}'
    large = client.get(target)
    assert sha256(large.body) == www['2m']
    assert kernel.counters()['TlsTxSw'] == before['TlsTxSw']
    with pytest.raises(OSError):
        kernel.record_sequence(*server_socket_of(server, port, client))
    row = server.access_for(target)[-1]
    assert row['tls_path'] == 'user' and row['tls_path_reason'] == 'off'
    assert int(row['bytes_zero_copy']) == 0
    client.close()


def traced_transfer(server, port, www, path):
    """Traces one 2 MiB response; returns the bytes by system call, the trace, and the descriptor."""
    client = open_connection(port, SUITES[0])
    client.get('/1k')
    pid, number = server_socket_of(server, port, client)
    strace = kernel.Strace(pid, str(path))
    body = client.get('/2m').body
    trace = strace.stop()
    client.close()
    assert sha256(body) == www['2m']
    return kernel.bytes_by_call(trace, number), trace, number


def test_rule_20_system_calls_with_ktls(start, www, loop, tmp_path):
    server, port = start(loop, 'on')
    sums, trace, number = traced_transfer(server, port, www, tmp_path / 'trace')
    assert f'setsockopt({number}, SOL_TCP, TCP_ULP' in trace
    assert f'setsockopt({number}, SOL_TLS, ' in trace
    assert sums.pop('sendfile') == 2 << 20, 'every byte of the body was sent by sendfile'
    assert sum(sums.values()) < 4096, f'only the head was sent by other calls: {sums}'


def test_rule_20_system_calls_without_ktls(start, www, loop, tmp_path):
    server, port = start(loop, 'off')
    sums, trace, number = traced_transfer(server, port, www, tmp_path / 'trace')
    assert 'sendfile' not in sums
    assert f'setsockopt({number}, SOL_TLS, ' not in trace
    if loop == 'epoll':                              # a send by io_uring is no separate system call
        assert sum(sums.values()) > 2 << 20, 'ciphertext is longer than the body'


@pytest.mark.parametrize('name, promoted', [('63k', False), ('64k', True)])
def test_ssl_ktls_threshold_decides(start, www, loop, name, promoted):
    server, port = start(loop, 'on', ssl_ktls_threshold='64k')
    before = kernel.counters()['TlsTxSw']
    client = open_connection(port, SUITES[0])
    assert sha256(client.get(f'/{name}').body) == www[name]
    assert kernel.counters()['TlsTxSw'] - before == (1 if promoted else 0)
    client.close()


def test_head_and_body_share_the_first_record(start, www, loop):
    """The header section is sent with MSG_MORE: the first record holds it together with bytes of the file, and no response is delayed."""
    _, port = start(loop, 'on')
    client = open_connection(port, SUITES[0])
    client.get('/1m')
    client.stream.records.clear()
    client.get('/1m')
    assert client.stream.data_records[0] == 16384
    client.close()


def test_many_requests_on_one_connection(start, www, loop):
    _, port = start(loop, 'on')
    client = open_connection(port, SUITES[0])
    for _ in range(4):
        for name in ('1k', '64k', '63k', '1m'):
            assert sha256(client.get(f'/{name}').body) == www[name]
    client.close()


def test_kernel_encrypts_ranges(start, www, loop):
    server, port = start(loop, 'on')
    client = open_connection(port, SUITES[0])
    with open(f'{www["folder"]}/2m', 'rb') as stream:
        whole = stream.read()
    for first, last in ((0, 65535), (1, 1 << 20), (4095, 4095 + 65536), ((2 << 20) - 65537, (2 << 20) - 1)):
        part = client.get('/2m', Range=f'bytes={first}-{last}')
        assert part.status == 206 and part.body == whole[first:last + 1]
    client.close()


@pytest.mark.parametrize('suite', SUITES)
def test_rule_01_tx_only(start, loop, suite):
    """OpenSSL decrypts all records of the client: before the promotion, after it, and in all tests above."""
    _, port = start(loop, 'on')
    client = open_connection(port, suite)
    for _ in range(2):
        assert client.fetch('POST', '/1k', body=bytes(16000)).status == 405
        assert client.get('/64k').status == 200
    counters = kernel.counters()
    assert counters['TlsTxSw'] > 0 and counters['TlsCurrTxSw'] > 0
    assert [counters[name] for name in ('TlsRxSw', 'TlsCurrRxSw', 'TlsRxDevice', 'TlsDecryptError')] == [0, 0, 0, 0]
    client.close()
