"""`sluice ctl ticket-keys rotate`: the keys of the tickets that clients get, and the tickets that are accepted."""
import json
import os
import re
import signal
import socket
import ssl
import threading

import pytest
from kit import server as server_kit
from kit.lifetime import wait_for
from kit.resumption import VERSIONS, fetch_with_session
from test_control import controlled  # pylint: disable=unused-import

TIMEOUT = 20 * server_kit.PATIENCE


def keys(controlled, *words):
    """The names of the current and of the previous key."""
    rows = controlled.ctl('ticket-keys', *words)
    assert [row['state'] for row in rows] == ['current', 'previous'][:len(rows)]
    return [row['key'] for row in rows]


def fetch(port, version, **files):
    """(resumed, name of the key that encrypted the last ticket on this connection: its first 16 bytes)"""
    resumed, output = fetch_with_session(port, version, target='/one.txt', **files)
    return resumed, re.findall(r'TLS session ticket:\n\s+0000 - ([0-9a-f -]{47})', output)[-1].replace('-', '').replace(' ', '')


def resumes(controlled, version, session):
    return fetch(controlled.tls_port, version, session_in=session)[0]


def new_session(controlled, version, path):
    resumed, key = fetch(controlled.tls_port, version, session_out=path)
    assert not resumed
    return key


