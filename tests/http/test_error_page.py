"""Built-in error pages: format by Accept, the request id that is also in both logs, and the Content-Security-Policy."""
import base64
import hashlib
import json
import os
import re
import subprocess

import pytest

from kit import http1, server as server_kit
from kit.lifetime import wait_for


@pytest.fixture
def served(launch, loop, transport):
    return launch(loop, transport, http={'log_format': {'proof': '$request_uri|$status|$request_id'}}, server={
        'security_headers': 'strict', 'location': {'/': {}, '/closed': {'deny': 'all'}, '/own': {'return': '418'}}})


def fetch(served, target, accept=None):
    client = served.connect()
    try:
        return client.fetch('GET', target, [('Accept', accept)] if accept else [])
    finally:
        client.close()


def test_error_page_in_each_form(served):
    page = fetch(served, '/nowhere', 'text/html,application/xhtml+xml,*/*;q=0.8')
    assert page.status == 404 and page.headers['content-type'] == 'text/html; charset=utf-8'
    assert page.headers['vary'] == 'Accept'
    text = fetch(served, '/nowhere', 'text/plain')
    assert text.body.splitlines()[:2] == [b'404 Not Found', b'This server has no page at this address.']
    for kind in ('application/json', 'application/problem+json'):
        response = fetch(served, '/nowhere', kind)
        assert response.headers['content-type'] == kind
        described = json.loads(response.body)
        assert (described['status'], described['title']) == (404, 'Not Found') and re.fullmatch('[0-9a-f]{32}', described['request_id'])
    assert fetch(served, '/own', 'application/json').status == 418


def test_request_id_of_the_page_is_logged(served):
    described = json.loads(fetch(served, '/closed', 'application/json').body)
    assert f'id: {described["request_id"]}' in served.server.errors()
    wait_for(lambda: f'/closed|403|{described["request_id"]}' in server_kit.read_text(served.server.access_path), 'the access log')
    again = json.loads(fetch(served, '/closed', 'application/json').body)
    assert again['request_id'] != described['request_id']


def test_policy_permits_the_style(served):
    page = fetch(served, '/nowhere')
    style = re.search(b'<style>(.*)</style>', page.body, re.S).group(1)
    expected = base64.b64encode(hashlib.sha256(style).digest()).decode()
    assert f"style-src 'sha256-{expected}'" in page.headers['content-security-policy']
    assert page.headers['content-security-policy'].count("default-src 'none'") == 1     # only the page's own policy
    assert page.body.count(b'style') == 2 and b'prefers-color-scheme:dark' in style and b'<script' not in page.body


@pytest.mark.parametrize('target', ['/nowhere', '/list/'])
def test_policy_of_the_page_replaces_that_of_the_server(launch, loop, transport, target):
    """Browsers enforce all policies of a response together. Therefore the built-in page has only its own policy, and other responses have
    only that of the site."""
    served = launch(loop, transport, server={'add_header': "Content-Security-Policy \"default-src 'self'\" always", 'location': {
        '/': {}, '/list/': {'alias': served_root(launch, loop, transport), 'autoindex': 'on', 'index': 'none.html'}, '/text': {'return': '200 x'}}})
    page = fetch(served, target, 'text/html')
    policy = page.headers['content-security-policy']
    assert b'<style>' in page.body and "style-src 'sha256-" in policy and "default-src 'self'" not in policy
    assert fetch(served, '/text').headers['content-security-policy'] == "default-src 'self'"
    assert fetch(served, '/nowhere', 'text/plain').headers['content-security-policy'] == "default-src 'self'"


def served_root(launch, loop, transport):
    return launch(loop, transport).root + '/'


def test_title_is_the_reason_phrase(served):
    assert b'404</b> Not Found' in fetch(served, '/nowhere', 'text/html').body


def test_page_contains_no_request_data(served):
    page = fetch(served, '/%3Cscript%3Ealert(1)%3C/script%3E?<img>"\'')
    assert page.status == 404
    assert b'alert' not in page.body and b'<img' not in page.body


def test_curl_gets_plain_text(served):
    made = subprocess.run(['curl', '-sk', '-H', 'Accept: text/plain', served.url('/nowhere')], capture_output=True, check=True)
    assert made.stdout.startswith(b'404 Not Found\n')


def test_rejected_request_heads_get_a_page(served):
    client = served.connect()
    client.send(b'GET / HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\nBad Field: x\r\n\r\n')
    response = client.read()
    assert response.status == 400 and b'400' in response.body
    client.close()


def test_large_error_page_is_sent_by_the_chosen_path(launch, loop, transport, site):
    """A large error page is sent in the same way as a file."""
    served = launch(loop, transport, server={'error_page': '404 /1048576.bin'})
    page = fetch(served, f'/nowhere/{transport}')
    with open(os.path.join(site, '1048576.bin'), 'rb') as stream:
        assert page.status == 404 and page.body == stream.read()
    row = served.server.access_for(f'/nowhere/{transport}')[-1]
    method = 'mapped' if http1.PROTOCOL == 'http2' else 'sendfile'
    assert row['tls_path'] == {'plain': f'plain-{method}', 'user': 'user', 'ktls': f'ktls-{method}'}[transport], row
