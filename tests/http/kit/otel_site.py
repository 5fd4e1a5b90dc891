"""A server that exports spans to a collector, and its counters."""
import contextlib
import re

from kit import http1, server as server_kit
from kit.lifetime import alive, wait_for


class Site:
    """`exporter`, `http`, `location` and `main` are merged into its configuration."""

    def __init__(self, folder, collector_port, upstream_port, exporter=None, http=None, location=None, main=None, loop='epoll',
                 environment=None):
        self.port = server_kit.free_port()
        to = {'proxy_pass': f'http://127.0.0.1:{upstream_port}'}
        self.server = server_kit.Server(folder, [{'listen': f'127.0.0.1:{self.port}', 'location': {
            '/': {**to, 'otel_trace_context': 'propagate', 'otel_trace': True},
            '/off/': {**to, 'otel_trace_context': 'inject'},
            '/untraced/': to,
            '/local/': {'otel_trace': True, 'return': '200 ok'},
            '/named/': {'otel_trace': True, 'return': '404 no', 'otel_span_name': '$request_method $arg_n',
                        'otel_span_attr': {'tenant': '$arg_t', 'empty': '$arg_none', 'http.response.body.size': '$body_bytes_sent'}},
            '/tried/': {**to, 'try_files': '/none /local/x', 'otel_trace': True},
            '/status': {'status': 'prometheus'},
            **(location or {})}}],
            http={'otel_exporter': {'endpoint': f'http://127.0.0.1:{collector_port}', 'interval': '20ms', **(exporter or {})},
                  'otel_service_name': 'shop', 'otel_resource_attr': {'deployment.environment.name': 'test'}, **(http or {})},
            main=main, loop=loop, environment=environment)
        self.server.start([self.port])

    def fetch(self, path, *fields, status=200):
        client = http1.connect(self.port)
        response = client.fetch('GET', path, list(fields))
        client.close()
        assert response.status == status
        return response

    def exporters(self):
        """The processes that were started as exporters, the newest last."""
        return [int(number) for number in re.findall('exporter process ([0-9]+) started', self.server.errors())]

    def exporter(self):
        return wait_for(self.exporters, 'an exporter')[-1]

    def metrics(self):
        page = self.fetch('/status').body.decode()
        return {name: int(value) for name, value in re.findall(r'^(sluice_spans\S+) (\d+)$', page, re.M)}

    def dropped(self, reason):
        return self.metrics()[f'sluice_spans_dropped_total{{reason="{reason}"}}']


@contextlib.contextmanager
def site_starter(folder):
    """starter(collector_port, upstream_port, **options of Site) -> a site. Their exporters end with the servers."""
    sites = []

    def starter(*ports, **options):
        sites.append(Site(folder / str(len(sites)), *ports, **options))
        return sites[-1]
    yield starter
    for site in sites:
        if site.server.process.poll() is None:
            site.server.stop()
        assert not [pid for pid in site.exporters() if alive(pid)]
