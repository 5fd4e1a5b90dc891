"""The status page has the same number of promotions as the kernel, also with several workers."""
import re

import kernel
import pytest
from kit import http1, tls12, tls13

SUITES = [*tls13.SUITES, *tls12.SUITES]
PAGE = {'= /status': {'status': 'on'}}


def connect(port, suite):
    if suite in tls12.SUITES:
        return http1.Client(tls12.RecordingConnection(port, suite, timeout=300))
    return http1.connect(port, 'own', suites=[suite], timeout=300)


def status_page(port):
    """(number of promotions, configured number of workers) on the status page."""
    client = http1.connect(port, 'own', timeout=300)
    page = client.get('/status').body.decode()
    client.close()
    return tuple(int(re.search(rf'^sluice_{name} (\d+)$', page, re.M).group(1)) for name in ('ktls_promotions_total', 'workers'))


def end_orderly(client):
    assert client.get('/1k', Connection='close').status == 200
    assert client.at_end()


def end_in_the_middle(client):
    """The client does not read the promoted body."""
    client.send('GET /2m HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200


def not_promoted(port):
    """Requests that must not be counted: small responses, HEAD of a large file, a small range of it, and a handshake without a request."""
    client = http1.connect(port, 'own', timeout=300)
    assert client.get('/63k').status == 200
    assert client.fetch('HEAD', '/8m').status == 200
    assert client.get('/8m', Range='bytes=1-65535').status == 206
    client.close()
    http1.connect(port, 'own', timeout=300).close()


@pytest.mark.parametrize('workers', [1, 3])
def test_status_page_equals_the_kernel_counters(start, loop, workers):
    _, port = start(loop, 'on', main={'worker_processes': workers}, location=PAGE)
    assert status_page(port) == (0, workers)
    before = kernel.counters()['TlsTxSw']
    promoted = 0
    for end in (end_orderly, end_in_the_middle):
        not_promoted(port)
        for suite in SUITES:
            client = connect(port, suite)
            for _ in range(2):
                assert client.get('/64k').status == 200
            promoted += 1
            assert status_page(port)[0] == kernel.counters()['TlsTxSw'] - before == promoted
            end(client)
            client.close()
    assert status_page(port)[0] == kernel.counters()['TlsTxSw'] - before == promoted == 2 * len(SUITES)
