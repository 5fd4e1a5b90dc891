"""Processes: failures at startup, privileges, daemons, pid files, service managers, loop backends."""
import os
import pwd
import re
import select
import signal
import socket
import subprocess

import pytest

from kit import http1, server as server_kit
from kit.lifetime import alive, signal_and_wait, refused, wait_for
from kit.without_call import without_call

SLUICE = server_kit.SLUICE


def test_port_in_use_is_reported(start):
    server = start()
    second = start(wait=False)
    text = server_kit.read_text(second.config_path).replace(f':{second.port} ', f':{server.port} ')
    with open(second.config_path, 'w', encoding='utf-8') as stream:
        stream.write(text)
    ran = subprocess.run([SLUICE, '-c', second.config_path], capture_output=True, text=True, timeout=30)
    expected = f'bind() to 127.0.0.1:{server.port} failed (98: Address already in use)'
    assert ran.returncode == 1
    assert f'sluice: [emerg] {expected}' in ran.stderr, 'on the terminal'
    assert expected in second.errors(), 'and in the log'
    assert refused(second.plain), 'nothing is left of the other address'
    assert not os.path.exists(os.path.join(second.folder, 'pid'))
    assert http1.connect(server.port, 'user').get('/one.txt').status == 200
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_pid_file_in_use_is_reported(start):
    server = start()
    second = start(wait=False, pid=os.path.join(server.folder, 'pid'))
    ran = subprocess.run([SLUICE, '-c', second.config_path], capture_output=True, text=True, timeout=30)
    assert ran.returncode == 1
    assert f'process {server.process.pid} already uses it' in ran.stderr
    assert server_kit.read_text(os.path.join(server.folder, 'pid')) == f'{server.process.pid}\n'


@pytest.mark.parametrize('files', [9, 10])
def test_failed_worker_start_is_reported(start, files):
    """Too few descriptors for a worker: the start fails with at most three lines and the reason."""
    server = start(wait=False)
    ran = subprocess.run(['prlimit', f'--nofile={files}:{files}', SLUICE, '-c', server.config_path], capture_output=True,
                         text=True, timeout=60)
    assert ran.returncode == 1
    assert 'Too many open files' in ran.stderr
    assert ran.stderr.count('[emerg]') <= 3
    assert not os.path.exists(os.path.join(server.folder, 'pid'))
    assert refused(server.plain)


@pytest.mark.skipif(os.geteuid() != 0, reason='only root gives up root')
def test_io_uring_memory_is_not_limited_by_memlock(start):
    """Linux counts the rings of all processes of a user against RLIMIT_MEMLOCK, but not rings that root creates."""
    server = start(wait=False, loop='io_uring', user='nobody', worker_processes=4)
    server.command_prefix = ['prlimit', '--memlock=65536:65536']
    server.start([server.plain])
    wait_for(lambda: ' runs, ' in server.errors(), 'every worker is ready')
    assert 'loop: io_uring' in server.errors()
    assert http1.connect(server.plain, 'plain').get('/one.txt').status == 200
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_excess_worker_connections_are_a_warning(start):
    server = start(events={'worker_connections': 1000000})
    assert '[warn]' in server.errors() and '1000000 worker_connections may need more than the' in server.errors()
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_ssl_ktls_on_requires_ktls(start):
    """`ssl_ktls: on` starts if the kernel supports it, and otherwise fails with the reason."""
    can = subprocess.run([SLUICE, 'doctor'], stdout=subprocess.DEVNULL, timeout=60).returncode == 0
    server = start(wait=False, http={'ssl_ktls': 'on'})
    if can:
        server.start([server.port])
        assert signal_and_wait(server, signal.SIGTERM) == 0
        return
    ran = subprocess.run([SLUICE, '-c', server.config_path], capture_output=True, text=True, timeout=30)
    assert ran.returncode == 1
    assert 'ssl_ktls' in ran.stderr and 'modprobe tls' in ran.stderr


