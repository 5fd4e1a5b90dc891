"""Runs nginx and sluice with the same configuration, sends both the same requests, and compares the responses.

A request is one line: "METHOD TARGET | Field: value | =body | %HTTP/1.0 | ~property that is not compared".
"""
import gzip
import http.server
import pathlib
import re
import shutil
import subprocess
import threading
import urllib.parse

from kit import http1, server as server_kit
from kit.lifetime import wait_for
from kit.server import SLUICE

CASES = pathlib.Path(__file__).parents[1] / 'nginx'
NGINX = shutil.which('nginx') or shutil.which('nginx', path='/usr/sbin')
# The header fields in EQUAL_FIELDS must be equal if either server sends them; those in PRESENT_FIELDS must be sent by both servers or by neither.
EQUAL_FIELDS = ('location', 'content-type', 'content-range', 'cache-control', 'last-modified', 'accept-ranges',
        'strict-transport-security', 'content-disposition', 'content-encoding', 'vary', 'www-authenticate', 'referrer-policy')
PRESENT_FIELDS = ('etag', 'expires')


def import_file(path, out, *more):
    """Runs `sluice import`; returns exit status and standard error."""
    done = subprocess.run([SLUICE, 'import', str(path), '-o', str(out), *more], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def left_out(text):
    """Names of the directives that were not carried over, from the importer's output."""
    part = re.match(r'not carried over \(\d+\):\n((?:  .*\n)*)', text)
    return re.findall(r'^  \S+:\d+: (\S+)', part[1], re.M) if part else []


# Header fields that sluice adds to upstream requests and nginx does not.
FORWARDING = ('Via', 'Forwarded', 'X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host')


class UpstreamHandler(http.server.BaseHTTPRequestHandler):
    """Responds with the received request as text. Arguments of the target with an upper-case name are fields of the response."""
    protocol_version = 'HTTP/1.1'

    def respond(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        fields = [f'{name}: {self.headers[name]}' for name in ('Host', 'X-Real-IP', 'X-Mine', *FORWARDING)
                  if name in self.headers]
        text = '\n'.join([f'{self.command} {self.path}', *fields, body.decode()]).encode()
        self.send_response(404 if 'missing' in self.path else 302 if 'moved' in self.path else 200)
        self.send_header('Content-Type', 'text/x-echo')
        if 'moved' in self.path:
            self.send_header('Location', f'http://127.0.0.1:{self.server.server_port}/elsewhere')
        for name, value in urllib.parse.parse_qsl(self.path.partition('?')[2]):
            if name[0].isupper():
                self.send_header(name, value)
        self.send_header('X-Powered-By', 'a test')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_HEAD = respond

    def log_message(self, *_):
        """Writes no log."""


class Listener(http.server.ThreadingHTTPServer):
    """Accepts the connections of two servers under test on a busy machine."""
    request_queue_size = 128
    daemon_threads = True


class Upstream:
    """An upstream server that nginx and sluice share, in a separate thread."""

    def __init__(self, handler):
        self.server = Listener(('127.0.0.1', server_kit.free_port()), handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.port = self.server.server_port

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def make_precompressed(folder):
    """Creates files with precompressed variants, and a password file."""
    folder.mkdir()
    for name in ('page.html', 'style.css'):
        (folder / name).write_text(name * 100)
        (folder / f'{name}.gz').write_bytes(gzip.compress(f'packed {name}'.encode()))
    (folder / 'alone.txt.gz').write_bytes(gzip.compress(b'packed alone'))
    (folder / 'long.txt').write_text('long ' * 1000)
    (folder / 'users').write_text(''.join(f'{name}:' + subprocess.run(
        ['openssl', 'passwd', kind, '-salt', 'saltsalt', 'secret'], capture_output=True, text=True, check=True).stdout
        for name, kind in (('bob', '-6'), ('ann', '-apr1'))))
    return folder


def fetch(port, request, transport='plain', timeout=20):
    """Sends a request; returns the response (None if it ended early) and the names of the properties that are not compared."""
    line, *rest = [part.strip() for part in request.split(' | ')]
    method, target = line.split(' ', 1)
    headers = [tuple(part.split(': ', 1)) for part in rest if part[0] not in '=~%']
    body = ''.join(part[1:] for part in rest if part[0] == '=').encode()
    ignored = {part[1:] for part in rest if part[0] == '~'}
    version = next((part[1:] for part in rest if part[0] == '%'), 'HTTP/1.1')
    client = http1.connect(port, transport, timeout=timeout * server_kit.PATIENCE)
    try:
        response = client.fetch(method, target, headers, body, version)
    except EOFError:
        response = None
    finally:
        client.close()
    return response, ignored


def comparable_properties(response, ignored, port):
    """The properties of a response that must be the same from both servers."""
    if response is None:
        return {'no response': True}
    headers = response.headers
    found = {'status': response.status}
    for name in EQUAL_FIELDS:
        if name in headers and (response.status < 400 or name not in ('last-modified', 'accept-ranges')):
            found[name] = headers[name].replace(f':{port}', ':PORT').replace(', charset="UTF-8"', '')
    if 'location' in ignored and 'location' in found: # absolute and relative references are compared by their target
        found['location'] = urllib.parse.urljoin('http://localhost:PORT/', found['location'])
    found.update({name: value for name, value in headers.items() if name.startswith('x-')})
    found.update({name: True for name in PRESENT_FIELDS if name in headers})
    packed = headers.get('content-encoding') == 'gzip'
    body = gzip.decompress(response.body) if packed and response.body else response.body
    built_in = response.status >= 300 and b'nginx' in body
    if packed and not built_in: # compressed bytes may differ, decompressed ones may not
        found['body'] = body
    elif 'body' not in ignored and not built_in:
        found['body'] = response.body
        found['length'] = headers.get('content-length')
    for name in ignored - {'location'}:
        found.pop(name, None)
    if built_in or 'body' in ignored:
        found.pop('content-type', None)
    return found


def without_built_in_page(by_nginx, by_sluice):
    """`by_sluice` without the properties that cannot be compared if nginx sent a built-in error page: the text of these pages differs."""
    if 'body' in by_nginx:
        return by_sluice
    found = {name: value for name, value in by_sluice.items() if name not in ('body', 'length', 'content-type')}
    vary = [name for name in by_sluice.get('vary', '').split(', ') if name not in ('', 'Accept')]  # Accept selects the format of sluice's built-in page
    return {**found, 'vary': ', '.join(vary)} if vary else {name: value for name, value in found.items() if name != 'vary'}


def main_file(folder, text):
    """nginx's main file around the content of the `http` block; its temporary directories are created in `folder`."""
    names = ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')
    for name in names:
        (folder / name.split('_')[-1]).mkdir(exist_ok=True)
    temporary = ''.join(f'{name}_temp_path {folder}/{name.split("_")[-1]}; ' for name in names)
    return (f'daemon off; master_process off; worker_processes 1; pid {folder}/pid;\n'
            f'error_log {folder}/error.log;\nevents {{ use epoll; }}\n'
            f'http {{\n{temporary} access_log off;\n{text}\n}}\n')


def write_conf(folder, text, places):
    """Writes nginx's main file and the included files into `folder`; `places` maps each NAME to the value that replaces @NAME@."""
    conf = folder / 'conf'
    shutil.copytree(CASES / 'parts', conf / 'parts')
    for key, value in places.items():
        text = text.replace(f'@{key}@', str(value))
    (conf / 'nginx.conf').write_text(main_file(folder, text))
    return conf / 'nginx.conf'


def nginx_command(folder, conf):
    return [NGINX, '-p', str(folder), '-c', str(conf), '-e', str(folder / 'error.log')]


class RunningServer:
    """A server process that accepts connections on its ports."""

    def __init__(self, command, ports, log):
        self.log = log
        with open(log, 'ab') as stream:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        for port in ports:
            wait_for(lambda port=port: self.accepts(port), f'{command} does not listen')

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
