"""Paths to forbidden files: outside the root, with a leading dot, or not regular files. All of them are refused."""
import os

import pytest
from kit import site as site_kit

SECRET = b'this content must not be served\n'
REFUSED = {400, 403, 404}

# Spellings of "../" from known attacks.
CLIMBS = [
    '../', '..%2f', '..%2F', '%2e%2e/', '%2E%2E/', '.%2e/', '%2e./', '.%2E/', '%2e%2e%2f', '%2E%2E%2F', '..\\', '..%5c', '..%5C',
    '%2e%2e\\', '%2e%2e%5c', '.%2e%5c', '%252e%252e/', '%252e%252e%252f', '..%252f', '..%255c', '%25252e%25252e%25252f',
    '%c0%ae%c0%ae/', '%c0%ae%c0%ae%c0%af', '..%c0%af', '..%c1%9c', '..%c0%9v', '%e0%80%ae%e0%80%ae/', '%f0%80%80%ae%f0%80%80%ae/',
    '..%e0%80%af', '%u002e%u002e/', '%u002e%u002e%u002f', '%uff0e%uff0e/', '%ef%bc%8e%ef%bc%8e/', '..%ef%bc%8f', '%%32%65%%32%65/',
    '%%35%63..', '..;/', '..;a=b/', ';/../', '..%00/', '%00../', '.%00./', '..%0a/', '..%0d/', '..%09/', '..%20/', '.. /', '....//',
    '.../', '..././', './.././', '..//', '..///', '//../', '/./../', '.%2f../', '..%2f%2e', '~/../', '*/../', '.../...//', '\u2025/',
]
PREFIXES = ['/', '/folder/', '/alias/', '/captured/', '/bare', '/tried/']

# Paths to names with a leading dot.
HIDDEN = [
    '/.hidden', '/%2ehidden', '/%2Ehidden', '/.%68idden', '//.hidden', '/./.hidden', '/folder/../.hidden', '/folder/.hidden',
    '/folder/./.hidden', '/.hidden/', '/.hidden?', '/.hidden?a=b', '/.hidden%00', '/.hidden%00.html', '/.hidden%20', '/.hidden;a=b',
    '/.git/config', '/.git//config', '/.git/./config', '/.git%2fconfig', '/%2egit/config', '/%2egit%2fconfig', '/.git', '/.git/',
    '/.git/HEAD', '/.well-known/../.git/config', '/.well-known/.hidden', '/.well-known/.git/config', '/.well-known%2f..%2f.hidden',
    '/alias/.hidden', '/alias/%2ehidden', '/alias/./.hidden', '/captured/.hidden', '/captured/%2ehidden', '/bare/.hidden', '/bare.hidden',
    '/tried/?file=/.hidden', '/tried/?file=/folder/.hidden', '/tried/?file=%2f.hidden', '/.env', '/.htaccess', '/.htpasswd', '/.ssh/id_rsa',
    '/.DS_Store', '/.svn/entries', '/.hidden.gz', '/.hidden.br', '/...', '/.../secret.txt',
]

# Paths to other places, and to special files.
ELSEWHERE = [
    '/secret.txt', '/www/secret.txt', '/etc/passwd', '//etc/passwd', '///etc/passwd', '/%2fetc/passwd', '/%2f%2fetc%2fpasswd',
    '/proc/self/environ', '/proc/self/cmdline', '/proc/self/fd/0', '/dev/null', '/dev/random', '/file:///etc/passwd', '/C:/secret.txt',
    '/c:%5csecret.txt', '/%5c%5clocalhost%5csecret.txt', '/link-out', '/link-absolute', '/link-folder-out/secret.txt',
    '/link-folder-out/', '/link-precompressed.css.gz', '/fifo', '/one.txt/', '/one.txt/.', '/one.txt/..%2fsecret.txt', '/one.txt%00',
    '/one.txt%00.html', '/one.txt%20', '/one.txt.', '/one.txt::$DATA', '/one.txt:secret', '/ONE.TXT', '/one.txt~', '/one.txt.bak',
    '/www-sibling/secret.txt', '/../www-sibling/secret.txt', '/..www-sibling/secret.txt', '/bare-sibling/secret.txt', '/bare/../secret.txt',
    '/tried/?file=../secret.txt', '/tried/?file=/../secret.txt', '/tried/?file=%2e%2e%2fsecret.txt', '/tried/?file=/link-out',
    '/tried/?file=/folder/../../secret.txt', '/tried/?file=//etc/passwd', '/folder/..%2f..%2f..%2f..%2fetc%2fpasswd', '/%', '/%2', '/%zz',
    '/%00', '/one.txt%', '/\x7f', '/\\', '/\\..\\secret.txt', '/$document_root/secret.txt', '/${document_root}', '/`id`', '/|id',
]


