"""`status_zone`: requests of servers and of locations on the status page, counted by several workers."""
import collections
import json
import os
import re
import signal

import pytest
from kit import http1, http2, server as server_kit, upstream as upstream_kit
from kit.lifetime import wait_for

WORKERS = 2
FIELDS = ('server_name', 'uri', 'status', 'bytes_sent', 'request_length')


class Zoned:
    """Servers with zones at one port, and a status page at another one, whose server has a zone, too."""

    def __init__(self, folder, site, loop, upstream=9, **main):
        self.port, self.status, self.other = (server_kit.free_port() for _ in range(3))
        self.location = {
            '/': {}, '= /pid': {'return': '200 $pid'},
            '/app/': {'return': '200 app', 'location': {'/app/deep/': {'return': '200 deep'}, '/app/quiet/': {'return': '200', 'status_zone': 'off'},
                                                        '~ \\.cgi$': {'return': '500'}}},
            '/again/': {'rewrite': '^ /app/x last'}, '/tried/': {'try_files': '/nowhere /app/deep/x'},
            '/named/': {'try_files': '/nowhere @named'}, '@named': {'return': '202'},
            '/when/': {'when': {'$arg_a = b': {'return': '403'}}, 'return': '200'},
            '/errors/': {'internal': True, 'root': site},
            '/socket/': {'proxy_pass': f'http://127.0.0.1:{upstream}'},
        }
        listen = f'127.0.0.1:{self.port}'
        self.servers = [
            {'listen': listen, 'server_name': ['one.test', '*.one.test'], 'root': site, 'error_page': ['404 /errors/404'], 'location': self.location},
            {'listen': listen, 'server_name': 'two.test', 'status_zone': 'shop', 'location': {
                '/a/': {'return': '200', 'status_zone': 'shared'}, '/b/': {'return': '200', 'status_zone': 'shared'}, '/c/': {'return': '200'}}},
            {'listen': listen, 'server_name': 'three.test', 'status_zone': 'shop', 'location': {'/a/': {'return': '404', 'status_zone': 'shared'}}},
            {'listen': f'127.0.0.1:{self.other}', 'location': {'/': {'return': '200'}}},
            {'listen': f'127.0.0.1:{self.status}', 'status_zone': 'pages', 'location': {'= /status': {'status': 'on', 'status_zone': 'off'}}},
        ]
        self.server = server_kit.Server(folder, self.servers, loop=loop, main={'worker_processes': WORKERS, **main}, http={
            'log_format': {'proof': '|'.join(f'${field}' for field in FIELDS)}, 'status_zone': True})
        self.server.start([self.port, self.status, self.other])
        wait_for(lambda: len(self.server.workers()) == WORKERS, 'every worker')
        self.opened = {}                # connections by worker

    def to_each_worker(self):
        """A connection to each worker."""
        for _ in range(300):
            client = http1.connect(self.port)
            pid = client.get('/pid', Host='one.test').body.decode()
            self.opened.setdefault(pid, client)
            if len(self.opened) == WORKERS:
                return list(self.opened.values())
        raise AssertionError(f'{len(self.opened)} of {WORKERS} workers answer')

    def page(self, form='json'):
        client = http1.connect(self.status)
        answer = client.get(f'/status?format={form}')
        client.close()
        assert answer.status == 200
        return json.loads(answer.body) if form == 'json' else answer.body.decode()

    def settled(self):
        """The page when all other requests have ended."""
        found = {}

        def is_settled():
            found.update(self.page())
            return found['requests_total'] == sum(found['responses_total'].values()) + 1
        wait_for(is_settled, 'the end of all requests')
        return found

    def zones(self):
        """The numbers of requests of servers and of locations."""
        found = self.settled()
        servers, locations = ({zone['zone']: zone['requests_total'] for zone in found[kind]} for kind in ('server_zones', 'location_zones'))
        return collections.Counter(servers), collections.Counter(locations)


@pytest.fixture
def zoned(site, tmp_path, loop):
    made = []

    def make(**arguments):
        made.append(Zoned(tmp_path / f'run{len(made)}', site, loop, **arguments))
        return made[-1]
    yield make
    for one in made:
        one.server.stop()


def grown(zoned, send):
    """What `send` adds to the zones of servers and of locations, without zeros; the status page is not among them."""
    before = zoned.zones()
    send()
    after = zoned.zones()
    for old, new in zip(before, after):
        new.subtract(old)
    after[0].pop('pages')
    return tuple({zone: count for zone, count in one.items() if count} for one in after)


