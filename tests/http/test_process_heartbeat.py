"""Workers that hang or crash under load: the master replaces them, and the others serve meanwhile."""
import ctypes
import email.utils
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from kit import forbidden as forbidden_kit, http1, server as server_kit
from kit.lifetime import alive, kill_each, signal_and_wait, wait_for
from kit.wall_clock import WallClock

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


def test_hanging_worker_is_replaced(start, loop):
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
def test_worker_is_not_replaced_after_a_short_stop(start, timeout):
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


def test_hanging_worker_of_the_old_generation_is_killed(start):
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
def test_crash_under_load_fails_only_its_connections(start, loop, how):
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


def test_crash_loop_is_logged(start):
    server = start(worker_processes=2)
    survivor = max(server.workers())

    def logged():
        kill_each(set(server.workers()) - {survivor})
        return re.search(r'[2-9] workers in a row exited within a second of their start: the next one starts in \d+ ms', server.errors())
    wait_for(logged, 'the log line', 60)
    assert survivor in server.workers()
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_a_replacement_starts_within_a_second(start, loop):
    """From the kill to the first heartbeat of a second process. The best of five attempts: other processes use this machine, too."""
    server = start(loop, worker_processes=2)
    survivor = max(server.workers())
    times = []
    for number in range(5):
        victim, = set(server.workers()) - {survivor}
        time.sleep(1.1)                 # a worker that runs for less than a second is replaced after a delay
        began = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: server.errors().count(' started') == 3 + number and len(server.workers()) == 2, 'a new worker')
        times.append(time.monotonic() - began)
        assert survivor in server.workers()
    assert min(times) < server_kit.PATIENCE, times
    assert 'the next one starts in' not in server.errors()
    assert signal_and_wait(server, signal.SIGTERM) == 0


SERVED = {'/one.txt': {'return': '200 ok'}}


def ticks_of(pid):
    """Its ticks; infinity if it has ended: on a busy machine it may be replaced before it has used many."""
    try:
        return server_kit.process_ticks(pid)
    except (FileNotFoundError, ProcessLookupError):
        return float('inf')


def test_a_worker_in_an_endless_loop_is_replaced(forbidden, loop):
    server = forbidden(loop, location=SERVED, worker_processes=2, worker_heartbeat_timeout='2s')
    ticks = {pid: server_kit.process_ticks(pid) for pid in server.workers()}
    client = forbidden_kit.request(server, 'loop')
    victim, = wait_for(lambda: [pid for pid in ticks if ticks_of(pid) > ticks[pid] + 20], 'an endless loop')
    load = Load(server.plain)
    wait_for(lambda: replaced(server, victim), 'a new worker', 60)
    served = load.served
    wait_for(lambda: load.served > served + 100, 'further responses', 60)
    assert load.stop() == []
    assert set(ticks) - {victim} < set(server.workers())
    log = server.errors()
    assert log.count(HANGS) == 1 and f'worker process {victim} {HANGS}' in log and f'worker process {victim} exited' in log
    client.close()
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_a_worker_ends_during_an_operation_of_a_helper_thread(forbidden, loop):
    """The worker waits one second for the operation, which then still reads the configuration."""
    server = forbidden(loop, worker_processes=1, worker_heartbeat_timeout='60s')
    assert forbidden_kit.attempt(server, 'read') == 0
    assert server.stop() == 0
    assert ': 1 operations did not end\n' in server.errors() and 'is killed' not in server.errors()


NOT_READY = re.compile(r'has not become ready for \d+ ms \(6 times worker_heartbeat_timeout\): it is killed( and replaced)?\n')


