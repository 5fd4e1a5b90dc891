"""Static files: types, validators, preconditions, ranges, directories, names, links, special files (RFC 9110)."""
import contextlib
import email.utils
import os
import re
import threading

import pytest
from kit import server as server_kit
from kit.lifetime import wait_for


def http_date(seconds):
    return email.utils.formatdate(seconds, usegmt=True)


@pytest.mark.parametrize('target, expected', [
    ('/', 'text/html; charset=utf-8'), ('/one.txt', 'text/plain; charset=utf-8'), ('/style.css', 'text/css; charset=utf-8'),
    ('/picture.png', 'image/png'), ('/noext', 'application/octet-stream'), ('/odd.unknownext', 'application/octet-stream'),
    ('/1024.bin', 'application/octet-stream')])
def test_content_type_by_extension(client, target, expected):
    assert client.get(target).headers['content-type'].lower() == expected


def test_index_file_of_a_directory(client):
    assert b'the first page' in client.get('/').body
    assert b'folder' in client.get('/folder/').body


def test_directory_without_slash_redirects_relatively(client):
    for target, expected in (('/folder', '/folder/'), ('/folder?a=b', '/folder/?a=b'), ('/link-folder', '/link-folder/')):
        response = client.get(target)
        assert response.status == 301
        assert response.headers['location'] == expected
    response = client.get('//folder')
    assert not response.headers.get('location', '/').startswith('//'), 'no open redirect'
    response = client.get('//example.com/%2e%2e/folder')
    assert not response.headers.get('location', '/').startswith('//'), 'no open redirect'
    assert client.alive()


def test_status_404_has_no_version(client):
    response = client.get('/nowhere')
    assert response.status == 404 and response.headers['content-type'].startswith('text/html')
    assert b'<html' in response.body.lower() or b'<!doctype' in response.body.lower()
    assert b'0.1' not in response.body and b'http://' not in response.body and b'https://' not in response.body
    assert client.alive()


def test_error_pages_do_not_echo_markup(client):
    response = client.get('/%3Cscript%3Ealert(1)%3C/script%3E')
    assert response.status == 404 and b'<script>alert' not in response.body


def test_etag_and_last_modified(client, served):
    response = client.get('/ten.txt')
    changed = os.stat(os.path.join(served.root, 'ten.txt')).st_mtime
    assert response.headers['last-modified'] == http_date(int(changed))
    assert re.fullmatch(r'"[^"]+"', response.headers['etag']), 'a strong ETag'
    assert response.headers['accept-ranges'] == 'bytes'
    assert client.get('/ten.txt').headers['etag'] == response.headers['etag']
    assert client.get('/one.txt').headers['etag'] != response.headers['etag']


PAST, FUTURE = http_date(0), http_date(4102444800)


@pytest.mark.parametrize('headers, status', [
    # {e} is the ETag, {m} Last-Modified; order of RFC 9110 13.2.2
    ({'If-None-Match': '{e}'}, 304), ({'If-None-Match': 'W/{e}'}, 304), ({'If-None-Match': '*'}, 304),
    ({'If-None-Match': '"x", {e}'}, 304), ({'If-None-Match': '"x",W/{e},"y"'}, 304), ({'If-None-Match': '"x"'}, 200),
    ({'If-None-Match': ''}, 200), ({'If-None-Match': '"x,{e}'}, 200),
    ({'If-Modified-Since': '{m}'}, 304), ({'If-Modified-Since': PAST}, 200), ({'If-Modified-Since': 'nonsense'}, 200),
    ({'If-Modified-Since': ''}, 200), ({'If-Modified-Since': '-1'}, 200),
    ({'If-None-Match': '"x"', 'If-Modified-Since': '{m}'}, 200), ({'If-None-Match': '{e}', 'If-Modified-Since': PAST}, 304),
    ({'If-Match': '{e}'}, 200), ({'If-Match': '*'}, 200), ({'If-Match': '"x", {e}'}, 200),
    ({'If-Match': '"x"'}, 412), ({'If-Match': 'W/{e}'}, 412),
    ({'If-Unmodified-Since': '{m}'}, 200), ({'If-Unmodified-Since': PAST}, 412), ({'If-Unmodified-Since': FUTURE}, 200),
    ({'If-Unmodified-Since': 'nonsense'}, 200),
    ({'If-Match': '{e}', 'If-Unmodified-Since': PAST}, 200), ({'If-Match': '"x"', 'If-None-Match': '{e}'}, 412),
    ({'If-Match': '{e}', 'If-None-Match': '{e}'}, 304), ({'If-Unmodified-Since': PAST, 'If-None-Match': '{e}'}, 412),
    ({'If-Match': '"x"', 'Range': 'bytes=0-1'}, 412), ({'If-None-Match': '{e}', 'Range': 'bytes=0-1'}, 304),
    ({'If-None-Match': '"x"', 'Range': 'bytes=0-1'}, 206),
])
def test_preconditions_decide_the_status(client, headers, status):
    first = client.get('/ten.txt')
    values = {'e': first.headers['etag'], 'm': first.headers['last-modified']}
    response = client.fetch('GET', '/ten.txt', [(name, value.format(**values)) for name, value in headers.items()])
    assert response.status == status
    if status == 304:
        assert response.headers['etag'] == first.headers['etag'] and response.body == b''
        assert 'content-length' not in response.headers or response.headers['content-length'] == '10'
        assert 'date' in response.headers
    assert client.alive()


