"""TLS from outside: versions, suites, certificates by name, tickets, records, key updates, hostile handshakes."""
import hashlib
import os
import re
import select
import socket
import ssl
import struct
import subprocess
import time

import pytest
from kit import http1, s_client, server as server_kit, site as site_kit, tls12, tls13

SUITES = list(tls13.SUITES)


@pytest.fixture
def served(launch, loop, tls_transport):
    return launch(loop, tls_transport)


def connect_raw(served, **options):
    return served.connect(own=True, **options)


def file_bytes(served, name):
    with open(os.path.join(served.root, name), 'rb') as stream:
        return stream.read()


@pytest.mark.parametrize('suite', SUITES)
def test_records_are_decryptable(served, suite):
    client = connect_raw(served, suites=[suite])
    assert client.stream.suite_name == suite and client.stream.chosen_alpn == 'http/1.1'
    for name in ('one.txt', 'empty.txt', '1024.bin', '16384.bin', '65535.bin', '65536.bin', '1048576.bin'):
        assert client.get('/' + name).body == file_bytes(served, name)
    numbers = [record.sequence for record in client.stream.records]
    assert numbers == list(range(len(numbers)))
    response = client.get('/one.txt', Connection='close')
    assert response.closes and client.at_end() and client.stream.closed, 'close_notify, then the end'


def test_large_body_has_full_records(launch, loop):
    """A large body is sent in records of 16384 bytes, independent of the sizes of reads."""
    client = connect_raw(launch(loop, 'user', server={'ssl_dyn_rec_enable': 'off'}))
    client.get('/one.txt')
    client.stream.records.clear()
    client.get('/1048576.bin')
    lengths = client.stream.data_records
    assert len(lengths) <= (1 << 20) // 16384 + 4
    assert sum(lengths) > 1 << 20


def test_small_records_precede_full_ones(launch, loop):
    """Each record of the first 64 KiB fits one TCP segment; later records are full."""
    served = launch(loop, 'user')
    client = connect_raw(served)
    assert client.get('/1048576.bin').body == file_bytes(served, '1048576.bin')
    lengths = client.stream.data_records
    full = next(at for at, length in enumerate(lengths) if length > 1400)
    small = lengths[:full]
    assert len([length for length in small if length != 1369]) <= 1, 'one may be shorter, to fill up its block'
    tickets = sum(record.length for record in client.stream.records) - sum(lengths)
    assert 65536 - tickets <= sum(small) < 65536 + 1369, 'tickets just before are of the same stretch'
    assert set(lengths[full + 4:-1]) == {16384}, 'so may one here'


def test_small_response_is_one_record(served):
    client = connect_raw(served)
    client.get('/one.txt')
    client.stream.records.clear()
    client.get('/1024.bin')
    assert len(client.stream.data_records) == 1


def test_server_preference_puts_aes_128_first(served):
    for order in (SUITES, SUITES[::-1]):
        assert connect_raw(served, suites=order).stream.suite_name == 'TLS_AES_128_GCM_SHA256'


def test_tickets_are_sent_and_resume(served):
    context = http1.tls_context()
    sock = socket.create_connection(('127.0.0.1', served.port), timeout=20 * server_kit.PATIENCE)
    with context.wrap_socket(sock, server_hostname='localhost') as first:
        http1.Client(first).get('/one.txt?first')
        session = first.session
        assert not first.session_reused and session is not None and session.has_ticket
    sock = socket.create_connection(('127.0.0.1', served.port), timeout=20 * server_kit.PATIENCE)
    with context.wrap_socket(sock, server_hostname='localhost', session=session) as second:
        client = http1.Client(second)
        assert client.get('/65536.bin').body == file_bytes(served, '65536.bin')
        client.get('/one.txt?resumed')
        assert second.session_reused
    assert served.server.access_for('/one.txt?resumed')[0]['ssl_session_reused'] == 'r'
    assert served.server.access_for('/one.txt?first')[-1]['ssl_session_reused'] == '.'


def test_ssl_session_tickets_off_sends_none(launch, loop, tls_transport):
    served = launch(loop, tls_transport, server={'ssl_session_tickets': 'off'})
    client = connect_raw(served)
    client.get('/one.txt')
    client.get('/one.txt')
    assert client.stream.tickets == 0


def test_tls12_connections_transfer_files(served):
    context = http1.tls_context(maximum_version=ssl.TLSVersion.TLSv1_2)
    client = served.connect(context=context)
    assert client.stream.version() == 'TLSv1.2'
    assert client.stream.cipher()[0] == 'ECDHE-ECDSA-AES128-GCM-SHA256'
    for name in ('one.txt', '65536.bin', '1048576.bin'):
        assert client.get('/' + name).body == file_bytes(served, name)
    assert client.get('/one.txt', Connection='close').closes and client.at_end()


