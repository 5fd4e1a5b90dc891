"""precompressed: Accept-Encoding selects the encoded file beside the requested one; its header fields and content are correct."""
import gzip
import itertools
import os
import subprocess

import brotli
import pytest
import zstandard
from kit import http1, site as site_kit
from kit.lifetime import wait_for

CSS = b''.join(b'.rule%d { color: #%06x; margin: %dpx }\n' % (i, i * 7919 % (1 << 24), i % 97) for i in range(40000))
ENCODE = {'br': lambda plain: brotli.compress(plain, quality=5), 'zstd': zstandard.ZstdCompressor(level=3).compress, 'gzip': gzip.compress}
DECODE = {'br': brotli.decompress, 'zstd': lambda coded: zstandard.ZstdDecompressor().decompress(coded), 'gzip': gzip.decompress,
          None: lambda plain: plain}
SUFFIX = {'br': '.br', 'zstd': '.zst', 'gzip': '.gz'}


@pytest.fixture(scope='session')
def folder(base):
    top = base / 'precompressed'
    top.mkdir()
    for name, plain in (('large.css', CSS), ('small.css', CSS[:4000])):
        site_kit.write(str(top), name, plain)
        for coding, encode in ENCODE.items():
            site_kit.write(str(top), name + SUFFIX[coding], encode(plain))
    site_kit.make_file(str(top / '65536.bin'), 65536)
    return str(top)


@pytest.fixture
def served(launch, loop, transport, folder):
    return launch(loop, transport, server={'root': folder, 'precompressed': ['br', 'zst', 'gzip'], 'ssl_ktls_threshold': '16k'})


@pytest.fixture
def client(served):
    made = served.connect()
    yield made
    made.close()


def fetch(client, name, takes, **headers):
    return client.get(name, **({'Accept-Encoding': takes} if takes else {}), **headers)


@pytest.mark.parametrize('name, plain', [('/large.css', CSS), ('/small.css', CSS[:4000])])
@pytest.mark.parametrize('takes, coding', [
    ('gzip, deflate, br, zstd', 'br'), ('gzip', 'gzip'), ('zstd', 'zstd'), ('zstd, gzip;q=1.0', 'zstd'), ('zstd;q=0.9, gzip', 'gzip'),
    ('x-gzip', 'gzip'), (None, None), ('', None), ('identity', None), ('deflate', None), ('*;q=0', None), ('identity;q=0', None),
    ('br;q=0, *', 'zstd'), ('gzip;q=1.01', None)])
def test_preferred_available_coding_is_selected(client, name, plain, takes, coding):
    response = client.fetch('GET', name, [] if takes is None else [('Accept-Encoding', takes)])
    assert response.status == 200
    assert response.headers.get('content-encoding') == coding
    assert response.headers['vary'] == 'Accept-Encoding'
    assert response.headers['content-type'] == 'text/css; charset=utf-8'
    assert response.headers['content-length'] == str(len(response.body))
    assert DECODE[coding](response.body) == plain


def test_curl_gets_precompressed_files(served, folder):
    for coding, option in ((None, []), ('br', ['--compressed'])):
        run = subprocess.run(['curl', '-sSk', *option, '-D', '-', '-o', os.path.join(folder, '..', 'out'), served.url('/large.css')],
                             check=True, capture_output=True, text=True)
        with open(os.path.join(folder, '..', 'out'), 'rb') as stream:
            assert stream.read() == CSS
        output = [line.split(': ', 1)[1] for line in run.stdout.splitlines() if line.lower().startswith('content-encoding')]
        assert output == [] if coding is None else output[0] in ENCODE


def test_each_encoding_has_its_validators(client):
    etags = {}
    for coding in (None, 'br', 'zstd', 'gzip'):
        response = fetch(client, '/large.css', coding)
        etags[coding] = response.headers['etag']
    assert len(set(etags.values())) == 4 and all(etag.startswith('"') for etag in etags.values())
    for (requests, stored) in itertools.product(etags, etags):
        response = fetch(client, '/large.css', requests, If_None_Match=etags[stored])
        assert response.status == (304 if requests == stored else 200)
        assert response.headers['etag'] == etags[requests] and response.headers['vary'] == 'Accept-Encoding'
        if response.status == 304:
            assert 'content-encoding' not in response.headers
        response = fetch(client, '/large.css', requests, If_Match=etags[stored])
        assert response.status == (200 if requests == stored else 412)


@pytest.mark.parametrize('coding', ['br', 'zstd', 'gzip'])
def test_ranges_apply_to_the_encoded_bytes(client, coding):
    """A client resumes an interrupted download with a range of the encoded file."""
    whole = fetch(client, '/large.css', coding)
    half = len(whole.body) // 2
    parts = [fetch(client, '/large.css', coding, Range=span, If_Range=whole.headers['etag'])
             for span in (f'bytes=0-{half - 1}', f'bytes={half}-')]
    for part in parts:
        assert part.status == 206 and part.headers['content-encoding'] == coding
        assert part.headers['content-range'].endswith(f'/{len(whole.body)}')
    assert DECODE[coding](parts[0].body + parts[1].body) == CSS
    other = fetch(client, '/large.css', None, Range=f'bytes={half}-', If_Range=whole.headers['etag'])
    assert other.status == 200 and other.body == CSS, 'not a part of another encoding'
    several = fetch(client, '/large.css', coding, Range='bytes=0-1,5-6')
    assert several.status == 200 and several.body == whole.body


def test_head_has_the_fields_of_get(client):
    for coding in (None, 'br', 'zstd', 'gzip'):
        output = client.fetch('HEAD', '/large.css', [('Accept-Encoding', coding or 'identity')])
        got = fetch(client, '/large.css', coding)
        assert {**output.headers, 'date': ''} == {**got.headers, 'date': ''}


def test_changes_on_disk_take_effect(launch, loop, transport, new_directory):
    """An encoded file is created and later deleted: both take effect within open_file_cache_valid."""
    folder = str(new_directory())
    site_kit.write(folder, 'a.css', 'plain')
    site_kit.make_file(os.path.join(folder, '65536.bin'), 65536)
    served = launch(loop, transport, server={'root': folder, 'precompressed': 'gzip'}, http={'open_file_cache_valid': '100ms'})
    client = served.connect()
    assert fetch(client, '/a.css', 'gzip').body == b'plain'

    def wait(expected):
        wait_for(lambda: fetch(client, '/a.css', 'gzip').headers.get('content-encoding') == expected, f'Content-Encoding: {expected}')
        return fetch(client, '/a.css', 'gzip')
    site_kit.write(folder, 'a.css.gz.new', gzip.compress(b'plain'))
    os.rename(os.path.join(folder, 'a.css.gz.new'), os.path.join(folder, 'a.css.gz'))
    assert gzip.decompress(wait('gzip').body) == b'plain'
    os.unlink(os.path.join(folder, 'a.css.gz'))
    assert wait(None).body == b'plain'
    client.close()


def test_encoded_file_is_sent_by_sendfile(served, client, folder):
    """An encoded file is sent by sendfile, like any other file."""
    size = os.path.getsize(os.path.join(folder, 'large.css.gz'))
    assert size > 65536
    fetch(client, f'/large.css?{served.transport}', 'gzip')
    row = served.server.access_for(f'/large.css?{served.transport}')[-1]
    assert row['body_bytes_sent'] == str(size)
    expected = {'plain': f'plain-{http1.FILE_PATH}', 'ktls': f'ktls-{http1.FILE_PATH}', 'user': 'user'}[served.transport]
    assert row['tls_path'] == expected
