"""A kernel with TLS but without one cipher, whose module cannot be loaded: only this cipher stays in user space."""
import hashlib
import os
import re
import subprocess

import kernel
import pytest
from kit import http1, tls13

SLUICE = os.environ['SLUICE']
MISSING = 'TLS_CHACHA20_POLY1305_SHA256'


def test_doctor_names_the_cipher():
    output = subprocess.run([SLUICE, 'doctor'], capture_output=True, text=True, timeout=300, check=False).stdout
    print(output)
    found = dict(re.findall(r'^\w+ +TLS 1\.3 (\S+): (.*)$', output, re.M))
    taken = 'the kernel accepts the key, and a file arrived intact'
    assert found == {'AES-128-GCM': taken, 'AES-256-GCM': taken, 'ChaCha20-Poly1305': 'cipher'}


@pytest.mark.parametrize('suite', list(tls13.SUITES))
def test_only_the_missing_cipher_stays_in_user_space(start, www, loop, suite):
    server, port = start(loop, 'on')
    before = kernel.counters()['TlsTxSw']
    client = http1.connect(port, 'own', suites=[suite], timeout=300)
    for number in range(2):
        target = f'/1m?{loop}-{suite}-{number}'
        assert hashlib.sha256(client.get(target).body).hexdigest() == www['1m']
        row = server.access_for(target)[-1]
        expected = ('user', 'cipher') if suite == MISSING else ('ktls-sendfile', 'ok')
        assert (row['tls_path'], row['tls_path_reason']) == expected
    assert kernel.counters()['TlsTxSw'] - before == (0 if suite == MISSING else 1)
    client.close()
