"""FastCGI applications: a scripted one with faults, and PHP-FPM."""
import os
import shutil
import struct
import subprocess
import threading

import pytest

from kit import http1, server as server_kit
from kit.fastcgi import END, GOOD, STDERR, STDOUT, Application, end, out, record
from kit.lifetime import wait_for

BIG = bytes(range(256)) * 4096      # 1 MiB
LARGE = bytes(range(251)) * 8192        # received in large pieces


@pytest.fixture(scope='module')
def application(new_directory):
    made = Application(str(new_directory() / 'app.sock'))
    yield made
    made.listener.close()
    assert not made.faults, made.faults


@pytest.fixture
def proxy(launch, loop, transport, application):
    to = {'fastcgi_pass': f'unix:{application.path}'}
    return launch(loop, transport, http={'fastcgi_param': ['OUTER one', 'APP_ENV outer']}, server={'location': {
        '/': {**to, 'fastcgi_index': 'index.php', 'fastcgi_param': ['APP_ENV inner', {'ADDED': 'a $arg_x b'}, 'EMPTY $arg_none if_not_empty',
                                                                  'HTTP_PROXY http://evil/']},
        '/hidden': {**to, 'fastcgi_hide_header': 'X-Secret'},
        '/variable': {'fastcgi_pass': 'unix:$arg_to'},
        '/dead': {'fastcgi_pass': 'unix:/nowhere/at/all'},
        '/timeout': {**to, 'fastcgi_read_timeout': '300ms'},
        '/buffered': {**to, 'fastcgi_buffering': 'on', 'fastcgi_request_buffering': 'on'},
        '/kept': {**to, 'fastcgi_keep_conn': 'on'},
        '/intercepted': {**to, 'fastcgi_intercept_errors': 'on', 'error_page': '404 /page'},
        '/page': {'return': '200 instead'},
        '/split/': {**to, 'fastcgi_split_path_info': r'^(.+\.php)(/.*)$', 'fastcgi_index': 'index.php'},
        '/limited': {**to, 'client_max_body_size': 10},
    }})


@pytest.fixture
def client(proxy):
    made = proxy.connect()
    yield made
    made.close()


def test_request_reaches_the_application(client, proxy, application):
    response = client.fetch('GET', '/dir/a.php?x=1%202&y', [('X-Made-By', 'me'), ('Cookie', 'a=1'), ('Cookie', 'b=2'), ('Proxy', 'http://evil/'),
                                                         ('X-Forwarded-For', '1.2.3.4'), ('X-Two', '1'), ('X-Two', '2')])
    assert response.status == 200 and response.body == b'ok' and response.headers['content-type'] == 'text/plain'
    params = application.requests[-1].params
    assert {name: params.get(name) for name in ('SCRIPT_NAME', 'SCRIPT_FILENAME', 'QUERY_STRING', 'REQUEST_METHOD', 'REQUEST_URI',
                                              'DOCUMENT_ROOT', 'SERVER_PROTOCOL', 'GATEWAY_INTERFACE', 'CONTENT_LENGTH',
                                              'REMOTE_ADDR', 'SERVER_PORT', 'SERVER_NAME', 'REDIRECT_STATUS')} == {
        'SCRIPT_NAME': '/dir/a.php', 'SCRIPT_FILENAME': proxy.root + '/dir/a.php', 'QUERY_STRING': 'x=1%202&y', 'REQUEST_METHOD': 'GET',
        'REQUEST_URI': '/dir/a.php?x=1%202&y', 'DOCUMENT_ROOT': proxy.root, 'SERVER_PROTOCOL': http1.VERSION, 'GATEWAY_INTERFACE': 'CGI/1.1',
        'CONTENT_LENGTH': '', 'REMOTE_ADDR': '127.0.0.1', 'SERVER_PORT': str(proxy.port), 'SERVER_NAME': 'localhost', 'REDIRECT_STATUS': '200'}
    assert params['HTTP_X_MADE_BY'] == 'me' and params['HTTP_COOKIE'] == 'a=1; b=2' and params['HTTP_X_TWO'] == '1, 2'
    assert params['HTTP_HOST'] == 'localhost'
    assert (params['OUTER'], params['APP_ENV'], params['ADDED']) == ('one', 'inner', 'a 1%202 b')
    assert params['HTTP_X_FORWARDED_FOR'] == '127.0.0.1'      # not the value in the request
    assert not {'HTTP_PROXY', 'EMPTY', 'HTTP_CONNECTION', 'HTTP_CONTENT_LENGTH'} & set(params)
    assert params.get('HTTPS') == (None if proxy.transport == 'plain' else 'on')


