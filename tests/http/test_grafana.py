"""The dashboard for Grafana in conf/grafana: its format, its metrics on the page of a running server, and its queries in a Prometheus that
reads that page."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from kit import http1, http2, server as server_kit, site as site_kit, upstream as upstream_kit
from kit.lifetime import wait_for
from kit.programs import Program, program

DASHBOARD = pathlib.Path(__file__).parents[2] / 'conf/grafana/sluice.json'
DATA_SOURCE = {'type': 'prometheus', 'uid': '${DS_PROMETHEUS}'}
ACME_NAME = 'acme.test'
WIDTH = 24          # columns of a dashboard
# promtool takes "mb" and "ns" for units. Released names of metrics do not change.
ABBREVIATED = {'sluice_aead_ipsec_mb', 'sluice_ktls_kernel_ns_per_kib', 'sluice_ktls_user_ns_per_kib'}
NONEXISTENT = 'sluice_nonexistent_total'


def dashboard():
    return json.loads(DASHBOARD.read_text(encoding='utf-8'))


def panels():
    """All panels but the rows, which are titles."""
    return [panel for panel in dashboard()['panels'] if panel['type'] != 'row']


def queries():
    """[(title of the panel, expression)] of all panels."""
    return [(panel['title'], target['expr']) for panel in panels() for target in panel['targets']]


def variables():
    return {item['name']: item for item in dashboard()['templating']['list']}


def substituted(expression):
    """An expression with values for the variables, as Grafana sends it."""
    text = expression.replace('$__rate_interval', '1m').replace('$job', '.*').replace('$instance', '.*')
    assert '$' not in text, expression
    return text


class Watched:
    """A server that has every metric of the dashboard: zones, upstream servers, a cache, a certificate in the state folder of ACME, limits."""

    def __init__(self, folder, site, certificate):
        self.plain, self.tls, self.acme, self.status, self.stream = (server_kit.free_port() for _ in range(5))
        self.upstream = upstream_kit.Upstream()
        servers = [
            {'listen': [f'127.0.0.1:{self.plain}', f'127.0.0.1:{self.tls} ssl'], 'root': site, 'ssl_certificate': certificate[0],
             'ssl_certificate_key': certificate[1], 'location': {
                 '/app/': {'proxy_pass': 'http://app'}, '/cached/': {'proxy_pass': 'http://app', 'proxy_cache': 'one', 'proxy_cache_valid': '1h'},
                  '= /limited': {'limit_req': 'zone=slow', 'return': '200 ok'}, '= /broken': {'return': '500'}}},
            {'listen': f'127.0.0.1:{self.acme} ssl', 'server_name': ACME_NAME, 'ssl_certificate': 'acme', 'return': '200 ok'},
            {'listen': f'127.0.0.1:{self.status}', 'location': {'= /status': {'status': True}}},
        ]
        stream = {'status_zone': True, 'server': [{'listen': f'127.0.0.1:{self.stream}', 'proxy_pass': f'127.0.0.1:{self.plain}'}]}
        self.server = server_kit.Server(folder / 'server', servers, main={'stream': stream}, http={
            'status_zone': True, 'open_file_cache': 'max=100', 'proxy_cache_path': {'path': str(folder / 'cache'), 'keys_zone': 'one:1m'},
            'limit_req_zone': '$server_port zone=slow:1m rate=1r/m',
            'upstream': {'app': {'server': [f'127.0.0.1:{self.upstream.port}', {'address': '127.0.0.1:9', 'backup': True}]}},
            'acme': {'state': self.make_state(folder), 'directory': 'https://127.0.0.1:9/dir', 'email': 'admin@example.org'}})
        self.server.start([self.plain, self.tls, self.acme, self.status])

    @staticmethod
    def make_state(folder):
        """A state folder of ACME with a valid certificate, as an earlier run leaves it."""
        state = folder / 'state'
        (state / 'certificates').mkdir(parents=True)
        certificate, key = site_kit.make_certificate(str(folder), name=ACME_NAME, names=[ACME_NAME], days=60)
        kept = state / 'certificates' / f'{ACME_NAME}.pem'
        kept.write_text(pathlib.Path(key).read_text(encoding='ascii') + pathlib.Path(certificate).read_text(encoding='ascii'), encoding='ascii')
        kept.chmod(0o600)
        if os.geteuid() == 0:
            for path in (state, kept.parent, kept):
                shutil.chown(path, 'nobody')        # the user of the client
        return str(state)

    def send_requests(self):
        for port, transport in ((self.plain, 'plain'), (self.tls, 'user'), (self.stream, 'plain')):
            with contextlib.closing(http1.connect(port, transport, timeout=20 * server_kit.PATIENCE)) as client:
                for target in ('/one.txt', '/1048576.bin', '/nowhere', '/app/x', '/cached/x', '/limited', '/limited', '/broken'):
                    client.get(target)
        self.send_http2_errors()

    def send_http2_errors(self):
        """A stream that the client resets, one that the server resets, and a connection that the server ends."""
        with contextlib.closing(http2.raw(self.plain)) as client:
            client.send(client.head(1, '/app/x') + http2.number(http2.RST_STREAM, 1, 8))
            client.send(client.head(3, '') + http2.frame(http2.DATA, 0, 0, b'x'))
            assert client.goaway() == 1

    def page(self):
        with contextlib.closing(http1.connect(self.status)) as client:
            answer = client.get('/status?format=prometheus')
            assert answer.status == 200
            return answer.body.decode()

    def stop(self):
        self.server.stop()
        self.upstream.stop()


@pytest.fixture(scope='module')
def watched(new_directory, site, certificate):
    made = Watched(new_directory(), site, certificate)
    made.send_requests()
    yield made
    made.stop()


class Prometheus:
    """A Prometheus that reads the status page of a server several times per second."""

    def __init__(self, folder, port):
        (folder / 'prometheus.yml').write_text(json.dumps({'global': {'scrape_interval': '500ms', 'scrape_timeout': '500ms'}, 'scrape_configs': [
            {'job_name': 'sluice', 'metrics_path': '/status', 'static_configs': [{'targets': [f'127.0.0.1:{port}']}]}]}), encoding='ascii')
        self.program = Program([program('prometheus'), f'--config.file={folder}/prometheus.yml', f'--storage.tsdb.path={folder}/data',
                                '--web.listen-address=127.0.0.1:{port}', '--log.level=error'])

    def get(self, path, *parameters):
        """The data of a response, or the error as a text."""
        url = f'http://127.0.0.1:{self.program.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}'
        try:
            with urllib.request.urlopen(url, timeout=20 * server_kit.PATIENCE) as answer:
                return json.load(answer)['data']
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def samples(self, expression):
        found = self.get('query', ('query', expression))
        assert isinstance(found, dict), f'{expression}: {found}'
        return found['result']

    def is_ready(self):
        """True once each rate has several values."""
        ready = self.get('query', ('query', 'count_over_time(sluice_requests_total[1m]) > 4'))
        return isinstance(ready, dict) and ready['result']


@pytest.fixture(scope='module')
def prometheus(new_directory, watched):
    made = Prometheus(new_directory(), watched.status)

    def is_ready():
        watched.send_requests()
        return made.is_ready()
    wait_for(is_ready, 'Prometheus has read the page', 60)
    yield made
    made.program.stop()


def test_panels_are_complete():
    found = dashboard()
    assert found['schemaVersion'] >= 36 and found['title'] and found['uid']
    numbers = [panel['id'] for panel in found['panels']]
    assert len(set(numbers)) == len(numbers)
    titles = [panel['title'] for panel in found['panels']]
    assert all(titles) and len(set(titles)) == len(titles)
    for panel in panels():
        assert panel['description'].endswith('.') and panel['fieldConfig']['defaults']['unit'] and panel['targets'], panel['title']
        names = [target['refId'] for target in panel['targets']]
        assert len(set(names)) == len(names), panel['title']
        assert all(target['legendFormat'] or target.get('format') == 'table' for target in panel['targets']), panel['title']
        assert all(item['datasource'] == DATA_SOURCE for item in (panel, *panel['targets'])), panel['title']


def test_panels_do_not_overlap():
    taken = set()
    for panel in dashboard()['panels']:
        at = panel['gridPos']
        cells = {(x, y) for x in range(at['x'], at['x'] + at['w']) for y in range(at['y'], at['y'] + at['h'])}
        assert at['x'] + at['w'] <= WIDTH and not cells & taken, panel['title']
        taken |= cells


def test_queries_select_by_the_variables():
    found = variables()
    assert found['DS_PROMETHEUS']['type'] == 'datasource' and found['DS_PROMETHEUS']['query'] == 'prometheus'
    assert set(found) == {'DS_PROMETHEUS', 'job', 'instance'}
    for title, expression in queries():
        metrics = re.findall(r'sluice_\w+', expression)
        assert metrics and expression.count('{job=~"$job", instance=~"$instance"') == len(metrics), f'{title}: {expression}'
        assert '[' not in expression or '[$__rate_interval]' in expression, f'{title}: {expression}'


def test_metrics_are_on_the_page(watched):
    exposed = set(re.findall(r'^(sluice_\w+)', watched.page(), re.M))
    for title, expression in queries():
        missing = set(re.findall(r'sluice_\w+', expression)) - exposed
        assert not missing, f'{title}: {missing}'
    assert NONEXISTENT not in exposed


def test_labels_of_legends_are_labels_of_the_query():
    for panel in panels():
        for target in panel['targets']:
            groups = re.findall(r' by \(([\w, ]+)\)', target['expr'])
            labels = {label for group in groups for label in group.split(', ')} - {'le'}
            assert set(re.findall(r'\{\{(\w+)\}\}', target['legendFormat'])) == (set() if target.get('format') == 'table' else labels), panel['title']


def test_promtool_accepts_the_page(watched):
    checked = subprocess.run([program('promtool'), 'check', 'metrics'], input=watched.page(), capture_output=True, text=True, check=False)
    assert checked.returncode in (0, 3), checked.stderr         # 3: advice on names
    lines = [line.split(' ', 1) for line in checked.stderr.splitlines()]
    faults = [line for line in lines if line != [line[0], 'metric names should not contain abbreviated units'] or line[0] not in ABBREVIATED]
    assert not faults, checked.stderr


def test_queries_have_samples(watched, prometheus):
    missing = {}

    def have_samples():
        """Repeated: after a scrape that failed on a loaded machine, Prometheus has no current values."""
        watched.send_requests()
        missing.clear()
        missing.update({expression: title for title, expression in queries() if not prometheus.samples(substituted(expression))})
        return not missing
    wait_for(have_samples, missing, 10)


def test_variables_have_values(prometheus):
    for name in ('job', 'instance'):
        query = variables()[name]['query']['query']
        metric, label = re.fullmatch(r'label_values\((.+), (\w+)\)', query).groups()
        assert label == name and prometheus.get(f'label/{label}/values', ('match[]', substituted(metric))), query


def test_wrong_queries_are_found(prometheus):
    """The checks above can fail: a metric that does not exist has no sample, and an expression without its end is an error."""
    assert not prometheus.samples(f'rate({NONEXISTENT}[1m])')
    with pytest.raises(AssertionError, match='parse error'):
        prometheus.samples('sum(rate(sluice_requests_total[1m])')
