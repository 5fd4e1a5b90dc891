"""Paths with ".." that would lead out of the upstream path in the configuration."""
import pytest
from kit.upstream import Upstream
from test_fastcgi import Application, end, out, GOOD


def redirects(peer):
    peer.read_body()
    place = peer.request.target.split('?', 1)[1]
    peer.send(f'HTTP/1.1 200 OK\r\nX-Accel-Redirect: {place}\r\nContent-Length: 0\r\n\r\n')
    return True


@pytest.fixture(scope='module')
def upstream():
    made = Upstream({'/redirects': redirects})
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def application(new_directory):
    made = Application(str(new_directory() / 'app.sock'))
    made.path = made.listener.getsockname()
    yield made
    made.listener.close()


@pytest.fixture
def client(launch, loop, transport, upstream, application):
    to = f'http://127.0.0.1:{upstream.port}'
    group = {'back': {'server': f'127.0.0.1:{upstream.port}'}}
    locations = {
        '/api': {'proxy_pass': to + '/v1/'}, '/group': {'proxy_pass': 'http://back/v1/'}, '/glued': {'proxy_pass': to + '/v1'},
        '/dot': {'proxy_pass': to + '/v1/.'}, '/good/': {'proxy_pass': to + '/v1/'}, '/raw': {'proxy_pass': to},
        '/argument': {'proxy_pass': to + '/v1/$arg_f'}, '/whole': {'proxy_pass': to + '/v1$request_uri'},
        '~ ^/regex(.*)$': {'proxy_pass': to + '/v1/$1'}, '~ ^/host/(.*)$': {'proxy_pass': f'http://$server_addr:{upstream.port}/v1/$arg_f/v2'},
        '/rewritten': {'rewrite': '^/rewritten(.*)$ /v1/$1 break', 'proxy_pass': to},
        '/moved': {'rewrite': '^/moved(.*)$ /raw/$1 last'},
        '/tried': {'try_files': ['/nothing', '/raw/$arg_f']}, '/seen': {'try_files': ['/folder/$arg_f', '=404']},
        '/page': {'error_page': '403 /raw/$arg_f', 'return': 403},
        '/auth': {'auth_request': '/raw/$arg_f', 'proxy_pass': to}, '/mirrored': {'mirror': '/raw/$arg_f', 'return': '200 x'},
        '/redirects': {'proxy_pass': to}, '/inside/': {'internal': True, 'proxy_pass': to}, '/elsewhere/': {'internal': True, 'proxy_pass': to},
        '~ ^/script(.*\\.php)$': {'fastcgi_pass': f'unix:{application.path}', 'fastcgi_param': 'SCRIPT_FILENAME /srv/app/$1'}}
    served = launch(loop, transport, server={'location': locations}, http={'upstream': group})
    made = served.connect()
    yield made
    made.close()


CLIMBING = [
    '/api../secret', '/api%2e%2e/secret', '/api%2E./secret', '/api..%2fsecret', '/api..', '/api..;/secret', '/api..%5csecret', '/api../../etc',
    '/group../secret', '/group..%2Fsecret', '/dot./secret', '/dot%2e/secret', '/argument?f=../secret', '/argument?f=%2e%2e/secret',
    '/argument?f=..%2fsecret', '/argument?f=a/../../secret', '/argument?f=..', '/regex../secret', '/regex%2e%2e/secret', '/host/x?f=..',
    '/rewritten../secret', '/rewritten%2e%2e/secret', '/moved../secret', '/tried?f=../secret', '/seen?f=../one.txt', '/auth?f=../secret',
    '/script../x.php', '/script%2e%2e/x.php']


@pytest.mark.parametrize('target', CLIMBING)
def test_path_traversal_is_not_found(client, upstream, application, target):
    before = len(upstream.requests), len(application.requests)
    assert client.get(target).status == 404
    assert (len(upstream.requests), len(application.requests)) == before


@pytest.mark.parametrize('target, requests', [
    ('/api/x', '/v1//x'), ('/apix', '/v1/x'), ('/api.../x', '/v1/.../x'), ('/api..x', '/v1/..x'), ('/glued../x', '/v1../x'), ('/dot/x', '/v1/./x'),
    ('/good/../good/x', '/v1/x'), ('/good/..x', '/v1/..x'), ('/good/%252e%252e/x', '/v1/%252e%252e/x'), ('/good/x?f=../..', '/v1/x?f=../..'),
    ('/raw/../raw/..%2fraw/x', '/raw/../raw/..%2fraw/x'), ('/argument?f=a/../b', '/v1/a/../b'), ('/whole/../whole/x', '/v1/whole/../whole/x'),
    ('/whole/x?f=../../..', '/v1/whole/x?f=../../..'), ('/regex/x', '/v1//x'), ('/host/x?f=y', '/v1/y/v2'), ('/rewritten/x', '/v1/x'),
    ('/moved/x', '/raw/x'), ('/tried?f=x', '/raw/x'), ('/auth?f=x', '/auth?f=x')])
def test_paths_inside_are_passed_on(client, target, requests):
    response = client.get(target)
    assert (response.status, response.body.decode()) == (200, f'one GET {requests}\n')


def test_error_page_path_traversal(client, upstream):
    """The error status stays, without the error page."""
    before = len(upstream.requests)
    response = client.get('/page?f=../secret')
    assert response.status == 403 and b'Forbidden' in response.body and len(upstream.requests) == before
    assert client.get('/page?f=x').body == b'one GET /raw/x\n'


def test_mirror_path_traversal(client, upstream):
    """No mirrored request has a path outside the configured one; the request itself gets its response."""
    assert client.get('/mirrored?f=../secret').body == b'x'
    assert client.get('/raw/after').status == 200
    assert not [request for request in upstream.requests if 'secret' in request.target]


@pytest.mark.parametrize('place, status, body', [
    ('/inside/x', 200, b'one GET /inside/x\n'), ('/inside/../elsewhere/x', 500, None), ('/inside/%2e%2e/elsewhere/x', 500, None),
    ('/inside/..%2felsewhere/x', 500, None), ('/inside/..x', 200, b'one GET /inside/..x\n')])
def test_x_accel_redirect_path(client, place, status, body):
    """X-Accel-Redirect with a path from a client cannot select a file outside the directory."""
    response = client.get('/redirects?' + place)
    assert response.status == status and (body is None or response.body == body)


def test_fastcgi_script_path_traversal(client, application):
    application.responses['/script/x.php'] = out(GOOD + b'x') + out(b'') + end()
    assert client.get('/script/x.php').status == 200
    assert application.requests[-1].params['SCRIPT_FILENAME'] == '/srv/app//x.php'
