"""`sluice doctor` on a kernel with TLS."""
import json
import os
import re
import subprocess

import kernel
from kit import http1

SLUICE = os.environ['SLUICE']

SUITES = [f'TLS {version} {cipher}' for version in ('1.3', '1.2') for cipher in ('AES-128-GCM', 'AES-256-GCM', 'ChaCha20-Poly1305')]
# An emulator may be too slow to measure within the time limit.
MEASURED = r'(?:the kernel takes [1-9]\d* ns of CPU time per KiB, user space [1-9]\d*|not measured)'


def doctor(*before):
    """Runs the doctor; returns (exit status, {name: [findings]})."""
    done = subprocess.run([*before, SLUICE, 'doctor', '--json'], capture_output=True, text=True, timeout=300, check=False)
    print(done.stdout, done.stderr)
    found = {}
    for item in json.loads(done.stdout)['findings']:
        found.setdefault(item['name'], []).append(item)
    return done.returncode, found


def test_doctor_finds_kernel_tls():
    before = kernel.counters()['TlsTxSw']
    status, found = doctor()
    assert status == 0
    assert [item['text'] for item in found['cipher']] == [f'{suite}: the kernel accepts the key, and a file arrived intact' for suite in SUITES]
    # Six connections of the probe, one of the first transfer, and one for each suite.
    assert kernel.counters()['TlsTxSw'] - before >= 13, 'the result comes from self-tests'
    assert kernel.counters()['TlsRxSw'] == 0
    assert found['transfer'][0]['verdict'] == found['module'][0]['verdict'] == found['autoload'][0]['verdict'] == 'good'
    assert [item['text'].split(' with ')[0] for item in found['cost']] == ['AES-128-GCM', 'AES-256-GCM', 'ChaCha20-Poly1305']
    for item in found['cost']:
        assert re.search(f': {MEASURED}: (the kernel|user space) encrypts', item['text'])
    assert all(item['verdict'] != 'fault' for items in found.values() for item in items)
    release = tuple(int(number) for number in os.uname().release.split('.')[:2])
    assert found['rekey'][0]['verdict'] == ('good' if release >= (6, 14) else 'note')


def test_doctor_as_unprivileged_user():
    """kTLS works for every user, but only root can have the module loaded."""
    for before in (['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'], ['unshare', '-U', '-r']):
        status, found = doctor(*before)
        assert status == 0
        assert found['autoload'][0]['verdict'] == 'note'
        assert re.search('CAP_NET_ADMIN|user namespace', found['autoload'][0]['text'])
        assert 'modules-load.d' in found['autoload'][0]['advice']


def test_benchmark_of_the_report_uses_kernel_tls():
    """The row of kernel TLS has figures, and the kernel encrypted on more sockets than the examinations open."""
    before = kernel.counters()['TlsTxSw']
    subprocess.run([SLUICE, 'doctor', '--report', '--no-benchmark'], stdout=subprocess.DEVNULL, timeout=300, check=True)
    examined = kernel.counters()['TlsTxSw'] - before
    done = subprocess.run([SLUICE, 'doctor', '--report', '--seconds', '60'], capture_output=True, text=True, timeout=300, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0 and 'Incomplete' not in done.stdout
    figure = r'[\d.]+ \([\d.]+ to [\d.]+\)'
    assert re.search(rf'^\| kernel TLS \| {figure} \| {figure} \| - \| - \|$', done.stdout, re.M)
    assert kernel.counters()['TlsTxSw'] - before > 2 * examined, 'the connections of the benchmark'


def test_start_logs_ktls(start, loop):
    server, _ = start(loop, 'auto')
    lines = [line for line in server.output().splitlines() if 'ktls' in line.lower() or 'kernel tls' in line.lower()]
    assert len(lines) == 1, lines
    assert 'available' in lines[0].lower() and 'not available' not in lines[0].lower() and 'unavailable' not in lines[0].lower()


def test_start_measures_kernel_and_user_space(start, loop):
    """`auto` decides for each cipher by measured figures, and `on` does not measure."""
    server, port = start(loop, 'auto')
    decided = dict(re.findall(rf'large bodies, (\S+): {MEASURED}: (.*)$', server.output(), re.M))
    assert sorted(decided) == ['AES-128-GCM', 'AES-256-GCM', 'ChaCha20-Poly1305']
    client = http1.connect(port, 'own', suites=['TLS_AES_128_GCM_SHA256'], timeout=300)
    target = f'/2m?auto-{loop}'
    assert client.get(target).status == 200
    client.close()
    row = server.access_for(target)[-1]
    never = decided['AES-128-GCM'].startswith('user space')
    assert (row['tls_path'], row['tls_path_reason']) == (('user', 'user-faster') if never else ('ktls-sendfile', 'ok'))
    assert 'large bodies' not in start(loop, 'on')[0].output()


def test_promotion_and_rekeying_of_each_cipher():
    """Runs tests/unit/tls/test_ktls_kernel.c, which is skipped on kernels without TLS."""
    program = os.path.join(os.path.dirname(SLUICE), 'tests/unit/tls/test_ktls_kernel')
    done = subprocess.run([program], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, 'CK_FORK': 'no'})
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert kernel.counters()['TlsRxSw'] == 0
