"""Zones of limit_req and limit_conn on the status page."""
import json
import socket

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for


class Watched:
    def __init__(self, folder, site, loop):
        self.port, self.stream = server_kit.free_port(), server_kit.free_port()
        location = {'/': {'limit_req': 'zone=requests'}, '/slow/': {'limit_req': 'zone=slow burst=5'},
                    '/single/': {'limit_conn': 'connections 1', 'limit_rate': '1k', 'alias': f'{site}/'}, '= /status': {'status': 'on'}}
        self.server = server_kit.Server(folder, [{'listen': f'127.0.0.1:{self.port}', 'root': site, 'location': location}], loop=loop, http={
            'limit_req_zone': ['$arg_key zone=requests:1m rate=1r/m', '$arg_key zone=slow:1m rate=20r/s'],
            'limit_conn_zone': '$binary_remote_addr zone=connections:1m'}, main={'worker_processes': 2, 'stream': {
                'limit_conn_zone': '$binary_remote_addr zone=connections:1m',
                'server': {'listen': f'127.0.0.1:{self.stream}', 'proxy_pass': f'127.0.0.1:{self.port}', 'limit_conn': 'connections 1'}}})
        self.server.start([self.port])

    def get(self, path):
        client = http1.connect(self.port)
        response = client.get(path)
        client.close()
        return response

    def page(self, form='json'):
        return self.get(f'/status?format={form}').body.decode()

    def limits(self):
        return {(limit['zone'], limit['limit']): limit for limit in json.loads(self.page())['limits']}


@pytest.fixture
def watched(tmp_path, site, loop):
    made = Watched(tmp_path, site, loop)
    yield made
    made.server.stop()


def test_requests(watched):
    assert [watched.get(f'/one.txt?key={key}').status for key in 'abaa'] == [200, 200, 429, 429]
    row = watched.limits()['requests', 'limit_req']
    assert row == {'zone': 'requests', 'limit': 'limit_req', 'keys': 2, 'keys_max': row['keys_max'], 'delayed_total': 0, 'rejected_total': 2}
    assert row['keys_max'] > 1000
    assert watched.limits()['slow', 'limit_req']['keys'] == 0


def test_delayed_requests(watched):
    assert [watched.get('/slow/one.txt?key=a').status for _ in range(3)] == [404] * 3
    row = watched.limits()['slow', 'limit_req']
    assert row['rejected_total'] == 0 and 1 <= row['delayed_total'] <= 2


def test_connections_of_http_and_stream(watched):
    """Zones of one name, in `http` and in `stream`."""
    def at(port, path):
        stream = socket.create_connection(('127.0.0.1', port), timeout=30)
        stream.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
        return stream
    opened = at(watched.port, '/single/1048576.bin')
    assert opened.recv(12, socket.MSG_WAITALL) == b'HTTP/1.1 200'
    assert watched.get('/single/one.txt').status == 429
    row = watched.limits()['connections', 'limit_conn']
    assert row['keys'] == 1 and row['rejected_total'] == 1
    opened.close()
    forwarded = at(watched.stream, '/one.txt?key=x')
    assert forwarded.recv(12, socket.MSG_WAITALL) == b'HTTP/1.1 200'
    refused = at(watched.stream, '/one.txt?key=y')
    assert refused.recv(1) == b''
    forwarded.close()
    wait_for(lambda: watched.limits()['connections', 'stream limit_conn']['rejected_total'] == 1, 'the rejected connection is counted')


def test_prometheus_and_html(watched):
    for _ in range(2):
        watched.get('/one.txt?key=a')
    lines = watched.page('prometheus').split('\n')
    assert 'sluice_limit_rejected_total{zone="requests",limit="limit_req"} 1' in lines
    assert 'sluice_limit_keys{zone="connections",limit="stream limit_conn"} 0' in lines
    assert lines.count('# TYPE sluice_limit_rejected_total counter') == 1
    html = watched.page('html')
    assert '<h2>Limits</h2>' in html and '<td>requests (limit_req)<td>1<td>' in html
