"""What a client can do to a TLS connection after the handshake, and what must come of it: its own end, one line in the log, nothing else."""
import time

from . import http1, tls13

EMPTY_RECORDS = 2000


def flood(stream, kind, plain):
    for _ in range(EMPTY_RECORDS):
        stream.send_record(kind, plain)


# name -> (what is done to a tls13.Tls13, words of the one line in the error log)
DEEDS = {
    'garbage': (lambda stream: stream.sock.sendall(bytes(range(64)) * 4), 'TLS: '),
    'a forged record': (lambda stream: stream.sock.sendall(b'\x17\x03\x03\x00\x40' + bytes(64)), 'does not decrypt'),
    'a record that is too long': (lambda stream: stream.sock.sendall(b'\x17\x03\x03\x41\x01' + bytes(16384 + 257)), 'TLS: '),
    'a fatal alert': (lambda stream: stream.send_alert(40), 'TLS: '),
    'half an alert': (lambda stream: stream.send_record(tls13.ALERT, b'\x02'), 'TLS: '),
    'empty records without end': (lambda stream: flood(stream, tls13.APPLICATION, b''), 'TLS: '),
    'an empty handshake record': (lambda stream: stream.send_record(tls13.HANDSHAKE, b''), 'TLS: '),
    'empty handshake messages without end': (lambda stream: flood(stream, tls13.HANDSHAKE, b'\x18\0\0\0'), 'TLS: '),
    'a ClientHello': (lambda stream: stream.send_record(tls13.HANDSHAKE, b'\x01\0\0\x04\x03\x03\0\0'), 'TLS: '),
    'a record of no known type': (lambda stream: stream.send_record(99, b'x'), 'TLS: '),
    'key updates without end': (lambda stream: stream.key_update_storm(), 'asks for too much'),
}


def ends(client):
    """Takes in what still comes, until the connection ends: True. False where it is still there when patience ends."""
    try:
        while client.fill():
            client.buffer.clear()
        return True
    except (tls13.TlsError, ConnectionError):
        return True
    except TimeoutError:
        return False


def lines(server, since=0):
    """Lines of the error log that tell of a connection."""
    return [line for line in server.errors().splitlines() if ', fd ' in line][since:]


def one_line(server, since):
    """The one line that came behind the first `since`; waits for it, and a moment for a second."""
    deadline = time.monotonic() + 20
    while not lines(server, since) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    found = lines(server, since)
    assert len(found) == 1, found
    return found[0]


def connect(port, timeout):
    return http1.connect(port, 'own', suites=['TLS_AES_128_GCM_SHA256'], timeout=timeout)
