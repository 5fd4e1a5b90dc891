"""`slice`: a large response is fetched and stored in slices, and each response assembled from them equals the whole."""
import hashlib
import os
import random
import re
import threading

import pytest
from cache_site import EXPIRED, HIT, MISS, REVALIDATED, STALE, Scripted, client, fetch, path  # pylint: disable=unused-import
from kit import programs, server as server_kit
from kit.lifetime import wait_for

SIZE = 65536
OLD = 'Last-Modified: Sat, 01 Jan 2022 00:00:00 GMT\n'


class Ranged(Scripted):
    """Serves `files` by path, also ranges of them: [bytes, ETag, further header lines]."""

    def __init__(self):
        self.files = {}
        self.turns = {}         # functions of the peer by path and range
        super().__init__()

    def ranges(self, path):
        return [request.header('range') for request in self.requests_of(path)]

    def respond(self, peer):
        peer.read_body()
        if peer.request.target not in self.files:
            return super().respond(peer)
        data, version, more = self.files[peer.request.target]
        fields = f'Cache-Control: max-age=60\n{more}' + (f'\nETag: {version}' if version else '')
        turn = self.turns.get((peer.request.target, peer.request.header('range')))
        if turn:
            return turn(peer)
        expected = re.fullmatch(r'bytes=(\d+)-(\d+)', peer.request.header('range') or '')
        if not expected:
            return self.send_response(peer, fields, data)
        first, last = int(expected[1]), min(int(expected[2]), len(data) - 1)
        if first >= len(data):
            return self.send_response(peer, f'Status: 416\nContent-Range: bytes */{len(data)}', b'')
        return self.send_response(peer, f'Status: 206\nContent-Range: bytes {first}-{last}/{len(data)}\n{fields}', data[first:last + 1])


@pytest.fixture(scope='module')
def upstream():
    made = Ranged()
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture(scope='module')
def nginx(base):
    folder = base / 'sliced'
    folder.mkdir()
    big = random.Random(1).randbytes(5_000_001)
    (folder / 'big.bin').write_bytes(big)
    os.utime(folder / 'big.bin', (1_600_000_000, 1_600_000_000))
    port = server_kit.free_port()
    (folder / 'conf').write_text(
        f'daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n'
        f'http {{ access_log {folder}/access.log; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};\n'
        f'  uwsgi_temp_path {folder}; scgi_temp_path {folder}; server {{ listen 127.0.0.1:{port}; root {folder}; expires 1h; }} }}\n')
    made = programs.Program([programs.program('nginx'), '-c', str(folder / 'conf'), '-e', str(folder / 'error.log')], port=port)
    yield port, big
    made.stop()


@pytest.fixture(scope='module')
def sites():
    return {}


@pytest.fixture
def served(launch, loop, transport, new_directory, upstream, nginx, sites):
    if (loop, transport) not in sites:
        folder = new_directory()
        os.chmod(folder, 0o755)
        to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_cache': 'one', 'slice': SIZE}
        location = {
            '/': to,
            '/lock/': {**to, 'proxy_cache_lock': True, 'proxy_cache_lock_timeout': '1h', 'proxy_cache_lock_age': '1h'},
            '/stale/': {**to, 'proxy_cache_use_stale': ['error', 'http_500']},
            '/plain/': {'proxy_pass': to['proxy_pass']}, '/denied/': {'proxy_pass': to['proxy_pass'], 'deny': 'all'},
            '/purge/': {**to, 'proxy_cache_purge': 'PURGE 127.0.0.1'},
            '/big.bin': {**to, 'proxy_pass': f'http://127.0.0.1:{nginx[0]}', 'slice': '1m'},
        }
        http = {'proxy_cache_path': {'path': str(folder / 'cache'), 'keys_zone': 'one:1m'}}
        sites[loop, transport] = launch(loop, transport, http=http, server={
            'location': location, 'add_header': 'X-Cache $upstream_cache_status always'})
    return sites[loop, transport]


