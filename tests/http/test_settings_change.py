"""Settings that change in the middle of an exchange: an internal redirect leads to a location with other ones."""
import threading

import pytest
from kit.lifetime import wait_for
from kit.upstream import Upstream

PIECE = bytes(range(256)) * 32      # 8 KB
PIECES = 40


def echo(talk):
    """Answers with the body of the request."""
    body = talk.read_body()
    talk.send(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
    return True


class Gate:
    """A script for auth_request: the answer waits until `open`."""

    def __init__(self, status):
        self.status, self.asked, self.opened = status, threading.Event(), threading.Event()

    def __call__(self, talk):
        talk.read_body()
        self.asked.set()
        assert self.opened.wait(60)
        talk.send(f'HTTP/1.1 {self.status} Gate\r\nContent-Length: 0\r\n\r\n')
        return True

    def open(self):
        self.opened.set()


def send_pieces(served, client, pieces, coding):
    """The server has read each piece that it will read when the answer to a request after it has come."""
    other = served.connect()
    for piece in pieces:
        client.send(piece if coding == 'length' else b'%x\r\n%s\r\n' % (len(piece), piece))
        assert other.get('/one.txt').status == 200
    other.close()


@pytest.mark.parametrize('coding', ['length', 'chunked'])
def test_a_smaller_body_buffer_while_the_body_comes(launch, loop, transport, coding):
    gates = {'/first': Gate(403), '/second': Gate(200)}
    upstream = Upstream({'/upload/': echo, **gates})
    to = f'http://127.0.0.1:{upstream.port}'
    served = launch(loop, transport, server={'location': {
        '/upload/': {'client_body_buffer_size': '64k', 'auth_request': '/first', 'error_page': '403 =200 @spare'},
        '@spare': {'client_body_buffer_size': '1k', 'auth_request': '/second', 'proxy_pass': to, 'proxy_request_buffering': 'off'},
        '/first': {'proxy_pass': to}, '/second': {'proxy_pass': to}}})
    client = served.connect()
    framing = f'Content-Length: {PIECES * len(PIECE)}' if coding == 'length' else 'Transfer-Encoding: chunked'
    client.send(f'POST /upload/ HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n')
    send_pieces(served, client, [PIECE] * 5, coding)
    gates['/first'].open()
    wait_for(gates['/second'].asked.is_set, '@spare')
    send_pieces(served, client, [PIECE] * (PIECES - 5), coding)
    gates['/second'].open()
    if coding == 'chunked':
        client.send('0\r\n\r\n')
    answer = client.read()
    assert answer.status == 200 and answer.body == PIECE * PIECES
    assert client.get('/one.txt').body == b'one\n'
    client.close()
    upstream.stop()
    assert not upstream.faults, upstream.faults
