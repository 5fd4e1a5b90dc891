"""`sluice ctl caches entries`: the stored responses of a cache, in pages."""
import glob
import json
import os
import socket
import subprocess
import threading

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for
from kit.load import load
from test_control import controlled  # pylint: disable=unused-import
from test_control_caches import Cached, answer

LIMIT_CONTROL_ENTRIES = 1000    # src/base/limits.h


class Listed(Cached):
    def page(self, *options, name='one'):
        """The rows of one page, and the cursor for the next one."""
        ran = self.run('caches', 'entries', name, *options, options=['--json'])
        assert ran.returncode == 0 and not ran.stderr, ran.stdout + ran.stderr
        found = json.loads(ran.stdout)
        assert set(found) == {'entries', 'cursor'} and len(found['entries']) <= LIMIT_CONTROL_ENTRIES
        return found['entries'], found['cursor']

    def keys(self, *options):
        rows, cursor = self.page(*options)
        assert cursor == 0
        return sorted(row['key'] for row in rows)

    def error(self, query):
        response = self.request(f'GET /v1/caches/entries{query} HTTP/1.0')
        return int(response.split()[1]), json.loads(response.split('\r\n\r\n', 1)[1])['error']


@pytest.fixture(params=server_kit.LOOPS)
def cached(request, tmp_path, certificate, site):
    made = Listed(tmp_path, request.param, certificate, site)
    yield made
    made.stop()


def with_fields(fields, body='body', status=200):
    def script(peer):
        peer.read_body()
        peer.send(f'HTTP/1.1 {status} X\r\n{fields}Content-Length: {len(body)}\r\n\r\n{body}')
        return True
    return script


def test_entries(cached):
    cached.cache(with_fields('Cache-Control: max-age=600\r\nAge: 100\r\n'), workers=3)
    assert cached.page() == ([], 0)
    cached.store('/a', '/b?x=1')
    rows, cursor = cached.page()
    assert cursor == 0 and {row['key'] for row in rows} == {'/a', '/b?x=1'}
    for row in rows:
        assert list(row) == ['kind', 'status', 'size', 'idle', 'age', 'expires', 'validity', 'key']
        assert (row['kind'], row['status'], row['size'], row['validity']) == ('response', 200, 4, 'fresh')
        assert row['idle'] < 600 and 100 <= row['age'] < 600 and row['expires'].endswith('Z')
    lines = cached.run('caches', 'entries', 'one', 'prefix=/b').stdout.splitlines()
    assert lines[0].split() == ['kind', 'status', 'size', 'idle', 'age', 'expires', 'validity', 'key']
    assert len(lines) == 2 and lines[1].split()[:3] == ['response', '200', '4'] and lines[1].endswith(' fresh     /b?x=1')


@pytest.mark.parametrize('fields, status, validity', [
    ('Cache-Control: max-age=0, stale-if-error=600\r\n', 200, 'stale'), ('Cache-Control: max-age=600\r\nAge: 700\r\nETag: "a"\r\n', 200, 'stale'),
    ('Cache-Control: no-cache, max-age=600\r\nETag: "a"\r\n', 200, 'stale'), ('Cache-Control: max-age=600\r\n', 404, 'fresh')])
def test_validity(cached, fields, status, validity):
    cached.cache(with_fields(fields, status=status), directives={'proxy_cache_revalidate': True})
    cached.get('/a')
    wait_for(lambda: cached.page()[0], 'it is stored')
    [row], _ = cached.page()
    assert (row['kind'], row['status'], row['validity'], row['key']) == ('response', status, validity, '/a')


def test_prefix(cached):
    cached.cache(answer)
    paths = ['/a', '/a/1', '/a/%2F?x=1&prefix=/b', '/ab', '/b']
    cached.store(*paths)
    assert cached.keys() == sorted(paths)
    assert cached.keys('prefix=/a') == sorted(paths[:4])
    assert cached.keys('prefix=/a/') == sorted(paths[1:3])
    assert cached.keys('prefix=/a/%2F?x=1&prefix=/b') == [paths[2]]
    assert cached.keys('prefix=') == sorted(paths)
    assert cached.keys('prefix=/nosuch') == [] == cached.keys('prefix=a')


