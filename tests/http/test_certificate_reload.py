"""Certificate files that change while the server runs: new connections use the valid new ones, without a reload."""
import os
import resource
import shutil
import signal
import socket
import ssl

import pytest

from kit import http1, server as server_kit, site as site_kit
from kit.authority import Authority, context
from kit.lifetime import wait_for
from kit.resumption import fetch_with_session

TAKEN, REFUSED = 'have changed: new connections use them', 'have changed and are rejected, the previous ones stay in use: '


class Site:
    """A directory that only its owner may enter, with a certificate that tests replace."""

    def __init__(self, folder):
        os.makedirs(folder, mode=0o700)
        self.folder = folder
        self.certificate, self.key = os.path.join(folder, 'site.pem'), os.path.join(folder, 'site.key')
        self.made = 0
        self.put(*self.make_certificate())

    def make_certificate(self):
        self.made += 1
        folder = os.path.join(self.folder, str(self.made))
        os.mkdir(folder)
        return site_kit.make_certificate(folder, name='site')

    def put(self, certificate=None, key=None):
        """Replaces the files, each atomically."""
        for path, target in ((key, self.key), (certificate, self.certificate)):
            if path:
                shutil.copy(path, target + '.new')
                os.chmod(target + '.new', 0o600)
                os.replace(target + '.new', target)


@pytest.fixture
def start_server(tmp_path, loop):
    made = []

    def starter(workers=2, **block):
        folder = tmp_path / f'site{len(made)}'
        site = Site(str(folder))
        port = server_kit.free_port()
        server = server_kit.Server(tmp_path / f'server{len(made)}', [
            {'listen': f'127.0.0.1:{port} ssl', 'server_name': 'site.test', 'ssl_certificate': site.certificate,
             'ssl_certificate_key': site.key, 'ssl_certificate_cache': 'valid=200ms',
             'location': {'/': {'return': '200 $pid'}}, **block}], loop=loop, main={'worker_processes': workers})
        server.port, server.site = port, site
        made.append(server.start([port]))
        wait_for(lambda: ' runs, ' in server.errors(), 'all workers are ready')
        return server
    yield starter
    for server in made:
        server.stop()


def connect(server):
    sock = socket.create_connection(('127.0.0.1', server.port), timeout=20 * server_kit.PATIENCE)
    return http1.Client(context().wrap_socket(sock, server_hostname='site.test'))


def seen(server):
    """The certificate of a new connection, and the process id of its worker."""
    client = connect(server)
    try:
        shown = ssl.DER_cert_to_PEM_cert(client.stream.getpeercert(True))
        return shown.strip(), int(client.get('/').body)
    finally:
        client.close()


def text(path):
    with open(path, encoding='ascii') as stream:
        return stream.read().strip()


def every_worker_shows(server, certificate):
    wait_for(lambda: {pid for shown, pid in (seen(server) for _ in range(8)) if shown == text(certificate)} == set(server.workers()),
             'the certificate at every worker')
    assert seen(server)[0] == text(certificate)


def test_new_connections_get_the_new_certificate(start_server):
    server = start_server()
    old = connect(server)
    assert old.get('/').status == 200
    workers = set(server.workers())
    certificate, key = server.site.make_certificate()
    server.site.put(certificate, key)
    wait_for(lambda: TAKEN in server.errors(), 'the change')
    every_worker_shows(server, certificate)
    assert old.get('/').status == 200, 'the old connection continues'
    assert set(server.workers()) == workers and 'HUP' not in server.errors()
    old.close()


def test_later_workers_use_the_new_certificate(start_server):
    server = start_server()
    certificate, key = server.site.make_certificate()
    server.site.put(certificate, key)
    wait_for(lambda: TAKEN in server.errors(), 'the change')
    before = set(server.workers())
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: len(set(server.workers()) - before) == 2 and not before & set(server.workers()), 'new workers')
    every_worker_shows(server, certificate)


def test_mismatched_key_is_not_loaded(start_server):
    server = start_server()
    first = text(server.site.certificate)
    certificate, key = server.site.make_certificate()
    server.site.put(certificate=certificate)
    wait_for(lambda: REFUSED in server.errors(), 'the refusal')
    assert f'the key "{server.site.key}" does not belong to the certificate "{server.site.certificate}"' in server.errors()
    assert seen(server)[0] == first
    server.site.put(key=key)
    wait_for(lambda: TAKEN in server.errors(), 'the change')
    every_worker_shows(server, certificate)
    assert server.errors().count(REFUSED) == 1, 'logged once'


