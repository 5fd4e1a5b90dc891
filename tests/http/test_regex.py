"""Regular expressions in locations and server names: order, captures, and the cost of a slow pattern."""
import hashlib
import socket

import pytest

SERVER = {'error_page': '500 /oops', 'location': {
    '= /oops': {'return': '200 "it took too long"'},
    '= /exact.txt': {'return': '200 exact'},
    '/': {'return': '200 slash'},
    '/prefix/': {'return': '200 prefix'},
    '^~ /final/': {'return': '200 final'},
    '~ \\.(txt|log)$': {'return': '200 "first $1"'},
    '~* \\.(?<kind>TXT|gif)$': {'return': '200 "second $kind $1"'},
    '~ ^/users/(?<who>[^/]+)/(.*)$': {'return': '200 "$who: $2; $10"'},
    '~ ^/slow/(a+)+$': {'return': '200 slow'},
}}


@pytest.fixture
def client(launch, loop, transport):
    made = launch(loop, transport, server=SERVER).connect()
    yield made
    made.close()


@pytest.mark.parametrize('path, body', [
    ('/exact.txt', b'exact'), ('/x', b'slash'), ('/prefix/a', b'prefix'), ('/prefix/a.txt', b'first txt'),
    ('/final/a.txt', b'final'), ('/a.log', b'first log'), ('/a.GIF', b'second GIF GIF'), ('/a.tXt', b'second tXt tXt'),
    ('/users/ann/b/c', b'ann: b/c; ann0'), ('/users/%e4%b8%ad/x', 'zh: '.replace('zh', '中').encode() + 'x; 中0'.encode()),
    ('/a%2etxt', b'first txt'), ('/prefix/%2e%2e/final/a.txt', b'final'), ('/a.txt/', b'slash'), ('/slow/aaa', b'slow'),
])
def test_locations_match_in_nginx_order(client, path, body):
    assert client.get(path).body == body


def test_exponential_match_is_500(client):
    response = client.get('/slow/' + 'a' * 200 + 'b')
    assert response.status == 500 and response.body == b'it took too long'
    assert client.get('/slow/a').body == b'slow'


@pytest.fixture
def named(launch, loop, transport):
    return launch(loop, transport, server={'server_name': ['localhost', r'~^(?<user>\w+)\.(re)\.test$'],
                                           'return': '200 "$user-$2-$server_name"'})


@pytest.mark.parametrize('host, body', [
    ('localhost', b'--localhost'), ('ann.re.test', b'ann-re-localhost'), ('ANN.RE.test:99', b'ann-re-localhost'),
    ('ann.re.test.', b'ann-re-localhost'), ('x.ann.re.test', b'--localhost')])
def test_regular_expression_names_select_the_server(named, host, body):
    client = named.connect()
    client.send(f'GET / HTTP/1.1\r\nHost: {host}\r\n\r\n')
    assert client.read('GET').body == body
    client.close()


def test_sni_selects_certificates_by_regular_expression(base, new_directory, loop):
    """Each server sends its own certificate, for all kinds of server names."""
    import ssl
    from kit import server as server_kit
    port = server_kit.free_port()
    names = [['plain.test'], [r'~^(?<who>\w+)\.re\.test$', 're-shown.test'], [r'~\.TEST$', 'last-shown.test']]
    blocks = [{'listen': f'127.0.0.1:{port} ssl', 'server_name': own, 'ssl_certificate': 'self-signed', 'return': f'200 "{number}"'}
              for number, own in enumerate(names)]
    server = server_kit.Server(new_directory(), blocks, loop=loop)
    server.start([port])
    try:
        seen = {}
        for name in ('plain.test', 'ann.re.test', 'ann.re.test.', 'other.test', 'nobody'):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with socket.create_connection(('127.0.0.1', port), 20) as raw, context.wrap_socket(raw, server_hostname=name) as stream:
                seen[name] = hashlib.sha256(stream.getpeercert(True)).hexdigest()
        assert seen['ann.re.test'] == seen['ann.re.test.'] and seen['nobody'] == seen['plain.test']
        assert len({seen['plain.test'], seen['ann.re.test'], seen['other.test']}) == 3
    finally:
        server.stop()
