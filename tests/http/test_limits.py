"""limit_req and limit_conn: counters shared by all workers, kept over reloads and the deaths of workers."""
import concurrent.futures
import copy
import os
import signal
import socket
import subprocess
import time

import pytest

from kit import http1, server as server_kit
from kit.lifetime import wait_for

ZONES = {'limit_req_zone': ['$arg_key zone=minute:1m rate=1r/m', '$arg_key zone=quick:1m rate=10r/s'],
         'limit_conn_zone': '$arg_key zone=open:1m'}
LOCATIONS = {
    '/once': {'limit_req': 'zone=minute', 'return': '200 ok'},
    '/three': {'limit_req': 'zone=minute burst=2 nodelay', 'return': '200 ok'},
    '/wait': {'limit_req': 'zone=quick burst=20', 'return': '200 ok'},
    '/hold': {'limit_conn': 'open 2', 'limit_req': 'zone=minute burst=100', 'return': '200 ok'},
    '/open': {'limit_conn': 'open 2', 'return': '200 ok'},
}


def statuses(served, target, count):
    def one(_):
        client = served.connect()
        try:
            return client.fetch('GET', target, []).status
        finally:
            client.close()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return sorted(pool.map(one, range(count)))


def test_limit_req_counts_all_workers(launch, loop, transport):
    served = launch(loop, transport, server={'location': LOCATIONS}, http=ZONES, main={'worker_processes': 2})
    key = f'{loop}{transport}'
    assert statuses(served, f'/once?key={key}', 12) == [200] + [429] * 11
    assert statuses(served, f'/three?key=3{key}', 12) == [200] * 3 + [429] * 9
    client = served.connect()
    refused = client.fetch('GET', f'/once?key={key}', [])
    assert refused.status == 429 and 1 <= int(refused.headers['retry-after']) <= 60
    assert client.fetch('GET', '/once', []).status == 200             # on the same connection
    client.close()


def test_burst_requests_are_delayed(launch, loop, transport):
    served = launch(loop, transport, server={'location': LOCATIONS}, http=ZONES, main={'worker_processes': 2})
    began = time.monotonic()
    assert statuses(served, f'/wait?key={loop}{transport}', 8) == [200] * 8
    assert time.monotonic() - began >= 0.69                         # seven requests wait for a tenth of a second each


class Limited(server_kit.Server):
    def __init__(self, folder, loop, **main):
        self.port = server_kit.free_port()
        super().__init__(folder, [{'listen': f'127.0.0.1:{self.port}', 'location': LOCATIONS}], loop=loop, http=copy.deepcopy(ZONES),
                         main={'worker_processes': 2, **main})

    def fetch(self, target):
        client = http1.connect(self.port, 'plain')
        try:
            return client.get(target).status
        finally:
            client.close()

    def send(self, target):
        """Sends a request that the limit delays; returns its connection."""
        stream = socket.create_connection(('127.0.0.1', self.port))
        stream.sendall(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
        return stream

    def open_pending(self, target='/hold?key=a'):
        """Sends two delayed requests and waits until the log has both delays: an earlier request could occupy the place of one of them."""
        before = self.errors().count('delaying request')
        pending = [self.send(target) for _ in range(2)]
        wait_for(lambda: self.errors().count('delaying request') == before + 2, 'both wait')
        return pending

    def reload(self):
        before = len(self.errors())
        self.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server_kit.RUNS in self.errors()[before:], 'the reload')


@pytest.fixture
def limited(tmp_path, loop):
    server = Limited(tmp_path / 'limited', loop)
    server.start([server.port])
    wait_for(lambda: ' runs, ' in server.errors(), 'every worker is ready')
    yield server
    server.stop()


def test_limit_conn_counts_open_requests(limited):
    assert limited.fetch('/hold?key=a') == 200                        # the following requests wait for a minute each
    pending = limited.open_pending()
    assert limited.fetch('/open?key=a') == 429
    assert limited.fetch('/open?key=b') == 200
    pending[0].close()                                                 # a disconnected client is not counted any more
    wait_for(lambda: limited.fetch('/open?key=a') == 200, 'one of them has left')
    pending[1].close()
    assert 'limiting connections by zone "open"' in limited.errors()


def test_killed_worker_releases_its_counts(limited):
    assert limited.fetch('/hold?key=a') == 200
    pending = limited.open_pending()
    assert limited.fetch('/open?key=a') == 429
    for worker in limited.workers():
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: limited.errors().count('exited on signal 9') == 2, 'both workers are dead')
    wait_for(lambda: len(limited.workers()) == 2, 'their successors')
    assert [limited.fetch('/open?key=a') for _ in range(8)] == [200] * 8
    for stream in pending:
        stream.close()


def test_limits_survive_a_reload(limited):
    assert limited.fetch('/once?key=a') == 200
    pending = limited.open_pending()
    assert limited.fetch('/open?key=a') == 429
    limited.reload()
    assert limited.fetch('/once?key=a') == 429
    assert limited.fetch('/open?key=a') == 429                        # connections of old workers are counted
    for stream in pending:
        stream.close()
    wait_for(lambda: limited.fetch('/open?key=a') == 200, 'they have left')
    limited.tree['http']['limit_req_zone'][0] = '$arg_key zone=minute:2m rate=1r/m'
    limited.write_configuration()
    limited.reload()
    wait_for(lambda: limited.fetch('/once?key=a') == 200, 'a zone of another size begins anew')
    assert limited.fetch('/once?key=a') == 429


def test_explain_counts_no_request(limited):
    for _ in range(2):
        output = subprocess.run([server_kit.SLUICE, 'explain', f'http://localhost:{limited.port}/hold?key=x', '-c', limited.config_path],
                              capture_output=True, text=True, check=False)
        assert output.returncode == 0, output.stderr
        assert 'limit_req' in output.stdout and 'limit_conn' in output.stdout
    assert limited.fetch('/once?key=x') == 200


def test_reload_does_not_reset_the_limit(limited):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        requests = [pool.submit(limited.fetch, '/three?key=r') for _ in range(40)]
        limited.reload()
        requests += [pool.submit(limited.fetch, '/three?key=r') for _ in range(40)]
        got = [one.result() for one in requests]
    assert sorted(got) == [200] * 3 + [429] * 77