def test_obsolete_date_formats(client):
    when = email.utils.parsedate_to_datetime(client.get('/ten.txt').headers['last-modified'])
    for form in ('%A, %d-%b-%y %H:%M:%S GMT', '%a %b %e %H:%M:%S %Y'):
        assert client.get('/ten.txt', If_Modified_Since=when.strftime(form)).status == 304


@pytest.mark.parametrize('spec, status, body, content_range', [
    ('bytes=0-0', 206, b'0', 'bytes 0-0/10'), ('bytes=0-9', 206, b'0123456789', 'bytes 0-9/10'),
    ('bytes=2-4', 206, b'234', 'bytes 2-4/10'), ('bytes=5-', 206, b'56789', 'bytes 5-9/10'),
    ('bytes=-3', 206, b'789', 'bytes 7-9/10'), ('bytes=-100', 206, b'0123456789', 'bytes 0-9/10'),
    ('bytes=5-100', 206, b'56789', 'bytes 5-9/10'), ('bytes=9-9', 206, b'9', 'bytes 9-9/10'),
    ('BYTES=0-0', 206, b'0', 'bytes 0-0/10'), ('bytes= 0-0', 206, b'0', 'bytes 0-0/10'),
    ('bytes=0-0,', 206, b'0', 'bytes 0-0/10'), ('bytes=10-', 416, None, 'bytes */10'),
    ('bytes=10-20', 416, None, 'bytes */10'), ('bytes=-0', 416, None, 'bytes */10'),
    ('bytes=20-30, 40-50', 416, None, 'bytes */10'),
    ('bytes=4-2', 200, b'0123456789', None), ('bytes=a-b', 200, b'0123456789', None), ('bytes=', 200, b'0123456789', None),
    ('bytes=-', 200, b'0123456789', None), ('bytes=1', 200, b'0123456789', None), ('bytes 0-1', 200, b'0123456789', None),
    ('items=0-1', 200, b'0123456789', None), ('bytes=0-1-2', 200, b'0123456789', None),
    ('bytes=--1', 200, b'0123456789', None), ('bytes=+0-1', 200, b'0123456789', None), ('bytes=0x0-1', 200, b'0123456789', None),
    ('bytes=18446744073709551616-', {200, 416}, None, None), ('bytes=0-18446744073709551616', {200, 206}, None, None),
    ('bytes=-18446744073709551616', {200, 206}, None, None),
])
def test_single_ranges_are_206_416_or_ignored(client, spec, status, body, content_range):
    response = client.get('/ten.txt', Range=spec)
    assert response.status in (status if isinstance(status, set) else {status})
    if body is not None:
        assert response.body == body
    if content_range is not None:
        assert response.headers['content-range'] == content_range
    if response.status == 200:
        assert 'content-range' not in response.headers
    assert client.alive()


