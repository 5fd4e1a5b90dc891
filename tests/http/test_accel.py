"""X-Accel-Redirect: the upstream server selects a file or location of this server, and the client gets its response."""
import pytest
from kit import server as server_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream

OK = 'HTTP/1.1 200 OK\r\n'


def sends(place, more='', status='200 OK'):
    def script(peer):
        peer.read_body()
        peer.send(f'HTTP/1.1 {status}\r\nX-Accel-Redirect: {place}\r\n{more}Content-Length: 9\r\n\r\nnot this\n')
        return True
    return script


def responds_with(length):
    """Responds with the header fields in the query, separated by `&`."""
    def script(peer):
        peer.read_body()
        fields = peer.request.target.partition('?')[2].replace('%20', ' ').replace('&', '\r\n')
        peer.send(f'{OK}Content-Length: {length}\r\n{fields}' + ('\r\n' if fields else '') + '\r\n' + 'x' * length)
        return True
    return script


SCRIPTS = {
    '/file': sends('/protected/one.txt'),
    '/kept': sends('/protected/one.txt', 'Content-Type: application/x-own\r\nContent-Disposition: attachment\r\n'
                                         'Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nCache-Control: private\r\nX-Other: no\r\n'),
    '/lost': sends('/lost/nothing.txt', 'Content-Type: application/x-own\r\n'),
    '/denied': sends('/protected/one.txt', 'Content-Type: application/x-own\r\n', '403 Forbidden'),
    '/escaped': sends('/protected/%6fne.txt?x=1'),
    '/named': sends('@named'),
    '/missing': sends('/protected/nothing.txt', 'Content-Type: application/x-own\r\n'),
    '/climbs': sends('/protected/../../etc/passwd'),
    '/elsewhere': sends('http://example.com/one.txt'),
    '/ignored': sends('/protected/one.txt'),
    '/loop': sends('/loop'),
    '/echo_method': lambda peer: peer.read_body() is not None and not peer.send(OK + f'Content-Length: {len(peer.request.method)}\r\n\r\n{peer.request.method}'),
    '/method': sends('/echo_method'),
    '/type': responds_with(1),
    '/rate': responds_with(300),
    '/rated-file': sends('/protected/one.txt', 'X-Accel-Limit-Rate: 2000\r\nContent-Type: text/x\r\nX-Accel-Charset: koi8-r\r\n'),
}


@pytest.fixture(scope='module')
def upstream():
    made = Upstream(SCRIPTS)
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def served(launch, loop, transport, upstream, site, new_directory):
    to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}
    return launch(loop, transport, server={'location': {
        '/': to, '/protected/': {'internal': True, 'alias': f'{site}/'}, '@named': {'return': '200 named'},
        '/lost/': {'internal': True, 'alias': f'{site}/', 'error_page': '404 =200 /page'}, '/page': {'return': '200 page'},
        '/ignored': {**to, 'proxy_ignore_headers': 'X-Accel-Redirect'},
        '/ignoring/': {'proxy_pass': to['proxy_pass'] + '/', 'proxy_ignore_headers': ['X-Accel-Charset', 'X-Accel-Limit-Rate'], 'limit_rate': '9k'},
        '/passing/': {'proxy_pass': to['proxy_pass'] + '/', 'proxy_pass_header': 'X-Accel-Charset'},
        '/charset/': {'proxy_pass': to['proxy_pass'] + '/', 'charset': 'iso-8859-1', 'expires': '$by_type'},
        '/charset-off/': {'proxy_pass': to['proxy_pass'] + '/', 'charset': 'off'},
        '/charset-kept/': {'proxy_pass': to['proxy_pass'] + '/', 'charset': 'utf-8', 'proxy_cache': 'one', 'proxy_cache_valid': '60s'},
        '/limited/': {'proxy_pass': to['proxy_pass'] + '/', 'limit_rate': '9k'},
        '/kept/': {'proxy_pass': to['proxy_pass'] + '/', 'proxy_cache': 'one', 'proxy_cache_valid': '60s', 'add_header': 'X-Place kept'}}},
        http={'proxy_cache_path': {'path': str(new_directory()), 'keys_zone': 'one:1m'}, 'map': {'$sent_http_content_type $by_type': {'text/html': '1h', 'default': 'off'}},
              'log_format': {'proof': '$request_uri $status $limit_rate'}})


