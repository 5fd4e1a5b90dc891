"""Response caches on the status page: sizes, and responses by $upstream_cache_status, as clients of several workers see them."""
import collections
import json
import signal
import threading

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream
from test_control_caches import Every

STALE = 'Cache-Control: max-age=60, stale-if-error=100\r\nAge: 70\r\n'
STATUSES = {'MISS', 'BYPASS', 'EXPIRED', 'STALE', 'UPDATING', 'REVALIDATED', 'PARTIAL', 'HIT'}
SLICE = 1000


def respond(peer):
    """The path selects the fields of the response; a range request gets a part of 2,500 bytes."""
    request = peer.request
    peer.read_body()
    body = b'x' * 2500
    if '/stale/' in request.target:
        peer.upstream.update.wait()
    if request.header('if-none-match'):
        peer.send('HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nCache-Control: max-age=60\r\n\r\n')
        return True
    fields = STALE if '/stale' in request.target else 'Cache-Control: max-age=60\r\n'
    if '/revalidate' in request.target:
        fields = 'ETag: "a"\r\n' + STALE
    status = '200 OK'
    if request.header('range'):
        first, last = map(int, request.header('range').removeprefix('bytes=').split('-'))
        status, fields = '206 Partial Content', f'{fields}ETag: "s"\r\nContent-Range: bytes {first}-{min(last, 2499)}/2500\r\n'
        body = body[first:last + 1]
    head = f'HTTP/1.1 {status}\r\n{fields}Content-Length: {len(body)}\r\n\r\n'.encode()
    peer.send(head if request.method == 'HEAD' else head + body)
    return True


class Watched:
    def __init__(self, folder, loop, workers=2):
        self.upstream = Upstream()
        self.upstream.scripts = Every(respond)
        self.update = self.upstream.update = threading.Event()      # cleared: responses below /stale/ wait
        self.update.set()
        self.port = server_kit.free_port()
        to = {'proxy_pass': f'http://127.0.0.1:{self.upstream.port}', 'proxy_cache': 'one', 'proxy_cache_bypass': '$http_x_bypass',
              'add_header': 'X-Cache $upstream_cache_status always'}
        location = {'/': to, '/slices/': {**to, 'slice': SLICE}, '/other/': {**to, 'proxy_cache': 'two "quoted"'},
                    '/revalidate/': {**to, 'proxy_cache_revalidate': True},
                    '/stale/': {**to, 'proxy_cache_use_stale': 'updating', 'proxy_cache_background_update': True},
                    '= /status': {'status': 'on'}}
        paths = [{'path': str(folder / 'one'), 'keys_zone': 'one:1m', 'max_size': '10m'}, {'path': str(folder / 'two'), 'keys_zone': 'two "quoted":1m'}]
        self.server = server_kit.Server(folder, [{'listen': f'127.0.0.1:{self.port}', 'location': location}], loop=loop,
                                        http={'proxy_cache_path': paths}, main={'worker_processes': workers})
        self.server.start([self.port])
        self.seen = collections.Counter()       # statuses of the responses of the cache "one"

    def fetch(self, path, *fields, method='GET'):
        """On a connection of its own, so that both workers respond. Returns the cache status."""
        client = http1.connect(self.port)
        response = client.fetch(method, path, fields)
        client.close()
        status = response.headers.get('x-cache')
        if not path.startswith('/other/') and status:
            self.seen[status] += 1
        return status

    def page(self, form='json'):
        client = http1.connect(self.port)
        text = client.get(f'/status?format={form}').body.decode()
        client.close()
        return json.loads(text) if form == 'json' else text

    def caches(self):
        return {cache['cache']: cache for cache in self.page()['caches']}

    def stop(self):
        self.update.set()
        self.server.stop()
        self.upstream.stop()
        assert not self.upstream.faults, self.upstream.faults


@pytest.fixture
def watched(tmp_path, loop):
    tmp_path.chmod(0o755)
    made = Watched(tmp_path, loop)
    yield made
    made.stop()


def until_stored(watched, path, *states):
    """A response may be stored after it was sent."""
    wait_for(lambda: watched.fetch(path, ('Cache-Control', 'only-if-cached, max-stale')) in states, path)


