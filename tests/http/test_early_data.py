"""TLS early data (0-RTT): requests in the first flight of a resumed connection. An attacker can replay this flight."""
import hashlib
import os
import re
import socket
import subprocess
import threading

import pytest

from kit import server as server_kit, upstream as upstream_kit
from kit.authority import Authority
from kit.lifetime import wait_for
from kit.resumption import fetch_with_session

TIMEOUT = 20 * server_kit.PATIENCE


@pytest.fixture
def start_server(certificate, tmp_path, loop, site):
    made, upstreams = [], []

    def respond(peer):
        peer.read_body()
        body = f'upstream {peer.request.header("early-data")}'
        status = '425 Too Early' if 'refused' in peer.request.target else '200 OK'
        peer.send(f'HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}')
        return True

    def starter(workers=2, others=(), **block):
        port = server_kit.free_port()
        upstream = upstream_kit.Upstream({f'/upstream/{name}': respond for name in ('x', 'y', 'refused', 'once', 'last', 'guard')})
        upstreams.append(upstream)
        whole = {'listen': f'127.0.0.1:{port} ssl', 'server_name': 'localhost', 'ssl_certificate': certificate[0], 'root': site,
                 'ssl_certificate_key': certificate[1], 'ssl_early_data': 'on',
                 'location': {'= /state': {'return': '200 "early=$ssl_early_data worker $pid;"'},
                              '/upstream/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}'},
                              '= /guarded': {'auth_request': '/upstream/guard', 'return': '200 guarded'},
                              '= /upstream/guard': {'proxy_pass': f'http://127.0.0.1:{upstream.port}',
                                                  'proxy_set_header': {'Early-Data': '$ssl_early_data'}}}, **block}
        server = server_kit.Server(tmp_path / f'server{len(made)}', [whole, *({**whole, **other} for other in others)], loop=loop, main={'worker_processes': workers})
        server.port, server.upstream = port, upstream
        made.append(server.start([port]))
        wait_for(lambda: ' runs, ' in server.errors(), 'all workers are ready')
        return server
    yield starter
    for server in made:
        server.stop()
    for upstream in upstreams:
        upstream.stop()


def request(target, method='GET', body='', close=True):
    end = 'Connection: close\r\n' if close else ''
    length = f'Content-Length: {len(body)}\r\n' if body else ''
    return f'{method} {target} HTTP/1.1\r\nHost: localhost\r\n{end}{length}\r\n{body}'


def ticket(server, path, *more):
    """Saves a session that permits early data for one connection."""
    response = fetch_with_session(server.port, '-tls1_3', session_out=path, target='/state', more=more)[1]
    assert 'early= worker' in response, response
    return path