REQUESTS = [    # host, target, status, zone of the server, zone of the location
    ('one.test', '/one.txt', 200, 'one.test', 'one.test /'),
    ('www.one.test', '/one.txt', 200, 'one.test', 'one.test /'),
    ('unknown.test', '/one.txt', 200, 'one.test', 'one.test /'),
    ('one.test', '/app/', 200, 'one.test', 'one.test /app/'),
    ('one.test', '/app/deep/er', 200, 'one.test', 'one.test /app/deep/'),
    ('one.test', '/app/quiet/', 200, 'one.test', None),
    ('one.test', '/app/x.cgi', 500, 'one.test', 'one.test ~ \\.cgi$'),
    ('one.test', '/again/', 200, 'one.test', 'one.test /app/'),
    ('one.test', '/tried/', 200, 'one.test', 'one.test /app/deep/'),
    ('one.test', '/named/', 202, 'one.test', 'one.test @named'),
    ('one.test', '/when/', 200, 'one.test', 'one.test /when/'),
    ('one.test', '/when/?a=b', 403, 'one.test', 'one.test /when/'),
    ('one.test', '/missing', 404, 'one.test', 'one.test /errors/'),
    ('two.test', '/a/', 200, 'shop', 'shared'),
    ('two.test', '/b/', 200, 'shop', 'shared'),
    ('three.test', '/a/', 404, 'shop', 'shared'),
    ('two.test', '/c/', 200, 'shop', 'shop /c/'),
    ('two.test', '/elsewhere', 404, 'shop', None),
]


def test_request_counts_in_its_server_and_final_location(zoned):
    made = zoned()
    client = http1.connect(made.port)
    for host, target, status, server, location in REQUESTS:
        found = grown(made, lambda: client.get(target, Host=host).status == status or pytest.fail(f'{host}{target}'))
        assert found == ({server: 1}, {location: 1} if location else {}), f'{host}{target}'
    client.close()


def test_counts_of_all_workers_are_exact(zoned):
    """Each worker counts; the sums equal the access log, and those over all servers the counters of all requests."""
    made = zoned()
    clients = made.to_each_worker()
    statuses = collections.Counter()
    before = {kind: made.zones()[kind] for kind in (0, 1)}
    for _ in range(7):
        for client in clients:
            for host, target, status, server, _ in REQUESTS:
                assert client.get(target, Host=host).status == status
                statuses[server, f'{status // 100}xx'] += 1
    found = made.settled()
    zones = {zone['zone']: zone for zone in found['server_zones']}
    for server in ('one.test', 'shop'):
        expected = 7 * WORKERS * sum(row[3] == server for row in REQUESTS)
        assert zones[server]['requests_total'] - before[0][server] == expected
        assert all(zones[server]['responses_total'][name] == statuses[server, name] for name in ('3xx', '4xx', '5xx'))
        assert zones[server]['request_duration_seconds']['count'] == zones[server]['requests_total'] == sum(zones[server]['responses_total'].values())
    locations = {zone['zone']: zone['requests_total'] - before[1][zone['zone']] for zone in found['location_zones']}
    assert locations == {zone: 7 * WORKERS * sum(row[4] == zone for row in REQUESTS) for zone in locations}
    assert found['responses_total'] == {name: sum(zone['responses_total'][name] for zone in found['server_zones']) for name in found['responses_total']}
    assert found['requests_total'] - 1 == sum(zone['requests_total'] for zone in found['server_zones'])
    compare_with_log(made, zones)


def compare_with_log(made, zones):
    def rows():
        return [dict(zip(FIELDS, line.split('|'))) for line in server_kit.read_text(made.server.access_path).splitlines()]
    names = {'one.test': ['one.test'], 'shop': ['two.test', 'three.test']}
    for zone, servers in names.items():
        wait_for(lambda: sum(row['server_name'] in servers for row in rows()) == zones[zone]['requests_total'], 'every line')
        own = [row for row in rows() if row['server_name'] in servers]
        assert zones[zone]['sent_bytes_total'] == sum(int(row['bytes_sent']) for row in own) > 0
        assert zones[zone]['received_bytes_total'] == sum(int(row['request_length']) for row in own) > 0