def test_each_status_is_counted(watched):
    assert watched.fetch('/a') == 'MISS'
    until_stored(watched, '/a', 'HIT')
    assert watched.fetch('/a', method='HEAD') == 'HIT'
    assert watched.fetch('/a', ('X-Bypass', '1')) == 'BYPASS'
    assert watched.fetch('/a', ('Cache-Control', 'no-cache')) == 'EXPIRED'
    assert watched.fetch('/head', method='HEAD') == 'MISS'                  # fetched by a GET of its own
    for path, expected in (('/revalidate/a', 'REVALIDATED'), ('/stale/a', 'STALE')):
        assert watched.fetch(path) == 'MISS'
        until_stored(watched, path, 'STALE')
        if expected == 'STALE':
            watched.update.clear()
        assert watched.fetch(path) == expected
    assert watched.fetch('/stale/a') == 'UPDATING'                          # the background update of the request before it
    watched.update.set()
    assert set(watched.seen) == STATUSES - {'PARTIAL'}
    wait_for(lambda: watched.caches()['one']['responses_total'] == {status: watched.seen[status] for status in STATUSES}, 'each response is counted')
    assert not any(watched.caches()['two "quoted"']['responses_total'].values())


def test_slices_count_once(watched):
    assert watched.fetch('/slices/a') == 'MISS'
    wait_for(lambda: watched.caches()['one']['files'] >= 3, 'three slices are stored')
    assert watched.fetch('/slices/a') == 'HIT'
    wait_for(lambda: watched.caches()['one']['responses_total'] == {status: watched.seen[status] for status in STATUSES}, 'one count for each response')


def test_only_if_cached_without_a_stored_response_is_not_counted(watched):
    assert watched.fetch('/a', ('Cache-Control', 'only-if-cached')) is None
    assert not any(watched.caches()['one']['responses_total'].values())


def test_sizes(watched):
    """A cache without max_size has no such value; a removed response is subtracted."""
    before = watched.caches()
    assert [before[name]['files'] for name in ('one', 'two "quoted"')] == [0, 0] and before['one']['bytes'] == 0
    assert before['one']['max_bytes'] == 10 << 20 and 'max_bytes' not in before['two "quoted"']
    watched.fetch('/a')
    wait_for(lambda: watched.caches()['one']['files'] == 1, 'the response is stored')
    assert 2500 < watched.caches()['one']['bytes'] < 2500 + 4096
    assert watched.caches()['two "quoted"']['files'] == 0


def test_prometheus_and_html(watched):
    watched.fetch('/other/a')
    wait_for(lambda: watched.caches()['two "quoted"']['files'] == 1, 'the response is stored')
    text = watched.page('prometheus')
    lines = set(text.split('\n'))
    label = 'cache="two \\"quoted\\""'
    assert {f'sluice_cache_files{{{label}}} 1', f'sluice_cache_responses_total{{{label},status="MISS"}} 1', 'sluice_cache_max_bytes{cache="one"} 10485760',
            'sluice_cache_responses_total{cache="one",status="HIT"} 0'} <= lines
    assert not [line for line in lines if line.startswith(f'sluice_cache_max_bytes{{{label}')]
    html = watched.page('html')
    assert '<h2>Caches</h2>' in html and '<td>two &quot;quoted&quot;<td>1<td>' in html


def test_without_a_cache_the_page_has_no_cache(tmp_path, loop):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{port}', 'location': {'= /status': {'status': 'on'}}}], loop=loop)
    server.start([port])
    client = http1.connect(port)
    pages = [client.get(f'/status?format={form}').body.decode() for form in ('prometheus', 'json', 'html')]
    client.close()
    server.stop()
    assert not [page for page in pages if 'sluice_cache_' in page or '"caches"' in page or '>Caches<' in page]
    assert not [page for page in pages if 'sluice_limit_' in page or '"limits"' in page or '>Limits<' in page]


def test_counts_continue_after_a_reload(watched):
    watched.fetch('/a')
    wait_for(lambda: sum(watched.caches()['one']['responses_total'].values()) == 1, 'the response is counted')
    runs = watched.server.errors().count(' runs, ')
    watched.server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: watched.server.errors().count(' runs, ') > runs, 'the reload')
    assert watched.caches()['one']['responses_total']['MISS'] == 1
