"""TLS servers and clients that send a record that cannot be decrypted, and then keep the connection open: they do not react to the alert."""
import os
import socket
import threading

RECORD = b'\x17\x03\x03\x00\x40' + b'x' * 64
PATIENT = '10m'     # for timeouts in the server that must not pass before those of the tests


def send(stream):
    """Sends the record on the socket below `stream`, an ssl.SSLSocket."""
    with socket.socket(fileno=os.dup(stream.fileno())) as raw:
        raw.sendall(RECORD)


class NoHandshake:
    """Reads the beginning of a ClientHello and responds with a record that is none of TLS's handshake. Keeps each connection open."""

    def __init__(self):
        self.open = []
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(stream)
            stream.recv(1)
            stream.sendall(b'\x16\x03\x03\x00\x04' + b'\xff' * 4)

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for stream in self.open:
            stream.close()
