"""otel_exporter: spans by OTLP/HTTP, decoded by opentelemetry-proto, and the process that sends them."""
import os
import re
import signal
import time

import pytest

from kit import http1, http2_client, server as server_kit
from kit.collector import Collector
from kit.lifetime import alive, signal_and_wait, wait_for
from kit.otel_site import site_starter
from kit.upstream import Upstream

TRACE, PARENT = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'
SAMPLED = ('traceparent', f'00-{TRACE}-{PARENT}-01')


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture
def upstream():
    def live(peer):
        peer.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello')
        peer.at_end()
    made = Upstream({'/live': live, '/fails': lambda peer: peer.send('HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n') or True})
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture
def start(tmp_path, upstream, collector, loop):
    with site_starter(tmp_path) as starter:
        yield lambda **options: starter(options.pop('collector_port', collector.port), upstream.port, loop=loop, **options)
        collector.open.set()


def spans(collector, count):
    wait_for(lambda: len(collector.spans) >= count, f'{count} spans')
    assert len(collector.spans) == count
    return collector.spans


def test_span_of_a_proxied_request(start, collector, upstream):
    site, before = start(), time.time_ns()
    site.fetch('/a%20b?x=1', SAMPLED, ('User-Agent', 'test'))
    (span,), after = spans(collector, 1), time.time_ns()
    sent = upstream.last().header('traceparent').split('-')
    assert (span.trace, span.parent, span.id) == (TRACE, PARENT, sent[2]) and sent[1:] == [TRACE, span.id, '01']
    assert span.name == '/' and span.span.kind == span.span.SPAN_KIND_SERVER and span.span.status.code == span.span.status.STATUS_CODE_UNSET
    assert before - 10**9 < span.span.start_time_unix_nano <= span.span.end_time_unix_nano < after + 10**9
    assert span.span.flags == 0x301 and span.span.dropped_attributes_count == 0
    port = span.attributes.pop('network.peer.port')
    assert 0 < port < 65536 and span.attributes == {
        'http.request.method': 'GET', 'url.path': '/a%20b', 'url.query': 'x=1', 'url.scheme': 'http', 'http.route': '/',
        'http.response.status_code': 200, 'network.protocol.version': {'http1': '1.1', 'http2': '2'}[http1.PROTOCOL], 'user_agent.original': 'test',
        'server.address': 'localhost', 'server.port': site.port, 'client.address': '127.0.0.1', 'network.peer.address': '127.0.0.1'}
    assert collector.resources == [{'service.name': 'shop', 'deployment.environment.name': 'test'}]
    path, fields = collector.requests[0]
    assert path == '/v1/traces' and fields['Content-Type'] == 'application/x-protobuf' and fields['Host'] == f'127.0.0.1:{collector.port}'


def test_new_trace_has_no_parent(start, collector, upstream):
    start().fetch('/x')
    (span,) = spans(collector, 1)
    assert upstream.last().header('traceparent') == f'00-{span.trace}-{span.id}-01' and not span.parent and span.span.flags == 0x101


def test_state_of_the_request_is_in_its_span(start, collector, upstream):
    site, long = start(), [f'k{number}={"v" * 96}' for number in range(9)]
    site.fetch('/x', SAMPLED, ('tracestate', 'a=1'), ('tracestate', 'b=2'))
    assert upstream.last().all('tracestate') == ['a=1,b=2']
    site.fetch('/x', SAMPLED, ('tracestate', ','.join(long)))
    assert upstream.last().all('tracestate') == [','.join(long)]
    site.fetch('/x', SAMPLED, ('tracestate', 'a=1,A=2'))
    site.fetch('/x', ('tracestate', 'a=1'))
    states = [span.span.trace_state for span in spans(collector, 4)]
    assert states == ['a=1,b=2', ','.join(long[:5]), '', ''], 'whole members of at most 512 bytes; none that is invalid or without traceparent'


def test_span_of_an_http2_request(start, collector, upstream):
    site = start()
    client = http2_client.connect(site.port, 'plain', 30)
    assert client.fetch('GET', '/a?x=1', [SAMPLED, ('tracestate', 'a=1')]).status == 200
    client.close()
    (span,) = spans(collector, 1)
    assert upstream.last().header('traceparent') == f'00-{TRACE}-{span.id}-01'
    assert (span.trace, span.parent, span.span.trace_state) == (TRACE, PARENT, 'a=1')
    assert span.attributes['network.protocol.version'] == '2' and span.attributes['http.response.status_code'] == 200
    assert (span.attributes['url.path'], span.attributes['url.query'], span.attributes['url.scheme']) == ('/a', 'x=1', 'http')


