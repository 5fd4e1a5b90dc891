"""`sluice explain` prints, for a URL, the response of a server with this configuration, and the positions of the directives."""
import json
import subprocess

import pytest
from kit import http1, server as server_kit, site as site_kit
from kit.lifetime import refused, wait_for

CONFIGURATION = '''
http:
  access_log: {{path: {folder}/access.log, format: main}}
  add_header: X-All 1
  map:
    $arg_old $is_old: {{default: "", yes: "1"}}
  upstream:
    app: {{server: 127.0.0.1:{dead}, health_check: {{interval: 1s, uri: /}}}}
  server:
    - listen: 127.0.0.1:{port}
      server_name: one.test
      root: www
      error_page: 404 /missing.html
      rewrite: ^/old/(.*)$ /new/$1
      when:
        $is_old: {{return: 410}}
      location:
        /: {{index: index.html}}
        = /exact: {{return: "200 'just so'"}}
        /new/: {{try_files: [$uri, /one.txt], add_header: X-New 2, expires: 1h}}
        /go: {{return: 301 https://elsewhere.test$request_uri}}
        /closed: {{return: 444}}
        /hidden/: {{internal: on}}
        /closed/: {{deny: all}}
        /list/: {{autoindex: on, alias: www/bare/}}
        /app/: {{proxy_pass: "http://app/", auth_request: /auth}}
        ~ \\.css$: {{expires: 1d}}
        /nested/:
          location:
            /nested/in/: {{return: 204}}
    - listen: 127.0.0.1:{port}
      server_name: "*.two.test"
      return: 200 two
    - listen: 127.0.0.1:{secure} ssl
      server_name: secure.test
      ssl_certificate: self-signed
      absolute_redirect: on
      root: www
      location:
        /scheme: {{return: 200 $scheme}}
'''


