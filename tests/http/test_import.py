"""`sluice import`: configurations served by nginx and by what was made of them here, compared answer by answer.

Each file of nginx/ is the inside of nginx's `http`, with the requests that are compared in its head:
"#? METHOD TARGET | Field: value | =body | ~what is not compared". "#! tls": it is asked over TLS; "#! left NAMES": what
the importer says that it could not carry over.
"""
import pathlib
import re
import shutil
import subprocess

import pytest

from kit import nginx as nginx_kit, server as server_kit
from kit.nginx import CASES as HERE, NGINX, Running, agree, facts, import_file, left_out, write_conf
from kit.server import SLUICE

CASES = sorted(path.stem for path in HERE.glob('*.conf'))


@pytest.fixture(scope='module')
def behind():
    server = nginx_kit.Upstream(nginx_kit.Behind)
    yield server.port
    server.stop()


@pytest.fixture(scope='module')
def packed(base):
    return nginx_kit.make_packed(base / 'packed')


def ask(port, request, transport='plain'):
    """nginx_kit.ask, where only what is said to be cut may be cut."""
    response, apart = nginx_kit.ask(port, request, transport)
    assert response or 'cut' in apart, request
    return response, apart


class Case:
    def __init__(self, name):
        self.text = (HERE / f'{name}.conf').read_text()
        self.requests = [line[2:].strip() for line in self.text.splitlines() if line.startswith('#?')]
        self.transport = 'user' if '#! tls' in self.text else 'plain'
        self.needs = re.search(r'#! needs (.*)|$', self.text)[1]
        self.left = re.search(r'#! left (.*)|$', self.text)[1]


@pytest.fixture(params=CASES)
def pair(request, tmp_path, site, certificate, behind, packed):
    """The same configuration, served by nginx and by sluice."""
    if NGINX is None:
        pytest.skip('nginx is not installed')
    case, running, ports = Case(request.param), [], []
    if case.needs and subprocess.run([SLUICE, 'help', case.needs], capture_output=True, check=False).returncode:
        pytest.skip(f'{case.needs} is not built in')
    for name in ('nginx', 'sluice'):
        folder = tmp_path / name
        folder.mkdir()
        own = {'PORT': server_kit.free_port(), 'PLAIN': server_kit.free_port(), 'UPSTREAM': behind, 'PACKED': packed,
               'WWW': site, 'CERTIFICATE': certificate[0], 'KEY': certificate[1]}
        conf = write_conf(folder, case.text, own)
        command = nginx_kit.nginx_command(folder, conf)
        if name == 'sluice':
            status, said = import_file(conf, folder / 'sluice.yaml', '-p', str(folder))
            assert status in (0, 2), said
            assert left_out(said) == (case.left or '').split(), said
            command = [SLUICE, '-c', str(folder / 'sluice.yaml')]
        running.append(Running(command, [own['PORT']], folder / 'output'))
        ports.append(own['PORT'])
    yield case, ports
    for server in running:
        server.stop()


def test_answers_are_the_same(pair):
    case, ports = pair
    wrong = []
    for request in case.requests:
        there, here = [facts(*ask(port, request, case.transport), port) for port in ports]
        if agree(there, here) != there:
            wrong.append(f'{request}\n    nginx:  {there}\n    sluice: {here}')
    assert case.requests and not wrong, '\n'.join(wrong)


DEBIAN = pathlib.Path('/etc/nginx')


def names_old_protocols(conf):
    """Debian 12's does; they are not there any more, so that the list is another one here."""
    return 'ssl_protocols TLSv1 ' in conf.read_text()


@pytest.fixture
def packaged(tmp_path, fresh):
    """What Debian's package brings, with ports and folders of the test's own: (both ports, what was said, nginx's file, ours, what is served)."""
    if NGINX is None or not (DEBIAN / 'sites-available/default').exists():
        pytest.skip('the configuration of the package is not there')
    www, running, ports = fresh(), [], []
    for line in (DEBIAN / 'mime.types').read_text().split(';'):
        for extension in line.split('{')[-1].split()[1:]:
            (www / f'file.{extension}').write_text(extension)
    (www / 'index.nginx-debian.html').write_text('welcome')
    for name in ('nginx', 'sluice'):
        folder, port = tmp_path / name, server_kit.free_port()
        shutil.copytree(DEBIAN, folder / 'conf', ignore_dangling_symlinks=True)
        for path in [folder / 'conf/nginx.conf', *(folder / 'conf/sites-enabled').iterdir()]:
            text = path.read_text()
            for old, new in ((str(DEBIAN), str(folder / 'conf')), ('/var/log/nginx', str(folder)), ('/run/nginx.pid', f'{folder}/pid'),
                             ('listen 80 default_server', f'listen 127.0.0.1:{port} default_server'),
                             ('listen [::]:80 default_server;', ''), ('/var/www/html', str(www))):
                text = text.replace(old, new)
            path.write_text(text)
        conf = folder / 'conf/nginx.conf'
        command = [NGINX, '-c', str(conf), '-e', str(folder / 'error.log'), '-g', 'daemon off; master_process off;']
        if name == 'sluice':
            status, said = import_file(conf, folder / 'sluice.yaml', '-p', '/usr/share/nginx', '--report')
            assert status == (2 if left_out(said) or names_old_protocols(conf) else 0), said
            command = [SLUICE, '-c', str(folder / 'sluice.yaml')]
        running.append(Running(command, [port], folder / 'output'))
        ports.append(port)
    yield ports, said, conf, folder / 'sluice.yaml', www
    for server in running:
        server.stop()


