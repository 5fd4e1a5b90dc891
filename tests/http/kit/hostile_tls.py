"""Hostile actions of a client on an established TLS connection. The expected result is the end of that connection and one line in the
error log."""
import time

from . import http1, tls13
from .lifetime import wait_for

EMPTY_RECORDS = 2000


def flood(stream, kind, plain):
    for _ in range(EMPTY_RECORDS):
        stream.send_record(kind, plain)


# name -> (action on a tls13.Tls13, words of the line in the error log)
ACTIONS = {
    'garbage': (lambda stream: stream.sock.sendall(bytes(range(64)) * 4), 'TLS: '),
    'a forged record': (lambda stream: stream.sock.sendall(b'\x17\x03\x03\x00\x40' + bytes(64)), 'could not be decrypted'),
    'a record that is too long': (lambda stream: stream.sock.sendall(b'\x17\x03\x03\x41\x01' + bytes(16384 + 257)), 'TLS: '),
    'a fatal alert': (lambda stream: stream.send_alert(40), 'TLS: '),
    'half an alert': (lambda stream: stream.send_record(tls13.ALERT, b'\x02'), 'TLS: '),
    'empty records without end': (lambda stream: flood(stream, tls13.APPLICATION, b''), 'TLS: '),
    'an empty handshake record': (lambda stream: stream.send_record(tls13.HANDSHAKE, b''), 'TLS: '),
    'empty handshake messages without end': (lambda stream: flood(stream, tls13.HANDSHAKE, b'\x18\0\0\0'), 'TLS: '),
    'a ClientHello': (lambda stream: stream.send_record(tls13.HANDSHAKE, b'\x01\0\0\x04\x03\x03\0\0'), 'TLS: '),
    'a record of no known type': (lambda stream: stream.send_record(99, b'x'), 'TLS: '),
    'key updates without end': (lambda stream: stream.key_update_storm(), 'too many KeyUpdate or renegotiation requests'),
}


def ends(client):
    """Reads until the connection ends and returns True; returns False if it is still open at the timeout."""
    try:
        while client.fill():
            client.buffer.clear()
        return True
    except (tls13.TlsError, ConnectionError):
        return True
    except TimeoutError:
        return False


def lines(server, since=0):
    """Lines of the error log that concern a connection."""
    return [line for line in server.errors().splitlines() if ', fd ' in line][since:]


def only_line(server, since):
    """Returns the only line after the first `since`. Waits for it, and 0.2 s longer to detect a second line."""
    wait_for(lambda: lines(server, since), 'a line in the error log', 20)
    time.sleep(0.2)
    found = lines(server, since)
    assert len(found) == 1, found
    return found[0]


def connect(port, timeout):
    return http1.connect(port, 'own', suites=['TLS_AES_128_GCM_SHA256'], timeout=timeout)