@pytest.mark.http1('an invalid head')
def test_rejected_request_counts_in_its_server_only(zoned):
    made = zoned()

    def send():
        for request in ('nonsense\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n', 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n'):
            client = http1.connect(made.port)
            client.send(request)
            assert client.read().status == 400
            client.close()
    assert grown(made, send) == ({'one.test': 3}, {})


def test_server_without_a_name_has_the_name_of_its_address(zoned):
    made = zoned()

    def send():
        client = http1.connect(made.other)
        client.get('/x')
        client.close()
    assert grown(made, send) == ({f'127.0.0.1:{made.other}': 1}, {f'127.0.0.1:{made.other} /': 1})


def test_http2_streams_count(zoned):
    made = zoned()

    def send():
        client = http2.connect(made.port)
        for target in ('/one.txt', '/app/', '/missing'):
            client.fetch(target, authority='one.test')
        client.fetch('/a/', authority='two.test')
        client.close()
    assert grown(made, send) == ({'one.test': 3, 'shop': 1}, {'one.test /': 1, 'one.test /app/': 1, 'one.test /errors/': 1, 'shared': 1})


@pytest.mark.http1('an upgrade')
def test_upgraded_connection_counts_when_it_ends(zoned):
    def switch(peer):
        peer.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello')
        peer.at_end()
    upstream = upstream_kit.Upstream({'/socket/': switch})
    try:
        made = zoned(upstream=upstream.port)
        before = {zone['zone']: zone for zone in made.settled()['location_zones']}['one.test /socket/']
        client = http1.connect(made.port)
        client.send('GET /socket/ HTTP/1.1\r\nHost: one.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
        assert client.head().status == 101
        client.send('x' * 100)
        client.close()
        after = {zone['zone']: zone for zone in made.settled()['location_zones']}['one.test /socket/']
        assert after['responses_total']['1xx'] - before['responses_total']['1xx'] == 1
        assert after['received_bytes_total'] - before['received_bytes_total'] >= 100
    finally:
        upstream.stop()


def reload(made, generation):
    made.server.write_configuration()
    made.server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: made.page()['generation'] == generation, 'the new workers')


@pytest.mark.http1('a request in pieces')
def test_reload_keeps_zones_by_name(zoned):
    """Zones that both configurations have continue, also for requests that the old workers complete."""
    made = zoned()
    slow = http1.connect(made.port)
    slow.send('GET /app/ HTTP/1.1\r\nHost: one.te')
    client = http1.connect(made.port)
    for target in ('/one.txt', '/app/', '/when/'):
        client.get(target, Host='one.test')
    client.get('/a/', Host='two.test')
    client.close()
    before = {kind: made.page() for kind in ('now',)}['now']
    servers, locations = ({zone['zone']: zone['requests_total'] for zone in before[kind]} for kind in ('server_zones', 'location_zones'))
    tree = made.server.tree['http']['server']
    del tree[0]['location']['/when/']
    tree[1]['status_zone'] = tree[2]['status_zone'] = 'store'
    tree[0]['location']['/new/'] = {'return': '200'}
    reload(made, 2)
    slow.send('st\r\n\r\n')
    assert slow.read().status == 200
    slow.close()
    after_servers, after_locations = made.zones()
    assert after_servers['one.test'] == servers['one.test'] + 1
    assert 'shop' not in after_servers and after_servers['store'] == 0
    assert after_locations['one.test /app/'] == locations['one.test /app/'] + 1
    assert after_locations['shared'] == locations['shared'] > 0
    assert 'one.test /when/' not in after_locations and after_locations['one.test /new/'] == 0
    tree[0]['location']['/when/'] = {'return': '200'}
    reload(made, 3)
    assert made.zones()[1]['one.test /app/'] == after_locations['one.test /app/']


def test_counts_of_a_dead_worker_remain(zoned):
    made = zoned()
    clients = made.to_each_worker()
    for client in clients:
        client.get('/app/', Host='one.test')
    victim = next(iter(made.opened))
    before = made.zones()[1]['one.test /app/']
    os.kill(int(victim), signal.SIGKILL)
    wait_for(lambda: len(made.server.workers()) == WORKERS and int(victim) not in made.server.workers(), 'a successor')
    made.opened.pop(victim)
    for client in made.to_each_worker():
        client.get('/app/', Host='one.test')
    assert made.zones()[1]['one.test /app/'] == before + WORKERS


SAMPLE = re.compile(r'sluice_(server|location|stream)_zone_([a-z_]+)\{zone="((?:[^"\\\n]|\\[\\n"])*)"(?:,(le|class)="([^"]*)")?\} (\d+(?:\.\d+)?)')


def test_formats(zoned):
    """Prometheus text, JSON and HTML have the same values; names are escaped in each."""
    made = zoned()
    name = 'a "b" \\ <i>&'
    made.server.tree['http']['server'][1]['location']['/a/']['status_zone'] = name
    reload(made, 2)
    client = http1.connect(made.port)
    for _ in range(3):
        client.get('/a/', Host='two.test')
    client.close()
    found = {zone['zone']: zone for zone in made.settled()['location_zones']}[name]
    text = made.page('prometheus')
    samples = [SAMPLE.fullmatch(line) for line in text.splitlines() if line.startswith(('sluice_server_zone', 'sluice_location_zone'))]
    assert None not in samples
    own = [sample.groups()[1:] for sample in samples if sample.group(3) == 'a \\"b\\" \\\\ <i>&']
    values = {(metric, value): float(number) for metric, _, _, value, number in own}
    assert len(own) == len(values) == 3 + 6 + 17
    assert values['requests_total', None] == values['request_duration_seconds_count', None] == found['requests_total'] == 3
    assert values['sent_bytes_total', None] == found['sent_bytes_total'] and values['received_bytes_total', None] == found['received_bytes_total']
    assert {value: number for (metric, value), number in values.items() if metric == 'responses_total'} == found['responses_total']
    buckets = {value: number for (metric, value), number in values.items() if metric == 'request_duration_seconds_bucket'}
    assert buckets == found['request_duration_seconds']['buckets'] and buckets['+Inf'] == 3
    for kind in ('server', 'location'):
        assert text.count(f'# TYPE sluice_{kind}_zone_request_duration_seconds histogram\n') == 1
    html = made.page('html')
    assert '<td>a &quot;b&quot; \\ &lt;i&gt;&amp;<td>3<td>0<td>' in html and '<h2>Servers</h2>' in html and '<h2>Locations</h2>' in html
    rows = re.findall(r'<tr><td>[^<]*<td>[^<]*<td>[^<]*<td>[\d.]+<td>([\d.]+)\n', html.split('<h2>Locations</h2>')[1])
    assert len(rows) > 5 and [float(row) for row in rows] == sorted((float(row) for row in rows), reverse=True), 'the slowest first'


def test_page_is_valid_for_any_name(tmp_path):
    """The environment may contain bytes that are not UTF-8."""
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'bytes', [{'listen': f'127.0.0.1:{port}', 'status_zone': 'a"${ZONE}b', 'location': {'/': {'status': 'on'}}}],
                               environment={'ZONE': os.fsdecode(b'\xff\xc3')})
    server.start([port])
    client = http1.connect(port)
    for form, expected in (('prometheus', '{zone="a\\"\ufffd\ufffdb"} '), ('html', '<td>a&quot;\ufffd\ufffdb<td>')):
        assert expected in client.get(f'/?format={form}').body.decode()
    assert json.loads(client.get('/?format=json').body)['server_zones'][0]['zone'] == 'a"\ufffd\ufffdb'
    client.close()
    server.stop()


