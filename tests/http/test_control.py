"""The control socket and `sluice ctl`: each command, with its effect seen by clients."""
import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import tempfile

import pytest
from kit import http1, server as server_kit
from kit.lifetime import alive, wait_for

OTHER_USER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason='only root can become another user')


@contextlib.contextmanager
def other_user():
    os.seteuid(OTHER_USER)
    try:
        yield
    finally:
        os.seteuid(0)


class Controlled:
    """A server with a control socket."""

    def __init__(self, folder, loop, certificate, site):
        self.folder, self.loop, self.certificate, self.site = str(folder), loop, certificate, site
        self.socket = os.path.join(self.folder, 'control.sock')
        self.port, self.tls_port = server_kit.free_port(), server_kit.free_port()
        self.server = None

    def start(self, workers=2, http=None, main=None, location=None, listen=()):
        block = {'listen': [f'127.0.0.1:{self.port}', f'127.0.0.1:{self.tls_port} ssl', *listen], 'server_name': 'localhost', 'root': self.site,
                 'ssl_certificate': self.certificate[0], 'ssl_certificate_key': self.certificate[1],
                 **({'location': location} if location else {})}
        self.server = server_kit.Server(self.folder, [block], loop=self.loop, http=http,
                                        main={'worker_processes': workers, 'control': f'unix:{self.socket}', **(main or {})})
        self.server.start([self.port])
        self.until(' runs, ')
        return self

    def until(self, text, count=1):
        wait_for(lambda: self.server.errors().count(text) >= count, text)

    def run(self, *words, options=()):
        return subprocess.run([server_kit.SLUICE, 'ctl', '-s', self.socket, *options, *words], capture_output=True, text=True, timeout=60)

    def ctl(self, *words):
        """The rows of a command's result."""
        ran = self.run(*words, options=['--json'])
        assert ran.returncode == 0 and not ran.stderr, ran.stdout + ran.stderr
        [rows] = json.loads(ran.stdout).values()
        return rows

    def refused(self, *words):
        ran = self.run(*words)
        assert ran.returncode == 1 and ran.stdout == ''
        return ran.stderr

    def connect(self):
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(20 * server_kit.PATIENCE)
        stream.connect(self.socket)
        return stream

    def mode(self):
        return stat.S_IMODE(os.stat(self.socket).st_mode)

    def request(self, head):
        with self.connect() as stream:
            stream.sendall(head.encode() + b'\r\n\r\n')
            stream.shutdown(socket.SHUT_WR)
            return b''.join(iter(lambda: stream.recv(65536), b'')).decode()

    def get(self, path='/one.txt', **headers):
        with socket.create_connection(('127.0.0.1', self.port), timeout=20 * server_kit.PATIENCE) as stream:
            return http1.Client(stream).get(path, **headers)

    def reload(self):
        runs = self.server.errors().count(' runs, ')
        self.server.process.send_signal(signal.SIGHUP)
        self.until(' runs, ', runs + 1)

    @contextlib.contextmanager
    def upgraded(self):
        """Replaces the server by a new master, which ends with the block."""
        ran = subprocess.run([server_kit.SLUICE, '-s', 'upgrade', '-c', self.server.config_path], capture_output=True, text=True,
                             timeout=90 * server_kit.PATIENCE, check=False)
        assert ran.returncode == 0, ran.stderr
        master = int(server_kit.read_text(self.server.tree['pid']))
        try:
            assert self.server.process.wait(20 * server_kit.PATIENCE) == 0 and master != self.server.process.pid
            yield
        finally:
            os.kill(master, signal.SIGTERM)
            wait_for(lambda: not alive(master), 'the end of the new master')


@pytest.fixture(params=server_kit.LOOPS)
def controlled(request, tmp_path, certificate, site):
    made = Controlled(tmp_path, request.param, certificate, site)
    yield made
    if made.server:
        made.server.stop()


