"""The sandbox of the workers: what each part removes, in the processes of a running server."""
import json
import os
import re
import signal
import socket
import subprocess

import pytest

from kit import http1, server as server_kit
from kit.forbidden import attempt
from kit.lifetime import signal_and_wait, wait_for
from kit.without_call import without_call

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason='needs root to choose the user of a process')
SETS = ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')


def status_of(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as stream:
        return dict(line.rstrip('\n').split(':\t', 1) for line in stream if ':\t' in line)


def dumpable(pid):
    """The kernel gives the files of a process that is not dumpable to root (proc(5))."""
    return os.stat(f'/proc/{pid}/environ').st_uid == int(status_of(pid)['Uid'].split()[1])


class Unprivileged:
    """A server started as the user nobody, with the ambient capability that service managers give for port 443."""

    def __init__(self, folder, program, main=''):
        self.port = server_kit.free_port()
        path = folder / 'sluice.yaml'
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
def test_off_retains_root_capabilities(start):
    server = start(user='root', sandbox='off')
    status = status_of(server.workers()[0])
    assert int(status['CapEff'], 16) and int(status['CapBnd'], 16) and dumpable(server.workers()[0])
    assert signal_and_wait(server, signal.SIGTERM) == 0
    assert 'sandbox: off' in server.errors()


@ROOT
def test_ambient_capabilities_are_dropped(unprivileged):
    server = unprivileged()
    master, worker = status_of(server.process.pid), status_of(server.worker())
    assert int(master['CapEff'], 16) == int(master['CapAmb'], 16) == 1 << 10, 'the master binds with it'
    assert all(int(worker[name], 16) == 0 for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb'))
    assert dumpable(server.process.pid) and not dumpable(server.worker())
    assert http1.connect(server.port).get('/').body == b'ok'
    assert 'sandbox: capabilities, no_dump' in server.stop()


@ROOT
def test_capabilities_alone_can_be_dropped(unprivileged):
    server = unprivileged('sandbox: [capabilities]')
    worker = server.worker()
    assert int(status_of(worker)['CapEff'], 16) == 0 and dumpable(worker)
    assert 'sandbox: capabilities\n' in server.stop()
    server = unprivileged('sandbox: no_dump')
    worker = server.worker()
    assert int(status_of(worker)['CapEff'], 16) == 1 << 10 and not dumpable(worker)
    assert 'sandbox: no_dump\n' in server.stop()


@ROOT
def test_reload_changes_the_sandbox(start, loop):
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


def has(part):
    """True if the kernel and the build have a part of the sandbox."""
    ran = subprocess.run([server_kit.SLUICE, 'doctor', '--json'], capture_output=True, text=True, check=False)
    return any(finding['text'].startswith(f'sandbox: {part}') and finding['verdict'] == 'good' for finding in json.loads(ran.stdout)['findings'])


DENIED = ('capset', 'clone', 'execve', 'io_uring_setup', 'ioctl', 'kill', 'listen', 'mmap', 'mount', 'ptrace', 'setuid', 'socket', 'unshare')


# Permitted in a build with sanitizers, whose reports need them.
REPORTING = ('clone', 'execve', 'ioctl', 'kill', 'mmap', 'ptrace')


def is_sanitized():
    with open(server_kit.SLUICE, 'rb') as binary:
        return b'__asan_init' in binary.read()


SECCOMP = pytest.mark.skipif(not has('seccomp'), reason='no libseccomp in this build, or no filters in this kernel')


@SECCOMP
@pytest.mark.parametrize('action', [*DENIED, 'netlink'])
def test_denied_system_call_ends_the_worker(forbidden, loop, action):
    """The call ends the worker, and the log names it."""
    if action in REPORTING and is_sanitized():
        pytest.skip('permitted in this build')
    server = forbidden(loop, sandbox='seccomp', user='root')
    worker, call = server.workers()[0], 'socket' if action == 'netlink' else action
    assert attempt(server, action, '0') is None
    wait_for(lambda: f'worker process {worker} exited on signal {signal.SIGSYS:d}: the sandbox does not allow the system call {call};' in
             server.errors(), call)
    assert signal_and_wait(server, signal.SIGTERM) == 0


@SECCOMP
def test_worker_is_replaced_after_a_denied_call(forbidden, loop):
    server = forbidden(loop, sandbox='seccomp')
    for call in ('unshare', 'mount'):
        worker = server.workers()[0]
        assert attempt(server, call) is None
        wait_for(lambda: server.workers() and server.workers() != [worker], 'the next worker')
        assert attempt(server, 'open', '/etc/passwd') == 0, 'a call that seccomp allows'
    assert signal_and_wait(server, signal.SIGTERM) == 0


@ROOT
def test_seccomp_off_permits_the_same_calls(forbidden, loop):
    """Without the sandbox the calls have results: this shows that the test module makes them."""
    server = forbidden(loop, sandbox='off', user='root')
    worker = server.workers()
    for call in ('clone', 'io_uring_setup', 'mmap', 'kill', 'setuid', 'socket', 'netlink', 'listen'):
        assert attempt(server, call, '0') == 0, call
    assert worker[0] in server.workers()
    assert signal_and_wait(server, signal.SIGTERM) == 0


LANDLOCK = pytest.mark.skipif(not has('landlock'), reason='no landlock in this kernel')
EACCES = 13
# Reading other files: a build with sanitizers permits it, for reports with source lines.
READ = 0 if is_sanitized() else EACCES


def landlock_version(server):
    return int(re.search(r'landlock \(version (\d+)', server.errors()).group(1))


@LANDLOCK
def test_only_configured_files_can_be_opened(forbidden, tmp_path, loop):
    """A worker opens files below the roots, and nothing else; it writes only to caches and temporary directories."""
    for name in ('www', 'cache', 'secret', 'temporary'):
        (tmp_path / name).mkdir(mode=0o777)
        os.chmod(tmp_path / name, 0o777)
        (tmp_path / name / 'file').write_text('text')
        os.chmod(tmp_path / name / 'file', 0o666)
    server = forbidden(loop, sandbox='landlock', location={'/www/': {
        'alias': f'{tmp_path}/www/', 'proxy_temp_path': str(tmp_path / 'temporary')}},
        http={'proxy_cache_path': {'path': str(tmp_path / 'cache'), 'keys_zone': 'a:1m'}})
    for path in ('/etc/passwd', '/etc/hostname', '/proc/self/maps', f'{tmp_path}/secret/file', server.config_path):
        assert attempt(server, 'open', path) == READ, path
    assert attempt(server, 'open', f'{tmp_path}/cache/file') == 0
    assert attempt(server, 'write', f'{tmp_path}/cache/new') == 0
    assert attempt(server, 'write', f'{tmp_path}/temporary/new') == 0
    assert attempt(server, 'unlink', f'{tmp_path}/temporary/new') == 0
    assert attempt(server, 'write', f'{tmp_path}/www/file') == EACCES
    assert attempt(server, 'unlink', f'{tmp_path}/www/file') == EACCES
    assert attempt(server, 'list', '/') == READ
    assert http1.connect(server.plain).get('/www/file').body == b'text'
    assert signal_and_wait(server, signal.SIGTERM) == 0


@LANDLOCK
def test_conditions_read_files_outside_the_roots(launch, tmp_path, loop):
    """`when: -f` finds a file in a directory that only the condition names."""
    served = launch(loop, 'plain', main={'sandbox': 'landlock'}, http={'open_file_cache': 'off'}, server={'location': {
        '/shop/': {'when': {f'-f {tmp_path}/closed': {'return': '503'}}, 'return': '200 open'}}})
    client = served.connect()
    assert client.get('/shop/').status == 200
    (tmp_path / 'closed').touch()
    assert client.get('/shop/').status == 503
    (tmp_path / 'closed').unlink()
    assert client.get('/shop/').status == 200
    client.close()


@LANDLOCK
def test_only_configured_ports_can_be_connected(forbidden, loop):
    with socket.create_server(('127.0.0.1', 0)) as other, socket.create_server(('127.0.0.1', 0)) as upstream:
        configured, unknown = upstream.getsockname()[1], other.getsockname()[1]
        server = forbidden(loop, sandbox='landlock', location={'/app/': {'proxy_pass': f'http://127.0.0.1:{configured}'}})
        if landlock_version(server) < 4:
            pytest.skip('ports: Linux 6.7')
        assert attempt(server, 'connect', configured) == 0
        assert attempt(server, 'connect', unknown) == EACCES
        assert attempt(server, 'listen', server_kit.free_port()) == EACCES
        assert signal_and_wait(server, signal.SIGTERM) == 0
        variable = forbidden(loop, sandbox='landlock', location={'/app/': {'proxy_pass': 'http://127.0.0.1:$arg_port'}})
        assert attempt(variable, 'connect', unknown) == 0, 'variables decide'
        assert 'all ports' in variable.errors()
        assert signal_and_wait(variable, signal.SIGTERM) == 0


@LANDLOCK
def test_a_reload_permits_the_new_paths(start, tmp_path, loop):
    roots = [tmp_path / name for name in ('one', 'two')]
    for root in roots:
        root.mkdir(mode=0o755)
        (root / 'name.txt').write_text(root.name)
    server = start(loop, sandbox='on')
    text = server_kit.read_text(server.config_path)
    for root in roots:
        with open(server.config_path, 'w', encoding='utf-8') as stream:
            stream.write(re.sub(r'root: ".*"', f'root: "{root}"', text))
        worker = server.workers()[0]
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(server.workers()) == 1 and worker not in server.workers(), 'the new worker')
        assert http1.connect(server.plain).get('/name.txt').body.decode() == root.name
    assert signal_and_wait(server, signal.SIGTERM) == 0


@LANDLOCK
def test_a_root_that_is_a_link_can_be_switched(start, tmp_path, loop):
    """Deployments replace a link by one to a new directory beside the old one."""
    for name in ('1', '2'):
        (tmp_path / 'releases' / name).mkdir(parents=True)
        (tmp_path / 'releases' / name / 'version.txt').write_text(name)
    (tmp_path / 'current').symlink_to('releases/1')
    server = start(loop, sandbox='on', http={'open_file_cache': 'off'}, wait=False)
    text = server_kit.read_text(server.config_path)
    with open(server.config_path, 'w', encoding='utf-8') as stream:
        stream.write(re.sub(r'root: ".*"', f'root: "{tmp_path}/current"', text))
    server.start([server.plain])
    assert http1.connect(server.plain).get('/version.txt').body == b'1'
    (tmp_path / 'next').symlink_to('releases/2')
    os.rename(tmp_path / 'next', tmp_path / 'current')
    wait_for(lambda: http1.connect(server.plain).get('/version.txt').body == b'2', 'the new release')
    assert signal_and_wait(server, signal.SIGTERM) == 0


@SECCOMP
@LANDLOCK
def test_by_default_all_parts_are_applied(forbidden, loop):
    """The log has one line with all parts, and each part denies its actions to a worker."""
    server = forbidden(loop, worker_processes=2)
    wait_for(lambda: len(server.workers()) == 2, 'both workers')
    assert len(re.findall(r'sandbox: capabilities, no_dump, landlock \(version \d+, \d+ paths, [^)]*\), seccomp \(\d+ calls\)\n', server.errors())) == 1
    assert attempt(server, 'open', '/etc/passwd') == READ
    for call in ('execve', 'ptrace', 'mount', 'unshare', 'io_uring_setup', 'netlink'):
        if call in REPORTING and is_sanitized():
            continue
        before = server.workers()
        assert attempt(server, call) is None, call
        wait_for(lambda: len(server.workers()) == 2 and server.workers() != before, f'the next worker after {call}')
    if landlock_version(server) >= 4:
        with socket.create_server(('127.0.0.1', 0)) as other:
            assert attempt(server, 'connect', other.getsockname()[1]) == EACCES
    assert signal_and_wait(server, signal.SIGTERM) == 0


LANDLOCK_CREATE_RULESET = 444


@LANDLOCK
def test_a_part_that_the_kernel_lacks_is_skipped_and_reported(start, loop):
    prefix = without_call(LANDLOCK_CREATE_RULESET)
    server = start(loop, wait=False, worker_processes=2)
    server.command_prefix = prefix
    server.start([server.plain])
    wait_for(lambda: ' runs, ' in server.errors(), 'the workers are ready')
    assert http1.connect(server.plain).get('/one.txt').body == b'one\n'
    assert len(re.findall(r'\[notice\] \d+#0: sandbox: without landlock: it is not built into this kernel', server.errors())) == 1
    assert 'sandbox: capabilities, no_dump' in server.errors() and 'landlock (' not in server.errors()
    assert signal_and_wait(server, signal.SIGTERM) == 0
    ran = subprocess.run([*prefix, server_kit.SLUICE, 'doctor', '--json'], capture_output=True, text=True, check=False)
    finding, = (finding for finding in json.loads(ran.stdout)['findings'] if finding['text'].startswith('sandbox: no landlock'))
    assert finding['verdict'] == 'note'
