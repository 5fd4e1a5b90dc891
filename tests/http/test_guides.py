"""The pages of docs/ that are written by hand: their configurations load. For migrating.md, `sluice import` prints what the page says for
conf/examples/nginx, and sluice answers as nginx does, except where the report says otherwise."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from kit import examples as examples_kit, server as server_kit, site as site_kit
from kit.fastcgi import GOOD, end, out
from kit.nginx import NGINX, RunningServer, import_file
from kit.server import SLUICE

FOLDER = examples_kit.FOLDER / 'nginx'
DOCS = FOLDER.parents[2] / 'docs'
GENERATED = ('README', 'configuration', 'nginx', 'recipes', 'variables')
BLOCKS = [(path.stem, block) for path in sorted(DOCS.glob('*.md')) if path.stem not in GENERATED
          for block in re.findall(r'^```yaml\n(.*?)^```', path.read_text(encoding='utf-8'), re.M | re.S)]
HOST = 'shop.example.test'


def replaced(text, places, back=False):
    for name, place in places:
        text = text.replace(*((place, name) if back else (name, place)))
    return text


class Shop:
    """A copy of the example in which ports and paths are those of this test, translated. `places`: [(text of the example, its replacement)]."""

    def __init__(self, folder):
        self.folder, self.plain, self.tls = folder, server_kit.free_port(), server_kit.free_port()
        self.run = examples_kit.Example('nginx', folder)
        self.app = self.run.upstream()
        self.php = self.run.fastcgi()
        self.php.responses['/info.php'] = out(GOOD + b'php') + end()
        for name, content in (('www/assets/app.css', 'p{}' * 1000), ('www/50x.html', 'down'), ('www/page.txt', 'page'), ('ssl/x', '')):
            self.run.file(name, content)
        certificate, key = site_kit.make_certificate(str(folder / 'ssl'), HOST, names=[HOST])
        os.rename(certificate, folder / 'ssl/fullchain.pem')
        os.rename(key, folder / 'ssl/privkey.pem')
        (folder / 'cache').mkdir()
        (folder / 'log').mkdir()
        self.places = [(str(FOLDER), f'{folder}/etc'), ('/srv/shop', f'{folder}/www'), ('/etc/ssl/shop', f'{folder}/ssl'),
                       ('/var/cache/nginx', f'{folder}/cache'), ('/var/log/nginx', f'{folder}/log'), ('/run/nginx.pid', f'{folder}/pid'),
                       ('/run/php/php-fpm.sock', self.php.path), ('127.0.0.1:3000', f'127.0.0.1:{self.app.port}'),
                       ('listen 80;', f'listen 127.0.0.1:{self.plain};'), ('listen 443 ', f'listen 127.0.0.1:{self.tls} '),
                       ('listen: 80\n', f'listen: 127.0.0.1:{self.plain}\n'), ('listen: 443 ', f'listen: 127.0.0.1:{self.tls} ')]
        shutil.copytree(FOLDER, folder / 'etc')
        self.conf, self.yaml = folder / 'etc/nginx.conf', folder / 'sluice.yaml'
        self.conf.write_text(replaced(self.conf.read_text(), self.places))
        self.status, self.report = import_file(self.conf, self.yaml)

    def fetch(self, target, method='GET', tls=True, host=HOST):
        return self.run.fetch(target, method, host=host, port=self.tls if tls else self.plain, tls=tls)


@pytest.fixture(scope='module')
def shop(new_directory):
    made = Shop(new_directory())
    yield made
    made.run.stop()


def test_translation_is_the_shipped_one(shop):
    """conf/examples/nginx/sluice.yaml is the translation of the nginx.conf beside it."""
    text = replaced(shop.yaml.read_text(), shop.places, back=True).replace(f'{FOLDER}/', '/etc/nginx/')
    assert text == (FOLDER / 'sluice.yaml').read_text()


def test_page_has_the_report(shop):
    report = replaced(shop.report, shop.places, back=True).replace(f'{FOLDER}/', '/etc/nginx/')
    blocks = re.findall(r'^```\n(.*?)^```', (DOCS / 'migrating.md').read_text(encoding='utf-8'), re.M | re.S)
    assert report in blocks and shop.status == 2
    for line in re.findall(r'^  (\S+):(\d+): (\w+)', report, re.M):
        assert line[2] in (FOLDER / pathlib.Path(line[0]).name).read_text().splitlines()[int(line[1]) - 1]


def test_checks_of_the_page(shop):
    """`sluice -t` and `sluice lint` succeed with the warning about the lost handler, and `explain` names the location."""
    tested = subprocess.run([SLUICE, '-t', '-c', shop.yaml], capture_output=True, text=True, check=True)
    assert 'uwsgi_pass' in tested.stderr and tested.stderr.count('warning:') == 1
    linted = subprocess.run([SLUICE, 'lint', shop.yaml], capture_output=True, text=True, check=False)
    assert linted.returncode == 1 and 'uwsgi_pass' in linted.stdout
    explained = subprocess.run([SLUICE, 'explain', f'https://{HOST}:{shop.tls}/api/orders', '-c', shop.yaml], capture_output=True, text=True, check=True)
    assert '/api/' in explained.stdout and 'http://app/v1/' in explained.stdout


@pytest.mark.parametrize('page, block', BLOCKS)
def test_configurations_load(tmp_path, page, block):
    (tmp_path / 'sluice.yaml').write_text(block)
    tested = subprocess.run([SLUICE, '-t', '-q', '-c', tmp_path / 'sluice.yaml'], capture_output=True, text=True, check=False)
    assert (tested.returncode, tested.stderr) == (0, '')


def test_pages_have_configurations():
    assert {'scaling'} <= {page for page, _ in BLOCKS}


REQUESTS = [('/page.txt',), ('/assets/app.css',), ('/orders?x=1',), ('/api/orders',), ('/info.php',), ('/page.txt', 'DELETE'), ('/login', 'POST')]
FIELDS = ('location', 'x-frame-options', 'cache-control')


def responses(shop):
    """Of built-in pages, the text and its type differ."""
    found = [shop.fetch('/a?b', tls=False), shop.fetch('/', tls=False, host=f'www.{HOST}'), *(shop.fetch(*request) for request in REQUESTS)]
    return [(response.status, *(response.headers.get(name) for name in FIELDS),
             (response.headers['content-type'], response.body) if response.status == 200 else None) for response in found]


def test_same_responses(shop):
    """nginx and sluice, one after the other on the same ports."""
    if NGINX is None:
        pytest.skip('nginx is not installed')
    nginx = RunningServer([NGINX, '-c', str(shop.conf), '-g', 'daemon off;'], [shop.plain, shop.tls], shop.folder / 'nginx.log')
    expected = responses(shop)
    nginx.stop()
    assert [response[0] for response in expected] == [301, 301, 200, 200, 200, 200, 200, 405, 200]
    sluice = RunningServer([SLUICE, '-c', str(shop.yaml)], [shop.plain, shop.tls], shop.folder / 'sluice.log')
    try:
        assert responses(shop) == expected
        legacy = shop.fetch('/legacy/x')
        assert (legacy.status, legacy.body) == (503, b'down')       # the placeholder, through error_page
    finally:
        sluice.stop()
    assert re.search(r'^127\.0\.0\.1 \[.*\] "GET /page.txt HTTP/1.1" 200 4 \d', server_kit.read_text(shop.folder / 'log/access.log'), re.M)
