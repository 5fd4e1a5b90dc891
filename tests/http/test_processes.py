"""Master and workers from outside: signals, pid file, killed workers, reopened logs, privileges, limits."""
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import time

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for

PATIENCE = server_kit.PATIENCE


@pytest.fixture
def launch_one(site, certificate, tmp_path, loop):
    """launch_one(...) -> a server for one test, which the test may kill."""
    made = []

    def launcher(main=None, http=None, command_prefix=(), **keys):
        ports = {'plain': server_kit.free_port(), 'tls': server_kit.free_port()}
        block = {'listen': [f'127.0.0.1:{ports["plain"]}', f'127.0.0.1:{ports["tls"]} ssl'], 'root': site,
                 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], **keys}
        server = server_kit.Server(tmp_path / f'run{len(made)}', [block], loop=loop, main=main, http={'lingering_timeout': '300ms', **(http or {})},
                                   command_prefix=command_prefix)
        made.append(server)
        server.start(ports.values())
        return server, ports['plain'], ports['tls']
    yield launcher
    for server in made:
        server.stop(check=False)


def gone(pids):
    def alive(pid):
        try:
            with open(f'/proc/{pid}/stat', encoding='ascii') as stream:
                return stream.read().rsplit(')', 1)[1].split()[0] != 'Z'
        except FileNotFoundError:
            return False
    return not any(alive(pid) for pid in pids)


def test_workers_and_pid_file(launch_one):
    server, port, _ = launch_one(main={'worker_processes': 3})
    wait_for(lambda: len(server.workers()) == 3, 'three workers')
    assert int(server_kit.read_text(os.path.join(server.folder, 'pid'))) == server.process.pid
    for _ in range(30):
        assert http1.connect(port).get('/one.txt').status == 200
    workers = server.workers()
    assert server.stop() == 0
    assert gone(workers) and not os.path.exists(os.path.join(server.folder, 'pid'))


def test_closed_standard_streams_are_opened(launch_one):
    """Started without descriptors 0, 1 and 2, the server opens /dev/null there, so that no log or socket gets printed messages."""
    server, port, _ = launch_one(command_prefix=['sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh'])
    wait_for(server.workers, 'a worker')
    assert http1.connect(port).get('/one.txt').status == 200
    for pid in server.processes():
        assert [os.readlink(f'/proc/{pid}/fd/{number}') for number in range(3)] == ['/dev/null'] * 3


def opened(pid):
    """The files and sockets that its descriptors refer to."""
    with contextlib.suppress(FileNotFoundError):
        return [os.readlink(f'/proc/{pid}/fd/{number}') for number in os.listdir(f'/proc/{pid}/fd')]
    return []


def test_usr1_reopens_logs_without_free_descriptors(launch_one):
    """A worker at its limit of descriptors still receives the reopened logs."""
    server, port, _ = launch_one(command_prefix=['prlimit', '--nofile=40'])
    connections = [socket.create_connection(('127.0.0.1', port)) for _ in range(80)]
    wait_for(lambda: 'Too many open files' in server.errors(), 'no descriptor left')
    os.rename(server.access_path, server.access_path + '.1')
    os.rename(server.error_path, server.error_path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: all(server.access_path in opened(pid) for pid in server.workers()), 'workers with the new log')
    for one in connections:
        one.close()
    wait_for(lambda: http1.connect(port).get('/one.txt').status == 200, 'a response')
    wait_for(lambda: '/one.txt' in server_kit.read_text(server.access_path), 'a line in the new log')
    assert 'malformed' not in server_kit.read_text(server.error_path + '.1') + server.errors()


