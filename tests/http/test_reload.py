"""HUP: a new configuration takes effect, an invalid one changes nothing, and no request fails."""
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

from kit import http1, server as server_kit, upstream as upstream_kit
from kit.lifetime import alive, signal_and_wait, refused, wait_for

TAKEN = 'Address already in use'


class Reloading(server_kit.Server):
    """A server whose response identifies its configuration."""

    def __init__(self, folder, certificate, loop, main=None):
        self.plain, self.secure = server_kit.free_port(), server_kit.free_port()
        self.certificate = certificate
        super().__init__(folder, [self.block('first')], loop=loop, main={'worker_processes': 2, **(main or {})})

    def block(self, response, *more):
        return {'listen': [f'127.0.0.1:{self.plain}', f'127.0.0.1:{self.secure} ssl', *more],
                'ssl_certificate': self.certificate[0], 'ssl_certificate_key': self.certificate[1],
                'location': {'/': {'return': f'200 {response}'}}}

    def write(self, *servers, **main):
        self.tree.update(main)
        self.tree['http']['server'] = list(servers)
        self.write_configuration()

    def reload(self, expected=server_kit.RUNS, how=None):
        """Reloads and waits for a line in the error log; returns the new lines."""
        before = len(self.errors())
        if how:
            how()
        else:
            self.process.send_signal(signal.SIGHUP)
        try:
            wait_for(lambda: expected in self.errors()[before:], expected)
        except AssertionError:
            raise AssertionError(f'no "{expected}" in:\n{self.errors()[before:]}') from None
        return self.errors()[before:]

    def responds_with(self, expected, transport='plain'):
        """Waits until ten consecutive responses come from the new configuration: at first, old workers still accept the connections queued
        on their sockets."""
        wait_for(lambda: all(self.fetch(transport) == expected for _ in range(10)), expected)
        return True

    def fetch(self, transport='plain'):
        client = http1.connect(self.secure if transport == 'user' else self.plain, transport)
        try:
            return client.get('/').body.decode()
        finally:
            client.close()


@pytest.fixture
def start_server(certificate, tmp_path, loop):
    made = []

    def starter(**main):
        server = Reloading(tmp_path / f'server{len(made)}', certificate, loop, main)
        made.append(server)
        server.start((server.plain, server.secure))
        wait_for(lambda: server_kit.RUNS in server.errors(), 'all workers are ready')
        return server
    yield starter
    for server in made:
        server.stop()


def test_hup_activates_the_new_configuration(start_server):
    server = start_server()
    workers = server.workers()
    other = server_kit.free_port()
    server.write(server.block('second', f'127.0.0.1:{other}'))
    server.reload()
    assert server.responds_with('second') and server.responds_with('second', 'user')
    wait_for(lambda: not any(alive(pid) for pid in workers), 'the old workers have ended')
    wait_for(lambda: len(server.workers()) == 2, 'two workers, and nothing else of the master')
    client = http1.connect(other, 'plain')
    assert client.get('/').body == b'second'
    # The next reload removes the added address again: its socket is closed.
    server.write(server.block('third'))
    server.reload()
    wait_for(lambda: refused(other), 'the port is closed')
    assert server.responds_with('third')
    assert 'alert' not in server.errors() and 'emerg' not in server.errors()
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_option_s_reload(start_server):
    server = start_server()
    server.write(server.block('second'))
    command = [server_kit.SLUICE, '-s', 'reload', '-c', server.config_path]
    server.reload(how=lambda: subprocess.run(command, check=True, timeout=20 * server_kit.PATIENCE))
    assert server.responds_with('second')
    with open(server.config_path, 'a', encoding='utf-8') as stream:
        stream.write('nonsense: 1\n')
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20 * server_kit.PATIENCE)
    assert ran.returncode == 1 and "unknown directive 'nonsense'" in ran.stderr
    assert 'reload failed' not in server.errors(), 'the running configuration stays'


@pytest.mark.parametrize('fault', ['syntax', 'directive', 'port', 'log', 'certificate', 'user'])
def test_invalid_configuration_changes_nothing(start_server, fault, tmp_path):
    server = start_server()
    workers = sorted(server.workers())
    block = server.block('second')
    with socket.socket() as holder:
        holder.bind(('127.0.0.1', server_kit.free_port()))
        holder.listen()
        output = {
            'syntax': lambda: (open(server.config_path, 'w', encoding='utf-8').write('http: {server: [\n'), 'error:')[1],
            'directive': lambda: (server.write({**block, 'rooot': '/'}), "did you mean 'root'?")[1],
            'port': lambda: (server.write({**block, 'listen': [*block['listen'], f'127.0.0.1:{holder.getsockname()[1]}']}), TAKEN)[1],
            'log': lambda: (server.write({**block, 'access_log': str(tmp_path / 'no' / 'log')}), 'No such file or directory')[1],
            'certificate': lambda: (server.write({**block, 'ssl_certificate': str(tmp_path / 'none')}), 'No such file')[1],
            'user': lambda: (server.write(block, user='nobody-of-this-name'), 'nobody-of-this-name')[1],
        }[fault]()
        if fault == 'user' and os.geteuid() != 0:
            pytest.skip('only root has a user to change')
        text = server.reload('reload failed: the running configuration stays in use')
    assert output in text, text
    assert sorted(server.workers()) == workers
    assert server.fetch() == server.fetch('user') == 'first'
    # A failed reload does not affect the next one.
    server.tree.pop('user', None)
    server.write(server.block('third'))
    server.reload()
    assert server.responds_with('third')


