"""A TLS 1.2 client on Python's ssl module that records all received bytes, so that tests can read the explicit nonces of the records."""
import socket
import ssl
import struct

from . import http1

CHANGE_CIPHER_SPEC, ALERT = 20, 21
SUITES = ('ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305')


class RecordingConnection:
    """A connection that records the received bytes; usable by http1.Client."""

    def __init__(self, port, suite=None, timeout=20):
        context = http1.tls_context(maximum_version=ssl.TLSVersion.TLSv1_2)
        if suite:
            context.set_ciphers(suite)
        self.sock = socket.create_connection(('127.0.0.1', port), timeout=timeout)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname='localhost')
        self.received = bytearray()
        self.retry(self.tls.do_handshake)

    def retry(self, call, *arguments):
        while True:
            try:
                result = call(*arguments)
                self.flush()
                return result
            except ssl.SSLWantReadError:
                self.flush()
                piece = self.sock.recv(65536)
                self.received += piece
                if piece:
                    self.incoming.write(piece)
                else:
                    self.incoming.write_eof()

    def flush(self):
        if self.outgoing.pending:
            self.sock.sendall(self.outgoing.read())

    def sendall(self, text):
        self.retry(self.tls.write, text)

    def recv(self, size):
        try:
            return self.retry(self.tls.read, size)
        except ssl.SSLZeroReturnError:
            return b''

    def getsockname(self):
        return self.sock.getsockname()

    def close(self):
        self.sock.close()

    def sealed_records(self):
        """(type, content) of the records after ChangeCipherSpec, beginning with Finished."""
        at, found, sealed = 0, [], False
        while at + 5 <= len(self.received):
            kind, _, length = struct.unpack_from('!BHH', self.received, at)
            if sealed:
                found.append((kind, bytes(self.received[at + 5:at + 5 + length])))
            sealed = sealed or kind == CHANGE_CIPHER_SPEC
            at += 5 + length
        return found

    def explicit_nonces(self):
        return [content[:8] for _, content in self.sealed_records()]
