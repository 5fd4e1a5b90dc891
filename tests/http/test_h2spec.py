"""HTTP/2 conformance by h2spec; curl, nghttp and h2load, each where it is installed. test_http2_clients.py has more clients."""
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

import pytest

from kit import go_programs, server as server_kit

TIMEOUT = 300 * server_kit.PATIENCE
MODULE = 'github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible'
CASES = 145
# A port without TLS also serves HTTP/1.1: an invalid preface is a malformed HTTP/1.1 request and gets 400. h2spec expects GOAWAY, which a
# server may omit, since the client does not use HTTP/2 (RFC 9113 3.4).
EXPECTED_PLAIN = {('http2/3.5', 'Sends invalid connection preface')}     # 3.5/2


def need(program):
    return shutil.which(program) or pytest.skip(f'{program} is not installed')


@pytest.fixture(scope='session')
def h2spec():
    """The program, which is built once into the build folder."""
    return os.path.join(go_programs.build('h2spec', MODULE), 'h2spec')


def test_h2spec(served, h2spec, tmp_path):
    report = tmp_path / 'report.xml'
    tls = [] if served.transport == 'plain' else ['--tls', '--insecure']
    done = subprocess.run([h2spec, '--strict', '--host', '127.0.0.1', '--port', str(served.port), '--path', '/index.html', '--timeout',
                           str(round(4 * server_kit.PATIENCE)), '--junit-report', str(report), *tls],
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    cases = list(xml.etree.ElementTree.parse(report).iter('testcase'))
    failed = {(case.get('package'), case.get('classname')) for case in cases if case.find('failure') is not None or
              case.find('error') is not None}
    skipped = [case.get('classname') for case in cases if case.find('skipped') is not None]
    assert len(cases) - len(skipped) >= CASES, done.stdout[-2000:]
    assert failed == (EXPECTED_PLAIN if served.transport == 'plain' else set()), done.stdout[-4000:]


def content(served, name):
    with open(os.path.join(served.root, name), 'rb') as stream:
        return stream.read()


def test_curl_fetches_by_http2(served, certificate, tmp_path):
    curl = need('curl')
    if 'HTTP2' not in subprocess.run([curl, '--version'], capture_output=True, text=True, check=True).stdout:
        pytest.skip('curl is built without HTTP/2')
    run = [curl, '-sS', '--cacert', certificate[0], '--resolve', f'localhost:{served.port}:127.0.0.1', '-w', '%{http_version} %{http_code}\n']
    names = ['one.txt', '65537.bin', '1048576.bin']
    targets = [[served.url(f'/{name}'), '-o', str(tmp_path / name)] for name in names]
    if served.transport == 'plain':         # curl 7.88 cannot reuse a connection with prior knowledge (nor with nginx)
        runs = [[*run, '--http2-prior-knowledge', *target] for target in targets]
    else:
        runs = [[*run, '--http2', '--parallel', *[word for target in targets for word in target]]]
    output = [subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, check=False) for words in runs]
    assert ''.join(done.stdout for done in output).splitlines() == ['2 200'] * 3, [done.stderr for done in output]
    for name in names:
        assert (tmp_path / name).read_bytes() == content(served, name)


def test_nghttp_fetches(served, tmp_path):
    nghttp = need('nghttp')
    done = subprocess.run([nghttp, '--no-verify-peer', '--stat', '--null-out', served.url('/65537.bin'), served.url('/one.txt')], cwd=tmp_path,
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r'\s200\s', done.stdout)) == 2, done.stdout


def test_h2load_requests_succeed(served):
    # 900 requests per connection: fewer than keepalive_requests, because h2load does not reconnect.
    h2load = need('h2load')
    done = subprocess.run([h2load, '-n', '9000', '-c', '10', '-m', '50', served.url('/one.txt'), served.url('/1024.bin')],
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert '9000 succeeded, 0 failed, 0 errored, 0 timeout' in done.stdout, done.stdout
    assert 'status codes: 9000 2xx' in done.stdout