def test_ktls_off_is_not_probed(start):
    server = start(http={'ssl_ktls': 'off'})
    assert 'kTLS:' not in server.errors()
    assert signal_and_wait(server, signal.SIGTERM) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root to become nobody')
def test_unprivileged_user_requires_no_pid_file(tmp_path, sluice_copy):
    """The built-in pid path is writable for root only; for other users the server starts without a pid file and logs a warning."""
    port = server_kit.free_port()
    path = tmp_path / 'nobody.yaml'
    path.write_text(f'http: {{access_log: off, server: {{listen: "127.0.0.1:{port}", return: 200 ok}}}}\n')
    process = subprocess.Popen([sluice_copy, '-c', str(path)], user='nobody', group='nogroup', extra_groups=[],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        wait_for(lambda: not refused(port), 'it listens')
        assert http1.connect(port).get('/').body == b'ok'
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert 'continuing without a pid file' in output


def test_option_e_replaces_the_default_error_log(start, tmp_path):
    server = start(wait=False, error_log=None)
    path = str(tmp_path / 'given.log')
    process = subprocess.Popen([SLUICE, '-c', server.config_path, '-e', path], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    try:
        wait_for(lambda: ' runs, ' in server_kit.read_text(path), 'the log that was given')
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, '')


@pytest.mark.skipif(os.geteuid() != 0, reason='only root has rights to give up')
def test_root_privileges_are_dropped(start, loop):
    server = start(loop, user='www-data')
    with open(f'/proc/{server.workers()[0]}/status', encoding='ascii') as stream:
        status = dict(line.rstrip('\n').split(':\t', 1) for line in stream if ':\t' in line)
    assert status['Uid'].split() == [str(pwd.getpwnam('www-data').pw_uid)] * 4
    assert status['Gid'].split() == [str(pwd.getpwnam('www-data').pw_gid)] * 4
    assert '0' not in status['Groups'].split()
    assert all(int(status[name], 16) == 0 for name in ('CapPrm', 'CapEff', 'CapAmb'))
    assert status['NoNewPrivs'] == '1'
    # After reopening, workers without root privileges write to the new log.
    os.rename(server.access_path, server.access_path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    client = http1.connect(server.port, 'user')
    wait_for(lambda: client.get('/one.txt?www').status == 200 and '?www' in server_kit.read_text(server.access_path),
             'the new log')
    assert signal_and_wait(server, signal.SIGTERM) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason='user matters for root alone')
def test_unknown_user_is_reported(start):
    server = start(wait=False, user='no-such-user')
    ran = subprocess.run([SLUICE, '-c', server.config_path], capture_output=True, text=True, timeout=30)
    assert ran.returncode == 1 and 'there is no user "no-such-user"' in ran.stderr
    for overlay, message in (('{}', '2:7: error: there is no user "no-such-user"\n'),
                             ('user: root no-such-group', '-g:1:7: error: there is no group "no-such-group"\n')):
        for option in ('-t', '-T'):
            ran = subprocess.run([SLUICE, option, '-c', server.config_path, '-g', overlay], capture_output=True, text=True, timeout=30)
            assert ran.returncode == 1 and message in ran.stderr and 'hint: create it' in ran.stderr and ' test failed' in ran.stderr, ran.stderr
            assert ran.stdout == ''
    # For another user `user` has no effect.
    ran = subprocess.run(['setpriv', '--reuid=65534', '--clear-groups', SLUICE, '-t', '-c', '-'], input='user: nosuch\nhttp: {server: {listen: 8080}}\n',
                         capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason='only root becomes another user')
@pytest.mark.parametrize('user, warned', [('nobody', False), ('root', True), ('no-such-user', True)])
def test_a_user_without_effect_is_reported(start, user, warned):
    """A master that a service manager starts as the configured user does not warn."""
    server = start(wait=False, user=user)
    # The directories above that of the server are those of root alone.
    server.command_prefix = ('setpriv', '--reuid=65534', '--clear-groups', '--inh-caps=+dac_override',
                             '--ambient-caps=+dac_override')
    server.start([])
    wait_for(lambda: ' runs, ' in server.errors(), 'every worker is ready')
    assert ('"user" is ignored' in server.errors()) == warned
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_daemon_detaches_from_the_terminal(start):
    server = start(wait=False, daemon=True, worker_processes=2)
    pid_path = os.path.join(server.folder, 'pid')
    # capture_output waits until no process has the pipes open: the daemon must have closed them.
    ran = subprocess.run([SLUICE, '-c', server.config_path], capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, '', '')
    pid = int(server_kit.read_text(pid_path))
    try:
        # Exit status 0 means that the server is ready, so the test does not wait.
        assert http1.connect(server.port, 'user').get('/one.txt').status == 200
        with open(f'/proc/{pid}/stat', encoding='ascii') as stream:
            fields = stream.read().rsplit(')', 1)[1].split()
        assert int(fields[3]) == pid, 'it leads a session of its own'
        assert fields[4] == '0', 'without a terminal'
        again = subprocess.run([SLUICE, '-c', server.config_path], capture_output=True, text=True, timeout=30)
        assert again.returncode == 1 and 'bind()' in again.stderr, 'a failed start is reported, too'
        for name in ('reopen', 'quit'):
            sent = subprocess.run([SLUICE, '-c', server.config_path, '-s', name], capture_output=True, text=True, timeout=30)
            assert (sent.returncode, sent.stdout, sent.stderr) == (0, '', '')
        wait_for(lambda: not alive(pid), 'it ends')
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    assert not os.path.exists(pid_path)


def test_daemon_rejects_stderr_logs(start):
    server = start(wait=False, daemon=True, error_log={'path': 'stderr', 'level': 'info'},
                   http={'access_log': {'path': 'stdout', 'format': 'main'}})
    ran = subprocess.run([SLUICE, '-c', server.config_path], capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0
    assert 'a daemon has no stderr' in ran.stderr
    assert http1.connect(server.port, 'user').get('/one.txt').status == 200
    stopped = subprocess.run([SLUICE, '-c', server.config_path, '-s', 'stop'], capture_output=True, text=True, timeout=30)
    assert stopped.returncode == 0
    wait_for(lambda: refused(server.port), 'it ends')


def test_sd_notify_reports_readiness(start, tmp_path):
    server = start(wait=False)
    path = str(tmp_path / 'notify')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(20 * server_kit.PATIENCE)
        server.environment['NOTIFY_SOCKET'] = path
        server.start([server.port])
        assert manager.recv(100) == b'READY=1'
        server.process.send_signal(signal.SIGTERM)
        assert manager.recv(100) == b'STOPPING=1'
        assert server.process.wait(20) == 0


def test_the_watchdog_of_the_service_manager_gets_messages(start, tmp_path):
    server = start(wait=False)
    path = str(tmp_path / 'notify')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(20 * server_kit.PATIENCE)
        server.environment |= {'NOTIFY_SOCKET': path, 'WATCHDOG_USEC': '400000'}
        server.start([server.port])
        received = [manager.recv(100) for _ in range(5)]
        assert received.count(b'READY=1') == 1 and received.count(b'WATCHDOG=1') == 4
        # A reload does not change it.
        server.process.send_signal(signal.SIGHUP)
        received = set()
        while received != {b'RELOADING=1', b'READY=1', b'WATCHDOG=1'}:
            received.add(manager.recv(100))
        # A master that does not run sends none: the service manager restarts it.
        server.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server.process.pid, os.WSTOPPED | os.WNOWAIT)
        while select.select([manager], [], [], 0)[0]:
            manager.recv(100)
        assert not select.select([manager], [], [], 0.6)[0]
        server.process.send_signal(signal.SIGCONT)
        assert signal_and_wait(server, signal.SIGTERM) == 0


@pytest.mark.parametrize('variables', [{'WATCHDOG_USEC': '400000', 'WATCHDOG_PID': '1'}, {'WATCHDOG_USEC': 'soon'}])
def test_no_watchdog_messages_for_another_process(start, tmp_path, variables):
    server = start(wait=False)
    path = str(tmp_path / 'notify')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(20 * server_kit.PATIENCE)
        server.environment |= {'NOTIFY_SOCKET': path} | variables
        server.start([server.port])
        assert manager.recv(100) == b'READY=1'
        assert not select.select([manager], [], [], 0.6)[0]
        server.process.send_signal(signal.SIGTERM)
        assert manager.recv(100) == b'STOPPING=1'
        assert server.process.wait(20) == 0
    assert ('WATCHDOG_USEC or WATCHDOG_PID is malformed' in server.errors()) == ('soon' in variables.values())


def test_error_log_fifo_without_reader_delays_no_request(start, tmp_path):
    path = str(tmp_path / 'fifo')
    os.mkfifo(path)
    server = start(error_log={'path': path, 'level': 'debug'})
    # Each refused link produces a log line; all of them exceed the capacity of a pipe.
    for _ in range(4):
        client = http1.connect(server.plain)
        for _ in range(400):
            assert client.get('/.hidden').status == 404
            assert client.get('/nowhere/' + 'x' * 200).status == 404
        client.close()
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_unix_socket_listener(start, tmp_path, site):
    path = str(tmp_path / 'socket')
    server = server_kit.Server(tmp_path / 'unix', [{'listen': f'unix:{path}', 'root': site}])
    os.chmod(server.folder, 0o755)
    server.start([])
    try:
        wait_for(lambda: os.path.exists(path), 'the socket')
        with socket.socket(socket.AF_UNIX) as stream:
            wait_for(lambda: stream.connect_ex(path) == 0, 'it accepts')
            client = http1.Client(stream)
            assert client.get('/one.txt').body == b'one\n'
        assert os.stat(path).st_mode & 0o777 == 0o666
    finally:
        server.stop()
    assert not os.path.exists(path)


FORBID_IO_URING = without_call(425)


def test_unavailable_io_uring_falls_back_to_epoll(start):
    server = start('auto', wait=False, worker_processes=2)
    server.command_prefix = FORBID_IO_URING
    server.start([server.port])
    assert http1.connect(server.port, 'user').get('/one.txt').status == 200
    wait_for(lambda: 'loop: epoll' in server.errors(), 'the backend is named')
    assert server.errors().count('io_uring: Operation not permitted, using epoll') == 1, 'once, not by each worker'
    assert signal_and_wait(server, signal.SIGTERM) == 0


def test_use_io_uring_requires_io_uring(start):
    server = start('io_uring', wait=False)
    ran = subprocess.run([*FORBID_IO_URING, SLUICE, '-c', server.config_path], capture_output=True,
                         text=True, timeout=60)
    assert ran.returncode == 1
    lines = [line for line in ran.stderr.splitlines() if 'events: use: io_uring failed (1: Operation not permitted)' in line]
    place = re.search(re.escape(server.config_path) + r':(\d+):(\d+): events', lines[0])
    with open(server.config_path, encoding='utf-8') as stream:
        line = stream.read().splitlines()[int(place.group(1)) - 1]
    assert line[int(place.group(2)) - 1:].lstrip('"').startswith('io_uring') and 'use: auto' in lines[0]


def test_doctor_reports_forbidden_io_uring():
    ran = subprocess.run([*FORBID_IO_URING, SLUICE, 'doctor'], capture_output=True, text=True, timeout=60)
    assert 'loop: io_uring: Operation not permitted' in ran.stdout and 'loop: epoll works' in ran.stdout
    assert 'seccomp filter' in ran.stdout or 'io_uring_disabled' in ran.stdout
    assert 'arrived intact' in ran.stdout or 'decrypted all of them correctly' in ran.stdout
