"""The challenge tls-alpn-01 (RFC 8737): pebble validates names by TLS handshakes with the server, which presents the certificate of a
pending challenge to a ClientHello that offers acme-tls/1 alone. Without a pending challenge the protocol is not supported."""
import contextlib
import re
import socket
import ssl
import subprocess

import pytest

from kit import http1, server as server_kit
from kit.acme import names_of, site_starter
from kit.lifetime import wait_for
from kit.programs import program

SLOW = {'environment': {'PEBBLE_VA_NOSLEEP': '0', 'PEBBLE_VA_SLEEPTIME': '60'}}     # the challenge stays pending
NO_PROTOCOL = 'no application protocol'
DIGEST = 'LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ'


@pytest.fixture
def start_site(tmp_path):
    """start_site(**settings of Site, authority=settings of Pebble) -> a site with its authority."""
    program('uacme'), program('pebble')
    with site_starter(tmp_path) as starter:
        yield lambda **settings: starter(**{'challenge': 'tls-alpn-01', **settings})


def handshake(port, *options):
    """What `openssl s_client` prints after a handshake; it sends a request and nothing else."""
    done = subprocess.run([program('openssl'), 's_client', '-connect', f'127.0.0.1:{port}', '-ign_eof', *options], check=False,
                          input='GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n', capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def ask(port, name, protocols='acme-tls/1', *options):
    return handshake(port, '-servername', name, '-alpn', protocols, *options)


def text_of(output):
    """The certificate in the output of s_client, as openssl x509 describes it."""
    pem = re.search('-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----', output, re.DOTALL)
    return subprocess.run([program('openssl'), 'x509', '-noout', '-text'], check=True, input=pem[0], capture_output=True, text=True).stdout


@pytest.mark.parametrize('loop', ['epoll', 'io_uring'])
def test_certificate_by_tls_alpn(start_site, loop):
    site = start_site(loop=loop)
    certificate = site.wait_for_certificate()
    assert names_of(certificate) == {'a.test', 'b.test'}
    assert site.server.errors().count('the challenge tls-alpn-01 for') >= 2, 'each name was validated by a handshake'
    assert not list((site.state / 'challenges').iterdir()), 'the hook removes challenges'
    # Nothing is renewed: a file of a former challenge is not read.
    (site.state / 'challenges' / 'a.test.').write_text(f'a.test {DIGEST}\n', encoding='ascii')
    wait_for(lambda: NO_PROTOCOL in ask(site.port, 'a.test'), 'the challenge is over')
    assert 'HTTP/1.1 200' in handshake(site.port, '-servername', 'a.test')


def test_certificate_of_an_address(start_site):
    site = start_site(names='127.0.0.1')
    certificate = wait_for(lambda: site.certificate_file('127.0.0.1').exists() and site.certificate_file('127.0.0.1'), 'a certificate', 60)
    done = subprocess.run([program('openssl'), 'x509', '-in', str(certificate), '-noout', '-text'], check=True, capture_output=True, text=True)
    assert 'IP Address:127.0.0.1' in done.stdout
    assert '"1.0.0.127.in-addr.arpa" was answered' in site.server.errors()


@pytest.mark.parametrize('loop', ['epoll', 'io_uring'])
@pytest.mark.parametrize('version', ['-tls1_2', '-tls1_3'])
def test_pending_challenge(start_site, loop, version):
    site = start_site(names='a.test', authority=SLOW, loop=loop)
    pending = wait_for(lambda: list((site.state / 'challenges').glob('[!.]*')), 'a pending challenge')[0]
    assert pending.name == 'a.test.'
    output = ask(site.port, 'a.test', 'acme-tls/1', version)
    assert 'ALPN protocol: acme-tls/1' in output and 'HTTP/1.1' not in output, 'no HTTP on this connection'
    text = text_of(output)
    assert re.search(r'(1\.3\.6\.1\.5\.5\.7\.1\.31|(?i:acme ?identifier)): critical', text), text
    assert re.search(r'Subject Alternative Name: *\n *DNS:a\.test\n', text), text
    # Another name has no challenge; other protocols, also beside this one, are those of the server.
    assert NO_PROTOCOL in ask(site.port, 'b.test', 'acme-tls/1', version)
    assert NO_PROTOCOL in handshake(site.port, '-noservername', '-alpn', 'acme-tls/1', version)
    assert NO_PROTOCOL in ask(site.port, 'a.test', 'acme-tls/1,acme-tls/1', version)
    for protocols in ('http/1.1', 'acme-tls/1,http/1.1', 'http/1.1,acme-tls/1'):
        output = ask(site.port, 'a.test', protocols, version)
        assert 'ALPN protocol: http/1.1' in output and 'HTTP/1.1 200' in output, protocols
        assert 'sluice self-signed' in output
    # The challenge is withdrawn.
    pending.unlink()
    assert NO_PROTOCOL in ask(site.port, 'a.test', 'acme-tls/1', version)
    assert 'no challenge tls-alpn-01 is pending for the name that the client sent' in site.server.errors()


def test_the_server_closes_after_the_handshake(start_site):
    site = start_site(names='a.test', authority=SLOW)
    wait_for(lambda: list((site.state / 'challenges').glob('[!.]*')), 'a pending challenge')
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(['acme-tls/1'])
    with socket.create_connection(('127.0.0.1', site.port), timeout=30) as plain, context.wrap_socket(plain, server_hostname='a.test') as client:
        assert client.selected_alpn_protocol() == 'acme-tls/1'
        assert client.recv(100) == b'', 'close_notify'
    assert site.peer() is not None, 'the worker continues'


def test_files_that_are_no_challenges(start_site):
    site = start_site(names='a.test', authority=SLOW)
    pending = wait_for(lambda: list((site.state / 'challenges').glob('[!.]*')), 'a pending challenge')[0]
    good = pending.read_text(encoding='ascii')
    for bad in ('', 'a.test\n', good.replace('a.test', 'b.test'), good * 2, 'x' * 100000):
        pending.write_text(bad, encoding='ascii')
        assert NO_PROTOCOL in ask(site.port, 'a.test'), bad[:50]
    pending.write_text(good, encoding='ascii')
    for name in ('../a.test', 'a.test/', '%2e%2e', 'x' * 63 + '.test', 'a.test.'):
        assert 'ALPN protocol: acme-tls/1' not in ask(site.port, name), name
    assert 'ALPN protocol: acme-tls/1' in ask(site.port, 'A.TEST')
    with contextlib.closing(http1.connect(site.http_port)) as client:
        assert client.get('/.well-known/acme-challenge/a.test.', Host='a.test').status == 301, 'it is not served by HTTP'


def test_servers_with_other_challenges_do_not_know_the_protocol(start_site):
    site = start_site(challenge='http-01', names='a.test', authority=SLOW)
    wait_for(lambda: list((site.state / 'challenges').glob('[!.]*')), 'a pending challenge')
    (site.state / 'challenges' / 'a.test.').write_text(f'a.test {DIGEST}\n', encoding='ascii')
    assert NO_PROTOCOL in ask(site.port, 'a.test')


def test_stream_servers_answer(tmp_path):
    program('uacme'), program('pebble')
    with site_starter(tmp_path) as starter:
        port = server_kit.free_port()
        site = starter(names='a.test', authority=SLOW, challenge='tls-alpn-01', main={'stream': {'server': {
            'listen': f'127.0.0.1:{port} ssl', 'ssl_certificate': 'self-signed', 'return': 'stream'}}})
        wait_for(lambda: list((site.state / 'challenges').glob('[!.]*')), 'a pending challenge')
        output = ask(port, 'a.test')
        assert 'ALPN protocol: acme-tls/1' in output and 'stream' not in output
        assert NO_PROTOCOL in ask(port, 'b.test')
        assert 'stream' in handshake(port, '-servername', 'a.test')


def test_hook_stores_challenges_of_the_configured_type(tmp_path):
    folder = tmp_path / 'challenges'
    folder.mkdir()

    def hook(*arguments, kind='tls-alpn-01'):
        return subprocess.run([server_kit.SLUICE, 'acme-hook', *arguments], check=False, capture_output=True, text=True,
                              env={'SLUICE_ACME_CHALLENGES': str(folder), 'SLUICE_ACME_CHALLENGE_TYPE': kind})
    good = ('begin', 'tls-alpn-01', 'a.test', 'token', DIGEST)
    for bad in (('begin', 'http-01', 'a.test', 'token', 'token.thumb'), (*good[:2], '../a', 'token', DIGEST),
                (*good[:2], 'a/b', 'token', DIGEST), (*good[:4], DIGEST + '='), (*good[:4], 'token.thumb'), (*good[:2], '', *good[3:])):
        assert hook(*bad).returncode == 1 and not list(folder.iterdir()), bad
    assert 'the challenge for "../a" failed' in hook(*good[:2], '../a', *good[3:]).stderr
    assert hook(*good, kind='http-01').returncode == 1
    assert hook(*good).returncode == 0
    assert (folder / 'a.test.').read_text(encoding='ascii') == f'a.test {DIGEST}\n'
    assert hook('done', *good[1:]).returncode == 0 and not list(folder.iterdir())