def test_request_fields_become_parameters(client, application):
    fields = [(f'X-{number % 400}', str(number)) for number in range(900)]
    assert client.fetch('GET', '/a.php', fields).status == 200
    params = application.requests[-1].params
    assert {name: value for name, value in params.items() if name.startswith('HTTP_X_') and name != 'HTTP_X_FORWARDED_FOR'} == {
        f'HTTP_X_{number}': ', '.join(str(value) for value in range(number, 900, 400)) for number in range(400)}


@pytest.fixture(scope='module')
def underscore_server(launch, application):
    def make(loop, transport, trusted):
        http = {'underscores_in_headers': 'on', **({'set_real_ip_from': '127.0.0.1'} if trusted else {})}
        return launch(loop, transport, http=http, server={'location': {'/': {'fastcgi_pass': f'unix:{application.path}'}}})
    return make


@pytest.mark.parametrize('trusted', [False, True])
def test_underscores_do_not_forge_parameters(underscore_server, loop, transport, application, trusted):
    client = underscore_server(loop, transport, trusted).connect()
    fields = [('X_Forwarded_For', '1.2.3.4'), ('x_real_ip', '1.2.3.4'), ('Content_Length', '7'), ('X_Own', '1'), ('X-Forwarded-Host', 'told')]
    assert client.fetch('GET', '/a.php', fields).status == 200
    client.close()
    params = application.requests[-1].params
    assert params['HTTP_X_OWN'] == '1' and params.get('HTTP_X_FORWARDED_HOST') == ('told' if trusted else None)
    assert params['HTTP_X_FORWARDED_FOR'] == '127.0.0.1'
    assert not {'HTTP_X_REAL_IP', 'HTTP_CONTENT_LENGTH'} & set(params)


@pytest.mark.parametrize('trusted', [False, True])
def test_x_forwarded_for_equals_that_of_proxy_pass(underscore_server, loop, transport, application, trusted):
    client = underscore_server(loop, transport, trusted).connect()
    assert client.fetch('GET', '/a.php', [('X-Forwarded-For', '1.2.3.4, 5.6.7.8'), ('X-Forwarded-For', '9.9.9.9')]).status == 200
    client.close()
    params = application.requests[-1].params
    assert params['HTTP_X_FORWARDED_FOR'] == ('1.2.3.4, 5.6.7.8, 9.9.9.9, 127.0.0.1' if trusted else '127.0.0.1')


def test_underscored_field_does_not_override(underscore_server, loop, transport, application):
    """X-User and X_User have the same variable; it gets the value of the field with dashes, in either order."""
    client = underscore_server(loop, transport, False).connect()
    fields = [('X_User', 'evil'), ('X-User', 'good'), ('X-Role', 'good'), ('X_Role', 'evil'), ('X_Two', '1'), ('X_Two', '2')]
    assert client.fetch('GET', '/a.php', fields).status == 200
    client.close()
    params = application.requests[-1].params
    assert (params['HTTP_X_USER'], params['HTTP_X_ROLE'], params['HTTP_X_TWO']) == ('good', 'good', '1, 2')


def test_http_host_is_that_of_the_request_target(client, application):
    client.send('GET http://localhost:81/a.php HTTP/1.1\r\nHost: evil.example\r\n\r\n')
    assert client.read('GET').status == 200
    assert application.requests[-1].params['HTTP_HOST'] == 'localhost:81'


def test_fastcgi_index_completes_directories(client, application):
    assert client.get('/dir/').status == 200
    assert application.requests[-1].params['SCRIPT_NAME'] == '/dir/index.php'


@pytest.mark.parametrize('path,script,rest', [('/split/a.php/b/c', '/split/a.php', '/b/c'), ('/split/a.php', '/split/a.php', None),
                                              ('/split/', '/split/index.php', None), ('/split/x.php/y.php/z', '/split/x.php/y.php', '/z')])
def test_fastcgi_split_path_info_divides_the_path(client, proxy, application, path, script, rest):
    assert client.get(path).status == 200
    params = application.requests[-1].params
    assert (params['SCRIPT_NAME'], params.get('PATH_INFO')) == (script, rest)
    assert params['SCRIPT_FILENAME'] == proxy.root + script


def test_parameters_of_several_records(client, application):
    long = 'v' * 7000
    assert client.fetch('GET', '/long', [(f'X-Long-{number}', long) for number in range(4)]).status == 200
    assert all(application.requests[-1].params[f'HTTP_X_LONG_{number}'] == long for number in range(4))


