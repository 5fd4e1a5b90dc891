"""try_files and alias: a single-page application, fallbacks, and paths with ".." that lead out of the alias."""
import os

import pytest

from kit import http1


@pytest.fixture(scope='session')
def folders(base):
    top = base / 'tries'
    for name, text in (('www/index.html', 'the application'), ('www/app.js', 'script'), ('www/docs/index.html', 'docs'),
                       ('www/page.html', 'page'), ('media/a.txt', 'media'), ('media/deep/b.txt', 'deep'), ('secret.txt', 'secret')):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(top)


@pytest.fixture
def client(launch, loop, transport, folders):
    www, media = os.path.join(folders, 'www'), os.path.join(folders, 'media')
    made = launch(loop, transport, server={'root': www, 'location': {
        '/': {'try_files': ['$uri', '$uri/', '/index.html']},
        '/strict/': {'try_files': '$uri =404'},
        '/pretty/': {'root': www, 'try_files': ['/page.html', '=404']},
        '/media': {'alias': media},
        '~ ^/m/(.+)$': {'alias': media + '/$1'},
    }}).connect(promoted=False)
    yield made
    made.close()


@pytest.mark.parametrize('path, status, body', [
    ('/', 200, b'the application'), ('/app.js', 200, b'script'), ('/some/route?x=1', 200, b'the application'),
    ('/docs/', 200, b'docs'), ('/docs', 301, None), ('/strict/x', 404, None), ('/pretty/x', 200, b'page'),
    ('/media/a.txt', 200, b'media'), ('/media/deep/b.txt', 200, b'deep'), ('/m/a.txt', 200, b'media'), ('/media/none', 404, None),
    ('/media../secret.txt', 404, None), ('/media..%2fsecret.txt', 404, None), ('/media%2e%2e/secret.txt', 404, None),
    ('/media/..%2fsecret.txt', 200, b'the application'),
])
def test_try_files_and_alias_select_files(client, path, status, body):
    response = client.get(path)
    assert response.status == status
    if body is not None:
        assert response.body == body
    assert b'secret' not in response.body and client.alive()


def test_path_above_the_root_is_400(client):
    response = client.get('/m/..%2f..%2fsecret.txt')
    assert response.status == 400 and response.closes == (http1.PROTOCOL == 'http1')


def test_curl_gets_the_fallback_page(launch, loop, transport, folders):
    import subprocess
    served = launch(loop, transport, server={'root': os.path.join(folders, 'www'), 'try_files': ['$uri', '/index.html']})
    output = subprocess.run(['curl', '-sk', '-o', '-', '-w', '%{http_code} %{content_type}', served.url('/any/thing')],
                          capture_output=True, text=True, timeout=30, check=True).stdout
    assert output == 'the application200 text/html; charset=utf-8'
