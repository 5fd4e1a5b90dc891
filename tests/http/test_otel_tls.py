"""otel_exporter with an https endpoint: verification of the collector, and handshakes that fail or do not end."""
import os
import re
import signal
import socket
import subprocess

import pytest

from kit import server as server_kit, site as site_kit
from kit.collector import Collector
from kit.lifetime import signal_and_wait, wait_for
from kit.otel_site import site_starter


@pytest.fixture(scope='module')
def certificate(tmp_path_factory):
    return site_kit.make_certificate(str(tmp_path_factory.mktemp('collector')))


@pytest.fixture(scope='module')
def foreign(tmp_path_factory):
    """A certificate of another name; of 127.0.0.1, too."""
    return site_kit.make_certificate(str(tmp_path_factory.mktemp('foreign')), name='other', names=('other.test',))


@pytest.fixture
def collect():
    made = []

    def launch(certificate):
        made.append(Collector(certificate=certificate))
        return made[-1]
    yield launch
    for collector in made:
        collector.stop()
        assert not collector.faults


@pytest.fixture
def start(tmp_path, loop):
    def launch(endpoint, trusted=None, **options):
        exporter = {'endpoint': endpoint, **({'trusted_certificate': trusted} if trusted else {}), **options.pop('exporter', {})}
        return starter(0, server_kit.free_port(), exporter=exporter, loop=loop, **options)
    with site_starter(tmp_path) as starter:
        yield launch


def arrived(collector, count):
    wait_for(lambda: len(collector.spans) >= count, f'{count} spans')
    return [span.attributes['url.path'] for span in collector.spans]


def test_spans_arrive_over_tls(start, collect, certificate):
    collector = collect(certificate)
    site = start(f'https://localhost:{collector.port}', certificate[0])
    site.fetch('/local/first')
    assert arrived(collector, 1) == ['/local/first']
    site.fetch('/local/second')
    assert arrived(collector, 2) == ['/local/first', '/local/second']
    path, fields = collector.requests[0]
    assert path == '/v1/traces' and fields['Host'] == f'localhost:{collector.port}'
    assert set(collector.names) == {'localhost'}
    wait_for(lambda: site.metrics()['sluice_spans_sent_total'] == 2, 'the exporter to read the responses')
    assert site.dropped('not_sent') == 0 and 'failed' not in site.server.errors()


def test_large_batch_arrives_over_tls(start, collect, certificate):
    collector = collect(certificate)
    site = start(f'https://127.0.0.1:{collector.port}', certificate[0], exporter={'batch_size': 60, 'interval': '1h'})
    for number in range(60):
        site.fetch(f'/local/{number}?{"q" * 600}', ('User-Agent', 'a' * 600))
    assert arrived(collector, 60) == [f'/local/{number}' for number in range(60)]
    assert len(collector.batches) == 1 and int(collector.requests[0][1]['Content-Length']) > 65536
    assert collector.names == [None], 'an address is not sent as SNI'


def test_authorities_of_the_system_are_the_default(start, collect, certificate):
    collector = collect(certificate)
    site = start(f'https://localhost:{collector.port}', environment={'SSL_CERT_FILE': certificate[0]})
    site.fetch('/local/x')
    assert arrived(collector, 1) == ['/local/x']


def test_batch_is_repeated_over_tls(start, collect, certificate):
    collector = collect(certificate)
    collector.statuses = [503]
    site = start(f'https://localhost:{collector.port}', certificate[0])
    site.fetch('/local/x')
    assert arrived(collector, 1) == ['/local/x'] and len(collector.requests) == 2


@pytest.mark.parametrize('trusts, fault', [('its own', 'hostname mismatch'), ('another', 'self-signed certificate'),
                                           ('the system', 'self-signed certificate')])
