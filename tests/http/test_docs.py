"""The HTML pages of docs/, as the build writes them, in headless Chromium: the search, narrow screens, the dark mode, the Content-Security-Policy."""
import json
import pathlib
import shutil

import pytest

from kit import server as server_kit
from kit.browser import CHROMIUM, browse, first_pixel, screenshot

HTML = pathlib.Path(server_kit.SLUICE).parent / 'docs/site/html'
# Shows pages in a frame of 390 px, types into their search fields, and reports what the frame contains.
DRIVER = r'''<!doctype html><title>driver</title><iframe id=frame width=390 height=800></iframe>
<script>
const frame = document.getElementById('frame');
const show = path => new Promise(done => { frame.onload = () => done(frame.contentDocument); frame.src = '/html/' + path; });
const broken = cell => { // a cell with one word on several lines
  const range = cell.ownerDocument.createRange();
  range.selectNodeContents(cell);
  return !/[^\w.]/.test(cell.textContent) && new Set([...range.getClientRects()].map(line => line.top)).size > 1;
};
const results = async (page, text) => {
  const field = page.querySelector('#search input');
  field.value = text;
  field.dispatchEvent(new Event('input'));
  return [...page.querySelectorAll('#results li')].map(line => [line.querySelector('strong')?.textContent, line.querySelector('a')?.getAttribute('href'), line.textContent]);
};
(async () => {
  const found = {wide: [], blocked: 0};
  for (const path of PATHS) {
    const page = await show(path);
    if (page.documentElement.scrollWidth > 390) found.wide.push(path + ' ' + page.documentElement.scrollWidth);
    if (page.styleSheets.length != 1 || page.getElementById('search').hidden) found.blocked++;
  }
  const wide = await show('comparison.html');
  const table = wide.querySelector('.table');
  found.scrolls = table.scrollWidth > table.clientWidth;
  found.words = wide.querySelectorAll('td').length;
  found.broken = [...wide.querySelectorAll('th, td')].filter(broken).map(cell => cell.textContent);
  const page = await show('directives/core.html');
  found.proxy_pass = (await results(page, 'proxy_pass'))[0];
  found.nginx = (await results(page, 'ssl_stapling'))[0];
  found.two = (await results(page, 'ktls threshold'))[0];
  found.none = (await results(page, '<b>nothing of this name</b>'))[0];
  found.markup = page.querySelectorAll('#results b').length;
  await fetch('/done?' + new URLSearchParams({found: JSON.stringify(found)}));
})().catch(error => fetch('/done?' + new URLSearchParams({error})));
</script>
'''

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason='chromium is not installed'),
              pytest.mark.skipif(not HTML.is_dir(), reason='the build has no HTML pages')]


def paths():
    return sorted(str(path.relative_to(HTML)) for path in HTML.rglob('*.html'))


@pytest.fixture
def served(launch, loop, base):
    folder = base / f'docs-{loop}'
    folder.mkdir()
    shutil.copytree(HTML, folder / 'html')
    (folder / 'driver.html').write_text(DRIVER.replace('PATHS', json.dumps(paths())))
    return launch(loop, 'user', server={'root': str(folder), 'location': {'= /done': {'return': 204}}})


def test_search_and_narrow_screens(served, tmp_path):
    reported = browse(served, '/driver.html', tmp_path)
    assert 'error' not in reported, reported
    found = json.loads(reported['found'])
    assert (found['wide'], found['blocked'], found['markup']) == ([], 0, 0)
    assert found['scrolls'] and found['words'] > 300 and found['broken'] == []
    assert found['proxy_pass'][0].startswith('proxy_pass') and found['proxy_pass'][1].endswith('/directives/proxy.html#proxy_pass-location')
    assert found['nginx'][0] == 'ssl_stapling' and '/nginx.html' in found['nginx'][1]
    assert found['two'][0] == 'ssl_ktls_threshold'
    assert found['none'] == [None, None, 'nothing found']
    failed = [row['request_uri'] for row in served.server.access() if row['request_uri'].startswith('/html/') and row['status'] not in ('200', '304')]
    assert failed == []


def test_pages_name_no_external_resource():
    for path in paths():
        text = (HTML / path).read_text(encoding='utf-8')
        assert "default-src 'none'" in text and '<style' not in text and ' style=' not in text and 'src="http' not in text, path
        assert text.count('<script') == 2 and text.count('<link') == 1, path


def test_dark_mode_has_a_dark_background(tmp_path):
    pixels = []
    for dark in (False, True):
        screenshot(f'file://{HTML}/index.html', tmp_path / f'{dark}.png', dark)
        pixels.append(sum(first_pixel((tmp_path / f'{dark}.png').read_bytes())) / 3)
    assert pixels[0] > 200 and pixels[1] < 80, pixels