def test_warnings_are_printed_at_the_start_and_logged_at_a_reload(start_server, loop):
    server = start_server(events={'use': loop, 'multi_accept': 'off'})
    warning = '"multi_accept: off" has no effect'
    assert server_kit.read_text(server.output_path).count(warning) == 1
    server.write(server.block('second'))
    line, = (line for line in server.reload().splitlines() if warning in line)
    assert re.search(r'\[warn\].* \S*sluice\.yaml:\d+:\d+: warning: ', line), line
    server.write(server.block('third'), events={'use': loop})
    assert warning not in server.reload()


def test_failed_worker_start_keeps_the_old_generation(start_server, tmp_path):
    """Some of the new workers cannot start: the old workers continue, and the new ones that started end."""
    server = start_server()
    workers = sorted(server.workers())
    files = len(os.listdir(f'/proc/{server.process.pid}/fd')) + 20
    subprocess.run(['prlimit', '--pid', str(server.process.pid), f'--nofile={files}:{files}'], check=True)
    server.write({**server.block('second'), 'listen': f'unix:{tmp_path}/socket'}, worker_processes=64)
    text = server.reload('reload failed')
    assert 'starting a worker process failed (24: Too many open files)' in text
    assert sorted(server.workers()) == workers and server.fetch() == 'first'
    assert not os.path.exists(tmp_path / 'socket'), 'its path is gone with it'
    server.write(server.block('third'), worker_processes=2)
    server.reload()
    assert server.responds_with('third')


def test_worker_processes_changes(start_server):
    server = start_server()
    for count in (4, 1, 3):
        server.write(server.block(f'by-{count}'), worker_processes=count)
        server.reload()
        wait_for(lambda: len(server.workers()) == count, f'{count} workers')         # pylint: disable=cell-var-from-loop
        # Several connections: the kernel distributes them among all sockets of the address, and each socket must be served.
        for _ in range(5):
            assert server.responds_with(f'by-{count}')


@pytest.mark.parametrize('transport', ['plain', 'user'])
def test_idle_connection_gets_connection_close(start_server, transport):
    """On a kept connection, one more request gets a response of the old configuration, with Connection: close."""
    server = start_server()
    client = http1.connect(server.secure if transport == 'user' else server.plain, transport)
    assert client.get('/').body == b'first'
    server.write(server.block('second'))
    server.reload()
    response = client.get('/')
    assert response.body == b'first' and response.closes
    assert client.at_end()
    assert server.responds_with('second', transport)


