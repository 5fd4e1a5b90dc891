"""A TLS 1.3 client written from RFC 8446, independent of the server's code: a raw socket and the primitives of `cryptography`.

It decrypts every record itself, so a test can check the key generation, length and type of each record. It can send messages that TLS
libraries do not send on request: a KeyUpdate in the middle of a body, an incomplete handshake, any alert. It verifies the server's
Finished, which proves keys and transcript, but not the server's certificate. PSK and HelloRetryRequest are not implemented.
"""
import hashlib
import hmac
import os
import socket
import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION = 20, 21, 22, 23
CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET, ENCRYPTED_EXTENSIONS = 1, 2, 4, 8
CERTIFICATE, CERTIFICATE_VERIFY, FINISHED, KEY_UPDATE = 11, 15, 20, 24
CLOSE_NOTIFY = 0

SUITES = {
    'TLS_AES_128_GCM_SHA256': (0x1301, 'sha256', 16, AESGCM),
    'TLS_AES_256_GCM_SHA384': (0x1302, 'sha384', 32, AESGCM),
    'TLS_CHACHA20_POLY1305_SHA256': (0x1303, 'sha256', 32, ChaCha20Poly1305),
}


class TlsError(Exception):
    """The peer violated the protocol."""


class TlsAlert(TlsError):
    """The peer sent a fatal alert."""

    def __init__(self, description):
        super().__init__(f'alert {description}')
        self.description = description


def expand_label(algorithm, secret, label, context, length):
    """HKDF-Expand-Label (RFC 8446 7.1)."""
    name = b'tls13 ' + label
    block = struct.pack('!H', length) + bytes([len(name)]) + name + bytes([len(context)]) + context
    out, last, counter = b'', b'', 1
    while len(out) < length:
        last = hmac.digest(secret, last + block + bytes([counter]), algorithm)
        out, counter = out + last, counter + 1
    return out[:length]


class Direction:
    """One traffic secret with its key, its IV and the sequence number of the next record."""

    def __init__(self, suite, secret):
        _, self.algorithm, self.key_length, self.aead = suite
        self.suite = suite
        self.secret = secret
        self.key = expand_label(self.algorithm, secret, b'key', b'', self.key_length)
        self.iv = expand_label(self.algorithm, secret, b'iv', b'', 12)
        self.cipher = self.aead(self.key)
        self.sequence = 0

    def nonce(self):
        number = int.from_bytes(self.iv, 'big') ^ self.sequence
        self.sequence += 1
        return number.to_bytes(12, 'big')

    def open(self, header, body):
        plain = self.cipher.decrypt(self.nonce(), body, header).rstrip(b'\0')
        if not plain:
            raise TlsError('a record of nothing but padding')
        return plain[-1], plain[:-1]

    def seal(self, kind, plain):
        header = struct.pack('!BHH', APPLICATION, 0x0303, len(plain) + 17)
        return header + self.cipher.encrypt(self.nonce(), plain + bytes([kind]), header)

    def next(self):
        """The next generation after a KeyUpdate (RFC 8446 7.2)."""
        size = hashlib.new(self.algorithm).digest_size
        return Direction(self.suite, expand_label(self.algorithm, self.secret, b'traffic upd', b'', size))


class Record:
    """Type, plaintext length, key generation and sequence number of one received record."""
    __slots__ = ('kind', 'length', 'generation', 'sequence')

    def __init__(self, kind, length, generation, sequence):
        self.kind, self.length, self.generation, self.sequence = kind, length, generation, sequence