def test_truncated_certificate_is_not_loaded(start_server):
    server = start_server()
    first = text(server.site.certificate)
    certificate, key = server.site.make_certificate()
    half = os.path.join(server.site.folder, 'half.pem')
    with open(half, 'w', encoding='ascii') as stream:
        stream.write(text(certificate)[:200])
    server.site.put(half)
    wait_for(lambda: f'certificate number 1 in "{server.site.certificate}" cannot be read' in server.errors(), 'the refusal')
    assert seen(server)[0] == first
    os.unlink(server.site.certificate)
    wait_for(lambda: f'"{server.site.certificate}" cannot be opened: No such file or directory' in server.errors(), 'the refusal')
    assert seen(server)[0] == first
    server.site.put(certificate, key)
    every_worker_shows(server, certificate)
    assert 1 <= server.errors().count(REFUSED) - server.errors().count('does not belong') <= 2


def test_temporary_failures_are_retried(start_server):
    server = start_server()
    pid, first = server.process.pid, text(server.site.certificate)
    free = min(set(range(1000)) - {int(name) for name in os.listdir(f'/proc/{pid}/fd')})
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    certificate, key = server.site.make_certificate()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
    server.site.put(certificate, key)
    wait_for(lambda: 'cannot be opened: Too many open files' in server.errors(), 'the refusal')
    assert seen(server)[0] == first
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    wait_for(lambda: TAKEN in server.errors(), 'the change')
    every_worker_shows(server, certificate)


def test_cache_off_loads_at_reload_only(start_server, tmp_path):
    watched = start_server()
    server = start_server(ssl_certificate_cache='off')
    first = text(server.site.certificate)
    certificate, key = server.site.make_certificate()
    server.site.put(certificate, key)
    watched.site.put(*watched.site.make_certificate())
    wait_for(lambda: TAKEN in watched.errors(), 'the other server has seen its change')
    assert seen(server)[0] == first
    server.process.send_signal(signal.SIGHUP)
    every_worker_shows(server, certificate)
    assert TAKEN not in server.errors()


def test_changed_ssl_crl_is_loaded(start_server, tmp_path):
    authority = Authority(str(tmp_path / 'authority'))
    client = authority.client('client')
    more = ['-cert', client[0], '-key', client[1]]
    server = start_server(ssl_verify_client='on', ssl_client_certificate=authority.certificate, ssl_crl=authority.crl())
    session = tmp_path / 'session'
    assert '200 OK' in fetch_with_session(server.port, '-tls1_3', session_out=session, name='site.test', more=more)[1]
    assert fetch_with_session(server.port, '-tls1_3', session_in=session, name='site.test')[0]
    authority.revoke(client)
    authority.crl()
    wait_for(lambda: TAKEN in server.errors(), 'the change')
    wait_for(lambda: '400 Bad Request' in fetch_with_session(server.port, '-tls1_3', name='site.test', more=more)[1], 'the refusal')
    for _ in range(8):
        resumed, response = fetch_with_session(server.port, '-tls1_3', session_in=session, name='site.test', more=more)
        if not resumed:
            break
    assert not resumed and '400 Bad Request' in response, 'what was good before is no longer taken up'


def test_changed_ticket_keys_are_loaded(start_server, tmp_path):
    key = tmp_path / 'ticket.key'
    key.write_bytes(os.urandom(80))
    server = start_server(workers=1, ssl_session_ticket_key=str(key))
    session = tmp_path / 'session'
    fetch_with_session(server.port, '-tls1_3', session_out=session, name='site.test')
    assert fetch_with_session(server.port, '-tls1_3', session_in=session, name='site.test')[0]
    key.write_bytes(os.urandom(48))
    wait_for(lambda: TAKEN in server.errors(), 'the change')
    wait_for(lambda: not fetch_with_session(server.port, '-tls1_3', session_in=session, name='site.test')[0], 'the next key')
    key.write_bytes(b'short')
    wait_for(lambda: f'the ticket key "{key}" has 5 bytes, and neither 80 nor 48' in server.errors(), 'the refusal')


WRONG = [('valid=10', '10'), ('valid=1ms', 'files are checked at most every 100 ms'), ('often=1s', 'ssl_certificate_cache has no option "often"'),
         ('perhaps', 'perhaps')]


@pytest.mark.parametrize('value, words', WRONG)
def test_invalid_configurations_are_rejected(start_server, value, words):
    with pytest.raises(RuntimeError) as error:
        start_server(ssl_certificate_cache=value)
    assert words in str(error.value)
