"""Client certificates (mutual TLS): valid, invalid and missing ones."""
import hashlib
import os
import re
import socket
import ssl
import subprocess

import pytest

from kit import http1, server as server_kit, tls_end
from kit.authority import Authority, context
from kit.lifetime import wait_for
from kit.resumption import VERSIONS, fetch_with_session

TLS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
CERTIFICATE_TEXT = '200 "$ssl_client_verify|$ssl_client_s_dn|$ssl_session_reused"'
ABSENT = 'This page requires a certificate, and none was sent.'
BAD = 'This page requires a certificate, and the certificate that was sent is not accepted.'


@pytest.fixture(scope='module')
def certificates(base):
    """The client certificates by name, the two authorities, and a revocation list."""
    ours, theirs = Authority(str(base / 'authority')), Authority(str(base / 'other-authority'), 'other authority')
    made = {None: None, 'good': ours.client('good'), 'revoked': ours.client('revoked'), 'untrusted': theirs.client('untrusted'),
            'late': ours.client('late', '20200101000000Z', '20200201000000Z')}
    ours.revoke(made['revoked'])
    return made, ours.certificate, theirs.certificate, ours.crl()


@pytest.fixture(scope='module', params=server_kit.LOOPS)
def mutual_tls_server(request, new_directory, certificate, site, certificates):
    """Virtual servers on one port; each responds with its variables about the client certificate."""
    _, ours, theirs, revoked = certificates
    port, plain, stream_port = (server_kit.free_port() for _ in range(3))
    listen = {'listen': [f'127.0.0.1:{port} ssl'], 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1],
              'root': site, 'location': {'= /certificate': {'return': CERTIFICATE_TEXT}}}
    verifying = {'ssl_verify_client': 'on', 'ssl_client_certificate': ours}
    blocks = {
        'open.test': {},
        'strict.test': verifying,
        'other.test': {**verifying, 'ssl_client_certificate': theirs},
        'trusted.test': {'ssl_verify_client': 'on', 'ssl_trusted_certificate': ours},
        'optional.test': {**verifying, 'ssl_verify_client': 'optional'},
        'lax.test': {'ssl_verify_client': 'optional_no_ca'},
        'listed.test': {**verifying, 'ssl_crl': revoked},
        'paged.test': {**verifying, 'error_page': ['495 /bad', '496 =403 /none'],
                       'location': {'= /bad': {'return': '200 "bad: $ssl_client_verify"'}, '= /none': {'return': '200 "none"'}}},
        'variables.test': {**verifying, 'location': {'/': {'return': '200 "' + '|'.join(f'$ssl_client_{name}' for name in (
            'serial', 'i_dn', 'fingerprint', 'v_start', 'v_end', 'v_remain', 'escaped_cert')) + '"'}}},
    }
    servers = [{'server_name': name, **listen, **block} for name, block in blocks.items()]
    servers[1]['listen'] = [*listen['listen'], f'127.0.0.1:{plain}']
    below = {'listen': f'127.0.0.1:{stream_port} ssl', 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1]}
    stream = {'server': [{**below, 'server_name': 'strict.test', 'return': '$ssl_client_verify $ssl_client_s_dn', **verifying},
                         {**below, 'server_name': 'open.test', 'return': 'open'}]}
    made = server_kit.Server(new_directory(), servers, loop=request.param, main={'stream': stream})
    made.port, made.plain, made.stream_port = port, plain, stream_port
    yield made.start([port, plain])
    made.stop()


def connect(server, name, certificate=None, version=None, session=None):
    sock = socket.create_connection(('127.0.0.1', server.port), timeout=20 * server_kit.PATIENCE)
    return http1.Client(context(certificate, version).wrap_socket(sock, server_hostname=name, session=session))


def fetch(server, name, certificate=None, version=None, host=None, target='/certificate'):
    client = connect(server, name, certificate, version)
    try:
        return client.get(target, Host=host or name)
    finally:
        client.close()


