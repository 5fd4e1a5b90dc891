"""Every row of hostile.py through the proxy, followed by another request. The test checks every byte of the requests that
reach the upstream server."""
import re
import socket

import hostile
import pytest
from kit.upstream import Upstream

SMUGGLED = b'GET /smuggled HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'       # Connection: close, so that the client does not wait for a timeout
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
NEVER = {'connection', 'keep-alive', 'te', 'upgrade', 'proxy-connection', 'expect', 'proxy-authorization', 'http2-settings'}


@pytest.fixture(scope='module')
def upstream():
    made = Upstream()
    yield made
    made.stop()


@pytest.fixture
def proxy(launch, loop, upstream):
    return launch(loop, 'plain', server={'location': {'/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}'}},
                                         'client_body_timeout': '500ms', 'client_header_timeout': '500ms', 'keepalive_timeout': '500ms'})


def check(request):
    """Checks one request at the upstream server: its syntax and its framing are unambiguous."""
    assert TOKEN.fullmatch(request.method), request
    assert request.target.startswith('/') and not re.search(r'[\x00-\x20\x7f#]', request.target), request
    assert request.version == 'HTTP/1.1'
    if request.header('upgrade'):       # the proxy's own Connection field for an upgrade
        assert request.header('upgrade') == 'websocket' and request.all('connection') == ['upgrade'] and not request.body
        request.lines = [row for row in request.lines if row[0].lower() not in ('upgrade', 'connection')]
    if request.all('te') == ['trailers'] and request.all('connection') == ['TE']:      # RFC 9110 10.1.4
        request.lines = [row for row in request.lines if row[0].lower() not in ('te', 'connection')]
    names = [name.lower() for name, _ in request.lines]
    assert all(TOKEN.fullmatch(name) for name in names), request
    assert not any(re.search(r'[\x00-\x08\x0a-\x1f\x7f]', value) for _, value in request.lines), request
    assert names.count('host') == 1 and names.count('content-length') + names.count('transfer-encoding') <= 1, request
    assert not NEVER & set(names), request
    assert request.header('transfer-encoding') in (None, 'chunked')
    assert request.header('content-length') is None or request.header('content-length').isdigit()


def fetch(proxy, text):
    """Sends all bytes and reads until the connection ends."""
    client = proxy.connect(timeout=10)
    response = b''
    try:
        client.send(text)
    except OSError:
        pass
    try:
        while (piece := client.stream.recv(65536)):
            response += piece
    except (ConnectionError, socket.timeout):
        pass
    client.close()
    return response


@pytest.mark.parametrize('row', [row for row in hostile.ROWS if 'without end' not in row[0]],
                         ids=[f'{number}: {row[0][:60]!a}' for number, row in enumerate(hostile.ROWS) if 'without end' not in row[0]])
def test_each_row_is_rejected_or_forwarded_unambiguously(proxy, upstream, row):
    _, text, statuses, ends = row
    before = len(upstream.requests)
    response = fetch(proxy, text + SMUGGLED)
    came = upstream.requests[before:]
    for request in came:
        check(request)
    assert not upstream.faults, upstream.faults
    if ends is True:
        assert not [request for request in came if request.target == '/smuggled'], came
    if statuses == hostile.BAD:
        assert not came and re.match(rb'HTTP/1\.1 4\d\d ', response), (came, response[:100])
    assert len(came) <= 2


def test_number_of_rows():
    assert len(hostile.ROWS) > 100
