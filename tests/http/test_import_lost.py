"""nginx directives that `sluice import` cannot carry over, and that produce a response or restrict access: the imported location responds
with 503, and `stream` closes the connection, until the administrator deletes the placeholder directive."""
import json
import re
import socket
import subprocess

import pytest
from kit import http1, server as server_kit
from kit.nginx import RunningServer, import_file

# content of a server, paths that respond with 503, and paths that do not
LOST = [
    ('location / { uwsgi_pass unix:/none; location /open/ { } }', ['/app.py', '/', '/none'], ['/open/page']),
    ('location / { scgi_pass 127.0.0.1:9; }', ['/app.py'], []),
    ('location / { memcached_pass 127.0.0.1:9; error_page 503 /open/page; }', ['/app.py'], []),
    ('location /open/ { } location / { perl handler; }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { content_by_lua_file a.lua; }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { content_by_lua_block { ngx.say("}") } }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { js_content main.hello; }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { auth_jwt "closed" token=$arg_t; }', ['/app.py'], ['/open/page']),
    ('auth_jwt "closed"; location /open/ { auth_jwt off; } location / { return 200 secret; }', ['/app.py', '/open/page'], []),
    ('access_by_lua_file a.lua; location /open/ { }', ['/app.py', '/open/page', '/none'], []),
    ('location /open/ { } location / { deny 10.0.0.0/99; }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { satisfy all; allow nonsense; deny all; }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { valid_referers none *.example.org; if ($invalid_referer) { return 403; } }',
     ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { if ($geoip_country_code = CN) { return 403; } }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { limit_except GET { auth_ldap on; } }', ['POST /app.py', 'PUT /none'], ['/app.py', '/open/page']),
    ('location /open/ { } location ~ \\.(py { deny all; }', ['/app.py', '/open/page'], []),
    ('location /open/ { } location / { include snippets/closed.conf; }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { auth_basic closed; auth_basic_user_file $document_root/users; }', ['/app.py'], ['/open/page']),
    ('ssl_verify_client sometimes;', ['/app.py'], []),
    ('location /open/ { } location / { secure_link_secret word; if ($secure_link = "") { return 403; } }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { echo hello; }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { internal_redirect @closed; }', ['/app.py'], ['/open/page']),
    ('location /open/ { } location / { proxy_allow_upstream $arg_a; }', ['/app.py'], ['/open/page']),
    ('tunnel_pass;', ['/app.py'], []),
    # Directives of nginx that neither handle nor protect requests; a third-party module might.
    ('keepalive_min_timeout 1s; acme_certificate example; ssl_ech_file a.pem; location / { early_hints $http2; error_log_tag a b; userid_flags secure; }',
     [], ['/app.py', '/open/page']),
    ('location /open/ { } location / { more_set_headers a; sub_filter a b; expires 1h; }', [], ['/app.py', '/open/page']),
]


@pytest.fixture
def www(new_directory):
    folder = new_directory()
    (folder / 'open').mkdir()
    (folder / 'open/page').write_text('open')
    (folder / 'app.py').write_text('PASSWORD = "secret"')
    return folder


def served(tmp_path, text, port):
    """Imports the configuration and starts a server with it; returns the server and the path of the YAML file."""
    (tmp_path / 'nginx.conf').write_text(text)
    made = tmp_path / 'sluice.yaml'
    status, message = import_file(tmp_path / 'nginx.conf', made, '-p', str(tmp_path))
    assert status == 2, message
    return RunningServer([server_kit.SLUICE, '-c', str(made), '-g', f'{{pid: {tmp_path}/pid, error_log: stderr}}'], [port], tmp_path / 'output'), made


def fetch(port, request):
    method, path = request.split() if ' ' in request else ('GET', request)
    client = http1.connect(port)
    try:
        return client.fetch(method, path, [], b'')
    finally:
        client.close()


# Access restrictions that precede the server.
OUTSIDE = [(match[0], inside[match.end():], closed, opened) for inside, closed, opened in LOST
           if (match := re.match(r'(?:auth_jwt|access_by_lua_file|ssl_verify_client) .*?;', inside))]


@pytest.mark.http1('the configuration of nginx has no HTTP/2')
@pytest.mark.parametrize('before, inside, closed, opened', [('', *row) for row in LOST] + OUTSIDE)
def test_lost_directives_close_access(tmp_path, www, before, inside, closed, opened):
    port = server_kit.free_port()
    server, made = served(tmp_path, f'events {{ }} http {{ {before} server {{ listen 127.0.0.1:{port}; root {www}; {inside} }} }}', port)
    try:
        responses = {request: fetch(port, request) for request in closed + opened}
    finally:
        server.stop()
    assert {request: response.status for request, response in responses.items()} == {
        **dict.fromkeys(closed, 503), **dict.fromkeys(opened, 200)}, made.read_text()
    assert not any(b'secret' in responses[request].body for request in closed)


@pytest.mark.http1('the configuration of nginx has no HTTP/2')
def test_import_placeholders_are_reported(tmp_path, www):
    """The comment at the placeholder has directive, file and line; lint and -t print warnings; without the placeholder the location responds."""
    port = server_kit.free_port()
    server, made = served(tmp_path, f'http {{ server {{\nlisten 127.0.0.1:{port}; root {www};\nlocation / {{\nuwsgi_pass unix:/none; }} }} }}', port)
    server.stop()
    text = made.read_text()
    assert f'# {tmp_path}/nginx.conf:4: uwsgi_pass unix:/none\n' in text
    line = text[:text.index('import_lost_handler')].count('\n') + 1
    checked = subprocess.run([server_kit.SLUICE, '-t', '-c', str(made)], capture_output=True, text=True, timeout=60, check=True).stderr
    assert re.search(rf"sluice.yaml:{line}:\d+: warning: import did not carry 'uwsgi_pass' over", checked)
    linted = subprocess.run([server_kit.SLUICE, 'lint', '--format', 'json', str(made)], capture_output=True, text=True, timeout=60, check=False)
    assert linted.returncode == 1
    assert [finding['line'] for finding in json.loads(linted.stdout) if "'uwsgi_pass'" in finding['message']] == [line]
    made.write_text(re.sub('import_lost_handler: .*', 'return: 200 replaced', text))
    server = RunningServer([server_kit.SLUICE, '-c', str(made), '-g', f'{{pid: {tmp_path}/pid, error_log: stderr}}'], [port], tmp_path / 'output')
    try:
        assert fetch(port, '/app.py').body == b'replaced'
    finally:
        server.stop()


def test_lost_stream_access_check_closes_the_connection(tmp_path):
    """`stream` closes the connection instead of passing it on without the lost access check."""
    upstream = socket.create_server(('127.0.0.1', 0))
    port = server_kit.free_port()
    server, _ = served(tmp_path, f'stream {{ server {{ listen 127.0.0.1:{port}; js_access main.look; '
                                 f'proxy_pass 127.0.0.1:{upstream.getsockname()[1]}; }} }}', port)
    try:
        with socket.create_connection(('127.0.0.1', port)) as client:
            client.settimeout(20 * server_kit.PATIENCE)
            assert client.recv(1) == b''
    finally:
        server.stop()
        upstream.setblocking(False)
        with pytest.raises(BlockingIOError):
            upstream.accept()
        upstream.close()


def test_all_rejected_values_are_reported(tmp_path):
    """More warnings than the loader collects: all rejected values are found, and the written configuration loads."""
    inside = ''.join(f'location /{number} {{ uwsgi_pass unix:/none; client_max_body_size lots; }}\n' for number in range(50))
    (tmp_path / 'nginx.conf').write_text(f'http {{ server {{ listen 8080; {inside} }} }}')
    status, output = import_file(tmp_path / 'nginx.conf', tmp_path / 'sluice.yaml')
    assert status == 2 and output.count("'lots' is not a size") == 50
    subprocess.run([server_kit.SLUICE, '-t', '-q', '-c', str(tmp_path / 'sluice.yaml')], timeout=60, check=True)
