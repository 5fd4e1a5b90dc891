"""The files of conf/examples about upstream servers, and about clients that are handled differently; see test_examples.py."""
import base64
import json
import re
import ssl
import struct
import subprocess
import time

import pytest

from kit import examples as examples_kit, http2, server as server_kit, site as site_kit
from kit.examples import OTHER, PAGE, TIMEOUT, echo, make_response, redirect
from kit.fastcgi import GOOD, end, out
from kit.h2_upstream import H2Upstream
from kit.lifetime import wait_for

pytestmark = pytest.mark.http1('one protocol shows the effect of a configuration')
DONE = [('grpc-status', '0')]


@pytest.fixture
def run(request, tmp_path):
    yield from examples_kit.run_of_test(request, tmp_path)


def log_of_two_requests(path):
    """The JSON lines of two requests, that with the greater URI first: workers write them in any order."""
    wait_for(lambda: server_kit.read_text(path).count('\n') == 2, 'two lines in the log')
    return sorted(map(json.loads, path.read_text(encoding='utf-8').splitlines()), key=lambda line: line['uri'], reverse=True)


def test_reverse_proxy(run):
    app, *api = [run.upstream({'/live/chat': echo}, name=name) for name in ('app', 'one', 'two')]
    spare = run.upstream(name='spare', path=str(run.folder / 'spare.sock'))
    run.start(APP=app, API_PORT=api[0].port, API_PORT_2=api[1].port, API_SPARE=spare.path)
    assert redirect(run.fetch('/x', tls=False)) == (308, f'https://localhost:{run.https}/x')
    assert run.fetch('/page').body == b'app GET /page\n' and app.last().header('host') == 'localhost'
    assert {run.fetch('/api/users').body.split()[0] for _ in range(12)} == {b'one', b'two'} and api[0].last().target == '/users'
    assert run.websocket('/live/chat') and run.fetch('/upload/x', method='PUT', body=bytes(2 << 20)).status == 200
    api[0].stop()
    assert {run.fetch('/api/users').body for _ in range(6)} == {b'two GET /users\n'}
    api[1].stop()
    assert run.fetch('/api/users').body == b'spare GET /users\n'
    assert json.loads(run.log('/page'))['status'] == 200


def call(stream, event):
    if event == 'end':
        stream.respond(200, [('content-type', 'application/grpc')], end=False)
        stream.send(bytes(stream.body), trailers=DONE)


def test_grpc(run):
    paths = ('/shop.Shop/Buy', '/chat.Chat/Talk')
    servers = [H2Upstream({path: call for path in paths}) for _ in range(3)]
    run.start(GRPC=servers[0], GRPC_2=servers[1], CHAT=servers[2])
    client = http2.connect(run.https, 'user', TIMEOUT)
    message = struct.pack('!BI', 0, 2) + b'hi'
    for path in (paths[0],) * 4 + (paths[1],):
        response = client.fetch(path, method='POST', headers=[('content-type', 'application/grpc'), ('te', 'trailers')], body=message)
        assert (response.status, bytes(response.body), response.trailers) == (200, message, DONE)
    client.close()
    counts = [len(server.requests) for server in servers]
    assert counts[0] + counts[1] == 4 and counts[2] == 1 and servers[2].last().header(':path') == paths[1]
    for server in servers:
        server.stop()
        assert server.faults == []


def front_controller(run, scheme):
    """PHP's view of a site: the front controller for paths without a file, existing scripts only, and none among the uploads."""
    php = run.fastcgi()
    for name in ('index.php', 'page.php', 'uploads/evil.php', 'wp-content/uploads/evil.php', 'wp-login.php'):
        run.file(f'www/{name}', '<?php')
    run.file('www/style.css', 'p{}')
    for script in ('/index.php', '/page.php', '/wp-login.php'):
        php.responses[script] = out(GOOD + script.encode()) + end()
    run.start(run.http, PHP=f'unix:{php.path}')
    tls = scheme == 'https'
    assert run.fetch('/2024/hello?x=1', tls=tls).body == b'/index.php' and php.requests[-1].params['QUERY_STRING'] == 'x=1'
    assert php.requests[-1].params['REQUEST_URI'] == '/2024/hello?x=1' and php.requests[-1].params['DOCUMENT_ROOT'] == str(run.site)
    assert run.fetch('/page.php', tls=tls).body == b'/page.php' and run.fetch('/style.css', tls=tls).body == b'p{}'
    before = len(php.requests)
    assert [run.fetch(target, tls=tls).status for target in ('/none.php', '/style.css/x.php')] == [404, 404] and len(php.requests) == before
    return php