@pytest.mark.parametrize('cipher', ['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384',
                                    'ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-ECDSA-AES128-SHA256'])
def test_tls12_cipher_suites(launch, loop, tls_transport, cipher):
    """Also CBC, if configured: OpenSSL offers no key for it, so bodies are sent by SSL_write."""
    served = launch(loop, tls_transport, server={'ssl_ciphers': 'ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE-ECDSA-AES128-SHA256'})
    context = http1.tls_context(maximum_version=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers(cipher)
    client = served.connect(context=context, promoted='GCM' in cipher or 'POLY' in cipher)
    assert client.stream.cipher()[0] == cipher
    for name in ('one.txt', '1048576.bin', '65537.bin', 'one.txt'):
        assert client.get('/' + name).body == file_bytes(served, name)
    target = f'/1048576.bin?{cipher}'
    client.get(target)
    row = served.server.access_for(target)[-1]
    if 'GCM' not in cipher and 'POLY' not in cipher:
        assert row['tls_path'] == 'openssl' and row['tls_path_reason'] == 'suite'
    else:
        assert row['tls_path'] in ({'ktls-sendfile'} if served.transport == 'ktls' else {'user', 'openssl'})
    assert client.get('/one.txt', Connection='close').closes and client.at_end()


def test_rule_07_explicit_nonces_are_unique(served):
    """TLS 1.2 AES-GCM sends the nonces in clear text: those of one connection must all differ."""
    tap = tls12.RecordingConnection(served.port, timeout=20 * server_kit.PATIENCE)
    client = http1.Client(tap)
    for name in ('one.txt', '1048576.bin', 'one.txt', '65536.bin'):
        assert client.get('/' + name).body == file_bytes(served, name)
    client.get('/one.txt', Connection='close')
    client.at_end()
    nonces = tap.explicit_nonces()
    assert len(nonces) > 64 and len(set(nonces)) == len(nonces)


def test_ssl_protocols_limits_versions(launch, loop, tls_transport):
    served = launch(loop, tls_transport, server={'ssl_protocols': ['TLSv1.3']})
    assert connect_raw(served).get('/one.txt').status == 200
    with pytest.raises(ssl.SSLError):
        served.connect(context=http1.tls_context(maximum_version=ssl.TLSVersion.TLSv1_2))
    served = launch(loop, tls_transport, server={'ssl_protocols': ['TLSv1.2']})
    assert served.connect().stream.version() == 'TLSv1.2'
    with pytest.raises(tls13.TlsAlert):
        connect_raw(served)


def test_old_versions_are_rejected(served):
    for flag in ('-tls1', '-tls1_1'):
        done = subprocess.run(['openssl', 's_client', '-connect', f'127.0.0.1:{served.port}', flag, '-cipher', 'ALL:@SECLEVEL=0'],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * server_kit.PATIENCE, check=False)
        assert 'Cipher is (NONE)' in done.stdout or done.returncode != 0


def test_ssl_ciphersuites_selects_the_suite(launch, loop, tls_transport):
    served = launch(loop, tls_transport, server={'ssl_ciphersuites': 'TLS_CHACHA20_POLY1305_SHA256'})
    client = connect_raw(served)
    assert client.stream.suite_name == 'TLS_CHACHA20_POLY1305_SHA256'
    with pytest.raises(tls13.TlsAlert):
        connect_raw(served, suites=['TLS_AES_128_GCM_SHA256'])


def test_ssl_ecdh_curve_selects_the_group(launch, loop, tls_transport):
    served = launch(loop, tls_transport, server={'ssl_ecdh_curve': 'secp384r1'})
    done = subprocess.run(['openssl', 's_client', '-connect', f'127.0.0.1:{served.port}', '-groups', 'P-384:P-256'],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * server_kit.PATIENCE, check=False)
    assert 'ECDH, secp384r1' in done.stdout or 'ECDH, P-384' in done.stdout


def certificate_subject(port, name, *options):
    """The subject of the certificate that the server sends for a name."""
    words = ['openssl', 's_client', '-connect', f'127.0.0.1:{port}', *options]
    done = subprocess.run([*words, '-servername', name] if name else [*words, '-noservername'], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60 * server_kit.PATIENCE, check=False)
    return re.search(r'subject=.*?CN ?= ?([^\n,]+)', done.stdout).group(1)


def test_sni_selects_the_certificate(loop, site, base, tmp_path):
    port = server_kit.free_port()
    blocks = []
    for name, names in (('default.test', ['default.test']), ('exact.test', ['exact.test', 'www.exact.test']),
                        ('star.test', ['*.star.test'])):
        certificate, key = site_kit.make_certificate(str(tmp_path), name=name, names=names)
        blocks.append({'listen': [f'127.0.0.1:{port} ssl'], 'server_name': names, 'root': site,
                       'ssl_certificate': certificate, 'ssl_certificate_key': key})
    server = server_kit.Server(tmp_path / 'run', blocks, loop=loop).start([port])
    try:
        for name, expected in (('exact.test', 'exact.test'), ('WWW.exact.test', 'exact.test'), ('a.star.test', 'star.test'),
                               ('nobody.test', 'default.test'), ('', 'default.test'), ('default.test', 'default.test')):
            assert certificate_subject(port, name) == expected, name
    finally:
        server.stop()


def test_ecdsa_and_rsa_certificates(launch, loop, tls_transport, certificate, rsa_certificate):
    served = launch(loop, tls_transport, server={'ssl_certificate': [certificate[0], rsa_certificate[0]],
                                          'ssl_certificate_key': [certificate[1], rsa_certificate[1]]})
    for signatures, kind in (('ecdsa_secp256r1_sha256', 'id-ecPublicKey'), ('rsa_pss_rsae_sha256', 'rsaEncryption')):
        shown = subprocess.run(['openssl', 's_client', '-connect', f'127.0.0.1:{served.port}', '-sigalgs', signatures],
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * server_kit.PATIENCE, check=False).stdout
        pem = re.search(r'-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n', shown, re.S).group(0)
        text = subprocess.run(['openssl', 'x509', '-noout', '-text'], input=pem, capture_output=True, text=True, check=True).stdout
        assert kind in text


def test_self_signed_certificate_is_generated(loop, site, tmp_path):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': [f'127.0.0.1:{port} ssl'], 'server_name': ['localhost', 'sluice.test'], 'root': site,
                                           'ssl_certificate': 'self-signed'}], loop=loop).start([port])
    try:
        assert http1.connect(port, 'user').get('/one.txt').status == 200
        pem = ssl.get_server_certificate(('127.0.0.1', port))
        text = subprocess.run(['openssl', 'x509', '-noout', '-text'], input=pem, capture_output=True, text=True, check=True).stdout
        assert 'DNS:localhost' in text and 'DNS:sluice.test' in text
        assert 'self-signed' in server.output()
    finally:
        server.stop()