@pytest.mark.parametrize('how', [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_signals_end_the_server(launch_one, how):
    server, port, _ = launch_one()
    client = http1.connect(port)
    client.get('/one.txt')
    workers = server.workers()
    assert server.stop(how) == 0
    assert gone(workers)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(('127.0.0.1', port), timeout=5)


def test_quit_completes_responses(launch_one):
    """QUIT: idle connections close, a response in progress is completed, new connections are refused."""
    server, port, tls = launch_one()
    idle = http1.connect(port)
    idle.get('/one.txt')
    busy = [http1.connect(port), http1.connect(tls, 'own', receive_buffer=4096)]
    for client in busy:
        client.send('GET /1048576.bin HTTP/1.1\r\nHost: localhost\r\n\r\n' * 6)
    responses = [client.head() for client in busy]
    server.process.send_signal(signal.SIGQUIT)
    assert idle.at_end()
    wait_for(lambda: refused(port), 'no new connections')
    for client, response in zip(busy, responses):
        assert len(client.read_exactly(int(response.headers['content-length']))) == 1 << 20
        client.close()
    assert server.process.wait(30 * PATIENCE) == 0


def refused(port):
    try:
        socket.create_connection(('127.0.0.1', port), timeout=1).close()
        return False
    except OSError:
        return True


def test_killed_and_crashed_workers_are_replaced(launch_one, monkeypatch):
    # AddressSanitizer would write a report for several seconds before the worker dies.
    monkeypatch.setenv('ASAN_OPTIONS', f"{os.environ.get('ASAN_OPTIONS', '')}:handle_segv=0")
    server, port, _ = launch_one()
    wait_for(lambda: ' runs, ' in server.errors(), 'the worker is ready')      # one that dies before ends the server
    for how in (signal.SIGKILL, signal.SIGSEGV, signal.SIGKILL):
        before = server.workers()
        os.kill(before[0], how)
        wait_for(lambda: server.workers() and server.workers() != before and gone(before[:1]), 'another worker')
        wait_for(lambda: serves(port), 'it serves again')
    assert 'exited' in server.errors() or 'signal' in server.errors() or 'died' in server.errors()


def serves(port):
    try:
        return http1.connect(port, timeout=5).get('/one.txt').status == 200
    except (OSError, EOFError):
        return False


def test_workers_exit_with_a_killed_master(launch_one):
    server, port, _ = launch_one()
    wait_for(lambda: server.workers(), 'a worker')
    workers = server.workers()
    server.process.kill()
    server.process.wait()
    server.process = None
    wait_for(lambda: gone(workers), 'no orphaned worker continues')
    wait_for(lambda: refused(port), 'the port is free')


def test_usr1_reopens_the_logs(launch_one):
    server, port, _ = launch_one()
    client = http1.connect(port)
    client.get('/one.txt?before')
    server.access_for('/one.txt?before')
    for path in (server.access_path, server.error_path):
        os.rename(path, path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(server.access_path) and os.path.exists(server.error_path), 'new files')
    wait_for(lambda: client.get('/one.txt?after').status == 200 and '/one.txt?after' in server_kit.read_text(server.access_path),
          'lines in the new file')
    assert '/one.txt?before' in server_kit.read_text(server.access_path + '.1')


def test_usr1_reopens_logs_for_unprivileged_workers(launch_one):
    """Workers without root privileges write to the log that the master opened."""
    if os.geteuid() != 0:
        pytest.skip('needs root')
    server, port, _ = launch_one(main={'user': 'nobody'})
    wait_for(lambda: server_kit.RUNS in server.errors(), 'every worker is ready')
    for pid in server.workers():
        with open(f'/proc/{pid}/status', encoding='ascii') as stream:
            lines = dict(line.split(':', 1) for line in stream.read().splitlines() if ':' in line)
        assert lines['Uid'].split() == ['65534'] * 4 and lines['Gid'].split() == ['65534'] * 4
        assert int(lines['CapEff'], 16) == 0
    os.rename(server.access_path, server.access_path + '.1')
    server.process.send_signal(signal.SIGUSR1)
    client = http1.connect(port)
    wait_for(lambda: client.get('/one.txt?last').status == 200 and '/one.txt?last' in server_kit.read_text(server.access_path), 'lines')
    assert client.get('/closed.txt').status == 403


def test_option_s_signals_the_master(launch_one):
    server, port, _ = launch_one()
    done = subprocess.run([server_kit.SLUICE, '-c', server.config_path, '-s', 'stop'], timeout=30 * PATIENCE, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert server.process.wait(30 * PATIENCE) == 0
    assert refused(port)
    done = subprocess.run([server_kit.SLUICE, '-c', server.config_path, '-s', 'stop'], timeout=30 * PATIENCE, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 1 and done.stderr


def test_daemon_writes_its_pid_file(site, tmp_path, loop):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'root': site}], loop=loop, main={'daemon': 'on'})
    done = subprocess.run([server_kit.SLUICE, '-c', server.config_path], stdin=subprocess.DEVNULL, timeout=30 * PATIENCE, check=False)
    assert done.returncode == 0
    pid_path = os.path.join(server.folder, 'pid')
    wait_for(lambda: server_kit.read_text(pid_path).strip().isdigit() and serves(port), 'it serves in the background')
    pid = int(server_kit.read_text(pid_path))
    assert os.getsid(pid) != os.getsid(0)
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: gone([pid]) and not os.path.exists(pid_path), 'it ends')


def test_address_in_use_is_reported(site, tmp_path):
    with socket.socket() as holder:
        holder.bind(('127.0.0.1', 0))
        holder.listen()
        taken = holder.getsockname()[1]
        server = server_kit.Server(tmp_path, [{'listen': [f'127.0.0.1:{taken}'], 'root': site}])
        done = subprocess.run([server_kit.SLUICE, '-c', server.config_path], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=30 * PATIENCE, check=False)
    output = done.stdout + done.stderr + server.errors()
    assert done.returncode == 1 and str(taken) in output and 'in use' in output


