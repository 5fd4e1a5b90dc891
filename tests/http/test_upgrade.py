"""Binary upgrade: USR2, WINCH and `-s upgrade`. No connection is refused, no request fails, and a failing binary changes nothing."""
import hashlib
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading

import pytest

from kit import http1, http2, server as server_kit
from kit.lifetime import alive, wait_for
from kit.resumption import VERSIONS, fetch_with_session

RUNS = server_kit.RUNS
UPGRADES = int(os.environ.get('SLUICE_UPGRADES', '3'))     # and one failing upgrade for each kind of failure
BIG = hashlib.shake_128(b'upgrade').digest(8 << 20)
HANDSHAKE = ('GET /tunnel HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
             'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n')


class Echo(threading.Thread):
    """An upstream server that switches protocols and returns the bytes it receives."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        connection, _ = self.listener.accept()
        with connection:
            head = b''
            while b'\r\n\r\n' not in head:
                head += connection.recv(4096)
            connection.sendall(b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
            while data := connection.recv(4096):
                connection.sendall(data)


class Upgraded(server_kit.Server):
    """A server that is replaced by others: `pid` is that of the present master."""

    def __init__(self, folder, certificate, loop, tunnel):
        self.port, self.secure = server_kit.free_port(), server_kit.free_port()
        folder.chmod(0o755)
        (folder / 'www').mkdir()
        (folder / 'www' / 'big').write_bytes(BIG)
        (folder / 'www' / 'small').write_bytes(b'small\n')
        self.binary = folder / 'sluice'
        self.binary.symlink_to(server_kit.SLUICE)
        block = {'listen': [f'127.0.0.1:{self.port}', f'127.0.0.1:{self.secure} ssl', f'unix:{folder}/socket'], 'root': str(folder / 'www'),
                 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1],
                 'location': {'/tunnel': {'proxy_pass': f'http://127.0.0.1:{tunnel}', 'proxy_http_version': '1.1', 'proxy_set_header':
                                          {'Connection': 'upgrade', 'Upgrade': '$http_upgrade'}}}}
        super().__init__(folder, [block], loop=loop, main={'worker_processes': 2, 'worker_shutdown_timeout': '60s'})
        self.pid_path = self.tree['pid']
        self.masters = []

    def pid(self, suffix=''):
        text = server_kit.read_text(self.pid_path + suffix)
        return int(text) if text else 0

    def upgrade(self):
        """`-s upgrade`; returns (exit status, messages)."""
        self.masters.append(self.pid())
        done = subprocess.run([str(self.binary), '-s', 'upgrade', '-c', self.config_path], capture_output=True, text=True, check=False,
                              timeout=90 * server_kit.PATIENCE)
        self.masters.append(self.pid())
        return done.returncode, done.stderr

    def usr2(self):
        """Upgrades by USR2, without QUIT to the old master. Returns the pids of the old and the new master, which both serve."""
        old = self.pid()
        os.kill(old, signal.SIGUSR2)
        new = wait_for(lambda: self.pid() if self.pid() != old else 0, 'the pid file of the new master')
        self.masters += [old, new]
        return old, new

    def workers_of(self, master):
        with open(f'/proc/{master}/task/{master}/children', encoding='ascii') as stream:
            return [pid for pid in map(int, stream.read().split()) if alive(pid) and pid not in self.masters]

    def finish(self):
        self.masters.append(self.pid())
        for pid in {pid for pid in self.masters if pid and alive(pid)}:
            os.kill(pid, signal.SIGTERM)
            if pid != self.process.pid:
                wait_for(lambda: not alive(pid), f'master {pid} has ended', seconds=30)
        assert self.process.wait(20 * server_kit.PATIENCE) == 0, self.output()
        assert not [mark for mark in server_kit.SANITIZER_MARKS if mark in self.output()], self.output()
        assert not os.path.exists(os.path.join(self.folder, 'socket')) and not os.path.exists(self.pid_path)


@pytest.fixture
def tunnel():
    return Echo()


@pytest.fixture
def server(certificate, tmp_path, loop, tunnel, monkeypatch):
    made = Upgraded(tmp_path, certificate, loop, tunnel.port)
    monkeypatch.setattr(server_kit, 'SLUICE', str(made.binary))
    made.start((made.port, made.secure))
    wait_for(lambda: RUNS in made.errors(), 'all workers are ready')
    yield made
    made.finish()


class Load:
    """Clients over HTTP, HTTPS and HTTP/2, each with one connection after another: two requests in turn if the first response permits it,
    or two streams at once."""

    def __init__(self, server):
        self.server, self.over, self.faults, self.counts = server, threading.Event(), [], {}
        self.threads = [threading.Thread(target=self.run, args=(name, fetch)) for name, fetch in
                        (('http', self.http), ('https', self.https), ('http2', self.http2))]

    def http(self):
        return self.two_requests(http1.connect(self.server.port))

    def https(self):
        return self.two_requests(http1.connect(self.server.secure, 'user'))

    @staticmethod
    def two_requests(client):
        responses = [client.get('/small')]
        if not responses[0].closes:
            responses.append(client.get('/small'))
        client.close()
        return responses

    def http2(self):
        client = http2.connect(self.server.secure, 'user')
        streams = [client.request('/small') for _ in range(2)]
        while not all(client.responses[stream].over for stream in streams) and client.pump():
            pass
        client.close()
        # GOAWAY names the last stream that was processed: clients send later ones again, on another connection.
        last = client.goaway[-1][0] if client.goaway else streams[-1]
        responses = [client.responses[stream] for stream in streams if stream <= last]
        assert responses, client.goaway
        return responses

    def run(self, name, fetch):
        self.counts[name] = 0
        while not self.over.is_set():
            try:
                responses = fetch()
                assert all(response.body == b'small\n' for response in responses), responses
                self.counts[name] += 1
            except Exception as error:      # pylint: disable=broad-except
                self.faults.append(f'{name}: {error!r}')

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_for(lambda: len(self.counts) == 3 and all(self.counts.values()), 'every client has its first responses')
        return self

    def __exit__(self, *unused):
        counts = dict(self.counts)
        wait_for(lambda: all(self.counts[name] > counts[name] + 2 for name in counts) or self.faults, 'responses after the last upgrade')
        self.over.set()
        for thread in self.threads:
            thread.join(60)


def replace_binary(server, text):
    """Installs another program by rename(2), as package managers do."""
    beside = server.binary.with_suffix('.new')
    if text is None:
        beside.symlink_to(server.original)
    elif not text:
        beside.symlink_to('absent')
    else:
        beside.write_text(text)
        beside.chmod(0o755)
    beside.rename(server.binary)


def test_upgrade_under_load_fails_no_request(server):
    """Upgrades and failing upgrades under load: every request is answered, and a download and a tunnel complete in the first server."""
    server.original = os.readlink(server.binary)
    download, peer = http1.connect(server.secure, 'user'), http1.connect(server.port)
    download.send('GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert download.head().status == 200
    peer.send(HANDSHAKE)
    assert peer.head().status == 101
    with Load(server) as load:
        for _ in range(UPGRADES):
            before = server.pid()
            status, messages = server.upgrade()
            assert status == 0 and f'process {server.pid()} replaced process {before}' in messages, messages
        for text, cause in (('', 'failed (2: No such'), ('not a program', 'failed (8: Exec'), ('#!/bin/sh\nexit 3\n', 'exited with status 3'),
                            ('#!/bin/sh\nkill -SEGV $$\n', 'was ended by signal 11')):
            replace_binary(server, text)
            before = server.pid()
            os.kill(before, signal.SIGUSR2)
            wait_for(lambda: cause in server.errors() and not os.path.exists(server.pid_path + '.oldbin'), cause)
            assert server.pid() == before
            replace_binary(server, None)
        with open(server.config_path, 'a', encoding='utf-8') as stream:
            stream.write('nonsense: 1\n')
        before = server.pid()
        os.kill(before, signal.SIGUSR2)
        # The first two were children that could not execute.
        wait_for(lambda: server.errors().count('exited with status 1: this server continues') == 3, 'the invalid configuration is refused')
        wait_for(lambda: server.pid() == before, 'the pid file has its name again')
        server.tree['http']['server'][0]['location']['/new'] = {'return': '200 new'}
        server.write_configuration()
        status, messages = server.upgrade()
        assert status == 0, messages
    assert load.faults == [] and all(count > UPGRADES for count in load.counts.values())
    assert alive(server.process.pid), 'the first server still sends'
    peer.send('still here')
    assert peer.read_exactly(10) == b'still here'
    assert hashlib.sha256(download.read_exactly(len(BIG))).digest() == hashlib.sha256(BIG).digest()
    peer.close()
    download.close()
    assert server.process.wait(30 * server_kit.PATIENCE) == 0
    assert http1.connect(server.port).get('/new').body == b'new'


def test_option_s_upgrade_reports_a_failure(server):
    server.original = os.readlink(server.binary)
    before = server.pid()
    shutil.copy(server.original, server.folder + '/client')
    replace_binary(server, '#!/bin/sh\nexit 3\n')
    done = subprocess.run([server.folder + '/client', '-s', 'upgrade', '-c', server.config_path], capture_output=True, text=True,
                          check=False, timeout=90 * server_kit.PATIENCE)
    assert done.returncode == 1 and f'upgrade failed: the new server ended; process {before} continues' in done.stderr, done.stderr
    assert server.pid() == before and http1.connect(server.port).get('/small').body == b'small\n'
    replace_binary(server, None)


def test_quit_to_the_new_master_cancels_the_upgrade(server):
    """Both masters serve; QUIT to the new one cancels the upgrade, and the workers that WINCH ended start again."""
    old, new = server.usr2()
    assert server.pid('.oldbin') == old and stat.S_ISSOCK(os.stat(server.folder + '/socket').st_mode)
    for pid in (old, new):
        os.kill(pid, signal.SIGUSR2)
    wait_for(lambda: 'no upgrade: another upgrade has not ended' in server.errors(), 'a second upgrade is refused')
    wait_for(lambda: 'no upgrade: the previous master still runs' in server.errors(), 'an upgrade of the new one is refused')
    status, messages = server.upgrade()
    assert status == 1 and f'process {old} still runs' in messages, messages
    os.kill(old, signal.SIGWINCH)
    wait_for(lambda: not server.workers_of(old), 'the old workers have ended')
    assert all(http1.connect(server.port).get('/small').body == b'small\n' for _ in range(8))
    with Load(server) as load:
        os.kill(new, signal.SIGQUIT)
        wait_for(lambda: server.pid() == old, 'the pid file has its name again')
        wait_for(lambda: len(server.workers_of(old)) == 2, 'the old master has workers again')
        wait_for(lambda: not alive(new), 'the new master has ended')
    assert load.faults == []
    assert stat.S_ISSOCK(os.stat(server.folder + '/socket').st_mode)


def test_two_upgrades_while_a_tunnel_is_open(server):
    """The first master still waits for the tunnel when the second one ends after the next upgrade: this is not an error."""
    with socket.create_connection(('127.0.0.1', server.port)) as client:
        client.sendall(HANDSHAKE.encode())
        assert client.recv(4096).startswith(b'HTTP/1.1 101')
        assert server.upgrade()[0] == 0
        second = server.pid()
        assert server.upgrade()[0] == 0
        line = f'upgrade: process {second} exited with status 0\n'
        wait_for(lambda: line in server.errors(), 'the second master has ended', 30)
        assert re.search(r'\[(\w+)\][^[\n]*' + line, server.errors()).group(1) == 'info'


def test_hup_restarts_workers_after_winch(server):
    """Without workers the kernel queues connections; HUP starts workers, which accept them."""
    master = server.pid()
    os.kill(master, signal.SIGWINCH)
    wait_for(lambda: not server.workers_of(master), 'the workers have ended')
    client = http1.connect(server.port)
    client.send('GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n')
    os.kill(master, signal.SIGHUP)
    assert client.read().body == b'small\n'
    wait_for(lambda: len(server.workers_of(master)) == 2, 'two workers run')


def test_drained_master_removes_unix_sockets(server):
    """After WINCH: HUP removes the path of a socket that is no longer configured, and the end removes the others."""
    master, block = server.pid(), server.tree['http']['server'][0]
    server.tree['http']['server'][0] = {**block, 'listen': [*block['listen'], f'unix:{server.folder}/second']}
    server.write_configuration()
    os.kill(master, signal.SIGHUP)
    wait_for(lambda: os.path.exists(server.folder + '/second'), 'the second socket')
    wait_for(lambda: server.errors().count(' runs, ') == 2 and len(server.workers_of(master)) == 2, 'the new configuration')
    os.kill(master, signal.SIGWINCH)
    wait_for(lambda: not server.workers_of(master), 'the workers have ended')
    assert stat.S_ISSOCK(os.stat(server.folder + '/second').st_mode)
    server.tree['http']['server'][0] = block
    server.write_configuration()
    os.kill(master, signal.SIGHUP)
    wait_for(lambda: len(server.workers_of(master)) == 2, 'two workers run')
    assert not os.path.exists(server.folder + '/second') and stat.S_ISSOCK(os.stat(server.folder + '/socket').st_mode)
    wait_for(lambda: server.errors().count(' runs, ') == 3, 'the first configuration')
    os.kill(master, signal.SIGWINCH)
    wait_for(lambda: not server.workers_of(master), 'the workers have ended')
    assert stat.S_ISSOCK(os.stat(server.folder + '/socket').st_mode)
    server.finish()                     # checks that the path is removed


@pytest.mark.parametrize('version', VERSIONS)
def test_sessions_resume_after_an_upgrade(server, version, tmp_path):
    session = str(tmp_path / 'session')
    fetch_with_session(server.secure, version, session_out=session, target='/small')
    assert server.upgrade()[0] == 0
    resumed, response = fetch_with_session(server.secure, version, session_in=session, target='/small')
    assert resumed, response
