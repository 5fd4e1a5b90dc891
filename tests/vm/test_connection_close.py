"""Ends of promoted connections: all bytes and the alert arrive, incomplete responses are detectable, and all resources are freed.

This file is a separate part, so that the kernel's counters cover only these servers.
"""
import hashlib
import signal

import kernel
import pytest
from conftest import wait_for_self_tests
from kit import disconnections, http1, server as server_kit

CONNECTIONS = 60                            # per loop and half: each of the ten kinds of end six times
THREADS, BODY = 4, 96 << 10                 # more than ssl_ktls_threshold
SUITE = ['TLS_AES_128_GCM_SHA256']


@pytest.fixture(scope='module')
def files(www):
    disconnections.make_files(www['folder'], THREADS, BODY)
    return www


@pytest.fixture(autouse=True)
def small_send_buffers():
    """Limits the bytes in flight at the end of a connection, since the emulated CPU encrypts slowly."""
    before = kernel.set_sysctl('net.ipv4.tcp_wmem', '4096 16384 131072')
    yield
    kernel.set_sysctl('net.ipv4.tcp_wmem', before)


@pytest.fixture
def start_server(files, certificate, tmp_path, loop):
    """start_server(**http) -> (a running server, its port)."""
    made = []

    def starter(**http):
        port = server_kit.free_port()
        block = {'listen': [f'127.0.0.1:{port} ssl'], 'root': files['folder'], 'ssl_ktls': 'on',
                 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1]}
        server = server_kit.Server(tmp_path / f'server{len(made)}', [block], loop=loop, http=http)
        made.append(server)
        server.start([port])
        wait_for_self_tests(server)
        return server, port
    yield starter
    for server in made:
        server.stop()


def test_rule_13_file_truncated_while_sent(start_server, files):
    server, port = start_server()
    before = kernel.counters()['TlsTxSw']
    disconnections.DisconnectingClients(port, True, files['folder'], 0).truncated()
    assert kernel.counters()['TlsTxSw'] == before + 1, 'the kernel encrypted'
    assert 'a file was truncated while it was sent' in server.errors()
    assert server.access_for('/truncated0')[-1]['tls_path'] == 'ktls-sendfile'


def test_rule_15_quit_completes_responses(start_server, files):
    """QUIT while the kernel sends: each response is complete and followed by close_notify, then the server ends."""
    server, port = start_server()
    before = kernel.counters()['TlsTxSw']
    clients = []
    for _ in range(3):
        client = http1.connect(port, 'own', suites=SUITE, timeout=600, receive_buffer=4096)
        client.send('GET /1m HTTP/1.1\r\nHost: localhost\r\n\r\n')
        clients.append((client, int(client.head().headers['content-length'])))
    assert kernel.counters()['TlsTxSw'] == before + 3, 'all connections are promoted'
    server.process.send_signal(signal.SIGQUIT)
    for client, length in clients:
        assert hashlib.sha256(client.read_exactly(length)).hexdigest() == files['1m']
        assert client.at_end() and client.stream.closed, 'close_notify was received'
        client.close()
    assert server.process.wait(20 * server_kit.PATIENCE) == 0


def test_rule_15_term_closes_at_once(start_server, files):
    server, port = start_server(send_timeout='10m')
    clients = disconnections.DisconnectingClients(port, True, files['folder'], 0)
    streams = [clients.open(receive_buffer=16384) for _ in range(5)]
    for stream in streams:
        clients.send_request(stream, '/big')
    heads = [clients.head(stream) for stream in streams]
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20 * server_kit.PATIENCE) == 0
    for stream, (length, got) in zip(streams, heads):
        more, how = disconnections.read_to_end(stream)
        assert got + more < length and how != 'orderly', how
        stream.close()


def test_rule_15_resources_of_hundreds_are_released(start_server, files):
    server, port = start_server(**disconnections.SETTINGS)
    before = kernel.counters()['TlsTxSw']
    disconnections.check_for_leaks(server, port, True, files['folder'], CONNECTIONS, THREADS, BODY)
    after = kernel.counters()
    assert after['TlsTxSw'] - before >= CONNECTIONS * 2 * 6 // 10, 'most connections were promoted, also in the first half'
    assert after['TlsCurrTxSw'] == 0, 'the kernel has released all of them'
