"""A Debian kernel without the tls module: the server encrypts in user space, and logs and doctor have the reason."""
import hashlib
import os
import subprocess

import pytest
from kit import http1, server as server_kit, tls13

SLUICE = os.environ['SLUICE']


def test_doctor_reports_missing_module():
    done = subprocess.run([SLUICE, 'doctor'], capture_output=True, text=True, timeout=300, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 1
    assert 'the module tls was not loaded on demand: modprobe ran' in done.stdout
    assert '-> modprobe tls; to keep it' in done.stdout
    assert done.stdout.count(': no-module\n') == 6


def test_doctor_in_a_container():
    done = subprocess.run(['unshare', '-U', '-r', SLUICE, 'doctor'], capture_output=True, text=True, timeout=300, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 1
    assert '-> in a container the host must load it: modprobe tls there' in done.stdout
    assert 'this is a user namespace' in done.stdout


@pytest.mark.parametrize('suite', list(tls13.SUITES))
def test_auto_serves_from_user_space(start, www, loop, suite):
    server, port = start(loop, 'auto')
    client = http1.connect(port, 'own', suites=[suite], timeout=300)
    target = f'/1m?{loop}-{suite}'
    assert hashlib.sha256(client.get(target).body).hexdigest() == www['1m']
    row = server.access_for(target)[-1]
    assert (row['tls_path'], row['tls_path_reason']) == ('user', 'no-module')
    client.close()


def test_on_refuses_to_start(www, certificate, tmp_path):
    port = server_kit.free_port()
    made = server_kit.Server(tmp_path, [{'listen': [f'127.0.0.1:{port} ssl'], 'ssl_certificate': certificate[0], 'root': www['folder'],
                                         'ssl_certificate_key': certificate[1], 'ssl_ktls': 'on'}])
    done = subprocess.run([SLUICE, '-c', made.config_path], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    output = done.stdout + done.stderr + made.errors()
    assert done.returncode == 1 and 'ssl_ktls' in output and 'modprobe tls' in output, output


def test_advice_of_doctor_works():
    """Must be the last test, because it loads the module."""
    subprocess.run(['modprobe', 'tls'], check=True, timeout=300)
    done = subprocess.run([SLUICE, 'doctor'], capture_output=True, text=True, timeout=300, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0 and 'the kernel\'s tls module is available' in done.stdout
