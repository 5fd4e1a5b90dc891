"""otel_trace_context: W3C Trace Context, from clients and to upstream servers of each protocol."""
import itertools
import re

import pytest

from kit import http2, server as server_kit
from kit.fastcgi import Application
from kit.h2_upstream import H2Upstream
from kit.lifetime import wait_for
from kit.upstream import Upstream

TIMEOUT = 30 * server_kit.PATIENCE
TRACE, SPAN = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'
PARENT = f'00-{TRACE}-{SPAN}-01'
STATE = 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'
WRITTEN = re.compile('00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])')
LOG = '$request_uri|$otel_trace_id|$otel_span_id|$otel_parent_id|$otel_parent_sampled'
NUMBERS = itertools.count()


def closes(peer):
    peer.read_body()


def fails(peer):
    peer.read_body()
    peer.send('HTTP/1.1 404 Status\r\nContent-Length: 0\r\n\r\n')
    return True


def upgrades(peer):
    peer.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello')
    peer.at_end()


def cacheable(peer):
    peer.send('HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nstored')
    return True


@pytest.fixture(scope='module')
def upstream():
    made = Upstream({'/fails': fails, '/live': upgrades, '/stored': cacheable})
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture(scope='module')
def closing():
    """Reads each request, and closes the connection without a response."""
    made = Upstream({'/retried': closes}, name='closing')
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture(scope='module')
def h2_upstream():
    made = H2Upstream()
    yield made
    made.stop()
    assert not made.faults


@pytest.fixture(scope='module')
def application(new_directory):
    made = Application(str(new_directory() / 'app.sock'))
    yield made
    made.listener.close()
    assert not made.faults


@pytest.fixture(scope='module')
def cache_directory(new_directory):
    return str(new_directory() / 'cache')


@pytest.fixture
def served(launch, loop, transport, upstream, closing, h2_upstream, application, cache_directory):
    upstream.requests.clear()
    closing.requests.clear()
    to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}
    propagate = {'otel_trace_context': 'propagate'}
    http = {'log_format': {'proof': LOG}, 'map': {'$arg_sampled $sampled': {'yes': 'on', 'one': '1', 'true': 'true'}},
            'proxy_cache_path': {'path': cache_directory, 'keys_zone': 'traces:1m'},
            'upstream': {'two': {'server': [{'address': f'127.0.0.1:{closing.port}', 'max_fails': 0},
                                            {'address': f'127.0.0.1:{upstream.port}', 'backup': True}]}}}
    return launch(loop, transport, http=http, server={'location': {
        '/unset': to,
        **{f'/{mode}': {**to, 'otel_trace_context': mode} for mode in ('ignore', 'extract', 'inject', 'propagate')},
        '/on': {**to, **propagate, 'otel_trace': True},
        '/off': {**to, **propagate, 'otel_trace': False},
        '/variable': {**to, **propagate, 'otel_trace': '$sampled'},
        '/overridden': {**to, **propagate, 'proxy_set_header': {'traceparent': 'own', 'X-Span': '$otel_span_id'}},
        '/http2': {'proxy_pass': f'http://127.0.0.1:{h2_upstream.port}', 'proxy_http_version': 2, **propagate},
        '/grpc': {'grpc_pass': f'grpc://127.0.0.1:{h2_upstream.port}', **propagate},
        '/fastcgi': {'fastcgi_pass': f'unix:{application.path}', **propagate},
        '/retried': {'proxy_pass': 'http://two', **propagate},
        '/tried': {'try_files': '/none @next', **propagate},
        '@next': {**to, **propagate},
        '/fails': {**to, **propagate, 'proxy_intercept_errors': True, 'error_page': '404 =200 /page'},
        '/page': {**to, **propagate},
        '/redirected': {'rewrite': '^ /later', 'otel_trace_context': 'extract'},
        '/decided': {'rewrite': '^ /inject', 'otel_trace_context': 'inject', 'otel_trace': True},
        '/later': {'otel_trace_context': 'inject', **to},
        '/guarded': {**to, **propagate, 'auth_request': '/check', 'mirror': '/copy'},
        '/check': {'internal': True, **to},
        '/copy': {'internal': True, **to, **propagate},
        '/stored': {**to, **propagate, 'proxy_cache': 'traces', 'proxy_cache_key': '$uri$arg_n'},
        '/live': {**to, **propagate},
        '/return': {'return': '200 "$http_traceparent|$http_tracestate|$otel_trace_id|$otel_span_id"', **propagate},
    }})


class Http1:
    def __init__(self, served):
        self.client = served.connect()
        self.close = self.client.close

    def fetch(self, path, fields):
        return self.client.fetch('GET', path, fields)


class Http2:
    def __init__(self, served):
        self.client = http2.connect(served.port, served.transport, TIMEOUT)
        self.close = self.client.close

    def fetch(self, path, fields):
        return self.client.fetch(path, headers=fields)


