"""Idle HTTP/2 connections (RFC 9113), each after one response. Implements a single GET request."""
import socket
import struct

from . import servers

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
HEADERS, RST_STREAM, SETTINGS, GOAWAY = 1, 3, 4, 7
END_STREAM = ACK = 1
END_HEADERS = 4


def frame(kind, flags, stream, payload=b''):
    return struct.pack('!IBI', len(payload) << 8 | kind, flags, stream) + payload


def request(path):
    """A HEADERS frame with a GET request (RFC 7541): method and scheme as static table indices, path and authority as literals."""
    return frame(HEADERS, END_STREAM | END_HEADERS, 1, b'\x82\x87\x04' + bytes([len(path)]) + path + b'\x01\x09localhost')


def read_frames(peer):
    """Yields the received frames as (type, flags, stream)."""
    received = b''
    while True:
        while len(received) < 9 or len(received) < 9 + int.from_bytes(received[:3], 'big'):
            more = peer.recv(65536)
            if not more:
                return
            received += more
        yield received[3], received[4], int.from_bytes(received[5:9], 'big')
        received = received[9 + int.from_bytes(received[:3], 'big'):]


def connect(server, tls):
    """Returns a connection that has received the response to GET /1k."""
    tls.set_alpn_protocols(['h2'])
    peer = tls.wrap_socket(socket.create_connection(('127.0.0.1', server.port), timeout=20 * servers.PATIENCE))
    peer.sendall(PREFACE + frame(SETTINGS, 0, 0) + request(b'/1k'))
    for kind, flags, stream in read_frames(peer):
        if kind == SETTINGS and not flags & ACK:
            peer.sendall(frame(SETTINGS, ACK, 0))
        if stream == 1 and kind != RST_STREAM and flags & END_STREAM:
            return peer
        if kind in (RST_STREAM, GOAWAY):
            break
    peer.close()
    raise servers.BenchmarkError('no response by HTTP/2')
