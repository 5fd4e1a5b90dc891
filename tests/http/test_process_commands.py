"""The command line: testing and printing a configuration, signals by the pid file, versions, serve and doctor."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

import pytest

from kit import http1, server as server_kit

SLUICE = server_kit.SLUICE


def run(*arguments, **options):
    return subprocess.run([SLUICE, *arguments], capture_output=True, text=True, timeout=60, **options)


@pytest.fixture
def conf(tmp_path, site):
    path = tmp_path / 'sluice.yaml'
    path.write_text(f'pid: {tmp_path}/pid\n'
                    f'error_log: {{path: {tmp_path}/error.log, level: info}}\n'
                    'http:\n'
                    '  access_log: off\n'
                    '  server:\n'
                    f'    - {{listen: "127.0.0.1:{server_kit.free_port()}", root: {site}}}\n')
    return str(path)


def test_options_v_and_V_print_versions():
    assert re.fullmatch(r'sluice version: sluice/\d+\.\d+\.\d+\n', run('-v').stdout)
    built = run('-V')
    assert built.returncode == 0
    assert built.stdout.startswith(run('-v').stdout)
    for word in ('OpenSSL', 'loop:', 'epoll', 'kernel TLS:', 'encryption in user space: AES-128-GCM by ', 'modules, in calling order'):
        assert word in built.stdout


def test_usage_is_short():
    for flag in ('-h', '-?', '--help'):
        ran = run(flag)
        assert ran.returncode == 0 and ran.stderr == ''
        assert len(ran.stdout.splitlines()) <= 40
        for word in ('serve', 'doctor', 'schema', '-t', '-s SIGNAL', 'Examples'):
            assert word in ran.stdout
        assert all(len(line) <= 100 for line in ran.stdout.splitlines())


@pytest.mark.parametrize('arguments, output', [
    (['-x'], 'invalid option: "-x"'), (['-c'], 'requires a file name'), (['srve'], 'did you mean "serve"'),
    (['-s', 'hup'], 'stop, quit, reopen, reload or upgrade'), (['-t', '-s', 'quit'], 'cannot be combined'),
    (['serve', '--port', '0'], 'invalid port')])
def test_invalid_command_lines_are_rejected(arguments, output):
    ran = run(*arguments)
    assert ran.returncode == 1 and ran.stdout == ''
    assert ran.stderr.startswith('sluice: [emerg] ') and output in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_option_t_prints_nginx_messages(conf):
    ran = run('-t', '-c', conf)
    assert ran.returncode == 0 and ran.stdout == ''
    assert ran.stderr == (f'sluice: the configuration file {conf} syntax is ok\n'
                          f'sluice: configuration file {conf} test is successful\n')
    quiet = run('-t', '-q', '-c', conf)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, '', '')


def test_option_t_prints_error_positions(conf):
    with open(conf, 'a', encoding='utf-8') as stream:
        stream.write('worker_proceses: 4\n')
    for flags in (['-t'], ['-tq'], ['-T']):
        ran = run(*flags, '-c', conf)
        assert ran.returncode == 1 and ran.stdout == ''
        assert f'{conf}:7:1: error: ' in ran.stderr and 'worker_processes' in ran.stderr
        assert ran.stderr.endswith(f'sluice: configuration file {conf} test failed\n')
    assert run('-c', conf).returncode == 1


def test_option_t_of_a_missing_file(tmp_path):
    ran = run('-t', '-c', str(tmp_path / 'none.yaml'))
    assert ran.returncode == 1 and 'none.yaml' in ran.stderr and 'No such file' in ran.stderr


def test_option_t_opens_no_log_or_port(conf, tmp_path):
    """-t creates no log, binds no port and resolves no name."""
    port = re.search(r':(\d+)', open(conf, encoding='utf-8').read().split('listen')[1]).group(1)
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', int(port)))
        taken.listen()
        assert run('-t', '-c', conf).returncode == 0
    assert sorted(os.listdir(tmp_path)) == ['sluice.yaml']


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root to become nobody')
def test_option_t_requires_no_privileges(conf, sluice_copy):
    ran = subprocess.run([sluice_copy, '-t', '-c', conf], capture_output=True, text=True, timeout=60,
                         user='nobody', group='nogroup', extra_groups=[])
    assert ran.returncode == 0, ran.stderr


def test_option_T_prints_a_loadable_configuration(conf, tmp_path):
    ran = run('-T', '-c', conf)
    assert ran.returncode == 0 and 'test is successful' in ran.stderr
    assert ran.stdout.startswith(f'# configuration file {conf}:\n')
    copy = tmp_path / 'copy.yaml'
    copy.write_text(ran.stdout)
    again = run('-T', '-c', str(copy))
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[1:] == ran.stdout.splitlines()[1:]


def test_option_g_replaces_directives(conf):
    for given in ('worker_processes: 3', 'worker_processes: 3;'):
        ran = run('-T', '-c', conf, '-g', given)
        assert ran.returncode == 0, ran.stderr
        assert re.search(r'^worker_processes: "?3"?$', ran.stdout, re.M)
    assert run('-t', '-c', conf, '-g', 'daemon off;').returncode == 0
    assert run('-t', '-c', conf, '-g', 'demon: off').returncode == 1


def test_option_p_sets_the_prefix(conf, tmp_path):
    (tmp_path / 'conf').mkdir()
    os.rename(conf, tmp_path / 'conf' / 'sluice.yaml')
    assert run('-t', '-p', str(tmp_path)).returncode == 0
    assert run('-t', '-p', str(tmp_path), '-c', 'conf/sluice.yaml').returncode == 0
    assert run('-t', '-p', str(tmp_path), '-c', 'sluice.yaml').returncode == 1


def test_option_s_without_a_server(conf, tmp_path):
    for name in ('stop', 'quit', 'reopen', 'upgrade'):
        ran = run('-s', name, '-c', conf)
        assert ran.returncode == 1
        assert f'open() "{tmp_path}/pid" failed (2: No such file or directory)' in ran.stderr
    (tmp_path / 'pid').write_text('')
    for name in ('stop', 'upgrade'):
        assert 'invalid PID number' in run('-s', name, '-c', conf).stderr
    # A stale pid file has the number of another process, which must not receive the signal.
    bystander = subprocess.Popen(['sleep', '60'])
    try:
        (tmp_path / 'pid').write_text(f'{bystander.pid}\n')
        for name in ('stop', 'upgrade'):
            ran = run('-s', name, '-c', conf)
            assert ran.returncode == 1 and 'no running server uses it' in ran.stderr, ran.stderr
            assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_schema_and_help():
    ran = run('schema')
    assert ran.returncode == 0 and ran.stderr == ''
    assert isinstance(json.loads(ran.stdout), dict)
    known = run('help', 'listen')
    assert known.returncode == 0 and 'listen' in known.stdout and known.stderr == ''
    unknown = run('help', 'listn')
    assert unknown.returncode == 1 and 'listen' in unknown.stderr and unknown.stdout == ''
    every = run('help')
    assert every.returncode == 0
    assert {'listen', 'worker_processes', 'ssl_ktls', 'add_header'} <= set(every.stdout.replace(':', ' ').split())


@pytest.mark.parametrize('name, words', [
    ('server', ['where     http, stream', 'where     upstream', 'address [weight=number]']),
    ('access_log', ['where     http, server, location', 'where     stream, a server of stream']),
    ('include', ['include: conf.d/*.yaml']), ('location', ['example   location:']),
    ('$host', ['where     http', 'type      text']), ('$arg_id', ['$arg_NAME']), ('$remote_addr', ['where     http, stream']),
    ('$status', ['where     http', 'where     stream']), ('$protocol', ['where     stream']),
    ('combined', ['$body_bytes_sent']), ('json', ['where     http', 'where     stream']), ('worker_processes', ['auto | number']),
])
def test_help_prints_entries(name, words):
    ran = run('help', name)
    assert ran.returncode == 0 and ran.stderr == '', ran.stderr
    assert not [word for word in words if word not in ran.stdout], ran.stdout


@pytest.mark.parametrize('name, words', [
    ('http3', "'http3' is not supported by sluice: "), ('uwsgi_pass', 'FastCGI'), ('$hots', 'did you mean $host?'),
    ('$nothing_like_it', "no variable is named '$nothing_like_it'"), ('proxy_pas', 'did you mean proxy_pass'),
])
def test_help_for_unsupported_names_the_alternative(name, words):
    ran = run('help', name)
    assert ran.returncode == 1 and words in ran.stderr and 'this build' not in ran.stderr and ran.stdout == '', ran.stderr


def test_implemented_directives_are_not_listed_as_missing():
    every = {name for line in run('help').stdout.splitlines() if re.match(r'\w+: ', line) for name in line.split(': ')[1].split()}
    page = (pathlib.Path(__file__).parents[2] / 'docs/nginx.md').read_text().partition('\n## Variables')[0]
    missing = re.findall(r'^\| `(\S+)` \| (?!\[`)', page, re.M)
    assert len(every) > 250 and len(missing) > 100 and len(set(missing)) == len(missing)
    assert not [(name, own) for name in missing for own in every if own == name or (name[-1] == '*' and own.startswith(name[:-1]))]


def test_unwritable_output_is_a_failure():
    with open('/dev/full', 'w', encoding='ascii') as full:
        for arguments in (['schema'], ['help'], ['-h']):
            assert subprocess.run([SLUICE, *arguments], stdout=full, stderr=subprocess.DEVNULL, timeout=30).returncode != 0


def test_doctor_reports_each_check():
    ran = run('doctor')
    works = ran.returncode == 0
    assert ran.stderr == ''
    for word in ('Linux ', 'TLS 1.3 AES-128-GCM', 'OpenSSL offers its write key', 'loop: ', 'open files: ', 'AES-128-GCM in user space: ',
                 'ChaCha20-Poly1305 in user space: openssl'):
        assert word in ran.stdout
    assert ran.stdout.rstrip().endswith('kTLS: works here' if works else
                                        'kTLS: does not work here; connections are encrypted in user space')
    found = json.loads(run('doctor', '--json').stdout)
    assert found['ktls'] is works
    verdicts = {item['name']: item['verdict'] for item in found['findings']}
    assert verdicts['transfer'] == ('good' if works else 'fault')
    assert works or any(item['advice'] for item in found['findings'] if item['verdict'] == 'fault')
    assert [item['text'].split(':')[0] for item in found['findings'] if item['name'] == 'cipher'] == [
        f'TLS {version} {cipher}' for version in ('1.3', '1.2') for cipher in ('AES-128-GCM', 'AES-256-GCM', 'ChaCha20-Poly1305')]
    for name in ('kernel', 'module', 'loop', 'files', 'buffers', 'openssl', 'openssl_ktls', 'rekey' if works else 'autoload'):
        assert name in verdicts, found
    devices = [item['text'] for item in found['findings'] if item['name'] == 'device']
    assert len(devices) >= min(8, len(set(os.listdir('/sys/class/net')) - {'lo', 'bonding_masters'}))
    assert not any(text.startswith('lo:') for text in devices)


def in_namespace(*flags):
    """Runs the doctor in new namespaces; None if they are not permitted."""
    if subprocess.run(['unshare', *flags, 'true'], capture_output=True, timeout=60, check=False).returncode != 0:
        return None
    ran = subprocess.run(['unshare', *flags, SLUICE, 'doctor', '--json'], capture_output=True, text=True, timeout=60, check=False)
    found = json.loads(ran.stdout)
    assert ran.returncode == (0 if found['ktls'] else 1) and ran.stderr == ''
    return {item['name']: item for item in found['findings']}, found['ktls']


def test_doctor_in_a_container():
    """In a user namespace kTLS works if it works outside, but the kernel loads no module on demand."""
    found = in_namespace('-U', '-r')
    if not found:
        pytest.skip('no user namespaces here')
    findings, works = found
    assert works == (run('doctor').returncode == 0)
    assert findings['transfer']['verdict'] == ('good' if works else 'fault')
    if not works:
        assert re.search('loads no modules', findings['autoload']['text'])
        assert re.search('the host must load it|built without CONFIG_TLS', findings['module']['advice'])


def test_doctor_without_a_network():
    """The loopback interface is down: the doctor reports that no connection is possible, and its advice names the interface."""
    found = in_namespace('-U', '-r', '-n')
    if not found:
        pytest.skip('no network namespaces here')
    findings, works = found
    assert not works and 'no connection over 127.0.0.1' in findings['handshake']['text']
    assert 'loopback' in findings['handshake']['advice']


def test_doctor_with_few_descriptors():
    ran = subprocess.run(['bash', '-c', 'ulimit -n 500; exec "$0" doctor', SLUICE], capture_output=True, text=True, timeout=60, check=False)
    assert 'open files: 500, raised to 500 at start: enough for 234 worker_connections (the default is 4096)' in ran.stdout
    assert 'raise the hard limit to 8224' in ran.stdout



class Serve:
    def __init__(self, *arguments, folder=None):
        self.process = subprocess.Popen([SLUICE, 'serve', *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        while not self.lines or 'Ctrl-C' not in self.lines[-1]:
            line = self.process.stdout.readline()
            assert line, f'it ended:\n{"".join(self.lines)}'
            self.lines.append(line)
        self.output = ''.join(self.lines)
        self.port = int(re.search(r'https://localhost:(\d+)/', self.output).group(1))

    def end(self):
        self.process.send_signal(signal.SIGINT)
        rest, _ = self.process.communicate(timeout=30)
        return self.process.returncode, rest


ODD = ['plain', 'a b', "quo'te", 'dou"ble', 'co: lon', 'dol$lar', '$uri', '${HOME}', '$HOME', '#hash', ' # x', 'grüße', '-dash',
       'back\\slash', '[list]', '{map}', '*star', '&anchor', '%percent', 'new\nline', 'tab\tbed', '!tag', '$$', '~']


@pytest.mark.parametrize('name', ODD)
def test_serve_accepts_any_directory_name(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    (folder / 'index.html').write_text('<p>here\n')
    serve = Serve('--port', str(server_kit.free_port()), '--', name, folder=str(tmp_path))
    try:
        response = http1.connect(serve.port, 'user').get('/')
        assert (response.status, response.body) == (200, b'<p>here\n')
    finally:
        status, rest = serve.end()
    assert status == 0
    assert f'"GET / {http1.VERSION}" 200' in rest, 'the access log is on standard output'


def test_serve_prints_url_and_command(tmp_path):
    (tmp_path / 'index.html').write_text('<p>here\n')
    serve = Serve(folder=str(tmp_path))
    second = Serve(folder=str(tmp_path))
    try:
        assert 8443 <= serve.port < second.port, 'the next free port is taken'
        for url in (f'https://localhost:{serve.port}/', f'https://127.0.0.1:{serve.port}/'):
            assert url in serve.output
        assert len([line for line in serve.lines if line.startswith('kTLS: ')]) == 1
        assert str(tmp_path) in serve.output
        assert server_kit.read_text('/run/sluice.pid').strip() not in (str(serve.process.pid), str(second.process.pid)), \
            'it is no service: it has no pid file'
        if '[::1]' in serve.output:
            socket.create_connection(('::1', serve.port), timeout=5).close()
        done = run('serve', '--port', str(serve.port), cwd=str(tmp_path))
        assert done.returncode == 1 and f'port {serve.port} is in use' in done.stderr
        # The server listens on loopback only.
        with open('/proc/net/tcp', encoding='ascii') as stream:
            assert f'00000000:{serve.port:04X}' not in stream.read()
    finally:
        assert second.end()[0] == 0
        assert serve.end()[0] == 0


def test_serve_requires_a_directory(tmp_path):
    (tmp_path / 'file').write_text('')
    for name, output in (('none', 'No such file'), ('file', 'it is not a directory')):
        ran = run('serve', str(tmp_path / name))
        assert ran.returncode == 1 and output in ran.stderr


def test_serve_sends_files(tmp_path):
    content = os.urandom(300000)
    (tmp_path / 'file.bin').write_bytes(content)
    (tmp_path / '.secret').write_text('no')
    os.symlink('/etc/passwd', tmp_path / 'out')
    serve = Serve(str(tmp_path), '--port', str(server_kit.free_port()))
    try:
        client = http1.connect(serve.port, 'user')
        assert client.get('/file.bin').body == content
        assert client.get('/.secret').status == 404
        assert client.get('/out').status == 403
    finally:
        assert serve.end()[0] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can serve as another user')
def test_serve_as_root_prints_the_user(tmp_path):
    """The server opens the directory before it gives up root privileges: only the permissions of the directory itself matter."""
    folder = tmp_path / 'closed' / 'folder'
    folder.mkdir(parents=True)
    (folder / 'index.html').write_text('<p>here\n')
    (tmp_path / 'closed').chmod(0o700)
    for mode, status in ((0o755, 200), (0o700, 403)):
        folder.chmod(mode)
        serve = Serve(str(folder), '--port', str(server_kit.free_port()))
        try:
            assert http1.connect(serve.port, 'user').get('/').status == status
            rest = [serve.process.stdout.readline() for _ in range(1 if status == 200 else 2)]
            assert 'as user nobody' in rest[0]
            assert status == 200 or f'User nobody has no permission to enter {folder}' in rest[1]
        finally:
            assert serve.end()[0] == 0
