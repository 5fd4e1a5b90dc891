"""Rarely used TLS directives: keys with a pass phrase, rejected handshakes, DHE, OpenSSL's commands, ALPN in stream; with `openssl
s_client`."""
import os
import re
import shutil
import socket
import ssl
import subprocess

import pytest
from kit import server as server_kit, site as site_kit
from kit.authority import context
from kit.lifetime import wait_for

LOOPS = os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split()


def lock(key, out, phrase):
    subprocess.run(['openssl', 'pkey', '-in', key, '-aes256', '-passout', f'pass:{phrase}', '-out', out + '.new'], check=True)
    os.replace(out + '.new', out)


def write(path, text):
    with open(path, 'w', encoding='ascii') as stream:
        stream.write(text)


@pytest.fixture(scope='module', params=LOOPS)
def tls_server(request, new_directory, certificate, rsa_certificate, site):
    """A server with several listeners: named servers with a rejecting default server, DHE, and stream."""
    folder = str(new_directory())
    key, phrases, parameters = (os.path.join(folder, name) for name in ('locked.key', 'phrases', 'dh.pem'))
    lock(certificate[1], key, 'open sesame')
    write(phrases, 'wrong\nopen sesame\n')
    subprocess.run(['openssl', 'genpkey', '-genparam', '-algorithm', 'DH', '-pkeyopt', 'group:ffdhe3072', '-out', parameters], check=True)
    ports = {name: server_kit.free_port() for name in ('names', 'dh', 'auto', 'none', 'alpn', 'plain')}
    listen = {name: f'127.0.0.1:{port} ssl' for name, port in ports.items()}
    rsa = {'ssl_certificate': rsa_certificate[0], 'ssl_certificate_key': rsa_certificate[1], 'return': '200 dhe',
           'ssl_protocols': 'TLSv1.2', 'ssl_ciphers': 'DHE-RSA-AES128-GCM-SHA256'}
    ours = {'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1]}
    made = server_kit.Server(os.path.join(folder, 'server'), [
        {'listen': f'{listen["names"]} default_server', 'ssl_reject_handshake': True, 'server_name': 'reject.test'},
        {'listen': listen['names'], 'server_name': 'locked.test', 'root': site, 'ssl_certificate': certificate[0], 'ssl_certificate_key': key,
         'ssl_password_file': phrases, 'ssl_session_cache': 'builtin:100 shared:SSL:1m'},
        {'listen': listen['names'], 'server_name': 'groups.test', 'root': site, **ours, 'ssl_session_cache': 'off',
         'ssl_conf_command': ['Ciphersuites TLS_CHACHA20_POLY1305_SHA256', {'Groups': 'P-384'}, 'Options KTLS']},
        {'listen': listen['dh'], **rsa, 'ssl_dhparam': parameters},
        {'listen': listen['auto'], **rsa, 'ssl_dhparam': 'auto'},
        {'listen': listen['none'], **rsa},
    ], loop=request.param, main={'stream': {**ours, 'server': [
        {'listen': listen['alpn'], 'return': 'agreed on $ssl_alpn_protocol.', 'ssl_alpn': 'pg other'},
        {'listen': listen['plain'], 'return': 'agreed on $ssl_alpn_protocol.'}]}})
    made.ports = ports
    yield made.start(ports.values())
    made.stop()


def s_client(tls_server, name, *options, server=None, request='GET /one.txt HTTP/1.1\r\nHost: locked.test\r\nConnection: close\r\n\r\n'):
    """The output of s_client, with the response."""
    words = ['openssl', 's_client', '-ign_eof', '-connect', f'127.0.0.1:{tls_server.ports[name]}', *options,
             *(['-servername', server] if server else ['-noservername'])]
    made = subprocess.run(words, input=request.encode(), capture_output=True, timeout=60 * server_kit.PATIENCE, check=False)
    return (made.stdout + made.stderr).decode('latin-1')


@pytest.mark.parametrize('version', ['-tls1_2', '-tls1_3'])
@pytest.mark.parametrize('name', [None, 'none.test', 'reject.test'])
def test_unknown_name_is_rejected(tls_server, version, name):
    output = s_client(tls_server, 'names', version, server=name)
    assert 'SSL alert number 112' in output and 'BEGIN CERTIFICATE' not in output   # unrecognized_name


def test_encrypted_key_is_loaded(tls_server):
    output = s_client(tls_server, 'names', server='locked.test')
    assert 'BEGIN CERTIFICATE' in output and 'HTTP/1.1 200' in output


def test_ssl_conf_command_applies_to_its_server(tls_server):
    output = s_client(tls_server, 'names', '-groups', 'X25519:P-384', server='groups.test')
    assert 'Cipher is TLS_CHACHA20_POLY1305_SHA256' in output and 'secp384r1' in output and 'HTTP/1.1 200' in output
    output = s_client(tls_server, 'names', '-groups', 'X25519:P-384', server='locked.test')
    assert 'Cipher is TLS_AES_128_GCM_SHA256' in output and 'X25519' in output and 'secp384r1' not in output


@pytest.mark.parametrize('name, bits', [('dh', 3072), ('auto', 2048), ('none', None)])
def test_ssl_dhparam_enables_dhe(tls_server, name, bits):
    output = s_client(tls_server, name, '-cipher', 'DHE-RSA-AES128-GCM-SHA256', '-tls1_2', server='localhost')
    if bits:
        assert f' Temp Key: DH, {bits} bits' in output and '\ndhe' in output
    else:
        assert 'handshake failure' in output and 'BEGIN CERTIFICATE' not in output


@pytest.mark.parametrize('name, offered, agreed', [
    ('alpn', 'h2,pg', 'pg'), ('alpn', None, ''), ('alpn', 'h2', None), ('plain', 'h2', ''), ('plain', None, ''),
])
def test_ssl_alpn_in_stream(tls_server, name, offered, agreed):
    trusting = context()
    if offered:
        trusting.set_alpn_protocols(offered.split(','))
    with socket.create_connection(('127.0.0.1', tls_server.ports[name]), timeout=30 * server_kit.PATIENCE) as plain:
        if agreed is None:
            with pytest.raises(ssl.SSLError, match='(?i)no.application.protocol'):
                trusting.wrap_socket(plain)
            return
        with trusting.wrap_socket(plain) as stream:
            assert stream.selected_alpn_protocol() == (agreed or None)
            assert stream.recv(100) == f'agreed on {agreed}.'.encode()


def test_changed_key_and_pass_phrase_are_loaded(tmp_path, loop):
    """Certificate, key and pass phrase are replaced one after the other; a combination that does not match is not used."""
    folder = tmp_path / 'keys'
    folder.mkdir()
    pairs = []
    for name in ('first', 'second'):
        (folder / name).mkdir()
        pairs.append(site_kit.make_certificate(str(folder / name), name='site'))
    certificate, key, phrases = (str(folder / name) for name in ('site.pem', 'site.key', 'phrases'))
    shutil.copy(pairs[0][0], certificate)
    lock(pairs[0][1], key, 'one')
    write(phrases, 'one\n')
    port = server_kit.free_port()
    served = server_kit.Server(tmp_path / 'server', [{
        'listen': f'127.0.0.1:{port} ssl', 'server_name': 'site.test', 'ssl_certificate': certificate, 'ssl_certificate_key': key,
        'ssl_password_file': phrases, 'ssl_certificate_cache': 'valid=100ms', 'return': '200 ok'}], loop=loop)
    served.ports = {'site': port}
    served.start([port])
    try:
        lock(pairs[1][1], key, 'two')
        wait_for(lambda: f'no pass phrase in "{phrases}" opens the key "{key}"' in served.errors(), 'the refusal')
        write(phrases, 'two\n')
        shutil.copy(pairs[1][0], certificate)
        wait_for(lambda: 'have changed: new connections use them' in served.errors(), 'the change')
        with open(pairs[1][0], encoding='ascii') as stream:
            expected = re.search('-----BEGIN CERTIFICATE-----.*?-----END', stream.read(), re.S)[0]
        wait_for(lambda: expected in s_client(served, 'site', server='site.test'), 'the new certificate')
    finally:
        served.stop()
