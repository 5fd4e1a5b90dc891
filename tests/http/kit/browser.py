"""Runs headless Chromium. A page reports its results in a request for /done?..., which the test reads from the access log."""
import shutil
import struct
import subprocess
import urllib.parse
import zlib

from kit import server as server_kit
from kit.lifetime import wait_for

CHROMIUM = shutil.which('chromium')
FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--hide-scrollbars',
         '--ignore-certificate-errors', '--autoplay-policy=no-user-gesture-required', '--window-size=900,520',
         '--disable-background-networking', '--disable-component-update', '--disable-sync']


def browse(served, target, folder):
    """Opens a page, and returns the results that it reports."""
    with open(folder / 'output', 'wb') as output:
        browser = subprocess.Popen([CHROMIUM, *FLAGS, f'--user-data-dir={folder}/profile', '--remote-debugging-port=0', served.url(target)],
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            text = wait_for(lambda: [row['request_uri'] for row in served.server.access() if '/done?' in row['request_uri']],
                            'the page has sent no results', seconds=60)
        finally:
            browser.terminate()
            browser.wait(20 * server_kit.PATIENCE)
    return dict(urllib.parse.parse_qsl(text[-1].split('?', 1)[1]))


def screenshot(url, picture, dark):
    """Writes a picture (PNG) of a page in the light or the dark colour scheme."""
    subprocess.run([CHROMIUM, *FLAGS, f'--user-data-dir={picture}.profile', f'--blink-settings=preferredColorScheme={0 if dark else 1}',
                    f'--screenshot={picture}', url], stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * server_kit.PATIENCE, check=True)


def first_pixel(picture):
    """Red, green and blue of the upper left pixel, which PNG filters do not change."""
    assert picture.startswith(b'\x89PNG\r\n\x1a\n')
    at, packed = 8, b''
    while at < len(picture):
        size, kind = struct.unpack('>I4s', picture[at:at + 8])
        if kind == b'IDAT':
            packed += picture[at + 8:at + 8 + size]
        at += size + 12
    return tuple(zlib.decompress(packed)[1:4])
