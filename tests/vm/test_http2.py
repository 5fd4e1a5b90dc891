"""HTTP/2 over kernel TLS: large files are sent by sendfile, frame by frame, and arrive complete between the frames of other streams."""
import hashlib

import kernel
import pytest
from kit import http1, http2
from kit.lifetime import wait_for

SIZES = {'1m': 1 << 20, '16m': 16 << 20}
STREAMS = 10


def sha256(body):
    return hashlib.sha256(body).hexdigest()


@pytest.fixture
def connect(start, certificate, loop):
    """connect(ktls) -> (server, client)"""
    clients = []

    def connector(ktls='on'):
        server, port = start(loop, ktls)
        context = http1.tls_context()
        clients.append(http2.connect(port, 'tls', timeout=300, context=context))
        return server, clients[-1]
    yield connector
    for client in clients:
        client.close()


def row_of(server, target):
    wait_for(lambda: server.access_for(target), f'a line in the access log for {target}')
    return server.access_for(target)[-1]


@pytest.mark.parametrize('name', SIZES)
def test_kernel_encrypts_large_body(connect, www, loop, name):
    server, client = connect()
    before = kernel.counters()
    small, large = f'/1k?h2-{loop}-{name}', f'/{name}?h2-{loop}'
    assert sha256(client.ask(small).body) == www['1k']
    assert kernel.counters()['TlsTxSw'] == before['TlsTxSw'], '1 KiB must not be promoted'
    assert sha256(client.ask(large).body) == www[name]
    assert kernel.counters()['TlsTxSw'] - before['TlsTxSw'] == 1
    assert (row_of(server, small)['tls_path'], row_of(server, small)['tls_path_reason']) == ('user', 'small')
    row = row_of(server, large)
    assert row['tls_path'] == 'ktls-sendfile'
    assert int(row['bytes_zero_copy']) == SIZES[name]
    assert sha256(client.ask('/1k').body) == www['1k'], 'a small response after the promotion'


def test_streams_share_a_promoted_connection(connect, www):
    _, client = connect()
    before = kernel.counters()
    names = [('1m', '1k', '256k', '64k')[at % 4] for at in range(STREAMS)]
    responses = client.wait(*[client.request(f'/{name}?share') for name in names])
    assert [sha256(response.body) for response in responses] == [www[name] for name in names]
    assert kernel.counters()['TlsTxSw'] - before['TlsTxSw'] == 1, 'one connection, one promotion'


def test_with_ktls_off_nothing_is_promoted(connect, www, loop):
    server, client = connect('off')
    before = kernel.counters()
    target = f'/1m?h2-off-{loop}'
    assert sha256(client.ask(target).body) == www['1m']
    assert kernel.counters()['TlsTxSw'] == before['TlsTxSw']
    assert row_of(server, target)['tls_path'] == 'user'
