"""The reverse proxy by RFC 9110 and nginx's documentation: hop-by-hop fields, Max-Forwards, variables and logs, Refresh."""
import pytest
from kit import server as server_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream

OK = 'HTTP/1.1 200 OK\r\n'


def repeats_fields(peer):
    peer.read_body()
    peer.send(OK + 'X-Two: 1\r\nX-One: a\r\nX-Two: 2, 3\r\nContent-Length: 0\r\n\r\n')
    return True


def refresh(peer):
    peer.read_body()
    value = peer.request.target.partition('?')[2].replace('SELF', f'http://127.0.0.1:{peer.upstream.port}').replace('%20', ' ')
    peer.send(OK + f'Refresh: {value}\r\nContent-Length: 0\r\n\r\n')
    return True


CLOSING = {
    '/length': 'Content-Length: 2\r\n\r\nok', '/zero': 'Content-Length: 0\r\n\r\n',
    '/chunks': 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n', '/head': '\r\n',
}


def closing(peer):
    """Sends Connection: close and waits for the proxy to close first."""
    peer.read_body()
    peer.send(OK + 'Connection: close\r\n' + CLOSING[peer.request.target])
    peer.upstream.received += b'.' if peer.at_end() else b'?'


@pytest.fixture(scope='module')
def upstream():
    made = Upstream({'/repeats_fields': repeats_fields, '/r': refresh, '/went/r': refresh, **{path: closing for path in CLOSING}})
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def served(launch, loop, transport, upstream):
    to = f'http://127.0.0.1:{upstream.port}'
    return launch(loop, transport, server={'location': {
        '/': {'proxy_pass': to},
        '/below/': {'proxy_pass': to + '/'},
        '/rewritten/': {'proxy_pass': to + '/', 'proxy_redirect': f'{to}/go/ /went/'},
        '/off/': {'proxy_pass': to + '/', 'proxy_redirect': 'off'},
        '/down': {'proxy_pass': 'http://down'},
        '/nowhere': {'proxy_pass': 'http://no-such-name.invalid:81'},
        '/kept/': {'proxy_pass': 'http://kept/'},
        '/cookies': {'return': '200 $http_cookie|$http_x_a'}}},
        http={'upstream': {'down': {'server': '127.0.0.1:9 down'}, 'kept': {'server': f'127.0.0.1:{upstream.port}', 'keepalive': 4}},
              'log_format': {'proof': '$upstream_addr|$upstream_status|$request_uri|$upstream_http_x_two'}})


@pytest.fixture
def client(served):
    made = served.connect()
    yield made
    made.close()


def logged(served, line):
    wait_for(lambda: line + '\n' in server_kit.read_text(served.server.access_path), f'no line {line}')


def test_no_available_server_is_502(served, client):
    assert client.get('/down').status == 502
    logged(served, 'down|502|/down|-')
    assert 'no live upstreams while connecting to upstream, ' in served.server.errors()


def test_unresolvable_name_is_502(served, client):
    assert client.get('/nowhere').status == 502
    logged(served, 'no-such-name.invalid:81|502|/nowhere|-')
    assert 'host not found while connecting to upstream, ' in served.server.errors()


def test_fields_of_one_name_are_joined(served, client, upstream):
    response = client.fetch('GET', '/repeats_fields')
    assert response.status == 200
    logged(served, '/repeats_fields|1, 2, 3')
    response = client.fetch('GET', '/cookies', [('Cookie', 'a=1'), ('X-A', '1'), ('Cookie', 'b=2'), ('X-A', '2')])
    assert response.body == b'a=1; b=2|1, 2'


@pytest.mark.parametrize('path, output', [
    ('/below/r?5;%20url=SELF/x', '5; url=/below/x'), ('/below/r?5;URL=SELF/x', '5;URL=/below/x'), ('/below/r?url=SELF/x', 'url=/below/x'),
    ('/below/r?0;%20url=/abc', '0; url=/abc'), ('/below/r?5', '5'), ('/below/r?SELF/x', 'SELF/x'), ('/below/r?5;%20url="SELF/x"', '5; url="SELF/x"'),
    ('/rewritten/r?5;%20url=SELF/go/x', '5; url=/went/x'), ('/off/r?5;%20url=SELF/x', '5; url=SELF/x'), ('/below/r?5;%20url=', '5; url=')])
def test_proxy_redirect_rewrites_refresh(client, upstream, path, output):
    """nginx sends the same values."""
    assert client.get(path).headers['refresh'] == output.replace('SELF', f'http://127.0.0.1:{upstream.port}')


@pytest.mark.parametrize('method', ['OPTIONS', 'TRACE'])
def test_max_forwards_is_decremented(client, upstream, method):
    """RFC 9110 7.6.2: the proxy responds to 0, and passes other numbers on decremented."""
    before = len(upstream.requests)
    assert client.fetch(method, '/m', [('Max-Forwards', '0')]).status == (204 if method == 'OPTIONS' else 405)
    assert len(upstream.requests) == before
    for output, passed in ('1', '0'), ('10', '9'), ('x', 'x'), ('-1', '-1'):
        assert client.fetch(method, '/m', [('Max-Forwards', output)]).status == 200
        assert upstream.last().all('max-forwards') == [passed]
    assert client.fetch('GET', '/m', [('Max-Forwards', '0')]).status == 200
    assert upstream.last().all('max-forwards') == ['0']


def test_options_asterisk_has_no_allow(client):
    response = client.fetch('OPTIONS', '*')
    assert response.status == 204 and 'allow' not in response.headers


@pytest.mark.parametrize('path', ['/m', '/kept/m'])
def test_te_trailers_is_forwarded(client, upstream, path):
    """RFC 9110 10.1.4: TE is passed on with `trailers` only, and Connection lists it; trailers are passed on."""
    client.fetch('GET', path, [('TE', 'gzip;q=0.5, trailers'), ('Connection', 'TE')])
    assert upstream.last().all('te') == ['trailers']
    assert 'te' in [option.strip().lower() for option in upstream.last().header('connection').split(',')]
    client.fetch('GET', path, [('TE', 'gzip'), ('Connection', 'TE')])
    assert upstream.last().all('te') == []


@pytest.mark.parametrize('path', CLOSING)
def test_closed_upstream_connection_is_not_reused(client, upstream, path):
    received = upstream.received
    assert client.fetch('HEAD' if path == '/head' else 'GET', '/kept' + path).status == 200
    wait_for(lambda: upstream.received == received + b'.', 'the connection stays open')
    before = upstream.connections
    assert client.get('/kept/m').status == 200
    assert upstream.connections == before + 1