def parts_of(response):
    boundary = re.fullmatch(r'multipart/byteranges; ?boundary="?([^"]+)"?', response.headers['content-type']).group(1).encode()
    pieces = (b'\r\n' + response.body).split(b'\r\n--' + boundary)
    assert pieces[0] in (b'', b'\r\n') and pieces[-1].strip() == b'--'
    found = []
    for piece in pieces[1:-1]:
        head, _, body = piece[2:].partition(b'\r\n\r\n')
        headers = dict(line.lower().split(': ', 1) for line in head.decode().split('\r\n'))
        assert headers['content-type'].startswith('text/plain')
        found.append((headers['content-range'], body))
    return found


def test_multiple_ranges_are_a_multipart_body(client):
    response = client.get('/ten.txt', Range='bytes=0-1,4-5,-1')
    assert response.status == 206 and 'content-range' not in response.headers
    assert parts_of(response) == [('bytes 0-1/10', b'01'), ('bytes 4-5/10', b'45'), ('bytes 9-9/10', b'9')]
    assert client.alive()


def test_multiple_ranges_partly_beyond_end(client):
    response = client.get('/ten.txt', Range='bytes=0-1,100-200')
    assert response.status == 206
    body = response.body if 'content-range' in response.headers else parts_of(response)[0][1]
    assert body == b'01'


def test_overlapping_ranges_do_not_multiply_the_body(client):
    """The "Apache killer": overlapping ranges must not multiply the body."""
    response = client.get('/65536.bin', Range='bytes=' + ','.join(f'{n}-' for n in range(50)))
    assert len(response.body) <= 65536 + 50 * 300
    response = client.get('/65536.bin', Range='bytes=' + ','.join(f'{n}-{n}' for n in range(0, 2000, 2))[:6000])
    assert response.status == 200
    assert client.alive()


def test_large_multiple_ranges(client, served):
    with open(os.path.join(served.root, '1048576.bin'), 'rb') as stream:
        whole = stream.read()
    response = client.get('/1048576.bin', Range='bytes=0-99999,500000-799999,-70000')
    boundary = response.headers['content-type'].split('boundary=')[1].strip('"').encode()
    bodies = [piece.partition(b'\r\n\r\n')[2] for piece in (b'\r\n' + response.body).split(b'\r\n--' + boundary)[1:-1]]
    assert bodies == [whole[:100000], whole[500000:800000], whole[-70000:]]


def test_max_ranges_limits_ranges(launch, loop):
    served = launch(loop, 'plain', server={'max_ranges': '1'})
    client = served.connect()
    assert client.get('/ten.txt', Range='bytes=0-1').status == 206
    assert client.get('/ten.txt', Range='bytes=0-1,3-4').status == 200


@pytest.mark.parametrize('condition, status', [('{e}', 206), ('W/{e}', 200), ('"x"', 200), ('{m}', 206), (PAST, 200), (FUTURE, 200),
                                               ('nonsense', 200), ('*', 200)])
def test_if_range_compares_validators(client, condition, status):
    # Last-Modified is a strong validator only if it is old enough (RFC 9110 8.8.2.2), and the file may be new.
    first = client.get('/ten.txt')
    value = condition.format(e=first.headers['etag'], m=first.headers['last-modified'])
    response = client.fetch('GET', '/ten.txt', [('Range', 'bytes=0-1'), ('If-Range', value)])
    assert response.status in ({200, 206} if condition == '{m}' else {status})


def test_empty_file_has_content_length_zero(client):
    response = client.get('/empty.txt')
    assert response.status == 200 and response.headers['content-length'] == '0' and response.body == b''
    assert client.get('/empty.txt', Range='bytes=0-').status == 416
    response = client.get('/empty.txt', Range='bytes=-1')       # satisfiable, but Content-Range cannot express it (RFC 9110 14.1.2)
    assert response.status == 200 and response.body == b'' and 'content-range' not in response.headers
    assert client.alive()


def test_sizes_near_buffer_and_ktls_thresholds(client, served):
    for size in (1024, 16384, 65535, 65536, 65537, 1 << 20):
        with open(os.path.join(served.root, f'{size}.bin'), 'rb') as stream:
            assert client.get(f'/{size}.bin').body == stream.read()


