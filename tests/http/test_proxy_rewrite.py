"""Changes by the reverse proxy: Location, cookies, errors, and the method of a request."""
import subprocess

import pytest
from kit import server as server_kit
from kit.upstream import Upstream


def redirects(peer):
    to = peer.request.target.split('?', 1)[1].replace('SELF', f'127.0.0.1:{peer.upstream.port}').replace('%09', '\t')
    peer.send(f'HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n')
    return True


def sends_cookies(peer):
    cookies = peer.request.target.split('?', 1)[1].replace('%20', ' ').split('|')
    peer.send('HTTP/1.1 200 OK\r\n' + ''.join(f'Set-Cookie: {cookie}\r\n' for cookie in cookies) + 'Content-Length: 0\r\n\r\n')
    return True


def fails(peer):
    peer.read_body()
    status = peer.request.target.split('?', 1)[1]
    peer.send(f'HTTP/1.1 {status} Failed\r\nWWW-Authenticate: Basic realm="x"\r\nX-Own: 1\r\nContent-Length: 4\r\n\r\nown\n')
    return True


def sends_required_fields(peer):
    peer.read_body()
    status = peer.request.target.split('?', 1)[1]
    peer.send(f'HTTP/1.1 {status} Failed\r\nWWW-Authenticate: Basic realm="x"\r\nWWW-Authenticate: Bearer\r\nRetry-After: 7\r\nAllow: PUT\r\n'
              'X-Own: 1\r\nContent-Length: 4\r\n\r\nown\n')
    return True


@pytest.fixture(scope='module')
def upstream():
    made = Upstream({'/sends_required_fields': sends_required_fields, '/redirects': redirects, '/sends_cookies': sends_cookies, '/fails': fails})
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def client(launch, loop, transport, upstream):
    to = f'http://127.0.0.1:{upstream.port}'
    pairs = ['http://one.example/ /first/', 'http://four.example/ /', 'http://five.example/ //cdn.example/', 'default', 'http://$arg_old/ http://$host/new/', 'http://two.example/ /never/', 'off', '/off/ /never/']
    cookies = {'proxy_cookie_domain': ['one.example $host', '.two.example .second.example', 'off', 'three.example x'],
               'proxy_cookie_path': ['/app/ /', '/$host/ /q/'],
               'proxy_cookie_flags': ['a secure httponly samesite=strict', 'b nosecure nohttponly nosamesite', 'c samesite=lax']}
    locations = {'/pairs/': {'proxy_pass': to + '/', 'proxy_redirect': pairs}, '/off/': {'proxy_pass': to + '/', 'proxy_redirect': False},
                 '/cookies/': {'proxy_pass': to + '/', **cookies}, '/plain/': {'proxy_pass': to + '/'},
                 '/caught/': {'proxy_pass': to + '/', 'proxy_intercept_errors': True, 'error_page': ['404 405 429 503 /one.txt', '401 /one.txt', '500 =200 @other']},
                 '/passed/': {'proxy_pass': to + '/', 'error_page': '404 /one.txt'},
                 '@other': {'return': '200 other'}, '/one.txt': {}, '/put/': {'proxy_pass': to, 'proxy_method': 'PUT'},
                 '/head/': {'proxy_pass': to, 'proxy_method': 'HEAD'}, '/get/': {'proxy_pass': to, 'proxy_method': 'GET'},
                 '/made/': {'proxy_pass': to, 'proxy_method': '$arg_method'}}
    made = launch(loop, transport, server={'location': locations}).connect()
    yield made
    made.close()


@pytest.mark.parametrize('location, here', [
    ('http://one.example/a', '/first/a'),
    ('http://SELF/a?b', '/pairs/a?b'),
    ('http://old/a&old=old', 'http://localhost/new/a&old=old'),
    ('http://two.example/a', '/never/a'),
    ('/off/a', '/off/a'),
    ('http://three.example/', 'http://three.example/'),
    ('http://four.example//evil.example/', '/evil.example/'),
    ('http://four.example/\\evil.example/', '\\evil.example/'),
    ('http://four.example/\\/evil.example/', '/evil.example/'),
    ('http://four.example/%09/evil.example/', '/evil.example/'),
    ('http://five.example/a', '//cdn.example/a'),
])
def test_proxy_redirect_rewrites_location(client, upstream, location, here):
    assert client.get('/pairs/redirects?' + location).headers['location'] == here
    assert client.get('/off/redirects?' + location).headers['location'] == location.replace('SELF', f'127.0.0.1:{upstream.port}').replace('%09', '\t')


