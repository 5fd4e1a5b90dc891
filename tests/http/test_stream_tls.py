"""proxy_ssl in stream: TLS to upstream servers, verification and server names."""
import contextlib
import hashlib
import socket
import ssl
import subprocess
import threading

import pytest
from kit import broken_records, server as server_kit, site as site_kit, tls13
from kit.authority import Authority
from kit.lifetime import wait_for
from test_stream import LARGE, UpstreamServer, read_all


@pytest.fixture(scope='module')
def inner(base):
    (base / 'stream-inner').mkdir()
    return site_kit.make_certificate(str(base / 'stream-inner'), name='inner', names=('localhost', 'inner.localhost'))


class TlsUpstream:
    """A TLS server that sends version, SNI, resumption, certificate and ALPN of its client, and the hash of all received bytes."""

    def __init__(self, certificate, verify=False):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*certificate)
        self.context.set_alpn_protocols(['something'])
        self.context.sni_callback = lambda stream, name, context: setattr(stream, 'server_name', name)
        if verify:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(certificate[0])
        self.over = threading.Event()
        self.upstreams, self.broken = UpstreamServer(self.serve), UpstreamServer(self.serve_broken_record)
        self.address = self.upstreams.address

    def serve(self, stream):
        with self.context.wrap_socket(stream, server_side=True) as sealed:
            shown = sealed.getpeercert(True) is not None
            sealed.sendall(f'{sealed.version()} {getattr(sealed, "server_name", None)} {sealed.session_reused} {shown} {sealed.selected_alpn_protocol()}\n'.encode())
            sealed.sendall(hashlib.sha256(read_all(sealed)).hexdigest().encode())

    def serve_broken_record(self, stream):
        with self.context.wrap_socket(stream, server_side=True) as sealed:
            broken_records.send(sealed)
            self.over.wait()


class Recorder:
    """An upstream server that records the end of its connections."""

    def __init__(self):
        self.begun, self.ended = threading.Event(), threading.Event()
        self.address = UpstreamServer(self.serve).address

    def serve(self, stream):
        stream.settimeout(None)
        self.begun.set()
        read_all(stream)
        self.ended.set()


def encrypted_key(folder, key):
    """An encrypted copy of the key, and the file with its password."""
    subprocess.run(['openssl', 'pkey', '-in', key, '-aes256', '-passout', 'pass:right one', '-out', f'{folder}/encrypted.key'], check=True)
    with open(f'{folder}/passwords', 'w', encoding='ascii') as stream:
        stream.write('wrong\nright one\n')
    return {'proxy_ssl_certificate_key': f'{folder}/encrypted.key', 'proxy_ssl_password_file': f'{folder}/passwords'}


@pytest.fixture(scope='module')
def revocation(base):
    """(settings with a revocation list, a server with a valid certificate, one with a revoked certificate)"""
    authority = Authority(str(base / 'stream-authority'))
    good, bad = authority.client('localhost'), authority.client('localhost-too')
    authority.revoke(bad)
    servers = TlsUpstream(good), TlsUpstream(bad)
    yield {'proxy_ssl': True, 'proxy_ssl_trusted_certificate': authority.certificate, 'proxy_ssl_crl': authority.crl()}, *servers
    for server in servers:
        server.over.set()
        server.upstreams.listener.close()


@pytest.fixture(scope='module', params=server_kit.os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split())
def sealing(request, new_directory, inner, revocation):
    folder = new_directory()
    plain, verifying, recorder = TlsUpstream(inner), TlsUpstream(inner, verify=True), Recorder()
    no_handshake = broken_records.NoHandshake()
    listed, valid, revoked = revocation
    trusting = {'proxy_ssl': True, 'proxy_ssl_trusted_certificate': inner[0], 'proxy_ssl_name': 'inner.localhost:443'}
    shows = {'proxy_ssl_certificate': inner[0], 'proxy_ssl_certificate_key': inner[1]}
    port = plain.address.split(':')[1]
    servers = {
        'good': {'proxy_pass': plain.address, **trusting},
        'variable': {'proxy_pass': f'$remote_addr:{port}', **trusting, 'proxy_ssl_name': 'inner.localhost'},
        'fresh': {'proxy_pass': plain.address, **trusting, 'proxy_ssl_session_reuse': 'off'},
        'nameless': {'proxy_pass': plain.address, **trusting, 'proxy_ssl_server_name': 'off'},
        'old': {'proxy_pass': plain.address, **trusting, 'proxy_ssl_protocols': 'TLSv1.2'},
        'host': {'proxy_pass': f'localhost:{port}', 'proxy_ssl': True, 'proxy_ssl_trusted_certificate': inner[0]},
        'misnamed': {'proxy_pass': plain.address, **trusting, 'proxy_ssl_name': 'other.localhost'},
        'untrusted': {'proxy_pass': plain.address, 'proxy_ssl': True, 'proxy_ssl_name': 'inner.localhost'},
        'trusting': {'proxy_pass': plain.address, 'proxy_ssl': True, 'proxy_ssl_verify': 'off', 'proxy_ssl_name': 'who.ever'},
        'shown': {'proxy_pass': verifying.address, **trusting, **shows},
        'encrypted': {'proxy_pass': verifying.address, **trusting, **shows, **encrypted_key(folder, inner[1])},
        'command': {'proxy_pass': plain.address, **trusting, 'proxy_ssl_conf_command': 'MaxProtocol TLSv1.2'},
        'valid': {'proxy_pass': valid.address, **listed, 'proxy_ssl_name': 'localhost'},
        'revoked': {'proxy_pass': revoked.address, **listed, 'proxy_ssl_name': 'localhost-too'},
        'hidden': {'proxy_pass': verifying.address, **trusting},
        'broken': {'proxy_pass': plain.broken.address, **trusting, 'proxy_timeout': broken_records.PATIENT},
        'no-handshake': {'proxy_pass': f'127.0.0.1:{no_handshake.port}', **trusting, 'proxy_connect_timeout': broken_records.PATIENT},
        'client': {'proxy_pass': recorder.address, 'proxy_timeout': broken_records.PATIENT, 'ssl_certificate': inner[0], 'ssl_certificate_key': inner[1]},
    }
    ports = {name: server_kit.free_port() for name in ('http', *servers)}
    made = server_kit.Server(folder, [{'listen': f'127.0.0.1:{ports["http"]}', 'return': '200 ok'}], loop=request.param, main={'stream': {
        'log_format': {'short': '$server_port $status'}, 'access_log': f'{folder}/stream.log short',
        'server': [{'listen': f'127.0.0.1:{ports[name]}{" ssl" if "ssl_certificate" in block else ""}', **block} for name, block in servers.items()]}})
    made.ports, made.log, made.recorder = ports, f'{folder}/stream.log', recorder
    yield made.start([ports['http']])
    plain.over.set()
    made.stop()
    no_handshake.stop()
    plain.upstreams.listener.close()
    verifying.upstreams.listener.close()