@pytest.fixture
def client(served):
    made = served.connect()
    yield made
    made.close()


def test_x_accel_redirect_sends_a_file(client):
    direct = client.get('/protected/one.txt')
    assert direct.status == 404        # the location is internal
    response = client.get('/file')
    assert response.status == 200 and response.body == b'one\n'
    assert 'x-accel-redirect' not in response.headers and response.headers['content-type'].startswith('text/plain')
    part = client.fetch('GET', '/file', [('Range', 'bytes=1-2')])
    assert part.status == 206 and part.body == b'ne'
    assert client.fetch('GET', '/file', [('If-None-Match', response.headers['etag'])]).status == 304
    head = client.fetch('HEAD', '/file')
    assert head.status == 200 and head.headers['content-length'] == '4'


def test_upstream_fields_are_kept(client):
    response = client.get('/kept')
    assert response.body == b'one\n' and response.headers['content-type'] == 'application/x-own'
    assert response.headers['content-disposition'] == 'attachment' and response.headers['set-cookie'] == 'a=1, b=2'
    assert response.headers['cache-control'] == 'private' and 'x-other' not in response.headers and 'etag' in response.headers


def test_content_type_of_other_responses(client):
    """The Content-Type of the upstream response does not apply to multiple ranges, a 304, or an error page."""
    etag = client.get('/kept').headers['etag']
    parts = client.fetch('GET', '/kept', [('Range', 'bytes=0-0,2-2')])
    assert parts.status == 206 and parts.headers['content-type'].startswith('multipart/byteranges; boundary=')
    assert parts.headers['content-disposition'] == 'attachment'
    same = client.fetch('GET', '/kept', [('If-None-Match', etag)])
    assert same.status == 304 and 'content-type' not in same.headers and same.headers['cache-control'] == 'private'
    page = client.get('/lost')
    assert (page.status, page.body) == (200, b'page') and page.headers['content-type'].startswith('text/plain')


@pytest.mark.parametrize('path, status, body', [
    ('/denied', 200, b'one\n'), ('/escaped', 200, b'one\n'), ('/named', 200, b'named'), ('/missing', 404, None), ('/climbs', 500, None),
    ('/elsewhere', 500, None), ('/ignored', 200, b'not this\n'), ('/loop', 500, None)])
def test_x_accel_redirect_targets_are_served_or_rejected(client, path, status, body):
    response = client.get(path)
    assert response.status == status and (body is None or response.body == body)
    if status >= 400:
        assert response.headers['content-type'].startswith('text/html')
    assert client.get('/file').body == b'one\n'


def test_redirected_request_is_a_get(client, upstream):
    assert client.fetch('POST', '/method', body=b'x' * 1000).body == b'GET'
    assert upstream.last().header('content-length') in (None, '0')
    assert client.fetch('POST', '/file', body=b'x').body == b'one\n'


def test_head_with_cache_convert_head(client):
    """With proxy_cache_convert_head the upstream request is a GET, but the target of X-Accel-Redirect gets the client's HEAD."""
    for method in ('GET', 'HEAD'):
        response = client.fetch(method, '/kept/file')
        assert (response.status, response.headers['content-length']) == (200, '4')
        assert 'x-place' not in response.headers
    assert client.fetch('HEAD', '/kept/named').status == client.get('/kept/named').status == 200
    assert client.fetch('HEAD', '/kept/method').headers['content-length'] == str(len('HEAD'))