def test_worker_connections_pauses_accepting(launch_one):
    """At worker_connections accepting pauses without busy waiting, and continues when connections end."""
    server, port, _ = launch_one(main={'events': {'use': server_kit.LOOPS[0], 'worker_connections': 16}})
    wait_for(lambda: server.workers(), 'a worker')
    connections = [socket.create_connection(('127.0.0.1', port), timeout=10) for _ in range(40)]
    wait_for(lambda: 'accepting is paused' in server.errors(), 'the cap')
    before = server.ticks()
    time.sleep(2)
    assert server.ticks() - before < 100, 'it does not spin at the cap'
    for sock in connections:
        sock.close()
    wait_for(lambda: serves(port), 'a free place again')


def test_worker_connections_per_address_closes_excess_connections(launch_one, loop):
    """Excess connections of one address are closed at once; existing ones stay, and the end of one permits another."""
    server, port, tls = launch_one(main={'events': {'use': loop, 'worker_connections_per_address': 3}})
    connections = []

    def three_connections():
        client = http1.connect(port)
        try:
            if client.get('/one.txt').status == 200:
                connections.append(client)
        except (OSError, EOFError):
            pass
        return len(connections) == 3
    wait_for(three_connections, 'three connections, after those of the port check have ended')
    for number in (port, tls):
        with socket.create_connection(('127.0.0.1', number), timeout=20 * PATIENCE) as extra:
            assert extra.recv(1) == b''
    assert all(client.get('/one.txt').status == 200 for client in connections)
    assert server.errors().count('127.0.0.1 has 3 connections: further ones are closed') >= 1
    connections.pop().close()
    wait_for(lambda: serves(port), 'a free place again')


def test_exhausted_descriptors_pause_accepting(site, certificate, tmp_path, loop):
    """EMFILE: the server neither crashes nor waits busily, and serves normally afterwards."""
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'root': site}], loop=loop,
                               command_prefix=['bash', '-c', 'ulimit -n 64; exec "$@"', 'bash']).start([port])
    try:
        connections = []
        for _ in range(150):
            try:
                connections.append(socket.create_connection(('127.0.0.1', port), timeout=5))
            except OSError:
                break
        wait_for(lambda: 'Too many open files' in server.errors(), 'no descriptor left')
        before = server.ticks()
        time.sleep(2)
        assert server.ticks() - before < 100
        for sock in connections:
            sock.close()
        wait_for(lambda: serves(port), 'it serves again')
    finally:
        server.stop()


def responds(port, client):
    """Whether a request on a new connection, which stays open, gets a response."""
    with contextlib.suppress(EOFError, OSError):
        client.append(http1.connect(port))
        return client[-1].get('/one.txt').status == 200
    return False


def test_idle_connections_are_closed_without_free_descriptors(site, tmp_path, loop):
    """More clients keep idle connections than there are descriptors: the oldest ones are closed, and each new client is served."""
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'root': site}], loop=loop,
                               command_prefix=['bash', '-c', 'ulimit -n 64; exec "$@"', 'bash']).start([port])
    stored = []
    try:
        for number in range(100):
            wait_for(lambda: responds(port, stored), f'client {number} is answered')
        lines = re.findall(r'^(.{19}) \[crit\] (\d+)#.*out of file descriptors: \d+ idle client', server.errors(), re.M)
        assert lines
        assert len(set(lines)) == len(lines), 'at most one line per second'
    finally:
        server.stop()


def test_status_503_without_descriptors_closes_the_connection(site, tmp_path, loop):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'root': site,
                                                   'location': {'/': {}, '/page': {'error_page': '503 /error.html'},
                                                                '/list/': {'alias': site, 'autoindex': 'on'},
                                                                '/proxy': {'proxy_pass': f'http://127.0.0.1:{port}'}}}],
                               loop=loop, http={'open_file_cache': 'off'},
                               main={'user': 'root root'} if os.geteuid() == 0 else None).start([port])    # otherwise the test may not change the limits of the worker
    try:
        client = http1.connect(port)
        assert client.get('/one.txt').status == 200
        worker, = server.workers()
        before = resource.prlimit(worker, resource.RLIMIT_NOFILE)
        for path in ('/one.txt', '/page', '/list/', '/proxy'):
            client = http1.connect(port)
            assert client.get('/missing').status == 404
            resource.prlimit(worker, resource.RLIMIT_NOFILE, (0, before[1]))
            response = client.get(path)
            resource.prlimit(worker, resource.RLIMIT_NOFILE, before)
            assert (response.status, response.closes) == (503, True), path
            assert client.at_end(), path
        assert http1.connect(port).get('/one.txt').status == 200
    finally:
        server.stop()


def test_idle_server_uses_no_cpu(launch_one):
    server, port, tls = launch_one()
    clients = [http1.connect(port), http1.connect(tls, 'user')]
    for client in clients:
        client.get('/one.txt')
    wait_for(lambda: len(server.access()) == 2, 'the log lines')
    before = server.ticks()
    time.sleep(2)
    assert server.ticks() - before <= 2