GOOD_NAME = 'CN=good,O=Sluice Tests'
CASES = [
    # server, certificate, status, part of the response
    ('open.test', 'good', 200, 'NONE||.'),
    ('strict.test', None, 400, ABSENT),
    ('strict.test', 'good', 200, f'SUCCESS|{GOOD_NAME}|.'),
    ('strict.test', 'untrusted', 400, BAD),
    ('strict.test', 'late', 400, BAD),
    ('strict.test', 'revoked', 200, 'SUCCESS|'),
    ('other.test', 'good', 400, BAD),
    ('other.test', 'untrusted', 200, 'SUCCESS|'),
    ('trusted.test', 'good', 200, 'SUCCESS|'),
    ('trusted.test', 'untrusted', 400, BAD),
    ('optional.test', None, 200, 'NONE||.'),
    ('optional.test', 'good', 200, 'SUCCESS|'),
    ('optional.test', 'untrusted', 400, BAD),
    ('lax.test', None, 200, 'NONE||.'),
    ('lax.test', 'untrusted', 200, 'FAILED:unable to get local issuer certificate|CN=untrusted,'),
    ('lax.test', 'late', 400, BAD),
    ('listed.test', 'good', 200, 'SUCCESS|'),
    ('listed.test', 'revoked', 400, BAD),
]


@pytest.mark.parametrize('version', TLS)
@pytest.mark.parametrize('name, shown, status, text', CASES)
def test_verification_result_of_each_certificate(mutual_tls_server, certificates, name, shown, status, text, version):
    response = fetch(mutual_tls_server, name, certificates[0][shown], version)
    assert response.status == status and text in response.body.decode()
    assert response.closes == (status == 400), 'the next certificate comes with the next connection'


def test_verification_error_is_logged(mutual_tls_server, certificates):
    fetch(mutual_tls_server, 'listed.test', certificates[0]['revoked'])
    fetch(mutual_tls_server, 'strict.test')
    wait_for(lambda: 'client SSL certificate verify error: certificate revoked' in mutual_tls_server.errors(), 'the reason')
    wait_for(lambda: 'client sent no required SSL certificate' in mutual_tls_server.errors(), 'the reason')


def test_error_page_495_and_496(mutual_tls_server, certificates):
    response = fetch(mutual_tls_server, 'paged.test', certificates[0]['untrusted'], target='/anything')
    assert response.status == 400 and response.body == b'bad: FAILED:unable to get local issuer certificate'
    response = fetch(mutual_tls_server, 'paged.test', target='/anything')
    assert response.status == 403 and response.body == b'none'


def test_plain_listener_requests_no_certificate(mutual_tls_server):
    client = http1.connect(mutual_tls_server.plain, 'plain')
    assert client.get('/certificate', Host='strict.test').body == b'||'
    client.close()


def test_other_host_is_421(mutual_tls_server, certificates):
    """RFC 9110 15.5.20: a certificate verified for one server is not valid for another."""
    good = certificates[0]['good']
    for name, host in (('open.test', 'strict.test'), ('strict.test', 'other.test'), ('strict.test', 'optional.test'),
                       ('unknown.test', 'strict.test')):
        response = fetch(mutual_tls_server, name, good, host=host)
        assert response.status == 421 and response.closes, (name, host)
        assert 'made for another site' in response.body.decode()
    assert fetch(mutual_tls_server, 'strict.test', good, host='open.test').status == 200
    assert fetch(mutual_tls_server, 'strict.test', good, host='STRICT.test.').status == 200
    assert 'different from the one that was negotiated' in mutual_tls_server.errors()


@pytest.mark.parametrize('version', VERSIONS)
def test_session_is_not_resumed_at_another_server(mutual_tls_server, certificates, tmp_path, version):
    session, good = tmp_path / 'session', ['-cert', certificates[0]['good'][0], '-key', certificates[0]['good'][1]]
    fetch_with_session(mutual_tls_server.port, version, session_out=session, name='open.test', target='/certificate')
    assert fetch_with_session(mutual_tls_server.port, version, session_in=session, name='open.test', target='/certificate')[0]
    resumed, response = fetch_with_session(mutual_tls_server.port, version, session_in=session, name='strict.test', target='/certificate')
    assert not resumed and '400 Bad Request' in response and ABSENT in response
    fetch_with_session(mutual_tls_server.port, version, session_out=session, name='strict.test', target='/certificate', more=good)
    resumed, response = fetch_with_session(mutual_tls_server.port, version, session_in=session, name='strict.test', target='/certificate')
    assert resumed and f'SUCCESS|{GOOD_NAME}|r' in response, 'what was shown once lasts as long as the session'
    for name in ('other.test', 'listed.test'):
        resumed, response = fetch_with_session(mutual_tls_server.port, version, session_in=session, name=name, target='/certificate')
        assert not resumed and 'SUCCESS' not in response and ('400 Bad Request' in response or '403 Forbidden' in response), name


