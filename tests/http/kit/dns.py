"""A scripted name server on loopback: its zone may change while it runs, and it records the questions."""
import socket
import struct
import threading

A, AAAA, SRV, CNAME = 1, 28, 33, 5
SERVFAIL, NXDOMAIN = 2, 3


def packed_name(name):
    return b''.join(bytes([len(part)]) + part.encode() for part in name.split('.') if part) + b'\0'


class Dns:
    """`zone` maps (name, type) to a list of (TTL in seconds, value). The value is an address, (priority, weight, port, target) for SRV, or
    a name for CNAME. If the key is a name alone, its value replaces the response: a number is the RCODE, bytes are the whole message,
    and None sends nothing."""

    def __init__(self, zone=None, port=0):
        self.zone = zone or {}
        self.questions = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(('127.0.0.1', port))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, args=(self.socket,), daemon=True).start()

    def serve(self, sock):
        while True:
            try:
                question, sender = sock.recvfrom(4096)
            except OSError:
                return
            answer = self.answer(question)
            if answer is not None:
                sock.sendto(answer, sender)

    def answer(self, question):
        at, parts = 12, []
        while question[at]:
            parts.append(question[at + 1:at + 1 + question[at]].decode().lower())
            at += 1 + question[at]
        name, kind = '.'.join(parts), struct.unpack('!H', question[at + 1:at + 3])[0]
        query = question[12:at + 5]
        self.questions.append((name, kind))
        whole = self.zone.get(name)
        if name in self.zone and whole is None:
            return None
        if isinstance(whole, bytes):
            return whole
        records = [] if isinstance(whole, int) else self.zone.get((name, kind), [])
        known = any(key == name or key[0] == name for key in self.zone)
        status = whole if isinstance(whole, int) else 0 if known else NXDOMAIN
        if records is None:
            return None
        head = question[:2] + struct.pack('!HHHHH', 0x8580 | status, 1, len(records), 0, 0)
        return head + query + b''.join(self.record(name, kind, *record) for record in records)

    @staticmethod
    def record(name, kind, seconds, value):
        if kind == SRV:
            rest = struct.pack('!HHH', *value[:3]) + packed_name(value[3])
        else:
            rest = socket.inet_pton(socket.AF_INET6 if kind == AAAA else socket.AF_INET, value)
        return packed_name(name) + struct.pack('!HHIH', kind, 1, seconds, len(rest)) + rest

    def stop(self):
        self.socket.close()