def test_unreadable_file_is_403(client, served):
    if os.geteuid() == 0 and not os.environ.get('SLUICE_WORKER_USER'):
        # Workers that run as root (user: root) can read the file.
        assert client.get('/closed.txt').status in (200, 403)
    else:
        assert client.get('/closed.txt').status == 403


def test_rejected_links_are_logged_with_the_directive(client, served):
    assert client.get('/link-out').status == 403
    wait_for(lambda: 'disable_symlinks' in served.server.errors(), 'the log line')
    line = [line for line in served.server.errors().splitlines() if 'disable_symlinks' in line][-1]
    assert 'link-out' in line and '"disable_symlinks: off"' in line


@pytest.mark.parametrize('mode, inside, outside', [('beneath', 200, 403), ('off', 200, 200), ('on', 403, 403)])
def test_disable_symlinks_rejects_links(launch, loop, mode, inside, outside):
    served = launch(loop, 'plain', server={'disable_symlinks': mode})
    client = served.connect()
    assert client.get('/one.txt').status == 200
    assert client.get('/link-inside').status == inside
    for target in ('/link-out', '/link-absolute', '/link-passwd'):
        assert client.get(target).status == outside, target
    assert client.get('/link-folder/inner.txt').status == inside
    assert client.get('/link-broken').status == (403 if mode == 'on' else 404)
    assert client.get('/link-loop').status == 403
    for target in ('/%2e%2e/secret.txt', '/../secret.txt', '/folder/../../secret.txt'):
        assert served.connect().get(target).status == 400, target


@pytest.mark.parametrize('mode', ['on', 'if_not_owner'])
@pytest.mark.parametrize('start, status', [(None, 403), ('$document_root', 200), ('{base}', 403), ('{base}/link-{mode}', 200),
                                           ('{base}/link-{mode}/', 200), ('{base}/link', 403), ('/elsewhere', 403)])
def test_disable_symlinks_checks_directories_of_the_root(launch, loop, base, mode, start, status):
    """Every directory of the path is checked, as in nginx, or only those after from= if the path begins with it."""
    if mode == 'if_not_owner' and os.geteuid() != 0:
        pytest.skip('only root can change the owner of a file')
    root_link = base / f'link-{mode}'
    if not root_link.is_symlink():
        (base / f'real-{mode}').mkdir()
        (base / f'real-{mode}' / 'file.txt').write_text('here')
        (base / f'real-{mode}' / 'link').symlink_to('file.txt')
        (base / f'real-{mode}').chmod(0o755)
        root_link.symlink_to(f'real-{mode}')
        if mode == 'if_not_owner':
            os.lchown(root_link, 65534, 65534)
            os.lchown(base / f'real-{mode}' / 'link', 65534, 65534)
    options = mode if start is None else f'{mode} from={start.format(base=base, mode=mode)}'
    client = launch(loop, 'plain', server={'root': str(root_link), 'disable_symlinks': options}).connect()
    assert client.get('/file.txt').status == status
    assert client.get('/link').status == 403


def test_disable_symlinks_from_below_alias(launch, loop, new_directory):
    """As in nginx: from= may be below the root, in any spelling, and it has no effect if it ends within a name."""
    top = new_directory()
    (top / 'real' / 'sub').mkdir(parents=True)
    for folder in (top, top / 'real', top / 'real' / 'sub'):
        folder.chmod(0o755)
    (top / 'real' / 'sub' / 'file.txt').write_text('here')
    (top / 'real' / 'sub' / 'link.txt').symlink_to('file.txt')
    (top / 'link').symlink_to('real')
    link = f'{top}/link'
    client = launch(loop, 'plain', server={'location': {
        '/a/': {'alias': f'{link}/', 'disable_symlinks': f'on from={link}/sub'},
        '/b/': {'root': f'{link}/', 'rewrite': '^/b(/.*) $1 break', 'disable_symlinks': f'on from={link}/sub/'},
        '~ ^/c/(.*)$': {'alias': f'{link}/$1', 'disable_symlinks': f'on from={link}/sub'},
        '/d/': {'alias': f'{link}/', 'disable_symlinks': f'on from={link}/su'},
        '= /whole': {'alias': f'{link}/sub/link.txt', 'disable_symlinks': f'on from={link}/sub/link.txt'},
        '= /slash': {'alias': f'{link}/sub/link.txt', 'disable_symlinks': f'on from={link}/sub/link.txt/'},
        '/link': {'alias': link, 'disable_symlinks': 'on from=$document_root'}}}).connect()
    for target, status in (('/a/sub/file.txt', 200), ('/a/sub/link.txt', 403), ('/b/sub/file.txt', 200), ('/b/sub/link.txt', 403),
                           ('/c/sub/file.txt', 200), ('/c/sub/link.txt', 403), ('/d/sub/file.txt', 403), ('/whole', 200), ('/slash', 403),
                           ('/link', 301), ('/link/sub/file.txt', 200), ('/link/sub/link.txt', 403)):
        assert client.get(target).status == status, target