def test_worker_shutdown_timeout_ends_downloads(start_server, tmp_path):
    """A download continues in the old worker; worker_shutdown_timeout ends one that takes too long."""
    server = start_server(worker_shutdown_timeout='2s')
    big = tmp_path / 'big'
    with open(big, 'wb') as stream:
        stream.truncate(64 << 20)
    server.write({**server.block('second'), 'root': str(tmp_path), 'location': {'= /': {'return': '200 second'}}})
    server.reload()
    wait_for(lambda: len(server.workers()) == 2, 'the old workers have ended')
    client = http1.connect(server.plain, 'plain')
    client.send('GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    old = server.workers()
    server.write(server.block('third'))
    text = server.reload()
    assert server.responds_with('third')
    assert client.read_exactly(1 << 20) == bytes(1 << 20)
    wait_for(lambda: 'worker_shutdown_timeout: 1 connections are closed' in server.errors(), 'the deadline')
    wait_for(lambda: not any(alive(pid) for pid in old), 'the old workers have ended')
    assert 'alert' not in text


def test_reload_under_load_fails_no_request(start_server):
    """Clients with and without keep-alive during many reloads: every request gets its response."""
    server = start_server(worker_processes=2)
    over, faults, counts = threading.Event(), [], [0] * 6

    def client(number):
        transport = 'user' if number % 2 else 'plain'
        port = server.secure if number % 2 else server.plain
        try:
            while not over.is_set():
                connection = http1.connect(port, transport)
                for _ in range(1 if number < 2 else 50):
                    response = connection.get('/')
                    assert response.status == 200 and response.body.startswith(b'number'), response.body
                    counts[number] += 1
                    if response.closes:
                        break
                connection.close()
        except Exception as fault:  # pylint: disable=broad-except
            faults.append(fault)
    server.write(server.block('number-0'))
    server.reload()
    assert server.responds_with('number-0') and server.responds_with('number-0', 'user')
    wait_for(lambda: len(server.workers()) == 2, 'the old workers have ended')
    threads = [threading.Thread(target=client, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for number in range(1, 9):
        server.write(server.block(f'number-{number}'), worker_processes=1 + number % 3)
        server.reload()
        before = list(counts)
        wait_for(lambda: faults or all(count >= earlier + 10 for count, earlier in zip(counts, before)), 'ten responses for each client')  # pylint: disable=cell-var-from-loop
    over.set()
    for thread in threads:
        thread.join()
    assert not faults, faults[0]
    assert min(counts) > 10, counts
    assert server.responds_with('number-8')


def test_several_hup_signals_cause_one_more_reload(start_server):
    """A HUP during a reload is not lost, and several of them cause only one more reload."""
    server = start_server()
    for number in range(10):
        server.write(server.block(f'number-{number}'))
        server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: server.fetch() == 'number-9', 'the last one')
    wait_for(lambda: len(server.workers()) == 2, 'two workers')
    assert signal_and_wait(server, signal.SIGQUIT) == 0


def test_counters_and_logs_continue(start_server, tmp_path):
    """Counters survive a reload; master and workers write to the logs of the new configuration."""
    server = start_server()
    status = {'location': {'/': {'return': '200 x'}, '= /status': {'status': True}}}
    server.write({**server.block('x'), **status})
    server.reload()
    for _ in range(5):
        server.fetch()
    before = numbers(server)
    assert before['sluice_generation'] == 2 and before['sluice_requests_total'] >= 5
    log = tmp_path / 'other.log'
    server.write({**server.block('x'), **status}, error_log={'path': str(log), 'level': 'info'})
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: server_kit.RUNS in server_kit.read_text(log), 'the new log')
    after = numbers(server)
    assert after['sluice_generation'] == 3
    assert after['sluice_requests_total'] > before['sluice_requests_total']
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: 'signal USR1' in server_kit.read_text(log), 'a line of USR1')
    assert signal_and_wait(server, signal.SIGTERM) == 0


def numbers(server):
    client = http1.connect(server.plain, 'plain')
    text = client.get('/status').body.decode()
    client.close()
    return {line.split()[0]: float(line.split()[-1]) for line in text.splitlines() if line and line[0] != '#'}


def test_websocket_continues(start_server):
    """An upgraded connection stays in the old worker until worker_shutdown_timeout."""
    def echo(peer):
        peer.send(b'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n')
        for _ in range(2):
            peer.send(peer.read_exactly(3))

    server, upstream = start_server(), upstream_kit.Upstream({'/': echo})
    try:
        server.write({**server.block('x'), 'location': {'/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}}})
        server.reload()
        wait_for(lambda: len(server.workers()) == 2, 'the old workers have ended')
        client = http1.connect(server.plain, 'plain')
        client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n')
        assert client.head().status == 101
        server.write(server.block('second'))
        server.reload()
        for word in (b'one', b'two'):
            client.send(word.decode())
            assert client.read_exactly(3) == word
        client.close()
        assert server.responds_with('second')
    finally:
        upstream.stop()


def test_hup_during_a_failing_reload(start_server, tmp_path):
    """A HUP that arrives while new workers fail to start is not lost."""
    server = start_server()
    files = len(os.listdir(f'/proc/{server.process.pid}/fd')) + 20
    subprocess.run(['prlimit', '--pid', str(server.process.pid), f'--nofile={files}:{files}'], check=True)
    block = {**server.block('second'), 'listen': f'unix:{tmp_path}/socket ssl'}
    server.write(*({**block, 'server_name': f'name-{number}'} for number in range(200)), worker_processes=64)   # long, so that the server loads it slowly
    server.reload('signal HUP')
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: server.errors().count('reload failed') == 2, 'both are refused')
    assert server.fetch() == 'first'


def test_logs_reopened_while_a_reload_starts(start_server, tmp_path):
    """USR1 during a reload: the new and the old configuration each reopen their own error log."""
    server = start_server()
    first, log = server.errors(), tmp_path / 'other.log'
    server.write(server.block('second'), error_log={'path': str(log), 'level': 'info'})
    server.process.send_signal(signal.SIGSTOP)
    wait_for(lambda: state(server.process.pid) == 'T', 'the master is stopped')
    for number in (signal.SIGHUP, signal.SIGUSR1):      # handled in this order: the kernel delivers the lower signal number first
        server.process.send_signal(number)
    server.process.send_signal(signal.SIGCONT)
    assert server.responds_with('second')
    wait_for(lambda: server_kit.RUNS in server_kit.read_text(log), 'the new log')
    assert 'signal USR1' in server_kit.read_text(log)
    assert 'runs' not in server.errors()[len(first):]


def state(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as stream:
        return stream.read().rsplit(')', 1)[1].split()[0]
