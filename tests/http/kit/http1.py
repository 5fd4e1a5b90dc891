"""A strict parser of HTTP/1.1 responses (RFC 9112) for any object with recv()."""
import os
import socket
import ssl

from . import tls13, tls_end


PROTOCOL = os.environ.get('SLUICE_PROTOCOL', 'http1')
FILE_PATH = 'sendfile' if PROTOCOL == 'http1' else 'mapped'  # the end of $tls_path for files; DATA frames are sent with mapped pages
VERSION = 'HTTP/2.0' if PROTOCOL == 'http2' else 'HTTP/1.1'


class BadResponse(Exception):
    """The received bytes are not a valid HTTP/1.1 response."""


class Response:
    """A response with its header lines as received. `headers` has lower-case names; the values of repeated fields are joined by a comma."""

    def __init__(self, status, version, lines, reason=''):
        self.status, self.version, self.lines, self.reason = status, version, lines, reason
        self.body = b''
        self.headers = {}
        for name, value in lines:
            key = name.lower()
            self.headers[key] = f'{self.headers[key]}, {value}' if key in self.headers else value

    def __repr__(self):
        return f'<{self.status} {self.headers} {len(self.body)} bytes>'

    @property
    def has_length(self):
        """False if only the end of the body ends it: a chunked body, or one without Content-Length in HTTP/2."""
        return 'content-length' in self.headers or (self.version != 'HTTP/2.0' and self.headers.get('transfer-encoding') != 'chunked')

    @property
    def closes(self):
        return 'close' in [token.strip().lower() for token in self.headers.get('connection', '').split(',')]


class Client:
    """An HTTP/1.1 client on one connection. `stream` has sendall and recv; recv returns b'' at the end."""

    def __init__(self, stream):
        self.stream = stream
        self.buffer = bytearray()
        self.ended = False
        self.trailers = []          # of the last chunked body

    @property
    def socket(self):
        """For socket options and addresses; a test that sends or receives by it depends on HTTP/1.1 and uses `stream`."""
        return self.stream

    def send(self, text):
        self.stream.sendall(text if isinstance(text, bytes) else text.encode('latin-1'))

    def fill(self):
        """Receives more bytes; False at the end of the stream."""
        if self.ended:
            return False
        try:
            piece = tls_end.receive(self.stream)
        except (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, EOFError):
            piece = b''
        if not piece:
            self.ended = True
            return False
        self.buffer += piece
        return True

    def line(self):
        while True:
            end = self.buffer.find(b'\n')
            if end >= 0:
                if end == 0 or self.buffer[end - 1:end] != b'\r':
                    raise BadResponse(f'a line without CR: {bytes(self.buffer[:end + 1])!r}')
                text = bytes(self.buffer[:end - 1])
                del self.buffer[:end + 1]
                return text.decode('latin-1')
            if not self.fill():
                raise EOFError(f'the stream ended inside a line: {bytes(self.buffer)!r}')

    def read_exactly(self, count):
        while len(self.buffer) < count:
            if not self.fill():
                raise EOFError(f'{count - len(self.buffer)} bytes are missing')
        piece = bytes(self.buffer[:count])
        del self.buffer[:count]
        return piece

    def head(self):
        first = self.line()
        parts = first.split(' ', 2)
        if len(parts) != 3 or parts[0] not in ('HTTP/1.1', 'HTTP/1.0') or len(parts[1]) != 3 or not parts[1].isdigit():
            raise BadResponse(f'status line {first!r}')
        lines = []
        while True:
            text = self.line()
            if not text:
                return Response(int(parts[1]), parts[0], lines, parts[2])
            name, colon, value = text.partition(':')
            if not colon or not name or name != name.strip():
                raise BadResponse(f'header line {text!r}')
            lines.append((name, value.strip(' \t')))

    def read(self, method='GET', keep=True):
        """Reads one final response with its body. With keep=False the body of a response with Content-Length is discarded."""
        response = self.head()
        while 100 <= response.status < 200:
            response = self.head()
        if method == 'HEAD' or response.status in (204, 304):
            return response
        coding = response.headers.get('transfer-encoding')
        length = response.headers.get('content-length')
        if coding is not None and length is not None:
            raise BadResponse('both Content-Length and Transfer-Encoding')
        if coding is not None:
            response.body = self.chunked()
        elif length is not None:
            if not length.isdigit():
                raise BadResponse(f'Content-Length: {length}')
            response.body = self.read_exactly(int(length)) if keep else self.skip(int(length))
        else:
            while self.fill():
                pass
            response.body = bytes(self.buffer)
            self.buffer.clear()
        return response

    def skip(self, count):
        while count:
            if not self.buffer and not self.fill():
                raise EOFError(f'{count} bytes are missing')
            taken = min(count, len(self.buffer))
            del self.buffer[:taken]
            count -= taken
        return b''

    def chunked(self):
        body = bytearray()
        while True:
            size = int(self.line().split(';')[0], 16)
            if size == 0:
                self.trailers = []
                while (line := self.line()):
                    self.trailers.append(line)
                return bytes(body)
            body += self.read_exactly(size)
            if self.read_exactly(2) != b'\r\n':
                raise BadResponse('a chunk without its CRLF')

    def fetch(self, method, target, headers=(), body=b'', version='HTTP/1.1'):
        """Sends a request, with a Host field unless one is given, and reads the response."""
        lines = [f'{method} {target} {version}']
        given = {name.lower() for name, _ in headers}
        if 'host' not in given:
            lines.append('Host: localhost')
        lines += [f'{name}: {value}' for name, value in headers]
        if body:
            lines.append(f'Content-Length: {len(body)}')
        self.send(('\r\n'.join(lines) + '\r\n\r\n').encode('latin-1') + body)
        return self.read(method)

    def get(self, target, **headers):
        return self.fetch('GET', target, [(name.replace('_', '-'), value) for name, value in headers.items()])

    def at_end(self):
        """Waits for the end of the stream; True if no bytes preceded it."""
        try:
            return not self.buffer and not self.fill()
        except (TimeoutError, socket.timeout):
            return False

    def alive(self):
        """True if the server responds to one more request on this connection."""
        try:
            return self.get('/one.txt').status == 200
        except (EOFError, OSError):
            return False

    def close(self):
        self.stream.close()


def tls_context(**settings):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF # some builds of Python report a TLS end without close_notify as an orderly one
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for name, value in settings.items():
        setattr(context, name, value)
    return context


def connect(port, transport='plain', timeout=30, **options):
    """A Client over plain TCP ('plain'), over Python's ssl module ('user' and 'ktls', which differ only in the server), or over
    kit/tls13.py ('own'). With SLUICE_PROTOCOL=http2 the first two speak HTTP/2 (kit/http2_client.py)."""
    if transport == 'own':
        return Client(tls13.connect(port, timeout=timeout, **options))
    if PROTOCOL == 'http2':
        from . import http2_client
        return http2_client.connect(port, transport, timeout, **options)
    sock = socket.create_connection(('127.0.0.1', port), timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if transport != 'plain':
        context = options.pop('context', None) or tls_context()
        sock = context.wrap_socket(sock, server_hostname=options.pop('server_name', 'localhost'))
    return Client(sock)
