"""The reverse proxy with a scripted upstream server: URIs, fields and bodies in both directions."""
import time

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for
from proxy_site import BIG, client, closed_port, local, other, proxy, upstream  # noqa: F401


def test_request_and_response_are_forwarded(client, upstream):
    response = client.get('/a/b%20c/../d?x=1&y=%2f')
    assert response.status == 200
    assert response.body == b'one GET /a/b%20c/../d?x=1&y=%2f\n'      # the URI is passed on unchanged
    assert response.headers['content-type'] == 'text/plain'
    assert response.headers['server'].startswith('sluice')
    assert upstream.last().version == 'HTTP/1.1'


@pytest.mark.parametrize('requests, passed', [
    ('/api/a?b=c', '/a?b=c'),
    ('/api/', '/'),
    ('/api/x%2Fy%3Fz', '/x/y%3Fz'),
    ('/deep/a%20b', '/inner/path/a%20b'),
    ('/exact?q', '/somewhere?q'),
    ('/unix/a', '/a'),
    ('/unix-bare/a', '/unix-bare/a'),
    ('/set-args/a%2Fb?c=d', '/set-args/a/b?a=b'),
    ('/name/x', '/x'),
])
def test_proxy_pass_uri_is_replaced(client, requests, passed):
    deadline = time.monotonic() + 10 * server_kit.PATIENCE
    response = client.get(requests)
    while response.status == 502 and requests.startswith('/name') and time.monotonic() < deadline:
        response = client.get(requests)
    assert response.status == 200
    assert response.body.decode().split()[1:] == ['GET', passed]


def test_variables_in_proxy_pass(client, upstream):
    assert client.get(f'/variable/a?port={upstream.port}').body == b'one GET /made/variable/a\n'
    assert client.get(f'/variable-bare/a?host=127.0.0.1:{upstream.port}').body.startswith(b'one GET /variable-bare/a?host=')
    assert client.get('/variable-bare/a?host=group').status == 200      # the name of an upstream block
    assert client.get('/variable/a?port=no').status == 502
    assert client.get('/variable-bare/a').status == 502
    assert client.get('/variable-bare/a?host=a%20b').status == 502
    assert client.get('/one.txt').body == b'one\n'


def test_upstream_request_fields(client, upstream, proxy):
    client.fetch('GET', '/fields', [('Host', 'localhost:1234'), ('Connection', 'keep-alive, X-Hop, TE'), ('X-Hop', '1'), ('Keep-Alive', '5'), ('TE', 'trailers'),
                                ('Proxy-Connection', 'x'), ('Upgrade', 'h2c'), ('Proxy-Authorization', 'secret'),
                                ('X-Forwarded-For', '6.6.6.6'), ('X-Forwarded-Proto', 'gopher'), ('X-Forwarded-Host', 'evil'),
                                ('X-Forwarded-Port', '1'), ('X-Real-IP', '6.6.6.6'), ('Forwarded', 'for=6.6.6.6'), ('Via', '1.0 before'),
                                ('Cookie', 'a=b'), ('X-Custom', 'yes'), ('Accept-Encoding', 'gzip')])
    seen = upstream.last()
    names = {name.lower() for name, _ in seen.lines}
    assert names == {'connection', 'te', 'host', 'via', 'cookie', 'x-custom', 'accept-encoding', 'x-forwarded-for', 'x-forwarded-proto',
                     'x-forwarded-host', 'forwarded'}
    assert seen.header('host') == f'127.0.0.1:{upstream.port}'
    assert seen.all('x-forwarded-for') == ['127.0.0.1']
    assert seen.all('x-forwarded-proto') == [proxy.scheme]
    assert seen.all('x-forwarded-host') == ['localhost:1234']
    assert seen.all('forwarded') == [f'for=127.0.0.1;host="localhost:1234";proto={proxy.scheme}']
    assert seen.all('via') == ['1.0 before', '1.1 sluice']