def file_of(upstream, target, length, version='"v1"', more='', seed=7):
    upstream.files[target] = [random.Random(seed).randbytes(length), version, more]
    return upstream.files[target][0]


def part(client, target, spec, **fields):
    return fetch(client, target, '\n'.join([f'Range: bytes={spec}', *(f'{name.replace("_", "-")}: {value}' for name, value in fields.items())]))


def receive_until_failure(served, target, spec, whole=1 << 30):
    """The received part of a range request whose response breaks off or reaches `whole` bytes."""
    client = served.connect(promoted=False)
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nRange: bytes={spec}\r\n\r\n')
    assert client.head().status == 206
    while len(client.buffer) < whole and client.fill():
        pass
    client.close()
    return bytes(client.buffer)


def all_stored(client, upstream, target, fields=''):
    """Waits until a request for the whole file causes no upstream request; slices may be stored after the response was sent."""
    def look():
        before = len(upstream.ranges(target))
        answer = fetch(client, target, fields)
        return answer.headers['x-cache'] in (HIT, STALE) and len(upstream.ranges(target)) == before
    wait_for(look, 'all pieces are stored')


@pytest.mark.parametrize('length', [1, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE, 5 * SIZE + 17])
def test_complete_response_from_slices(client, upstream, path, length):
    target = path()
    data = file_of(upstream, target, length)
    for how in (MISS, HIT):
        answer = fetch(client, target)
        assert answer.status == 200 and answer.body == data and answer.headers['content-length'] == str(length)
        assert answer.headers['etag'] == '"v1"' and 'content-range' not in answer.headers and answer.headers['accept-ranges'] == 'bytes'
        assert answer.headers['x-cache'] == how
        all_stored(client, upstream, target)
    firsts = {int(range_field[6:].split('-')[0]) for range_field in upstream.ranges(target)}
    assert sorted(firsts) == list(range(0, length, SIZE))


def test_empty_file_is_requested_without_range(client, upstream, path):
    """An empty file has no first slice, so the upstream server may respond with 416: the cache then requests the whole file."""
    target = path()
    file_of(upstream, target, 0)
    answer = fetch(client, target)
    assert answer.status == 200 and answer.body == b''
    assert upstream.ranges(target) == [f'bytes=0-{SIZE - 1}', None]


@pytest.mark.parametrize('spec', ['0-0', '0-65535', '65535-65536', '65536-131071', '1000-', '200000-200010', '-1', '-100000', '300000-9999999'])
def test_ranges_from_slices(client, upstream, path, spec):
    target = path()
    length = 5 * SIZE + 17
    data = file_of(upstream, target, length)
    first, last = spec.split('-')
    expected = data[length - int(last):] if not first else data[int(first):int(last) + 1 if last else length]
    for _ in range(2):
        answer = part(client, target, spec)
        start = length - int(last) if not first else int(first)
        assert answer.status == 206 and answer.body == expected
        assert answer.headers['content-range'] == f'bytes {start}-{start + len(expected) - 1}/{length}'
    assert fetch(client, target).body == data


def test_only_requested_slices_are_fetched(client, upstream, path):
    target = path()
    file_of(upstream, target, 100 * SIZE)
    assert len(part(client, target, f'{50 * SIZE + 5}-{51 * SIZE + 5}').body) == SIZE + 1
    assert set(upstream.ranges(target)) == {f'bytes={50 * SIZE}-{51 * SIZE - 1}', f'bytes={51 * SIZE}-{52 * SIZE - 1}'}


def test_partially_requested_slice_is_stored_completely(client, upstream, path):
    target = path()
    data = file_of(upstream, target, 3 * SIZE)
    assert part(client, target, '10-11').body == data[10:12]
    wait_for(lambda: part(client, target, f'0-{SIZE - 1}', Cache_Control='only-if-cached').status == 206, 'length and validator are stored')

    def all_stored():
        before = len(upstream.ranges(target))
        assert part(client, target, f'0-{SIZE - 1}').body == data[:SIZE]
        return len(upstream.ranges(target)) == before
    wait_for(all_stored, 'the first piece is stored')


