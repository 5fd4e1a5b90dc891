"""Each file of conf/examples runs without changes, and clients see the effect for which an administrator copies it. Sites, certificates and
files; test_examples_proxy.py has those about upstream servers."""
import base64
import hashlib
import json
import os
import pathlib
import re
import ssl
import time

import pytest

from kit import examples as examples_kit, server as server_kit, site as site_kit
from kit.acme import TRUSTED, Pebble, namespace
from kit.authority import Authority, context as client_context
from kit.examples import PAGE, make_response, redirect
from kit.lifetime import wait_for
from kit.programs import program

pytestmark = pytest.mark.http1('one protocol shows the effect of a configuration')


@pytest.fixture
def run(request, tmp_path):
    yield from examples_kit.run_of_test(request, tmp_path)


def test_each_file_has_a_test_and_a_row():
    folder = pathlib.Path(__file__).parent
    tests = ''.join((folder / name).read_text(encoding='utf-8') for name in ('test_examples.py', 'test_examples_proxy.py'))
    assert sorted(name.replace('_', '-') + '.yaml' for name in re.findall(r'^def test_(\w+)\(run\)', tests, re.M)) == examples_kit.names()
    rows = re.findall(r'^\| .* \| `([\w-]+\.yaml)` \| .* \|$', (examples_kit.FOLDER / 'README.md').read_text(encoding='utf-8'), re.M)
    assert sorted(rows) == examples_kit.names()


def test_static_site(run):
    run.file('www/assets/app.js', 'app')
    run.start()
    assert redirect(run.fetch('/x?y', tls=False)) == (308, f'https://localhost:{run.https}/x?y')
    page = run.fetch()
    assert (page.status, page.body, page.headers['cache-control'], page.headers['x-content-type-options']) == (200, PAGE, 'no-cache', 'nosniff')
    assert run.fetch('/assets/app.js').headers['cache-control'] == 'public, max-age=31536000, immutable'
    missing = run.fetch('/none')
    assert (missing.status, missing.body, missing.headers['referrer-policy']) == (404, PAGE, 'no-referrer')


def test_application(run):
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


def test_acme(run):
    program('uacme')
    pebble = Pebble(run.folder / 'authority', run.http)
    try:
        run.start(DIRECTORY=pebble.directory, STATE=run.folder / 'state', command_prefix=namespace((pebble.certificate, TRUSTED)))
        assert redirect(run.fetch('/x', tls=False, host='example.org')) == (308, 'https://example.org/x')
        wait_for(lambda: b'Pebble' in run.connect(host='www.example.org').stream.getpeercert(binary_form=True), 'a certificate', 40)
        assert run.fetch(host='www.example.org').body == PAGE
    finally:
        pebble.stop()


def test_acme_wildcard(run):
    run.start(DIRECTORY='https://localhost:1/dir', STATE=run.folder / 'state', PROVIDER='exec', EXEC_PATH='/none')
    for host in ('example.org', 'www.example.org'):
        assert run.fetch(host=host).body == PAGE
    assert wait_for(lambda: (run.folder / 'state/certificates/example.org.state').exists(), 'an attempt', 60)


def test_many_sites(run):
    run.start()
    for host in ('example.test', 'a.example.test'):
        assert run.fetch(host=host).headers['x-frame-options'] == 'DENY' and run.fetch(host=host, tls=False).status == 200
    assert redirect(run.fetch('/x', host='www.example.test')) == (301, 'https://example.test/x')
    assert run.fetch(host='other.test').status == 404 and run.fetch(host='other.test', tls=False).status == 404


def test_include(run):
    run.start(run.http)
    page = run.fetch(host='docs.example.test', tls=False)
    assert (page.status, page.headers['content-type']) == (200, 'text/html; charset=utf-8')
    assert [run.fetch(target, host='files.example.test', tls=False).status for target in ('/', '/private/x')] == [200, 403]


def test_kernel_tls(run):
    content = os.urandom(200000)
    run.file('www/big.bin', content)
    kernel = os.path.exists('/proc/net/tls_stat')
    if not kernel:
        with pytest.raises(RuntimeError, match='kernel'):
            run.start()
    run.start(**({} if kernel else {'KTLS': 'off'}))
    assert run.fetch('/big.bin').body == content
    assert re.search(r'200 200000 TLSv1\.3 TLS_\w+ ' + ('ktls-' if kernel else 'user '), run.log('GET /big.bin'))


def test_throughput(run):
    run.start(run.http, run.https, KTLS='off')
    assert run.fetch(tls=False).body == run.fetch().body == PAGE
    assert 'GET' not in run.server.output() and len(run.server.workers()) == 1


def test_status(run):
    port = server_kit.free_port()
    run.start(run.https, port, STATUS_PORT=port)
    assert run.fetch().body == PAGE and run.fetch('/status').status == 404
    def fetch(target):
        return run.fetch(target, port=port, tls=False)
    assert re.search(r'^sluice_\w+(\{.*\})? \d+$', fetch('/status').body.decode(), re.M)
    assert json.loads(fetch('/status?format=json').body) and fetch('/nginx_status').body.startswith(b'Active connections:')


def test_mutual_tls(run):
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


def test_certbot(run):
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


def test_private_downloads(run):
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


def test_compression(run):
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


def test_redirects(run):
    run.start(run.http, run.https)
    for options, status, location in (({'host': 'www.example.test', 'target': '/a?b'}, 301, 'https://example.test/a?b'),
                                      ({'host': 'shop.old.test', 'tls': False}, 301, 'https://example.test/'),
                                      ({'host': 'example.test', 'tls': False, 'target': '/a'}, 308, 'https://example.test/a'),
                                      ({'host': 'example.test', 'target': '/team.html'}, 301, '/about/#team'),
                                      ({'host': 'example.test', 'target': '/news/17.html'}, 301, '/blog/17/'),
                                      ({'host': 'example.test', 'target': '/a/b/index.html'}, 301, '/a/b/')):
        found = run.fetch(**options)
        assert (found.status, found.headers['location']) == (status, location)
    assert run.fetch(host='example.test').body == PAGE and run.fetch('/shop/x', host='example.test').status == 410