def test_proxy_set_header_replaces_fields(client, upstream):
    client.fetch('GET', '/set/x', [('Accept', '*/*'), ('X-Forwarded-For', '1.2.3.4'), ('X-Added', 'mine')])
    seen = upstream.last()
    assert seen.all('host') == ['localhost']
    assert seen.all('accept') == [] and seen.all('x-added') == ['a b']
    assert seen.all('x-real-ip') == ['127.0.0.1']
    assert seen.all('x-forwarded-for') == ['1.2.3.4, 127.0.0.1']


def test_response_fields_are_filtered(client):
    response = client.get('/fields')
    names = [name.lower() for name, _ in response.lines]
    assert set(names) == {'server', 'date', 'set-cookie', 'x-keep', 'content-length'}
    assert names.count('set-cookie') == 2 and names.count('server') == 1
    assert response.headers['server'] != 'secret' and response.headers['date'] != 'yesterday'
    assert client.get('/server').headers['server'] == 'secret'


def test_location_is_rewritten(client, upstream):
    def redirects(peer):
        to = peer.request.target.split('?', 1)[1].replace('SELF', f'http://127.0.0.1:{upstream.port}')
        peer.send(f'HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n')
        return True
    upstream.scripts['/go/x'] = redirects
    assert client.get('/moved/x?SELF/go/there?a=b').headers['location'] == '/moved/there?a=b'
    assert client.get('/moved/x?SELF/elsewhere').headers['location'] == f'http://127.0.0.1:{upstream.port}/elsewhere'
    assert client.get('/moved/x?/go/there').headers['location'] == '/go/there'
    assert client.get('/moved/x?https://example.com/go/').headers['location'] == 'https://example.com/go/'
    assert client.get('/go/x?SELF/any/where').headers['location'] == '/any/where'
    assert client.get('/moved-off/x?SELF/go/there').headers['location'] == f'http://127.0.0.1:{upstream.port}/go/there'


