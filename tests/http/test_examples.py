"""Each file of conf/examples runs without changes, and clients see the effect for which an administrator copies it."""
import base64
import hashlib
import json
import os
import re
import ssl
import struct
import subprocess
import time

import pytest

from kit import examples as examples_kit, http2, server as server_kit, site as site_kit
from kit.acme import TRUSTED, Pebble, namespace
from kit.authority import Authority, context as client_context
from kit.examples import OTHER, TIMEOUT, echo, make_response
from kit.fastcgi import GOOD, end, out
from kit.h2_upstream import H2Upstream
from kit.lifetime import wait_for
from kit.programs import program

pytestmark = pytest.mark.http1('one protocol shows the effect of a configuration')
CHECKS = {}
PAGE = b'the first page\n'
DONE = [('grpc-status', '0')]


def example(function):
    """Registers the check of the file with the name of the function."""
    CHECKS[function.__name__.removeprefix('check_').replace('_', '-') + '.yaml'] = function
    return function


@pytest.fixture
def run(request, tmp_path):
    made = examples_kit.Example(request.param, tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize('run', examples_kit.names(), indirect=True)
def test_example(run):
    CHECKS[run.name](run)


def test_each_file_has_a_check_and_a_row():
    assert sorted(CHECKS) == examples_kit.names()
    rows = re.findall(r'^\| .* \| `([\w-]+\.yaml)` \| .* \|$', (examples_kit.FOLDER / 'README.md').read_text(encoding='utf-8'), re.M)
    assert sorted(rows) == examples_kit.names()


def log_of_two_requests(path):
    """The JSON lines of two requests, that with the greater URI first: workers write them in any order."""
    wait_for(lambda: server_kit.read_text(path).count('\n') == 2, 'two lines in the log')
    return sorted(map(json.loads, path.read_text(encoding='utf-8').splitlines()), key=lambda line: line['uri'], reverse=True)


def redirect(response):
    return response.status, response.headers['location']


@example
def check_static_site(run):
    run.file('www/assets/app.js', 'app')
    run.start()
    assert redirect(run.fetch('/x?y', tls=False)) == (308, f'https://localhost:{run.https}/x?y')
    page = run.fetch()
    assert (page.status, page.body, page.headers['cache-control'], page.headers['x-content-type-options']) == (200, PAGE, 'no-cache', 'nosniff')
    assert run.fetch('/assets/app.js').headers['cache-control'] == 'public, max-age=31536000, immutable'
    missing = run.fetch('/none')
    assert (missing.status, missing.body, missing.headers['referrer-policy']) == (404, PAGE, 'no-referrer')


@example
def check_application(run):
    run.file('www/app-0123abcd.js', 'app')
    run.file('downloads/report.pdf', 'report')
    run.start(DOWNLOADS=run.folder / 'downloads')
    assert run.fetch('/deep/link').body == PAGE and run.fetch('/', method='POST').status == 405
    assert redirect(run.fetch('/blog/2024/05')) == (301, '/archive/2024-05')
    assert 'max-age=315360000' in run.fetch('/app-0123abcd.js').headers['cache-control']
    assert run.fetch('/').headers['cache-control'] == 'no-cache' and run.fetch('/').headers['link'] == '</style.css>; rel=preload; as=style'
    assert json.loads(run.fetch('/people/anna.json').body) == {'name': 'anna'}
    cors = run.fetch('/data/x', headers={'Origin': 'https://a.example.com'})
    assert cors.headers['access-control-allow-origin'] == 'https://a.example.com'
    assert b'report.pdf' in run.fetch('/downloads/').body
    run.file('www/closed.html', 'closed')
    closed = wait_for(lambda: (found := run.fetch('/')).status == 503 and found, 'closed')
    assert closed.body == b'closed'


@example
def check_acme(run):
    program('uacme')
    pebble = Pebble(run.folder / 'authority', run.http)
    try:
        run.start(DIRECTORY=pebble.directory, STATE=run.folder / 'state', command_prefix=namespace((pebble.certificate, TRUSTED)))
        assert redirect(run.fetch('/x', tls=False, host='example.org')) == (308, 'https://example.org/x')
        wait_for(lambda: b'Pebble' in run.connect(host='www.example.org').stream.getpeercert(binary_form=True), 'a certificate', 40)
        assert run.fetch(host='www.example.org').body == PAGE
    finally:
        pebble.stop()


@example
def check_acme_wildcard(run):
    run.start(DIRECTORY='https://localhost:1/dir', STATE=run.folder / 'state', PROVIDER='exec', EXEC_PATH='/none')
    for host in ('example.org', 'www.example.org'):
        assert run.fetch(host=host).body == PAGE
    assert wait_for(lambda: (run.folder / 'state/certificates/example.org.state').exists(), 'an attempt', 60)


@example
def check_many_sites(run):
    run.start()
    for host in ('example.test', 'a.example.test'):
        assert run.fetch(host=host).headers['x-frame-options'] == 'DENY' and run.fetch(host=host, tls=False).status == 200
    assert redirect(run.fetch('/x', host='www.example.test')) == (301, 'https://example.test/x')
    assert run.fetch(host='other.test').status == 404 and run.fetch(host='other.test', tls=False).status == 404


@example
def check_include(run):
    run.start(run.http)
    page = run.fetch(host='docs.example.test', tls=False)
    assert (page.status, page.headers['content-type']) == (200, 'text/html; charset=utf-8')
    assert [run.fetch(target, host='files.example.test', tls=False).status for target in ('/', '/private/x')] == [200, 403]


@example
def check_kernel_tls(run):
    content = os.urandom(200000)
    run.file('www/big.bin', content)
    kernel = os.path.exists('/proc/net/tls_stat')
    if not kernel:
        with pytest.raises(RuntimeError, match='kernel'):
            run.start()
    run.start(**({} if kernel else {'KTLS': 'off'}))
    assert run.fetch('/big.bin').body == content
    assert re.search(r'200 200000 TLSv1\.3 TLS_\w+ ' + ('ktls-' if kernel else 'user '), run.log('GET /big.bin'))


@example
def check_throughput(run):
    run.start(run.http, run.https, KTLS='off')
    assert run.fetch(tls=False).body == run.fetch().body == PAGE
    assert 'GET' not in run.server.output() and len(run.server.workers()) == 1


@example
def check_status(run):
    port = server_kit.free_port()
    run.start(run.https, port, STATUS_PORT=port)
    assert run.fetch().body == PAGE and run.fetch('/status').status == 404
    def fetch(target):
        return run.fetch(target, port=port, tls=False)
    assert re.search(r'^sluice_\w+(\{.*\})? \d+$', fetch('/status').body.decode(), re.M)
    assert json.loads(fetch('/status?format=json').body) and fetch('/nginx_status').body.startswith(b'Active connections:')


@example
def check_reverse_proxy(run):
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


@example
def check_grpc(run):
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


@example
def check_php(run):
    php = front_controller(run, 'http')
    before = len(php.requests)
    assert run.fetch('/uploads/evil.php', tls=False).body == b'<?php' and len(php.requests) == before


@example
def check_wordpress(run):
    php = front_controller(run, 'https')
    assert redirect(run.fetch('/x', tls=False)) == (308, f'https://localhost:{run.https}/x')
    assert run.fetch('/style.css').headers['cache-control'] == 'max-age=2592000' and php.requests[-1].params['HTTPS'] == 'on'
    before = len(php.requests)
    assert [run.fetch(target).status for target in ('/wp-content/uploads/evil.php', '/xmlrpc.php')] == [403, 403] and len(php.requests) == before
    logins = [run.fetch('/wp-login.php', method='POST', body=b'log=a') for _ in range(7)]
    assert [login.status for login in logins] == [200] * 6 + [429] and int(logins[-1].headers['retry-after']) > 0


@example
def check_cache(run):
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
    time.sleep(1.1)
    stale = run.fetch('/short', tls=False)
    assert (stale.status, stale.body) == (200, b'answer') and stale.headers['x-cache'] in ('STALE', 'UPDATING')
    assert run.log('PURGE /page')


@example
def check_stream(run):
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


@example
def check_node(run):
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


@example
def check_python(run):
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


@example
def check_rate_limits(run):
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


@example
def check_mutual_tls(run):
    authority, other = Authority(str(run.folder / 'ca')), Authority(str(run.folder / 'other'), 'other')
    app = run.upstream()
    run.start(CLIENTS_CA=authority.certificate, APP=app)
    for certificate in (None, other.client('eve')):
        refused = run.fetch(context=client_context(certificate), headers={'X-Client-Subject': 'CN=anna'})
        assert (refused.status, refused.body, app.requests) == (403, b'This site requires a client certificate.\n', [])
    anna = client_context(authority.client('anna'))
    assert run.fetch('/x', context=anna, headers={'X-Client-Subject': 'CN=root'}).status == 200
    assert app.last().all('x-client-subject') == ['CN=anna,O=Sluice Tests'] and app.last().header('x-client-serial') == '1001'
    assert run.log('"CN=anna,O=Sluice Tests" SUCCESS')
    run.server.stop()
    run.start(APP=app)      # with the placeholder
    assert run.fetch('/x', context=anna).status == 403


@example
def check_canary(run):
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


@example
def check_maintenance(run):
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


@example
def check_json_logs(run):
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


@example
def check_tracing(run):
    path, app = run.folder / 'access.json', run.upstream()
    run.start(run.http, run.https, APP=app, LOG=path)
    trace, span = '4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'
    for tls in (True, False):
        assert run.fetch(f'/{tls}', tls=tls, headers={'traceparent': f'00-{trace}-{span}-01'}).status == 200
    lines = log_of_two_requests(path)
    public, own = (request.header('traceparent').split('-') for request in app.requests)
    assert public[1] != trace and public[3] == ('01' if re.match('0[0-3]', public[1]) else '00') and own[1] == trace and own[3] == '01'
    assert [(line['trace'], line['span'], line['parent']) for line in lines] == [(public[1], public[2], ''), (trace, own[2], span)]


@example
def check_certbot(run):
    live = run.folder / 'live'
    issued = []
    for number in range(2):
        folder = run.folder / f'archive{number}'
        folder.mkdir()
        issued.append([os.path.basename(path) for path in site_kit.make_certificate(str(folder), 'example.org', names=['example.org'])])
    live.symlink_to('archive0')
    run.file('www/.well-known/acme-challenge/token', 'token.thumbprint')
    run.start(run.http, run.https, WEBROOT=run.site, TLS_CERTIFICATE=live / issued[0][0], TLS_KEY=live / issued[0][1])
    def fetch(target):
        return run.fetch(target, tls=False, host='example.org')
    challenge = fetch('/.well-known/acme-challenge/token')
    assert (challenge.status, challenge.body, challenge.headers['content-type']) == (200, b'token.thumbprint', 'text/plain; charset=utf-8')
    assert redirect(fetch('/x?y')) == (308, 'https://example.org/x?y') and fetch('/.well-known/acme-challenge/none').status == 404
    assert run.fetch(host='example.org').headers['strict-transport-security'] == 'max-age=86400'
    def served():
        certificate = run.connect(host='example.org').stream.getpeercert(binary_form=True)
        return [number for number in range(2) if certificate == ssl.PEM_cert_to_DER_cert((run.folder / f'archive{number}' / issued[0][0]).read_text())]
    assert served() == [0]
    (run.folder / 'next').symlink_to('archive1')
    (run.folder / 'next').rename(live)
    wait_for(lambda: served() == [1], 'the renewed certificate')


@example
def check_sign_in(run):
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


@example
def check_load_balancing(run):
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


@example
def check_private_downloads(run):
    run.file('files/report.pdf', 'report')
    app = run.upstream({'/report': make_response(fields=['X-Accel-Redirect: /files/report.pdf', 'Content-Type: application/pdf'])})
    run.start(FILES=run.folder / 'files', SECRET='a secret', APP=app)
    def signed(until, secret='a secret'):
        digest = hashlib.sha256(f'{until}/signed/report.pdf {secret}'.encode()).digest()
        return run.fetch(f'/signed/report.pdf?sum={base64.urlsafe_b64encode(digest).decode().rstrip("=")}&expires={until}')
    now = int(time.time())
    assert (signed(now + 600).status, signed(now + 600).body) == (200, b'report')
    assert [signed(now - 600).status, signed(now + 600, 'change this').status, run.fetch('/signed/report.pdf').status] == [410, 403, 403]
    sent = run.fetch('/report')
    assert (sent.status, sent.body, sent.headers['cache-control']) == (200, b'report', 'private, no-store')
    assert run.fetch('/files/report.pdf').status == 404


@example
def check_behind_a_proxy(run):
    run.start(run.http, run.https, TRUSTED='127.0.0.1')
    fields = {'X-Forwarded-For': '198.51.100.7, 203.0.113.9'}
    assert run.fetch('/trusted', tls=False, headers=fields).status == 404 and run.fetch('/untrusted', tls=False, headers=fields, source=OTHER).status == 404
    assert run.log('GET /trusted').startswith('203.0.113.9 by 127.0.0.1') and run.log('GET /untrusted').startswith(f'{OTHER} by {OTHER}')
    assert redirect(run.fetch('/x', tls=False, headers={'X-Forwarded-Proto': 'http'})) == (308, 'https://localhost/x')
    assert run.fetch('/proxied', first=b'PROXY TCP4 203.0.113.5 127.0.0.1 4000 443\r\n').status == 404
    assert run.log('GET /proxied').startswith('203.0.113.5 by 127.0.0.1')


@example
def check_compression(run):
    run.file('www/style.css', 'p{}' * 1000)
    run.file('www/style.css.br', 'made before')
    big = b'{"a": 1}' * 1000
    fields = ['Content-Type: application/json']
    run.start(APP=run.upstream({'/api/x': make_response(fields=fields, body=big), '/account/x': make_response(fields=fields, body=big)}))
    def coded(target, accept):
        response = run.fetch(target, headers={'Accept-Encoding': accept})
        return response.headers.get('content-encoding'), response.body
    assert coded('/style.css', 'gzip, br') == ('br', b'made before') and coded('/style.css', 'identity') == (None, b'p{}' * 1000)
    for coding in ('br', 'zstd', 'gzip'):
        found, body = coded('/api/x', coding)
        assert found == coding and len(body) < 200
    assert coded('/account/x', 'br, gzip, zstd') == (None, big)
    assert re.search(r' 200 \d+ br$', run.log('GET /style.css'))


@example
def check_redirects(run):
    run.start(run.http, run.https)
    for options, location in (({'host': 'www.example.test', 'target': '/a?b'}, 'https://example.test/a?b'),
                              ({'host': 'shop.old.test', 'tls': False}, 'https://example.test/'),
                              ({'host': 'example.test', 'tls': False, 'target': '/a'}, 'https://example.test/a'),
                              ({'host': 'example.test', 'target': '/team.html'}, '/about/#team'),
                              ({'host': 'example.test', 'target': '/news/17.html'}, '/blog/17/'),
                              ({'host': 'example.test', 'target': '/a/b/index.html'}, '/a/b/')):
        found = run.fetch(**options)
        assert found.status in (301, 308) and found.headers['location'] == location
    assert run.fetch(host='example.test').body == PAGE and run.fetch('/shop/x', host='example.test').status == 410