def send_early_data(port, session, text, folder, later=''):
    """Opens a connection with `text` as early data and sends `later` after the handshake. Returns (accepted, output of s_client)."""
    path = os.path.join(folder, 'early')
    with open(path, 'w', encoding='latin-1') as stream:
        stream.write(text)
    done = subprocess.run(['openssl', 's_client', '-connect', f'127.0.0.1:{port}', '-servername', 'localhost', '-tls1_3', '-ign_eof',
                           '-sess_in', str(session), '-early_data', path], input=later.encode(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60 * server_kit.PATIENCE, check=False)
    message = done.stdout.decode('latin-1')
    return 'Early data was accepted' in message, message


def test_request_in_early_data_gets_a_response(start_server, tmp_path):
    server = start_server()
    for _ in range(4):
        accepted, output = send_early_data(server.port, ticket(server, tmp_path / 'session'), request('/state'), tmp_path)
        assert accepted and 'early=1 worker' in output and '200 OK' in output
    assert 'early= worker' in fetch_with_session(server.port, '-tls1_3', target='/state')[1]
    assert 'early= worker' in fetch_with_session(server.port, '-tls1_2', target='/state')[1]


def test_files_of_each_size_in_early_data(start_server, tmp_path, site):
    server = start_server(workers=1)
    for name in ('one.txt', '65536.bin', '1048576.bin'):
        accepted, output = send_early_data(server.port, ticket(server, tmp_path / 'session'), request(f'/{name}'), tmp_path)
        with open(os.path.join(site, name), 'rb') as stream:
            content = stream.read()
        assert accepted and content.decode('latin-1') in output, name


@pytest.mark.parametrize('text', [request('/state', 'POST', 'x=1'), request('/state', 'DELETE'), request('/upstream/x', 'PUT', 'x'),
                                  request('/one.txt', 'GET', 'a body')])
def test_unsafe_method_gets_425(start_server, tmp_path, text):
    server = start_server(workers=1)
    accepted, output = send_early_data(server.port, ticket(server, tmp_path / 'session'), text, tmp_path)
    assert accepted and '425 Too Early' in output and 'early=1' not in output
    assert 'This request was received before the connection was complete. Send it again.' in output
    assert not server.upstream.requests


def test_server_without_early_data_gets_425(start_server, tmp_path):
    """The client's handshake was for a server with early data, and Host selects another one with the same certificate."""
    server = start_server(workers=1, others=[{'server_name': 'other.test', 'ssl_early_data': 'off'}])
    text = request('/state').replace('Host: localhost', 'Host: other.test')
    accepted, output = send_early_data(server.port, ticket(server, tmp_path / 'session'), text, tmp_path)
    assert accepted and '425 Too Early' in output and 'early=1' not in output
    accepted, output = send_early_data(server.port, ticket(server, tmp_path / 'session'), request('/state', close=False), tmp_path, later=text)
    assert accepted and 'early=1' in output and 'early= worker' in output and '425 Too Early' not in output


def test_upstream_servers_receive_early_data_field(start_server, tmp_path):
    server = start_server(workers=1)
    accepted, output = send_early_data(server.port, ticket(server, tmp_path / 'session'), request('/upstream/x'), tmp_path)
    assert accepted and 'upstream 1' in output
    accepted, output = send_early_data(server.port, ticket(server, tmp_path / 'session'), request('/upstream/refused'), tmp_path)
    assert accepted and '425 Too Early' in output, 'the response of the server is forwarded'
    fetch_with_session(server.port, '-tls1_3', target='/upstream/y')
    assert [seen.all('early-data') for seen in server.upstream.requests] == [['1'], ['1'], []]


def test_auth_request_receives_early_data_field(start_server, tmp_path):
    server = start_server(workers=1)
    accepted, output = send_early_data(server.port, ticket(server, tmp_path / 'session'), request('/guarded'), tmp_path)
    assert accepted and 'guarded' in output
    fetch_with_session(server.port, '-tls1_3', target='/guarded')
    assert [seen.all('early-data') for seen in server.upstream.requests] == [['1'], []]


def test_off_rejects_early_data(start_server, tmp_path):
    server = start_server(ssl_early_data='off')
    session = ticket(server, tmp_path / 'session')
    accepted, output = send_early_data(server.port, session, request('/state'), tmp_path, later=request('/state'))
    assert not accepted and 'early= worker' in output


class RecordingRelay:
    """Relays one connection and records the client's first flight, which ends with the early data."""

    def __init__(self, port):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port, self.target, self.flight, self.answered = self.listener.getsockname()[1], port, b'', False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        client = self.listener.accept()[0]
        server = socket.create_connection(('127.0.0.1', self.target), timeout=TIMEOUT)
        client.settimeout(TIMEOUT)

        def back():
            while piece := server.recv(65536):
                self.answered = True
                client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
        thread = threading.Thread(target=back)
        thread.start()
        self.collect(client, server)
        thread.join()
        client.close()
        server.close()
        self.listener.close()

    def collect(self, client, server):
        """Collects the flight until the early data has arrived, possibly in a second segment, and then sends both in one piece."""
        while b'\x17\x03\x03' not in self.flight:
            self.flight += client.recv(65536)
        server.sendall(self.flight)
        while piece := client.recv(65536):
            server.sendall(piece)


def replay(port, flight):
    """Replays a recorded first flight: the server responds with a ServerHello, and the attacker cannot complete the handshake."""
    with socket.create_connection(('127.0.0.1', port), timeout=TIMEOUT) as again:
        again.sendall(flight)
        assert again.recv(65536).startswith(b'\x16\x03\x03'), 'a ServerHello'


def test_replayed_early_data_is_rejected(start_server, tmp_path):
    """Every worker must reject the replayed early data, also after a reload."""
    server = start_server()
    tap = RecordingRelay(server.port)
    session = ticket(server, tmp_path / 'session')
    accepted, output = send_early_data(tap.port, session, request('/upstream/once'), tmp_path)
    tap.thread.join()
    assert accepted and 'upstream 1' in output
    for _ in range(12):
        replay(server.port, tap.flight)
    before = set(server.workers())
    server.process.send_signal(1)
    wait_for(lambda: not before & set(server.workers()) and len(server.workers()) == 2, 'new workers alone')
    for _ in range(12):
        replay(server.port, tap.flight)
    for _ in range(4):
        fetch_with_session(server.port, '-tls1_3', target='/upstream/last')
    targets = [seen.target for seen in server.upstream.requests]
    assert targets.count('/upstream/once') == 1 and targets.count('/upstream/last') == 4


def test_connection_continues_after_early_data(start_server, tmp_path):
    server = start_server(workers=1)
    session = ticket(server, tmp_path / 'session')
    path = tmp_path / 'early'
    path.write_text(request('/state', close=False))
    client = subprocess.Popen(['openssl', 's_client', '-quiet', '-connect', f'127.0.0.1:{server.port}', '-servername', 'localhost', '-tls1_3',
                               '-sess_in', str(session), '-early_data', str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, bufsize=0)
    output = b''
    while b'early=1 worker' not in output:
        piece = os.read(client.stdout.fileno(), 65536)
        assert piece, output
        output += piece
    client.stdin.write(request('/state', 'POST', 'now it may', close=False).encode())
    while b'early= worker' not in output:
        piece = os.read(client.stdout.fileno(), 65536)
        assert piece, output
        output += piece
    assert b'425 Too Early' not in output
    client.stdin.write(request('/65536.bin').encode())
    rest = client.stdout.read()
    client.stdin.close()
    client.wait()
    client.stdout.close()
    with open(os.path.join(server.tree['http']['server'][0]['root'], '65536.bin'), 'rb') as stream:
        assert hashlib.sha256(rest[-65536:]).digest() == hashlib.sha256(stream.read()).digest()


def test_client_certificate_is_verified_in_early_data(start_server, tmp_path):
    authority = Authority(str(tmp_path / 'authority'))
    certificate, key = authority.client('client')
    server = start_server(workers=1, ssl_verify_client='on', ssl_client_certificate=authority.certificate,
                   location={'= /state': {'return': '200 "early=$ssl_early_data worker $ssl_client_verify;"'}})
    shows = ('-cert', certificate, '-key', key)
    accepted, output = send_early_data(server.port, ticket(server, tmp_path / 'session', *shows), request('/state'), tmp_path)
    assert accepted and 'early=1 worker SUCCESS;' in output
    fetch_with_session(server.port, '-tls1_3', session_out=tmp_path / 'refused', target='/state')
    accepted, output = send_early_data(server.port, tmp_path / 'refused', request('/state'), tmp_path, later=request('/state'))
    assert not accepted and '400 Bad Request' in output


WRONG = [({'ssl_session_tickets': 'off'}, 'ssl_early_data cannot be used without ssl_session_tickets'),
         ({'ssl_session_ticket_key': 'ticket.key'}, 'ssl_early_data cannot be used with ssl_session_ticket_key')]


@pytest.mark.parametrize('block, words', WRONG)
def test_invalid_configurations_are_rejected(start_server, tmp_path, block, words):
    if 'ssl_session_ticket_key' in block:
        (tmp_path / 'ticket.key').write_bytes(os.urandom(80))
        block = {'ssl_session_ticket_key': str(tmp_path / 'ticket.key')}
    with pytest.raises(RuntimeError) as error:
        start_server(**block)
    assert re.search(r'sluice.yaml:\d+:\d+: error: ' + words, str(error.value)), str(error.value)
