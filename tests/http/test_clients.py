"""Common clients: curl, Python's httpx and urllib3, openssl s_client, and wget if it is installed."""
import hashlib
import os
import subprocess

import httpx
import pytest
import urllib3
from kit import server as server_kit


@pytest.fixture
def curl(served, certificate):
    def run(*arguments):
        return subprocess.run(['curl', '-sS', '--max-time', str(60 * server_kit.PATIENCE), '--cacert', certificate[0],
                               '--resolve', f'localhost:{served.port}:127.0.0.1', *arguments],
                              capture_output=True, timeout=120 * server_kit.PATIENCE, check=False)
    return run


def test_curl_verifies_the_certificate(curl, served):
    done = curl(served.url('/one.txt'))
    assert done.returncode == 0 and done.stdout == b'one\n', done.stderr


def test_curl_head_range_and_conditions(curl, served, tmp_path):
    assert curl('-I', served.url('/one.txt')).stdout.split()[:2] == [b'HTTP/2' if served.transport != 'plain' else b'HTTP/1.1', b'200']
    assert curl('-r', '2-4', served.url('/ten.txt')).stdout == b'234'
    path = tmp_path / 'part'
    path.write_bytes(b'0123')
    assert curl('-C', '-', '-o', str(path), served.url('/ten.txt')).returncode == 0
    assert path.read_bytes() == b'0123456789'
    etags = str(tmp_path / 'etag')
    curl('--etag-save', etags, served.url('/ten.txt'))
    done = curl('--etag-compare', etags, '-w', '%{http_code}', served.url('/ten.txt'))
    assert done.stdout == b'304'


def test_curl_reuses_the_connection(curl, served):
    done = curl('-o', '/dev/null', '-o', '/dev/null', '-o', '/dev/null', '-w', '%{num_connects} ', served.url('/one.txt'),
                served.url('/65536.bin'), served.url('/nowhere'))
    assert done.stdout.split() == [b'1', b'0', b'0']


def test_curl_sends_expect_100_continue(curl, served, tmp_path):
    path = tmp_path / 'upload'
    path.write_bytes(b'x' * 2000000)
    done = curl('-o', '/dev/null', '-w', '%{http_code}', '--data-binary', f'@{path}', served.url('/one.txt'))
    assert done.stdout in (b'405', b'413'), done.stderr


def test_curl_follows_the_directory_redirect(curl, served):
    assert b'folder' in curl('-L', served.url('/folder')).stdout


def test_curl_path_traversal_is_rejected(curl, served):
    done = curl('--path-as-is', '-o', '/dev/null', '-w', '%{http_code}', served.url('/../../../../etc/passwd'))
    assert done.stdout in (b'400', b'403', b'404')


def test_curl_parallel_downloads(curl, served, tmp_path):
    done = curl('-Z', '--parallel-max', '8', '-o', str(tmp_path / '#1'), served.url('/{1024,16384,65535,65536,65537,1048576}.bin'))
    assert done.returncode == 0, done.stderr
    for size in (1024, 16384, 65535, 65536, 65537, 1 << 20):
        got = (tmp_path / str(size)).read_bytes()
        with open(os.path.join(served.root, f'{size}.bin'), 'rb') as stream:
            assert got == stream.read()


def test_httpx_fetches_files(served, certificate):
    import ssl
    context = ssl.create_default_context(cafile=certificate[0])
    with httpx.Client(verify=context, timeout=30 * server_kit.PATIENCE) as client:
        assert client.get(served.url('/one.txt')).text == 'one\n'
        assert client.get(served.url('/grüße.txt')).status_code == 200
        response = client.get(served.url('/1048576.bin'))
        with open(os.path.join(served.root, '1048576.bin'), 'rb') as stream:
            assert hashlib.sha256(response.content).digest() == hashlib.sha256(stream.read()).digest()
        assert client.get(served.url('/folder')).headers['location'] == '/folder/'
        assert client.head(served.url('/ten.txt')).headers['content-length'] == '10'
        assert client.post(served.url('/one.txt'), content=(b'piece' for _ in range(100))).status_code == 405
        assert client.get(served.url('/one.txt')).status_code == 200


def test_urllib3_fetches(served, certificate):
    with urllib3.PoolManager(ca_certs=certificate[0], timeout=30 * server_kit.PATIENCE) as pool:
        for _ in range(20):
            assert pool.request('GET', served.url('/one.txt')).data == b'one\n'
        assert pool.request('GET', served.url('/folder')).data.startswith(b'<!doctype html><title>folder')
        assert pool.request('GET', served.url('/nowhere')).status == 404
        assert pool.connection_from_url(served.url('/')).num_connections == 1


def test_openssl_s_client_fetches(served, certificate):
    if served.transport == 'plain':
        pytest.skip('TLS only')
    done = subprocess.run(['openssl', 's_client', '-connect', f'127.0.0.1:{served.port}', '-servername', 'localhost', '-CAfile',
                           certificate[0], '-verify_return_error', '-ign_eof', '-alpn', 'http/1.1'],
                          input=b'GET /one.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', capture_output=True,
                          timeout=60 * server_kit.PATIENCE, check=False)
    assert b'Verify return code: 0 (ok)' in done.stdout and b'ALPN protocol: http/1.1' in done.stdout
    assert b'one\n' in done.stdout and done.returncode == 0