def test_span_of_a_websocket_ends_with_it(start, collector, upstream):
    site = start()
    client = http1.connect(site.port)
    client.send('GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n'
                f'traceparent: {SAMPLED[1]}\r\n\r\n')
    assert client.head().status == 101 and client.read_exactly(5) == b'hello'
    site.fetch('/local/meanwhile')
    assert [span.attributes['url.path'] for span in spans(collector, 1)] == ['/local/meanwhile']
    closed = time.time_ns()
    client.close()
    span = spans(collector, 2)[1]
    assert (span.trace, span.parent) == (TRACE, PARENT) and span.attributes['http.response.status_code'] == 101
    assert span.attributes['url.path'] == '/live' and span.span.start_time_unix_nano < closed


def test_only_sampled_requests_have_spans(start, collector):
    site = start()
    site.fetch('/x', ('traceparent', f'00-{TRACE}-{PARENT}-00'))
    site.fetch('/off/x')
    site.fetch('/untraced/x', SAMPLED)
    site.fetch('/local/last')
    (span,) = spans(collector, 1)
    assert span.attributes['url.path'] == '/local/last'
    wait_for(lambda: site.metrics()['sluice_spans_sent_total'] == 1, 'the exporter to read the response')
    assert site.dropped('queue_full') == site.dropped('not_sent') == 0


def test_failures_have_status_error(start, collector):
    site = start()
    site.fetch('/fails', status=503)
    site.fetch('/named/?n=a', status=404)
    failed, absent = spans(collector, 2)
    assert failed.span.status.code == failed.span.status.STATUS_CODE_ERROR and failed.attributes['error.type'] == '503'
    assert absent.span.status.code == absent.span.status.STATUS_CODE_UNSET and 'error.type' not in absent.attributes
    assert [span.attributes['http.response.status_code'] for span in (failed, absent)] == [503, 404]


def test_name_and_attributes_of_the_configuration(start, collector):
    start().fetch('/named/?n=first&t=blue', status=404)
    (span,) = spans(collector, 1)
    assert span.name == 'GET first' and span.attributes['tenant'] == 'blue' and span.attributes['http.response.body.size'] == '2'
    assert 'empty' not in span.attributes


def test_internal_redirect_is_part_of_the_span(start, collector):
    start().fetch('/tried/x')
    (span,) = spans(collector, 1)
    assert span.name == '/local/' and span.attributes['url.path'] == '/tried/x'


def test_bytes_of_clients_are_valid_utf8(start, collector):
    site = start()
    client = http1.connect(site.port)
    client.send(b'BREW /x HTTP/1.1\r\nHost: a\r\nUser-Agent: \xc3\xa9\tb\xff\xe2\x82\r\nConnection: close\r\n\r\n')
    client.head()
    client.close()
    site.fetch('/local/' + 'p' * 3000 + '?' + 'q' * 3000, ('User-Agent', 'a' * 3000))
    odd, long = spans(collector, 2)
    assert odd.attributes['user_agent.original'] == 'é\ufffdb\ufffd\ufffd\ufffd'
    assert (odd.attributes['http.request.method'], odd.attributes['http.request.method_original']) == ('_OTHER', 'BREW')
    assert len(long.attributes['url.path']) == 512 and long.attributes['http.response.status_code'] == 200
    assert len(long.attributes['url.query']) == 512


def test_spans_are_sent_in_batches(start, collector):
    site = start(exporter={'batch_size': 4, 'interval': '1h'})
    for number in range(11):
        site.fetch(f'/local/{number}')
    paths = [span.attributes['url.path'] for span in spans(collector, 8)]
    assert [len(batch) for batch in collector.batches] == [4, 4] and paths == [f'/local/{number}' for number in range(8)]
    # The rest is sent when the server ends.
    assert signal_and_wait(site.server, signal.SIGQUIT) == 0
    assert [len(batch) for batch in collector.batches] == [4, 4, 3]


def test_every_worker_has_a_queue(start, collector):
    site = start(main={'worker_processes': 3})
    for number in range(30):
        site.fetch(f'/local/{number}')
    assert {span.attributes['url.path'] for span in spans(collector, 30)} == {f'/local/{number}' for number in range(30)}


@pytest.mark.parametrize('status', [429, 502, 503, 504])
def test_batch_is_repeated_after_a_temporary_failure(start, collector, status):
    collector.statuses = [status]
    site = start()
    site.fetch('/local/x')
    spans(collector, 1)
    wait_for(lambda: site.metrics()['sluice_spans_sent_total'] == 1, 'the exporter to read the response')
    assert len(collector.requests) == 2 and site.dropped('not_sent') == 0
    assert f'failed (the collector responded with status {status})' in site.server.errors()


def test_batch_is_repeated_when_the_collector_starts(start, upstream):
    port = server_kit.free_port()
    site = start(collector_port=port)
    site.fetch('/local/x')
    wait_for(lambda: 'Connection refused' in site.server.errors(), 'a failed connection')
    late = Collector(port)
    spans(late, 1)
    late.stop()


