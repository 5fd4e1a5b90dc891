"""The interface of http1.Client over HTTP/2, for tests that do not depend on the version (SLUICE_PROTOCOL=http2).

Complete requests in the syntax of HTTP/1.1 are translated; a response has the form that http1 gives it. A test that uses other parts of this
syntax (invalid bytes, fields of the connection, chunks, another version) is skipped where it does so. Tests whose expectations are those of
HTTP/1.1 have the marker `http1`.
"""
import re

import h2.config
import pytest

from . import http1, http2

# Fields that HTTP/2 does not have (RFC 9113 8.2.2): a test that sends one is about HTTP/1.1.
CONNECTION_FIELDS = {'connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'}
HEAD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (/[^ \r\n]*|\*) HTTP/1\.1\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n]*\r\n)*)\r\n")


def skip(reason):
    pytest.skip(f'HTTP/1.1: {reason}')


def encode(text):
    return text if isinstance(text, bytes) else text.encode('latin-1')


class Name(str):
    """The name of a field, which equals other spellings of it: HTTP/2 has lower-case names."""

    def __eq__(self, other):
        return isinstance(other, str) and self.lower() == other.lower()

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self.lower())


class Connection(http2.Client):
    """Sends any fields, also invalid ones, and delivers fields as latin-1."""

    def __init__(self, sock, scheme):
        super().__init__(sock, scheme, connection_window=1 << 24, settings={4: 1 << 20})
        self.h2.decoder.max_header_list_size = 1 << 20
        self.h2.config = h2.config.H2Configuration(header_encoding='latin-1', validate_outbound_headers=False,
                                                   normalize_outbound_headers=False)


class Response(http1.Response):
    """`closes`: the server has sent GOAWAY."""

    def __init__(self, connection, status, fields):
        super().__init__(status, 'HTTP/2.0', [(Name(name), value) for name, value in fields])
        self.connection = connection

    @property
    def closes(self):
        return bool(self.connection.goaway)