def test_kinds(cached):
    """Variants have the key of their response, as a purge takes it."""
    cached.cache(answer)
    cached.get('/vary', **{'Accept-Language': 'de'})
    cached.get('/vary', **{'Accept-Language': 'en'})
    wait_for(lambda: len(cached.page()[0]) == 3, 'the names and two variants')
    rows, _ = cached.page('prefix=/vary')
    assert sorted((row['kind'], row['key']) for row in rows) == [('variant', '/vary'), ('variant', '/vary'), ('vary', '/vary')]
    [names] = [row for row in rows if row['kind'] == 'vary']
    assert (names['status'], names['age'], names['expires'], names['validity']) == (None, None, None, None)
    assert '- ' in cached.run('caches', 'entries', 'one').stdout


def test_slices(cached):
    def ranged(peer):
        peer.read_body()
        first, last = (int(number) for number in peer.request.header('range')[6:].split('-'))
        last = min(last, 2999)
        peer.send(f'HTTP/1.1 206 X\r\nContent-Range: bytes {first}-{last}/3000\r\nETag: "a"\r\nContent-Length: {last - first + 1}\r\n\r\n' + 'x' * (last - first + 1))
        return True
    cached.cache(ranged, directives={'slice': '1024', 'proxy_cache_valid': '200 206 1h'})
    assert len(cached.get('/big').body) == 3000
    wait_for(lambda: len(cached.page()[0]) == 4, 'the metadata and three slices')
    rows, _ = cached.page()
    assert sorted((row['kind'], row['size'], row['key']) for row in rows) == [
        ('slice', 952, '/big'), ('slice', 1024, '/big'), ('slice', 1024, '/big'), ('slices', 0, '/big')]


def test_keys_with_unusual_bytes(cached):
    """JSON remains valid UTF-8, and a table has no control characters."""
    keys = ['"quoted\\', 'tab\there', 'caf\u00e9', b'\xff\xfe'.decode('latin-1'), b'\xc2\x9b31m'.decode('latin-1')]
    cached.cache(with_fields('Cache-Control: max-age=600\r\n'), directives={'proxy_cache_key': 'key $http_x_key'})
    for key in keys:
        cached.get('/', **{'X-Key': key})
    wait_for(lambda: len(cached.page()[0]) == len(keys), 'all are stored')
    found = {row['key'] for row in cached.page()[0]}
    assert {'key "quoted\\', 'key tab\there'} < found and len(found) == len(keys)
    table = subprocess.run([server_kit.SLUICE, 'ctl', '-s', cached.socket, 'caches', 'entries', 'one'], check=True,
                           capture_output=True).stdout.decode(errors='replace')
    assert 'key tab?here' in table and 'key "quoted\\' in table
    assert not [c for c in table if c != '\n' and (ord(c) < 32 or 127 <= ord(c) < 160)]


def test_pages(cached):
    """Each entry is on one page, also of a prefix."""
    cached.cache(with_fields('Cache-Control: max-age=600\r\n'), keys_zone='one:4m')
    paths = {f'/{"odd" if number % 2 else "even"}/{number}' for number in range(LIMIT_CONTROL_ENTRIES + 200)}
    for at in range(0, len(paths), 500):
        with socket.create_connection(('127.0.0.1', cached.port), timeout=20 * server_kit.PATIENCE) as stream:
            client = http1.Client(stream)
            assert {client.get(path).status for path in sorted(paths)[at:at + 500]} == {200}
    wait_for(lambda: cached.ctl('caches')[0]['entries'] == len(paths), 'all are stored')
    rows, cursor = cached.page()
    assert len(rows) == LIMIT_CONTROL_ENTRIES and cursor > 0
    rest, end = cached.page(f'cursor={cursor}')
    assert end == 0 and {row['key'] for row in rows + rest} == paths and len(rows + rest) == len(paths)
    assert cached.keys('prefix=/odd/') == sorted(path for path in paths if path.startswith('/odd/'))
    table = cached.run('caches', 'entries', 'one').stdout
    assert table.count('\n') == LIMIT_CONTROL_ENTRIES + 3 and table.endswith(f'\n\nthere are more entries; continue with cursor: {cursor}\n')
    table = cached.run('caches', 'entries', 'one', f'cursor={cursor}', 'prefix=/').stdout
    assert table.count('\n') == 201 and 'more entries' not in table


def test_long_keys_end_a_page(cached):
    cached.cache(with_fields('Cache-Control: max-age=600\r\n'), directives={'proxy_cache_key': '$request_uri $http_x_long$http_x_long$http_x_long$http_x_long'})
    for number in range(60):
        cached.get(f'/{number}', **{'X-Long': 'x' * 7000})
    wait_for(lambda: cached.ctl('caches')[0]['entries'] == 60, 'all are stored')
    rows, cursor = cached.page()
    assert 1024 * 1024 // 28100 <= len(rows) < 60
    rest, end = cached.page(f'cursor={cursor}')
    assert end == 0 and len(rows + rest) == len({row['key'] for row in rows + rest}) == 60


