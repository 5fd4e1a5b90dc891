"""ssl_aead: clients that share no code with the engines decrypt the records of each; the log and the status page name the engine."""
import os
import re
import signal
import ssl
import subprocess

import pytest
from kit import http1, server as server_kit, tls12, tls13
from kit.lifetime import wait_for

CIPHERS = ['AES-128-GCM', 'AES-256-GCM', 'ChaCha20-Poly1305']
NAMES = ('one.txt', 'empty.txt', '1024.bin', '16384.bin', '65535.bin', '65537.bin', '1048576.bin')
LINE = 'TLS records are encrypted in user space: '


def check(folder, **main):
    """Output of -t for a configuration with these directives of the main scope."""
    server = server_kit.Server(folder, [{'listen': f'127.0.0.1:{server_kit.free_port()}'}], main=main)
    ran = subprocess.run([server_kit.SLUICE, '-t', '-c', server.config_path], capture_output=True, text=True, timeout=60, check=False)
    return ran.returncode, ran.stderr


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    """True if ipsec-mb is part of this build."""
    status, output = check(tmp_path_factory.mktemp('built'), ssl_aead='ipsec-mb')
    assert status == 0 or 'this build has no ipsec-mb' in output
    return status == 0


@pytest.fixture(params=['openssl', 'ipsec-mb'])
def engine(request, built):
    if request.param == 'ipsec-mb' and not built:
        pytest.skip('this build has no ipsec-mb')
    return request.param


@pytest.fixture
def served(launch, engine):
    return launch('epoll', 'user', main={'ssl_aead': engine}, server={'location': {'= /status': {'status': 'prometheus'}}})


def file_bytes(served, name):
    with open(os.path.join(served.root, name), 'rb') as stream:
        return stream.read()


def chosen(log):
    """The last line about the engines: cipher -> engine."""
    line = [line for line in log.splitlines() if LINE in line][-1]
    return dict(part.split(' by ') for part in line.split(LINE)[1].split(', '))


def expected(log, engine):
    """The engine of each cipher for this setting; on a processor without AES-NI the log has a warning, and OpenSSL replaces ipsec-mb."""
    gcm = 'openssl' if 'ipsec-mb cannot run here' in log else engine
    return {'AES-128-GCM': gcm, 'AES-256-GCM': gcm, 'ChaCha20-Poly1305': 'openssl'}


def test_log_and_status_page_name_the_engine(served, engine):
    log = served.server.errors()
    assert chosen(log) == expected(log, engine)
    page = served.connect().get('/status').body.decode()
    shown = dict(re.findall(r'^sluice_aead_ipsec_mb\{cipher="(.*)"\} ([01])$', page, re.M))
    assert shown == {cipher: str(int(used == 'ipsec-mb')) for cipher, used in chosen(log).items()}


@pytest.mark.parametrize('suite', list(tls13.SUITES))
def test_tls13_records_are_decryptable(served, suite):
    client = served.connect(own=True, suites=[suite])
    assert client.stream.suite_name == suite
    for name in NAMES:
        assert client.get('/' + name).body == file_bytes(served, name)
    numbers = [record.sequence for record in client.stream.records]
    assert numbers == list(range(len(numbers)))
    assert client.get('/one.txt', Connection='close').closes
    assert client.at_end() and client.stream.closed, 'close_notify, then the end'


@pytest.mark.parametrize('cipher', tls12.SUITES)
def test_tls12_records_are_decryptable(served, cipher):
    context = http1.tls_context(maximum_version=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers(cipher)
    client = served.connect(context=context)
    assert client.stream.cipher()[0] == cipher
    for name in NAMES:
        assert client.get('/' + name).body == file_bytes(served, name)
    assert served.server.access_for('/1048576.bin')[-1]['tls_path'] == 'user'
    assert client.get('/one.txt', Connection='close').closes and client.at_end()


def test_explicit_nonces_differ(served):
    tap = tls12.RecordingConnection(served.port, timeout=20 * server_kit.PATIENCE)
    client = http1.Client(tap)
    for name in ('one.txt', '1048576.bin', 'one.txt'):
        assert client.get('/' + name).body == file_bytes(served, name)
    nonces = tap.explicit_nonces()
    assert len(nonces) > 64 and len(set(nonces)) == len(nonces)


def test_auto_is_the_default(launch):
    log = launch('epoll', 'user').server.errors()
    assert log.count(LINE) == 1
    assert set(chosen(log)) == set(CIPHERS) and set(chosen(log).values()) <= {'openssl', 'ipsec-mb'}
    assert chosen(log)['ChaCha20-Poly1305'] == 'openssl'


def test_reload_applies_a_changed_ssl_aead(certificate, tmp_path, site, built):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{port} ssl', 'root': site, 'ssl_certificate': certificate[0],
                                           'ssl_certificate_key': certificate[1]}], main={'ssl_aead': 'openssl'})
    server.start([port])
    try:
        wait_for(lambda: server_kit.RUNS in server.errors(), 'the first generation runs')
        for count, engine in enumerate(['openssl', 'ipsec-mb' if built else 'auto', 'openssl']):
            server.tree['ssl_aead'] = engine
            server.write_configuration()
            before = len(server.errors())
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda position=before: server_kit.RUNS in server.errors()[position:], 'the new generation runs')
            log = server.errors()
            assert log.count(LINE) == 1 + count, 'an unchanged setting is not examined again'
            if engine != 'auto':
                assert chosen(log) == expected(log, engine)
            assert http1.connect(port, 'user').get('/one.txt').body == b'one\n'
    finally:
        server.stop()


def test_plain_http_selects_no_engine(tmp_path, site):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{port}', 'root': site}])
    server.start([port])
    try:
        wait_for(lambda: server_kit.RUNS in server.errors(), 'it runs')
        assert LINE not in server.errors()
    finally:
        server.stop()


def test_engine_left_out_of_the_build_is_rejected(tmp_path, built):
    status, output = check(tmp_path, ssl_aead='ipsec-mb')
    assert (status == 0) == built
    if not built:
        assert '-Dipsec_mb=enabled' in output and 'ssl_aead' in output
    status, output = check(tmp_path / 'other', ssl_aead='nettle')
    assert status == 1 and 'ssl_aead' in output