class Client:
    """One connection; a request is a stream, and responses are read in the order of requests."""

    def __init__(self, sock, scheme):
        self.connection = Connection(sock, scheme)
        self.scheme = scheme
        self.unsent = b''               # an incomplete request
        self.upload = None              # [stream, bytes of the body not yet sent]
        self.streams = []               # whose response head was not read
        self.current = None             # the response whose head was read
        self.trailers = []              # of the last response, as lines

    # Requests.

    def fields(self, method, target, headers):
        fields, authority, hosts = [], None, 0
        for name, value in headers:
            key = encode(name).lower().decode('latin-1')
            if key in CONNECTION_FIELDS or (key == 'te' and value != 'trailers'):
                skip(f'the field {name}')
            if key == 'host':
                authority, hosts = encode(value), hosts + 1
            else:
                fields.append((encode(key), encode(value).strip(b' \t')))
        if hosts > 1:
            skip('several Host fields')
        host = [] if authority is None else [(b':authority', authority)]
        return [(b':method', encode(method)), (b':scheme', encode(self.scheme)), *host, (b':path', encode(target)), *fields]

    def start(self, method, target, headers, more):
        """Sends the head of a request; `more`: a body follows."""
        connection = self.connection
        if connection.closed:
            raise EOFError('the connection has ended')
        fields = self.fields(method, target, headers)
        stream = connection.h2.get_next_available_stream_id()
        connection.responses[stream] = http2.Response()
        self.streams.append(stream)
        self.attempt(lambda: connection.h2.send_headers(stream, fields, end_stream=not more))
        return stream

    def attempt(self, send):
        """After the server has closed, its response may still be received."""
        try:
            send()
            self.connection.flush()
        except http2.STREAM_ERRORS:
            pass

    def send_upload(self):
        stream, left = self.upload
        piece, self.unsent = self.unsent[:left], self.unsent[left:]
        if piece:
            self.attempt(lambda: self.connection.send_body(stream, piece, end=len(piece) == left))
        self.upload = [stream, left - len(piece)] if len(piece) < left else None

    def send(self, text):
        self.unsent += encode(text)
        while self.unsent:
            if self.upload:
                self.send_upload()
                if self.upload:
                    return
                continue
            found = HEAD.match(self.unsent)
            if not found:
                if b'\r\n\r\n' in self.unsent:
                    skip('its syntax')
                return
            headers = [tuple(part.strip() for part in line.split(':', 1)) for line in found[3].decode('latin-1').split('\r\n')[:-1]]
            lengths = [value for name, value in headers if name.lower() == 'content-length']
            if any(not (value.isascii() and value.isdigit()) for value in lengths) or len(lengths) > 1:
                skip('framing')
            self.unsent = self.unsent[found.end():]
            stream = self.start(found[1], found[2], headers, more=lengths and int(lengths[0]) > 0)
            if lengths and int(lengths[0]) > 0:
                self.upload = [stream, int(lengths[0])]

    # Responses.

    def pump(self, response):
        if not self.connection.pump():
            raise EOFError(f'the connection ended: {response}, GOAWAY {self.connection.goaway}')

    def check_reset(self, response):
        if response.reset not in (None, http2.NO_ERROR) or (response.over and response.status is None):
            raise EOFError(f'the stream was reset: {response}')

    def head(self):
        if self.unsent:
            skip('an incomplete request')
        if not self.streams:
            raise EOFError('no request was sent')
        response = self.connection.responses[self.streams[0]]
        while response.status is None and not response.over and not response.interims:
            self.pump(response)
        if response.interims:
            fields = response.interims.pop(0)
            return Response(self.connection, int(fields[0][1]), fields[1:])
        self.current = response
        self.streams.pop(0)
        if response.reset == http2.PROTOCOL_ERROR and response.status is None:
            response.status = 400       # a malformed request (RFC 9113 8.1.1)
        elif response.status is None:
            self.check_reset(response)
        return Response(self.connection, response.status, response.lines)

    @property
    def buffer(self):
        return self.current.body if self.current else bytearray()

    def fill(self):
        """Receives more of the current body; False at its end. Between responses: any frames."""
        if not self.current or (self.current.over and self.streams):
            return self.connection.pump()
        before = len(self.current.body)
        while len(self.current.body) == before and not self.current.over:
            if not self.connection.pump():
                return False
        return len(self.current.body) > before

    def read_exactly(self, count):
        """The next bytes of the body, also if its head was not read."""
        is_read = self.current and self.current.over and not self.current.body
        if not self.current or (is_read and self.streams and count > 0):
            self.head()
        return http1.Client.read_exactly(self, count)

    def skip(self, count):
        self.read_exactly(count)
        return b''

    def rest(self):
        """The rest of the current body."""
        response = self.current
        while not response.over:
            self.pump(response)
        if response.status != 400 or response.lines:
            self.check_reset(response)
        self.trailers = [f'{name}: {value}' for name, value in response.trailers]
        return self.read_exactly(len(self.buffer))

    chunked = rest

    def read(self, method='GET', keep=True):
        response = self.head()
        while 100 <= response.status < 200:
            response = self.head()
        body = self.rest()
        response.body = body if keep else b''
        return response

    def line(self):
        skip('lines')

    @property
    def socket(self):
        return self.connection.sock

    @property
    def stream(self):
        return skip('the socket')

    def fetch(self, method, target, headers=(), body=b'', version='HTTP/1.1'):
        if version != 'HTTP/1.1':
            skip(version)
        if not target.startswith('/') and not (method == 'OPTIONS' and target == '*'):
            skip(f'the form of the target {target}')
        if 'host' not in {name.lower() for name, _ in headers}:
            headers = [('Host', 'localhost'), *headers]
        if body:
            headers = [*headers, ('Content-Length', str(len(body)))]
        stream = self.start(method, target, headers, more=body)
        if body:
            self.attempt(lambda: self.connection.send_body(stream, body))
        return self.read(method)

    def get(self, target, **headers):
        return self.fetch('GET', target, [(name.replace('_', '-'), value) for name, value in headers.items()])

    def at_end(self):
        try:
            while self.connection.pump():
                pass
            return not self.buffer
        except TimeoutError:
            return False

    @property
    def ended(self):
        return self.connection.closed

    def alive(self):
        try:
            return self.get('/one.txt').status == 200
        except (EOFError, OSError, AssertionError):
            return False

    def close(self):
        self.connection.close()


def connect(port, transport, timeout, context=None, server_name='localhost'):
    """A Client; one of HTTP/1.1 if the server does not select h2."""
    sock = http2.dial(port, transport, timeout, context, server_name, require=False)
    if transport != 'plain' and sock.selected_alpn_protocol() != 'h2':
        return http1.Client(sock)
    return Client(sock, 'http' if transport == 'plain' else 'https')