def test_encrypted_key_without_password_is_rejected(certificate, site, tmp_path):
    key = str(tmp_path / 'locked.key')
    subprocess.run(['openssl', 'pkey', '-in', certificate[1], '-aes256', '-passout', 'pass:secret', '-out', key], check=True)
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port} ssl'], 'root': site, 'ssl_certificate': certificate[0],
                                                   'ssl_certificate_key': key}])
    with pytest.raises(RuntimeError, match='(?is)ended with [1-9].*encrypted'):
        server.start([port])


def test_mismatched_key_is_rejected(certificate, rsa_certificate, site, tmp_path):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': [f'127.0.0.1:{port} ssl'], 'root': site, 'ssl_certificate': certificate[0],
                                           'ssl_certificate_key': rsa_certificate[1]}])
    with pytest.raises(RuntimeError, match='(?i)ended with [1-9]'):
        server.start([port])


def test_alpn_selects_http1_or_fails(served):
    assert connect_raw(served, alpn=['http/1.1']).stream.chosen_alpn == 'http/1.1'
    assert connect_raw(served, alpn=['nonsense', 'http/1.1']).stream.chosen_alpn == 'http/1.1'
    assert connect_raw(served, alpn=['http/1.0', 'http/1.1']).stream.chosen_alpn == 'http/1.1'
    assert connect_raw(served, alpn=['http/1.0']).stream.chosen_alpn == 'http/1.0'
    assert connect_raw(served, alpn=[]).stream.chosen_alpn is None
    with pytest.raises(tls13.TlsAlert) as refused:
        connect_raw(served, alpn=['nonsense'])
    assert refused.value.description == 120           # no_application_protocol, RFC 7301 3.2


def read_until(stream, text):
    """Reads the output of a program until it has the text, ignoring case, or ends."""
    message, deadline = '', time.monotonic() + 20 * server_kit.PATIENCE
    while text not in message.lower():
        assert select.select([stream], [], [], max(0, deadline - time.monotonic()))[0], message
        piece = os.read(stream.fileno(), 65536).decode()
        if not piece:
            break
        message += piece
    return message