@pytest.mark.parametrize('output, passed', [
    ('x=1', 'x=1'),
    ('x=1;%20Domain=one.example', 'x=1; Domain=localhost'),
    ('x=1;%20domain=.ONE.example;%20Path=/other', 'x=1; domain=localhost; Path=/other'),
    ('x=1;%20Domain=two.example;%20Secure', 'x=1; Domain=second.example; Secure'),
    ('x=1;%20Domain=three.example', 'x=1; Domain=three.example'),
    ('x=1;%20Domain=sub.one.example', 'x=1; Domain=sub.one.example'),
    ('x=1;%20Path=/app/deep', 'x=1; Path=/deep'),
    ('x=1;%20Path=/ap', 'x=1; Path=/ap'),
    ('x=1;%20Path=/localhost/deep', 'x=1; Path=/q/deep'),
    ('a=1', 'a=1; Secure; HttpOnly; SameSite=Strict'),
    ('a=1;%20SameSite=None;%20secure;%20Max-Age=5', 'a=1; Max-Age=5; Secure; HttpOnly; SameSite=Strict'),
    ('b=1;%20Secure;%20HttpOnly;%20SameSite=Lax;%20Path=/app/', 'b=1; Path=/'),
    ('c=a=b;%20Secure', 'c=a=b; Secure; SameSite=Lax'),
])
def test_proxy_cookie_directives_rewrite_cookies(client, output, passed):
    response = client.get('/cookies/sends_cookies?' + output + '|z=0')
    assert [value for name, value in response.lines if name.lower() == 'set-cookie'] == [passed, 'z=0']
    response = client.get('/plain/sends_cookies?' + output)
    assert [value for name, value in response.lines if name.lower() == 'set-cookie'] == [output.replace('%20', ' ')]


def test_proxy_intercept_errors_requires_an_error_page(client, upstream):
    for status in (404, 503):
        response = client.get(f'/caught/fails?{status}')
        assert response.status == status and response.body == b'one\n' and 'x-own' not in response.headers
    response = client.get('/caught/fails?401')
    assert response.status == 401 and response.body == b'one\n' and response.headers['www-authenticate'] == 'Basic realm="x"'
    response = client.get('/caught/fails?500')
    assert response.status == 200 and response.body == b'other'
    response = client.get('/caught/fails?502')
    assert response.status == 502 and response.body == b'own\n' and response.headers['x-own'] == '1'
    response = client.get('/passed/fails?404')
    assert response.status == 404 and response.body == b'own\n'
    assert client.fetch('POST', '/caught/fails?404', body=b'x' * 1000).body == b'one\n'
    assert client.alive()


@pytest.mark.parametrize('status, stored', [(401, ['www-authenticate', 'retry-after']), (405, ['allow', 'retry-after']), (503, ['retry-after']),
                                          (429, ['retry-after']), (404, ['retry-after'])])
def test_intercepted_error_retains_required_fields(client, status, stored):
    response = client.get(f'/caught/sends_required_fields?{status}')
    expected = {'www-authenticate': 'Basic realm="x", Bearer', 'retry-after': '7', 'allow': 'PUT'}
    assert response.status == status and response.body == b'one\n' and 'x-own' not in response.headers
    assert {name: response.headers.get(name) for name in expected} == {name: expected[name] if name in stored else None for name in expected}


def test_proxy_method_replaces_the_method(client, upstream):
    assert client.fetch('POST', '/put/x', body=b'12345').status == 200
    assert upstream.last().method == 'PUT' and upstream.last().body == b'12345'
    response = client.get('/head/x')
    assert upstream.last().method == 'HEAD' and response.status == 200 and response.body == b''
    response = client.fetch('HEAD', '/get/x')
    assert upstream.last().method == 'GET' and response.headers['content-length'] == str(len('one GET /get/x\n'))
    assert client.get('/made/x?method=DELETE').status == 200 and upstream.last().method == 'DELETE'
    before = len(upstream.requests)
    assert client.get('/made/x').status == 500 and client.get('/made/x?method=a@b').status == 500
    assert len(upstream.requests) == before
    assert client.alive()


@pytest.mark.parametrize('line, output', [
    ('proxy_redirect: a', 'takes off, default'),
    ('proxy_redirect: ~^http /', 'regular expression'),
    ('proxy_cookie_path: /a', 'a text and its replacement'),
    ('proxy_cookie_flags: a', 'the name of a cookie'),
    ('proxy_cookie_flags: a secret', 'not a cookie flag'),
])
def test_invalid_configurations_are_rejected(tmp_path, line, output):
    (tmp_path / 'a.yaml').write_text(f'http:\n  server:\n    listen: 127.0.0.1:{server_kit.free_port()}\n    {line}\n')
    done = subprocess.run([server_kit.SLUICE, '-t', '-c', str(tmp_path / 'a.yaml')], capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and output in done.stdout + done.stderr