def test_php(run):
    php = front_controller(run, 'http')
    before = len(php.requests)
    assert run.fetch('/uploads/evil.php', tls=False).body == b'<?php' and len(php.requests) == before


def test_wordpress(run):
    php = front_controller(run, 'https')
    assert redirect(run.fetch('/x', tls=False)) == (308, f'https://localhost:{run.https}/x')
    assert run.fetch('/style.css').headers['cache-control'] == 'max-age=2592000' and php.requests[-1].params['HTTPS'] == 'on'
    before = len(php.requests)
    assert [run.fetch(target).status for target in ('/wp-content/uploads/evil.php', '/xmlrpc.php')] == [403, 403] and len(php.requests) == before
    logins = [run.fetch('/wp-login.php', method='POST', body=b'log=a') for _ in range(7)]
    assert [login.status for login in logins] == [200] * 6 + [429] and int(logins[-1].headers['retry-after']) > 0


def test_cache(run):
    app = run.upstream({'/page': make_response(fields=['Cache-Control: max-age=600']), '/short': make_response(fields=['Cache-Control: max-age=1']),
                        '/private/x': make_response(fields=['Cache-Control: max-age=600'])})
    run.start(run.http, APP=app, CACHE=run.folder / 'cache')
    def states(target, method='GET'):
        return run.fetch(target, method, tls=False).headers.get('x-cache')
    assert [states('/page') for _ in range(3)] == ['MISS', 'HIT', 'HIT'] and len(app.requests) == 1
    assert run.fetch('/page', 'PURGE', tls=False).status == 204 and states('/page') == 'MISS'
    assert run.fetch('/page', 'PURGE', tls=False, source=OTHER).status == 403 and states('/page') == 'HIT'
    assert [states('/private/x') for _ in range(2)] == [None, None] and len(app.requests) == 4
    assert states('/short') == 'MISS'
    app.stop()
    wait_for(lambda: states('/short') != 'HIT', 'the end of max-age')
    stale = run.fetch('/short', tls=False)
    assert (stale.status, stale.body) == (200, b'answer') and stale.headers['x-cache'] in ('STALE', 'UPDATING')
    assert run.log('PURGE /page')


def test_stream(run):
    port, certificate = server_kit.free_port(), site_kit.make_certificate(str(run.folder))
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trusted.load_cert_chain(*certificate)
    databases = [run.upstream(name=name) for name in ('first', 'second')]
    shop = run.upstream(name='shop', tls=trusted)
    other = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    other.load_cert_chain(*certificate)
    blog = run.upstream(name='blog', tls=other, path=str(run.folder / 'blog.sock'))
    run.start(port, run.https, PORT=port, TLS_PORT=run.https, DATABASE_PORT=databases[0].port, DATABASE_PORT_2=databases[1].port,
              SHOP_PORT=shop.port, BLOG=f'unix:{blog.path}')
    assert run.fetch('/q', port=port, tls=False).body == b'first GET /q\n'
    databases[0].stop()
    assert run.fetch('/q', port=port, tls=False).body == b'second GET /q\n'
    for host, name in (('shop.example.org', b'shop'), ('blog.example.org', b'blog'), ('other.test', b'shop')):
        assert run.fetch('/q', host=host).body == name + b' GET /q\n'
    assert set(blog.server_names) == {'blog.example.org'}       # the TLS of the client, not decrypted


