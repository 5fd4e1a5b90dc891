"""A browser opens a site over HTTPS: images, a font, audio and video with seeking by ranges, a directory listing, an error page.

Uses headless Chromium; the tests are skipped if it is not installed. The page reports its results in a request for /done?..., which the
test reads from the access log.
"""
import glob
import os
import shutil
import struct
import subprocess
import wave
import zlib

import pytest

from kit import server as server_kit
from kit.browser import CHROMIUM, browse, first_pixel, screenshot
from kit.lifetime import wait_for

PAGE = '''<!doctype html><title>a site</title>
<style>@font-face{font-family:own;src:url(font.ttf)} p{font-family:own}</style>
<p>text</p><img id=image src=picture.png><video id=medium src=tone.wav preload=auto muted></video>
<script>
const image = document.getElementById('image'), medium = document.getElementById('medium');
const event = (target, name) => new Promise(done => target.addEventListener(name, done, {once: true}));
(async () => {
  const found = {};
  await image.decode();
  found.image = image.naturalWidth;
  found.font = (await document.fonts.load('12px own')).length;
  if (medium.readyState < 1) await event(medium, 'loadedmetadata');
  found.length = Math.round(medium.duration);
  medium.currentTime = 250;
  await event(medium, 'seeked');
  found.at = Math.round(medium.currentTime);
  await fetch('/done?' + new URLSearchParams(found));
})().catch(error => fetch('/done?' + new URLSearchParams({error})));
</script>
'''

# A red film whose last quarter is blue, so that the colour shows the position of a decoded picture. The server limits its rate, so that
# its end has not arrived when the page seeks to it.
FILM = ('color=red:s=160x90:r=6:d=30[a];color=blue:s=160x90:r=6:d=10[b];[a][b]concat,noise=alls=60:allf=t', '-b:v', '400k', '-g', '12')
CODECS = {'film.webm': ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8'],
          'film.mp4': ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p']}
CINEMA = '''<!doctype html><title>a film</title><video id=film src=%s preload=metadata muted></video>
<script>
const film = document.getElementById('film'), found = {};
const event = (target, name) => new Promise((done, failed) => {
  target.addEventListener(name, done, {once: true});
  target.addEventListener('error', () => failed(film.error.message), {once: true});
});
(async () => {
  found.can = film.canPlayType('%s');
  if (!found.can) throw 'this browser has no such codec';
  if (film.readyState < 1) await event(film, 'loadedmetadata');
  found.length = Math.round(film.duration);
  film.currentTime = 36;
  await event(film, 'seeked');
  found.at = Math.round(film.currentTime);
  found.size = film.videoWidth + 'x' + film.videoHeight;
  const canvas = document.createElement('canvas').getContext('2d');
  for (let look = 0; look < 100 && (found.colour || 'none') == 'none'; look++) { // the picture may come later than the event
    if (look) await new Promise(done => setTimeout(done, 100));
    canvas.drawImage(film, 0, 0);
    const [red, , blue] = canvas.getImageData(80, 45, 1, 1).data;
    found.colour = red > blue ? 'red' : blue > red ? 'blue' : 'none';
  }
})().catch(error => { found.error = error; }).finally(() => fetch('/done?' + new URLSearchParams(found)));
</script>
'''

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason='chromium is not installed')


def png(width, height):
    """A red picture."""
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    rows = b''.join(b'\0' + b'\xd0\x10\x10' * width for _ in range(height))
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


@pytest.fixture(scope='module')
def pages(base):
    folder = base / 'pages'
    (folder / 'list/inner').mkdir(parents=True)
    fonts = glob.glob('/usr/share/fonts/**/*.ttf', recursive=True)
    if not fonts:
        pytest.skip('no font is installed')
    shutil.copy(fonts[0], folder / 'font.ttf')
    (folder / 'index.html').write_text(PAGE)
    (folder / 'picture.png').write_bytes(png(40, 30))
    for name in ('file 2.txt', 'file 10.txt', 'grüße.txt'):
        (folder / 'list' / name).write_text(name)
    with wave.open(str(folder / 'tone.wav'), 'wb') as tone: # five minutes, 26 MB: the browser does not read ahead to the end
        tone.setnchannels(1)
        tone.setsampwidth(2)
        tone.setframerate(44100)
        tone.writeframes(bytes(2 * 44100 * 300))
    return str(folder)


@pytest.fixture
def served(launch, loop, pages):
    return launch(loop, 'user', server={'root': pages, 'autoindex': 'on', 'location': {'= /done': {'return': 204}, '= /status': {'status': 'html'}}})


def test_page_and_subresources_load(served, tmp_path):
    found = browse(served, '/', tmp_path)
    assert found == {'image': '40', 'font': '1', 'length': '300', 'at': '250'}
    media = [row['status'] for row in served.server.access() if row['request_uri'] == '/tone.wav']
    assert media.count('206') >= 2, media


@pytest.fixture(scope='module')
def cinema(base):
    encoder = pytest.importorskip('imageio_ffmpeg').get_ffmpeg_exe()
    folder = base / 'cinema'
    folder.mkdir()
    for name, codec in CODECS.items():
        subprocess.run([encoder, '-v', 'error', '-f', 'lavfi', '-i', FILM[0], *codec, *FILM[1:], str(folder / name)], check=True,
                       stdin=subprocess.DEVNULL, timeout=120 * server_kit.PATIENCE)
        assert (folder / name).stat().st_size > 1 << 20
        (folder / f'{name}.html').write_text(CINEMA % (name, 'video/' + name.split('.')[1]))
    return str(folder)


