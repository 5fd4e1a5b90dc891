"""Line breaks from `map`, `set` and captures in header values are sent as spaces (RFC 9110 5.5), with a line in the error log."""
import re
import socket

import pytest
from kit import server as server_kit
from kit.lifetime import wait_for
from kit.upstream import Upstream

BROKEN = 'a\r\nX-Split: 1\n\x01b'
WHOLE = 'a  X-Split: 1  b'


def responds(peer):
    """Responds with Location, Set-Cookie and a body."""
    peer.read_body()
    peer.send('HTTP/1.1 302 Found\r\nLocation: /there\r\nSet-Cookie: c=1; Path=/there\r\nContent-Length: 2\r\n\r\nok')
    return True


@pytest.fixture(scope='module')
def upstream():
    made = Upstream({'/proxy/': responds})
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def served(launch, loop, upstream, site):
    to = f'http://127.0.0.1:{upstream.port}'
    return launch(loop, 'plain', http={
        'map': {'$uri $mapped': {'default': BROKEN}, '$mapped $captured': {'~(?s)^(.*)$': '$1'}}}, server={
        'set': f'$given "{BROKEN}"'.replace('\r', '\\r').replace('\n', '\\n'),
        'location': {
            '/map': {'add_header': 'X-Value $mapped', 'return': '200 ok'},
            '/set': {'set': {'$own': BROKEN}, 'add_header': 'X-Value $own', 'return': '200 ok'},
            '/one.txt': {'add_trailer': 'X-Value $mapped'},
            '/return': {'return': '302 /to/$mapped'},
            '/url': {'return': '302 https://x.test/$mapped'},
            '/text': {'return': '200 $mapped'},
            '/capture': {'add_header': 'X-Value $captured', 'return': '302 /to/$captured'},
            '/rewrite': {'rewrite': '^ https://x.test/$captured redirect'},
            '/page': {'error_page': '404 https://x.test/$mapped', 'return': '404'},
            '/realm': {'auth_basic': '$mapped', 'auth_basic_user_file': f'{site}/one.txt'},
            '/hints': {'preload': ['/style.css$mapped as=style'], 'default_type': 'text/html', 'return': '200 page'},
            '/proxy/': {'proxy_pass': to, 'proxy_set_header': {'X-Value': '$mapped'}, 'proxy_redirect': '/ /$mapped/',
                        'proxy_cookie_path': '/ /$mapped/'},
        }})


def exchange(served, target, *lines):
    """Returns the complete response with its line ends."""
    with socket.create_connection(('127.0.0.1', served.port), timeout=20 * server_kit.PATIENCE) as sock:
        sock.sendall('\r\n'.join([f'GET {target} HTTP/1.1', 'Host: localhost', 'Connection: close', *lines, '', '']).encode())
        return b''.join(iter(lambda: sock.recv(65536), b'')).decode('latin-1')


def fields(response):
    """Parses the fields of the final header section; fails on an invalid line, or if the inserted value has become a field line."""
    head = [part for part in response.split('\r\n\r\n') if part.startswith('HTTP/1.1 ')][-1]
    made = {}
    for line in head.split('\r\n')[1:]:
        assert re.fullmatch(r'[!-9;-~]+: [\t -~]*', line), response
        name, _, value = line.partition(': ')
        assert name != 'X-Split', response
        made[name.lower()] = value
    return made


@pytest.mark.parametrize('target, status, name, value', [
    ('/map', 200, 'x-value', WHOLE),
    ('/set', 200, 'x-value', WHOLE),
    ('/return', 302, 'location', '/to/a%0D%0AX-Split: 1%0A%01b'),
    ('/url', 302, 'location', 'https://x.test/a%0D%0AX-Split: 1%0A%01b'),
    ('/page', 302, 'location', 'https://x.test/a%0D%0AX-Split: 1%0A%01b'),
    ('/rewrite', 302, 'location', 'https://x.test/a%0D%0AX-Split: 1%0A%01b'),
    ('/capture', 302, 'location', '/to/a%0D%0AX-Split: 1%0A%01b'),
    ('/capture', 302, 'x-value', WHOLE),
    ('/realm', 401, 'www-authenticate', f'Basic realm="{WHOLE}", charset="UTF-8"'),
    ('/hints', 200, 'link', f'</style.css{WHOLE}>; rel=preload; as=style'),
    ('/proxy/', 302, 'location', '/a%0D%0AX-Split: 1%0A%01b/there'),
    ('/proxy/', 302, 'set-cookie', f'c=1; Path=/{WHOLE}/there'),
])
def test_line_breaks_in_fields_become_spaces(served, target, status, name, value):
    response = exchange(served, target)
    assert response.startswith(f'HTTP/1.1 {status} '), response
    found = fields(response)[name]
    assert (found.replace(f'http://localhost:{served.port}', '') if name == 'location' else found) == value


def test_line_break_in_a_path_is_400(served):
    assert exchange(served, '/capture/x%0d%0aX-Split:%201').startswith('HTTP/1.1 400 ')


def test_line_breaks_in_trailers_become_spaces(served):
    trailer = exchange(served, '/one.txt', 'TE: trailers').rpartition('\r\n0\r\n')[2]
    assert trailer == f'X-Value: {WHOLE}\r\n\r\n'


def test_line_breaks_in_early_hints_become_spaces(served):
    response = exchange(served, '/hints', 'Sec-Fetch-Mode: navigate')
    fields(response.partition('\r\n\r\n')[0] + '\r\n\r\n')


def test_line_breaks_in_a_body_are_retained(served):
    assert exchange(served, '/text').endswith(BROKEN)


def test_line_breaks_in_upstream_fields_become_spaces(served, upstream):
    exchange(served, '/proxy/')
    assert upstream.requests[-1].all('X-Value') == [WHOLE] and not upstream.requests[-1].all('X-Split')


@pytest.mark.parametrize('target, line', [('/map?log', 'X-Value'), ('/proxy/?log', 'X-Value')])
def test_replaced_line_break_is_logged(served, target, line):
    exchange(served, target)
    wait_for(lambda: re.search(rf'.*{line}.*{re.escape(target)}|.*{re.escape(target)}.*{line}', served.server.errors()), 'no line')
