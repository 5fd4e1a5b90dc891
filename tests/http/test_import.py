"""`sluice import`: configurations served by nginx and by what was made of them here, compared answer by answer.

Each file of nginx/ is the inside of nginx's `http`, with the requests that are compared in its head:
"#? METHOD TARGET | Field: value | =body | ~what is not compared". "#! tls": it is asked over TLS; "#! left NAMES": what
the importer says that it could not carry over.
"""
import gzip
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import threading
import urllib.parse

import pytest

from kit import http1, server as server_kit
from kit.lifetime import wait_for
from kit.server import SLUICE

HERE = pathlib.Path(__file__).parent / 'nginx'
CASES = sorted(path.stem for path in HERE.glob('*.conf'))
NGINX = shutil.which('nginx') or shutil.which('nginx', path='/usr/sbin')
# Fields that must be the same where one has them; of others (ETag, Expires) that both have them, or none.
SAME = ('location', 'content-type', 'content-range', 'cache-control', 'last-modified', 'accept-ranges',
        'strict-transport-security', 'content-disposition', 'content-encoding', 'vary', 'www-authenticate', 'referrer-policy')
THERE = ('etag', 'expires')


def import_file(path, out, *more):
    """Exit status and what was said."""
    done = subprocess.run([SLUICE, 'import', str(path), '-o', str(out), *more], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def left_out(said):
    """Names of the directives that were not carried over, of what the importer says."""
    part = re.match(r'not carried over \(\d+\):\n((?:  .*\n)*)', said)
    return re.findall(r'^  \S+:\d+: (\S+)', part[1], re.M) if part else []


class Behind(http.server.BaseHTTPRequestHandler):
    """Says what it was asked."""
    protocol_version = 'HTTP/1.1'

    def answer(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        fields = [f'{name}: {self.headers[name]}' for name in ('Host', 'X-Real-IP', 'X-Mine') if name in self.headers]
        text = '\n'.join([f'{self.command} {self.path}', *fields, body.decode()]).encode()
        self.send_response(404 if 'missing' in self.path else 302 if 'moved' in self.path else 200)
        self.send_header('Content-Type', 'text/x-said')
        if 'moved' in self.path:
            self.send_header('Location', f'http://127.0.0.1:{self.server.server_port}/elsewhere')
        self.send_header('X-Powered-By', 'a test')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_HEAD = answer

    def log_message(self, *_):
        """Nobody reads it."""


@pytest.fixture(scope='module')
def behind():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', server_kit.free_port()), Behind)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope='module')
def packed(base):
    """Files with packed ones beside them, and passwords."""
    folder = base / 'packed'
    folder.mkdir()
    for name in ('page.html', 'style.css'):
        (folder / name).write_text(name * 100)
        (folder / f'{name}.gz').write_bytes(gzip.compress(f'packed {name}'.encode()))
    (folder / 'long.txt').write_text('long ' * 1000)
    (folder / 'users').write_text('bob:' + subprocess.run(
        ['openssl', 'passwd', '-6', '-salt', 'saltsalt', 'secret'], capture_output=True, text=True, check=True).stdout)
    return folder


class Case:
    def __init__(self, name):
        self.text = (HERE / f'{name}.conf').read_text()
        self.requests = [line[2:].strip() for line in self.text.splitlines() if line.startswith('#?')]
        self.transport = 'user' if '#! tls' in self.text else 'plain'
        self.needs = re.search(r'#! needs (.*)|$', self.text)[1]
        self.left = re.search(r'#! left (.*)|$', self.text)[1]


def ask(port, request, transport):
    """(response or None for a cut, what is not compared)"""
    line, *rest = [part.strip() for part in request.split(' | ')]
    method, target = line.split(' ', 1)
    headers = [tuple(part.split(': ', 1)) for part in rest if part[0] not in '=~']
    body = ''.join(part[1:] for part in rest if part[0] == '=').encode()
    apart = {part[1:] for part in rest if part[0] == '~'}
    client = http1.connect(port, transport, timeout=20 * server_kit.PATIENCE)
    try:
        response = client.ask(method, target, headers, body)
    except EOFError:
        assert 'cut' in apart, request
        response = None
    finally:
        client.close()
    return response, apart


def facts(response, apart, port):
    """What two servers must agree on."""
    if response is None:
        return {'cut': True}
    headers = response.headers
    found = {'status': response.status}
    for name in SAME:
        if name in headers and (response.status < 400 or name not in ('last-modified', 'accept-ranges')):
            found[name] = headers[name].replace(f':{port}', ':PORT').replace(', charset="UTF-8"', '')
    if 'location' in apart and 'location' in found: # relative or not, it leads there
        found['location'] = urllib.parse.urljoin('http://localhost:PORT/', found['location'])
    found.update({name: value for name, value in headers.items() if name.startswith('x-')})
    found.update({name: True for name in THERE if name in headers})
    built_in = response.status >= 300 and b'nginx' in response.body
    if headers.get('content-encoding') == 'gzip': # packed as each server likes
        found['body'] = gzip.decompress(response.body) if response.body else b''
    elif 'body' not in apart and not built_in:
        found['body'] = response.body
        found['length'] = headers.get('content-length')
    for name in apart - {'location'}:
        found.pop(name, None)
    if built_in or 'body' in apart:
        found.pop('content-type', None)
    return found


def write_conf(folder, text, ports, site, certificate):
    """nginx's main file and what it includes, in a folder of its own."""
    conf = folder / 'conf'
    shutil.copytree(HERE / 'parts', conf / 'parts')
    for name in ('body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'):
        (folder / name).mkdir()
    for key, value in {**ports, 'WWW': site, 'CERTIFICATE': certificate[0], 'KEY': certificate[1]}.items():
        text = text.replace(f'@{key}@', str(value))
    temporary = ''.join(f'{name}_temp_path {folder}/{name.split("_")[-1]}; '
                        for name in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
    (conf / 'nginx.conf').write_text(f'daemon off; master_process off; worker_processes 1; pid {folder}/pid;\n'
                                     f'error_log {folder}/error.log;\nevents {{ }}\n'
                                     f'http {{\n{temporary} access_log off;\n{text}\n}}\n')
    return conf / 'nginx.conf'


class Running:
    def __init__(self, command, ports, log):
        self.log = log
        with open(log, 'ab') as stream:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        for port in ports:
            wait_for(lambda: self.accepts(port), f'{command} does not listen')

    def accepts(self, port):
        if self.process.poll() is not None:
            raise RuntimeError(server_kit.read_text(self.log))
        try:
            http1.connect(port).close()
            return True
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(20 * server_kit.PATIENCE)


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
        own = {'PORT': server_kit.free_port(), 'PLAIN': server_kit.free_port(), 'UPSTREAM': behind, 'PACKED': packed}
        conf = write_conf(folder, case.text, own, site, certificate)
        command = [NGINX, '-p', str(folder), '-c', str(conf), '-e', str(folder / 'error.log')]
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
        here, there = [facts(*ask(port, request, case.transport), port) for port in reversed(ports)]
        # What is built in for an error has each server's own words.
        if 'body' not in there:
            for name in ('body', 'length', 'content-type', 'vary'):
                here.pop(name, None)
        if here != there:
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
    ('http { server { listen 127.0.0.1:@PORT@; root /; } }', 0, ''),
    ('http { server { listen 127.0.0.1:@PORT@; root /; tcp_nopush on; } }', 0, 'not needed here (1)'),
    ('http { server { listen 127.0.0.1:@PORT@; root /; nonsense on; } }', 2, 'not carried over (1)'),
    ('http { }', 1, 'there is nothing to serve'),
])
def test_exit_status(tmp_path, text, status, said):
    (tmp_path / 'nginx.conf').write_text(text.replace('@PORT@', '8080'))
    found, told = import_file(tmp_path / 'nginx.conf', tmp_path / 'out.yaml')
    assert found == status and said in told and (said or not told)
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
