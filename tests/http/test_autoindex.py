"""autoindex: the HTML page and the JSON list; the target of every link on the page is the file of its name."""
import base64
import hashlib
import html.parser
import json
import os
import re
import subprocess
import urllib.parse

import pytest

NAMES = ['file 2.txt', 'file 10.txt', 'ünï.txt', '<b>&"\'.txt', 'a?b#c%d.txt', 'http:x', '+ +.txt', '中文.html']


class Page(html.parser.HTMLParser):
    """The links of an HTML page, and tags and attributes that it must not contain."""

    def __init__(self, text):
        super().__init__()
        self.links, self.texts, self.wrong, self.inside = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == 'a':
            self.links.append(found['href'])
            self.texts.append('')
            self.inside = True
        if tag in ('script', 'b', 'img', 'iframe') or any(name.startswith('on') for name in found):
            self.wrong.append(tag)

    def handle_endtag(self, tag):
        if tag == 'a':
            self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.texts[-1] += data


@pytest.fixture(scope='session')
def folder(base):
    top = base / 'listed'
    (top / 'sub' / 'deeper').mkdir(parents=True)
    for name in NAMES:
        (top / 'sub' / name).write_text(name)
    (top / 'sub' / '.hidden').write_text('no')
    return str(top)


@pytest.fixture
def served(launch, loop, transport, folder):
    return launch(loop, transport, server={'root': folder, 'autoindex': 'on', 'location': {
        '/sub/deeper/': {'autoindex': 'off'}, '/strict/': {'alias': folder + '/', 'security_headers': 'strict'}}})


@pytest.fixture
def client(served):
    made = served.connect(promoted=False)
    yield made
    made.close()


def test_links_resolve_to_the_named_files(client):
    page = Page(client.get('/sub/').body.decode())
    assert not page.wrong
    found = {text: link for link, text in zip(page.links, page.texts) if text in NAMES}
    assert sorted(found) == sorted(NAMES)
    for name, link in found.items():
        target = urllib.parse.urljoin('http://localhost/sub/', link)
        assert target.startswith('http://localhost/sub/'), target
        response = client.get(urllib.parse.urlsplit(target).path)
        assert response.status == 200 and response.body.decode() == name
    assert page.texts.index('file 2.txt') < page.texts.index('file 10.txt')
    assert client.get('/sub/deeper/').status == 403
    assert client.get('/sub/').status == 200


def test_json_listing(client):
    response = client.fetch('GET', '/sub/?sort=size', [('Accept', 'application/json')])
    items = json.loads(response.body)
    assert {item['name'] for item in items} == {*NAMES, 'deeper'}
    assert items[0] == {**items[0], 'name': 'deeper', 'type': 'directory'} and 'size' not in items[0]
    sizes = [item['size'] for item in items[1:]]
    assert sizes == sorted(sizes)


@pytest.fixture(scope='session')
def many(folder):
    """More files than a listing shows. They are hard links, because creating inodes takes twenty times as long."""
    top = os.path.join(folder, 'many')
    os.mkdir(top)
    with open(os.path.join(top, '0'), 'w', encoding='ascii'):
        pass
    for number in range(1, 10050):
        os.link(os.path.join(top, '0'), os.path.join(top, str(number)))


def test_listing_is_limited_to_10000_entries(client, many):
    body = client.get('/many/').body.decode()
    assert body.count('<tr><td>') == 10001 and 'there are more, which are not shown' in body
    assert client.get('/sub/').status == 200


def test_policy_permits_the_filter(client, folder):
    """Only a listing of more than 50 entries has a script, and its policy permits no other."""
    for count in (50, 51):
        top = os.path.join(folder, f'with{count}')
        os.makedirs(top, exist_ok=True)
        for number in range(count):
            with open(os.path.join(top, str(number)), 'w', encoding='ascii'):
                pass
        page = client.get(f'/with{count}/')
        scripts = re.findall(rb'<script>(.*?)</script>', page.body, re.S)
        digests = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts]
        assert len(scripts) == (count > 50) and page.body.count(b'<input') == len(scripts)
        assert re.findall("script-src '(.*?)'", page.headers['content-security-policy']) == [f'sha256-{digest}' for digest in digests]


def test_policy_permits_the_style(client):
    """The Content-Security-Policy of the page permits only its style; `security_headers: strict` does not replace it."""
    for target in ('/', '/strict/'):
        page = client.get(target)
        style = re.search(rb'<style>(.*?)</style>', page.body, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
        policies = [value for name, value in page.lines if name.lower() == 'content-security-policy']
        assert len(policies) == 1 and "default-src 'none'" in policies[0] and f"style-src 'sha256-{digest}'" in policies[0], digest
    assert 'content-security-policy' not in client.get('/', Accept='application/json').headers


def test_curl_gets_the_listing_after_one_redirect(served):
    output = subprocess.run(['curl', '-skL', '-w', ' %{http_code} %{num_redirects}', served.url('/sub')], capture_output=True,
                          text=True, timeout=30, check=True).stdout
    assert output.endswith(' 200 1') and '<title>/sub/</title>' in output
