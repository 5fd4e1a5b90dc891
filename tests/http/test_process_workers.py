"""Processes: workers that die, and who goes on for them."""
import hashlib
import os
import signal

import pytest

from kit import http1, server as server_kit
from kit.lifetime import BIG, alive, ended, peers_of, sockets_of, wait_for


def test_a_worker_that_dies_is_replaced(start, loop, big):
    server = start(loop, worker_processes=2)
    before = set(server.workers())
    victim = min(before)
    survivor = max(before)
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: len(set(server.workers()) - {victim}) == 2, 'a new worker')
    assert survivor in server.workers()
    assert f'worker process {victim} exited on signal 9' in server.errors()
    # The socket of the dead one goes on: every connection of many is answered.
    for _ in range(40):
        client = http1.connect(server.plain)
        assert client.get('/one.txt').status == 200
        client.close()
    assert ended(server, signal.SIGTERM) == 0


def kill_all_but(survivor, server, deaths):
    """Kills every other worker as soon as it is there, so that each is waited for longer than the one before, until nobody is left."""
    def alone():
        for pid in set(server.workers()) - {survivor}:
            os.kill(pid, signal.SIGKILL)
        return server.errors().count('exited on signal 9') >= deaths and server.workers() == [survivor]
    wait_for(alone, 'their end', 60)


@pytest.mark.parametrize('workers', [2, 3])
def test_a_sibling_serves_who_is_queued_for_the_dead(start, loop, workers):
    """While workers that die again and again are waited for, whoever the kernel sends to their sockets is answered by the one left.
    With three, the sockets of one are lent to another that dies, too."""
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
            break                          # where the machine is slow, the next ones are waited for longer
    assert server.workers() == [survivor], 'all were answered before there was a successor'
    # Back to its own: afterwards each holds as many, and all answer.
    wait_for(lambda: len(server.workers()) == workers, 'successors', 30)
    wait_for(lambda: len({len(sockets_of(pid)) for pid in server.workers()}) == 1, 'as many sockets each', 30)
    for _ in range(20):
        client = http1.connect(server.plain)
        assert client.get('/one.txt').status == 200
        client.close()
    assert ended(server, signal.SIGTERM) == 0


def test_a_worker_that_dies_while_others_serve(start, big):
    """A download by one worker does not notice that another one is killed again and again."""
    server = start(worker_processes=2)
    client = http1.connect(server.port, 'user')
    client.send('GET /process-big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    mine = [pid for pid in server.workers() if client.stream.getsockname()[1] in peers_of(pid)]
    assert len(mine) == 1
    digest, length = hashlib.sha256(), 0
    while length < BIG:
        piece = client.take(min(1 << 20, BIG - length))
        digest.update(piece)
        length += len(piece)
        if length <= 3 << 20:
            others = [pid for pid in server.workers() if pid not in mine]
            for pid in others:
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: set(server.workers()) - set(mine) - set(others), 'a new worker')
    assert digest.hexdigest() == big
    assert ended(server, signal.SIGTERM) == 0


def test_workers_die_with_the_master(start, loop):
    server = start(loop, worker_processes=2)
    workers = server.workers()
    server.process.kill()
    server.process.wait()
    wait_for(lambda: not any(alive(pid) for pid in workers), 'no worker is left')
    # A ring's sockets go a moment after its process: the next start waits for that. And the pid file
    # was left behind: it must not stop the next start.
    server.process = None
    server.start([server.port])
    wait_for(lambda: len(server.workers()) == 2, 'it runs again')
    assert http1.connect(server.port, 'user').get('/one.txt').status == 200
    assert ended(server, signal.SIGTERM) == 0


@pytest.mark.parametrize('how', [signal.SIGQUIT, signal.SIGTERM])
def test_a_worker_that_reads_nothing_is_told_later(start, how):
    """Its channel is full of logs to go on with when it is told to end: it hears that, too, once it reads again."""
    server = start(worker_processes=2)
    victim = min(server.workers())
    os.kill(victim, signal.SIGSTOP)
    for number in range(300):
        server.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: server.errors().count('reopening the logs') > number, 'the signal is heard')
    os.rename(server.access_path, server.access_path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(server.access_path), 'a new file')
    if how == signal.SIGQUIT:
        os.kill(victim, signal.SIGCONT)

        def in_the_new_file():
            for _ in range(10):     # some of them by the one that slept
                assert http1.connect(server.plain).get(f'/one.txt?{victim}').status == 200
            return server_kit.read_text(server.access_path).count(f'?{victim}') >= 10
        wait_for(in_the_new_file, 'all lines in the new file')
        os.kill(victim, signal.SIGSTOP)
        for number in range(301, 600):
            server.process.send_signal(signal.SIGUSR1)
            wait_for(lambda: server.errors().count('reopening the logs') > number, 'the signal is heard')
    server.process.send_signal(how)
    wait_for(lambda: 'signal TERM: ending' in server.errors() or 'signal QUIT: ending' in server.errors(), 'the end is heard')
    os.kill(victim, signal.SIGCONT)
    assert server.process.wait(20 * server_kit.PATIENCE) == 0
    assert 'does not end' not in server.errors() and 'failed (11' not in server.errors()
