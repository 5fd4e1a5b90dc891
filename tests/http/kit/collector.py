"""A collector of spans by OTLP/HTTP, which decodes requests with the classes of opentelemetry-proto."""
import gzip
import http.server
import socket
import ssl
import threading

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2


class Span:
    """A span of a decoded request."""

    def __init__(self, span):
        self.span = span
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.name = span.name
        self.attributes = {pair.key: value_of(pair.value) for pair in span.attributes}
        assert len(self.attributes) == len(span.attributes), 'an attribute is repeated'


def value_of(value):
    return getattr(value, value.WhichOneof('value'))


class Collector:
    """Listens on 127.0.0.1, with `certificate` (the paths of certificate and key) over TLS. `statuses` are those of the next responses,
    then 200; while `open` is not set, responses are delayed. `raw` are the bytes of the next responses, without a record of their spans:
    after empty ones the connection is closed."""

    def __init__(self, port=0, certificate=None):
        collector = self
        self.batches, self.requests, self.resources, self.faults = [], [], [], []
        self.bodies = []            # as received
        self.statuses, self.rejected, self.raw = [], 0, []
        self.chunked = False        # the framing of responses
        self.connections = []       # sockets, also those that are closed
        self.names = []             # of SNI
        self.open = threading.Event()
        self.open.set()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def setup(self):
                super().setup()
                collector.connections.append(self.connection)

            def do_POST(self):
                collector.respond(self)

            def log_message(self, *_):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass                # the exporter was killed

        self.listener = Listener(('127.0.0.1', port), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            context.sni_callback = lambda _, name, __: self.names.append(name)
            self.listener.socket = context.wrap_socket(self.listener.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.listener.server_address[1]
        self.thread = threading.Thread(target=self.listener.serve_forever, daemon=True)
        self.thread.start()

    def respond(self, handler):
        body = handler.rfile.read(int(handler.headers['Content-Length']))
        self.requests.append((handler.path, handler.headers))
        self.bodies.append(body)
        self.open.wait()
        if self.raw:
            raw = self.raw.pop(0)
            handler.wfile.write(raw)
            handler.close_connection = not raw
            return
        status = self.statuses.pop(0) if self.statuses else 200
        response = trace_service_pb2.ExportTraceServiceResponse()
        if self.rejected:
            response.partial_success.rejected_spans = self.rejected
            response.partial_success.error_message = 'rejected'
        message = response.SerializeToString()
        if status == 200:
            self.record(gzip.decompress(body) if handler.headers['Content-Encoding'] == 'gzip' else body)
        handler.send_response(status)
        handler.send_header('Content-Type', 'application/x-protobuf')
        if self.chunked:
            handler.send_header('Transfer-Encoding', 'chunked')
            parts = [message[at:at + 1] for at in range(len(message))]
            message = b''.join(b'1;x=y\r\n' + part + b'\r\n' for part in parts) + b'0\r\nTrailer: x\r\n\r\n'
        else:
            handler.send_header('Content-Length', str(len(message)))
        handler.end_headers()
        handler.wfile.write(message)

    def close_connections(self):
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass                # it is closed

    def record(self, body):
        try:
            request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
            assert request.SerializeToString(), 'an empty request'
            batch = []
            for resource in request.resource_spans:
                self.resources.append({pair.key: value_of(pair.value) for pair in resource.resource.attributes})
                for scope in resource.scope_spans:
                    assert scope.scope.name == 'sluice' and scope.scope.version
                    batch += [Span(span) for span in scope.spans]
            self.batches.append(batch)
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(error)
            raise

    @property
    def spans(self):
        return [span for batch in list(self.batches) for span in batch]

    def stop(self):
        self.open.set()
        self.listener.shutdown()
        self.listener.server_close()
