"""The sandbox of the workers: what each part removes, in the processes of a running server."""
import os
import signal
import subprocess

import pytest

from kit import http1, server as server_kit
from kit.lifetime import signal_and_wait, wait_for

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason='needs root to choose the user of a process')
SETS = ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')


def status_of(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as stream:
        return dict(line.rstrip('\n').split(':\t', 1) for line in stream if ':\t' in line)


def dumpable(pid):
    """The kernel gives the files of a process that is not dumpable to root (proc(5))."""
    return os.stat(f'/proc/{pid}/environ').st_uid == int(status_of(pid)['Uid'].split()[1])


class Unprivileged:
    """A server that nobody starts, with the ambient capability that service managers give for port 443."""

    def __init__(self, folder, program, main=''):
        self.port = server_kit.free_port()
        path = folder / 'nobody.yaml'
        path.write_text(f'{main}\nerror_log: stderr info\nworker_processes: 1\n'
                        f'http: {{access_log: off, server: {{listen: "127.0.0.1:{self.port}", return: 200 ok}}}}\n')
        self.log = folder / 'log'
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=+net_bind_service',
                                             '--ambient-caps=+net_bind_service', program, '-c', str(path)], stdout=log, stderr=log)
        wait_for(lambda: ' runs, ' in server_kit.read_text(self.log), 'the worker is ready')

    def worker(self):
        with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='ascii') as stream:
            return int(stream.read())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30 * server_kit.PATIENCE) == 0
        return server_kit.read_text(self.log)


@pytest.fixture
def unprivileged(tmp_path, sluice_copy):
    running = []

    def launch(main=''):
        running.append(Unprivileged(tmp_path, sluice_copy, main))
        return running[-1]
    yield launch
    for made in running:
        if made.process.poll() is None:
            made.process.kill()


@ROOT
@pytest.mark.parametrize('user', ['root', 'www-data'])
def test_workers_have_no_capabilities(start, loop, user):
    server = start(loop, user=user)
    status = status_of(server.workers()[0])
    assert {name: int(status[name], 16) for name in SETS} == dict.fromkeys(SETS, 0)
    assert status['NoNewPrivs'] == '1'
    assert http1.connect(server.port, 'user').get('/one.txt').body == b'one\n'
    assert signal_and_wait(server, signal.SIGTERM) == 0
    assert 'sandbox: capabilities, no_dump' in server.errors()


@ROOT
def test_off_keeps_what_root_has(start):
    server = start(user='root', sandbox='off')
    status = status_of(server.workers()[0])
    assert int(status['CapEff'], 16) and int(status['CapBnd'], 16) and dumpable(server.workers()[0])
    assert signal_and_wait(server, signal.SIGTERM) == 0
    assert 'sandbox: off' in server.errors()


@ROOT
def test_workers_do_not_keep_the_capabilities_of_a_service(unprivileged):
    server = unprivileged()
    master, worker = status_of(server.process.pid), status_of(server.worker())
    assert int(master['CapEff'], 16) == int(master['CapAmb'], 16) == 1 << 10, 'the master binds with it'
    assert all(int(worker[name], 16) == 0 for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb'))
    assert dumpable(server.process.pid) and not dumpable(server.worker())
    assert http1.connect(server.port).get('/').body == b'ok'
    assert 'sandbox: capabilities, no_dump' in server.stop()


@ROOT
def test_each_part_is_applied_alone(unprivileged):
    server = unprivileged('sandbox: [capabilities]')
    worker = server.worker()
    assert int(status_of(worker)['CapEff'], 16) == 0 and dumpable(worker)
    assert 'sandbox: capabilities\n' in server.stop()
    server = unprivileged('sandbox: no_dump')
    worker = server.worker()
    assert int(status_of(worker)['CapEff'], 16) == 1 << 10 and not dumpable(worker)
    assert 'sandbox: no_dump\n' in server.stop()


@ROOT
def test_a_reload_changes_the_sandbox(start, loop):
    server = start(loop, user='root', sandbox='off')
    worker = server.workers()[0]
    assert int(status_of(worker)['CapEff'], 16)
    text = server_kit.read_text(server.config_path)
    with open(server.config_path, 'w', encoding='utf-8') as stream:
        stream.write(text.replace('sandbox: "off"', 'sandbox: "on"'))
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: worker not in server.workers() and len(server.workers()) == 1, 'the new worker')
    assert int(status_of(server.workers()[0])['CapEff'], 16) == 0
    assert 'sandbox: capabilities, no_dump' in server.errors()
    assert signal_and_wait(server, signal.SIGTERM) == 0