class Tls13:
    """One TLS connection. `sock` is connected and blocking and keeps its timeout; close() closes it."""

    def __init__(self, sock, server_name='localhost', suites=tuple(SUITES), alpn=('http/1.1',), extensions=b''):
        self.sock = sock
        self.server_name = server_name
        self.suites = suites
        self.alpn = alpn
        self.more_extensions = extensions
        self.raw = bytearray()
        self.transcript = b''
        self.messages = bytearray()
        self.plain = bytearray()
        self.records = []              # received under application keys, all types
        self.generation = 0            # of the server's key: the number of KeyUpdates received
        self.tickets = 0
        self.closed = False            # close_notify received
        self.chosen_alpn = None
        self.suite_name = None
        self.reading = self.writing = None

    def fill(self, count):
        while len(self.raw) < count:
            piece = self.sock.recv(65536)
            if not piece:
                raise EOFError('the socket ended inside a record' if self.raw else 'the socket ended')
            self.raw += piece

    def raw_record(self):
        self.fill(5)
        kind, version, length = struct.unpack('!BHH', self.raw[:5])
        if version != 0x0303 or length > 16384 + 256:
            raise TlsError(f'bad record header {bytes(self.raw[:5]).hex()}')
        self.fill(5 + length)
        header, body = bytes(self.raw[:5]), bytes(self.raw[5:5 + length])
        del self.raw[:5 + length]
        return kind, header, body

    def record(self):
        """Receives the next record; returns (type, content). Skips change_cipher_spec during the handshake."""
        while True:
            kind, header, body = self.raw_record()
            if kind == CHANGE_CIPHER_SPEC and not self.records:
                continue
            if self.reading is None:
                return kind, body
            if kind != APPLICATION:
                raise TlsError(f'a record of type {kind} in the clear')
            sequence = self.reading.sequence
            inner, plain = self.reading.open(header, body)
            if len(plain) > 16384:
                raise TlsError('a record of more than 16384 bytes')
            if self.writing is not None:
                self.records.append(Record(inner, len(plain), self.generation, sequence))
            return inner, plain

    def send_record(self, kind, plain):
        if self.writing is None and self.handshake_writing is None:
            self.sock.sendall(struct.pack('!BHH', kind, 0x0301, len(plain)) + plain)
        else:
            self.sock.sendall((self.writing or self.handshake_writing).seal(kind, plain))

    handshake_writing = None

    def client_hello(self, share):
        def extension(number, body):
            return struct.pack('!HH', number, len(body)) + body

        def sized(body):
            return struct.pack('!H', len(body)) + body
        name = self.server_name.encode()
        numbers = b''.join(struct.pack('!H', SUITES[name_][0]) for name_ in self.suites)
        extensions = extension(43, b'\x02\x03\x04')
        extensions += extension(10, sized(b'\x00\x1d'))
        extensions += extension(51, sized(b'\x00\x1d' + sized(share)))
        extensions += extension(13, sized(bytes.fromhex('0403050308040805080604010501')))
        extensions += extension(0, sized(b'\x00' + sized(name))) if name else b''
        if self.alpn:
            extensions += extension(16, sized(b''.join(bytes([len(p)]) + p.encode() for p in self.alpn)))
        extensions += self.more_extensions
        body = b'\x03\x03' + os.urandom(32) + b'\x20' + os.urandom(32) + sized(numbers) + b'\x01\x00' + sized(extensions)
        return bytes([CLIENT_HELLO]) + len(body).to_bytes(3, 'big') + body

    def message(self):
        """Receives the next complete handshake message; returns (type, message with its header)."""
        while len(self.messages) < 4 or len(self.messages) < 4 + int.from_bytes(self.messages[1:4], 'big'):
            kind, plain = self.record()
            if kind == ALERT:
                raise TlsAlert(plain[1])
            if kind != HANDSHAKE:
                raise TlsError(f'a record of type {kind} in the handshake')
            self.messages += plain
        length = 4 + int.from_bytes(self.messages[1:4], 'big')
        whole = bytes(self.messages[:length])
        del self.messages[:length]
        return whole[0], whole

    def expect(self, kind):
        got, whole = self.message()
        if got != kind:
            raise TlsError(f'handshake message {got} where {kind} belongs')
        self.transcript += whole
        return whole

    def hash(self):
        return hashlib.new(self.algorithm, self.transcript).digest()

    def derive(self, secret, label):
        return expand_label(self.algorithm, secret, label, self.hash(), hashlib.new(self.algorithm).digest_size)

    def read_server_hello(self, private):
        whole = self.expect(SERVER_HELLO)
        at = 4 + 2 + 32
        at += 1 + whole[at]
        number = struct.unpack_from('!H', whole, at)[0]
        at += 2 + 1 + 2
        shares = {}
        while at < len(whole):
            kind, length = struct.unpack_from('!HH', whole, at)
            shares[kind] = whole[at + 4:at + 4 + length]
            at += 4 + length
        if 51 not in shares or len(shares[51]) != 36:
            raise TlsError('no x25519 share in the ServerHello')
        self.suite_name = next(name for name, suite in SUITES.items() if suite[0] == number)
        self.suite = SUITES[self.suite_name]
        self.algorithm = self.suite[1]
        return private.exchange(X25519PublicKey.from_public_bytes(shares[51][4:]))

    def handshake(self):
        """Performs the complete handshake; returns self."""
        private = X25519PrivateKey.generate()
        hello = self.client_hello(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
        self.send_record(HANDSHAKE, hello)
        self.transcript = hello
        shared = self.read_server_hello(private)
        size = hashlib.new(self.algorithm).digest_size
        nothing = hashlib.new(self.algorithm).digest()
        early = hmac.digest(bytes(size), bytes(size), self.algorithm)
        salt = expand_label(self.algorithm, early, b'derived', nothing, size)
        secret = hmac.digest(salt, shared, self.algorithm)
        client, server = self.derive(secret, b'c hs traffic'), self.derive(secret, b's hs traffic')
        self.reading = Direction(self.suite, server)
        self.read_flight(server, size)
        master = hmac.digest(expand_label(self.algorithm, secret, b'derived', nothing, size), bytes(size), self.algorithm)
        next_client, next_server = self.derive(master, b'c ap traffic'), self.derive(master, b's ap traffic')
        finished = hmac.digest(expand_label(self.algorithm, client, b'finished', b'', size), self.hash(), self.algorithm)
        self.handshake_writing = Direction(self.suite, client)
        self.send_record(HANDSHAKE, bytes([FINISHED]) + len(finished).to_bytes(3, 'big') + finished)
        self.writing = Direction(self.suite, next_client)
        self.reading = Direction(self.suite, next_server)
        return self

    def read_flight(self, server_secret, size):
        whole = self.expect(ENCRYPTED_EXTENSIONS)
        at, end = 6, 6 + struct.unpack_from('!H', whole, 4)[0]
        while at < end:
            kind, length = struct.unpack_from('!HH', whole, at)
            if kind == 16:
                self.chosen_alpn = whole[at + 7:at + 4 + length].decode()
            at += 4 + length
        self.expect(CERTIFICATE)
        self.expect(CERTIFICATE_VERIFY)
        key = expand_label(self.algorithm, server_secret, b'finished', b'', size)
        proof = hmac.digest(key, self.hash(), self.algorithm)
        if not hmac.compare_digest(self.expect(FINISHED)[4:], proof):
            raise TlsError('the Finished of the server is wrong')

    def sendall(self, plain):
        for at in range(0, len(plain), 16384):
            self.send_record(APPLICATION, plain[at:at + 16384])

    def recv(self, _size=65536):
        """The plaintext of the next application record; b'' after close_notify. Raises EOFError if the socket ends without close_notify."""
        while not self.closed:
            kind, plain = self.record()
            if kind == APPLICATION:
                if plain:
                    return plain
            elif kind == ALERT:
                if plain[1] != CLOSE_NOTIFY:
                    raise TlsAlert(plain[1])
                self.closed = True
            elif kind == HANDSHAKE:
                self.post_handshake(plain)
            else:
                raise TlsError(f'a record of type {kind}')
        return b''

    def post_handshake(self, plain):
        self.messages += plain
        while len(self.messages) >= 4:
            length = 4 + int.from_bytes(self.messages[1:4], 'big')
            if len(self.messages) < length:
                return
            kind = self.messages[0]
            update_requested = self.messages[4] if kind == KEY_UPDATE else 0
            del self.messages[:length]
            if kind == NEW_SESSION_TICKET:
                self.tickets += 1
            elif kind == KEY_UPDATE:
                self.reading = self.reading.next()
                self.generation += 1
                if update_requested:
                    self.key_update(False)
            else:
                raise TlsError(f'handshake message {kind} after the handshake')

    def key_update(self, request_update):
        self.send_record(HANDSHAKE, bytes([KEY_UPDATE, 0, 0, 1, 1 if request_update else 0]))
        self.writing = self.writing.next()

    def key_update_storm(self, count=500, between=b''):
        """Sends many KeyUpdates, with application data between them. All records are sealed first and sent in one call, so that they
        arrive within a short time."""
        storm = bytearray()
        for _ in range(count):
            storm += self.writing.seal(HANDSHAKE, bytes([KEY_UPDATE, 0, 0, 1, 1]))
            self.writing = self.writing.next()
            storm += self.writing.seal(APPLICATION, between) if between else b''
        self.sock.sendall(storm)

    def send_alert(self, description=CLOSE_NOTIFY):
        self.send_record(ALERT, bytes([1 if description == CLOSE_NOTIFY else 2, description]))

    def settimeout(self, seconds):
        self.sock.settimeout(seconds)

    def fileno(self):
        return self.sock.fileno()

    def getsockname(self):
        return self.sock.getsockname()

    def shutdown(self, how):
        self.sock.shutdown(how)

    def close(self):
        self.sock.close()

    @property
    def data_records(self):
        """Lengths of the application-data records, in order."""
        return [record.length for record in self.records if record.kind == APPLICATION]


def connect(port, host='127.0.0.1', timeout=30, receive_buffer=0, **options):
    """Connects to a server on this machine and performs the handshake. With `receive_buffer`, SO_RCVBUF is set before connecting."""
    sock = socket.socket()
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(timeout)
    sock.connect((host, port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        return Tls13(sock, **options).handshake()
    except BaseException:
        sock.close()
        raise