def test_socket_and_what_reads_shared_memory(controlled):
    controlled.start(workers=3, http={'upstream': {'app': {'server': ['127.0.0.1:1', '127.0.0.1:2 weight=3']}}, 'deny': 'all'},
                     location={'/': {'proxy_pass': 'http://app'}})
    status = os.stat(controlled.socket)
    assert stat.S_ISSOCK(status.st_mode) and controlled.mode() == 0o600 and status.st_uid == os.geteuid()
    workers = controlled.ctl('workers')
    assert {row['pid'] for row in workers} == set(controlled.server.workers()) and len(workers) == 3
    assert {(row['generation'], row['state']) for row in workers} == {(1, 'running')}
    assert sum(row['connections'] for row in workers) >= 1, 'the connection of the command'
    assert [(row['upstream'], row['server'], row['state']) for row in controlled.ctl('upstreams')] == [
        ('app', '127.0.0.1:1', 'up'), ('app', '127.0.0.1:2', 'up')]
    certificates = controlled.ctl('certificates')
    assert [(row['server'], row['listen']) for row in certificates] == [('localhost', f'127.0.0.1:{controlled.tls_port}')]
    end = subprocess.run(['openssl', 'x509', '-enddate', '-noout', '-dateopt', 'iso_8601', '-in', controlled.certificate[0]],
                         check=True, capture_output=True, text=True).stdout
    assert end.strip() == 'notAfter=' + certificates[0]['until'].replace('T', ' ')
    [configuration] = controlled.ctl('configuration')
    assert configuration['path'] == controlled.server.config_path and configuration['generation'] == 1
    assert controlled.get().status == 403, 'deny holds for the other server'


def test_reload_and_a_killed_worker(controlled, big):
    controlled.start()
    before = {row['pid'] for row in controlled.ctl('workers')}
    with socket.create_connection(('127.0.0.1', controlled.port), timeout=20 * server_kit.PATIENCE) as stream:
        # A response in progress keeps a worker of the former generation.
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.sendall(b'GET /process-big.bin HTTP/1.1\r\nHost: a\r\n\r\n')
        stream.recv(100)
        controlled.reload()
        rows = controlled.ctl('workers')
        assert {row['state'] for row in rows if row['pid'] in before} == {'draining'}
        new = [row for row in rows if row['pid'] not in before]
        assert {(row['generation'], row['state']) for row in new} == {(2, 'running')} and len(new) == 2
    assert controlled.ctl('configuration')[0]['generation'] == 2
    wait_for(lambda: len(controlled.ctl('workers')) == 2, 'the end of the former generation')
    os.kill(new[0]['pid'], signal.SIGKILL)
    wait_for(lambda: {row['pid'] for row in controlled.ctl('workers')} & {new[0]['pid']} == set(), 'the dead worker is absent')
    wait_for(lambda: len(controlled.ctl('workers')) == 2, 'its replacement')
    assert {row['generation'] for row in controlled.ctl('workers')} == {2}
    controlled.server.stop()
    assert not os.path.exists(controlled.socket)


def test_http_on_the_socket(controlled):
    controlled.start(workers=1)
    for head in ('GET /v1/workers HTTP/1.0', 'GET /v1/workers HTTP/1.1\r\nHost: any.example\r\nConnection: close'):
        response = controlled.request(head)
        assert response.startswith('HTTP/1.1 200 ') and '\r\nContent-Type: application/json\r\n' in response
        assert json.loads(response.split('\r\n\r\n', 1)[1])['workers'][0]['pid'] == controlled.server.workers()[0]
    for head, code, error in (('GET /v1/nosuch HTTP/1.0', 404, 'there is no /v1/nosuch; GET /v1 lists the resources'),
                              ('DELETE /v1/workers HTTP/1.0', 405, '/v1/workers takes GET')):
        response = controlled.request(head)
        assert response.startswith(f'HTTP/1.1 {code} ')
        assert json.loads(response.split('\r\n\r\n', 1)[1]) == {'error': error}
    paths = [row['path'] for row in json.loads(controlled.request('GET /v1 HTTP/1.0').split('\r\n\r\n', 1)[1])['resources']]
    assert {'/v1/workers', '/v1/upstreams', '/v1/certificates', '/v1/configuration'} <= set(paths)
    assert controlled.request('GET\x00 / HTTP/1.0').startswith('HTTP/1.1 400 ')
    assert controlled.get('/v1/workers').status == 404, 'other servers have no such resource'
    assert not [row for row in controlled.server.access() if row['request_uri'] == '/v1'], 'requests on the socket are not in the access log'