@pytest.mark.parametrize('name', CODECS)
def test_video_seeking_uses_ranges(launch, loop, cinema, tmp_path, name):
    """The browser decodes the end before the middle has arrived: it requests ranges beyond the bytes of the first response."""
    served = launch(loop, 'user', server={'root': cinema, 'location': {
        '= /done': {'return': 204}, f'= /{name}': {'limit_rate': '100k'}}})
    page = browse(served, f'/{name}.html', tmp_path)
    if page.get('can') is None:
        pytest.skip('this browser has no such codec')
    assert page == {'can': page['can'], 'length': '40', 'at': '36', 'size': '160x90', 'colour': 'blue'}
    rows = wait_for(lambda: [row for row in served.server.access() if row['request_uri'] == f'/{name}' and row['status'] == '206'][1:],
                    'several parts')
    whole = os.path.getsize(os.path.join(cinema, name))
    assert all(int(row['body_bytes_sent']) < whole for row in rows)


@pytest.mark.parametrize('path', ['/list/', '/nothing-here', '/status'])
def test_generated_pages_follow_the_colour_scheme(served, tmp_path, path):
    for dark in (0, 1):
        picture = tmp_path / f'{dark}.png'
        screenshot(served.url(path), picture, dark)
        assert os.path.getsize(picture) > 5000
        colour = first_pixel(picture.read_bytes())
        assert max(colour) < 64 if dark else min(colour) > 224, colour


# Shows the status page in a frame until it has loaded twice. Reports how many resources it has requested, and links to other sites.
STATUS = '''<!doctype html><meta charset="utf-8"><body><iframe id=frame></iframe><script>
const frame = document.getElementById('frame'), found = {loads: 0, resources: 0, links: 0};
frame.onload = () => {
  const page = frame.contentDocument;
  found.title = page.title;
  found.loads++;
  found.resources += frame.contentWindow.performance.getEntriesByType('resource').length;
  found.links += page.querySelectorAll('[src], [href^="http"], [href^="//"]').length;
  if (found.loads == 2)
    fetch('/done?' + new URLSearchParams(found));
};
frame.src = '/status';
</script>
'''


def test_status_page_updates_itself_without_other_resources(launch, loop, tmp_path):
    top = tmp_path / 'status'
    top.mkdir()
    (top / 'index.html').write_text(STATUS)
    served = launch(loop, 'user', server={'root': str(top), 'location': {'= /done': {'return': 204}, '= /status': {'status': 'html'}}})
    assert browse(served, '/', tmp_path) == {'loads': '2', 'resources': '0', 'links': '0', 'title': 'sluice status'}
    asked = {row['request_uri'].split('?')[0] for row in served.server.access()}
    assert asked - {'/favicon.ico'} == {'/', '/status', '/done'}


# Shows each page in a frame as narrow as a phone. Reports pages that are wider than it, and what the filter of a long listing does.
PHONE = '''<!doctype html><meta charset="utf-8"><body><script>
const found = {};
const show = path => new Promise(done => {
  const frame = document.createElement('iframe');
  frame.width = 390;
  frame.height = 800;
  frame.onload = () => done(frame.contentDocument);
  frame.src = path;
  document.body.append(frame);
});
const visible = page => [...page.querySelectorAll('td:first-child')].filter(cell => cell.offsetHeight).length;
(async () => {
  for (const path of ['/list/', '/long/', '/nothing-here', '/up/', '/status']) {
    const page = await show(path);
    const style = page.defaultView.getComputedStyle(page.querySelector('h1'));
    found[path] = `${page.documentElement.scrollWidth} ${style.fontWeight}`;
    const date = page.querySelector('th:nth-child(3) a');
    found[path + ' date'] = date && date.offsetWidth ? 'visible' : 'none';
    const box = page.querySelector('input');
    if (!box)
      continue;
    found.before = `${box.offsetHeight > 0} ${visible(page)}`;
    box.value = 'NUMBER 7';
    box.dispatchEvent(new Event('input'));
    found.after = visible(page);
    box.value = '';
    box.dispatchEvent(new Event('input'));
    found.again = visible(page);
  }
})().catch(error => { found.error = error; }).finally(() => fetch('/done?' + new URLSearchParams(found)));
</script>
'''


def test_generated_pages_fit_a_narrow_screen(launch, loop, pages, tmp_path):
    """No page is wider than 390 pixels, each has its style, the column of dates is visible, and a long listing has a filter."""
    top = tmp_path / 'phone'
    shutil.copytree(os.path.join(pages, 'list'), top / 'list')
    (top / 'list' / ('long-name-' * 20)).write_text('x')
    (top / 'long').mkdir()
    for number in range(60):
        (top / 'long' / f'Number {number}').write_text('x')
    (top / 'phone.html').write_text(PHONE)
    served = launch(loop, 'user', server={'root': str(top), 'autoindex': 'on', 'status_zone': True, 'location': {
        '= /done': {'return': 204}, '= /status': {'status': 'html'}, '/up/': {'proxy_pass': 'http://127.0.0.1:1'}}}, http={
            'proxy_cache_path': {'path': str(tmp_path / 'cache'), 'keys_zone': 'responses:1m'},
            'limit_req_zone': '$binary_remote_addr zone=requests_by_address:10m rate=10r/s'})
    found = browse(served, '/phone.html', tmp_path)
    assert found == {'/list/': '390 600', '/long/': '390 600', '/nothing-here': '390 600', '/up/': '390 600', '/status': '390 600',
                     '/list/ date': 'visible', '/long/ date': 'visible', '/nothing-here date': 'none', '/up/ date': 'none', '/status date': 'none',
                     'before': 'true 61', 'after': '2', 'again': '61'}
