"""KeyUpdate while the kernel encrypts (rules 9 and 10): the server sets the new key in the kernel if it accepts one; otherwise the server
completes the response and closes the connection."""
import hashlib
import os
import subprocess

import kernel
import pytest
from kit import hostile_tls, http1, s_client

SLUICE = os.environ['SLUICE']
ACCEPTS_NEW_KEYS = 'TlsTxRekeyOk' in kernel.counters()
BODY = 16 << 20


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def test_unit_tests_of_the_wire():
    """Runs tests/wire/test_kernel.c, which is skipped on kernels without TLS."""
    program = os.path.join(os.path.dirname(SLUICE), 'tests/wire/test_wire_kernel')
    done = subprocess.run([program], capture_output=True, text=True, timeout=600, check=False, env={**os.environ, 'CK_FORK': 'no'})
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert ('; rekeying)' in done.stdout) == ACCEPTS_NEW_KEYS
    assert kernel.counters()['TlsRxSw'] == 0


def test_rule_09_s_client_key_update_during_a_response(start, www, loop):
    server, port = start(loop, 'on')
    before = kernel.counters()
    client = s_client.SClient(port)
    target = f'/16m?{loop}'
    assert sha256(s_client.body_with_commands(client, target, BODY, 'kKk')) == www['16m']
    assert server.access_for(target)[-1]['tls_path'] == 'ktls-sendfile'
    if ACCEPTS_NEW_KEYS:
        assert sha256(s_client.body_with_commands(client, target + '-again', BODY, 'K')) == www['16m']
        assert client.close() == 4
        assert kernel.counters()['TlsTxRekeyOk'] - before['TlsTxRekeyOk'] == 2
    else:
        assert not client.fill(1), 'the response is completed with the old key, then the connection ends'
        client.close()
    assert kernel.counters()['TlsTxSw'] - before['TlsTxSw'] == 1


def test_rule_09_answer_precedes_the_rest_of_the_body(start, www, loop):
    """The TLS client of the test counts key generations: the server's new key arrives within the body; on kernels that accept only one key,
    none arrives."""
    _, port = start(loop, 'on')
    client = http1.connect(port, 'own', suites=['TLS_AES_128_GCM_SHA256'], timeout=300, receive_buffer=65536)
    client.send('GET /16m HTTP/1.1\r\nHost: localhost\r\n\r\n')
    head = client.head()
    digest = hashlib.sha256(client.read_exactly(1 << 20))
    client.stream.key_update(True)
    digest.update(client.read_exactly(8 << 20))
    assert client.stream.generation == (1 if ACCEPTS_NEW_KEYS else 0)
    digest.update(client.read_exactly(int(head.headers['content-length']) - (9 << 20)))
    assert digest.hexdigest() == www['16m']
    if ACCEPTS_NEW_KEYS:
        assert sha256(client.get('/1m').body) == www['1m']
    else:
        assert client.at_end() and client.stream.closed, 'close_notify under the old key'
    client.close()


@pytest.mark.skipif(not ACCEPTS_NEW_KEYS, reason='this kernel accepts only one key')
def test_rule_09_key_update_flood(start, www, loop):
    server, port = start(loop, 'on')
    before = server.errors().count('too many KeyUpdate or renegotiation requests')
    client = http1.connect(port, 'own', timeout=300)
    assert sha256(client.get('/1m').body) == www['1m']
    try:
        client.stream.key_update_storm()
    except OSError:
        pass
    assert hostile_tls.ends(client)
    client.close()
    other = http1.connect(port, 'own', timeout=300)
    assert sha256(other.get('/1m').body) == www['1m']
    other.close()
    assert server.errors().count('too many KeyUpdate or renegotiation requests') == before + 1
