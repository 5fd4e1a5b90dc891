"""The reverse proxy with real upstream servers (nginx, Python's http.server), and with servers that are killed and restarted."""
import hashlib
import os
import sys
import threading

import pytest
from kit import http1, programs, server as server_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream


@pytest.fixture(scope='module')
def files(base):
    folder = base / 'upstream-files'
    folder.mkdir()
    big = os.urandom(3_000_000)
    (folder / 'big.bin').write_bytes(big)
    (folder / 'small.txt').write_bytes(b'small\n')
    (folder / 'folder').mkdir()
    return folder, big


@pytest.fixture(scope='module')
def nginx(base, files):
    port, folder = server_kit.free_port(), base / 'nginx'
    folder.mkdir()
    (folder / 'conf').write_text(
        f'daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n'
        'events {}\n'
        f'http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};\n'
        f'  uwsgi_temp_path {folder}; scgi_temp_path {folder}; gzip on; gzip_types text/plain; gzip_min_length 1; gzip_proxied any;\n'
        f'  server {{ listen 127.0.0.1:{port}; root {files[0]};\n'
        '    location = /request { return 200 "$request_uri|$http_x_forwarded_for|$http_via|$host|$http_connection"; }\n'
        '    location = /gone { return 410 gone; } } }\n')
    made = programs.Program([programs.program('nginx'), '-c', str(folder / 'conf'), '-e', str(folder / 'error.log')], port=port)
    yield port
    made.stop()


@pytest.fixture(scope='module')
def python(files):
    made = programs.Program([sys.executable, '-m', 'http.server', '{port}', '--bind', '127.0.0.1'], cwd=files[0])
    yield made.port
    made.stop()


def served_before(launch, loop, transport, port):
    return launch(loop, transport, server={'location': {'/': {'proxy_pass': f'http://127.0.0.1:{port}'}}})


def test_nginx_as_upstream_server(launch, loop, transport, nginx, files):
    client = served_before(launch, loop, transport, nginx).connect()
    big = files[1]
    for _ in range(3):
        assert hashlib.sha256(client.get('/big.bin').body).digest() == hashlib.sha256(big).digest()
    part = client.fetch('GET', '/big.bin', [('Range', 'bytes=1000-1999')])
    assert part.status == 206 and part.body == big[1000:2000] and part.headers['content-range'] == f'bytes 1000-1999/{len(big)}'
    head = client.fetch('HEAD', '/big.bin')
    assert head.status == 200 and head.headers['content-length'] == str(len(big))
    etag = head.headers['etag']
    assert client.fetch('GET', '/big.bin', [('If-None-Match', etag)]).status == 304
    assert client.get('/nowhere').status == 404
    assert client.get('/gone').body == b'gone'
    assert client.get('/folder').status == 301
    packed = client.fetch('GET', '/small.txt', [('Accept-Encoding', 'gzip')])
    assert packed.headers['content-encoding'] == 'gzip' and not packed.has_length
    output = client.get('/request?a=b').body.decode().split('|')
    assert output == ['/request?a=b', '127.0.0.1', '2 sluice' if http1.PROTOCOL == 'http2' else '1.1 sluice', '127.0.0.1', '']
    assert client.fetch('POST', '/small.txt', body=b'x' * 300000).status == 405     # an early response: the connection may end
    client.close()


def test_python_http_server_as_upstream_server(launch, loop, transport, python, files):
    client = served_before(launch, loop, transport, python).connect()
    for _ in range(3):
        assert client.get('/big.bin').body == files[1]      # HTTP/1.0: each response ends its connection
    assert client.get('/nowhere').status == 404
    assert client.fetch('HEAD', '/small.txt').headers['content-length'] == '6'
    assert client.fetch('POST', '/small.txt', body=b'x').status == 501
    assert client.get('/small.txt').body == b'small\n'
    client.close()


def test_killed_servers_cause_no_failed_requests(launch, loop, transport):
    """One of two servers always runs: every GET succeeds."""
    servers = [Upstream(name='a'), Upstream(name='b')]
    group = {'group': {'server': [f'127.0.0.1:{made.port} max_fails=1 fail_timeout=100ms' for made in servers]}}
    served = launch(loop, transport, http={'upstream': group}, server={'location': {'/': {'proxy_pass': 'http://group'}}})
    statuses, stop = [], threading.Event()

    def fetch():
        while not stop.is_set():
            client = served.connect()
            try:
                for _ in range(100):
                    statuses.append(client.get('/x').status)
            except (EOFError, OSError) as error:
                statuses.append(repr(error))
            client.close()

    def more_responses():
        before = len(statuses)
        wait_for(lambda: len(statuses) > before + 100, 'more responses')
    askers = [threading.Thread(target=fetch) for _ in range(3)]
    for owner in askers:
        owner.start()
    try:
        for number in range(6):
            victim = servers[number % 2]
            more_responses()
            victim.stop()
            more_responses()
            victim.start()
            before = len(victim.requests)
            wait_for(lambda: len(victim.requests) > before, 'the server gets requests again')
    finally:
        stop.set()
        for owner in askers:
            owner.join(30)
    for made in servers:
        made.stop()
    assert len(statuses) > 100 and set(statuses) == {200}, {status: statuses.count(status) for status in set(statuses)}
