"""URIs and header values of more than 64 KiB, with buffers configured for them, are passed on completely."""
import hashlib

import pytest
from kit import server as server_kit
from kit.upstream import Upstream

pytestmark = pytest.mark.http1('HTTP/2 has no fields above 64 KiB')
LONG = 150_000
TEXT = ''.join(hashlib.sha256(str(i).encode()).hexdigest() for i in range(LONG // 64))


def place(peer):
    """Responds with a redirect below /sent/ and a cookie whose path has the same length."""
    peer.read_body()
    peer.send(f'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{peer.upstream.port}/sent/{TEXT}\r\n'
              f'Set-Cookie: c=1; Path=/sent/{TEXT}\r\nContent-Length: 0\r\n\r\n')
    return True


@pytest.fixture(scope='module')
def upstream():
    made = Upstream({'/place': place})
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def served(launch, loop, upstream, fresh_cache):
    to = f'http://127.0.0.1:{upstream.port}'
    return launch(loop, 'plain', http={
        'large_client_header_buffers': '4 1m', 'proxy_buffer_size': '1m', 'absolute_redirect': 'on',
        'proxy_cache_path': {'path': fresh_cache, 'keys_zone': 'one:1m'},
    }, server={'location': {
        '/plain/': {'proxy_pass': to},
        '/below/': {'proxy_pass': to + '/v1/'},
        '/place': {'proxy_pass': to, 'proxy_redirect': f'{to}/sent/ /received/', 'proxy_cookie_path': '/sent/ /received/'},
        '/usual/': {'proxy_pass': to + '/', 'proxy_redirect': 'default'},
        '/rewrite': {'rewrite': '^ /target?own=1 redirect'},
        '/inside': {'rewrite': '^ /below/changed?own=1 last'},
        '/return': {'return': '302 /to?$args'},
        '/cached': {'proxy_pass': to, 'proxy_cache': 'one', 'proxy_cache_valid': '200 1h', 'add_header': 'X-Cache $upstream_cache_status'},
    }})


@pytest.fixture(scope='session')
def fresh_cache(base):
    path = base / 'long_texts_cache'
    path.mkdir()
    path.chmod(0o777)
    return str(path)


@pytest.fixture
def client(served):
    made = served.connect()
    yield made
    made.close()


def location(served, response):
    return response.headers['location'].removeprefix(f'http://localhost:{served.port}')


@pytest.mark.parametrize('target, sent', [
    ('/plain/' + TEXT, '/plain/' + TEXT),
    ('/below/' + TEXT, '/v1/' + TEXT),
    ('/below/?' + TEXT, '/v1/?' + TEXT),
    ('/below/%3f' + TEXT, '/v1/%3F' + TEXT),
    ('/inside?' + TEXT, '/v1/changed?own=1&' + TEXT),
])
def test_long_targets_are_forwarded(client, upstream, target, sent):
    assert client.get(target).status == 200
    assert upstream.requests[-1].target == sent


@pytest.mark.parametrize('target, output', [
    ('/rewrite?' + TEXT, '/target?own=1&' + TEXT),
    ('/return?' + TEXT, '/to?' + TEXT),
])
def test_long_redirect_targets_are_complete(served, client, target, output):
    response = client.get(target)
    assert response.status == 302 and location(served, response) == output


def test_long_location_and_cookie_path_are_rewritten(served, client):
    response = client.get('/place')
    assert location(served, response) == '/received/' + TEXT
    assert response.headers['set-cookie'] == 'c=1; Path=/received/' + TEXT
    response = client.get('/usual/place')
    assert location(served, response) == '/usual/sent/' + TEXT


def test_long_cache_keys_are_distinct_or_not_stored(client):
    """Two URIs that differ only after 64 KiB must not share a cache entry; a key that is too long is not stored."""
    for length in (20_000, 40_000, 70_000):
        one, two = (client.get('/cached?' + TEXT[:length] + end) for end in 'ab')
        assert one.body != two.body and one.body.endswith(b'a\n') and two.body.endswith(b'b\n')
        assert one.headers.get('x-cache', 'none') != 'HIT' and two.headers.get('x-cache', 'none') != 'HIT'
    assert client.get('/cached?' + TEXT[:20_000] + 'a').headers['x-cache'] == 'HIT'