def test_node(run):
    run.file('www/app.js', 'file')
    app = run.upstream({'/socket.io/': echo})
    run.start(APP=app)
    assert redirect(run.fetch('/x', tls=False)) == (308, f'https://localhost:{run.https}/x')
    assert run.fetch('/app.js').body == b'file' and app.requests == []
    assert run.fetch('/orders', method='POST', body=b'x').body == b'one POST /orders\n'
    seen = app.last()
    assert [seen.header(name) for name in ('host', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host')] == \
        ['localhost', '127.0.0.1', 'https', 'localhost']
    assert run.websocket('/socket.io/?transport=websocket')


def test_python(run):
    run.file('www/style.0123.css', 'p{}')
    app = run.upstream(path=str(run.folder / 'app.sock'))
    run.start(APP=f'unix:{app.path}')
    assert run.fetch('/orders?x=1').body == b'one GET /orders?x=1\n' and app.last().header('host') == 'localhost'
    assert run.fetch('/static/style.0123.css').headers['cache-control'] == 'public, max-age=31536000, immutable'
    media = run.fetch('/media/style.0123.css')
    assert (media.body, media.headers['content-disposition'], media.headers['x-content-type-options']) == (b'p{}', 'attachment', 'nosniff')
    assert run.fetch('/media/none').headers['x-content-type-options'] == 'nosniff'
    app.stop()
    down = run.fetch('/orders')
    assert (down.status, down.body) == (502, PAGE)


def test_rate_limits(run):
    with open(run.file('www/big.bin', ''), 'r+b') as stream:
        stream.truncate(200 << 20)
    run.start(APP=run.upstream(), LOCAL=OTHER)
    logins = run.repeat(6, '/login')
    assert [login.status for login in logins] == [200] * 5 + [429] and int(logins[-1].headers['retry-after']) > 0
    assert {login.status for login in run.repeat(12, '/login', source=OTHER)} == {200}
    keyed = {login.status for login in run.repeat(80, '/api/', source=OTHER, headers={'X-Api-Key': 'a'})}
    assert keyed == {200, 429} and run.fetch('/api/', source=OTHER, headers={'X-Api-Key': 'b'}).status == 200
    assert 429 in {page.status for page in run.repeat(400, '/')}
    reading = []
    for source in (None, None, None, OTHER):
        time.sleep(0.1)     # two requests of the zone "pages"
        reading.append(run.connect(source=source))
        reading[-1].send('GET /downloads/big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
        reading[-1].first = reading[-1].head()
    assert [client.first.status for client in reading] == [200, 200, 429, 200]
    assert run.log('429 - REJECTED') and run.log('429 REJECTED')


def test_canary(run):
    releases = {name: run.upstream(name=name) for name in ('stable', 'canary')}
    run.start(STABLE=releases['stable'], CANARY=releases['canary'])
    for name in releases:
        assert run.fetch(headers={'Cookie': f'a=b; release={name}'}).body == f'{name} GET /\n'.encode()
    drawn = run.repeat(250, '/', headers={'Cookie': 'release=other'})
    names = [response.body.split()[0].decode() for response in drawn]
    assert [response.headers['set-cookie'].split(';')[0] for response in drawn] == [f'release={name}' for name in names]
    assert 0 < names.count('canary') < names.count('stable')        # by chance, one of 10 million runs has no canary
    weighted = [response.body.split()[0] for response in run.repeat(40, '/weighted/')]
    assert 0 < weighted.count(b'canary') < weighted.count(b'stable')


def test_maintenance(run):
    flag = run.folder / 'maintenance.flag'
    run.start(APP=run.upstream(), FLAG=flag, STAFF=OTHER)
    def open_again():
        return run.fetch('/shop').body == b'one GET /shop\n'
    assert open_again()
    flag.touch()
    closed = wait_for(lambda: (found := run.fetch('/shop')).status == 503 and found, 'maintenance')
    assert (closed.body, closed.headers['retry-after'], closed.headers['cache-control']) == (PAGE, '600', 'no-store')
    assert run.fetch('/shop', source=OTHER).status == 200
    flag.unlink()
    wait_for(open_again, 'the end of the maintenance')


def test_json_logs(run):
    path, app = run.folder / 'access.json', run.upstream()
    run.start(APP=app, LOG=path)
    agent = 'a "quoted" \\ agent'
    page = run.fetch('/page?x="', headers={'User-Agent': agent})
    assert run.fetch('/health').body == b'ok' and run.fetch('/last').status == 200
    lines = log_of_two_requests(path)
    assert [line['uri'] for line in lines] == ['/page?x="', '/last']
    assert lines[0]['agent'] == agent and lines[0]['status'] == 200 and lines[0]['upstream'] == f'127.0.0.1:{app.port}'
    assert lines[0]['id'] == page.headers['x-request-id'] == app.requests[0].header('x-request-id')
    assert 0 <= lines[0]['seconds'] < TIMEOUT and float(lines[0]['upstream_seconds']) <= TIMEOUT


def test_tracing(run):
    path, app = run.folder / 'access.json', run.upstream()
    run.start(run.http, run.https, APP=app, LOG=path)
    trace, span = '4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'
    for tls in (True, False):
        assert run.fetch(f'/{tls}', tls=tls, headers={'traceparent': f'00-{trace}-{span}-01'}).status == 200
    lines = log_of_two_requests(path)
    public, own = (request.header('traceparent').split('-') for request in app.requests)
    assert public[1] != trace and public[3] == ('01' if re.match('0[0-3]', public[1]) else '00') and own[1] == trace and own[3] == '01'
    assert [(line['trace'], line['span'], line['parent']) for line in lines] == [(public[1], public[2], ''), (trace, own[2], span)]


def test_sign_in(run):
    hashed = subprocess.run(['openssl', 'passwd', '-5', 'open sesame'], check=True, capture_output=True, text=True).stdout
    run.file('users', f'anna:{hashed}')
    service = run.upstream({'/sign-in/auth': lambda peer: (make_response('202 Accepted', ['X-Auth-Request-User: anna'], b'') if
                                                           peer.request.header('cookie') == 'session=1' else make_response('401 Unauthorized'))(peer)})
    app = run.upstream(name='app')
    run.start(USERS=run.folder / 'users', SIGN_IN=service, APP=app, LOCAL=OTHER)
    def sign_in(password):
        return {'Authorization': 'Basic ' + base64.b64encode(f'anna:{password}'.encode()).decode()}
    denied = run.fetch('/members/')
    assert (denied.status, denied.headers['www-authenticate']) == (401, 'Basic realm="Members", charset="UTF-8"') and run.fetch().status == 200
    assert run.fetch('/members/', headers=sign_in('open')).status == 401 and run.fetch('/members/', headers=sign_in('open sesame')).body == PAGE
    assert run.fetch('/internal/').status == 401 and run.fetch('/internal/', headers=sign_in('open sesame')).status == 200
    assert run.fetch('/internal/', source=OTHER).body == PAGE and run.fetch('/members/', source=OTHER).status == 401
    assert redirect(run.fetch('/app/x?y=1')) == (302, '/sign-in/start?rd=/app/x?y=1') and app.requests == []
    assert run.fetch('/app/x', headers={'Cookie': 'session=1', 'X-User': 'root'}).body == b'app GET /app/x\n'
    assert app.last().all('x-user') == ['anna'] and run.fetch('/sign-in/start').body == b'one GET /sign-in/start\n'


def test_load_balancing(run):
    health = {}
    def healthy(name):
        return lambda peer: make_response(health.get(name, '200 OK'))(peer)
    one, two, backup = [run.upstream({'/health': healthy(name)}, name=name) for name in ('one', 'two', 'backup')]
    run.start(APP=one, APP_2=two, APP_BACKUP=backup)
    first = {}
    for response in (run.fetch() for _ in range(12)):
        first.setdefault(response.body.split()[0], response.headers['set-cookie'].split(';')[0])
    assert set(first) == {b'one', b'two'}
    for name, cookie in first.items():
        assert {run.fetch(headers={'Cookie': cookie}).body.split()[0] for _ in range(6)} == {name}
    health['one'] = '500 Internal Server Error'
    wait_for(lambda: {run.fetch(headers={'Cookie': first[b'one']}).body.split()[0] for _ in range(6)} == {b'two'}, 'the health check')
    two.stop()
    assert run.fetch('/x').body == b'backup GET /x\n'
    backup.stop()
    down = run.fetch('/x')
    assert (down.status, down.body) == (503, PAGE)


def test_behind_a_proxy(run):
    run.start(run.http, run.https, TRUSTED='127.0.0.1')
    fields = {'X-Forwarded-For': '198.51.100.7, 203.0.113.9'}
    assert run.fetch('/trusted', tls=False, headers=fields).status == 404 and run.fetch('/untrusted', tls=False, headers=fields, source=OTHER).status == 404
    assert run.log('GET /trusted').startswith('203.0.113.9 by 127.0.0.1') and run.log('GET /untrusted').startswith(f'{OTHER} by {OTHER}')
    assert redirect(run.fetch('/x', tls=False, headers={'X-Forwarded-Proto': 'http'})) == (308, 'https://localhost/x')
    assert run.fetch('/proxied', first=b'PROXY TCP4 203.0.113.5 127.0.0.1 4000 443\r\n').status == 404
    assert run.log('GET /proxied').startswith('203.0.113.5 by 127.0.0.1')
