"""HTTP/2 clients (RFC 9113): `Client` on hyper-h2, which checks each frame of the server, and `Frames`, which sends any bytes."""
import socket
import ssl
import struct
import threading

import h2.config
import h2.connection
import h2.events
import h2.settings
import hpack

from . import http1, tls_end

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM = ACK = 1
END_HEADERS = 4
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = range(4)
STREAM_CLOSED, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 5, 7, 8, 11
WINDOW = 65535              # initial window of a connection and of a stream
STREAM_ERRORS = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, EOFError)


def integer(value, bits, first=0):
    """An integer of HPACK (RFC 7541 5.1), whose prefix has `bits` bits; `first`: the other bits of its first byte."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    encoded, value = bytearray([first | most]), value - most
    while value >= 128:
        encoded.append(128 | value & 127)
        value >>= 7
    return bytes([*encoded, value])


def literal(name, value, kind=0):
    """A field whose name and value are not coded; kind 0x40: it enters the dynamic table."""
    return bytes([kind]) + integer(len(name), 7) + name + integer(len(value), 7) + value


def header_block(stream, *fields, flags=END_STREAM):
    """The HEADERS and CONTINUATION frames of encoded fields."""
    block = b''.join(fields)
    parts = [block[at:at + 16384] for at in range(0, len(block), 16384)]
    return b''.join(frame(CONTINUATION if number else HEADERS, (0 if number else flags) | (END_HEADERS if number == len(parts) - 1 else 0),
                          stream, part) for number, part in enumerate(parts))


def dial(port, transport='plain', timeout=30, context=None, server_name='localhost', require=True, receive_buffer=0):
    """Connects, with TLS and ALPN h2 (which the server must select, if `require`) except over plain TCP; the caller sends the preface.
    With `receive_buffer`, SO_RCVBUF is set before."""
    sock = socket.socket()
    sock.settimeout(timeout)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.connect(('127.0.0.1', port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if transport == 'plain':
        return sock
    context = context or http1.tls_context()
    context.set_alpn_protocols(['h2', 'http/1.1'])
    sock = context.wrap_socket(sock, server_hostname=server_name)
    assert not require or sock.selected_alpn_protocol() == 'h2', sock.selected_alpn_protocol()
    return sock


def receive(sock):
    """The next bytes; b'' at the end, also of an aborted connection."""
    try:
        return tls_end.receive(sock)
    except STREAM_ERRORS:
        return b''


class Response:
    """The response received on one stream. `headers` joins the values of repeated fields by a comma."""

    def __init__(self):
        self.status, self.headers, self.body = None, {}, bytearray()
        self.lines = []                                 # the fields as received
        self.interims, self.trailers = [], []
        self.ended, self.reset = False, None            # reset: the error code of RST_STREAM

    @property
    def over(self):
        return self.ended or self.reset is not None

    def set_head(self, fields):
        for name, value in fields:
            if name == ':status':
                self.status = int(value)
            else:
                self.lines.append((name, value))
                self.headers[name] = f'{self.headers[name]}, {value}' if name in self.headers else value

    def __repr__(self):
        return f'<{self.status} {self.headers} {len(self.body)} bytes, reset {self.reset}>'


class Connection(h2.connection.H2Connection):
    """hyper-h2 closes its connection at the first GOAWAY, but after a graceful one open streams continue (RFC 9113 6.8)."""

    def _receive_goaway_frame(self, frame_):
        state, outbound = self.state_machine.state, self._data_to_send
        result = super()._receive_goaway_frame(frame_)
        self.state_machine.state, self._data_to_send = state, outbound
        return result


class Client:
    """A client that obeys the protocol. With `widen` it sends WINDOW_UPDATE for all received bytes; otherwise the caller sends them."""

    def __init__(self, sock, scheme='http', settings=None, widen=True, connection_window=None):
        self.sock, self.scheme, self.widen = sock, scheme, widen
        self.h2 = Connection(h2.config.H2Configuration(header_encoding='utf-8'))
        if settings:
            self.h2.local_settings = h2.settings.Settings(client=True, initial_values={**dict(self.h2.local_settings), **settings})
        self.h2.initiate_connection()
        if connection_window:
            self.h2.increment_flow_control_window(connection_window - WINDOW)
        self.responses, self.goaway, self.closed = {}, [], False
        self.longest_data = 0
        self.lock = threading.Lock()                    # of `h2`, for send_some
        self.flush()

    def flush(self):
        self.sock.sendall(self.h2.data_to_send())

    def request(self, target='/one.txt', method='GET', headers=(), body=None, end=True, authority='localhost'):
        """Sends a request; returns the identifier of its stream."""
        stream = self.h2.get_next_available_stream_id()
        self.responses[stream] = Response()
        fields = [(':method', method), (':scheme', self.scheme), (':authority', authority), (':path', target), *headers]
        self.h2.send_headers(stream, fields, end_stream=body is None and end)
        self.flush()
        if body is not None:
            self.send_body(stream, body, end)
        return stream

    def send_body(self, stream, body, end=True):
        view = memoryview(body)
        while len(view) and not self.responses[stream].over:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(view))
            if room <= 0:
                assert self.pump(), 'the connection ended during an upload'
                continue
            self.h2.send_data(stream, bytes(view[:room]))
            self.flush()
            view = view[room:]
        if end and not self.responses[stream].over:
            self.h2.end_stream(stream)
            self.flush()

    def send_some(self, stream, view, end):
        """Sends as much of the body as the window permits, at most a frame; with `end`, its last frame ends the stream. Returns the number of
        bytes. One thread may send while another one calls pump()."""
        with self.lock:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(view))
            if room > 0 or not len(view):
                self.h2.send_data(stream, bytes(view[:room]), end_stream=end and room == len(view))
                self.flush()
            return room

    def pump(self):
        """Receives once; False at the end of the connection."""
        piece = receive(self.sock)
        if not piece:
            self.closed = True
            return False
        with self.lock:
            for event in self.h2.receive_data(piece):
                self.handle_event(event)
            try:
                self.flush()
            except STREAM_ERRORS:
                pass                # the server has closed; earlier bytes from it can still be received
        return True

    def handle_event(self, event):
        response = self.responses.get(getattr(event, 'stream_id', None))
        if isinstance(event, h2.events.ResponseReceived):
            response.set_head(event.headers)
        elif isinstance(event, h2.events.InformationalResponseReceived):
            response.interims.append(list(event.headers))
        elif isinstance(event, h2.events.TrailersReceived):
            response.trailers = list(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            response.body += event.data
            self.longest_data = max(self.longest_data, len(event.data))
            if self.widen and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            response.ended = True
        elif isinstance(event, h2.events.StreamReset):
            response.reset = event.error_code
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaway.append((event.last_stream_id, event.error_code))

    def wait(self, *streams):
        """Receives until these streams have ended. Returns their responses, or the one response."""
        found = [self.responses[stream] for stream in streams]
        while not all(response.over for response in found):
            assert self.pump(), f'the connection ended: {found}, GOAWAY {self.goaway}'
        return found if len(found) > 1 else found[0]

    def fetch(self, target='/one.txt', **arguments):
        return self.wait(self.request(target, **arguments))

    def to_end(self):
        """Receives until the server closes the connection."""
        while self.pump():
            pass
        return self

    def until(self, check):
        while not check():
            assert self.pump(), f'the connection ended, GOAWAY {self.goaway}'

    def close(self):
        self.sock.close()


def connect(port, transport='plain', timeout=30, context=None, server_name='localhost', **options):
    sock = dial(port, transport, timeout, context, server_name)
    return Client(sock, 'http' if transport == 'plain' else 'https', **options)


def frame(kind, flags=0, stream=0, payload=b''):
    return struct.pack('!IBI', len(payload) << 8 | kind, flags, stream) + payload


def number(kind, stream, value):
    """WINDOW_UPDATE or RST_STREAM."""
    return frame(kind, 0, stream, struct.pack('!I', value))


class Frames:
    """A connection that sends any frames and records those of the server, as (type, flags, stream, payload)."""

    def __init__(self, sock, settings=b'', scheme='http'):
        self.sock, self.scheme = sock, scheme
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.buffer, self.ended = bytearray(), False
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    def send(self, data):
        """True if the bytes were sent; False if the server has closed. Earlier bytes from the server can still be received."""
        try:
            self.sock.sendall(data)
            return True
        except STREAM_ERRORS:
            return False

    def fields(self, target='/one.txt', method='GET', headers=()):
        return self.encoder.encode([(':method', method), (':scheme', self.scheme), (':authority', 'localhost'), (':path', target), *headers])

    def head(self, stream, target='/one.txt', method='GET', headers=(), flags=END_STREAM | END_HEADERS):
        """The bytes of a HEADERS frame."""
        return frame(HEADERS, flags, stream, self.fields(target, method, headers))

    def next(self):
        """The next frame, or None at the end."""
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], 'big'):
            piece = receive(self.sock)
            if not piece:
                self.ended = True
                return None
            self.buffer += piece
        length = int.from_bytes(self.buffer[:3], 'big')
        kind, flags, stream = self.buffer[3], self.buffer[4], int.from_bytes(self.buffer[5:9], 'big')
        payload = bytes(self.buffer[9:9 + length])
        del self.buffer[:9 + length]
        return kind, flags, stream, payload

    def until(self, *kinds, stream=None):
        """Receives until a frame of these types (and of this stream) arrives; None at the end."""
        while (found := self.next()) is not None:
            if found[0] in kinds and stream in (None, found[2]):
                return found
        return None

    def goaway(self):
        """The error code of the last GOAWAY before the end of the connection; None if there was none."""
        code = None
        while (found := self.until(GOAWAY)) is not None:
            code = int.from_bytes(found[3][4:8], 'big')
        return code

    def close(self):
        self.sock.close()


def raw(port, transport='plain', timeout=30, settings=b'', **options):
    return Frames(dial(port, transport, timeout, **options), settings, 'http' if transport == 'plain' else 'https')
