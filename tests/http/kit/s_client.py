"""Sends commands to `openssl s_client` while a body arrives: k updates the client's key, K also requests an update of the server's key."""
import array
import fcntl
import os
import select
import subprocess
import termios
import time

from . import server


class SClient:
    """Receives only as fast as the test reads: unread output fills the pipe, then the sockets."""

    def __init__(self, port, *options):
        words = ['openssl', 's_client', '-quiet', '-no_ign_eof', '-connect', f'127.0.0.1:{port}', '-tls1_3', *options]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        self.output = bytearray()

    def send(self, text):
        self.process.stdin.write(text.encode())

    def fill(self, count):
        """Reads until `output` has `count` bytes; False if the stream ends earlier."""
        while len(self.output) < count:
            piece = os.read(self.process.stdout.fileno(), min(65536, count - len(self.output)))
            if not piece:
                return False
            self.output += piece
        return True

    def command(self, letter):
        """Sends a command, which must begin a piece of input, and returns when s_client has read it. Reads output that would otherwise
        block s_client."""
        self.send(letter + '\n')
        deadline, unread = time.monotonic() + 20 * server.PATIENCE, array.array('i', [1])
        while fcntl.ioctl(self.process.stdin, termios.FIONREAD, unread) == 0 and unread[0]:
            assert time.monotonic() < deadline, f'the command {letter} is not read'
            if select.select([self.process.stdout], [], [], 0.01)[0]:
                piece = os.read(self.process.stdout.fileno(), 65536)
                if not piece:
                    break
                self.output += piece

    def close(self):
        """Ends s_client; returns the number of key updates that it has sent."""
        self.process.terminate()
        self.process.wait()
        message = self.process.stderr.read()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        return message.count(b'KEYUPDATE')


def body_with_commands(client, target, length, letters):
    """Reads the body of one response and sends the commands during its first half."""
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    while b'\r\n\r\n' not in client.output:
        assert client.fill(len(client.output) + 1), 'no response'
    head, client.output = bytes(client.output), bytearray()
    assert head.startswith(b'HTTP/1.1 200'), head
    for number, letter in enumerate(letters, 1):
        assert client.fill(number * length // 2 // len(letters))
        client.command(letter)
    assert client.fill(length), f'{len(client.output)} of {length} bytes'
    body, client.output = bytes(client.output), bytearray()
    return body
