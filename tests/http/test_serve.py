"""`sluice serve DIR` and `sluice doctor`: the first five minutes of a newcomer."""
import os
import re
import signal
import ssl
import subprocess
import time

import pytest
from kit import http1, server as server_kit

SLUICE = server_kit.SLUICE


@pytest.fixture
def serving(site):
    """`sluice serve` on the site; gives (process, what it printed, {scheme: port})."""
    process = subprocess.Popen([SLUICE, 'serve', site], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.set_blocking(process.stdout.fileno(), False)
    said, deadline = '', time.monotonic() + 20 * server_kit.PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        said += (process.stdout.read() or b'').decode()
        if re.search(r'https://\S+?:\d+', said) and 'ktls' in said.lower().replace('kernel tls', 'ktls'):
            break
        time.sleep(0.05)
    ports = {scheme: int(port) for scheme, port in re.findall(r'(https?)://[^\s:/]+:(\d+)', said)}
    yield process, said, ports
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(20 * server_kit.PATIENCE)
    process.stdout.close()


def test_serve(serving):
    process, said, ports = serving
    assert process.poll() is None, said
    assert 'https' in ports, said
    assert len([line for line in said.splitlines() if re.search(r'(?i)ktls|kernel tls', line)]) >= 1, said
    client = http1.connect(ports['https'], 'user')
    assert client.get('/one.txt').body == b'one\n'
    assert b'the first page' in client.get('/').body
    assert client.get('/.hidden').status == 404
    pem = ssl.get_server_certificate(('127.0.0.1', ports['https']))
    text = subprocess.run(['openssl', 'x509', '-noout', '-text'], input=pem, capture_output=True, text=True, check=True).stdout
    assert 'DNS:localhost' in text
    process.send_signal(signal.SIGINT)
    assert process.wait(20 * server_kit.PATIENCE) == 0


def test_serve_a_folder_that_is_not_there():
    done = subprocess.run([SLUICE, 'serve', '/nowhere'], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and '/nowhere' in done.stdout + done.stderr


def test_doctor_tells_the_truth():
    """Exit 0 only where the kernel has TLS; every reason is named."""
    done = subprocess.run([SLUICE, 'doctor'], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * server_kit.PATIENCE,
                          check=False)
    said = done.stdout + done.stderr
    with open('/proc/sys/net/ipv4/tcp_available_ulp', encoding='ascii') as stream:
        has_tls = 'tls' in stream.read().split()
    assert done.returncode == (0 if has_tls else 1), said
    for word in ('OpenSSL', 'io_uring', 'kernel'):
        assert word.lower() in said.lower(), said
    if not has_tls:
        assert re.search(r'(?i)module|CONFIG_TLS', said), said


def test_start_logs_one_line_on_ktls(launch, loop):
    served = launch(loop, 'user', server={'ssl_ktls': 'auto'})
    lines = [line for line in served.server.said().splitlines() if re.search(r'(?i)ktls|kernel tls', line)]
    assert len(lines) == 1, lines


def test_the_loop_is_named(launch, loop):
    """With `use: auto` a refusal of io_uring is told in one line; with a name, that backend it is."""
    served = launch(loop, 'plain', main={'events': {'use': 'auto'}})
    assert served.connect().get('/one.txt').status == 200
