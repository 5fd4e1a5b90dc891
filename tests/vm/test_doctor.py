"""`sluice doctor` where the kernel has TLS."""
import os
import subprocess

import kernel

SLUICE = os.environ['SLUICE']


def test_doctor_finds_kernel_tls():
    before = kernel.counters()['TlsTxSw']
    done = subprocess.run([SLUICE, 'doctor'], capture_output=True, text=True, timeout=300, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    for version in ('1.2', '1.3'):
        for cipher in ('AES-128-GCM', 'AES-256-GCM', 'ChaCha20-Poly1305'):
            assert f'TLS {version} {cipher}: the kernel takes the key' in done.stdout
    assert kernel.counters()['TlsTxSw'] > before, 'it says so from a trial, not from a guess'
    assert kernel.counters()['TlsRxSw'] == 0


def test_start_says_that_ktls_is_there(start, loop):
    server, _ = start(loop, 'auto')
    lines = [line for line in server.said().splitlines() if 'ktls' in line.lower() or 'kernel tls' in line.lower()]
    assert len(lines) == 1, lines
    assert 'available' in lines[0].lower() and 'not available' not in lines[0].lower() and 'unavailable' not in lines[0].lower()


def test_promotion_and_rekeying_cipher_by_cipher():
    """tests/unit/tls/test_ktls_kernel.c, which skips on machines without TLS in their kernel."""
    program = os.path.join(os.path.dirname(SLUICE), 'tests/unit/tls/test_ktls_kernel')
    done = subprocess.run([program], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, 'CK_FORK': 'no'})
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert kernel.counters()['TlsRxSw'] == 0
