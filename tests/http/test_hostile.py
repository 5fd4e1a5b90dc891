"""Every row of hostile.py over every loop and transport: the status, and whether the connection ends."""
import hostile
import pytest

SMUGGLED = b'GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n'


@pytest.mark.parametrize('request_bytes, statuses, ends', [row[1:] for row in hostile.ROWS],
                         ids=[f'{number}: {row[0][:60]!a}' for number, row in enumerate(hostile.ROWS)])
def test_status_and_connection_of_each_row(client, request_bytes, statuses, ends):
    try:
        client.send(request_bytes)
    except OSError:
        pass                          # rejected before the request was sent completely; the response can still be read
    response = client.read()
    assert response.status in statuses
    assert b'root:' not in response.body and b'outside the root' not in response.body
    if response.status >= 400:
        assert b'0.1' not in response.body and 'server' not in response.headers or '/' not in response.headers['server']
    if ends is False or response.version == 'HTTP/2.0':     # a refusal ends only its stream
        assert not response.closes and client.alive()
    elif ends is True:
        assert response.closes or response.status == 200, 'a refusal that ends the connection has Connection: close'
        assert client.at_end()


@pytest.mark.http1('request smuggling')
@pytest.mark.parametrize('row', [row for row in hostile.ROWS if row[3] is True and 'without end' not in row[0]],
                         ids=lambda row: ascii(row[0][:60]))
def test_bytes_after_a_rejected_head_are_not_parsed(launch, loop, row):
    served = launch(loop, 'plain')
    client = served.connect()
    try:
        client.send(row[1] + SMUGGLED)
    except OSError:
        pass
    client.read()
    assert client.at_end(), 'a second response arrived'
    client.close()


@pytest.mark.http1('request smuggling')
def test_access_log_has_no_smuggled_request(launch, loop):
    served = launch(loop, 'plain')
    client = served.connect()
    client.get('/ten.txt?last')
    client.close()
    served.server.access_for('/ten.txt?last')
    assert not [row for row in served.server.access() if row['request_uri'] == '/smuggled']