def test_page_without_zones_is_unchanged(start):
    port = server_kit.free_port()
    server = start(servers=[{'listen': f'127.0.0.1:{port}', 'location': {'= /status': {'status': 'on'}}}], wait=False)
    server.start([port])
    client = http1.connect(port)
    for form in ('prometheus', 'json', 'html'):
        text = client.get(f'/status?format={form}').body.decode()
        assert 'zone' not in text and '<h2>Servers' not in text
    client.close()


def test_many_zones(start, tmp_path):
    """As many zones as there may be; one more is an error of the configuration."""
    port = server_kit.free_port()
    names = {f'/{number}/{"x" * 300}': {'return': '200'} for number in range(1022)}
    block = {'listen': f'127.0.0.1:{port}', 'server_name': 'a', 'status_zone': True, 'location': {**names, '= /status': {'status': 'on'}}}
    server = start(servers=[block], wait=False)
    server.start([port])
    client = http1.connect(port)
    assert client.get(f'/1021/{"x" * 300}').status == 200
    found = json.loads(client.get('/status?format=json').body)
    zones = {zone['zone']: zone['requests_total'] for zone in found['location_zones']}
    assert len(zones) == 1023 and zones[f'a /1021/{"x" * 300}'[:256]] == 1
    assert client.get('/status?format=prometheus').status == client.get('/status?format=html').status == 200
    client.close()
    block['location']['/more/'] = {}
    server.write_configuration()
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: 'there are more than 1024 zones of status_zone' in server.errors(), 'the error')
    assert server.errors().count('more than 1024 zones') == 1