@pytest.fixture(params=[Http1, Http2])
def fetch(request, served):
    """fetch(path, *fields) sends a GET, and returns the response, whose status is 200."""
    client = request.param(served)

    def send(path, *fields):
        response = client.fetch(path, list(fields))
        assert response.status == 200
        return response
    yield send
    client.close()


def written(value):
    """The trace, the span and the flags of a traceparent of this server."""
    match = WRITTEN.fullmatch(value)
    assert match and match[1] != '0' * 32 and match[2] != '0' * 16, value
    return match.groups()


def fresh(path):
    """The path with a query that no other request has."""
    return f'{path}?n={next(NUMBERS)}'


def logged(served, target, count=1):
    """The values of the last of `count` lines for this target: trace, span, parent, sampled."""
    def lines():
        return [line.split('|')[1:] for line in server_kit.read_text(served.server.access_path).splitlines() if line.startswith(target + '|')]
    wait_for(lambda: len(lines()) == count, f'the line of {target}')
    return lines()[-1]


def given(parent=PARENT, state=STATE):
    return [('traceparent', parent)] + ([('tracestate', state)] if state else [])


@pytest.mark.parametrize('mode', ['unset', 'ignore', 'extract'])
def test_without_inject_fields_pass_unchanged(fetch, served, upstream, mode):
    fetch(f'/{mode}', *given(), ('tracestate', 'x'))
    seen = upstream.last()
    assert seen.all('traceparent') == [PARENT] and seen.all('tracestate') == [STATE, 'x']
    fetch(f'/{mode}')
    assert not upstream.last().all('traceparent')


def test_extract_reads_the_trace(fetch, served):
    target = fresh('/extract')
    fetch(target, *given())
    trace, span, parent, sampled = logged(served, target)
    assert (trace, parent, sampled) == (TRACE, SPAN, '1') and re.fullmatch('[0-9a-f]{16}', span) and span != SPAN


def test_inject_replaces_the_fields(fetch, served, upstream):
    target = fresh('/inject')
    fetch(target, *given(), ('traceparent', PARENT))
    seen = upstream.last()
    (parent,) = seen.all('traceparent')
    trace, span, flags = written(parent)
    assert trace != TRACE and span != SPAN and flags == '00' and not seen.all('tracestate')
    assert logged(served, target) == [trace, span, '-', '0']


@pytest.mark.parametrize('flags', ['00', '01'])
def test_propagate_continues_the_trace(fetch, served, upstream, flags):
    target = fresh('/propagate')
    fetch(target, *given(f'00-{TRACE}-{SPAN}-{flags}', 'a=1'), ('tracestate', 'b=2'))
    seen = upstream.last()
    (parent,) = seen.all('traceparent')
    trace, span, sent_flags = written(parent)
    assert (trace, sent_flags) == (TRACE, flags) and span != SPAN and seen.all('tracestate') == ['a=1,b=2']
    assert logged(served, target) == [TRACE, span, SPAN, str(int(flags))]


@pytest.mark.parametrize('fields', [
    [],
    [('tracestate', STATE)],
    [('traceparent', '')],
    [('traceparent', PARENT), ('traceparent', PARENT)],
    [('traceparent', PARENT + ',' + PARENT)],
    given(PARENT.upper()),
    given(PARENT + '-more'),
    given('ff' + PARENT[2:]),
    given(f'00-{"0" * 32}-{SPAN}-01'),
    given(f'00-{TRACE}-{"0" * 16}-01'),
    given(PARENT[:-1]),
])
def test_new_trace_without_a_valid_parent(fetch, served, upstream, fields):
    target = fresh('/propagate')
    fetch(target, *fields)
    seen = upstream.last()
    (parent,) = seen.all('traceparent')
    trace, span, flags = written(parent)
    assert trace != TRACE and flags == '00' and not seen.all('tracestate')
    assert logged(served, target) == [trace, span, '-', '0']


def test_higher_version_is_written_as_00(fetch, upstream):
    fetch('/propagate', *given(f'cc-{TRACE}-{SPAN}-01-later'))
    assert written(upstream.last().header('traceparent'))[::2] == (TRACE, '01')


def test_invalid_state_is_dropped(fetch, upstream):
    fetch('/propagate', *given(state='a=1,A=2'))
    seen = upstream.last()
    assert written(seen.header('traceparent'))[0] == TRACE and not seen.all('tracestate')


@pytest.mark.parametrize('path, flags', [('/on', '01'), ('/off', '00'), ('/variable', '00'), ('/variable?sampled=yes', '01'),
                                         ('/variable?sampled=one', '01'), ('/variable?sampled=true', '00')])
def test_otel_trace_decides_on_new_traces(fetch, upstream, path, flags):
    fetch(path)
    assert written(upstream.last().header('traceparent'))[2] == flags
    for parent_flags in ('00', '01'):
        fetch(path, ('traceparent', f'00-{TRACE}-{SPAN}-{parent_flags}'))
        assert written(upstream.last().header('traceparent'))[::2] == (TRACE, parent_flags)