def test_multiple_ranges_from_slices(client, upstream, path):
    target = path()
    data = file_of(upstream, target, 5 * SIZE)
    for _ in range(2):
        answer = part(client, target, f'0-9,{SIZE - 5}-{SIZE + 4},{4 * SIZE}-')
        assert answer.status == 206 and answer.headers['content-type'].startswith('multipart/byteranges')
        for piece in (data[:10], data[SIZE - 5:SIZE + 5], data[4 * SIZE:]):
            assert piece in answer.body


def test_preconditions_and_head(client, upstream, path):
    target = path()
    data = file_of(upstream, target, 2 * SIZE + 1, more=OLD)
    head = fetch(client, target, method='HEAD')
    assert head.status == 200 and head.headers['content-length'] == str(len(data)) and head.headers['etag'] == '"v1"'
    assert fetch(client, target, 'If-None-Match: "v1"').status == 304
    assert part(client, target, '0-9', If_Range='"v1"').status == 206
    whole = part(client, target, '0-9', If_Range='"v2"')
    assert whole.status == 200 and whole.body == data
    beyond = part(client, target, '99999999-')
    assert beyond.status == 416 and beyond.headers['content-range'] == f'bytes */{len(data)}'
    assert fetch(client, target).body == data


def test_range_beyond_end_is_416(client, upstream, path):
    target = path()
    data = file_of(upstream, target, 2 * SIZE)
    beyond = part(client, target, f'{50 * SIZE}-')
    assert beyond.status == 416 and beyond.headers['content-range'] == f'bytes */{len(data)}'
    assert fetch(client, target).body == data     # 416 was not stored


def test_if_range_mismatch_gets_the_complete_response(client, upstream, path):
    """If-Range does not match, so Range is ignored, although the upstream server has no slice at this position."""
    target = path()
    data = file_of(upstream, target, 2 * SIZE)
    answer = part(client, target, f'{50 * SIZE}-', If_Range='"v0"')
    assert answer.status == 200 and answer.body == data and answer.headers['etag'] == '"v1"'


def test_redirected_slice_is_rejected(served, upstream, path):
    """The response to the request for a slice is X-Accel-Redirect: its target must not become part of this response."""
    target = path()
    data = file_of(upstream, target, 4 * SIZE)
    file_of(upstream, '/plain' + target, 4 * SIZE, seed=8)
    upstream.turns[target, f'bytes={SIZE}-{2 * SIZE - 1}'] = lambda peer: upstream.send_response(peer, f'X-Accel-Redirect: /plain{target}', b'')
    assert receive_until_failure(served, target, f'0-{3 * SIZE - 1}') == data[:SIZE]


@pytest.mark.parametrize('spec', [None, '5-9'])
def test_redirect_in_place_of_the_first_slice(client, upstream, path, spec):
    """The redirect is followed as without slices: access to its target is checked, and the target's response is complete."""
    for place in ('/plain', '/denied'):
        target = path()
        data = file_of(upstream, place + target, 2 * SIZE)
        file_of(upstream, target, 2 * SIZE, seed=8)
        redirect = f'X-Accel-Redirect: {place}{target}'
        upstream.turns[target, f'bytes=0-{SIZE - 1}'] = lambda peer, fields=redirect: upstream.send_response(peer, fields, b'')
        answer = part(client, target, spec) if spec else fetch(client, target)
        if place == '/denied':
            assert answer.status == 403
        else:
            assert (answer.status, answer.body) == ((206, data[5:10]) if spec else (200, data))