def traversal_paths():
    """Every spelling, in every location, with one or several "../" up to each secret file, and up to the root of the file system."""
    for prefix in PREFIXES:
        for climb in CLIMBS:
            yield f'{prefix}{climb}secret.txt'
            yield f'{prefix}{climb * 2}secret.txt'
    for climb in CLIMBS:
        yield f'/{climb * 12}etc/passwd'
        yield f'/{climb}www-sibling/secret.txt'
        yield f'http://localhost/{climb}secret.txt'


PATHS = {'up': list(traversal_paths()), 'hidden': HIDDEN, 'elsewhere': ELSEWHERE}
assert sum(len(paths) for paths in PATHS.values()) >= 200


@pytest.fixture(scope='session')
def guarded(base):
    """A document root with secret files inside and outside it; all of them have the same content."""
    top = base / 'guarded'
    root = top / 'www'
    for name in ('one.txt', 'folder/index.html', 'folder/inner.txt', 'bare/file.txt', '.well-known/security.txt', 'link-precompressed.css',
                 'alias/inner.txt'):
        site_kit.write(str(root), name, 'this content may be served\n')
    for name in ('.hidden', '.hidden.gz', '.git/config', '.git/HEAD', 'folder/.hidden', 'bare/.hidden', '.env', '.htaccess', '.htpasswd',
                 '.ssh/id_rsa', '.DS_Store', '.svn/entries', '.well-known/.hidden', '.../secret.txt'):
        site_kit.write(str(root), name, SECRET)
    for name in ('secret.txt', 'www-sibling/secret.txt', 'outside/secret.txt'):
        site_kit.write(str(top), name, SECRET)
    site_kit.make_file(str(root / '65536.bin'), 65536)
    os.symlink('../secret.txt', root / 'link-out')
    os.symlink(top / 'secret.txt', root / 'link-absolute')
    os.symlink('../outside', root / 'link-folder-out')
    os.symlink('../secret.txt', root / 'link-precompressed.css.gz')
    os.mkfifo(root / 'fifo')
    return str(root)


@pytest.fixture
def served(launch, loop, transport, guarded):
    return launch(loop, transport, server={
        'root': guarded, 'autoindex': 'on', 'precompressed': ['br', 'gzip'], 'gzip': 'on', 'location': {
            '/alias/': {'alias': guarded + '/folder/'}, '/bare': {'alias': guarded + '/bare'},
            '~ ^/captured/(.*)$': {'alias': guarded + '/folder/$1'}, '/tried/': {'try_files': ['$arg_file', '=404']}}})


class ReconnectingClient:
    """A client that reconnects when its connection has ended."""

    def __init__(self, served):
        self.served, self.client = served, served.connect(promoted=False)

    def fetch(self, target, headers=()):
        lines = ''.join(f'{name}: {value}\r\n' for name, value in headers)
        self.client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n'.encode('utf-8'))
        response = self.client.read()
        if response.closes:
            self.client.close()
            self.client = self.served.connect(promoted=False)
        return response


@pytest.mark.parametrize('kind', PATHS)
@pytest.mark.parametrize('takes', ['identity', 'gzip, br'])
def test_every_path_is_rejected(served, kind, takes):
    owner, wrong = ReconnectingClient(served), []
    for target in PATHS[kind]:
        response = owner.fetch(target, [('Accept-Encoding', takes)])
        if response.status not in REFUSED or SECRET in response.body or b'root:' in response.body:
            wrong.append((target, response.status, response.body[:80]))
    assert not wrong, f'{len(wrong)} of {len(PATHS[kind])}: {wrong[:20]}'
    assert owner.fetch('/one.txt').body == b'this content may be served\n'
    owner.client.close()


def test_permitted_files_are_served(served):
    """The same locations serve the permitted files."""
    owner = ReconnectingClient(served)
    for target in ('/one.txt', '/folder/inner.txt', '/alias/inner.txt', '/captured/inner.txt', '/bare/file.txt', '/tried/?file=/one.txt',
                   '/folder/../one.txt', '/./one.txt', '//one.txt', '/%6fne.txt', '/.well-known/security.txt', '/link-precompressed.css'):
        response = owner.fetch(target, [('Accept-Encoding', 'br')])
        assert response.status == 200 and response.body == b'this content may be served\n', target
    listed = owner.fetch('/')
    assert listed.status == 200 and b'one.txt' in listed.body
    for name in (b'.hidden', b'.git', b'.env', b'secret'):
        assert name not in listed.body
    owner.client.close()
