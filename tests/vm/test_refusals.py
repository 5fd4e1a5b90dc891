"""strace makes a system call of a running worker fail: the response continues in user space, and the access log has the reason.

The self-test at startup has succeeded: the server uses kTLS, and the call fails during a connection.
"""
import hashlib
import re

import kernel
import pytest
from kit import http1, tls13

SUITES = list(tls13.SUITES)
# strace makes a call fail by replacing its number, and seccomp denies the number -1.
MAIN = {'sandbox': ['capabilities', 'no_dump', 'landlock']}
ULP, TX = 'SOL_TCP, TCP_ULP', 'SOL_TLS, TLS_TX'
# The refused call, its error, its position among the worker's setsockopt calls, and the reason in the access log.
REFUSALS = {
    'no module': (ULP, 'ENOENT', 1, 'no-module'),
    'no permission': (ULP, 'EPERM', 1, 'no-permission'),
    'no such protocol': (ULP, 'ENOPROTOOPT', 1, 'ulp-refused'),
    'no such cipher': (TX, 'ENOENT', 2, 'tx-refused'),
    'a key that is refused': (TX, 'EINVAL', 2, 'tx-refused'),
}


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def path_of(server, target):
    row = server.access_for(target)[-1]
    return row['tls_path'], row['tls_path_reason']


@pytest.mark.parametrize('suite', SUITES)
@pytest.mark.parametrize('refusal', REFUSALS)
def test_refused_promotion_continues_in_user_space(start, www, loop, tmp_path, suite, refusal):
    call, error, number, reason = REFUSALS[refusal]
    server, port = start(loop, 'on', main=MAIN)
    worker, = server.workers()
    before = kernel.counters()['TlsTxSw']
    client, other = (http1.connect(port, 'own', suites=[suite], timeout=300) for _ in range(2))
    first, second, third, fourth = (f'/{name}?{loop}-{suite}-{refusal.replace(" ", "-")}-{at}'
                                    for at, name in enumerate(('1k', '256k', '64k', '64k')))
    assert sha256(client.get(first).body) == www['1k']
    strace = kernel.Strace(worker, str(tmp_path / 'trace'), inject=f'setsockopt:error={error}:when={number}')
    assert sha256(client.get(second).body) == www['256k']
    assert sha256(client.get(third).body) == www['64k'], 'the connection does not attempt kTLS again'
    assert sha256(client.get('/1k').body) == www['1k']
    assert sha256(other.get(fourth).body) == www['64k'], 'the next connection attempts kTLS'
    trace = strace.stop()
    refused = re.findall(r'setsockopt\(\d+, (\w+, \w+), .*\(INJECTED\)', trace)
    assert refused == [call], trace
    assert path_of(server, first) == ('user', 'small')
    assert path_of(server, second) == path_of(server, third) == ('user', reason)
    assert path_of(server, fourth) == ('ktls-sendfile', 'ok')
    assert kernel.counters()['TlsTxSw'] - before == 1
    assert client.get('/1k', Connection='close').closes and client.at_end() and client.stream.closed
    other.close()


@pytest.mark.parametrize('error', ['EIO', 'EBADMSG'])
def test_failed_sendfile_ends_the_connection(start, www, loop, tmp_path, error):
    """The kernel already encrypts, so user space cannot continue. The connection ends without close_notify, so that the client detects the
    incomplete response."""
    server, port = start(loop, 'on', main=MAIN)
    worker, = server.workers()
    client = http1.connect(port, 'own', suites=SUITES[:1], timeout=300)
    strace = kernel.Strace(worker, str(tmp_path / 'trace'), inject=f'sendfile:error={error}:when=2')
    target = f'/8m?{loop}-{error}'        # more than one call sends
    with pytest.raises(EOFError):
        client.get(target)
    assert not client.stream.closed
    assert '(INJECTED)' in strace.stop()
    assert 0 < int(server.access_for(target)[-1]['body_bytes_sent']) < 8 << 20
    again = http1.connect(port, 'own', suites=SUITES[:1], timeout=300)
    assert sha256(again.get('/64k').body) == www['64k']
    again.close()
