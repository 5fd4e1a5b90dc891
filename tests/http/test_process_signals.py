"""Processes: signals, graceful and fast shutdown, reopening of logs."""
import hashlib
import os
import signal
import socket
import time

import pytest

from kit import http1, server as server_kit
from kit.lifetime import BIG, alive, signal_and_wait, refused, wait_for


@pytest.mark.parametrize('how', [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_int_term_and_quit_end_the_server(start, loop, how):
    server = start(loop, worker_processes=2)
    workers = server.workers()
    assert len(workers) == 2
    assert http1.connect(server.port, 'user').get('/one.txt').status == 200
    assert os.path.exists(os.path.join(server.folder, 'pid'))
    assert signal_and_wait(server, how) == 0
    assert refused(server.port) and refused(server.plain)
    assert not any(alive(pid) for pid in workers)
    assert not os.path.exists(os.path.join(server.folder, 'pid'))
    assert 'alert' not in server.errors() and 'emerg' not in server.errors()
    server.stop()


def test_term_closes_open_connections(start, loop, big):
    server = start(loop)
    client = http1.connect(server.port, 'user')
    client.send('GET /process-big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_quit_completes_a_slow_download(start, loop, big):
    server = start(loop)
    client = http1.connect(server.port, 'user')
    idle = http1.connect(server.port, 'user')
    assert idle.get('/one.txt').status == 200
    client.send('GET /process-big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    digest, length = hashlib.sha256(), 0
    server.process.send_signal(signal.SIGQUIT)
    wait_for(lambda: refused(server.port) and refused(server.plain), 'the listeners are closed')
    assert idle.at_end(), 'an idle connection is closed at once'
    assert server.process.poll() is None
    while length < BIG:
        piece = client.read_exactly(min(65536, BIG - length))
        digest.update(piece)
        length += len(piece)
        if length % (1 << 20) == 0:
            time.sleep(0.05)
    assert digest.hexdigest() == big
    assert client.at_end()
    assert server.process.wait(20 * server_kit.PATIENCE) == 0


@pytest.mark.parametrize('kind', ['plain', 'user'])
def test_quit_serves_queued_connections(start, loop, kind):
    """Connections that the kernel has established, and that no worker has accepted before QUIT, receive a response with Connection: close."""
    server = start(loop)
    worker, = server.workers()
    port = server.plain if kind == 'plain' else server.port
    os.kill(worker, signal.SIGSTOP)
    sockets = [socket.create_connection(('127.0.0.1', port), timeout=20 * server_kit.PATIENCE) for _ in range(50)]
    server.process.send_signal(signal.SIGQUIT)
    wait_for(lambda: 'signal QUIT' in server.errors(), 'the master has received the signal')
    os.kill(worker, signal.SIGCONT)
    for sock in sockets:
        client = http1.Client(sock if kind == 'plain' else http1.tls_context().wrap_socket(sock))
        response = client.get('/one.txt')
        assert response.status == 200 and response.body == b'one\n' and response.closes
        assert client.at_end()
        client.close()
    assert server.process.wait(20 * server_kit.PATIENCE) == 0


@pytest.mark.parametrize('below', [False, True], ids=['http', 'stream'])
def test_term_closes_queued_connections(start, loop, below):
    """A connection that is accepted during the shutdown must not delay it until the master kills the worker."""
    port = server_kit.free_port()
    server = start(loop, **({'stream': {'server': {'listen': port, 'return': 'x'}}} if below else {}))
    worker, = server.workers()
    os.kill(worker, signal.SIGSTOP)
    server.process.send_signal(signal.SIGTERM)
    wait_for(lambda: 'signal TERM' in server.errors(), 'the master has received the signal')
    silent = socket.create_connection(('127.0.0.1', port if below else server.plain), timeout=20 * server_kit.PATIENCE)
    os.kill(worker, signal.SIGCONT)
    assert server.process.wait(20 * server_kit.PATIENCE) == 0
    assert 'alert' not in server.errors()
    silent.close()


def test_quit_does_not_wait_for_silent_clients(start, loop):
    """A connection without a request delays QUIT by lingering_timeout, not by client_header_timeout."""
    server = start(loop, http={'lingering_timeout': '500ms', 'client_header_timeout': '10m'})
    silent = socket.create_connection(('127.0.0.1', server.plain), timeout=20 * server_kit.PATIENCE)
    assert signal_and_wait(server, signal.SIGQUIT) == 0
    assert silent.recv(1) == b''


def test_term_after_quit_ends_at_once(start, loop, big):
    """TERM after QUIT ends the server without waiting for the download."""
    server = start(loop)
    client = http1.connect(server.port, 'user')
    client.send('GET /process-big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    server.process.send_signal(signal.SIGQUIT)
    wait_for(lambda: refused(server.port), 'the listener is closed')
    assert server.process.poll() is None
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_quit_ends_after_worker_shutdown_timeout(start, loop, big):
    server = start(loop, worker_shutdown_timeout='500ms')
    client = http1.connect(server.port, 'user')
    client.send('GET /process-big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    assert signal_and_wait(server, signal.SIGQUIT) == 0
    assert 'worker_shutdown_timeout' in server.errors()


def test_usr1_reopens_the_logs(start, loop):
    server = start(loop, worker_processes=2)
    client = http1.connect(server.port, 'user')
    assert client.get('/one.txt?before').status == 200
    server.access_for('/one.txt?before')
    for path in (server.access_path, server.error_path):
        os.rename(path, path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(server.access_path) and os.path.exists(server.error_path), 'new log files')
    wait_for(lambda: client.get('/one.txt?after').status == 200 and '?after' in server_kit.read_text(server.access_path),
             'lines in the new access log')
    assert '?before' in server_kit.read_text(server.access_path + '.1')
    assert '?before' not in server_kit.read_text(server.access_path)
    # All processes write to the new error log, which has the line about the killed worker.
    os.kill(server.workers()[0], signal.SIGKILL)
    wait_for(lambda: 'exited on signal 9' in server.errors(), 'the new error log')
    assert 'exited on signal 9' not in server_kit.read_text(server.error_path + '.1')
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_usr1_reopens_the_logs_during_the_start(forbidden, loop, tmp_path):
    """The signal arrives before the master knows that the worker is ready."""
    gate = tmp_path / 'gate'
    gate.touch()
    server = forbidden(loop, wait=False, location={'/x': {'return': '200 x'}}, environment={'FORBIDDEN_WAIT': str(gate)})
    server.start([server.plain])
    for path in (server.access_path, server.error_path):
        os.rename(path, path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(server.access_path) and os.path.exists(server.error_path), 'new log files')
    gate.unlink()
    assert http1.connect(server.plain).get('/x').status == 200
    wait_for(lambda: '/x|' in server_kit.read_text(server.access_path), 'a line in the new access log')
    wait_for(lambda: server_kit.RUNS in server.errors(), 'a line in the new error log')
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_usr1_reopens_the_logs_while_workers_are_drained(start, loop, big):
    """After WINCH, the last workers complete their responses, and the master logs their end."""
    server = start(loop)
    client = http1.connect(server.port, 'user', receive_buffer=4096)
    client.send('GET /process-big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    server.process.send_signal(signal.SIGWINCH)
    wait_for(lambda: 'signal WINCH' in server.errors(), 'a line about WINCH')
    os.rename(server.error_path, server.error_path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(server.error_path), 'the new error log')
    client.close()
    wait_for(lambda: 'exited with code 0' in server.errors(), 'a line in the new error log')
    assert 'exited with code 0' not in server_kit.read_text(server.error_path + '.1')
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_usr1_reopens_the_log_of_a_master_without_workers(start, loop):
    server = start(loop)
    server.process.send_signal(signal.SIGWINCH)
    wait_for(lambda: 'exited with code 0' in server.errors(), 'the worker has ended')
    os.rename(server.error_path, server.error_path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(server.error_path), 'the new error log')
    assert signal_and_wait(server, signal.SIGTERM) == 0
    assert 'signal TERM' in server.errors()
    assert 'signal TERM' not in server_kit.read_text(server.error_path + '.1')


@pytest.mark.parametrize('how', [signal.SIGQUIT, signal.SIGWINCH])
def test_usr1_reopens_the_log_of_the_newest_configuration(start, loop, big, tmp_path, how):
    """Its workers end first: a worker of the previous configuration, which has another log, still sends a response."""
    server, second = start(loop), str(tmp_path / 'second.log')
    client = http1.connect(server.port, 'user', receive_buffer=4096)
    client.send('GET /process-big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    server.tree['error_log'] = {'path': second, 'level': 'info'}
    server.write_configuration()
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(second) and server_kit.RUNS in server_kit.read_text(second), 'the new configuration')
    server.process.send_signal(how)
    wait_for(lambda: 'exited with code 0' in server_kit.read_text(second), 'the new worker has ended')
    for path in (server.error_path, second):
        os.rename(path, path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(server.error_path) and os.path.exists(second), 'new log files')
    client.close()
    wait_for(lambda: 'exited with code 0' in server_kit.read_text(second), 'the old worker has ended')
    signal_and_wait(server, signal.SIGTERM)
    assert server.process.returncode == 0
    assert 'exited with code 0' not in server.errors()


def test_usr1_logs_once_that_the_error_log_cannot_be_opened(start):
    server = start()
    old = server.error_path + '.1'
    os.rename(server.error_path, old)
    os.mkdir(server.error_path)
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: 'cannot be opened again' in server_kit.read_text(old), 'a log line')
    assert signal_and_wait(server, signal.SIGTERM) == 0
    assert server_kit.read_text(old).count('cannot be opened again') == 1
    os.rmdir(server.error_path)


def test_usr1_retains_the_old_log_if_reopening_fails(start):
    server = start()
    os.rename(server.access_path, server.access_path + '.1')
    os.mkdir(server.access_path)
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: 'cannot be opened again' in server.errors(), 'a log line')
    client = http1.connect(server.port, 'user')
    wait_for(lambda: client.get('/one.txt?kept').status == 200 and
             '?kept' in server_kit.read_text(server.access_path + '.1'), 'lines in the old log')
    os.rmdir(server.access_path)
    assert signal_and_wait(server, signal.SIGTERM) == 0
