"""The command line and the configuration: -t, -T, schema, help, includes, environment variables, and positions of errors."""
import json
import os
import re
import subprocess

import pytest
from kit import http1, server as server_kit
from kit.lifetime import refused, wait_for

SLUICE = server_kit.SLUICE
GOOD = 'http:\n  server:\n    - listen: 127.0.0.1:{port}\n      server_name: localhost\n      root: www\n'


def run(*arguments, environment=None, text=None, cwd=None):
    return subprocess.run([SLUICE, *arguments], capture_output=True, text=True, timeout=60 * server_kit.PATIENCE, check=False,
                          input=text if text is not None else '', cwd=cwd, env={**os.environ, **(environment or {})})


def check(folder, text, environment=None, **files):
    """Runs `sluice -t` on a text; returns exit status and output."""
    for name, content in files.items():
        (folder / name).write_text(content)
    path = folder / 'sluice.yaml'
    path.write_text(text)
    done = run('-t', '-c', str(path), environment=environment)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'www').mkdir()
    (tmp_path / 'www' / 'one.txt').write_text('one\n')
    return tmp_path


def test_valid_configuration_is_accepted(folder):
    status, output = check(folder, GOOD.format(port=8080))
    assert status == 0 and 'syntax is ok' in output and 'test is successful' in output


def test_default_configuration_is_accepted():
    path = os.path.join(os.path.dirname(__file__), '../../conf/sluice.yaml')
    done = run('-t', '-c', path)
    assert done.returncode == 0, done.stderr


def test_missing_file_is_reported():
    done = run('-t', '-c', '/nowhere/sluice.yaml')
    assert done.returncode == 1 and '/nowhere/sluice.yaml' in done.stderr


WRONG = [
    # name, text, line of the error, words of the message
    ('unknown key', 'http:\n  servr:\n    - listen: 8080\n', 2, ['servr', 'server']),
    ('a key of another place', 'listen: 8080\n', 1, ['listen', 'server']),
    ('no unit', 'http:\n  keepalive_timeout: 30\n', 2, ['30', 'unit']),
    ('bad size', 'http:\n  client_max_body_size: ten\n', 2, ['ten']),
    ('bad switch', 'http:\n  sendfile: maybe\n', 2, ['maybe', 'on']),
    ('bad number', 'worker_processes: many\n', 1, ['many']),
    ('bad choice', 'events:\n  use: kqueue\n', 2, ['kqueue', 'epoll']),
    ('duplicate key', 'http:\n  sendfile: on\n  sendfile: off\n', 3, ['sendfile', '2']),
    ('undefined alias', 'http:\n  server: *nobody\n', 2, ['nobody']),
    ('tab', 'http:\n\tserver: []\n', 2, ['tab']),
    ('no colon', 'http:\n  server\n', 2, []),
    ('unquoted star', 'http:\n  server:\n    - listen: 8080\n      server_name: *.example.com\n', 4, ['quote']),
    ('unknown variable', 'http:\n  server:\n    - listen: 8080\n      return: 200 $nobody\n', 4, ['nobody']),
    ('unfinished quote', 'http:\n  server:\n    - listen: "8080\n', 3, []),
    ('unset environment', 'http:\n  server:\n    - listen: 8080\n      root: ${SURELY_UNSET:?say where}\n', 4, ['SURELY_UNSET', 'say where']),
    ('if is not carried', 'http:\n  server:\n    - listen: 8080\n      if: ($host = a)\n', 4, ['if', 'when']),
    ('bad address', 'http:\n  server:\n    - listen: 300.1.2.3:80\n', 3, ['300.1.2.3']),
    ('bad port', 'http:\n  server:\n    - listen: 127.0.0.1:99999\n', 3, ['99999']),
    ('a key without a value', 'http:\n  server:\n    - {listen: 8080, root}\n', 3, ['root']),
    ('a list where a map belongs', 'http:\n  - server: 1\n', 2, []),
    ('certificate that is not there', 'http:\n  server:\n    - listen: 8443 ssl\n      ssl_certificate: nowhere.pem\n'
     '      ssl_certificate_key: nowhere.key\n', 4, ['nowhere.pem']),
    ('a return of no status', 'http:\n  server:\n    - listen: 8080\n      return: 1000 no\n', 4, ['1000']),
    ('bad regular expression', 'http:\n  server:\n    - listen: 8080\n      location:\n        "~ (":\n          return: 200 x\n', 5, []),
]


