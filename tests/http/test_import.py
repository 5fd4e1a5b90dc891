"""`sluice import`: nginx and sluice serve the same configurations, and their responses are compared.

Each file of nginx/ has the content of an `http` block. Comments at its beginning list the requests: "#? METHOD TARGET | Field: value |
=body | ~property that is not compared". "#! tls" selects TLS; "#! left NAMES" lists the directives that the importer must report as not
carried over.
"""
import pathlib
import re
import shutil
import subprocess

import pytest

from kit import nginx as nginx_kit, server as server_kit
from kit.nginx import CASES as HERE, NGINX, RunningServer, without_built_in_page, comparable_properties, import_file, left_out, write_conf
from kit.server import SLUICE

CASES = sorted(path.stem for path in HERE.glob('*.conf'))


@pytest.fixture(scope='module')
def upstream():
    server = nginx_kit.Upstream(nginx_kit.UpstreamHandler)
    yield server.port
    server.stop()


@pytest.fixture(scope='module')
def packed(base):
    return nginx_kit.make_precompressed(base / 'packed')


def fetch(port, request, transport='plain'):
    """nginx_kit.fetch; fails if a response ends early in a case that does not permit this."""
    response, ignored = nginx_kit.fetch(port, request, transport)
    assert response or 'no response' in ignored, request
    return response, ignored


class Case:
    def __init__(self, name):
        self.text = (HERE / f'{name}.conf').read_text()
        self.requests = [line[2:].strip() for line in self.text.splitlines() if line.startswith('#?')]
        self.transport = 'user' if '#! tls' in self.text else 'plain'
        self.needs = re.search(r'#! needs (.*)|$', self.text)[1]
        self.left = re.search(r'#! left (.*)|$', self.text)[1]


@pytest.fixture(params=CASES)
def pair(request, tmp_path, site, certificate, upstream, packed, new_directory):
    """The ports of nginx and sluice with the same configuration."""
    if NGINX is None:
        pytest.skip('nginx is not installed')
    case, running, ports = Case(request.param), [], []
    if case.needs and subprocess.run([SLUICE, 'help', case.needs], capture_output=True, check=False).returncode:
        pytest.skip(f'{case.needs} is not built in')
    for name in ('nginx', 'sluice'):
        folder = tmp_path / name
        folder.mkdir()
        cache = new_directory()
        cache.chmod(0o755)
        own = {'PORT': server_kit.free_port(), 'PLAIN': server_kit.free_port(), 'UPSTREAM': upstream, 'PACKED': packed,
               'WWW': site, 'CACHE': cache / 'entries', 'CERTIFICATE': certificate[0], 'KEY': certificate[1]}
        conf = write_conf(folder, case.text, own)
        command = nginx_kit.nginx_command(folder, conf)
        if name == 'sluice':
            status, message = import_file(conf, folder / 'sluice.yaml', '-p', str(folder))
            assert status in (0, 2), message
            assert left_out(message) == (case.left or '').split(), message
            command = [SLUICE, '-c', str(folder / 'sluice.yaml')]
        running.append(RunningServer(command, [own['PORT']], folder / 'output'))
        ports.append(own['PORT'])
    yield case, ports
    for server in running:
        server.stop()


@pytest.mark.http1('the configuration of nginx has no HTTP/2')
def test_nginx_and_import_respond_alike(pair):
    case, ports = pair
    wrong = []
    for request in case.requests:
        there, here = [comparable_properties(*fetch(port, request, case.transport), port) for port in ports]
        if without_built_in_page(there, here) != there:
            wrong.append(f'{request}\n    nginx:  {there}\n    sluice: {here}')
    assert case.requests and not wrong, '\n'.join(wrong)


DEBIAN = pathlib.Path('/etc/nginx')


def names_old_protocols(conf):
    """Whether ssl_protocols has TLSv1, as in Debian 12; the importer drops it, so its list of omissions differs."""
    return 'ssl_protocols TLSv1 ' in conf.read_text()


@pytest.fixture
def packaged(tmp_path, new_directory):
    """The default configuration of Debian's nginx package, with the ports and directories of this test: (both ports, output of the
    importer, nginx's file, the imported file, the document root)."""
    if NGINX is None or not (DEBIAN / 'sites-available/default').exists():
        pytest.skip('the configuration of the package is not there')
    www, running, ports = new_directory(), [], []
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
            status, message = import_file(conf, folder / 'sluice.yaml', '-p', '/usr/share/nginx', '--report')
            assert status == (2 if left_out(message) or names_old_protocols(conf) else 0), message
            command = [SLUICE, '-c', str(folder / 'sluice.yaml')]
        running.append(RunningServer(command, [port], folder / 'output'))
        ports.append(port)
    yield ports, message, conf, folder / 'sluice.yaml', www
    for server in running:
        server.stop()


