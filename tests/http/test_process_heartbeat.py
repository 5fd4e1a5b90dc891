"""Workers that hang or crash under load: the master replaces them, and the others serve meanwhile."""
import os
import re
import signal
import threading
import time

import pytest

from kit import http1, server as server_kit
from kit.lifetime import alive, signal_and_wait, wait_for

HANGS = 'has not run its event loop for'


class Load:
    """Clients that send one request per connection until `stop`, which returns one line for each request without a 200 response."""

    def __init__(self, port, clients=3):
        self.port, self.failures, self.served, self.ended = port, [], 0, threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.ended.is_set():
            try:
                client = http1.connect(self.port, timeout=60 * server_kit.PATIENCE)
                status = client.get('/one.txt').status
                client.close()
                if status != 200:
                    self.failures.append(f'status {status}')
            except (OSError, EOFError, AssertionError, http1.BadResponse) as error:
                self.failures.append(repr(error))
            self.served += 1

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()
        return self.failures


def replaced(server, victim):
    now = server.workers()
    return not alive(victim) and victim not in now and len(now) == 2


def test_a_stopped_worker_is_replaced(start, loop):
    """The connections in the queue of the stopped worker are accepted by the other worker, and by the replacement."""
    server = start(loop, worker_processes=2, worker_heartbeat_timeout='2s')
    victim, survivor = sorted(server.workers())
    os.kill(victim, signal.SIGSTOP)
    load = Load(server.plain)
    wait_for(lambda: replaced(server, victim), 'a new worker', 60)
    served = load.served
    wait_for(lambda: load.served > served + 100, 'further responses', 60)
    assert load.stop() == []        # the load began after the signal, so the victim accepted none of these connections
    log = server.errors()
    assert survivor in server.workers() and log.count(HANGS) == 1
    assert re.search(rf'worker process {victim} {HANGS} \d+ ms \(worker_heartbeat_timeout\): it is killed and replaced', log)
    assert log.index(HANGS) < log.index(f'worker process {victim} exited on signal')
    assert signal_and_wait(server, signal.SIGTERM) == 0


@pytest.mark.parametrize('timeout', ['off', '60s'])
def test_a_worker_that_stops_briefly_is_kept(start, timeout):
    server = start(worker_processes=2, worker_heartbeat_timeout=timeout)
    before = set(server.workers())
    victim = min(before)
    os.kill(victim, signal.SIGSTOP)
    time.sleep(4)
    os.kill(victim, signal.SIGCONT)
    for _ in range(20):
        assert http1.connect(server.plain).get('/one.txt').status == 200
    assert set(server.workers()) == before and HANGS not in server.errors()
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_a_stopped_worker_that_drains_is_killed(start):
    """After a reload the hanging worker of the old configuration is killed and not replaced."""
    server = start(worker_processes=1, worker_heartbeat_timeout='2s')
    victim, = server.workers()
    client = http1.connect(server.plain)
    client.send('GET /one.txt HTTP/1.1\r\n')      # the request is never completed, so the worker cannot exit
    wait_for(lambda: http1.connect(server.plain).get('/one.txt').status == 200, 'a response')
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: server.errors().count(' runs, ') == 2, 'the new configuration')
    if alive(victim):
        os.kill(victim, signal.SIGSTOP)
    wait_for(lambda: not alive(victim), 'its end', 60)
    wait_for(lambda: len(server.workers()) == 1, 'only the new worker')
    assert http1.connect(server.plain).get('/one.txt').status == 200
    client.close()
    assert signal_and_wait(server, signal.SIGTERM) == 0


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGSEGV], ids=['kill', 'segv'])
def test_a_crash_under_load(start, loop, how):
    """Only the connections of the worker that dies may fail: at most one for each client."""
    server = start(loop, worker_processes=2)
    victim, survivor = sorted(server.workers())
    load = Load(server.plain)
    wait_for(lambda: load.served > 50, 'load')
    os.kill(victim, how)
    wait_for(lambda: replaced(server, victim), 'a new worker')
    served = load.served
    wait_for(lambda: load.served > served + 100, 'further responses')
    assert len(load.stop()) <= 3
    assert survivor in server.workers()
    log = server.errors()
    # AddressSanitizer turns SIGSEGV into an exit code.
    assert re.search(rf'\[alert\].*worker process {victim} exited (on signal {how.value}|with code [1-9])', log) and HANGS not in log
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_a_crash_loop_is_logged(start):
    server = start(worker_processes=2)
    survivor = max(server.workers())

    def logged():
        for pid in set(server.workers()) - {survivor}:
            os.kill(pid, signal.SIGKILL)
        return re.search(r'[2-9] workers in a row exited within a second of their start: the next one starts in \d+ ms', server.errors())
    wait_for(logged, 'the log line', 60)
    assert survivor in server.workers()
    assert signal_and_wait(server, signal.SIGTERM) == 0
