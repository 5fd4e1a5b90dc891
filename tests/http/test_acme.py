"""Certificates by ACME: the server obtains and renews them from pebble by the client uacme, through all faults of the authority, of the
client and of the disk. Without a certificate, it serves a self-signed one."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import ssl
import subprocess
import time

import pytest

from kit import http1, server as server_kit
from kit.acme import TRUSTED, Site, names_of, site_starter
from kit.lifetime import alive, wait_for
from kit.programs import program

LIFETIME = 30       # seconds; renewed after 20 to 21.5


@pytest.fixture
def start_site(tmp_path):
    """start_site(**settings of Site, authority=settings of Pebble) -> a site with its authority."""
    program('uacme'), program('pebble')
    with site_starter(tmp_path) as starter:
        yield starter


def clients_of(site):
    """Process ids of the running clients."""
    found = []
    for pid in site.server.processes():
        try:
            if pathlib.Path(f'/proc/{pid}/comm').read_text(encoding='ascii').strip() == 'uacme':
                found.append(pid)
        except FileNotFoundError:
            continue
    return found


def read(pid, path):
    """A file as the server sees it."""
    return pathlib.Path(f'/proc/{pid}/root{path}')


@pytest.mark.parametrize('loop', ['epoll', 'io_uring'])
def test_first_certificate(start_site, loop):
    site = start_site(loop=loop)
    certificate = site.wait_for_certificate()
    assert names_of(certificate) == {'a.test', 'b.test'}
    assert names_of(site.peer('b.test')) == {'a.test', 'b.test'}
    assert 'generated a self-signed certificate for "a.test"' in site.server.output()
    assert '"a.test" has a new certificate' in site.server.errors()
    # The challenge is answered before the redirect of the server, the rest is not.
    with contextlib.closing(http1.connect(site.http_port)) as client:
        assert client.get('/.well-known/acme-challenge/unknown', Host='a.test').status == 301
    assert not list((site.state / 'challenges').iterdir()), 'the hook removes challenges'
    # A restart uses the certificate, and requests no other.
    site.server.stop()
    site.server.start([site.port, site.http_port])
    assert site.peer().serial_number == certificate.serial_number
    assert site.server.errors().count('requesting a certificate') == 1


def test_keys_are_readable_by_their_owner_only(start_site):
    site = start_site()
    site.wait_for_certificate()
    for path in site.state.rglob('*'):
        if path.is_file() and not path.is_symlink() and b'PRIVATE KEY' in path.read_bytes():
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE(site.certificate_file().stat().st_mode) == 0o600
    for name in ('certificates', 'clients'):
        assert stat.S_IMODE((site.state / name).stat().st_mode) == 0o700
    copies = [path for path in site.state.rglob('key.pem') if path.parent.name == 'a.test']
    assert not copies, 'the client keeps no copy of the key'


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can start the client as another user')
def test_another_user_runs_the_client(start_site):
    import pwd
    site = start_site(user='daemon')
    site.wait_for_certificate()
    assert site.certificate_file().stat().st_uid == pwd.getpwnam('daemon').pw_uid
    assert site.certificate_file().stat().st_uid != pwd.getpwnam('nobody').pw_uid, 'that of the workers'
    for key in (path for path in site.state.rglob('*') if path.is_file() and b'PRIVATE KEY' in path.read_bytes()):
        read_by = {user: subprocess.run(['head', '-c1', key], user=user, check=False, capture_output=True).returncode == 0
                   for user in ('daemon', 'nobody')}
        assert read_by == {'daemon': True, 'nobody': False}, key


def test_renewed_certificate_is_used_by_new_connections(start_site):
    site = start_site(authority={'certificateValidityPeriod': LIFETIME})
    first = site.wait_for_certificate()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(('127.0.0.1', site.port)) as plain, context.wrap_socket(plain, server_hostname='a.test') as client:
        second = site.wait_for_certificate(but=first.serial_number, seconds=60)
        client.sendall(b'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')
        assert client.recv(4096).startswith(b'HTTP/1.1 200'), 'a connection outlives the renewal'
    assert first.public_key() != second.public_key(), 'each certificate has a new key'
    age = (second.not_valid_before_utc - first.not_valid_before_utc).total_seconds()
    assert LIFETIME * 2 / 3 - 1 <= age, 'not before two thirds of the lifetime'
    assert 'signal HUP' not in site.server.errors()


def test_rejected_nonces_are_retried(start_site):
    """The authority rejects a quarter of the nonces at random; renewals continue until it has rejected one."""
    site = start_site(authority={'certificateValidityPeriod': LIFETIME, 'environment': {'PEBBLE_WFE_NONCEREJECT': '25'}})
    site.wait_for_certificate(seconds=90)
    site.wait_for_log('server rejected nonce, retrying', seconds=90)


def test_a_rejected_order_does_not_concern_other_certificates(start_site):
    site = start_site(names='a.test', more=['blocked-domain.example'], authority={'domainBlocklist': ['blocked-domain.example']}, retry='60s')
    site.wait_for_certificate()
    errors = site.wait_for_log('no certificate for "blocked-domain.example"') and site.server.errors()
    assert site.pebble.directory in errors and 'policy' in errors, 'the log has the cause that the authority reports'
    assert 'next attempt in ' in errors
    assert 'Pebble' not in site.issuer('blocked-domain.example')
    record = (site.state / 'certificates' / 'blocked-domain.example.state').read_text(encoding='utf-8')
    assert 'failures 1\n' in record and 'policy' in record


def test_the_delays_between_failed_attempts_grow(start_site):
    site = start_site(names='a.test', authority={'domainBlocklist': ['a.test']})
    site.wait_for_log('next attempt in ', 4)
    delays = [int(text.split(' ')[0]) for text in site.server.errors().split('next attempt in ')[1:5]]
    for delay, least in zip(delays, (1, 2, 4, 8)):
        assert least <= delay + 1 and delay <= least * 1.25 + 1, delays     # seconds are rounded


def test_requests_do_not_wait_for_the_client(start_site):
    site = start_site(authority={'environment': {'PEBBLE_VA_NOSLEEP': '0', 'PEBBLE_VA_SLEEPTIME': '3'}})
    site.wait_for_log('starting challenge')
    client = clients_of(site)[0]
    os.kill(client, signal.SIGSTOP)
    parent = int(pathlib.Path(f'/proc/{client}/stat').read_text(encoding='ascii').rpartition(')')[2].split()[1])
    assert f'renewal process {parent} started' in site.server.errors(), 'it is a child of the renewal process'
    for _ in range(20):
        with contextlib.closing(http1.connect(site.http_port)) as connection:
            assert connection.get('/', Host='a.test').status == 301
        assert 'Pebble' not in site.issuer(), 'a handshake with the self-signed certificate'
    os.kill(client, signal.SIGCONT)
    site.wait_for_certificate(seconds=60)


def test_slow_validation_ends_in_a_certificate(start_site):
    site = start_site(authority={'environment': {'PEBBLE_VA_NOSLEEP': '0', 'PEBBLE_VA_SLEEPTIME': '4'}})
    site.wait_for_certificate(seconds=60)


def test_a_client_that_takes_too_long_is_killed(start_site):
    site = start_site(authority={'environment': {'PEBBLE_VA_NOSLEEP': '0', 'PEBBLE_VA_SLEEPTIME': '30'}}, timeout='2s')
    site.wait_for_log('did not end within acme.timeout, and was killed')
    wait_for(lambda: not clients_of(site) or 'next attempt' in site.server.errors(), 'the client is gone')
    assert 'Pebble' not in site.issuer(), 'the self-signed certificate stays'


def test_a_killed_client_is_started_again(start_site):
    site = start_site(authority={'environment': {'PEBBLE_VA_NOSLEEP': '0', 'PEBBLE_VA_SLEEPTIME': '3'}})
    for pid in wait_for(lambda: site.wait_for_log('starting challenge') and clients_of(site), 'the client runs'):
        os.kill(pid, signal.SIGKILL)
    site.wait_for_log('the client was killed')
    site.wait_for_certificate(seconds=60)


def test_the_renewal_process_is_started_again(start_site):
    site = start_site(authority={'environment': {'PEBBLE_VA_NOSLEEP': '0', 'PEBBLE_VA_SLEEPTIME': '3'}})
    site.wait_for_log('starting challenge')
    client = clients_of(site)[0]
    renewal = int(site.server.errors().split('renewal process ')[1].split()[0])
    os.kill(renewal, signal.SIGKILL)
    site.wait_for_log('the renewal process of acme exited on signal 9')
    wait_for(lambda: not alive(client), 'its client ends with it')
    site.wait_for_certificate(seconds=60)


def test_reopened_log_is_used(start_site):
    site = start_site(authority={'certificateValidityPeriod': LIFETIME, 'environment': {'PEBBLE_VA_NOSLEEP': '0', 'PEBBLE_VA_SLEEPTIME': '3'}})
    site.wait_for_log('starting challenge')
    client = clients_of(site)[0]
    old = site.server.error_path + '.1'
    os.rename(site.server.error_path, old)
    site.server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(site.server.error_path), 'the new log')
    first = site.wait_for_certificate(seconds=60)
    assert not alive(client) and '"a.test" has a new certificate' in server_kit.read_text(old), 'USR1 does not interrupt the client'
    wait_for(lambda: 'renewal process' in site.server.errors(), 'another process has replaced the first')
    site.wait_for_certificate(but=first.serial_number, seconds=60)
    assert '"a.test" has a new certificate' in site.server.errors()
    assert 'it starts again in' not in site.server.errors()


def test_the_end_of_the_server_ends_the_client(start_site):
    site = start_site(authority={'environment': {'PEBBLE_VA_NOSLEEP': '0', 'PEBBLE_VA_SLEEPTIME': '10'}})
    site.wait_for_log('starting challenge')
    everything = site.server.processes()
    assert clients_of(site)
    site.server.stop()
    assert not [pid for pid in everything if alive(pid)]


def test_full_disk_leaves_the_present_certificate(start_site, tmp_path):
    place = tmp_path / 'small'
    place.mkdir()
    size = 64 << 10
    site = start_site(mounts=[(size, place)], state=place / 'acme', user='root' if os.geteuid() == 0 else '')
    site.wait_for_certificate()
    filler = read(site.server.process.pid, place / 'filler')
    with open(filler, 'wb', buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            pass
    before = site.peer().serial_number
    read(site.server.process.pid, site.certificate_file()).unlink()
    site.server.process.send_signal(signal.SIGHUP)
    site.wait_for_log('no certificate for "a.test"', seconds=60)
    assert site.peer() is not None, 'the server still answers'
    filler.unlink()
    site.wait_for_certificate(but=before, seconds=60)


def test_a_revoked_certificate_is_replaced(start_site):
    site = start_site()
    before = site.wait_for_certificate().serial_number
    folder = next((site.state / 'clients').glob('uacme-*'))
    subprocess.run([*site.server.command_prefix, program('uacme'), '-a', site.pebble.directory, '-c', str(folder), 'revoke',
                    str(folder / 'a.test/cert.pem')], check=True, capture_output=True)
    site.certificate_file().unlink()        # as described in src/acme/README.md
    assert site.peer().serial_number == before, 'the old one is served until the new one arrives'
    site.wait_for_certificate(but=before, seconds=120)


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can run the renewal process as root, which may open its own memory')
def test_unreadable_certificate_is_not_replaced(start_site):
    """/proc/self/mem takes the place of a file on a failing disk: reading it fails with EIO."""
    site = start_site(names='a.test', more=['b.test'], user='root')
    before, removed = site.wait_for_certificate(), site.wait_for_certificate('b.test')
    site.certificate_file().unlink()
    site.certificate_file().symlink_to('/proc/self/mem')
    site.certificate_file('b.test').unlink()
    os.kill(int(site.server.errors().split('renewal process ')[1].split()[0]), signal.SIGKILL)
    site.wait_for_certificate('b.test', but=removed.serial_number)     # the renewal process checks it after a.test
    errors = site.server.errors()
    assert errors.count('requesting a certificate for "a.test"') == 1 and site.peer().serial_number == before.serial_number
    assert 'a.test.pem" cannot be read (5: Input/output error)' in errors


def test_missing_client_is_logged(start_site, tmp_path):
    without = tmp_path / 'bin'
    without.mkdir()
    for name in ('sh', 'mount'):
        (without / name).symlink_to(program(name))
    site = start_site(environment={'PATH': str(without)}, retry='60s')
    site.wait_for_log('the client uacme is not installed: apt-get install uacme')
    assert 'Pebble' not in site.issuer()


def test_the_next_authority_is_tried(start_site):
    dead = f'https://localhost:{server_kit.free_port()}/dir'
    site = start_site(directory=lambda pebble: [dead, pebble.directory], timeout='60s')
    site.wait_for_certificate(seconds=120)
    errors = site.server.errors()
    assert f'requesting a certificate for "a.test" from {dead}' in errors
    assert f'"a.test" has a new certificate from {site.pebble.directory}' in errors


def test_two_servers_with_one_state_folder_request_one_certificate(start_site, tmp_path):
    one = start_site(authority={'environment': {'PEBBLE_VA_NOSLEEP': '0', 'PEBBLE_VA_SLEEPTIME': '3'}})
    two = Site(tmp_path / 'other', 'a.test b.test', one.pebble.directory, server_kit.free_port(), state=one.state,
               mounts=[(one.pebble.certificate, TRUSTED)])
    try:
        first, second = one.wait_for_certificate(seconds=60), two.wait_for_certificate(seconds=60)
        assert first.serial_number == second.serial_number
        requests = sum(site.server.errors().count('requesting a certificate') for site in (one, two))
        assert requests == 1
    finally:
        two.server.stop()


def test_reload_with_another_name_requests_a_certificate(start_site):
    site = start_site(names='a.test')
    before = site.wait_for_certificate()
    text = pathlib.Path(site.server.config_path).read_text(encoding='utf-8')
    pathlib.Path(site.server.config_path).write_text(text.replace('"a.test"', '"a.test c.test"'), encoding='utf-8')
    site.server.process.send_signal(signal.SIGHUP)
    site.wait_for_log(' runs, ', 2)
    after = site.wait_for_certificate(but=before.serial_number)
    assert names_of(after) == {'a.test', 'c.test'}
    log = site.server.output()
    assert log.count('generated a self-signed certificate') == 1, 'the first certificate is served until the second arrives'


def test_only_tokens_are_served(start_site):
    site = start_site()
    site.wait_for_certificate()
    (site.state / 'challenges' / '.hidden').write_text('secret', encoding='ascii')
    (site.state / 'challenges' / 'wrong').write_text('another.text', encoding='ascii')
    (site.state / 'challenges' / 'token').write_text('token.thumbprint', encoding='ascii')
    (site.state / 'challenges' / 'link').symlink_to(site.certificate_file())
    for path in site.state.glob('challenges/*'):
        if not path.is_symlink():
            path.chmod(0o644)
    base = '/.well-known/acme-challenge/'
    for name in ('.hidden', '..%2fcertificates%2fa.test.pem', 'a' * 200, 'a%00', 'token/', 'token.', '', '%2e%2e/lock', 'tok%20en'):
        with contextlib.closing(http1.connect(site.http_port)) as client:
            response = client.get(base + name, Host='a.test')
        assert response.status in (301, 400) and b'secret' not in response.body, name
    with contextlib.closing(http1.connect(site.http_port)) as client:
        for name in ('wrong', 'link'):
            response = client.get(base + name, Host='a.test')
            assert response.status == 500 and b'PRIVATE' not in response.body, name
        response = client.get(base + 'token', Host='a.test')
        assert (response.status, response.body) == (200, b'token.thumbprint')
        assert client.fetch('POST', base + 'token', [('Host', 'a.test')]).status == 301
    assert 'cannot read the challenge "wrong"' in site.server.errors()


def test_hook_refuses_what_is_no_challenge(tmp_path):
    folder = tmp_path / 'challenges'
    folder.mkdir()
    good = ('begin', 'http-01', 'a.test', 'token', 'token.thumb')

    def hook(*arguments, name='acme-hook', environment=None):
        done = subprocess.run([server_kit.SLUICE, name, *arguments], check=False, capture_output=True, text=True,
                              env={'SLUICE_ACME_CHALLENGES': str(folder)} if environment is None else environment)
        return done.returncode, done.stderr
    for bad in (good[:4], (*good, 'more'), ('start', *good[1:]), ('begin', 'dns-01', *good[2:]),
                (*good[:3], '../token', '../token.thumb'), (*good[:3], 'a/b', 'a/b.thumb'), (*good[:4], 'other.thumb'),
                (*good[:4], 'token.'), (*good[:4], 'token.thu mb'), (*good[:3], 'x' * 129, 'x' * 129 + '.thumb')):
        assert hook(*bad)[0] == 1 and not list(folder.iterdir()), bad
    assert hook(*good, environment={})[0] == 1
    assert hook(*good) == (0, '')
    assert (folder / 'token').read_text(encoding='ascii') == 'token.thumb'
    assert stat.S_IMODE((folder / 'token').stat().st_mode) == 0o644
    for method in ('done', 'failed'):
        assert hook(method, *good[1:]) == (0, '')
        assert not list(folder.iterdir())
    assert hook(*good, environment={'SLUICE_ACME_CHALLENGES': str(tmp_path / 'absent')})[0] == 1


def test_servers_without_acme_leave_the_path_alone(tmp_path):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'server', [
        {'listen': f'127.0.0.1:{port}', 'location': {'/.well-known/acme-challenge/': {'return': '200 mine'}}}]).start([port])
    try:
        with contextlib.closing(http1.connect(port)) as client:
            assert client.get('/.well-known/acme-challenge/token', Host='a.test').body == b'mine'
    finally:
        server.stop()


def test_state_folder_that_cannot_be_created(tmp_path):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'server', [
        {'listen': f'127.0.0.1:{port} ssl', 'server_name': 'a.test', 'ssl_certificate': 'acme', 'return': '200 ok'}],
        http={'acme': {'state': '/proc/none/acme'}})
    with pytest.raises(RuntimeError, match='the state folder of acme "/proc/none/acme" cannot be created'):
        server.start([port])
    server.process = None



@pytest.mark.parametrize('blocked', [False, True])
def test_status_page_and_doctor(start_site, blocked):
    port = server_kit.free_port()
    site = start_site(names='a.test', status_port=port, authority={'domainBlocklist': ['a.test']} if blocked else {}, retry='60s')
    if blocked:
        site.wait_for_log('next attempt in ')
        until, days, failures, cause = 0, 'self-signed until the first one arrives', 1, 'policy'
    else:
        until, days, failures, cause = int(site.wait_for_certificate().not_valid_after_utc.timestamp()), ' days left', 0, ''
    done = subprocess.run([server_kit.SLUICE, 'doctor', '--json', '-c', site.server.config_path], check=False, capture_output=True, text=True)
    finding = [item for item in json.loads(done.stdout)['findings'] if item['name'] == 'acme']
    assert len(finding) == 1 and finding[0]['text'].startswith('acme: a.test: '), done
    assert finding[0]['verdict'] == ('note' if blocked else 'good')
    assert ('no certificate yet' if blocked else ' days left; renewal in ') in finding[0]['text']
    assert cause in finding[0]['advice'] and ('1 failed attempts' in finding[0]['advice']) == blocked
    with contextlib.closing(http1.connect(port)) as client:
        wait_for(lambda: json.loads(client.get('/?format=json').body)['acme'][0]['next_attempt_seconds'], 'the state is reported')
        row = json.loads(client.get('/?format=json').body)['acme'][0]
        assert (row['name'], row['expires_seconds'], row['failures']) == ('a.test', until, failures)
        assert cause in row['error'] and bool(row['error']) == blocked
        assert row['next_attempt_seconds'] > time.time()
        text = client.get('/').body.decode()
        assert f'sluice_acme_expires_seconds{{name="a.test"}} {until}\n' in text
        assert f'sluice_acme_failures{{name="a.test"}} {failures}\n' in text
        page = client.get('/?format=html').body.decode()
        assert 'Certificates by ACME' in page and days in page and cause in page


def test_doctor_with_an_invalid_configuration(tmp_path):
    path = tmp_path / 'sluice.yaml'
    path.write_text('http: {acme: {email: admin}, server: {listen: 8080}}', encoding='ascii')
    done = subprocess.run([server_kit.SLUICE, 'doctor', '-c', str(path)], check=False, capture_output=True, text=True)
    assert done.returncode == 1 and 'is not an email address' in done.stderr and done.stdout == ''
