"""TLS 1.2 in the kernel: the explicit nonces of AES-GCM continue across the promotion and never repeat (rule 7)."""
import hashlib

import kernel
import pytest
from kit import http1, tls12


def sha256(body):
    return hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize('suite', tls12.SUITES)
def test_rule_07_tls12_nonces_continue_in_the_kernel(start, www, loop, suite):
    server, port = start(loop, 'on')
    before = kernel.counters()
    tap = tls12.RecordingConnection(port, suite, timeout=300)
    client = http1.Client(tap)
    target = f'/2m?{loop}-{suite}'
    for _ in range(3):
        assert sha256(client.get('/1k').body) == www['1k']
    assert kernel.counters()['TlsTxSw'] == before['TlsTxSw']
    assert sha256(client.get(target).body) == www['2m']
    assert kernel.counters()['TlsTxSw'] - before['TlsTxSw'] == 1
    row = server.access_for(target)[-1]
    assert (row['tls_path'], row['tls_path_reason'], row['ssl_cipher']) == ('ktls-sendfile', 'ok', suite)
    assert int(row['bytes_zero_copy']) == 2 << 20
    sequence = kernel.record_sequence(*kernel.server_socket(server.processes(), port, tap.getsockname()[1]))
    assert sequence == len(tap.sealed_records())
    assert sha256(client.get('/1k').body) == www['1k']
    assert sha256(client.get('/1m', Connection='close').body) == www['1m']
    assert client.at_end()
    assert tap.sealed_records()[-1][0] == tls12.ALERT, 'close_notify, by the kernel'
    if 'GCM' in suite:
        nonces = [int.from_bytes(nonce, 'big') for nonce in tap.explicit_nonces()]
        assert len(nonces) > 128 and len(set(nonces)) == len(nonces)
        assert all((later - earlier) % 2**64 == 1 for earlier, later in zip(nonces, nonces[1:]))
    client.close()
