"""Processes: workers that die, and the processes that replace them."""
import hashlib
import os
import signal

import pytest

from kit import http1, server as server_kit
from kit.lifetime import BIG, alive, kill_each, signal_and_wait, peers_of, sockets_of, wait_for


def test_killed_worker_is_replaced(start, loop, big):
    server = start(loop, worker_processes=2)
    before = set(server.workers())
    victim = min(before)
    survivor = max(before)
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: len(set(server.workers()) - {victim}) == 2, 'a new worker')
    assert survivor in server.workers()
    assert f'worker process {victim} exited on signal 9' in server.errors()
    # The listening socket of the dead worker remains open: every connection gets a response.
    for _ in range(40):
        client = http1.connect(server.plain)
        assert client.get('/one.txt').status == 200
        client.close()
    assert signal_and_wait(server, signal.SIGTERM) == 0


def kill_all_but(survivor, server, deaths):
    """Kills every worker except `survivor` whenever a new one starts. The restart delay grows each time, until only `survivor` is left."""
    def alone():
        kill_each(set(server.workers()) - {survivor})
        return server.errors().count('exited on signal 9') >= deaths and server.workers() == [survivor]
    wait_for(alone, 'their end', 60)


@pytest.mark.parametrize('workers', [2, 3])
def test_queued_connections_of_a_dead_worker_are_accepted(start, loop, workers):
    """During the restart delay of killed workers, the surviving worker accepts the connections that the kernel queues on their sockets.
    With three workers, each killed one may have taken over a socket of the other."""
    server = start(loop, worker_processes=workers)
    survivor = max(server.workers())
    for attempt in range(5):
        kill_all_but(survivor, server, (4 + attempt) * (workers - 1))
        for _ in range(15):
            for port, transport in ((server.plain, 'plain'), (server.port, 'user')):
                client = http1.connect(port, transport)
                assert client.get('/one.txt').status == 200
                client.close()
        if server.workers() == [survivor]:
            break                          # on a slow machine the restart delay grows further in the next attempt
    assert server.workers() == [survivor], 'the restart delay ended before all responses'
    # New workers take the sockets over: all workers have the same number of sockets, and every connection gets a response.
    wait_for(lambda: len(server.workers()) == workers, 'new workers', 30)
    wait_for(lambda: len({len(sockets_of(pid)) for pid in server.workers()}) == 1, 'all workers have the same number of sockets', 30)
    for _ in range(20):
        client = http1.connect(server.plain)
        assert client.get('/one.txt').status == 200
        client.close()
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_killed_worker_does_not_affect_other_downloads(start, big):
    """A download from one worker continues while another worker is killed repeatedly."""
    server = start(worker_processes=2)
    client = http1.connect(server.port, 'user')
    client.send('GET /process-big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    mine = [pid for pid in server.workers() if client.socket.getsockname()[1] in peers_of(pid)]
    assert len(mine) == 1
    digest, length = hashlib.sha256(), 0
    while length < BIG:
        piece = client.read_exactly(min(1 << 20, BIG - length))
        digest.update(piece)
        length += len(piece)
        if length <= 3 << 20:
            others = [pid for pid in server.workers() if pid not in mine]
            kill_each(others)
            wait_for(lambda: set(server.workers()) - set(mine) - set(others), 'a new worker')
    assert digest.hexdigest() == big
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_workers_exit_with_the_master(start, loop):
    server = start(loop, worker_processes=2)
    workers = server.workers()
    server.process.kill()
    server.process.wait()
    wait_for(lambda: not any(alive(pid) for pid in workers), 'no worker is left')
    # The kernel closes the sockets of an io_uring ring shortly after the process has ended; the next start waits for that. The stale pid
    # file must not prevent the start.
    server.process = None
    server.start([server.port])
    wait_for(lambda: len(server.workers()) == 2, 'it runs again')
    assert http1.connect(server.port, 'user').get('/one.txt').status == 200
    assert signal_and_wait(server, signal.SIGTERM) == 0


@pytest.mark.parametrize('how', [signal.SIGQUIT, signal.SIGTERM])
def test_stopped_worker_receives_shutdown_after_a_full_channel(start, how):
    """The stopped worker's channel is full of reopen messages when the shutdown begins: the worker gets that message too, once it
    continues."""
    server = start(worker_processes=2)
    victim = min(server.workers())
    os.kill(victim, signal.SIGSTOP)
    for number in range(300):
        server.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: server.errors().count('reopening the logs') > number, 'the signal is handled')
    os.rename(server.access_path, server.access_path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(server.access_path), 'a new file')
    if how == signal.SIGQUIT:
        os.kill(victim, signal.SIGCONT)

        def in_the_new_file():
            for _ in range(10):     # some of these connections reach the worker that was stopped
                assert http1.connect(server.plain).get(f'/one.txt?{victim}').status == 200
            return server_kit.read_text(server.access_path).count(f'?{victim}') >= 10
        wait_for(in_the_new_file, 'all lines in the new file')
        os.kill(victim, signal.SIGSTOP)
        for number in range(301, 600):
            server.process.send_signal(signal.SIGUSR1)
            wait_for(lambda: server.errors().count('reopening the logs') > number, 'the signal is handled')
    server.process.send_signal(how)
    wait_for(lambda: 'signal TERM: terminating' in server.errors() or 'signal QUIT: exiting' in server.errors(), 'the shutdown begins')
    os.kill(victim, signal.SIGCONT)
    assert server.process.wait(20 * server_kit.PATIENCE) == 0
    assert 'does not exit' not in server.errors() and 'failed (11' not in server.errors()