@pytest.mark.http1('the configuration of nginx has no HTTP/2')
def test_packaged_nginx_configuration_is_imported(packaged):
    (nginx, sluice), output, conf, made, www = packaged
    assert left_out(output) in ([], ['gzip'])
    other = re.search(r'another meaning here \(1\):\n  \S+/nginx.conf:\d+: ssl_protocols TLSv1 TLSv1.1 ', output)
    assert bool(other) == names_old_protocols(conf)
    text = made.read_text()
    assert all(f'# {line}\n' in text for line in output.splitlines()), 'the list stands in the file, too'
    assert '# First attempt to serve request as file, then\n' in text and 'try_files: $uri $uri/ =404\n' in text
    requests = ['GET /', 'GET /none', 'HEAD /file.html'] + [f'GET /{path.name}' for path in www.iterdir()]
    wrong = [request for request in requests
             if comparable_properties(*fetch(nginx, request, 'plain'), nginx) != comparable_properties(*fetch(sluice, request, 'plain'), sluice)
             and request != 'GET /none']
    assert not wrong and len(requests) > 90
    assert fetch(sluice, 'GET /none', 'plain')[0].status == 404


@pytest.mark.parametrize('text, status, output', [
    ('http {', 1, 'nginx.conf:1: error: this block is not closed'),
    ('http { server { access_by_lua_block { a = "}', 1, 'nginx.conf:1: error: the file ends within a block of Lua'),
    ('http { server { listen 127.0.0.1:@PORT@; root /; } }', 0, ''),
    ('http { server { listen 127.0.0.1:@PORT@; root /; tcp_nopush on; } }', 0, 'because it is not needed (1)'),
    ('http { server { listen 127.0.0.1:@PORT@; root /; nonsense on; } }', 2, 'not carried over (1)'),
    ('http { }', 1, 'so no file is written'),
    ('pid /run/a; daemon off; error_log /e; stream { server { listen 53 udp; proxy_pass 127.0.0.1:53; } }', 1, 'not carried over (3):'),
    ('daemon off; stream { server { listen 54; proxy_pass $nowhere; } }', 1, 'so no file is written'),
])
def test_exit_status_and_messages(tmp_path, text, status, output):
    (tmp_path / 'nginx.conf').write_text(text.replace('@PORT@', '8080'))
    found, report = import_file(tmp_path / 'nginx.conf', tmp_path / 'out.yaml')
    assert found == status and output in report and (output or not report)
    assert (tmp_path / 'out.yaml').exists() == (status != 1)
    assert 'daemon' not in report and 'pid' not in report, 'they are not at fault'
    if status != 1:
        checked = subprocess.run([SLUICE, '-t', '-q', '-c', str(tmp_path / 'out.yaml')], timeout=30, check=False)
        assert checked.returncode == 0


def test_standard_output_and_missing_files(tmp_path):
    (tmp_path / 'nginx.conf').write_text('http { server { listen 8080; root /; } }')
    done = subprocess.run([SLUICE, 'import', 'nginx.conf'], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and f'# Converted from {tmp_path}/nginx.conf by sluice import.\n' in done.stdout and not done.stderr
    for arguments, output in ((['none.conf'], 'none.conf:0: error: the file cannot be read'), ([], 'takes nginx\'s main file'),
                            (['nginx.conf', '-o', 'none/out.yaml'], 'failed (2: No such file or directory)')):
        done = subprocess.run([SLUICE, 'import', *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert done.returncode == 1 and output in done.stderr


def test_long_server_name_list(tmp_path):
    """More server names than a log line can hold: the importer keeps all of them."""
    names = [f'name-{number}.example.test' for number in range(6000)]
    (tmp_path / 'nginx.conf').write_text('http { server { listen 8080; root /; server_name ' + ' '.join(names[:5000]) +
                                         '; server_name ' + ' '.join(names[5000:]) + '; } }')
    status, output = import_file(tmp_path / 'nginx.conf', tmp_path / 'out.yaml')
    assert status == 0, output
    line = next(line for line in (tmp_path / 'out.yaml').read_text().splitlines() if 'server_name: ' in line)
    assert line.split()[-6000:] == names


def test_directive_with_too_many_words_is_rejected(tmp_path):
    (tmp_path / 'nginx.conf').write_text('http {\nserver {\nlog_format a ' + 'b ' * 2000000 + '; } }')
    status, output = import_file(tmp_path / 'nginx.conf', tmp_path / 'out.yaml')
    assert status == 1 and 'nginx.conf:3: error: a directive has too many words' in output
    assert not (tmp_path / 'out.yaml').exists()
