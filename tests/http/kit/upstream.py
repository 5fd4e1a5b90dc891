"""A scripted upstream server: tests define its responses, and it records the requests."""
import os
import socket
import struct
import threading


class UpstreamConnection:
    """One connection to the upstream server; `request` is the last request on it."""

    def __init__(self, upstream, stream):
        self.upstream, self.stream = upstream, stream
        self.buffer = b''
        self.request = None
        self.number = 0

    def fill(self):
        piece = self.stream.recv(65536)
        self.buffer += piece
        return bool(piece)

    def line(self):
        while b'\n' not in self.buffer:
            if not self.fill():
                raise EOFError
        text, self.buffer = self.buffer.split(b'\n', 1)
        assert text.endswith(b'\r'), f'a line without CR: {text!r}'
        return text[:-1]

    def read_exactly(self, count):
        while len(self.buffer) < count:
            if not self.fill():
                raise EOFError
        piece, self.buffer = self.buffer[:count], self.buffer[count:]
        return piece

    def read_head(self):
        head = []
        while True:
            line = self.line()
            if not line:
                break
            head.append(line.decode('latin-1'))
        self.number += 1
        self.request = Request(head)
        self.upstream.requests.append(self.request)
        return self.request

    def read_body(self):
        request = self.request
        if request.header('transfer-encoding') == 'chunked':
            while True:
                size = int(self.line().split(b';')[0], 16)
                if size == 0:
                    break
                request.body += self.read_exactly(size)
                assert self.read_exactly(2) == b'\r\n'
            while (line := self.line()):
                request.trailers.append(line.decode('latin-1'))
        else:
            request.body += self.read_exactly(int(request.header('content-length') or 0))
        return request.body

    def send(self, data):
        self.stream.sendall(data.encode('latin-1') if isinstance(data, str) else data)

    def reset(self):
        """Closes the connection with RST."""
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.stream.close()

    def at_end(self):
        """Waits for the end of the stream; True if no bytes preceded it."""
        try:
            return not self.buffer and not self.fill()
        except OSError:
            return True


class Request:
    def __init__(self, head):
        self.line, self.lines = head[0], [tuple(part.split(': ', 1)) for part in head[1:]]
        self.head = head
        self.method, self.target, self.version = self.line.split(' ')
        self.body = b''
        self.trailers = []

    def all(self, name):
        return [value for key, value in self.lines if key.lower() == name.lower()]

    def header(self, name):
        values = self.all(name)
        return values[0] if values else None

    def __repr__(self):
        return f'<{self.line} {self.lines} {len(self.body)} bytes>'


def plain(peer):
    """The default response: server name, method and target as text."""
    peer.read_body()
    body = f'{peer.upstream.name} {peer.request.method} {peer.request.target}\n'
    head = f'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n'
    peer.send(head if peer.request.method == 'HEAD' else head + body)
    return True


class Upstream:
    """Listens on an address or a Unix socket. `scripts` maps a path (without query) to a function of the peer, which is called
    after the header section has been read; it returns True if the connection stays open. Other paths get `plain`."""

    def __init__(self, scripts=None, name='one', path=None, port=0, tls=None, address='127.0.0.1'):
        self.tls, self.server_names = tls, []
        if tls:
            tls.sni_callback = lambda stream, name, context: self.server_names.append(name)
        self.scripts, self.name = scripts or {}, name
        self.requests, self.connections, self.faults = [], 0, []
        self.open = []
        self.received = b''
        self.address, self.port = address, port
        self.path = path
        self.listener = None
        self.start()

    def start(self):
        if self.path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
            os.chmod(self.path, 0o777)
        else:
            self.listener = socket.socket(socket.AF_INET6 if ':' in self.address else socket.AF_INET)
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind((self.address, self.port))
            self.port = self.listener.getsockname()[1]
        self.listener.listen(64)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            stream.settimeout(30)
            self.connections += 1
            self.open.append(stream)
            threading.Thread(target=self.serve, args=(stream,), daemon=True).start()

    def serve(self, stream):
        peer = UpstreamConnection(self, stream)
        try:
            if self.tls:
                stream = peer.stream = self.tls.wrap_socket(stream, server_side=True)
            while True:
                request = peer.read_head()
                script = self.scripts.get(request.target.split('?')[0], plain)
                if not script(peer):
                    break
        except (EOFError, OSError):
            pass
        except Exception as error:      # an error in the test, or invalid bytes from the server under test
            self.faults.append(repr(error))
        try:
            stream.close()
        except OSError:
            pass

    def stop(self):
        """Closes the listener and every connection."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for stream in self.open:
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.open.clear()

    def last(self):
        return self.requests[-1]