def test_excess_bytes_of_a_slice_are_discarded(served, upstream, path):
    """Excess bytes of a slice must not be used as bytes of the next one."""
    target = path()
    data = file_of(upstream, target, 4 * SIZE)

    def longer(peer):
        peer.send(f'HTTP/1.1 206 X\r\nContent-Range: bytes {SIZE}-{2 * SIZE - 1}/{len(data)}\r\nETag: "v1"\r\n'
                  f'Transfer-Encoding: chunked\r\n\r\n{2 * SIZE:x}\r\n')
        peer.send(data[SIZE:2 * SIZE] + b'x' * SIZE + b'\r\n0\r\n\r\n')
        return True
    upstream.turns[target, f'bytes={SIZE}-{2 * SIZE - 1}'] = longer
    # If the excess arrives together with the end of the slice, the response breaks off there; otherwise it is discarded, and the next
    # slice follows.
    got = receive_until_failure(served, target, f'0-{3 * SIZE - 1}', 3 * SIZE)
    assert len(got) >= SIZE and data[:3 * SIZE].startswith(got)


def test_changed_version_ends_the_response(served, upstream, path):
    """No response combines two versions; the next response has the new one."""
    target = path()
    old, new = file_of(upstream, target, 4 * SIZE), random.Random(8).randbytes(5 * SIZE)
    client = served.connect(promoted=False)
    assert part(client, target, f'0-{2 * SIZE - 1}').body == old[:2 * SIZE]
    wait_for(lambda: part(client, target, '0-9', Cache_Control='only-if-cached').status == 206, 'length and validator are stored')
    upstream.files[target] = [new, '"v2"', '']
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    got = b''
    head = client.head()
    assert head.status == 200 and head.headers['content-length'] == str(4 * SIZE)
    while client.fill():
        pass
    got = bytes(client.buffer)
    assert len(got) < 4 * SIZE and old.startswith(got)
    client.close()
    client = served.connect(promoted=False)
    for _ in range(3):
        answer = fetch(client, target)
        assert answer.status == 200 and answer.body == new and answer.headers['etag'] == '"v2"'
    assert 'slice response differs' in served.server.errors()
    client.close()


@pytest.mark.parametrize('version, more', [('', ''), ('W/"weak"', ''), ('"v1"', 'Vary: Accept'), ('"v1"', 'Cache-Control: no-store')])
def test_unsliceable_responses_are_forwarded(client, upstream, path, version, more):
    target = path()
    data = file_of(upstream, target, 3 * SIZE, version=version, more=more)
    for _ in range(2):
        assert fetch(client, target).body == data
        assert part(client, target, '100-199').body in (data[100:200], data)
    if 'no-store' in more:
        assert 'bytes=100-199' in upstream.ranges(target)


def test_strong_last_modified_identifies_the_version(client, upstream, path):
    target = path()
    data = file_of(upstream, target, 3 * SIZE, version='', more=OLD)
    for _ in range(2):
        assert fetch(client, target).body == data
    assert None not in upstream.ranges(target)


def test_server_without_range_support(client, upstream, path):
    target = path()
    body = b'x' * (3 * SIZE)

    def respond(peer):
        return upstream.send_response(peer, 'Cache-Control: max-age=60\nETag: "a"', body)
    upstream.answers[target] = respond
    answer = fetch(client, target)
    assert answer.status == 200 and answer.body == body
    wait_for(lambda: fetch(client, target, 'Cache-Control: only-if-cached').status == 200, 'the complete response is stored')
    assert part(client, target, '10-19').body == body[10:20]
    assert len(upstream.requests_of(target)) == 1


@pytest.mark.parametrize('failure, status', [('close', 502), ('Status: 500', 500), ('Status: 503', 503)])
def test_use_stale_applies_to_slices(client, upstream, path, failure, status):
    """Stale slices are used as proxy_cache_use_stale permits."""
    for prefix in ('/stale/', '/'):
        target = path(prefix)
        data = file_of(upstream, target, 2 * SIZE + 9, more='Cache-Control: stale-if-error=1\nAge: 70\n' + OLD)
        assert fetch(client, target).body == data
        all_stored(client, upstream, target, 'Cache-Control: max-stale')
        for first in (0, SIZE, 2 * SIZE):
            upstream.turns[target, f'bytes={first}-{first + SIZE - 1}'] = lambda peer: False if failure == 'close' else upstream.send_response(peer, failure, b'failed')
        answer = fetch(client, target)
        if prefix == '/stale/' and failure != 'Status: 503':
            assert answer.headers['x-cache'] == STALE and answer.body == data
            assert part(client, target, f'{SIZE - 5}-{SIZE + 4}').body == data[SIZE - 5:SIZE + 5]
        else:
            assert answer.status == status