def test_renegotiation_is_rejected(served):
    owner = subprocess.Popen(['openssl', 's_client', '-connect', f'127.0.0.1:{served.port}', '-tls1_2'], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = read_until(owner.stdout, 'verify return code')        # the last line of its report
    owner.stdin.write(b'R\n')
    owner.stdin.flush()
    output += read_until(owner.stdout, 'no renegotiation')
    output += owner.communicate(timeout=30 * server_kit.PATIENCE)[0].decode()
    assert 'no renegotiation' in output.lower() or owner.returncode != 0, output
    assert connect_raw(served).get('/one.txt').status == 200


def ends_at_new_keys(served):
    """True if the kernel cannot change keys: then the server completes the response in progress and closes the connection in order."""
    return served.transport == 'ktls' and 'rekeying' not in served.server.output()


@pytest.mark.parametrize('request_update', [False, True])
def test_key_update_between_responses(served, request_update):
    """The client updates its key, with and without update_requested: every response can be decrypted."""
    client = connect_raw(served)
    for _ in range(3):
        client.stream.key_update(request_update)
        if request_update and ends_at_new_keys(served):
            assert client.at_end() and client.stream.closed, 'nothing was begun'
            return
        for name in ('one.txt', '65536.bin', '1048576.bin'):
            assert client.get('/' + name).body == file_bytes(served, name)
    assert client.stream.generation == (3 if request_update else 0)


def test_key_update_during_a_response(served):
    client = connect_raw(served)
    client.send('GET /1048576.bin HTTP/1.1\r\nHost: localhost\r\n\r\n' * 8)
    first = client.head()
    client.stream.key_update(True)
    assert client.read_exactly(int(first.headers['content-length'])) == file_bytes(served, '1048576.bin')
    ends = ends_at_new_keys(served)
    for _ in range(7):
        if ends and client.at_end():
            break
        assert client.read().body == file_bytes(served, '1048576.bin')
    if ends:
        assert client.at_end() and client.stream.closed


def test_rule_09_s_client_key_update_during_a_response(launch, loop, new_directory):
    """With TLS in user space, key updates in the middle of a response do not disturb it, and the connection continues. (../vm/test_keys.py
    tests kTLS.)"""
    root = str(new_directory())
    site_kit.make_file(os.path.join(root, '16m'), 16 << 20)
    served = launch(loop, 'user', server={'root': root})
    client = s_client.SClient(served.port)
    for letters in ('KkK', 'k'):
        assert s_client.body_with_commands(client, '/16m', 16 << 20, letters) == file_bytes(served, '16m')
    assert client.close() == 4


def test_rule_09_key_update_flood(served):
    """The connection ends with an alert and one log line; other connections are not affected."""
    if ends_at_new_keys(served):
        pytest.skip('this kernel takes one key only: the first update ends the connection')
    before = served.server.errors().count('too many KeyUpdate or renegotiation requests')
    other = connect_raw(served)
    client = connect_raw(served)
    try:
        client.stream.key_update_storm(between=b'G')
    except OSError:
        pass
    try:
        with pytest.raises(tls13.TlsAlert) as ended:
            client.read()
        assert ended.value.description == 10              # unexpected_message
    except (EOFError, OSError):
        pass                                              # a reset may destroy the alert
    client.close()
    assert other.get('/1048576.bin').body == file_bytes(served, '1048576.bin')
    assert served.server.errors().count('too many KeyUpdate or renegotiation requests') == before + 1


def test_close_notify_from_the_client(served):
    client = connect_raw(served)
    client.get('/one.txt')
    client.stream.send_alert()
    assert client.at_end()


def test_fatal_alert_from_the_client(served):
    client = connect_raw(served)
    client.stream.send_alert(40)
    assert client.at_end()
    assert connect_raw(served).get('/one.txt').status == 200


def test_forged_record_ends_the_connection(served):
    client = connect_raw(served)
    client.get('/one.txt')
    client.stream.sock.sendall(b'\x17\x03\x03\x00\x20' + bytes(32))
    with pytest.raises(tls13.TlsAlert) as refused:
        client.read()
    assert refused.value.description == 20            # bad_record_mac


def test_request_in_many_records(served):
    client = connect_raw(served)
    for byte in b'GET /one.txt HTTP/1.1\r\nHost: localhost\r\n\r\n':
        client.send(bytes([byte]))
    assert client.read().body == b'one\n'


def test_many_requests_in_one_record(served):
    client = connect_raw(served)
    client.send('GET /one.txt HTTP/1.1\r\nHost: localhost\r\n\r\n' * 100)
    for _ in range(100):
        assert client.read().body == b'one\n'


def test_records_byte_by_byte(served):
    """Handshake and request arrive byte by byte."""
    class OneByteWriter:
        def __init__(self, sock):
            self.sock = sock

        def sendall(self, text):
            for byte in text:
                self.sock.sendall(bytes([byte]))

        def __getattr__(self, name):
            return getattr(self.sock, name)
    sock = socket.create_connection(('127.0.0.1', served.port), timeout=20 * server_kit.PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client = http1.Client(tls13.Tls13(OneByteWriter(sock)).handshake())
    assert client.get('/65536.bin').body == file_bytes(served, '65536.bin')


@pytest.mark.parametrize('noise', [b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n', b'\x16\x03\x01\x00\x05hello', bytes(1000),
                                   b'\x16\x03\x01\xff\xff' + bytes(70000), b'\x15\x03\x01\x00\x02\x02\x28', b''])
def test_invalid_handshake_bytes(served, noise):
    sock = socket.create_connection(('127.0.0.1', served.port), timeout=20 * server_kit.PATIENCE)
    try:
        sock.sendall(noise)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(65536):
            pass
    except OSError:
        pass
    assert connect_raw(served).get('/one.txt').status == 200


def test_plain_http_on_the_tls_port_is_rejected(served):
    """nginx responds with 400 in clear text ("plain HTTP request was sent to HTTPS port"); closing with or without an alert is also
    permitted."""
    sock = socket.create_connection(('127.0.0.1', served.port), timeout=20 * server_kit.PATIENCE)
    sock.sendall(b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    first = sock.recv(65536)
    assert first == b'' or first[0] in (0x15, ord('H'))


def test_client_header_timeout_ends_a_handshake(launch, loop, tls_transport):
    """The server closes at client_header_timeout and not earlier, and serves other clients meanwhile."""
    served = launch(loop, tls_transport, server={'client_header_timeout': '1s'})
    began = time.monotonic()
    with socket.create_connection(('127.0.0.1', served.port), timeout=0.7) as sock:
        sock.sendall(b'\x16\x03\x01')
        with pytest.raises(TimeoutError):
            sock.recv(4096)
        assert connect_raw(served).get('/one.txt').status == 200
        sock.settimeout(20 * server_kit.PATIENCE)
        try:
            assert sock.recv(4096) in (b'', b'\x15\x03\x01\x00\x02\x02\x5a')
        except ConnectionResetError:
            pass    # unread bytes of the ClientHello cause a reset
        assert time.monotonic() - began >= 0.9


def test_long_certificate_chain(loop, site, certificate, tmp_path):
    """A chain of more than 20 KiB: the handshake takes several records and sends."""
    chain = str(tmp_path / 'chain.pem')
    names = [f'name-{number}.test' for number in range(120)]
    with open(chain, 'w', encoding='ascii') as stream:
        stream.write(open(certificate[0], encoding='ascii').read())
        for number in range(14):
            extra, _ = site_kit.make_certificate(str(tmp_path), name=f'link{number}', names=names)
            stream.write(open(extra, encoding='ascii').read())
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port} ssl'], 'root': site, 'ssl_certificate': chain,
                                                   'ssl_certificate_key': certificate[1]}], loop=loop).start([port])
    try:
        client = http1.connect(port, 'own', receive_buffer=2048)
        assert hashlib.sha256(client.get('/1048576.bin').body).digest() == \
            hashlib.sha256(open(os.path.join(site, '1048576.bin'), 'rb').read()).digest()
    finally:
        server.stop()


def test_max_fragment_length_is_respected(served):
    """max_fragment_length (RFC 6066): OpenSSL encrypts the records, which have at most 512 bytes."""
    client = connect_raw(served, promoted=False, extensions=struct.pack('!HHB', 1, 1, 1))
    assert client.get('/65536.bin?fragment').body == file_bytes(served, '65536.bin')
    assert max(client.stream.data_records) == 512
    row = served.server.access_for('/65536.bin?fragment')[-1]
    assert (row['tls_path'], row['tls_path_reason']) == ('openssl', 'max-fragment')


def test_host_different_from_sni(served):
    """A Host that differs from SNI selects another virtual server and is no error."""
    client = connect_raw(served)
    assert client.fetch('GET', '/one.txt', [('Host', 'other.test')]).status == 200