@pytest.mark.parametrize('version', VERSIONS)
def test_session_of_a_rejected_client_is_not_resumed(mutual_tls_server, certificates, tmp_path, version):
    session, good = tmp_path / 'session', ['-cert', certificates[0]['good'][0], '-key', certificates[0]['good'][1]]
    assert '400 Bad Request' in fetch_with_session(mutual_tls_server.port, version, session_out=session, name='strict.test', target='/certificate')[1]
    resumed, response = fetch_with_session(mutual_tls_server.port, version, session_in=session, name='strict.test', target='/certificate', more=good)
    assert not resumed and f'SUCCESS|{GOOD_NAME}|.' in response


def test_certificate_variables(mutual_tls_server, certificates):
    response = fetch(mutual_tls_server, 'variables.test', certificates[0]['good'], target='/')
    serial, issuer, fingerprint, start, end, remain, escaped = response.body.decode().split('|')
    with open(certificates[0]['good'][0], encoding='ascii') as stream:
        pem = stream.read()
    assert re.fullmatch('[0-9A-F]+', serial) and issuer == 'CN=authority'
    assert fingerprint == hashlib.sha1(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    assert start == 'Jan  1 00:00:00 2024 GMT' and end == 'Jan  1 00:00:00 2049 GMT' and int(remain) > 1000
    assert escaped.startswith('-----BEGIN%20CERTIFICATE-----%0AMII') and '\n' not in escaped


def test_large_body_with_client_certificate(mutual_tls_server, certificates, site):
    client = connect(mutual_tls_server, 'strict.test', certificates[0]['good'])
    with open(os.path.join(site, '1048576.bin'), 'rb') as stream:
        assert client.get('/1048576.bin', Host='strict.test').body == stream.read()
    client.close()


def test_stream_closes_without_a_valid_certificate(mutual_tls_server, certificates):
    def stream_response(certificate):
        sock = socket.create_connection(('127.0.0.1', mutual_tls_server.stream_port), timeout=20 * server_kit.PATIENCE)
        try:
            with context(certificate).wrap_socket(sock, server_hostname='localhost') as sealed:
                return tls_end.receive(sealed, 1000)
        except (ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b''
    assert stream_response(certificates[0]['good']) == f'SUCCESS {GOOD_NAME}'.encode()
    assert stream_response(certificates[0]['untrusted']) == stream_response(None) == b''


@pytest.mark.parametrize('name', ['open.test', 'OPEN.Test', 'open.test.'])
def test_stream_sni_selects_the_verifying_server(mutual_tls_server, name):
    """The comparison of names ignores case and a trailing dot."""
    done = subprocess.run(['openssl', 's_client', '-quiet', '-connect', f'127.0.0.1:{mutual_tls_server.stream_port}', '-servername', name],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * server_kit.PATIENCE, check=False)
    assert done.stdout == b'open'


WRONG = [
    ({'ssl_verify_client': 'on'}, 'ssl_verify_client requests certificates, but no trusted authority is configured'),
    ({'ssl_verify_client': 'optional'}, 'ssl_verify_client requests certificates, but no trusted authority is configured'),
    ({'ssl_verify_client': 'maybe'}, 'maybe'),
    ({'ssl_verify_client': 'on', 'ssl_client_certificate': '/nowhere/ca.pem'}, '"/nowhere/ca.pem" cannot be opened: No such file or directory'),
    ({'ssl_verify_client': 'optional_no_ca', 'ssl_crl': '/nowhere/list.pem'}, '"/nowhere/list.pem" cannot be opened: No such file or directory'),
]


@pytest.mark.parametrize('block, words', WRONG)
def test_invalid_configurations_are_rejected(tmp_path, certificate, block, words):
    made = server_kit.Server(tmp_path / 'server', [{'listen': f'127.0.0.1:{server_kit.free_port()} ssl', 'ssl_certificate': certificate[0],
                                                    'ssl_certificate_key': certificate[1], **block}])
    with pytest.raises(RuntimeError) as error:
        made.start([1])
    assert re.search(r'sluice.yaml:\d+:\d+: .*' + re.escape(words), str(error.value)), str(error.value)