def test_collector_that_is_not_verified_gets_nothing(start, collect, certificate, foreign, trusts, fault):
    """A certificate for another name by a trusted authority; the right name by an authority that is not trusted."""
    presented, trusted = {'its own': (foreign, foreign[0]), 'another': (certificate, foreign[0]), 'the system': (certificate, None)}[trusts]
    collector = collect(presented)
    site = start(f'https://localhost:{collector.port}', trusted)
    site.fetch('/local/x')
    wait_for(lambda: 'failed (TLS: ' in site.server.errors(), 'a failed handshake')
    assert fault in site.server.errors()
    assert signal_and_wait(site.server, signal.SIGQUIT) == 0
    assert re.search(f'otlp: spans were dropped: 0 .* 1 because they could not be sent to https://localhost:{collector.port}: TLS: {fault}',
                     site.server.errors())
    assert not collector.requests and not collector.spans


def test_plain_collector_gets_nothing(start, collect):
    collector = collect(None)
    site = start(f'https://127.0.0.1:{collector.port}')
    site.fetch('/local/x')
    wait_for(lambda: 'failed (TLS: ' in site.server.errors(), 'a failed handshake')
    assert not collector.requests


class Silent:
    """Accepts connections, and reads the ClientHello."""

    def __init__(self):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.listener.settimeout(20 * server_kit.PATIENCE)
        self.port = self.listener.getsockname()[1]

    def accept(self):
        peer, _ = self.listener.accept()
        peer.settimeout(20 * server_kit.PATIENCE)
        assert peer.recv(3)[:2] == b'\x16\x03', 'a handshake record'
        return peer


@pytest.fixture
def silent():
    made = Silent()
    yield made
    made.listener.close()


def test_handshake_that_stalls_delays_no_request(start, silent, certificate):
    site = start(f'https://127.0.0.1:{silent.port}', certificate[0], exporter={'batch_size': 1})
    site.fetch('/local/first')
    peer = silent.accept()
    for number in range(3):
        site.fetch(f'/local/{number}')
    assert site.exporter() and site.dropped('queue_full') == 0
    assert signal_and_wait(site.server, signal.SIGQUIT) == 0
    assert 'TLS: the TLS handshake was not completed in time' in site.server.errors()
    assert site.server.errors().count('spans were dropped') >= 1
    peer.close()


def test_handshake_that_is_closed_is_repeated(start, silent, certificate):
    site = start(f'https://127.0.0.1:{silent.port}', certificate[0])
    site.fetch('/local/x')
    for _ in range(2):
        peer = silent.accept()
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(65536):
            pass
        peer.close()
    wait_for(lambda: 'failed (TLS: the collector closed the connection during the TLS handshake)' in site.server.errors(), 'its line in the log')
    assert site.fetch('/local/y').status == 200


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root')
def test_authorities_that_only_root_can_read(start, collect, certificate, tmp_path):
    tmp_path.chmod(0o755)
    private = tmp_path / 'private.pem'
    with open(certificate[0], 'rb') as stream:
        private.write_bytes(stream.read())
    private.chmod(0o600)
    collector = collect(certificate)
    site = start(f'https://localhost:{collector.port}', private, main={'user': 'nobody'})
    site.fetch('/local/x')
    assert arrived(collector, 1) == ['/local/x']


@pytest.mark.parametrize('exporter, message', [
    ({'endpoint': 'https://localhost', 'trusted_certificate': '/nowhere/ca.pem'},
     '"/nowhere/ca.pem" cannot be read as trusted certificates: No such file or directory'),
    ({'endpoint': 'https://localhost', 'trusted_certificate': '/etc/passwd'}, '"/etc/passwd" cannot be read as trusted certificates'),
    ({'endpoint': 'http://localhost', 'trusted_certificate': '/etc/passwd'}, 'the endpoint is not https'),
    ({'endpoint': 'https://'}, 'endpoint is the URL of a collector'),
    ({'endpoint': 'https://localhost:x'}, 'endpoint is the URL of a collector'),
])
def test_invalid_settings_are_reported(tmp_path, exporter, message):
    made = server_kit.Server(tmp_path, [{'listen': '127.0.0.1:1', 'return': '200 ok'}], http={'otel_exporter': exporter})
    done = subprocess.run([server_kit.SLUICE, '-t', '-c', made.config_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and message in done.stderr, done.stderr