def test_internal_redirect_keeps_the_decision(fetch, upstream):
    fetch('/decided')
    assert written(upstream.last().header('traceparent'))[2] == '01'
    fetch('/inject')
    assert written(upstream.last().header('traceparent'))[2] == '00'


def test_ids_are_never_repeated(fetch, upstream):
    for _ in range(100):
        fetch('/inject')
    seen = [written(request.header('traceparent')) for request in upstream.requests]
    assert len({trace for trace, _, _ in seen}) == len({span for _, span, _ in seen}) == 100


def test_proxy_set_header_takes_precedence(fetch, upstream):
    fetch('/overridden', *given())
    assert upstream.last().all('traceparent') == ['own'] and re.fullmatch('[0-9a-f]{16}', upstream.last().header('x-span'))


def test_http2_and_grpc_upstream_servers(fetch, h2_upstream):
    for path in ('/http2', '/grpc'):
        fetch(path, *given())
        fields = h2_upstream.last().fields
        parents = [value for name, value in fields if name == 'traceparent']
        assert len(parents) == 1 and written(parents[0])[0] == TRACE and written(parents[0])[1] != SPAN
        assert [value for name, value in fields if name == 'tracestate'] == [STATE]


def test_fastcgi_applications(fetch, application):
    fetch('/fastcgi', *given())
    params = application.requests[-1].params
    trace, span, flags = written(params['HTTP_TRACEPARENT'])
    assert (trace, flags, params['HTTP_TRACESTATE']) == (TRACE, '01', STATE) and span != SPAN
    fetch('/fastcgi', ('tracestate', STATE))
    assert 'HTTP_TRACESTATE' not in application.requests[-1].params


def test_attempts_have_one_span(fetch, upstream, closing):
    fetch('/retried', *given())
    assert upstream.last().header('traceparent') == closing.last().header('traceparent')


@pytest.mark.parametrize('path', ['/tried', '/fails', '/redirected'])
def test_internal_redirects_keep_the_span(fetch, upstream, path):
    fetch(path, *given())
    seen = {request.header('traceparent') for request in upstream.requests}
    assert len(seen) == 1 and written(seen.pop())[0] == TRACE
    assert len(upstream.requests) == (2 if path == '/fails' else 1)


def test_subrequests_have_the_span_of_the_request(fetch, upstream):
    fetch('/guarded', *given())
    wait_for(lambda: len(upstream.requests) == 3, 'the mirrored request')
    assert {request.target for request in upstream.requests} == {'/guarded', '/check', '/copy'}
    (parent,) = {request.header('traceparent') for request in upstream.requests}
    assert written(parent)[0] == TRACE and {request.header('tracestate') for request in upstream.requests} == {STATE}


def test_stored_response_has_a_span_of_its_own(fetch, served, upstream):
    target = fresh('/stored')
    fetch(target, *given())
    assert list(written(upstream.last().header('traceparent'))[:2]) == logged(served, target)[:2]
    response = fetch(target)
    assert len(upstream.requests) == 1 and 'traceparent' not in response.headers
    trace, span, parent, _ = logged(served, target, 2)
    sent_trace, sent_span, _ = written(upstream.last().header('traceparent'))
    assert trace != sent_trace and span != sent_span and parent == '-'


def test_modules_see_the_fields_that_are_forwarded(fetch):
    parent, state, trace, span = fetch('/return', *given()).body.decode().split('|')
    assert written(parent)[:2] == (trace, span) and (trace, state) == (TRACE, STATE)


@pytest.mark.http1('HTTP/2 has no Connection')
def test_connection_does_not_remove_the_fields(served, upstream):
    """RFC 9110 7.6.1: it names the fields of the client."""
    client = served.connect()
    for options in ('traceparent', 'Tracestate, x-other, keep-alive, TRACEPARENT', 'keep-alive'):
        assert client.fetch('GET', '/propagate', [('Connection', options), ('X-Other', '1'), *given()]).status == 200
        seen = upstream.last()
        assert written(seen.header('traceparent'))[0] == TRACE and seen.header('tracestate') == STATE
        assert seen.all('x-other') == ([] if 'x-other' in options else ['1']) and not seen.all('connection')
    client.close()


@pytest.mark.http1('the handshake of HTTP/1.1')
def test_upgraded_connection_logs_its_span(served, upstream):
    client, target = served.connect(), fresh('/live')
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: traceparent, Upgrade\r\nUpgrade: websocket\r\n'
                f'Sec-WebSocket-Key: x\r\ntraceparent: {PARENT}\r\n\r\n')
    assert client.head().status == 101 and client.read_exactly(5) == b'hello'
    client.close()
    trace, span, _ = written(upstream.last().header('traceparent'))
    assert logged(served, target) == [trace, span, SPAN, '1'] and trace == TRACE
