"""Runs the configurations of conf/examples without changes. Environment variables name their ports, files and upstream servers."""
import os
import pathlib
import socket

from . import http1, server as server_kit
from .fastcgi import Application
from .lifetime import wait_for
from .upstream import Upstream

FOLDER = pathlib.Path(__file__).parents[3] / 'conf/examples'
TIMEOUT = 30 * server_kit.PATIENCE
PAGE = b'the first page\n'     # index.html
OTHER = '127.0.0.2'     # a client with this address is another one


def make_response(status='200 OK', fields=(), body=b'answer'):
    """A script of kit/upstream.py that sends this response."""
    head = ''.join(f'{line}\r\n' for line in (f'HTTP/1.1 {status}', *fields, f'Content-Length: {len(body)}', ''))

    def script(peer):
        peer.read_body()
        peer.send(head.encode() + (b'' if peer.request.method == 'HEAD' else body))
        return True
    return script


def redirect(response):
    """Status and target of a redirect."""
    return response.status, response.headers['location']


def echo(peer):
    """A WebSocket server that returns all bytes."""
    peer.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    while peer.buffer or peer.fill():
        piece, peer.buffer = peer.buffer, b''
        peer.send(piece)


class Example:
    """An example, the programs and files that it names, and its clients. `http` and `https` are the ports of its servers."""

    def __init__(self, name, folder):
        self.name, self.folder = name, pathlib.Path(folder)
        self.http, self.https = server_kit.free_port(), server_kit.free_port()
        self.server, self.upstreams, self.clients = None, [], []
        self.site = self.folder / 'www'
        self.file('www/index.html', PAGE)

    def file(self, name, content):
        """Creates a file in the folder of the test; returns its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def upstream(self, scripts=None, **options):
        self.upstreams.append(Upstream(scripts, **options))
        return self.upstreams[-1]

    def fastcgi(self):
        return Application(str(self.folder / 'php.sock'))

    def start(self, *ports, command_prefix=(), **environment):
        """Starts the server; `environment` has texts, paths, or programs with a port. It waits for the ports, by default for `https`."""
        values = {'HTTP_PORT': self.http, 'HTTPS_PORT': self.https, 'SITE': self.site, **environment}
        texts = {key: f'127.0.0.1:{value.port}' if hasattr(value, 'port') else str(value) for key, value in values.items()}
        self.server = server_kit.Server(self.folder / 'server', [], environment=texts, command_prefix=command_prefix,
                                        arguments=['-g', f'pid: {self.folder}/pid'])
        self.server.config_path = str(FOLDER / self.name)
        self.server.start(ports or [self.https])

    def connect(self, port=None, tls=True, host='localhost', source=None, context=None, first=b''):
        """A client, by default of the port `https`. `first` is sent before TLS."""
        sock = socket.create_connection(('127.0.0.1', port or (self.https if tls else self.http)), TIMEOUT,
                                        (source, 0) if source else None)
        sock.sendall(first)
        if tls:
            sock = (context or http1.tls_context()).wrap_socket(sock, server_hostname=host)
        self.clients.append(http1.Client(sock))
        return self.clients[-1]

    def fetch(self, target='/', method='GET', host='localhost', body=b'', headers=(), **options):
        """Sends a request on a new connection, and reads the response. `headers`: a dict."""
        client = self.connect(host=host, **options)
        response = client.fetch(method, target, [('Host', host), *dict(headers).items()], body)
        client.close()
        return response

    def repeat(self, count, target, headers=(), **options):
        """The responses to equal requests on one connection."""
        client = self.connect(**options)
        return [client.fetch('GET', target, dict(headers).items()) for _ in range(count)]

    def websocket(self, target):
        """True if a WebSocket server echoes a frame."""
        client = self.connect()
        client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
        assert client.head().status == 101
        client.send(b'\x81\x05hello')
        return client.read_exactly(7) == b'\x81\x05hello'

    def log(self, text):
        """Waits for a line with this text, in the access log or the error log; returns it."""
        def found():
            return next((line for line in self.server.output().splitlines() if text in line), None)
        return wait_for(found, lambda: f'no {text!r} in\n{self.server.output()[-3000:]}')

    def stop(self):
        for client in self.clients:
            client.close()
        try:
            if self.server:
                self.server.stop()
        finally:
            for upstream in self.upstreams:
                upstream.stop()
        assert [fault for upstream in self.upstreams for fault in upstream.faults] == []


def names():
    """All configurations in conf/examples; its folders have their own tests."""
    return sorted(name for name in os.listdir(FOLDER) if name.endswith('.yaml'))


def run_of_test(request, folder):
    """For a fixture: yields the example whose name is that of the test. test_static_site runs static-site.yaml."""
    example = Example(request.function.__name__.removeprefix('test_').replace('_', '-') + '.yaml', folder)
    yield example
    example.stop()
