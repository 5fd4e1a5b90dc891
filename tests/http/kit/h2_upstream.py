"""A scripted HTTP/2 upstream server on hyper-h2, which checks each frame of the client. Cleartext with prior knowledge, or TLS with ALPN."""
import socket
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings


class Stream:
    """One exchange. `fields` has all fields of the request, pseudo-header fields included."""

    def __init__(self, peer, number, fields):
        self.peer, self.number, self.fields = peer, number, [(str(name), str(value)) for name, value in fields]
        self.body, self.trailers, self.whole, self.reset_code = bytearray(), [], False, None
        self.refused = False
        self.unsent, self.end_due, self.trailers_due = bytearray(), False, None

    def header(self, name):
        values = [value for key, value in self.fields if key == name]
        return values[0] if values else None

    def respond(self, status, headers=(), body=None, end=True):
        self.peer.h2.send_headers(self.number, [(':status', str(status)), *headers], end_stream=body is None and end)
        if body is not None:
            self.send(body, end)

    def send(self, body, end=False, trailers=None):
        self.unsent += body
        self.end_due, self.trailers_due = end, trailers
        self.flush()

    def flush(self):
        peer = self.peer
        while self.unsent:
            room = min(peer.h2.local_flow_control_window(self.number), peer.h2.max_outbound_frame_size, len(self.unsent))
            if room <= 0:
                return
            peer.h2.send_data(self.number, bytes(self.unsent[:room]))
            del self.unsent[:room]
        if self.trailers_due:
            peer.h2.send_headers(self.number, self.trailers_due, end_stream=True)
        elif self.end_due:
            peer.h2.end_stream(self.number)
        self.end_due, self.trailers_due = False, None

    def reset(self, code):
        self.unsent.clear()
        self.peer.h2.reset_stream(self.number, code)


class H2UpstreamConnection:
    """One connection."""

    def __init__(self, upstream, sock):
        self.upstream, self.sock, self.streams, self.lock = upstream, sock, {}, threading.RLock()
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding='utf-8'))
        self.goaways, self.closing, self.proxy_header = [], False, None

    def flush(self):
        self.sock.sendall(self.h2.data_to_send())

    def serve(self):
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values={**dict(self.h2.local_settings), **self.upstream.settings})
        self.h2.initiate_connection()
        self.flush()
        while (piece := self.sock.recv(65536)):
            with self.lock:
                if self.upstream.proxied and not self.proxy_header:     # version 1 of the PROXY protocol, in the first piece
                    self.proxy_header, _, piece = piece.partition(b'\r\n')
                for event in self.h2.receive_data(piece):
                    self.handle_event(event)
                self.flush()
            if self.closing:
                return

    def handle_event(self, event):
        stream = self.streams.get(getattr(event, 'stream_id', None))
        if isinstance(event, h2.events.RequestReceived):
            stream = self.streams[event.stream_id] = Stream(self, event.stream_id, event.headers)
            self.upstream.requests.append(stream)
            self.call(stream, 'head')
        elif isinstance(event, h2.events.DataReceived):
            stream.body += event.data
            if event.flow_controlled_length and self.upstream.widen:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.call(stream, 'data')
        elif isinstance(event, h2.events.TrailersReceived):
            stream.trailers = [(str(name), str(value)) for name, value in event.headers]
        elif isinstance(event, h2.events.StreamEnded):
            stream.whole = True
            self.call(stream, 'end')
        elif isinstance(event, h2.events.StreamReset) and stream:
            stream.reset_code = event.error_code
            stream.unsent.clear()
            self.call(stream, 'reset')
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaways.append(event.error_code)
        elif isinstance(event, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
            for waiting in [found for found in self.streams.values() if found.unsent]:
                waiting.flush()

    def call(self, stream, event):
        script = self.upstream.scripts.get(stream.header(':path').split('?')[0], plain)
        script(stream, event)


def plain(stream, event):
    """The default response: server name, method and target as text."""
    if event == 'end':
        text = f'{stream.peer.upstream.name} {stream.header(":method")} {stream.header(":path")}\n'.encode()
        head = stream.header(':method') == 'HEAD'
        stream.respond(200, [('content-type', 'text/plain'), ('content-length', str(len(text)))], None if head else text)


class H2Upstream:
    """`scripts` maps a path to a function of the stream and an event: head, data, end or reset."""

    def __init__(self, scripts=None, name='one', tls=None, settings=None, widen=True, alpn=('h2',)):
        self.scripts, self.name, self.tls, self.settings, self.widen = scripts or {}, name, tls, settings or {}, widen
        if tls and alpn:
            tls.set_alpn_protocols(list(alpn))
        self.requests, self.peers, self.faults, self.proxied = [], [], [], False
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def connections(self):
        return len(self.peers)

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            peer = H2UpstreamConnection(self, sock)
            self.peers.append(peer)
            peer.serve()
        except OSError:
            pass
        except Exception as error:      # an error in the test, or frames that violate the protocol
            self.faults.append(repr(error))
        sock.close()

    def stop(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for peer in self.peers:
            try:
                peer.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def last(self):
        return self.requests[-1]