def explain(*arguments, cwd=None):
    return subprocess.run([server_kit.SLUICE, 'explain', *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd,
                          stdin=subprocess.DEVNULL, timeout=60 * server_kit.PATIENCE)


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp('explain')
    (folder / 'www').mkdir()
    site_kit.make_site(str(folder / 'www'))
    (folder / 'www' / 'missing.html').write_text('nothing here\n')
    ports = {name: server_kit.free_port() for name in ('port', 'secure', 'dead')}
    path = folder / 'sluice.yaml'
    path.write_text(CONFIGURATION.format(folder=folder, **ports))
    return path, ports


def fetch(made, path, host='one.test', scheme='http'):
    configuration, ports = made
    port = ports['port' if scheme == 'http' else 'secure']
    done = explain('--format', 'json', '-c', configuration, f'{scheme}://{host}:{port}{path}')
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def line_of(made, text):
    lines = made[0].read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def summary(explained):
    return [(step['location'], [(module['module'], module['does']) for module in step['modules']]) for step in explained['steps']]


def test_explain_names_server_location_and_file(made):
    output = fetch(made, '/one.txt')
    assert output['server'] == {'name': 'one.test', 'file': str(made[0]), 'line': line_of(made, 'listen:'), 'column': 7,
                              'why': 'its server_name matches the host'}
    assert output['location']['name'] == '/' and output['location']['line'] == line_of(made, '/: {index')
    assert output['answer']['status'] == 200 and output['answer']['file'] == str(made[0].parent / 'www' / 'one.txt')
    assert output['answer']['headers']['Content-Type'].startswith('text/plain') and output['answer']['headers']['X-All'] == '1'
    assert summary(output)[-1][1][-1] == ('static', 'answers')
    assert 'static' in output['answering'] and 'add_header' in output['filtering'] and 'proxy' not in output['answering']


def test_directive_positions(made):
    output = fetch(made, '/style.css')
    assert output['location']['name'] == '~ \\.css$'
    assert [(row['name'], row['value'], row['line']) for row in output['directives'] if row['name'] in ('root', 'expires', 'add_header')] == [
        ('expires', '1d', line_of(made, '~ \\.css$')), ('root', 'www', line_of(made, 'root: www')), ('add_header', 'X-All 1', line_of(made, 'X-All'))]
    stop = [step for step in fetch(made, '/new/x')['steps'] if step['location'] == '/new/'][0]
    tried = [module for module in stop['modules'] if module['module'] == 'try_files'][0]
    assert [(row['name'], row['value'], row['line']) for row in tried['directives']] == [
        ('try_files', ['$uri', '/one.txt'], line_of(made, '/new/:'))]
    assert tried['path'] == '/one.txt'
    names = [row['name'] for row in output['directives']]
    assert 'try_files' not in names and 'internal' not in names and 'listen' in names


def test_rewritten_request(made):
    output = fetch(made, '/old/thing')
    paths = [step['path'] for step in output['steps']]
    assert paths[0] == '/old/thing' and paths[-1] == '/one.txt'
    rewritten = [module for step in output['steps'] for module in step['modules'] if module['module'] == 'rewrite'][0]
    assert rewritten['path'] == '/new/thing' and rewritten['directives'][0]['line'] == line_of(made, 'rewrite:')
    assert output['answer']['status'] == 200


def test_explain_names_the_file_of_the_error_page(made):
    output = fetch(made, '/nowhere')
    assert output['answer']['status'] == 404 and output['answer']['file'].endswith('/www/missing.html')


def test_last_module_after_many_redirects(tmp_path):
    """Ten internal redirects, the limit, each of which runs several modules."""
    (tmp_path / 'www').mkdir()
    (tmp_path / 'www/one.txt').write_text('one\n')
    port = server_kit.free_port()
    targets = [f'/{number}' for number in range(1, 10)] + ['/one.txt']
    locations = ''.join(f'        = /{number}: {{try_files: [/none, {target}]}}\n'
                        for number, target in enumerate(targets))
    path = tmp_path / 'sluice.yaml'
    path.write_text(f'''
http:
  limit_req_zone: $binary_remote_addr zone=a:1m rate=1000r/s
  limit_conn_zone: $binary_remote_addr zone=b:1m
  server:
    - listen: 127.0.0.1:{port}
      root: www
      set_real_ip_from: 192.0.2.1
      otel_trace_context: propagate
      set: $a b
      limit_req: zone=a
      limit_conn: b 9
      cors: {{origins: ["*"]}}
      allow: all
      location:
{locations}''')
    output = fetch((path, {'port': port}), '/0', host='127.0.0.1')
    assert output['answer']['status'] == 200 and output['answer']['file'] == str(tmp_path / 'www/one.txt')
    steps = summary(output)
    assert [name for name, modules in steps if name.startswith('=')] == [f'= /{number}' for number in range(10)]
    assert steps[-1][1][-1] == ('static', 'answers')


def test_matching_when_condition(made):
    output = fetch(made, '/one.txt?old=yes')
    assert output['answer']['status'] == 410
    assert '$is_old' in [step['location'] for step in output['steps']]


def test_upstream_servers_get_no_request(made):
    output = fetch(made, '/app/users')
    does = dict(summary(output)[-1][1])
    assert 'assumed to allow' in does['auth_request'] and 'skipped' in does['proxy']
    assert output['answer']['by'] == 'the upstream server, which was not contacted' and 'status' not in output['answer']
    assert output['location']['name'] == '/app/'


def test_refusal_reason_is_printed(made):
    done = explain(f'http://one.test:{made[1]["port"]}/closed/x', '-c', made[0])
    assert done.returncode == 0 and 'access forbidden by rule' in done.stderr and '  status: 403\n' in done.stdout


def test_status_444_closes_the_connection(made):
    assert fetch(made, '/closed')['answer']['by'] == 'no module: the connection is closed'


def test_server_name_selects_the_server(made):
    assert fetch(made, '/', host='a.two.test')['server']['name'] == '*.two.test'
    output = fetch(made, '/', host='unknown.test')['server']
    assert output['name'] == '(the default one)' and 'is the first one' in output['why']


@pytest.mark.parametrize('host, name, why', [
    ('a1.test', '~^a\\d\\.test$', 'matches the host'), ('b.test', '(the default one)', 'is the first one'), ('c.test.', 'c.test', 'matches the host')])
def test_regular_expression_names_select_the_server(tmp_path, host, name, why):
    path, port = tmp_path / 'sluice.yaml', server_kit.free_port()
    path.write_text(f'http:\n  server:\n    - {{listen: {port}, server_name: ["~^x$", "~^a\\\\d\\\\.test$"], return: 204}}\n'
                    f'    - {{listen: {port}, server_name: c.test, return: 204}}\n')
    output = fetch((path, {'port': port}), '/', host=host)['server']
    assert output['name'] == name and why in output['why']


def test_listener_with_proxy_protocol(tmp_path):
    """The request of explain needs no PROXY protocol header, which a client would have to send."""
    path, port = tmp_path / 'sluice.yaml', server_kit.free_port()
    path.write_text(f'http: {{server: {{listen: {port} proxy_protocol, return: 204}}}}\n')
    assert fetch((path, {'port': port}), '/')['answer']['status'] == 204


def test_fragment_is_removed_from_the_target(made):
    output = fetch(made, '/one.txt#here')
    assert output['answer']['status'] == 200 and output['steps'][0]['path'] == '/one.txt'


def test_option_g_applies(made):
    done = explain('-c', made[0], '-g', 'http: {server: [{listen: 1, return: 410}]}', 'http://a:1/')
    assert done.returncode == 0 and 'status: 410' in done.stdout, done.stderr


def test_explain_uses_the_server_of_an_https_target(made):
    output = fetch(made, '/scheme', host='secure.test', scheme='https')
    assert output['answer']['status'] == 200 and output['location']['name'] == '/scheme'
    redirect = fetch(made, '/folder', host='secure.test', scheme='https')
    assert redirect['answer']['headers']['Location'] == f'https://secure.test:{made[1]["secure"]}/folder/'


def test_access_log_is_not_created(made):
    fetch(made, '/one.txt')
    assert not (made[0].parent / 'access.log').exists()


PATHS = ['/', '/one.txt', '/exact', '/exact/', '/new/x', '/new/one.txt', '/old/x', '/go?a=b', '/hidden/x', '/closed/x', '/list/', '/list',
         '/style.css', '/folder', '/folder/', '/bare/', '/nested/', '/nested/in/x', '/nowhere', '/.hidden', '/a/../one.txt', '/%zz',
         '/one.txt?old=yes', '/one.txt?old=no', '//one.txt', '/link-out', '/empty.txt', '/name%20with%20space.txt']


@pytest.fixture(scope='module')
def running(made):
    configuration, ports = made
    own = configuration.with_name('running.yaml')
    own.write_text(f'pid: {configuration.parent}/pid\nworker_processes: 1\n' + configuration.read_text())
    process = subprocess.Popen([server_kit.SLUICE, '-c', str(own), '-e', str(configuration.parent / 'error.log')], stdin=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_for(lambda: not refused(ports['port']), 'a process listens')
    yield ports['port']
    process.terminate()
    assert process.wait(30) == 0


@pytest.mark.parametrize('path', PATHS)
def test_output_equals_the_server_response(made, running, path):
    client = http1.connect(running)
    served = client.fetch('GET', path, [('Host', f'one.test:{running}'), ('Connection', 'close')])
    client.close()
    output = fetch(made, path)['answer']
    assert output['status'] == served.status
    changing = {'date', 'server', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expires'}
    shown = {name.lower(): value for name, value in output['headers'].items() if name.lower() not in changing}
    assert {name: served.headers.get(name) for name in shown} == shown


PROTOCOLS = '''
http:
  server:
    - {{listen: ["127.0.0.1:{plain}", "127.0.0.1:{secure} ssl"], server_name: one.test, ssl_certificate: self-signed, return: 200}}
    - {{listen: ["127.0.0.1:{plain}", "127.0.0.1:{secure} ssl"], server_name: two.test, ssl_certificate: self-signed, http2: off, return: 200}}
    - {{listen: "127.0.0.1:{old}", server_name: three.test, http2: off, return: 200}}
    - {{listen: "127.0.0.1:{old}", server_name: four.test, return: 200}}
'''
BOTH = ['HTTP/2.0', 'HTTP/1.1']


@pytest.mark.parametrize('scheme, port, host, protocols', [
    ('https', 'secure', 'one.test', BOTH), ('https', 'secure', 'two.test', BOTH[1:]), ('http', 'plain', 'one.test', BOTH),
    ('http', 'plain', 'two.test', BOTH),    # the default server decides
    ('http', 'old', 'three.test', BOTH[1:]), ('http', 'old', 'four.test', BOTH[1:])])
def test_protocols_of_a_url(tmp_path, scheme, port, host, protocols):
    ports = {name: server_kit.free_port() for name in ('plain', 'secure', 'old')}
    (tmp_path / 'sluice.yaml').write_text(PROTOCOLS.format(**ports))
    done = explain('--format', 'json', '-c', tmp_path / 'sluice.yaml', f'{scheme}://{host}:{ports[port]}/')
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)['listen']['protocols'] == protocols


def test_text_format(made):
    done = explain(f'http://one.test:{made[1]["port"]}/one.txt', '-c', made[0])
    assert done.returncode == 0
    assert '  protocols:\n    - HTTP/2.0\n    - HTTP/1.1\nserver: one.test' in done.stdout
    assert f'location: /  ({made[0]}:{line_of(made, "/: {index")})' in done.stdout
    assert '      - static: answers\n        status: 200\n' in done.stdout
    assert f'  - root: www  ({made[0]}:{line_of(made, "root: www")})' in done.stdout


def test_target_without_a_host(made):
    done = explain('/one.txt', '-c', made[0])
    assert done.returncode == 0 and 'file: ' in done.stdout


@pytest.mark.parametrize('arguments, output', [
    ([], 'explain requires a URL'), (['ftp://a/'], 'is not a URL'), (['http://a:0/'], 'not a host with a port'), (['http:///'], 'not a host'),
    (['http://one.test/ a'], 'must not contain blanks'), (['http://one.test:1/'], 'no server listens on port 1'), (['a', 'b'], 'second one'),
    (['--format', 'gcc', '/'], 'text or json'), (['http://one.test/', '-x'], 'invalid option')])
def test_invalid_arguments(made, arguments, output):
    done = explain(*arguments, *([] if '-x' in arguments else ['-c', made[0]]))
    assert done.returncode == 1 and output in done.stderr, done.stderr


def test_scheme_of_another_listener_is_an_error(made):
    done = explain(f'https://one.test:{made[1]["port"]}/', '-c', made[0])
    assert done.returncode == 1 and 'is for http' in done.stderr


def test_invalid_configuration_is_an_error(tmp_path):
    (tmp_path / 'bad.yaml').write_text('http: {server: {lisen: 1}}\n')
    done = explain('http://a/', '-c', tmp_path / 'bad.yaml')
    assert done.returncode == 1 and 'lisen' in done.stderr