@pytest.mark.parametrize('text, line, words', [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_errors_have_line_numbers(folder, text, line, words):
    status, output = check(folder, text)
    assert status == 1, output
    places = [int(number) for number in re.findall(r'sluice\.yaml:(\d+):\d+', output)]
    assert line in places, output
    assert '^' in output, 'a caret'
    for word in words:
        assert word in output, output
    assert 'successful' not in output


def test_number_of_reported_errors_is_limited(folder):
    text = 'http:\n' + ''.join(f'  unknown{number}: 1\n' for number in range(40))
    _, output = check(folder, text)
    assert 15 <= len(set(re.findall(r'sluice\.yaml:(\d+):\d+: error', output))) <= 20


@pytest.mark.parametrize('text', ['', '\n', '# nothing\n', '[]\n', 'a', '{', '}', '"', '\x00', '\ufeffhttp: {}\n', '%YAML 9.9\n---\n',
                                  '- - - - - -', '&a [*a]\n', 'a: &a [&b [&c [*a]]]\n', '--- a\n--- b\n', '!!binary aGVsbG8=\n',
                                  '[' * 100000, '{a: ' * 10000, '? ' * 1000, 'http: ' + 'a' * 1000000])
def test_random_input_does_not_crash(folder, text):
    status, output = check(folder, text)
    assert status in (0, 1), output


def test_exponential_aliases_are_rejected(folder):
    text = 'x-0: &a0 [a, a, a, a, a, a, a, a, a]\n' + ''.join(
        f'x-{n}: &a{n} [{", ".join([f"*a{n - 1}"] * 9)}]\n' for n in range(1, 12)) + 'http: *a11\n'
    assert check(folder, text)[0] == 1


def test_environment_variables_are_substituted(folder):
    text = 'http:\n  server:\n    - listen: 127.0.0.1:${PORT:-8080}\n      root: ${SITE_ROOT}\n'
    assert check(folder, text, environment={'SITE_ROOT': str(folder / 'www')})[0] == 0
    done = run('-T', '-c', str(folder / 'sluice.yaml'), environment={'SITE_ROOT': '/somewhere', 'PORT': '8181'})
    assert '/somewhere' in done.stdout and '127.0.0.1:8181' in done.stdout


def test_include_merges_files(folder):
    (folder / 'sites').mkdir()
    (folder / 'sites' / 'a.yaml').write_text('server:\n  - listen: 127.0.0.1:8081\n    root: ../www\n')
    (folder / 'sites' / 'b.yaml').write_text('server:\n  - listen: 127.0.0.1:8082\n    root: ../www\n')
    status, output = check(folder, 'http:\n  include: sites/*.yaml\n')
    assert status == 0, output
    done = run('-T', '-c', str(folder / 'sluice.yaml'))
    assert '8081' in done.stdout and '8082' in done.stdout
    (folder / 'sites' / 'c.yaml').write_text('sendfile: on\n')
    status, output = check(folder, 'http:\n  sendfile: off\n  include: sites/*.yaml\n')
    assert status == 1 and 'c.yaml' in output and 'sluice.yaml' in output
    assert check(folder, 'http:\n  include: sluice.yaml\n')[0] == 1
    assert check(folder, 'http:\n  include: nowhere.yaml\n')[0] == 1
    assert check(folder, 'http:\n  include: nowhere/*.yaml\n  server: [{listen: 127.0.0.1:8080}]\n')[0] == 0


def test_anchors_and_merges(folder):
    text = ('x-usual: &usual {root: www, index: index.html}\nhttp:\n  server:\n    - <<: *usual\n      listen: 127.0.0.1:8081\n'
            '    - <<: *usual\n      listen: 127.0.0.1:8082\n      root: other\n')
    status, output = check(folder, text)
    assert status == 0, output


def test_effective_configuration_reads_back(folder):
    text = GOOD.format(port=8080)
    check(folder, text)
    shown = run('-T', '-c', str(folder / 'sluice.yaml'))
    assert shown.returncode == 0
    again = folder / 'again.yaml'
    again.write_text('\n'.join(line for line in shown.stdout.splitlines() if 'syntax is ok' not in line and 'successful' not in line))
    assert run('-t', '-c', str(again)).returncode == 0


def test_option_g_replaces_directives(folder):
    check(folder, 'worker_processes: 4\n' + GOOD.format(port=8080))
    done = run('-T', '-c', str(folder / 'sluice.yaml'), '-g', 'worker_processes: 2')
    assert 'worker_processes: 2' in done.stdout and 'worker_processes: 4' not in done.stdout
    assert run('-t', '-c', str(folder / 'sluice.yaml'), '-g', 'daemon off;').returncode == 0
    assert run('-t', '-c', str(folder / 'sluice.yaml'), '-g', 'nonsense: 1').returncode == 1


def test_configuration_from_standard_input(folder):
    done = run('-t', '-c', '-', text=GOOD.format(port=8080), cwd=str(folder))
    assert done.returncode == 0, done.stderr


def test_schema_is_json_schema():
    done = run('schema')
    assert done.returncode == 0
    schema = json.loads(done.stdout)
    assert '$schema' in schema and 'http' in schema['properties'] and 'worker_processes' in schema['properties']
    assert 'root' in done.stdout and 'ssl_ktls' in done.stdout


def test_help_prints_and_suggests_directives():
    done = run('help', 'ssl_ktls')
    assert done.returncode == 0 and 'ssl_ktls' in done.stdout and 'auto' in done.stdout
    wrong = run('help', 'ssl_ktl')
    assert wrong.returncode == 1 and 'ssl_ktls' in wrong.stdout + wrong.stderr


def test_options_v_and_V_print_versions():
    done = run('-v')
    assert done.returncode == 0 and re.search(r'sluice[ /]\d+\.\d+', done.stdout + done.stderr)
    done = run('-V')
    output = done.stdout + done.stderr
    assert done.returncode == 0 and 'OpenSSL' in output
    for module in ('return', 'static', 'add_header'):
        assert module in output


@pytest.mark.parametrize('arguments', [['-z'], ['nonsense'], ['-c'], ['-s', 'nonsense'], ['help'], ['-t', '-c']])
def test_invalid_command_lines_are_rejected(arguments):
    done = run(*arguments)
    assert done.returncode in (0, 1, 2) and (done.stderr or done.stdout)
    if arguments != ['help']:
        assert done.returncode != 0


def test_relative_paths_begin_at_the_configuration_file(folder, loop):
    port = server_kit.free_port()
    (folder / 'deep').mkdir()
    (folder / 'deep' / 'sluice.yaml').write_text(f'pid: pid\nevents: {{use: {loop}}}\nhttp:\n  access_log: off\n  server:\n'
                                                 f'    - {{listen: "127.0.0.1:{port}", root: ../www}}\n')
    process = subprocess.Popen([SLUICE, '-c', str(folder / 'deep' / 'sluice.yaml')], stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: not refused(port), 'a process listens')
        assert http1.connect(port).get('/one.txt').body == b'one\n'
        assert (folder / 'deep' / 'pid').read_text().strip() == str(process.pid)
    finally:
        process.terminate()
        process.wait(30)