class Resuming:
    """Clients that connect again and again, each with the session of its last connection."""

    def __init__(self, port, version, count=3):
        self.port, self.faults, self.resumed, self.ended = port, [], [], threading.Event()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.context.minimum_version = self.context.maximum_version = version
        self.threads = [threading.Thread(target=self.run) for _ in range(count)]

    def fetch(self, session):
        with socket.create_connection(('127.0.0.1', self.port), timeout=TIMEOUT) as plain, \
                self.context.wrap_socket(plain, server_hostname='localhost', session=session) as stream:
            stream.sendall(b'GET /one.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
            assert b''.join(iter(lambda: stream.recv(65536), b'')).startswith(b'HTTP/1.1 200 ')
            if session:
                self.resumed.append(stream.session_reused)
            return stream.session

    def run(self):
        session = None
        try:
            while not self.ended.is_set():
                session = self.fetch(session)
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(error)

    def more(self, count=30):
        before = len(self.resumed)
        wait_for(lambda: self.faults or len(self.resumed) >= before + count, f'{count} connections')
        assert not self.faults, self.faults

    def __enter__(self):
        for one in self.threads:
            one.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for one in self.threads:
            one.join()


@pytest.mark.parametrize('version', [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_under_load(controlled, version):
    """No request fails, and no session is lost by a rotation."""
    controlled.start(workers=3)
    with Resuming(controlled.tls_port, version) as clients:
        clients.more()
        before = keys(controlled)
        assert keys(controlled, 'rotate')[1:] == before
        clients.more()
        assert len(controlled.ctl('workers')) == 3
    assert not clients.faults and all(clients.resumed)


def logged_keys(controlled):
    """The number of rotations that the lines of the master name: one line per second."""
    lines = re.findall(rf'\[notice\] {controlled.server.process.pid}#0: control: session tickets are encrypted with a new key(?:, the last of (\d+))?$',
                       controlled.server.errors(), re.M)
    return sum(int(count or 1) for count in lines)


@pytest.mark.parametrize('version', VERSIONS)
def test_tickets(controlled, tmp_path, version):
    """New tickets have the new key in each worker at once; older ones are accepted until the next rotation."""
    controlled.start(workers=3)
    old, new = tmp_path / 'old', tmp_path / 'new'
    [first] = keys(controlled)
    assert new_session(controlled, version, old) == first
    second = keys(controlled, 'rotate')[0]
    assert second != first and keys(controlled) == [second, first]
    assert {new_session(controlled, version, new) for _ in range(10)} == {second}
    assert {fetch(controlled.tls_port, version, session_in=old) for _ in range(10)} == {(True, second)}, 'each worker decrypts, and renews'
    third = keys(controlled, 'rotate')[0]
    assert not resumes(controlled, version, old)
    assert resumes(controlled, version, new)
    assert len({first, second, third}) == 3
    wait_for(lambda: logged_keys(controlled) == 2, 'the lines of both rotations')


def test_replaced_worker_and_reload(controlled, tmp_path):
    controlled.start()
    version, old, new = '-tls1_3', tmp_path / 'old', tmp_path / 'new'
    new_session(controlled, version, old)
    current, previous = keys(controlled, 'rotate')
    new_session(controlled, version, new)
    former = set(controlled.server.workers())
    for pid in former:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not former & set(controlled.server.workers()) and len(controlled.server.workers()) == 2, 'the replacements')
    assert keys(controlled) == [current, previous]
    assert resumes(controlled, version, old) and resumes(controlled, version, new)
    controlled.reload()
    assert keys(controlled) == [current, previous]
    assert resumes(controlled, version, old) and resumes(controlled, version, new)
    assert new_session(controlled, version, tmp_path / 'later') == current


def test_upgrade(controlled, tmp_path):
    """The new master has a copy of the keys, and rotates it."""
    controlled.start()
    session = tmp_path / 'session'
    first = keys(controlled, 'rotate')[0]
    assert new_session(controlled, '-tls1_3', session) == first
    with controlled.upgraded():
        assert keys(controlled)[0] == first
        second, previous = keys(controlled, 'rotate')
        assert previous == first and second != first
        assert fetch(controlled.tls_port, '-tls1_3', session_in=session) == (True, second)


def test_concurrent_rotations(controlled):
    """Each command succeeds, and its result has a key that follows those before it."""
    controlled.start(workers=3)
    ran = []
    threads = [threading.Thread(target=lambda: ran.append(keys(controlled, 'rotate'))) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(ran) == 8 and all(len(names) == 2 for names in ran)
    assert keys(controlled) in ran
    wait_for(lambda: logged_keys(controlled) == 8, 'the lines of all rotations')


def test_stream(controlled):
    """Servers of `stream` use the same keys."""
    port = server_kit.free_port()
    controlled.start(workers=1, main={'stream': {'server': {'listen': f'127.0.0.1:{port} ssl', 'proxy_pass': f'127.0.0.1:{controlled.port}',
                                                            'ssl_certificate': controlled.certificate[0],
                                                            'ssl_certificate_key': controlled.certificate[1]}}})
    current = keys(controlled, 'rotate')[0]
    assert fetch(port, '-tls1_3') == (False, current)


def tls_server(controlled):
    """The block of the server, to be changed before a reload."""
    return controlled.server.tree['http']['server'][0]


def changed(controlled):
    controlled.server.write_configuration()
    controlled.reload()


def test_key_files_are_not_rotated(controlled, tmp_path):
    """Also if other servers have generated keys, which are rotated."""
    controlled.start(workers=1)
    file = tmp_path / 'ticket.key'
    file.write_bytes(os.urandom(80))
    tls_server(controlled)['ssl_session_ticket_key'] = str(file)
    changed(controlled)
    refused = controlled.refused('ticket-keys', 'rotate')
    assert 'the ticket keys are files of ssl_session_ticket_key: write a new one (openssl rand 80 > FILE), name it first' in refused
    assert controlled.request('POST /v1/ticket-keys/rotate HTTP/1.0').startswith('HTTP/1.1 409 ')
    assert keys(controlled) == []
    port = server_kit.free_port()
    controlled.server.tree['http']['server'].append({**{name: value for name, value in tls_server(controlled).items() if name != 'ssl_session_ticket_key'},
                                                     'listen': f'127.0.0.1:{port} ssl'})
    changed(controlled)
    current = keys(controlled, 'rotate')[0]
    assert new_session(controlled, '-tls1_3', tmp_path / 'file') == file.read_bytes()[:16].hex()
    assert fetch(port, '-tls1_3') == (False, current)


def test_servers_without_tickets(controlled):
    controlled.start(workers=1)
    tls_server(controlled)['ssl_session_tickets'] = 'off'
    changed(controlled)
    text = 'no server has session tickets: none listens with ssl, or ssl_session_tickets is off'
    assert text in controlled.refused('ticket-keys', 'rotate')
    tls_server(controlled)['listen'] = [f'127.0.0.1:{controlled.port}']
    changed(controlled)
    assert text in controlled.refused('ticket-keys', 'rotate') and keys(controlled) == []
    assert 'control: session tickets' not in controlled.server.errors()


def test_wrong_words(controlled):
    controlled.start(workers=1)
    before = keys(controlled)
    assert '"ticket-keys" has no command "frob"; sluice ctl help lists them' in controlled.refused('ticket-keys', 'frob')
    assert '"ticket-keys rotate" takes 0 arguments, found 1' in controlled.refused('ticket-keys', 'rotate', 'now')
    for request, status, error in (('GET /v1/ticket-keys/rotate HTTP/1.0', 405, '/v1/ticket-keys/rotate takes POST'),
                                   ('POST /v1/ticket-keys HTTP/1.0', 405, '/v1/ticket-keys takes GET'),
                                   ('POST /v1/ticket-keys/rotate HTTP/1.0\r\nContent-Length: 9\r\n\r\n{"key":1}', 400,
                                    'there is no field "key"; /v1/ticket-keys/rotate takes none')):
        response = controlled.request(request)
        assert response.startswith(f'HTTP/1.1 {status} ')
        assert json.loads(response.split('\r\n\r\n', 1)[1]) == {'error': error}
    assert keys(controlled) == before
