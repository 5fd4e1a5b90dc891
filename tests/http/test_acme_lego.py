"""Certificates by ACME with the client lego: http-01 through the workers, and dns-01 with a provider, for which lego's `exec` calls a
script that publishes TXT records at the DNS server of pebble."""
import os
import signal
import stat
import subprocess

import pytest

from kit import server as server_kit
from kit.acme import names_of, site_starter
from kit.lifetime import wait_for
from kit.programs import program

SECRET = 'c0ffee-credential'
SCRIPT = '''#!/bin/sh -e
echo "$1 $2 ${{CREDENTIAL:-none}}" >>{calls}
case $1 in present) path=set-txt;; *) path=clear-txt;; esac
exec {curl} -fsS -d "{{\\"host\\": \\"$2\\", \\"value\\": \\"$3\\"}}" http://127.0.0.1:{management}/$path
'''


def request_another(site, name='a.test'):
    """Removes the certificate file, and reloads: otherwise the renewal process finds out within a minute."""
    site.certificate_file(name).unlink()
    site.server.process.send_signal(signal.SIGHUP)


@pytest.fixture
def start_site(tmp_path):
    """start_site(**settings of Site, authority=settings of Pebble) -> a site with its authority."""
    program('lego'), program('pebble')
    with site_starter(tmp_path) as starter:
        yield lambda **settings: starter(**{'client': 'lego', **settings})


def publisher(pebble, folder, script=SCRIPT):
    """Settings of dns-01 with a script that publishes records at the authority's DNS server. Its calls are in folder/calls."""
    folder.chmod(0o755)
    path = folder / 'publish'
    path.write_text(script.format(calls=folder / 'calls', curl=program('curl'), management=pebble.management), encoding='ascii')
    path.chmod(0o755)
    (folder / 'calls').touch()
    (folder / 'calls').chmod(0o666)     # the client may run as another user
    variables = folder / 'variables'
    variables.write_text(f'# of the test\nEXEC_PATH={path}\nEXEC_POLLING_INTERVAL=1\nEXEC_SEQUENCE_INTERVAL=1\nCREDENTIAL="{SECRET}"\n', encoding='ascii')
    variables.chmod(0o600)
    return {'challenge': 'dns-01', 'dns': 'exec', 'dns_resolvers': f'127.0.0.1:{pebble.names.port}', 'dns_propagation': 'off',
            'environment': str(variables)}


def test_certificate_by_http(start_site):
    site = start_site()
    certificate = site.wait_for_certificate()
    assert names_of(certificate) == {'a.test', 'b.test'}
    assert not list((site.state / 'challenges').iterdir()), 'lego removes challenges'
    for path in site.state.rglob('*'):
        if path.is_file() and not path.is_symlink() and b'PRIVATE KEY' in path.read_bytes():
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert not [path for path in site.state.rglob('*.key') if path.parent.name == 'certificates'], 'the client keeps no copy of the key'
    # The same account requests the next one, with another key.
    accounts = sorted(site.state.rglob('account.json'))
    request_another(site)
    after = site.wait_for_certificate(but=certificate.serial_number)
    assert after.public_key() != certificate.public_key()
    assert sorted(site.state.rglob('account.json')) == accounts and len(accounts) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can start the client as another user')
def test_workers_read_the_challenges_of_another_user(start_site):
    site = start_site(user='daemon')
    site.wait_for_certificate()
    assert site.certificate_file().stat().st_uid != 0


def test_wildcard_by_dns(start_site, tmp_path):
    site = start_site(names='*.a.test a.test', client_settings=lambda pebble: publisher(pebble, tmp_path))
    certificate = site.wait_for_certificate('x.a.test', seconds=90)
    assert names_of(certificate) == {'*.a.test', 'a.test'}
    assert site.certificate_file('_.a.test').exists()
    calls = (tmp_path / 'calls').read_text(encoding='ascii').splitlines()
    assert calls.count(f'present _acme-challenge.a.test. {SECRET}') == 2 and len([call for call in calls if call.startswith('cleanup ')]) == 2
    log = site.server.output() + site.server.errors()
    assert '"*.a.test" has a new certificate' in log
    assert SECRET not in log
    done = subprocess.run([server_kit.SLUICE, '-T', '-c', site.server.config_path], check=True, capture_output=True, text=True)
    assert SECRET not in done.stdout + done.stderr
    # A restart finds the certificate under its file name.
    site.server.stop()
    site.server.start([site.port, site.http_port])
    assert site.peer('y.a.test').serial_number == certificate.serial_number


def test_failed_provider_is_reported(start_site, tmp_path):
    site = start_site(names='*.a.test', retry='60s', client_settings=lambda pebble: publisher(pebble, tmp_path, '#!/bin/sh\necho refused >&2\nexit 3\n'))
    errors = site.wait_for_log('no certificate for "*.a.test"') and site.server.errors()
    assert 'next attempt in ' in errors and SECRET not in errors
    assert 'Pebble' not in site.issuer('x.a.test')


def test_deleted_account_is_registered_again(start_site):
    site = start_site(retry='1s')
    before = site.wait_for_certificate().serial_number
    site.pebble.authority.stop()
    site.pebble.start()     # it has forgotten all accounts
    request_another(site)
    site.wait_for_log('accountDoesNotExist')
    site.wait_for_certificate(but=before)


@pytest.mark.parametrize('client', ['lego', 'uacme'])
def test_external_account(start_site, client):
    program(client)
    key = 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W'
    site = start_site(client=client, eab_key_id='kid-1', eab_key=key,
                      authority={'externalAccountBindingRequired': True, 'externalAccountMACKeys': {'kid-1': key}})
    site.wait_for_certificate()


def test_missing_client_is_logged(tmp_path):
    program('pebble')
    without = tmp_path / 'bin'
    without.mkdir()
    for name in ('sh', 'mount'):
        (without / name).symlink_to(program(name))
    with site_starter(tmp_path) as starter:
        site = starter(client='lego', environment={'PATH': str(without)}, retry='60s')
        site.wait_for_log('the client lego is not installed: apt-get install lego')
        assert 'Pebble' not in site.issuer()


def test_environment_that_others_may_read(start_site, tmp_path):
    site = start_site(names='*.a.test', client_settings=lambda pebble: publisher(pebble, tmp_path))
    before = site.wait_for_certificate('x.a.test', seconds=90).serial_number

    def check():
        done = subprocess.run([server_kit.SLUICE, '-t', '-c', site.server.config_path], check=False, capture_output=True, text=True)
        return done.returncode, done.stderr
    variables = tmp_path / 'variables'
    assert check()[0] == 0
    variables.chmod(0o640)
    assert check()[0] == 1 and 'have access to it' in check()[1] and 'chmod 600' in check()[1]
    variables.unlink()
    assert check()[0] == 1 and 'is not a file' in check()[1]
    # Lines are checked by the process that runs the client.
    variables.write_text(f'export CREDENTIAL={SECRET}\n', encoding='ascii')
    variables.chmod(0o600)
    assert check()[0] == 0
    site.certificate_file('_.a.test').unlink()
    site.server.stop()
    site.server.start([site.port, site.http_port])
    site.wait_for_log(f'line 1 of "{variables}" is not NAME=VALUE')
    assert SECRET not in site.server.output() + site.server.errors()
    assert wait_for(lambda: site.peer('x.a.test').serial_number != before, 'a generated certificate is served')