@pytest.mark.parametrize('method', ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND'])
def test_methods_are_forwarded(client, upstream, method):
    response = client.fetch(method, '/m', body=b'some bytes')
    assert response.status == 200 and upstream.last().method == method and upstream.last().body == b'some bytes'
    assert upstream.last().header('content-length') == '10'


def test_responses_without_body(client):
    response = client.fetch('HEAD', '/x')
    assert response.status == 200 and response.headers['content-length'] == str(len('one HEAD /x\n'))
    assert client.get('/no-content').status == 204
    response = client.get('/not-modified')
    assert response.status == 304 and response.headers['etag'] == '"x"'
    assert client.get('/after').status == 200


def test_bare_lf_line_ends_are_accepted(client):
    """RFC 9112 2.2: a recipient may accept a bare LF as line terminator; the proxy sends CRLF."""
    response = client.get('/bare-lf')
    assert response.status == 200 and response.body == b'ok' and response.headers['x-own'] == 'a'
    response = client.get('/bare-lf-chunks')
    assert response.status == 200 and response.body == b'ok' and [line.lower() for line in client.trailers] == ['x-sum: 42']
    assert client.get('/after').status == 200


def test_bodies_in_both_directions(client, upstream):
    assert client.get('/big').body == BIG
    assert client.get('/big-chunked').body == BIG
    assert client.get('/slow-head').body == b'slow'
    assert client.get('/slow-body').body == b'drops.'
    assert client.fetch('POST', '/up', body=BIG).status == 200
    assert upstream.last().body == BIG
    client.send(b'POST /chunks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    for _ in range(20):
        client.send(b'3e8\r\n' + b'c' * 1000 + b'\r\n')
    client.send(b'0\r\nX-Sum: 7\r\n\r\n')
    assert client.read().status == 200
    assert upstream.last().body == b'c' * 20000 and upstream.last().trailers == ['X-Sum: 7']
    assert upstream.last().header('transfer-encoding') == 'chunked'


def test_close_delimited_and_http_1_0_responses(proxy):
    for path, body in (('/to-the-end', b'until the end'), ('/old', b'old')):
        client = proxy.connect()
        response = client.get(path)
        assert response.body == body and not response.has_length
        assert client.alive()
        response = client.fetch('GET', path, version='HTTP/1.0')
        assert response.body == body
        assert client.at_end()
        client.close()


@pytest.mark.http1('chunks')
def test_trailers_and_interim_responses(client):
    client.send('GET /trailers HTTP/1.1\r\nHost: localhost\r\n\r\n')
    response = client.head()
    assert response.headers['transfer-encoding'] == 'chunked'
    assert client.line() == '3' and client.read_exactly(5) == b'abc\r\n'
    assert [client.line() for _ in range(3)] == ['0', 'X-Sum: 42', '']
    client.send('GET /interim HTTP/1.1\r\nHost: localhost\r\n\r\n')
    early = client.head()
    assert early.status == 103 and early.lines == [('Link', '</a>')]
    assert client.read().body == b'ok'
    assert client.fetch('GET', '/interim', version='HTTP/1.0').body == b'ok'


@pytest.mark.parametrize('path, line', [
    ('/own-words', 'HTTP/1.1 200 All (really) is well'), ('/own-status', 'HTTP/1.1 299 Mostly'), ('/no-words', 'HTTP/1.1 404 Not Found'),
    ('/own-error', 'HTTP/1.1 503 Nap'), ('/own-error/intercepted', 'HTTP/1.1 503 Service Unavailable')])
def test_reason_phrases_are_forwarded(client, path, line):
    client.send(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.line() == line


def test_excess_interim_responses_are_dropped(client):
    """An upstream server sends many 102 (Processing) responses; excess ones are dropped, and the final response arrives (RFC 9110 15.2)."""
    client.send('GET /heartbeats?102 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    beats = []
    while (head := client.head()).status == 102:
        beats.append(int(head.headers['x-beat']))
    assert head.status == 200 and client.read_exactly(4) == b'done'
    assert beats[:16] == list(range(16)) and len(beats) <= 102 and beats == sorted(set(beats))
    client.send('GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n')
    while (head := client.head()).status == 102:
        beats.append(None)
    assert head.status == 200 and client.read_exactly(2) == b'ok'
    assert beats.count(None) >= 16 and beats.count(None) < 10000
    assert client.get('/after').status == 200


def test_forwarded_fields_are_removed_from_trailers(client, upstream):
    """Fields that the proxy sets are removed from trailers, because an upstream server may merge trailers into the header section."""
    client.send('POST /fields HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\nX-Forwarded-For: 6.6.6.6\r\n'
                'Forwarded: for=6.6.6.6\r\nx-real-ip: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n\r\n')
    assert client.read().status == 200
    assert upstream.last().trailers == ['X-Sum: 1']


@pytest.mark.parametrize('path, framing, body', [
    ('/wants', 'Content-Length: 4', 'body'), ('/wants', 'Transfer-Encoding: chunked', '4\r\nbody\r\n0\r\n\r\n'),
    ('/expected', 'Content-Length: 4', 'body')], ids=['a length', 'chunks', 'a server that ignores it'])
def test_expect_100_continue_is_forwarded(client, upstream, path, framing, body):
    """Expect is passed on: the client receives 100 (Continue) after the upstream server has sent it, or at once if the upstream server
    ignores Expect."""
    client.send(f'POST {path} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n{framing}\r\n\r\n')
    assert client.head().status == 100
    client.send(body)
    response = client.read()
    assert response.status == 200
    assert path != '/wants' or response.body == b'0     body'
    assert upstream.last().body == b'body' and upstream.last().all('expect') == ['100-continue']
    assert client.get('/after').status == 200


def test_final_status_instead_of_100(client, upstream):
    """The upstream server rejects the request: the client's body is not read, and no byte of it is sent upstream."""
    client.send('POST /rejects HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n')
    head = client.head()
    assert (head.status, head.headers['www-authenticate']) == (401, 'Basic')
    assert client.read_exactly(3) == b'no\n'
    wait_for(lambda: hasattr(upstream, 'unsent'), 'the server sees the end of its connection')
    assert upstream.unsent
    del upstream.unsent
    assert client.at_end() if http1.PROTOCOL == 'http1' else client.alive()
