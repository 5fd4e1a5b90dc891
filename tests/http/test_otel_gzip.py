"""`compression` of otel_exporter: bodies by gzip, decoded by Python."""
import gzip
import subprocess

import pytest

from kit import server as server_kit, site as site_kit
from kit.collector import Collector
from kit.lifetime import wait_for
from kit.otel_site import site_starter


@pytest.fixture(scope='module')
def certificate(tmp_path_factory):
    return site_kit.make_certificate(str(tmp_path_factory.mktemp('collector')))


@pytest.fixture(params=['http', 'https'])
def collector(request, certificate):
    made = Collector(certificate=certificate if request.param == 'https' else None)
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture
def start(tmp_path, collector, certificate, loop, request):
    tls = {'endpoint': f'https://localhost:{collector.port}', 'trusted_certificate': certificate[0]}

    def launch(**exporter):
        exporter.update(tls if 'https' in request.node.callspec.params.values() else {})
        return starter(collector.port, server_kit.free_port(), exporter=exporter, loop=loop)
    with site_starter(tmp_path) as starter:
        yield launch


def test_body_is_compressed(start, collector):
    site = start(compression='gzip', batch_size=40, interval='1h')
    for number in range(40):
        site.fetch(f'/local/{number}?{"q" * 600}')
    wait_for(lambda: len(collector.spans) == 40, '40 spans')
    assert [span.attributes['url.path'] for span in collector.spans] == [f'/local/{number}' for number in range(40)]
    (_, fields), (body,) = collector.requests[0], collector.bodies
    assert fields.get_all('Content-Encoding') == ['gzip'] and int(fields['Content-Length']) == len(body)
    assert len(body) < len(gzip.decompress(body)) / 4
    wait_for(lambda: site.metrics()['sluice_spans_sent_total'] == 40, 'the exporter to read the response')


def test_each_batch_is_complete_and_repeated_as_it_was(start, collector):
    collector.statuses = [503]
    site = start(compression='gzip')
    for number in range(3):
        site.fetch(f'/local/{number}')
        wait_for(lambda number=number: len(collector.spans) == number + 1, 'a span')
    assert collector.bodies[0] == collector.bodies[1] and len(collector.batches) == 3
    assert [span.attributes['url.path'] for span in collector.spans] == ['/local/0', '/local/1', '/local/2']


@pytest.mark.parametrize('settings', [{}, {'compression': 'none'}])
def test_body_is_not_compressed_by_default(start, collector, settings):
    start(**settings).fetch('/local/x')
    wait_for(lambda: collector.spans, 'a span')
    assert 'Content-Encoding' not in collector.requests[0][1] and b'/local/x' in collector.bodies[0]


@pytest.mark.parametrize('value', ['deflate', 'on', 'GZIP', '6'])
def test_other_values_are_rejected(tmp_path, value):
    made = server_kit.Server(tmp_path, [{'listen': '127.0.0.1:1', 'return': '200 ok'}],
                             http={'otel_exporter': {'endpoint': 'http://localhost', 'compression': value}})
    done = subprocess.run([server_kit.SLUICE, '-t', '-c', made.config_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"'compression' cannot be '{value}'" in done.stderr, done.stderr