@pytest.mark.parametrize('path', ['/body', '/buffered'])
@pytest.mark.parametrize('size', [1, 65535, 65536, 500_000])
def test_request_body_is_forwarded(client, application, path, size):
    assert client.fetch('POST', path, [('Content-Type', 'x/y')], body=BIG[:size]).status == 200
    requested = application.requests[-1]
    assert requested.body == BIG[:size] and requested.params['CONTENT_LENGTH'] == str(size) and requested.params['CONTENT_TYPE'] == 'x/y'


@pytest.mark.parametrize('size', [0, 100_000])
def test_chunked_request_body_has_content_length(client, application, size):
    client.send('POST /chunked HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.send((b'%x\r\n%s\r\n' % (size, BIG[:size]) if size else b'') + b'0\r\nX-Trailer: 1\r\n\r\n')
    assert client.read('POST').status == 200
    assert application.requests[-1].body == BIG[:size]
    assert application.requests[-1].params['CONTENT_LENGTH'] in (str(size), '')


ANSWERS = {
    '/status': (out(b'Status: 404 Not Here\r\nX: y\r\n\r\nnone') + end(), 404, b'none'),
    '/bare-lf': (out(b'Content-Type: a/b\nX: y\n\nbody') + end(), 200, b'body'),
    '/location': (out(b'Location: /there\r\n\r\n') + end(), 302, b''),
    '/padded': (out(GOOD + b'padded', padding=255) + record(STDOUT) + end(), 200, b'padded'),
    '/app-status': (out(GOOD + b'x') + end(app=3), 200, b'x'),
    '/length': (out(b'Content-Length: 5\r\n\r\nright') + end(), 200, b'right'),
    '/stderr': (record(STDERR, b'a warning\nand \x1b another\n') + out(GOOD) + record(STDERR, b'late', 7) + out(b'x') + record(STDERR) + end(),
                200, b'x'),
    '/no-fields': (out(b'\r\nbody') + end(), 200, b'body'),
    '/tiny': (out(GOOD + b'by bytes', size=1) + end(), 200, b'by bytes'),
    '/big': (out(GOOD + BIG, padding=3, size=9999) + end(), 200, BIG),
    '/large': (out(GOOD + LARGE, padding=3, size=9999) + end(), 200, LARGE),
    '/large-records': (out(GOOD + LARGE) + end(), 200, LARGE),
    '/no-content': (out(b'Status: 204 No Content\r\n\r\nignored') + end(), 204, b''),
    '/buffered/big': (out(GOOD + BIG) + end(), 200, BIG),
}

FAULTS = {
    '/nothing': (b'', 'closed'),
    '/no-records': (b'HTTP/1.1 200 OK\r\n\r\nhello', 'no FastCGI'),
    '/another-request': (record(STDOUT, GOOD, request=2) + end(), 'another request'),
    '/unknown-kind': (record(11, b'x') + end(), 'a record of unknown type'),
    '/version': (record(STDOUT, GOOD, version=2), 'no FastCGI'),
    '/no-head': (end(), 'an end without a header'),
    '/half-head': (out(b'Content-Type: a/b\r\n') + end(), 'an end without a header'),
    '/no-colon': (out(b'HTTP/1.1 200 OK\r\n\r\n') + end(), 'an invalid header field'),
    '/bad-name': (out(b'X Y: z\r\n\r\n') + end(), 'an invalid header field'),
    '/bad-value': (out(b'X: a\x00b\r\n\r\n') + end(), 'an invalid header field'),
    '/stray-cr': (out(b'X: a\rY: b\r\n\r\n') + end(), 'an invalid header field'),
    '/options': (out(b'Connection: ' + b'a,' * 33 + b'\r\n\r\n') + end(), 'too many options in Connection'),
    '/bad-status': (out(b'Status: 099\r\n\r\n') + end(), 'an invalid Status'),
    '/interim': (out(b'Status: 101 Switching\r\n\r\n') + end(), 'an invalid Status'),
    '/two-statuses': (out(b'Status: 200\r\nStatus: 404\r\n\r\n') + end(), 'more than one Status'),
    '/bad-length': (out(b'Content-Length: +5\r\n\r\nhello') + end(), 'an invalid Content-Length'),
    '/two-lengths': (out(b'Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello') + end(), 'more than one Content-Length'),
    '/huge-head': (out(b'X: ' + b'a' * 70000 + b'\r\n\r\n') + end(), 'too big header'),
    '/refused': (end(status=2), 'rejected the request'),
    '/short-end': (record(END, b'\0' * 4), 'an invalid FCGI_END_REQUEST record'),
    '/truncated-record': (out(GOOD)[:-3], 'the connection was closed before the end'),
}

BROKEN = {
    '/truncated': out(GOOD + b'some'),
    '/truncated-inside': out(GOOD + b'some of it')[:-3],
    '/truncated-large': out(GOOD + LARGE)[:-3],
    '/longer': out(b'Content-Length: 3\r\n\r\nlonger') + end(),
    '/shorter': out(b'Content-Length: 30\r\n\r\nshorter') + end(),
    '/after-the-end': out(GOOD + b'a') + record(STDOUT) + out(b'b') + end(),
    '/noise': out(GOOD + b'a') + b'\xff' * 100,
}


@pytest.fixture(autouse=True)
def scripts(application):
    application.responses.update({path: response for path, (response, *_) in {**ANSWERS, **FAULTS}.items()})
    application.responses.update(BROKEN)


@pytest.mark.parametrize('path', ANSWERS)
def test_responses_are_forwarded(client, proxy, path):
    _, status, body = ANSWERS[path]
    response = client.get(path)
    assert (response.status, response.body) == (status, body if status != 302 else response.body)
    assert 'status' not in response.headers
    if path == '/stderr':
        wait_for(lambda: 'FastCGI sent in stderr: "late"' in proxy.server.errors(), 'nothing in the log')
        assert 'FastCGI sent in stderr: "and \\x1b another"' in proxy.server.errors()
    assert client.get('/alive').status == 200


@pytest.mark.parametrize('path', FAULTS)
def test_invalid_responses_are_502(client, proxy, path):
    assert client.get(path).status == 502
    assert FAULTS[path][1] in proxy.server.errors()
    assert client.get('/alive').status == 200


@pytest.mark.parametrize('path', BROKEN)
def test_truncated_body_closes_the_connection(proxy, path):
    client = proxy.connect()
    client.send(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    with pytest.raises(EOFError):
        client.read()
    client.close()


def test_response_divided_at_each_position(client, application):
    """The response is sent in two pieces, divided at each possible position."""
    whole = record(STDERR, b'x', 3) + out(b'Status: 201 Made\r\nX: y\r\n\r\nbody', 5) + record(STDOUT) + end()
    for at in range(1, len(whole)):
        def divided(stream, requests, at=at):
            stream.sendall(whole[:at])
            wait_for(lambda: True, '')
            stream.sendall(whole[at:])
        application.responses['/pieces'] = divided
        response = client.get('/pieces')
        assert (response.status, response.body, response.headers['x']) == (201, b'body', 'y')


def test_head_response_has_no_body(client):
    response = client.fetch('HEAD', '/big')
    assert response.status == 200 and response.body == b''
    assert client.get('/alive').status == 200


def test_hidden_fields_and_variable_targets(client, proxy, application):
    application.responses['/hidden'] = out(b'X-Secret: 1\r\nX-Open: 2\r\n\r\n') + end()
    headers = client.get('/hidden').headers
    assert 'x-secret' not in headers and headers['x-open'] == '2'
    assert client.get(f'/variable?to={application.path}').status == 200
    assert client.get('/dead').status == 502
    application.responses['/timeout'] = lambda stream, requests: stream.recv(1)
    assert client.get('/timeout').status == 504
    application.responses['/intercepted'] = out(b'Status: 404\r\n\r\nnot this') + end()
    response = client.get('/intercepted')
    assert response.status == 404 and response.body == b'instead'
    assert client.fetch('POST', '/limited', body=b'x' * 11).status == 413


# PHP-FPM.

def test_upstream_connections_are_reused(client, application):
    client.get('/kept')
    before = application.connections
    for size in (0, 10, 100_000):
        assert client.fetch('POST', '/kept', body=b'x' * size).status == 200
        assert application.requests[-1].keep and len(application.requests[-1].body) == size
    application.responses['/kept/padded'] = out(GOOD + b'padded', padding=200) + record(END, struct.pack('!IB3x', 0, 0), padding=100)
    assert client.get('/kept/padded').body == b'padded'
    assert client.get('/kept').body == b'ok'
    assert application.connections == before
    application.responses['/kept/more'] = out(GOOD + b'more') + end() + b'surplus'
    assert client.get('/kept/more').body == b'more'
    assert client.get('/kept').body == b'ok'
    assert application.connections == before + 1


def test_closed_idle_connection_is_retried(client, application):
    """The application closes the connection after the response: the next request is retried on a new connection."""
    def ends(stream, requests):
        stream.sendall(out(GOOD + b'last') + end())
        return False
    application.responses['/kept/ends'] = ends
    for _ in range(10):
        assert client.get('/kept/ends').body == b'last'
        assert client.get('/kept').body == b'ok'


def find_php():
    for folder in ('/usr/sbin', '/usr/local/sbin'):
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if name.startswith('php-fpm'):
                return os.path.join(folder, name)
    return shutil.which('php-fpm')


SCRIPTS = {
    'pid.php': '<?php echo getmypid();',
    'hello.php': '<?php header("X-Made: php"); echo "hello ", $_GET["who"] ?? "nobody";',
    'echo.php': '<?php echo strlen(file_get_contents("php://input")), " ", md5(file_get_contents("php://input")), " ", $_SERVER["CONTENT_TYPE"];',
    'form.php': '<?php echo $_POST["a"], "|", $_SERVER["REQUEST_METHOD"], "|", $_SERVER["SCRIPT_FILENAME"];',
    'missing.php': '<?php http_response_code(404); echo "none";',
    'long.php': '<?php for ($i = 0; $i < 20000; $i++) echo str_repeat("x", 100);',
    'moved.php': '<?php header("Location: /there");',
    'warns.php': '<?php error_log("a word for the log"); echo "ok";',
}


@pytest.fixture(scope='module')
def php(new_directory):
    program = find_php()
    if not program and os.environ.get('SLUICE_REQUIRE_HTTP'):
        pytest.fail('php-fpm is not installed')
    if not program:
        pytest.skip('php-fpm is not installed')
    folder = new_directory()
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
    (folder / 'fpm.conf').write_text(
        f'[global]\nerror_log = {folder}/fpm.log\ndaemonize = no\n[www]\nlisten = {folder}/php.sock\nlisten.mode = 0666\npm = static\n'
        'pm.max_children = 2\ncatch_workers_output = no\nuser = nobody\ngroup = nogroup\n')
    running = subprocess.Popen([program, '-n', '-R', '-y', str(folder / 'fpm.conf')], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: (folder / 'php.sock').exists(), 'php-fpm does not start')
    yield folder
    running.terminate()
    running.wait(20)


@pytest.fixture
def with_php(launch, loop, transport, php):
    return launch(loop, transport, server={'root': str(php), 'location': {
        '/': {'fastcgi_pass': f'unix:{php}/php.sock'}, '/buffered/': {'fastcgi_pass': f'unix:{php}/php.sock', 'fastcgi_buffering': 'on',
                                                                    'fastcgi_param': f'SCRIPT_FILENAME {php}/long.php'}}})


def test_php_fpm_serves_scripts(with_php, php):
    client = with_php.connect()
    response = client.get('/hello.php?who=world')
    assert response.body == b'hello world' and response.headers['x-made'] == 'php' and response.headers['content-type'].startswith('text/html')
    assert client.fetch('POST', '/form.php', [('Content-Type', 'application/x-www-form-urlencoded')], body=b'a=b%20c').body == \
        f'b c|POST|{php}/form.php'.encode()
    assert client.fetch('POST', '/echo.php', [('Content-Type', 'x/y')], body=BIG).body.startswith(f'{len(BIG)} '.encode())
    assert client.get('/missing.php').status == 404
    assert client.get('/no-such.php').status == 404
    assert client.get('/moved.php').status == 302
    assert client.get('/long.php').body == b'x' * 2_000_000
    assert client.get('/buffered/x').body == b'x' * 2_000_000
    assert client.fetch('HEAD', '/hello.php').status == 200
    assert client.get('/warns.php').body == b'ok'
    wait_for(lambda: 'a word for the log' in with_php.server.errors(), 'the log has nothing')
    client.close()


def test_php_fpm_concurrent_requests(with_php):
    results = {}

    def fetch(number):
        client = with_php.connect()
        results[number] = [client.get(f'/hello.php?who={number}').body for _ in range(5)]
        client.close()
    threads = [threading.Thread(target=fetch, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60 * server_kit.PATIENCE)
    assert results == {number: [f'hello {number}'.encode()] * 5 for number in range(12)}


def test_php_fpm_connections_are_reused(launch, loop, transport, php):
    """keepalive_timeout is 300 ms, because each idle connection occupies one of the few PHP processes."""
    group = {'php': {'server': f'unix:{php}/php.sock', 'keepalive': 1, 'keepalive_timeout': '300ms'}}
    client = launch(loop, transport, http={'upstream': group}, server={'root': str(php), 'location': {
        '/': {'fastcgi_pass': 'php', 'fastcgi_keep_conn': 'on'}}}).connect()
    assert len({client.get('/pid.php').body for _ in range(10)}) == 1
    assert client.fetch('POST', '/echo.php', [('Content-Type', 'x/y')], body=BIG).body.startswith(f'{len(BIG)} '.encode())
    assert client.get('/hello.php?who=kept').body == b'hello kept'
    client.close()