def test_a_worker_that_does_not_become_ready_is_killed(forbidden, loop, tmp_path):
    """A replacement, a reload and a start: each has a worker that hangs before it accepts connections."""
    gate = tmp_path / 'gate'
    server = forbidden(loop, location=SERVED, environment={'FORBIDDEN_WAIT': str(gate)}, worker_processes=2, worker_heartbeat_timeout='1s')
    before = server.workers()
    gate.touch()
    os.kill(before[0], signal.SIGKILL)
    wait_for(lambda: NOT_READY.findall(server.errors()) == [' and replaced'], 'the replacement is killed', 60)
    assert all(http1.connect(server.plain).get('/one.txt').status == 200 for _ in range(8)), 'the other worker serves meanwhile'
    gate.unlink()
    wait_for(lambda: len(server.workers()) == 2 and before[0] not in server.workers(), 'another replacement')
    gate.touch()
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(NOT_READY.findall(server.errors())) >= 2, 'a worker of the new generation is killed', 60)
    wait_for(lambda: len(server.workers()) == 2, 'the new generation has ended', 30)
    assert http1.connect(server.plain).get('/one.txt').status == 200, 'the old generation serves'
    assert signal_and_wait(server, signal.SIGTERM) == 0
    log = server.errors()
    server.start([server.plain])        # the kernel accepts connections already
    assert server.process.wait(30 * server_kit.PATIENCE) == 1
    assert NOT_READY.search(server.errors()[len(log):]) and 'a worker could not start' in server.errors()[len(log):]


def test_a_worker_that_sends_malformed_messages_is_killed(forbidden, loop):
    server = forbidden(loop, location=SERVED, worker_processes=2)
    before = set(server.workers())
    assert forbidden_kit.attempt(server, 'channel') is None
    wait_for(lambda: len(server.workers()) == 2 and set(server.workers()) != before, 'a new worker')
    victim, = before - set(server.workers())
    log = server.errors()
    assert log.count('malformed') == 1 and f'worker process {victim} sent a malformed message: it is killed' in log
    assert f'worker process {victim} exited on signal 9' in log
    assert all(http1.connect(server.plain).get('/one.txt').status == 200 for _ in range(8))
    assert signal_and_wait(server, signal.SIGTERM) == 0


@pytest.mark.parametrize('byte', ['255', '1', '0'])
def test_a_worker_that_overwrites_shared_memory_does_not_harm_the_master(forbidden, loop, tmp_path, byte):
    """The master has shared memory of every kind. It changes the log level and the ticket keys, reloads, replaces workers and exits as usual."""
    for name in ('cache', 'acme'):
        (tmp_path / name).mkdir()
        os.chmod(tmp_path / name, 0o777)
    group = {'server': ['127.0.0.1:9', '127.0.0.1:8'], 'zone': 'app 64k ports=any'}
    http = {'proxy_cache_path': {'path': str(tmp_path / 'cache'), 'keys_zone': 'a:1m'}, 'ssl_session_cache': 'shared:b:1m',
            'limit_req_zone': '$arg_key zone=c:1m rate=1r/m', 'limit_conn_zone': '$arg_key zone=d:1m', 'status_zone': True,
            'upstream': {'app': group}, 'otel_exporter': {'endpoint': 'http://127.0.0.1:9'}, 'otel_trace': True,
            'acme': {'state': str(tmp_path / 'acme'), 'directory': 'https://127.0.0.1:9/dir', 'email': 'admin@example.org'}}
    location = {**SERVED, '/app/': {'proxy_pass': 'http://app', 'proxy_cache': 'a', 'limit_conn': 'd 1', 'limit_req': 'zone=c'}}
    stream = {'status_zone': True, 'upstream': {'tcp': group}, 'server': {'listen': f'127.0.0.1:{server_kit.free_port()}', 'proxy_pass': 'tcp'}}
    secure = {'listen': f'127.0.0.1:{server_kit.free_port()} ssl', 'server_name': 'a.test', 'ssl_certificate': 'acme', 'return': '200 ok'}
    control = f'unix:{tmp_path}/control.sock'
    server = forbidden(loop, location=location, http=http, more=[secure], stream=stream, control=control, sandbox='off', worker_processes=1,
                       worker_heartbeat_timeout='1s')
    victim = int(re.search(r'worker process (\d+) started', server.errors())[1])
    result = forbidden_kit.attempt(server, 'overwrite', byte)
    assert result in (0, None)
    if result is None:      # the worker itself failed on what it wrote, or hung
        wait_for(lambda: f'worker process {victim} exited' in server.errors(), 'its end is logged')
    kill_each([victim])
    wait_for(lambda: len(re.findall('worker process .* started', server.errors())) >= 2, 'a replacement')
    if byte == '0':         # otherwise locks are held for ever, so that no worker responds
        for words in (['log-level', 'notice'], ['ticket-keys', 'rotate']):
            subprocess.run([server_kit.SLUICE, 'ctl', '-s', control, *words], timeout=60 * server_kit.PATIENCE, check=True)
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(re.findall('worker process .* started', server.errors())) >= 3, 'a new generation', 60)
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_damage_of_a_zone_is_logged(forbidden, loop):
    """A zone of a limit in which all numbers are zero is inconsistent: the worker empties it and logs its name."""
    location = {**SERVED, '/limited/': {'root': '/nonexistent', 'limit_req': 'zone=c'}}
    server = forbidden(loop, location=location, http={'limit_req_zone': '$arg_key zone=c:1m rate=1000r/s'}, sandbox='off', worker_processes=1)
    http1.connect(server.plain).get('/limited/?key=1')
    assert 'inconsistent' not in server.errors()
    assert forbidden_kit.attempt(server, 'overwrite', '0') == 0
    for _ in range(3):
        http1.connect(server.plain).get('/limited/?key=1')
    wait_for(lambda: 'limit_req "c": its shared memory is inconsistent and is emptied' in server.errors(), 'the log line')
    assert '[alert]' in next(line for line in server.errors().splitlines() if 'inconsistent' in line)


PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 17, 0x4206, 0x4207, 0x40000000


def test_a_worker_that_a_debugger_has_stopped_is_kept(start):
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace.restype = ctypes.c_long
    server = start(worker_processes=2, worker_heartbeat_timeout='2s')
    before = set(server.workers())
    traced = min(before)
    if ptrace(PTRACE_SEIZE, traced, None, None) < 0:
        pytest.skip(f'ptrace: {os.strerror(ctypes.get_errno())}')
    assert ptrace(PTRACE_INTERRUPT, traced, None, None) == 0
    os.waitpid(traced, WALL)
    message = f'worker process {traced} does not run its event loop, because process {os.getpid()} traces it: it is not killed'
    wait_for(lambda: message in server.errors(), 'the log line')
    time.sleep(5)
    assert ptrace(PTRACE_DETACH, traced, None, None) == 0
    for _ in range(20):
        assert http1.connect(server.plain).get('/one.txt').status == 200
    assert set(server.workers()) == before and HANGS not in server.errors() and server.errors().count(message) == 1
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_a_wall_clock_that_jumps_ends_no_worker(start, loop, tmp_path):
    """A day forward and two days back: timeouts and delays follow the monotonic clock, and responses have the new date."""
    clock = WallClock(tmp_path / 'clock')
    server = start(loop, wait=False, worker_processes=2, worker_heartbeat_timeout='2s')
    server.environment = clock.environment
    server.start([server.plain])
    wait_for(lambda: ' runs, ' in server.errors(), 'every worker is ready')
    workers, connections = set(server.workers()), [http1.connect(server.plain) for _ in range(4)]

    def shift():
        responses = [client.get('/one.txt') for client in connections]
        assert all(response.status == 200 for response in responses)
        return {round((email.utils.parsedate_to_datetime(response.headers['date']).timestamp() - time.time()) / 86400) for response in responses}
    assert shift() == {0}
    for days in (1, -1):
        clock.shift(days * 86400)
        wait_for(lambda: shift() == {days}, 'the new date')
        time.sleep(3)
        assert shift() == {days} and set(server.workers()) == workers and HANGS not in server.errors()
    victim = min(workers)
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: replaced(server, victim), 'a new worker')
    assert signal_and_wait(server, signal.SIGTERM) == 0
