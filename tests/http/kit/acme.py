"""An ACME authority for tests: pebble with the DNS server of its package, on loopback addresses. Its certificate is trusted only in
the mount namespace in which the server under test runs, because the client uacme reads the system's list."""
import contextlib
import json
import os
import pathlib
import ssl
import subprocess
import urllib.request

import pytest

from kit import server as server_kit, site as site_kit
from kit.lifetime import wait_for
from kit.programs import Program, program

TRUSTED = '/etc/ssl/certs/ca-certificates.crt'


def namespace(*mounts):
    """A command prefix that runs a program with these (source, target) mounts: a file or folder, or tmpfs with its size."""
    unshare = [program('unshare'), '-m'] if os.geteuid() == 0 else [program('unshare'), '--map-current-user', '--keep-caps', '-m']
    script = ''.join(f'mount -t tmpfs -o size={source},mode=755 acme {target}\n' if str(source).isdigit()
                     else f'mount --bind {source} {target}\n' for source, target in mounts)
    prefix = [*unshare, 'sh', '-ec', script + 'exec "$@"', 'sh']
    if subprocess.run([*prefix, 'true'], check=False, capture_output=True).returncode != 0:
        pytest.skip('this user may not create mount namespaces')
    return prefix


def untrusting():
    """A context for clients that accepts each certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Pebble:
    """A running authority. `http_port` is the port at which it validates, `tls_port` that of tls-alpn-01; `executable` that of a pebble of
    another version; `settings` are keys of its configuration."""

    def __init__(self, folder, http_port, environment=None, tls_port=None, executable=None, **settings):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.port, self.http_port = server_kit.free_port(), http_port
        self.certificate, key = site_kit.make_certificate(str(self.folder), name='authority')
        self.settings = {'listenAddress': f'127.0.0.1:{self.port}', 'managementListenAddress': f'127.0.0.1:{server_kit.free_port()}',
                         'certificate': self.certificate, 'privateKey': key, 'httpPort': http_port,
                         'tlsPort': tls_port or server_kit.free_port(), 'externalAccountBindingRequired': False, **settings}
        dns, self.management = server_kit.free_port(), server_kit.free_port()
        # It listens on the DNS port by UDP and TCP.
        self.names = Program([program('pebble-challtestsrv'), '-defaultIPv4', '127.0.0.1', '-defaultIPv6', '', '-dns01',
                              f'127.0.0.1:{dns}', '-http01', '', '-https01', '', '-tlsalpn01', '', '-management',
                              f'127.0.0.1:{self.management}'], port=dns)
        self.environment, self.executable = environment or {}, executable
        self.authority = None
        self.start()

    def start(self):
        configuration = self.folder / 'pebble.json'
        configuration.write_text(json.dumps({'pebble': self.settings}), encoding='ascii')
        environment = {**os.environ, 'PEBBLE_VA_NOSLEEP': '1', 'PEBBLE_WFE_NONCEREJECT': '0', **self.environment}
        self.authority = Program([self.executable or program('pebble'), '-config', str(configuration), '-dnsserver', f'127.0.0.1:{self.names.port}'],
                                 port=self.port, env=environment)

    @property
    def directory(self):
        return f'https://localhost:{self.port}/dir'

    def set_renewal_info(self, certificate, text):
        """Makes `text` the answer to questions for the window of renewal of this certificate; pebble from version 2.8 on."""
        from cryptography.hazmat.primitives import serialization
        pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
        request = urllib.request.Request(f'https://{self.settings["managementListenAddress"]}/set-renewal-info/', method='POST',
                                         data=json.dumps({'Certificate': pem, 'ARIResponse': text}).encode())
        with urllib.request.urlopen(request, context=untrusting()) as response:
            assert response.status == 200

    def stop(self):
        self.authority.stop()
        self.names.stop()


class Site:
    """A server that obtains certificates: one for `names` and one for each of `more`, and the challenge's port with a redirect to https."""

    def __init__(self, folder, names, directory, http_port, state=None, mounts=(), variables=None, more=(), loop='epoll',
                 status_port=None, port=None, main=None, **acme):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.folder.chmod(0o755)
        self.port, self.status_port = port or server_kit.free_port(), status_port
        self.state = pathlib.Path(state or self.folder / 'state')
        self.server = server_kit.Server(self.folder / 'server', [
            {'listen': f'127.0.0.1:{http_port}', 'server_name': names, 'return': '301 https://$host$request_uri'},
            *({'listen': f'127.0.0.1:{self.port} ssl', 'server_name': each, 'ssl_certificate': 'acme', 'return': '200 ok'}
              for each in (names, *more)),
            *([{'listen': f'127.0.0.1:{status_port}', 'location': {'/': {'status': 'on'}}}] if status_port else [])], http={'acme': {'state': str(self.state), 'directory': directory, 'email': 'admin@example.org', 'retry': '1s', **acme}},
            loop=loop, main=main, command_prefix=namespace(*mounts), environment=variables)
        self.http_port = http_port
        self.server.start([self.port, http_port])

    def issuer(self, name='a.test'):
        return self.peer(name).issuer.rfc4514_string()

    def peer(self, name='a.test'):
        """The certificate that the server sends for a name."""
        from cryptography import x509
        import socket
        with socket.create_connection(('127.0.0.1', self.port), timeout=10) as plain, \
                untrusting().wrap_socket(plain, server_hostname=name) as client:
            return x509.load_der_x509_certificate(client.getpeercert(binary_form=True))

    def wait_for_certificate(self, name='a.test', but=None, seconds=40):
        """Waits for a certificate of the authority; with `but`, one with another serial number. Returns it."""
        def arrived():
            certificate = self.peer(name)
            return certificate if 'Pebble' in certificate.issuer.rfc4514_string() and certificate.serial_number != but else None
        return wait_for(arrived, lambda: f'no certificate arrives:\n{self.server.output()[-6000:]}', seconds, pause=0.1)  # a handshake each

    def wait_for_log(self, text, count=1, seconds=40):
        return wait_for(lambda: self.server.output().count(text) >= count or None,
                        lambda: f'no {text!r}:\n{self.server.output()[-6000:]}', seconds)

    def certificate_file(self, name='a.test'):
        return self.state / 'certificates' / f'{name}.pem'


@contextlib.contextmanager
def site_starter(tmp_path):
    """Yields starter(**settings of Site, authority=settings of Pebble) -> a site with its authority, which validates at its ports.
    client_settings(authority) -> more settings of Site."""
    opened = []

    def starter(names='a.test b.test', authority=None, environment=None, mounts=(), directory=None, client_settings=None, **settings):
        http_port, port = server_kit.free_port(), server_kit.free_port()
        pebble = Pebble(tmp_path / f'authority{len(opened)}', http_port, tls_port=port, **(authority or {}))
        site = Site(tmp_path / f'site{len(opened)}', names, directory(pebble) if directory else pebble.directory, http_port, port=port,
                    mounts=[(pebble.certificate, TRUSTED), *mounts], variables=environment,
                    **settings, **(client_settings(pebble) if client_settings else {}))
        site.pebble = pebble
        opened.append(site)
        return site
    try:
        yield starter
    finally:
        for site in opened:
            site.pebble.stop()
            site.server.stop()


def names_of(certificate):
    from cryptography import x509
    return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName))


