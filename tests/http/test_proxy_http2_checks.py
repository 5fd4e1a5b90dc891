"""Health checks of upstream servers over HTTP/2 (`health_check` with `http2: on`)."""
import re

import pytest
from kit import http1, http2
from kit.lifetime import wait_for
from kit.upstream import Upstream
from test_proxy_http2 import SCRIPTS, TIMEOUT, at_end, inner, make_upstream, running, serve, server_side  # pylint: disable=unused-import


def checked(upstreams, match='200', **more):
    """The group and the location of a server whose upstream servers are checked over HTTP/2."""
    return ({'upstream': {'group': {'server': [f'127.0.0.1:{made.port}' for made in upstreams],
                                    'health_check': {'uri': '/healthz', 'interval': '50ms', 'http2': 'on', 'match': match, **more}}}},
            {'/': {'proxy_pass': f'http{"s" if more.get("https") else ""}://group', 'proxy_http_version': '2'}})


def checks(upstream):
    return [request for request in upstream.requests if request.header(':path') == '/healthz']


@pytest.mark.parametrize('transport', ['plain', 'user'])
def test_health_check_by_http2(serve, inner, running, transport):
    """A server that fails its check gets no request until it passes again; each check closes its connection with GOAWAY."""
    tls = transport == 'user'
    one, two = (make_upstream(name=name, tls=server_side(inner) if tls else None) for name in ('one', 'two'))
    statuses = {'one': 200, 'two': 200}
    for made in (one, two):
        made.scripts = {**SCRIPTS, '/healthz': at_end(lambda stream: stream.respond(statuses[stream.peer.upstream.name], [], b'x' * 100, end=False))}
    http, location = checked([one, two], host='app.test', **({'https': 'on'} if tls else {}))
    location['/'].update(proxy_next_upstream='off', proxy_ssl_verify='off')
    client = http1.connect(serve(location, http), 'plain', timeout=TIMEOUT)

    def servers():
        return {client.get('/name').body.split()[0] for _ in range(8)}
    assert servers() == {b'one', b'two'}
    statuses['one'] = 503
    wait_for(lambda: 'is unhealthy: its check got an unexpected status' in running[0].errors(), 'one fails')
    assert servers() == {b'two'}
    statuses['one'] = 200
    wait_for(lambda: 'is healthy: its check succeeded' in running[0].errors(), 'one passes')
    assert servers() == {b'one', b'two'}
    check = checks(one)[0]
    assert check.fields == [(':method', 'GET'), (':scheme', 'https' if tls else 'http'), (':authority', 'app.test'), (':path', '/healthz'),
                            ('user-agent', 'sluice-health-check')]
    assert check.number == 1
    wait_for(lambda: check.peer.goaways == [http2.NO_ERROR] and check.reset_code == http2.CANCEL, 'the connection is closed in order')
    assert running[0].errors().count('healthy: ') == 2
    for made in (one, two):
        made.stop()
        assert not made.faults


def test_health_check_by_http2_without_http2(serve, inner, running):
    """Servers that do not speak HTTP/2 are unhealthy: by ALPN, and by the response to the preface."""
    sealed = make_upstream(tls=server_side(inner), alpn=('http/1.1',))
    http, location = checked([sealed], https='on')
    serve(location, http)
    wait_for(lambda: 'is unhealthy: its check did not negotiate HTTP/2 (ALPN "h2")' in running[0].errors(), 'ALPN')
    plain = Upstream()
    http, location = checked([plain])
    serve(location, http)
    wait_for(lambda: re.search('is unhealthy: its check got (an invalid response|no response)', running[1].errors()), 'an HTTP/1.1 server')
    for made in (sealed, plain):
        made.stop()


def test_health_check_by_http2_times_out(serve, running):
    """A server that accepts the request and never responds."""
    silent = make_upstream()
    silent.scripts = {**SCRIPTS, '/healthz': lambda stream, event: None}
    http, location = checked([silent], timeout='300ms')
    serve(location, http)
    wait_for(lambda: 'is unhealthy: its check timed out' in running[0].errors(), 'the timeout')
    silent.scripts = {**SCRIPTS, '/healthz': at_end(lambda stream: stream.respond(200))}
    wait_for(lambda: 'is healthy: its check succeeded' in running[0].errors(), 'the recovery')
    silent.stop()
    assert not silent.faults
