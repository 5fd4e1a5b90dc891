"""A scripted FastCGI application, which checks each record of the server."""
import os
import socket
import struct
import threading

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR = range(1, 8)
GOOD = b'Content-Type: text/plain\r\n\r\n'


def record(kind, content=b'', padding=0, request=1, version=1):
    return struct.pack('!BBHHBB', version, kind, request, len(content), padding, 0) + content + bytes(padding)


def out(content, padding=0, size=65535):
    return b''.join(record(STDOUT, content[at:at + size], padding) for at in range(0, len(content), size))


def end(status=0, app=0):
    return record(END, struct.pack('!IB3x', app, status))


class FastcgiRequest:
    def __init__(self):
        self.params, self.body, self.records, self.keep = {}, b'', [], False


class Application:
    """A FastCGI server that checks and records the requests and sends `responses` by path: bytes, or a function of the stream and the
    request."""

    def __init__(self, path):
        self.responses, self.requests, self.faults, self.connections = {}, [], [], 0
        self.listener, self.path = socket.socket(socket.AF_UNIX), path
        self.listener.bind(path)
        os.chmod(path, 0o777)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(stream,), daemon=True).start()

    def read_record(self, stream):
        def read_exactly(count):
            got = b''
            while len(got) < count:
                piece = stream.recv(count - len(got))
                if not piece:
                    raise EOFError
                got += piece
            return got
        version, kind, request, length, padding, zero = struct.unpack('!BBHHBB', read_exactly(8))
        assert (version, request, zero) == (1, 1, 0)
        content = read_exactly(length)
        read_exactly(padding)
        return kind, content

    def read(self, stream):
        requested, params = FastcgiRequest(), b''
        kind, content = self.read_record(stream)
        assert kind == BEGIN and content in (b'\0\1\0\0\0\0\0\0', b'\0\1\1\0\0\0\0\0'), (kind, content)
        requested.keep = content[2] == 1
        while True:
            kind, content = self.read_record(stream)
            assert kind == PARAMS
            if not content:
                break
            params += content
        requested.params = dict(self.pairs(params))
        early = self.responses.get(requested.params['SCRIPT_NAME'])
        self.requests.append(requested)
        if getattr(early, 'early', False):
            return requested
        while True:
            kind, content = self.read_record(stream)
            assert kind == STDIN
            if not content:
                return requested
            requested.body += content

    @staticmethod
    def pairs(params):
        def length(at):
            if params[at] < 128:
                return params[at], at + 1
            return struct.unpack('!I', params[at:at + 4])[0] & 0x7fffffff, at + 4
        at, names = 0, set()
        while at < len(params):
            name, at = length(at)
            value, at = length(at)
            key = params[at:at + name].decode()
            assert key not in names, f'{key} is repeated'
            names.add(key)
            yield key, params[at + name:at + name + value].decode('latin-1')
            at += name + value
        assert at == len(params)

    def serve(self, stream):
        stream.settimeout(30)
        try:
            requested = self.read(stream)
            while self.respond(stream, requested) and requested.keep:
                requested = self.read(stream)
            stream.shutdown(socket.SHUT_WR)
        except (EOFError, OSError):
            pass
        except Exception as error:
            self.faults.append(repr(error))
        stream.close()

    def respond(self, stream, requested):
        """Sends the response; True if the connection stays open."""
        response = self.responses.get(requested.params['SCRIPT_NAME'], out(GOOD + b'ok') + end())
        if callable(response):
            return response(stream, requested)
        stream.sendall(response)
        return True