def test_output_of_the_command(controlled, tmp_path):
    controlled.start(workers=1)
    table = controlled.run('configuration').stdout.splitlines()
    assert table[0].split() == ['path', 'generation', 'loaded', 'seconds']
    assert table[1].split()[:2] == [controlled.server.config_path, '1'] and len(table) == 2
    by_file = subprocess.run([server_kit.SLUICE, 'ctl', 'workers', '-c', controlled.server.config_path], capture_output=True, text=True,
                             timeout=60)
    assert by_file.returncode == 0 and str(controlled.server.workers()[0]) in by_file.stdout
    assert 'ctl has no command "frob"' in controlled.refused('frob')
    assert 'ctl takes a command' in controlled.refused()
    missing = subprocess.run([server_kit.SLUICE, 'ctl', '-s', f'unix:{tmp_path}/none', 'workers'], capture_output=True, text=True, timeout=60)
    assert missing.returncode == 1 and 'No such file or directory); is "control" set' in missing.stderr
    other = tmp_path / 'other.yaml'
    other.write_text('http: {server: {listen: 8080}}\n')
    without = subprocess.run([server_kit.SLUICE, 'ctl', '-c', str(other), 'workers'], capture_output=True, text=True, timeout=60)
    assert without.returncode == 1 and 'other.yaml has no control socket; add "control: ' in without.stderr


def test_upgrade(controlled):
    """The workers of the new master answer on the same socket, which its end removes."""
    controlled.start()
    before = {row['pid'] for row in controlled.ctl('workers')}
    with controlled.upgraded():
        rows = controlled.ctl('workers')
        assert len(rows) == 2 and not {row['pid'] for row in rows} & before
        assert {(row['generation'], row['state']) for row in rows} == {(1, 'running')} and controlled.mode() == 0o600
    assert not os.path.exists(controlled.socket)


@pytest.fixture
def reachable(controlled):
    """A folder for the socket that other users can search: only the mode of the socket excludes them."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        controlled.socket = os.path.join(folder, 'control.sock')
        yield
        if controlled.server:
            controlled.server.stop()


@as_root
def test_other_users_cannot_connect(controlled, reachable):
    controlled.start(workers=1)
    ran = subprocess.run([server_kit.SLUICE, 'ctl', '-s', controlled.socket, 'workers'], capture_output=True, text=True, timeout=60,
                         user=OTHER_USER, group=OTHER_USER, extra_groups=[], check=False)
    assert ran.returncode == 1 and "Permission denied); run this command as the user of the server's master, or as root" in ran.stderr


@as_root
def test_connections_from_before_the_control_socket(controlled, reachable):
    """The socket of a server becomes the control socket. Of the connections that wait there, that of another user is closed."""
    path = f'unix:{controlled.socket}'
    controlled.start(workers=1, main={'control': None}, listen=[path])
    [former] = controlled.server.workers()
    assert controlled.mode() == 0o666
    os.kill(former, signal.SIGSTOP)
    with other_user():
        foreign = controlled.connect()
    own = controlled.connect()
    for stream in (foreign, own):
        stream.sendall(b'GET /v1/workers HTTP/1.0\r\n\r\n')
    controlled.server.tree['http']['server'][0]['listen'].remove(path)
    controlled.server.tree['control'] = path
    controlled.server.write_configuration()
    controlled.reload()
    assert own.recv(100).startswith(b'HTTP/1.1 200 ')
    with contextlib.suppress(ConnectionResetError):
        assert foreign.recv(100) == b''
    controlled.until('control: a connection of another user is closed')
    assert controlled.mode() == 0o600
    with other_user(), pytest.raises(PermissionError):
        controlled.connect()
    os.kill(former, signal.SIGCONT)
    wait_for(lambda: [row['generation'] for row in controlled.ctl('workers')] == [2], 'the end of the former generation')
    foreign.close()
    own.close()
