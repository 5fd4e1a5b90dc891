"""Directives that add header fields: expires, security_headers, hsts, cors, preload with 103, trailers; with real clients."""
import subprocess

import pytest

SERVER = {
    'security_headers': 'on', 'hsts': '30d include_subdomains',
    'location': {
        '/hints/': {'preload': ['/style.css as=style'], 'default_type': 'text/html', 'return': '200 <p>page'},
        '/one.txt': {'expires': 'modified 100d', 'add_trailer': 'X-Sent $body_bytes_sent'},
        '/ten.txt': {'expires': '30d', 'cors': {'origins': 'https://app.test'}},
    }}


@pytest.fixture
def served(launch, loop, transport):
    return launch(loop, transport, server=SERVER)


@pytest.fixture
def client(served):
    made = served.connect()
    yield made
    made.close()


def curl(served, target, *arguments):
    return subprocess.run(['curl', '-sk', '--http1.1', '-i', *arguments, served.url(target)], capture_output=True, text=True,
                          timeout=30, check=True).stdout.replace('\r', '')


def test_hsts_is_sent_only_over_tls(client, transport):
    response = client.get('/ten.txt')
    assert response.headers.get('strict-transport-security') == (
        None if transport == 'plain' else 'max-age=2592000; includeSubDomains')
    assert response.headers['x-content-type-options'] == 'nosniff'
    assert client.get('/nowhere').headers['x-frame-options'] == 'SAMEORIGIN'


def test_expires_is_sent_with_304(client):
    first = client.get('/ten.txt')
    assert first.headers['cache-control'] == 'max-age=2592000' and first.headers['vary'] == 'Origin'
    again = client.get('/ten.txt', If_None_Match=first.headers['etag'])
    assert again.status == 304 and again.headers['cache-control'] == 'max-age=2592000' and 'expires' in again.headers


def test_preload_sends_103(served, transport):
    output = curl(served, '/hints/', '-H', 'Sec-Fetch-Mode: navigate')
    assert output.startswith('HTTP/1.1 103 ') == (transport != 'plain')
    assert output.count('Link: </style.css>; rel=preload; as=style\n') == (1 if transport == 'plain' else 2)
    assert curl(served, '/hints/').startswith('HTTP/1.1 200 ')
    assert curl(served, '/hints/', '--http1.0', '--no-alpn', '-H', 'Sec-Fetch-Mode: navigate').startswith('HTTP/1.1 200 ')


def test_trailers_follow_the_last_chunk(served):
    output = curl(served, '/one.txt')
    head, _, rest = output.partition('\n\n')
    assert 'Transfer-Encoding: chunked' in head.split('\n') and 'Cache-Control: max-age=' in head and 'X-Sent' not in head
    body, _, trailer = rest.rpartition('X-Sent: ')
    assert int(trailer) == len(body) > 0


def test_cors_preflight_and_origin(client):
    response = client.fetch('OPTIONS', '/ten.txt', [('Origin', 'https://app.test'), ('Access-Control-Request-Method', 'POST')])
    assert response.status == 204 and response.headers['access-control-allow-methods'] == 'GET, HEAD, POST'
    response = client.fetch('GET', '/ten.txt', [('Origin', 'https://other.test')])
    assert response.status == 200 and 'access-control-allow-origin' not in response.headers
    assert client.alive()
