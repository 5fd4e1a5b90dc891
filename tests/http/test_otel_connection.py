"""otel_exporter: batches over one connection, and collectors that close it or respond wrongly."""
import pytest

from kit import server as server_kit, site as site_kit
from kit.collector import Collector
from kit.lifetime import wait_for
from kit.otel_site import site_starter

OK = b'HTTP/1.1 200 OK\r\n'


@pytest.fixture(scope='module')
def certificate(tmp_path_factory):
    return site_kit.make_certificate(str(tmp_path_factory.mktemp('collector')))


@pytest.fixture(params=['http', 'https'])
def collector(request, certificate):
    made = Collector(certificate=certificate if request.param == 'https' else None)
    made.scheme = request.param
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture
def site(tmp_path, collector, certificate, loop):
    exporter = {'endpoint': f'{collector.scheme}://localhost:{collector.port}'}
    if collector.scheme == 'https':
        exporter['trusted_certificate'] = certificate[0]
    with site_starter(tmp_path) as starter:
        yield starter(0, server_kit.free_port(), exporter=exporter, loop=loop)


def send(site, count):
    """One batch that the collector has accepted, as number `count`."""
    site.fetch(f'/local/{count}')
    wait_for(lambda: site.metrics()['sluice_spans_sent_total'] == count, f'{count} accepted spans')


def assert_complete(site, collector, count):
    assert [span.attributes['url.path'] for span in collector.spans] == [f'/local/{number}' for number in range(1, count + 1)]
    assert site.dropped('not_sent') == 0


def test_batches_share_a_connection(site, collector):
    for number in range(1, 6):
        send(site, number)
    assert_complete(site, collector, 5)
    assert len(collector.batches) == 5 and len(collector.connections) == 1
    assert all('Connection' not in fields for _, fields in collector.requests)


def test_closed_connection_is_replaced(site, collector):
    send(site, 1)
    collector.close_connections()
    send(site, 2)
    send(site, 3)
    assert_complete(site, collector, 3)
    assert len(collector.connections) == 2 and len(collector.requests) == 3 and 'failed' not in site.server.errors()


def test_connection_that_closes_instead_of_a_response_is_replaced_once(site, collector):
    send(site, 1)
    collector.raw = [b'']
    send(site, 2)
    assert_complete(site, collector, 2)
    assert len(collector.connections) == 2 and len(collector.requests) == 3 and 'failed' not in site.server.errors()
    collector.raw = [b'', b'']      # the repetition on the new connection fails, too: the next one follows after a delay
    send(site, 3)
    assert_complete(site, collector, 3)
    assert len(collector.requests) == 6 and site.server.errors().count('failed') == 1


def test_chunked_responses_keep_the_connection(site, collector):
    collector.chunked = True
    send(site, 1)
    collector.rejected = 1
    site.fetch('/local/2')
    wait_for(lambda: site.dropped('not_sent') == 1, 'a rejected span')
    collector.rejected = 0
    site.fetch('/local/3')
    wait_for(lambda: site.metrics()['sluice_spans_sent_total'] == 2, 'two accepted spans')
    assert len(collector.batches) == 3 and len(collector.connections) == 1


@pytest.mark.parametrize('response', [OK + b'Connection: close\r\nContent-Length: 0\r\n\r\n', b'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n',
                                      OK + b'Content-Length: 0\r\n\r\n' + OK, OK + b'Transfer-Encoding: chunked\r\n\r\nx\r\n',
                                      OK + b'Content-Length: 100000\r\n\r\n' + bytes(100000)])
def test_status_applies_but_the_connection_is_closed(site, collector, response):
    collector.raw = [response]
    send(site, 1)
    send(site, 2)
    assert len(collector.connections) == 2 and len(collector.requests) == 2 and site.dropped('not_sent') == 0


def test_bytes_after_a_response_are_not_the_next_response(site, collector):
    """The exporter reads 4096 bytes at once: over TLS, the rest of the record stays in its session."""
    head = OK + b'Content-Length: %d\r\n\r\n'
    body = 4096 - len(head % 1000)
    collector.raw = [head % body + bytes(body) + b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n']
    send(site, 1)
    send(site, 2)
    assert len(collector.connections) == 2 and len(collector.requests) == 2 and site.dropped('not_sent') == 0


@pytest.mark.parametrize('response', [b'HTTP/1.1 204 No Content\r\n\r\n', b'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n'])
def test_responses_without_a_body_keep_the_connection(site, collector, response):
    collector.raw = [response]
    site.fetch('/local/1')
    wait_for(lambda: site.metrics()['sluice_spans_sent_total'] + site.dropped('not_sent') == 1, 'the end of the first batch')
    site.fetch('/local/2')
    wait_for(lambda: collector.spans, 'the second batch')
    assert len(collector.connections) == 1 and len(collector.requests) == 2


@pytest.mark.parametrize('response', [b'garbage\r\n\r\n', b'\0' * 70000, b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n',
                                      b'HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n', b'HTTP/2 200 OK\r\n\r\n'])
def test_batch_is_repeated_after_garbage(site, collector, response):
    send(site, 1)
    collector.raw = [response]
    send(site, 2)
    assert_complete(site, collector, 2)
    assert len(collector.connections) == 2 and len(collector.requests) == 3
    assert site.server.errors().count('failed (74: Bad message)') == 1
