"""Responses of many kinds, checked by httplint (the linter of REDbot): it must report no error."""
import time

import brotli
import pytest
from httplint import HttpRequestLinter, HttpResponseLinter
from httplint.note import levels
from kit import site as site_kit

PAGE = '<!doctype html><html lang="en"><title>one</title>' + '<p>a line of it</p>\n' * 200

# Heuristic freshness is permitted: explicit freshness (`expires`) is the site's decision.
TASTE = {'FRESHNESS_HEURISTIC'}
# httplint treats every 206 as a single part. In multipart/byteranges the parts have Content-Range, and the header section must not have it
# (RFC 9110 15.3.7.2).
MULTIPART = {'PARTIAL_WITHOUT_RANGE'}

# method, target, fields, expected status, expected coding
ROWS = [
    ('GET', '/', {}, 200, None), ('HEAD', '/', {}, 200, None), ('GET', '/page.html', {}, 200, None),
    ('GET', '/page.html', {'Accept-Encoding': 'gzip'}, 200, 'gzip'), ('GET', '/page.html', {'Accept-Encoding': 'br'}, 200, 'br'),
    ('GET', '/page.html', {'Accept-Encoding': 'zstd'}, 200, 'zstd'), ('HEAD', '/page.html', {'Accept-Encoding': 'gzip'}, 200, 'gzip'),
    ('GET', '/style.css', {'Accept-Encoding': 'br, gzip'}, 200, 'br'), ('GET', '/style.css', {}, 200, None),
    ('GET', '/style.css', {'Accept-Encoding': 'br', 'Range': 'bytes=1-5'}, 206, 'br'),
    ('GET', '/page.html', {'Range': 'bytes=0-99'}, 206, None), ('GET', '/page.html', {'Range': 'bytes=0-9,20-29'}, 206, None),
    ('GET', '/page.html', {'Range': 'bytes=99999-'}, 416, None), ('GET', '/page.html', {'If-None-Match': '*'}, 304, None),
    ('GET', '/page.html', {'If-None-Match': '*', 'Accept-Encoding': 'gzip'}, 304, None), ('GET', '/page.html', {'If-Match': '"x"'}, 412, None),
    ('GET', '/style.css', {'If-None-Match': '*', 'Accept-Encoding': 'br'}, 304, None), ('GET', '/empty.txt', {}, 200, None),
    ('GET', '/listed/', {}, 200, None), ('GET', '/listed/', {'Accept': 'application/json'}, 200, None),
    ('GET', '/listed/', {'Accept-Encoding': 'gzip'}, 200, 'gzip'), ('GET', '/listed', {}, 301, None), ('GET', '/nowhere', {}, 404, None),
    ('GET', '/nowhere', {'Accept-Encoding': 'gzip'}, 404, 'gzip'), ('GET', '/forbidden/', {}, 403, None), ('POST', '/page.html', {}, 405, None),
    ('OPTIONS', '/page.html', {}, 204, None), ('GET', '/text', {}, 200, None), ('GET', '/gone', {}, 410, None),
    ('GET', '/moved', {}, 308, None), ('GET', '/fresh/page.html', {}, 200, None), ('GET', '/secure/page.html', {}, 200, None),
    ('GET', '/missing/file', {}, 404, None), ('GET', '/closed', {}, 503, None),
]


@pytest.fixture(scope='session')
def folder(base):
    top = base / 'linted'
    for name in ('index.html', 'page.html', 'missing.html'):
        site_kit.write(str(top), name, PAGE)
    site_kit.write(str(top), 'style.css', 'p { margin: 0 }\n' * 100)
    site_kit.write(str(top), 'style.css.br', brotli.compress(b'p { margin: 0 }\n' * 100))
    site_kit.write(str(top), 'empty.txt', '')
    site_kit.write(str(top), 'listed/file one.txt', 'one')
    site_kit.write(str(top), 'forbidden/file.txt', 'one')
    site_kit.make_file(str(top / '65536.bin'), 65536)
    return str(top)


@pytest.fixture
def client(launch, loop, transport, folder):
    served = launch(loop, transport, server={
        'root': folder, 'gzip': 'on', 'brotli': 'on', 'zstd': 'on', 'precompressed': ['br', 'gzip'], 'autoindex': 'on', 'location': {
            '/forbidden/': {'autoindex': 'off'}, '/text': {'return': '200 "some text"'}, '/gone': {'return': '410'},
            '/moved': {'return': '308 /page.html'}, '/closed': {'return': '503'},
            '/fresh/': {'alias': folder + '/', 'expires': '30d'},
            '/secure/': {'alias': folder + '/', 'security_headers': 'on', 'add_header': {'Cache-Control': 'max-age=60'}},
            '/missing/': {'error_page': '404 /missing.html'}}})
    made = served.connect()
    yield made
    made.close()


def lint(method, target, headers, response):
    """httplint's notes on a response: (level, name, text)."""
    request_linter = HttpRequestLinter()
    request_linter.process_request_topline(method.encode(), b'http://localhost' + target.encode(), b'HTTP/1.1')
    request_linter.process_headers([(b'Host', b'localhost'), *((name.encode(), value.encode()) for name, value in headers.items())])
    request_linter.finish_content(True)
    response_linter = HttpResponseLinter(_related=request_linter, start_time=time.time())
    response_linter.process_response_topline(response.version.encode(), str(response.status).encode(), b'x')
    response_linter.process_headers([(name.encode('latin-1'), value.encode('latin-1')) for name, value in response.lines
                          if response.status != 206 or name != 'Content-Encoding'])  # httplint would decode a part
    if method == 'HEAD':
        response_linter.is_head_response = True
    elif response.body:
        response_linter.feed_content(response.body)
    response_linter.finish_content(True)
    if response.headers.get('content-type', '').startswith('multipart/byteranges'):
        response_linter.notes = [note for note in response_linter.notes if type(note).__name__ not in MULTIPART]
    return [(note.level, type(note).__name__, str(note.summary)) for note in response_linter.notes]


@pytest.mark.parametrize('method, target, headers, status, coding', ROWS)
def test_responses_have_no_httplint_errors(client, method, target, headers, status, coding):
    response = client.fetch(method, target, list(headers.items()))
    assert response.status == status and response.headers.get('content-encoding') == coding
    notes = lint(method, target, headers, response)
    assert [note for note in notes if note[0] == levels.BAD] == []
    assert {note[1:] for note in notes if note[0] == levels.WARN and note[1] not in TASTE} == set()


def test_httplint_detects_faults():
    """httplint detects faults."""
    class Wrong:
        status, version, body = 200, 'HTTP/1.1', b'12345'
        headers = {}
        lines = [('Content-Type', 'text/plain'), ('Content-Length', '7'), ('Date', 'yesterday'), ('ETag', 'x'), ('Content-Encoding', 'gzip')]
    assert len([note for note in lint('GET', '/', {}, Wrong) if note[0] == levels.BAD]) >= 2