@pytest.mark.parametrize('answer', ['Status: 206\nContent-Range: bytes 1-65536/100000', 'Status: 206\nContent-Range: nonsense',
                                    'Status: 206', 'Status: 206\nContent-Range: bytes 0-9/5'])
def test_unrequested_206_is_not_stored(client, upstream, path, answer):
    target = path()

    def respond(peer):
        return upstream.send_response(peer, f'{answer}\nCache-Control: max-age=60\nETag: "a"', b'y' * SIZE)
    upstream.answers[target] = respond
    assert fetch(client, target).status == 206        # the upstream server sends 206 to a request without Range, which is passed on
    assert upstream.ranges(target)[-1] is None


def test_error_responses_are_forwarded(client, upstream, path):
    target = path()
    upstream.answers[target] = 'Status: 404\nX-Own: yes'
    answer = fetch(client, target)
    assert answer.status == 404 and answer.body == f'{target} 1'.encode() and answer.headers['x-own'] == 'yes'


def test_stale_slices_are_revalidated(client, upstream, path):
    """If the version is the same, its slices stay; otherwise they are dropped."""
    target = path()
    data = file_of(upstream, target, 3 * SIZE)
    assert fetch(client, target).body == data
    all_stored(client, upstream, target)
    before = len(upstream.ranges(target))
    again = fetch(client, target, 'Cache-Control: no-cache')
    assert again.body == data and again.headers['x-cache'] == REVALIDATED
    assert len(upstream.ranges(target)) == before + 1
    new = file_of(upstream, target, 2 * SIZE + 5, version='"v2"', seed=9)
    again = fetch(client, target, 'Cache-Control: no-cache')
    assert again.body == new and again.headers['x-cache'] == EXPIRED
    wait_for(lambda: fetch(client, target).body == new, 'the new version is stored')


def test_purge_removes_all_slices(client, upstream, path):
    target = path('/purge/')
    data = file_of(upstream, target, 3 * SIZE)
    fetch(client, target)
    all_stored(client, upstream, target)
    assert fetch(client, target, method='PURGE').status == 204
    before = len(upstream.ranges(target))
    assert fetch(client, target).body == data
    assert len(upstream.ranges(target)) == before + 3


def test_concurrent_requests_fetch_each_slice_once(served, upstream, path):
    target = path('/lock/')
    data = file_of(upstream, target, 4 * SIZE)
    got = []

    def fetch_once():
        client = served.connect(promoted=False)
        got.append(fetch(client, target).body)
        client.close()
    threads = [threading.Thread(target=fetch_once) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60 * server_kit.PATIENCE)
    assert got == [data] * 8
    requests = upstream.ranges(target)
    assert len(requests) == len(set(requests)) == 4, requests


def test_disconnection_releases_resources(served, upstream, path):
    target = path()
    data = file_of(upstream, target, 40 * SIZE)
    for taken in (1, SIZE, 3 * SIZE + 5):
        client = served.connect(promoted=False)
        client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
        assert client.head().status == 200
        assert client.read_exactly(taken) == data[:taken]
        client.close()
    client = served.connect(promoted=False)
    assert fetch(client, target).body == data
    client.close()


def test_nginx_as_upstream_server(client, nginx):
    big = nginx[1]
    chance = random.Random(3)
    for _ in range(30):
        first = chance.randrange(len(big))
        last = min(len(big) - 1, first + chance.randrange(1, 2_500_000))
        answer = part(client, '/big.bin', f'{first}-{last}')
        assert answer.status == 206 and hashlib.sha256(answer.body).digest() == hashlib.sha256(big[first:last + 1]).digest()
    assert fetch(client, '/big.bin').body == big
