"""`sluice serve --acme NAME`: one command serves a directory with a certificate by ACME, by the challenge tls-alpn-01 at one port."""
import os
import signal
import socket
import ssl
import subprocess

import pytest

from kit import server as server_kit
from kit.acme import TRUSTED, Pebble, namespace
from kit.lifetime import wait_for
from kit.programs import program


def peer(port, name='a.test'):
    """The issuer of the certificate that the server sends, and what it answers."""
    from cryptography import x509
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(('127.0.0.1', port), timeout=10) as plain, context.wrap_socket(plain, server_hostname=name) as client:
        issuer = x509.load_der_x509_certificate(client.getpeercert(binary_form=True)).issuer.rfc4514_string()
        client.sendall(f'GET /one.txt HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n'.encode())
        return issuer, b''.join(iter(lambda: client.recv(4096), b''))


def own(state):
    """A mount that keeps the state folder of root out of the machine."""
    return (16 << 20, '/var/lib') if os.geteuid() == 0 else (state, state)


def test_directory_with_a_certificate(tmp_path):
    program('uacme'), program('pebble')
    site, state = tmp_path / 'site', tmp_path / 'state'
    for folder in (tmp_path, site, state):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    (site / 'one.txt').write_text('one\n', encoding='ascii')
    port = server_kit.free_port()
    pebble = Pebble(tmp_path / 'authority', server_kit.free_port(), tls_port=port)
    process = None
    try:
        with open(tmp_path / 'output', 'w', encoding='utf-8') as output:
            process = subprocess.Popen([*namespace((pebble.certificate, TRUSTED), own(state)), server_kit.SLUICE, 'serve', str(site), '--acme', 'A.test',
                                        '--acme-directory', pebble.directory, '--port', str(port)], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, env={**os.environ, 'XDG_STATE_HOME': str(state)})

        def text():
            return (tmp_path / 'output').read_text(encoding='utf-8')

        def issued():
            try:
                issuer, response = peer(port)
            except OSError:
                return None
            return response if 'Pebble' in issuer else None
        response = wait_for(issued, 'a certificate', 60)
        assert response.endswith(b'one\n')
        assert f'https://A.test:{port}/, for which port 443 of the name must be forwarded' in text()
        assert 'accepts the terms of service of the authority' in text()
        assert '"a.test" has a new certificate' in text()
        process.send_signal(signal.SIGINT)
        assert process.wait(20 * server_kit.PATIENCE) == 0
    finally:
        pebble.stop()
        if process and process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.parametrize('words, fault', [
    (('--acme', 'localhost'), 'a public DNS name is required'),
    (('--acme', '*.example.org'), 'a public DNS name is required'),
    (('--acme', 'a.test', '--cert', '/etc/passwd'), '--acme NAME and --cert FILE exclude each other'),
    (('--acme-directory', 'https://ca.test/dir'), '--acme-directory URL requires --acme NAME'),
    (('--acme', 'a.test', '--acme-directory', 'http://ca.test/dir'), 'is not an https:// URL'),
    (('--acme',), 'option "--acme" requires a DNS name'),
])
def test_invalid_words(tmp_path, words, fault):
    done = subprocess.run([*namespace(own(tmp_path)), server_kit.SLUICE, 'serve', str(tmp_path), '--port', str(server_kit.free_port()), *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False, env={**os.environ, 'XDG_STATE_HOME': str(tmp_path)})
    assert done.returncode == 1 and fault in done.stderr, done


def test_missing_client_is_named_with_its_package(tmp_path):
    without = tmp_path / 'bin'
    without.mkdir()
    for name in ('sh', 'mount'):
        (without / name).symlink_to(program(name))
    port = server_kit.free_port()
    with open(tmp_path / 'output', 'w', encoding='utf-8') as output:
        process = subprocess.Popen([*namespace(own(tmp_path)), server_kit.SLUICE, 'serve', str(tmp_path), '--acme', 'a.test', '--acme-directory',
                                    'https://localhost:1/dir', '--port', str(port)], stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, env={**os.environ, 'XDG_STATE_HOME': str(tmp_path), 'PATH': str(without)})
    try:
        wait_for(lambda: 'the client uacme is not installed: apt-get install uacme' in (tmp_path / 'output').read_text(encoding='utf-8'), 'the package')
        process.send_signal(signal.SIGINT)
        assert process.wait(20 * server_kit.PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


def test_port_in_use(tmp_path):
    with socket.create_server(('0.0.0.0', 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([server_kit.SLUICE, 'serve', str(tmp_path), '--acme', 'a.test', '--port', str(port)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and f'port {port} is in use or not permitted; --acme needs the port 443 of "a.test"' in done.stderr
