"""The upstream server of the generated comparison. It responds with the received request. The request field "X-Answer: STATUS [NAME=VALUE]",
with + for each space, selects the status and adds a field."""
import http.server

# Fields that are not compared: those that sluice adds, hop-by-hop fields, and the field for this server.
NOT_COMPARED = ('via', 'forwarded', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'x-real-ip', 'connection',
          'x-answer', 'transfer-encoding', 'te')


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def read_body(self):
        if self.headers.get('Transfer-Encoding') != 'chunked':
            return self.rfile.read(int(self.headers.get('Content-Length', 0)))
        body = b''
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def respond(self):
        body = self.read_body()
        fields = sorted(f'{name.lower()}: {value}' for name, value in self.headers.items() if name.lower() not in NOT_COMPARED)
        text = '\n'.join([f'{self.command} {self.path}', *fields, '', body.decode('latin-1')]).encode('latin-1')
        status, _, field = self.headers.get('X-Answer', '200').partition(' ')
        name, _, value = field.replace('+', ' ').partition('=')
        self.send_response(int(status))
        if name.lower() != 'content-type':
            self.send_header('Content-Type', 'text/x-echo')
        if name:
            self.send_header(name, value)
        self.send_header('X-Echo', 'yes')
        if status in ('204', '304'):
            text = b''
        else:
            self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(text)

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass        # the server under test closed the connection

    def __getattr__(self, name):
        if name.startswith('do_'):
            return self.respond
        raise AttributeError(name)

    def log_message(self, *_):
        """Writes no log."""