def test_changed_file_is_served(launch, loop, transport, base):
    folder = base / f'changing-{loop}-{transport}'
    folder.mkdir()
    folder.chmod(0o755)
    path = folder / 'file.txt'
    path.write_text('first')
    served = launch(loop, transport, server={'root': str(folder)}, http={'open_file_cache_valid': '1s'})
    client = served.connect()
    first = client.get('/file.txt')
    path.write_text('second, longer')
    absent = client.get('/late.txt').status
    (folder / 'late.txt').write_text('late')
    wait_for(lambda: client.get('/file.txt').body == b'second, longer' and client.get('/late.txt').status == 200, 'the changes', pause=0.1)
    assert first.body == b'first' and absent == 404
    assert client.get('/file.txt').headers['etag'] != first.headers['etag']
    path.unlink()
    wait_for(lambda: client.get('/file.txt').status == 404, 'the file is gone', pause=0.1)


def test_truncated_file_closes_the_connection(launch, loop, transport, base):
    """A file shrinks, so the server cannot send Content-Length bytes: it breaks off the connection, over TLS without close_notify."""
    folder = base / f'shrinking-{loop}-{transport}'
    folder.mkdir()
    folder.chmod(0o755)
    size = (32 << 20) // (1 if server_kit.PATIENCE == 1 else 2)    # more than the buffers
    (folder / 'file.bin').write_bytes(os.urandom(size))
    served = launch(loop, transport, server={'root': str(folder)})
    client = served.connect()
    client.send('GET /file.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    response = client.head()
    assert response.headers['content-length'] == str(size)
    os.truncate(folder / 'file.bin', 1 << 20)
    with pytest.raises(EOFError):
        client.skip(size)

    def complete():
        with contextlib.suppress(EOFError):     # the old length is valid for open_file_cache_valid
            return len(served.connect().get('/file.bin').body) == 1 << 20
        return False
    wait_for(complete, 'the new length', pause=0.1)


def test_growing_file_retains_content_length(launch, loop, transport, base):
    folder = base / f'growing-{loop}-{transport}'
    folder.mkdir()
    folder.chmod(0o755)
    whole = os.urandom(8 << 20)
    (folder / 'file.bin').write_bytes(whole)
    client = launch(loop, transport, server={'root': str(folder)}).connect()
    client.send('GET /file.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    response = client.head()
    with open(folder / 'file.bin', 'ab') as stream:
        stream.write(b'more' * 100000)
    assert client.read_exactly(int(response.headers['content-length'])) == whole
    (folder / 'one.txt').write_text('one\n')
    assert client.get('/one.txt').body == b'one\n'


def test_files_larger_than_4_gib(launch, loop, transport, base):
    folder = base / 'sparse'
    if not folder.exists():
        folder.mkdir()
        folder.chmod(0o755)
        with open(folder / 'file.bin', 'wb') as stream:
            stream.truncate((5 << 30) + 3)
            stream.seek((4 << 30) - 2)
            stream.write(b'across')
            stream.seek(5 << 30)
            stream.write(b'end')
    client = launch(loop, transport, server={'root': str(folder)}).connect()
    assert client.fetch('HEAD', '/file.bin').headers['content-length'] == str((5 << 30) + 3)
    assert client.get('/file.bin', Range='bytes=-3').body == b'end'
    response = client.get('/file.bin', Range=f'bytes={(4 << 30) - 2}-{(4 << 30) + 3}')
    assert response.body == b'across'
    assert response.headers['content-range'] == f'bytes {(4 << 30) - 2}-{(4 << 30) + 3}/{(5 << 30) + 3}'
    assert len(client.get('/file.bin', Range=f'bytes={(4 << 30) - 100000}-{(4 << 30) + 99999}').body) == 200000


def test_slow_readers_do_not_delay_others(launch, loop, transport, served):
    """Eight clients stop reading in the middle of responses; other clients are served."""
    stopped = []
    for _ in range(8):
        slow = served.connect()
        slow.send('GET /1048576.bin HTTP/1.1\r\nHost: localhost\r\n\r\n' * 8)
        slow.head()
        stopped.append(slow)
    quick = served.connect()
    for _ in range(50):
        assert quick.get('/one.txt').body == b'one\n'
    with open(os.path.join(served.root, '1048576.bin'), 'rb') as stream:
        whole = stream.read()
    for slow in stopped:
        assert slow.read_exactly(1 << 20) == whole
        assert slow.read().body == whole
        slow.close()


def test_concurrent_connections(served):
    failures = []

    def work(number):
        try:
            client = served.connect()
            for _ in range(20):
                if client.get('/65536.bin' if number % 2 else '/one.txt').status != 200:
                    failures.append('status')
            client.close()
        except (OSError, EOFError) as error:
            failures.append(repr(error))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_error_page_and_locations(launch, loop, transport, site):
    with open(os.path.join(site, 'missing.html'), 'w', encoding='ascii') as stream:
        stream.write('<p>our own 404\n')
    served = launch(loop, transport, server={
        'error_page': ['404 /missing.html'],
        'location': {'/': {'index': 'index.html'}, '= /exact': {'return': '200 exact'}, '/exa': {'return': '200 prefix'},
                     '/pre': {'return': '200 pre'}, '^~ /prefix/': {'return': '200 hard'}, '/prefix/in': {'return': '200 longest'},
                     '/moved': {'return': '301 /one.txt'}, '/gone': {'return': '410'}, '/host': {'return': '200 $host$request_uri'},
                     '= /missing.html': {'internal': 'on'}}})
    client = served.connect()
    assert client.get('/exact').body == b'exact' and client.get('/exact2').body == b'prefix'
    assert client.get('/pre.css').body == b'pre'
    assert client.get('/prefix/a.css').body == b'hard' and client.get('/prefix/inner').body == b'longest'
    assert client.get('/moved').headers['location'].endswith('/one.txt')
    assert client.get('/gone').status == 410
    assert client.get('/host?x=y').body == b'localhost/host?x=y'
    # The text of a return has the type of its extension, text/plain without one.
    for path, type in (('/host', 'text/plain; charset=utf-8'), ('/host.html', 'text/html; charset=utf-8'),
                       ('/host.bin', 'application/octet-stream'), ('/host.unknown', 'text/plain; charset=utf-8')):
        assert client.get(path).headers['content-type'] == type
    response = client.get('/nowhere')
    assert response.status == 404 and response.body == b'<p>our own 404\n'
    assert client.get('/missing.html').status == 404
    assert client.alive()


def test_add_header_and_expires(launch, loop, transport):
    served = launch(loop, transport, server={
        'add_header': ['X-Outer $host'],
        'location': {'/': {}, '/folder/': {'add_header': ['X-Inner yes always', 'X-Two "two words"']}}})
    client = served.connect()
    assert client.get('/one.txt').headers['x-outer'] == 'localhost'
    inner = client.get('/folder/inner.txt')
    assert inner.headers['x-inner'] == 'yes' and inner.headers['x-two'] == 'two words'
    assert inner.headers['x-outer'] == 'localhost', 'lists of headers merge'
    absent = client.get('/folder/nowhere')
    assert absent.headers['x-inner'] == 'yes' and 'x-two' not in absent.headers
    etag = inner.headers['etag']
    again = client.get('/folder/inner.txt', If_None_Match=etag)
    assert again.status == 304 and again.headers['x-inner'] == 'yes' and again.headers['etag'] == etag