def fetch(sealing, name, body=b'hello'):
    """(words of the first line, the hash); None if the connection was closed without a response."""
    with contextlib.suppress(ConnectionResetError), socket.create_connection(('127.0.0.1', sealing.ports[name]), timeout=30 * server_kit.PATIENCE) as stream:
        def work():
            with contextlib.suppress(OSError):
                stream.sendall(body)
                stream.shutdown(socket.SHUT_WR)
        thread = threading.Thread(target=work)
        thread.start()
        output = read_all(stream)
        thread.join()
        if output:
            line, digest = output.decode().split('\n')
            assert digest == hashlib.sha256(body).hexdigest()
            return line.split()
    return None


def test_trusted_certificate_with_matching_name(sealing):
    assert fetch(sealing, 'good')[:2] == ['TLSv1.3', 'inner.localhost']
    assert fetch(sealing, 'good', LARGE)[0] == 'TLSv1.3'
    assert fetch(sealing, 'variable')[1] == 'inner.localhost'
    assert fetch(sealing, 'host')[1] == 'localhost'
    assert fetch(sealing, 'trusting')[1] == 'who.ever'
    assert fetch(sealing, 'good')[4] == 'None'         # no ALPN: the protocol in the connection is unknown


def test_upstream_session_is_resumed(sealing):
    assert {fetch(sealing, 'old')[2] for _ in range(3)} == {'False', 'True'}
    assert {fetch(sealing, 'fresh')[2] for _ in range(3)} == {'False'}


def test_proxy_ssl_directives(sealing):
    assert fetch(sealing, 'nameless')[1] == 'None'
    assert fetch(sealing, 'old')[0] == 'TLSv1.2'
    assert fetch(sealing, 'command')[0] == 'TLSv1.2'
    assert fetch(sealing, 'encrypted')[3] == 'True'
    assert fetch(sealing, 'valid')[0] == 'TLSv1.3'
    assert fetch(sealing, 'shown')[3] == 'True' and fetch(sealing, 'good')[3] == 'False'


@pytest.mark.parametrize('name', ['misnamed', 'untrusted', 'revoked'])
def test_untrusted_server_gets_no_bytes(sealing, name):
    assert fetch(sealing, name) is None
    wait_for(lambda: f'{sealing.ports[name]} 502\n' in server_kit.read_text(sealing.log), 'no line')
    assert 'TLS to upstream' in sealing.errors()


def test_missing_client_certificate_closes_the_connection(sealing):
    assert fetch(sealing, 'hidden') is None


def test_invalid_record_of_the_server_ends_the_connection(sealing):
    """At once: without a wait until the upstream server has read the alert and closed."""
    assert fetch(sealing, 'broken') is None
    wait_for(lambda: 'TLS failed while reading upstream (71: Protocol error)' in sealing.errors(), 'a log line')


def test_failed_handshake_with_a_server_that_does_not_close(sealing):
    assert fetch(sealing, 'no-handshake') is None
    wait_for(lambda: f'{sealing.ports["no-handshake"]} 502\n' in server_kit.read_text(sealing.log), 'no line')
    assert 'TLS failed while connecting to upstream (71: Protocol error)' in sealing.errors()


def test_invalid_record_of_the_client_ends_the_upstream_connection(sealing):
    recorder = sealing.recorder
    client = tls13.connect(sealing.ports['client'], timeout=30 * server_kit.PATIENCE)
    client.sendall(b'hello')
    assert recorder.begun.wait(30 * server_kit.PATIENCE) and not recorder.ended.is_set()
    client.sock.sendall(broken_records.RECORD)
    assert recorder.ended.wait(30 * server_kit.PATIENCE)
    client.close()


def test_unreadable_files_are_reported(new_directory):
    port = server_kit.free_port()
    made = server_kit.Server(new_directory(), [{'listen': f'127.0.0.1:{port}'}], main={'stream': {'server': {
        'listen': f'127.0.0.1:{server_kit.free_port()}', 'proxy_pass': '127.0.0.1:1', 'proxy_ssl': True, 'proxy_ssl_trusted_certificate': '/absent.pem'}}})
    with pytest.raises(RuntimeError, match='"/absent.pem" cannot be read as trusted certificates'):
        made.start([port])