def test_the_configuration_of_the_package(packaged):
    (nginx, sluice), said, conf, made, www = packaged
    assert left_out(said) in ([], ['gzip'])
    other = re.search(r'another meaning here \(1\):\n  \S+/nginx.conf:\d+: ssl_protocols TLSv1 TLSv1.1 ', said)
    assert bool(other) == names_old_protocols(conf)
    text = made.read_text()
    assert all(f'# {line}\n' in text for line in said.splitlines()), 'the list stands in the file, too'
    assert '# First attempt to serve request as file, then\n' in text and 'try_files: $uri $uri/ =404\n' in text
    requests = ['GET /', 'GET /none', 'HEAD /file.html'] + [f'GET /{path.name}' for path in www.iterdir()]
    wrong = [request for request in requests
             if facts(*ask(nginx, request, 'plain'), nginx) != facts(*ask(sluice, request, 'plain'), sluice)
             and request != 'GET /none']
    assert not wrong and len(requests) > 90
    assert ask(sluice, 'GET /none', 'plain')[0].status == 404


@pytest.mark.parametrize('text, status, said', [
    ('http {', 1, 'nginx.conf:1: error: this block is not closed'),
    ('http { server { access_by_lua_block { a = "}', 1, 'nginx.conf:1: error: the file ends within a block of Lua'),
    ('http { server { listen 127.0.0.1:@PORT@; root /; } }', 0, ''),
    ('http { server { listen 127.0.0.1:@PORT@; root /; tcp_nopush on; } }', 0, 'not needed here (1)'),
    ('http { server { listen 127.0.0.1:@PORT@; root /; nonsense on; } }', 2, 'not carried over (1)'),
    ('http { }', 1, 'there is nothing to serve'),
    ('pid /run/a; daemon off; error_log /e; stream { server { listen 53 udp; proxy_pass 127.0.0.1:53; } }', 1, 'not carried over (3):'),
    ('daemon off; stream { server { listen 54; proxy_pass $nowhere; } }', 1, 'there is nothing to serve'),
])
def test_exit_status(tmp_path, text, status, said):
    (tmp_path / 'nginx.conf').write_text(text.replace('@PORT@', '8080'))
    found, told = import_file(tmp_path / 'nginx.conf', tmp_path / 'out.yaml')
    assert found == status and said in told and (said or not told)
    assert (tmp_path / 'out.yaml').exists() == (status != 1)
    assert 'daemon' not in told and 'pid' not in told, 'they are not at fault'
    if status != 1:
        checked = subprocess.run([SLUICE, '-t', '-q', '-c', str(tmp_path / 'out.yaml')], timeout=30, check=False)
        assert checked.returncode == 0


def test_standard_output_and_missing_files(tmp_path):
    (tmp_path / 'nginx.conf').write_text('http { server { listen 8080; root /; } }')
    done = subprocess.run([SLUICE, 'import', 'nginx.conf'], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and f'# Made of {tmp_path}/nginx.conf by sluice import.\n' in done.stdout and not done.stderr
    for arguments, said in ((['none.conf'], 'none.conf:0: error: the file cannot be read'), ([], 'takes nginx\'s main file'),
                            (['nginx.conf', '-o', 'none/out.yaml'], 'failed (2: No such file or directory)')):
        done = subprocess.run([SLUICE, 'import', *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert done.returncode == 1 and said in done.stderr


def test_a_line_as_long_as_one_likes(tmp_path):
    """More names than a line of a log would hold: all of them arrive."""
    names = [f'name-{number}.example.test' for number in range(6000)]
    (tmp_path / 'nginx.conf').write_text('http { server { listen 8080; root /; server_name ' + ' '.join(names[:5000]) +
                                         '; server_name ' + ' '.join(names[5000:]) + '; } }')
    status, said = import_file(tmp_path / 'nginx.conf', tmp_path / 'out.yaml')
    assert status == 0, said
    line = next(line for line in (tmp_path / 'out.yaml').read_text().splitlines() if 'server_name: ' in line)
    assert line.split()[-6000:] == names


def test_too_many_words(tmp_path):
    (tmp_path / 'nginx.conf').write_text('http {\nserver {\nlog_format a ' + 'b ' * 2000000 + '; } }')
    status, said = import_file(tmp_path / 'nginx.conf', tmp_path / 'out.yaml')
    assert status == 1 and 'nginx.conf:3: error: a directive has too many words' in said
    assert not (tmp_path / 'out.yaml').exists()