@pytest.mark.parametrize('path, type', [
    ('/type?Content-Type: text/html&X-Accel-Charset: koi8-r', 'text/html; charset=koi8-r'),
    ('/type?Content-Type: application/json;a=b&X-Accel-Charset: utf-8', 'application/json;a=b; charset=utf-8'),
    ('/type?Content-Type: text/html; Charset=utf-8&X-Accel-Charset: koi8-r', 'text/html; Charset=utf-8'),
    ('/type?X-Accel-Charset: koi8-r', None),
    ('/type?Content-Type: text/html&X-Accel-Charset: a b', 'text/html'),
    ('/type?Content-Type: text/html&X-Accel-Charset:', 'text/html'),
    ('/ignoring/type?Content-Type: text/html&X-Accel-Charset: koi8-r', 'text/html'),
    ('/passing/type?Content-Type: text/html&X-Accel-Charset: koi8-r', 'text/html; charset=koi8-r'),
    ('/rated-file', 'text/x; charset=koi8-r'),
    ('/type?Content-Type: text/html', 'text/html'),     # the default of `charset` is for responses of this server
    ('/charset/type?Content-Type: text/html', 'text/html; charset=iso-8859-1'),
    ('/charset/type?Content-Type: text/html; charset=utf-8', 'text/html; charset=utf-8'),
    ('/charset/type?Content-Type: application/json', 'application/json'),
    ('/charset/type?Content-Type: text/html&X-Accel-Charset: koi8-r', 'text/html; charset=koi8-r'),
    ('/charset/rated-file', 'text/x; charset=koi8-r'),
    ('/charset-off/type?Content-Type: text/html', 'text/html'),
])
def test_x_accel_charset_sets_the_charset(client, path, type):
    response = client.get(path.replace(' ', '%20'))
    assert response.status == 200 and response.headers.get('content-type') == type
    assert ('x-accel-charset' in response.headers) == path.startswith('/passing/')


def test_variables_see_content_type_without_charset(client):
    for path, age in (('/charset/type?Content-Type:%20text/html', 'max-age=3600'), ('/charset/type?Content-Type:%20text/x', None)):
        assert client.get(path).headers.get('cache-control') == age


def test_cached_response_has_one_charset(client):
    for _ in range(2):
        assert client.get('/charset-kept/type?Content-Type:%20text/html').headers['content-type'] == 'text/html; charset=utf-8'


@pytest.mark.parametrize('path, rate', [
    ('/rate?X-Accel-Limit-Rate: 2000', 2000), ('/rate?X-Accel-Limit-Rate: 2k', 0), ('/rate?X-Accel-Limit-Rate: -1', 0),
    ('/rate?X-Accel-Limit-Rate: 0', 0), ('/rate', 0), ('/limited/rate', 9216), ('/limited/rate?X-Accel-Limit-Rate: 2000', 2000),
    ('/limited/rate?X-Accel-Limit-Rate: 0', 0), ('/ignoring/rate?X-Accel-Limit-Rate: 2000', 9216), ('/rated-file', 2000)])
def test_x_accel_limit_rate_sets_the_rate(served, client, path, rate):
    path = path.replace(' ', '%20')
    response = client.get(path)
    assert response.status == 200 and len(response.body) in (300, 4) and 'x-accel-limit-rate' not in response.headers
    wait_for(lambda: f'{path} 200 {rate}\n' in server_kit.read_text(served.server.access_path), 'the access log')


def test_x_accel_fields_apply_to_cached_responses(served, client):
    path = '/kept/type?Content-Type:%20text/html&X-Accel-Charset:%20koi8-r&X-Accel-Limit-Rate:%202000'
    for _ in range(2):
        assert client.get(path).headers['content-type'] == 'text/html; charset=koi8-r'
    wait_for(lambda: server_kit.read_text(served.server.access_path).count(f'{path} 200 2000\n') == 2, 'the access log')