def test_damaged_and_removed_files_are_absent(cached):
    cached.cache(answer)
    cached.store('/a', '/b', '/c')
    files = [name for name in glob.glob(cached.path + '/**', recursive=True) if os.path.isfile(name)]
    assert len(files) == 3
    os.truncate(files[0], 20)
    os.remove(files[1])
    assert len(cached.keys()) == 1


def test_after_restart_and_purge(cached):
    cached.cache(answer)
    cached.store('/in/1', '/out/1')
    cached.server.stop()
    cached.server.start([cached.port])
    cached.until(' runs, ', 2)
    wait_for(lambda: cached.ctl('caches')[0]['index'] == 'complete', 'the index is complete')
    assert cached.keys() == ['/in/1', '/out/1']
    cached.reload()
    assert cached.purge('purge-prefix', '/in/') == 1 and cached.keys() == ['/out/1']


def test_entries_under_load(cached):
    """Responses are stored and purged while the list is read; no request fails."""
    cached.cache(answer, workers=3, manager_files=10)
    with load(cached.port, '/load/1') as clients:
        for number in range(20):
            cached.get(f'/load/more/{number}')
            rows, cursor = cached.page('prefix=/load/')
            assert cursor == 0 and {row['kind'] for row in rows} <= {'response'} and len(rows) == len({row['key'] for row in rows})
            if number % 5 == 4:
                cached.purge('purge-prefix', '/load/more/')
        clients.more(20)
    assert [key for key in cached.keys() if key.startswith('/load/more/')] == []


def test_several_lists_at_once(cached):
    """More lists than helper threads, and clients that leave before the response."""
    cached.cache(answer, manager_files=1)
    cached.store(*(f'/{number}' for number in range(30)))
    faults = []

    def read():
        try:
            assert len(cached.keys()) == 30
        except Exception as error:  # pylint: disable=broad-except
            faults.append(error)
    for _ in range(20):
        stream = cached.connect()
        stream.sendall(b'GET /v1/caches/entries?cache=one HTTP/1.0\r\n\r\n')
        stream.close()
        cached.page('prefix=/1')
    threads = [threading.Thread(target=read) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60 * server_kit.PATIENCE)
    assert not faults, faults


def test_errors(cached):
    cached.cache(answer)
    assert 'there is no cache "nosuch"; the caches are: one' in cached.refused('caches', 'entries', 'nosuch')
    assert '"caches entries" takes 1 argument, found 0' in cached.refused('caches', 'entries')
    assert '"caches entries" has no option "frob=1"' in cached.refused('caches', 'entries', 'one', 'frob=1')
    assert '"caches entries" has no option "cursor=2", or has it twice' in cached.refused('caches', 'entries', 'one', 'cursor=1', 'cursor=2')
    for query, status, error in (
            ('', 400, 'the parameter "cache" is missing'),
            ('?prefix=/a', 400, 'the parameter "cache" is missing'),
            ('?cache=', 404, 'there is no cache ""'),
            ('?cache=one%', 400, 'the parameter "cache" has an invalid percent-encoding'),
            ('?cache=one&prefix=%2', 400, 'the parameter "prefix" has an invalid percent-encoding'),
            ('?cache=one&prefix=%zz', 400, 'the parameter "prefix" has an invalid percent-encoding'),
            ('?cache=one&cursor=', 400, 'the parameter "cursor" is a number from 0 to 4294967295'),
            ('?cache=one&cursor=-1', 400, 'the parameter "cursor" is a number'),
            ('?cache=one&cursor=4294967296', 400, 'the parameter "cursor" is a number'),
            ('?cache=%6fn%65x', 404, 'there is no cache "onex"')):
        assert cached.error(query)[0] == status, query
        assert cached.error(query)[1].startswith(error), cached.error(query)
    assert cached.page('cursor=4294967295') == ([], 0) == cached.page('cursor=1000000')
    response = cached.request('POST /v1/caches/entries HTTP/1.0\r\nContent-Length: 0')
    assert response.startswith('HTTP/1.1 405 ') and '\r\nAllow: GET, HEAD\r\n' in response


def test_without_a_cache(controlled):
    controlled.start()
    assert 'the configuration has no cache; proxy_cache_path defines one' in controlled.refused('caches', 'entries', 'one')