def test_batch_that_is_rejected_is_dropped(start, collector):
    collector.statuses = [400]
    site = start()
    site.fetch('/local/x')
    wait_for(lambda: site.dropped('not_sent') == 1, 'a dropped span')
    site.fetch('/local/y')
    (span,) = spans(collector, 1)
    assert span.attributes['url.path'] == '/local/y' and len(collector.requests) == 2
    assert 'otlp: spans were dropped: 0 because the queue of a worker was full, 1 because they could not be sent' in site.server.errors()
    collector.statuses = [400, 400]
    for number in (2, 3):
        site.fetch('/local/z')
        wait_for(lambda number=number: site.dropped('not_sent') == number, 'further dropped spans')
    assert site.server.errors().count('otlp: spans were dropped') == 1, 'one line per minute'


def test_partial_success_is_counted(start, collector):
    collector.rejected = 1
    site = start()
    site.fetch('/local/x')
    wait_for(lambda: site.dropped('not_sent') == 1, 'a rejected span')
    assert site.metrics()['sluice_spans_sent_total'] == 0


def test_requests_complete_while_the_collector_holds_its_response(start, collector):
    collector.open.clear()
    site = start(exporter={'batch_size': 1, 'batch_count': 4})
    site.fetch('/local/first')
    wait_for(lambda: collector.requests, 'a batch')
    for number in range(20):
        site.fetch(f'/local/{number}')
    # One batch is sent, four wait, and the others are dropped.
    assert len(collector.requests) == 1 and not collector.spans and site.dropped('queue_full') == 16
    collector.open.set()
    assert [span.attributes['url.path'] for span in spans(collector, 5)] == ['/local/first', *(f'/local/{number}' for number in range(4))]


def test_killed_exporter_is_replaced(start, collector):
    collector.open.clear()
    site = start(exporter={'batch_size': 1})
    site.fetch('/local/lost')
    wait_for(lambda: collector.requests, 'a batch')
    killed = site.exporter()
    os.kill(killed, signal.SIGKILL)
    site.fetch('/local/kept')
    wait_for(lambda: len(site.exporters()) == 2, 'another exporter')
    assert 'the exporter of spans exited on signal 9; it starts again in' in site.server.errors()
    wait_for(lambda: site.dropped('not_sent') == 1, 'the span of the killed exporter')
    collector.open.set()
    wait_for(lambda: 'kept' in str([span.attributes for span in collector.spans]), 'the span in the queue')


def test_terminated_server_sends_the_last_spans(start, collector):
    site = start(exporter={'interval': '1h'})
    site.exporter()  # workers may respond before it has started
    site.fetch('/local/x')
    site.metrics()  # a later response: the first request has ended
    assert signal_and_wait(site.server, signal.SIGTERM) == 0
    spans(collector, 1)


def test_server_ends_without_a_collector(start, collector):
    collector.open.clear()
    site = start(exporter={'batch_size': 1})
    for _ in range(3):
        site.fetch('/local/x')
    wait_for(lambda: collector.requests, 'a batch')
    assert signal_and_wait(site.server, signal.SIGQUIT) == 0
    assert '2 spans were dropped: they were not sent before the server ended' in site.server.errors()


def test_reload_replaces_the_exporter(start, collector):
    site = start(exporter={'interval': '1h'})
    site.fetch('/local/before')
    first = site.exporter()
    site.server.tree['http']['otel_service_name'] = 'new'
    site.server.write_configuration()
    site.server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(site.exporters()) == 2 and not alive(first), 'the new exporter alone')
    spans(collector, 1)
    site.fetch('/local/after')
    assert signal_and_wait(site.server, signal.SIGQUIT) == 0
    assert [resource['service.name'] for resource in collector.resources] == ['shop', 'new']


def test_reopened_log_is_used(start, collector):
    site = start()
    first = site.exporter()
    os.rename(site.server.error_path, site.server.error_path + '.1')
    site.server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: not alive(first) and os.path.exists(site.server.error_path) and site.exporters(), 'another exporter')
    collector.statuses = [400]
    site.fetch('/local/x')
    wait_for(lambda: 'spans were dropped' in site.server.errors(), 'its line in the new log')


def test_exporter_ends_with_a_killed_master(start):
    site = start()
    exporter = site.exporter()
    site.server.process.kill()
    site.server.process.wait()
    wait_for(lambda: not alive(exporter), 'the end of the exporter')


def test_without_exporter_no_process_is_started(tmp_path, loop):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{port}', 'otel_trace': True, 'return': '200 ok'}], loop=loop)
    server.start([port])
    client = http1.connect(port)
    assert client.get('/').status == 200
    client.close()
    assert len(server.workers()) == 1 and 'exporter' not in server.errors()
    server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root')
def test_exporter_has_no_privileges(start):
    site = start(main={'user': 'nobody'})

    def dropped():
        """True once the process that was forked has no privileges."""
        with open(f'/proc/{site.exporter()}/status', encoding='ascii') as stream:
            text = stream.read()
        return (re.search(r'^NoNewPrivs:\s1$', text, re.M) and not re.search(r'^Uid:.*\t0\b', text, re.M)
                and re.search(r'^CapEff:\s0+$', text, re.M))
    wait_for(dropped, 'an exporter without privileges')
