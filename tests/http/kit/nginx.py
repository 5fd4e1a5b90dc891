"""nginx beside sluice: the same configuration served by both, asked the same, and what their answers must agree on.

A request is one line: "METHOD TARGET | Field: value | =body | %HTTP/1.0 | ~what is not compared".
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


# What sluice adds to requests, and nginx does not.
FORWARDING = ('Via', 'Forwarded', 'X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host')


class Behind(http.server.BaseHTTPRequestHandler):
    """Says what it was asked."""
    protocol_version = 'HTTP/1.1'

    def answer(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        fields = [f'{name}: {self.headers[name]}' for name in ('Host', 'X-Real-IP', 'X-Mine', *FORWARDING)
                  if name in self.headers]
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
        """Nothing is logged."""


class Upstream:
    """A server behind both, in a thread of its own."""

    def __init__(self, handler):
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', server_kit.free_port()), handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.port = self.server.server_port

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def make_packed(folder):
    """Files with packed ones beside them, and passwords."""
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


def ask(port, request, transport='plain', timeout=20):
    """(response or None for a cut, what is not compared)"""
    line, *rest = [part.strip() for part in request.split(' | ')]
    method, target = line.split(' ', 1)
    headers = [tuple(part.split(': ', 1)) for part in rest if part[0] not in '=~%']
    body = ''.join(part[1:] for part in rest if part[0] == '=').encode()
    apart = {part[1:] for part in rest if part[0] == '~'}
    version = next((part[1:] for part in rest if part[0] == '%'), 'HTTP/1.1')
    client = http1.connect(port, transport, timeout=timeout * server_kit.PATIENCE)
    try:
        response = client.ask(method, target, headers, body, version)
    except EOFError:
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
    packed = headers.get('content-encoding') == 'gzip'
    body = gzip.decompress(response.body) if packed and response.body else response.body
    built_in = response.status >= 300 and b'nginx' in body
    if packed and not built_in: # packed as each server likes
        found['body'] = body
    elif 'body' not in apart and not built_in:
        found['body'] = response.body
        found['length'] = headers.get('content-length')
    for name in apart - {'location'}:
        found.pop(name, None)
    if built_in or 'body' in apart:
        found.pop('content-type', None)
    return found


def agree(there, here):
    """`here` without what nginx's own pages for errors do not let compare: each server has its own words there."""
    if 'body' in there:
        return here
    found = {name: value for name, value in here.items() if name not in ('body', 'length', 'content-type')}
    vary = [name for name in here.get('vary', '').split(', ') if name not in ('', 'Accept')]  # which of its pages this is
    return {**found, 'vary': ', '.join(vary)} if vary else {name: value for name, value in found.items() if name != 'vary'}


def main_file(folder, text):
    """nginx's main file around the inside of `http`; its temporary folders are made in `folder`."""
    names = ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')
    for name in names:
        (folder / name.split('_')[-1]).mkdir(exist_ok=True)
    temporary = ''.join(f'{name}_temp_path {folder}/{name.split("_")[-1]}; ' for name in names)
    return (f'daemon off; master_process off; worker_processes 1; pid {folder}/pid;\n'
            f'error_log {folder}/error.log;\nevents {{ use epoll; }}\n'
            f'http {{\n{temporary} access_log off;\n{text}\n}}\n')


def write_conf(folder, text, places):
    """nginx's main file and what it includes, in a folder of its own. `places`: what stands for @NAME@."""
    conf = folder / 'conf'
    shutil.copytree(CASES / 'parts', conf / 'parts')
    for key, value in places.items():
        text = text.replace(f'@{key}@', str(value))
    (conf / 'nginx.conf').write_text(main_file(folder, text))
    return conf / 'nginx.conf'


def nginx_command(folder, conf):
    return [NGINX, '-p', str(folder), '-c', str(conf), '-e', str(folder / 'error.log')]


class Running:
    """A server that is started, and answers on its ports."""

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
