"""`sluice serve DIR` and `sluice doctor`, which need no configuration."""
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import time

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for

SLUICE = server_kit.SLUICE


@pytest.fixture
def serve():
    """serve(DIR, OPTION...) -> (process, its output, {scheme: port}). `command`: "serve" or "docs"."""
    running = []

    def starter(*words, command='serve', program=SLUICE):
        process = subprocess.Popen([program, command, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        running.append(process)
        os.set_blocking(process.stdout.fileno(), False)
        text, deadline = '', time.monotonic() + 20 * server_kit.PATIENCE
        while time.monotonic() < deadline and process.poll() is None:
            text += (process.stdout.read() or b'').decode()
            if 'Ctrl-C ends it.' in text:
                break
            time.sleep(0.05)
        ports = {scheme: int(port) for scheme, port in re.findall(r'(https?)://[^\s:/]+:(\d+)', text)}
        return process, text, ports
    yield starter
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(20 * server_kit.PATIENCE)
        process.stdout.close()


@pytest.fixture
def serving(serve, site):
    """`sluice serve` with the document root of the tests."""
    return serve(site)


def test_serve_sends_files_over_tls(serving):
    process, output, ports = serving
    assert process.poll() is None, output
    assert 'https' in ports, output
    assert len([line for line in output.splitlines() if re.search(r'(?i)ktls|kernel tls', line)]) >= 1, output
    client = http1.connect(ports['https'], 'user')
    assert client.get('/one.txt').body == b'one\n'
    assert b'the first page' in client.get('/').body
    assert client.get('/.hidden').status == 404
    pem = ssl.get_server_certificate(('127.0.0.1', ports['https']))
    text = subprocess.run(['openssl', 'x509', '-noout', '-text'], input=pem, capture_output=True, text=True, check=True).stdout
    assert 'DNS:localhost' in text
    process.send_signal(signal.SIGINT)
    assert process.wait(20 * server_kit.PATIENCE) == 0


def listening(port):
    """Local addresses of the sockets that listen on the port, in the kernel's notation."""
    found = set()
    for name in ('tcp', 'tcp6'):
        with open(f'/proc/net/{name}', encoding='ascii') as stream:
            rows = [line.split() for line in stream.readlines()[1:]]
        found |= {row[1].split(':')[0] for row in rows if row[3] == '0A' and int(row[1].split(':')[1], 16) == port}
    return found


ALL, ALL6 = '0' * 8, '0' * 32


def test_serve_listens_on_loopback_only(serving):
    _, output, ports = serving
    assert '0100007F' in listening(ports['https']) and not listening(ports['https']) & {ALL, ALL6}
    assert 'all clients that can reach this machine' not in output


def test_serve_open_to_network_listens_on_all_addresses(serve, site):
    _, output, ports = serve(site, '--open-to-network')
    assert ALL in listening(ports['https']) and 'and to all clients that can reach this machine.' in output
    client = http1.connect(ports['https'], 'user')
    assert client.get('/one.txt').body == b'one\n'
    client.close()


def test_serve_option_port(serve, site):
    port = server_kit.free_port()
    _, output, ports = serve(site, f'--port={port}')
    assert ports == {'https': port}, output
    done = subprocess.run([SLUICE, 'serve', site, '--port', str(port)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and f'port {port} is in use' in done.stdout + done.stderr


def test_serve_option_spa(serve, tmp_path):
    (tmp_path / 'index.html').write_text('the application')
    (tmp_path / 'app.js').write_text('its script')
    client = http1.connect(serve(str(tmp_path), '--spa')[2]['https'], 'user')
    for target, body in (('/', b'the application'), ('/app.js', b'its script'), ('/users/7', b'the application'),
                         ('/deep/er/?page=2', b'the application')):
        response = client.get(target)
        assert response.status == 200 and response.body == body, target
    client.close()


def test_serve_option_spa_without_index(serve, tmp_path):
    client = http1.connect(serve(str(tmp_path), '--spa')[2]['https'], 'user')
    assert client.get('/users/7').status == 404
    client.close()


def test_serve_option_autoindex(serve, tmp_path):
    (tmp_path / 'a file.txt').write_text('x')
    plain = http1.connect(serve(str(tmp_path))[2]['https'], 'user')
    assert plain.get('/').status == 403
    plain.close()
    listed = http1.connect(serve(str(tmp_path), '--autoindex')[2]['https'], 'user')
    response = listed.get('/')
    assert response.status == 200 and b'a file.txt' in response.body
    listed.close()


def test_serve_options_cert_and_key(serve, site, certificate, tmp_path):
    """The paths of certificate and key may contain special characters."""
    folder = tmp_path / 'odd "name" ${HOME} $x #1 \\n'
    folder.mkdir()
    both = folder / 'both.pem'
    shutil.copy(certificate[0], folder / 'site.pem')
    shutil.copy(certificate[1], folder / 'site.key')
    both.write_text((folder / 'site.pem').read_text() + (folder / 'site.key').read_text())
    expected = (folder / 'site.pem').read_text().strip()
    for options in (['--cert', str(folder / 'site.pem'), '--key', str(folder / 'site.key')], [f'--cert={both}']):
        _, output, ports = serve(site, *options)
        assert 'https' in ports, output
        assert 'made by this server' not in output
        assert ssl.get_server_certificate(('127.0.0.1', ports['https'])).strip() == expected


def test_serve_reloads_a_symlinked_certificate(serve, site, certificate, rsa_certificate, tmp_path):
    """Certificate and key are symbolic links that a renewal redirects, as with certbot."""
    links = tmp_path / 'site.pem', tmp_path / 'site.key'

    def point_links_to(files):
        for link, file in zip(links, files):
            made = tmp_path / 'new'
            made.symlink_to(file)
            made.replace(link)

    def shown():
        return ssl.get_server_certificate(('127.0.0.1', ports['https'])).strip()

    point_links_to(certificate)
    _, _, ports = serve(site, '--cert', str(links[0]), '--key', str(links[1]))
    with open(certificate[0], encoding='ascii') as first, open(rsa_certificate[0], encoding='ascii') as second:
        before, after = first.read().strip(), second.read().strip()
    assert shown() == before
    point_links_to(rsa_certificate)
    wait_for(lambda: shown() == after, 'the renewed certificate', seconds=60)


WRONG = [(['--cert', '/nowhere.pem'], '"/nowhere.pem" cannot be opened (2: No such file or directory)'),
         (['--key', '/nowhere.key'], '--key FILE requires --cert FILE'),
         (['--cert', '/etc/hostname'], 'is not PEM text'),
         (['--port', 'x'], 'invalid port "x"'),
         (['--open'], 'invalid option of serve: "--open"')]


@pytest.mark.parametrize('options, words', WRONG)
def test_serve_prints_errors(site, options, words):
    done = subprocess.run([SLUICE, 'serve', site, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and words in done.stdout + done.stderr, done.stdout + done.stderr


def test_default_page_has_valid_commands(serve):
    """The commands in conf/www/index.html apply to a server started by `serve`; those that require a configuration are listed separately."""
    _, output, ports = serve(str(pathlib.Path(__file__).parents[2] / 'conf/www'))
    page = http1.connect(ports['https'], 'user').get('/').body.decode()
    steps, configured = page.split('<dl id="configured">')
    commands = re.findall(r'<dt><code>sluice ([^<]*)</code>', steps)
    assert len(commands) >= 3 and 'Ctrl-C' in steps and 'sluice.yaml' not in steps, output
    for command in commands:
        done = subprocess.run([SLUICE, *command.split()], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 or command == 'doctor', f'sluice {command}: {done.stdout}{done.stderr}'
        assert done.stdout, command
    assert re.findall(r'sluice -s (\w+)', steps) == [] and 'sluice -s quit' in configured


def test_help_names_the_options():
    output = subprocess.run([SLUICE, 'serve', '--help'], capture_output=True, text=True, timeout=60, check=True).stdout
    for option in ('--port N', '--spa', '--autoindex', '--cert FILE', '--key FILE', '--open-to-network', '--acme NAME'):
        assert option in output, option


def test_serve_missing_directory_is_an_error():
    done = subprocess.run([SLUICE, 'serve', '/nowhere'], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and '/nowhere' in done.stdout + done.stderr


def test_doctor_reports_the_kernel():
    """The exit status is 0 only if the kernel supports TLS; every reason is printed."""
    done = subprocess.run([SLUICE, 'doctor'], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * server_kit.PATIENCE,
                          check=False)
    output = done.stdout + done.stderr
    with open('/proc/sys/net/ipv4/tcp_available_ulp', encoding='ascii') as stream:
        has_tls = 'tls' in stream.read().split()
    assert done.returncode == (0 if has_tls else 1), output
    for word in ('OpenSSL', 'io_uring', 'kernel'):
        assert word.lower() in output.lower(), output
    if not has_tls:
        assert re.search(r'(?i)module|CONFIG_TLS', output), output


def test_start_logs_one_line_on_ktls(launch, loop):
    served = launch(loop, 'user', server={'ssl_ktls': 'auto'})
    lines = [line for line in served.server.output().splitlines() if re.search(r'(?i)ktls|kernel tls', line)]
    assert len(lines) == 1, lines


def test_log_names_the_loop(launch, loop):
    """With `use: auto` and without io_uring one log line has the reason; with the name of a backend the server uses that backend."""
    served = launch(loop, 'plain', main={'events': {'use': 'auto'}})
    assert served.connect().get('/one.txt').status == 200


HTML = pathlib.Path(SLUICE).parent / 'docs/site/html'


@pytest.mark.skipif(not HTML.is_dir(), reason='the build has no HTML pages')
def test_docs_serves_the_pages_on_loopback(serve):
    port = server_kit.free_port()
    process, output, ports = serve(str(port), command='docs')
    assert ports == {'http': port} and process.poll() is None, output
    assert output.startswith('The documentation is served at\n') and 'certificate' not in output and f'http://127.0.0.1:{port}/\n' in output
    client = http1.connect(port)
    assert client.get('/').body == (HTML / 'index.html').read_bytes()
    page = client.get('/directives/proxy.html')
    assert page.status == 200 and b'proxy_pass' in page.body and client.get('/none').status == 404
    assert '0100007F' in listening(port) and not listening(port) & {ALL, ALL6}
    taken = subprocess.run([SLUICE, 'docs', str(port)], capture_output=True, text=True, check=False)
    assert taken.returncode == 1 and f'port {port} is in use' in taken.stderr and 'without a number the next free one' in taken.stderr
    process.send_signal(signal.SIGINT)
    assert process.wait(20 * server_kit.PATIENCE) == 0


@pytest.mark.skipif(not HTML.is_dir(), reason='the build has no HTML pages')
def test_docs_without_a_port_uses_the_next_free_one(serve):
    first, second = (serve(command='docs')[2]['http'] for _ in range(2))
    assert 8080 <= first < second < 8180


def test_docs_that_are_not_installed(sluice_copy):
    if os.path.exists(re.search(r'"([^"]*/doc/sluice/html)"', pathlib.Path(SLUICE).with_name('build_options.h').read_text())[1]):
        pytest.skip('the pages are installed')
    ran = subprocess.run([sluice_copy, 'docs'], capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and 'install the package sluice-doc' in ran.stderr and 'doc/sluice/html' in ran.stderr
