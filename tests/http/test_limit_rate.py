"""limit_rate: no response exceeds the rate, for all kinds of bodies and transports, and every byte arrives."""
import concurrent.futures
import hashlib
import os
import socket
import time

import pytest

from kit import site as site_kit

RATE = 400 * 1024
SIZE = 600 * 1024


@pytest.fixture(scope='module')
def throttled(site):
    path = os.path.join(site, 'throttled.bin')
    site_kit.make_file(path, SIZE)
    with open(path, 'rb') as stream:
        return hashlib.sha256(stream.read()).hexdigest()


LOCATIONS = {
    '/': {},
    '= /throttled.bin': {'limit_rate': '400k'},
    '/variable/': {'alias': '@', 'limit_rate': '$arg_rate'},
    '/after/': {'alias': '@', 'limit_rate': '400k', 'limit_rate_after': '300k'},
    '/bytes': {'limit_rate': '1k', 'return': '200 ' + 'x' * 3000},
    '/chunks/': {'alias': '@', 'limit_rate': '400k', 'add_trailer': 'X-Sent $body_bytes_sent'},
}


@pytest.fixture
def served(launch, loop, transport, site):
    locations = {name: {key: site + '/' if value == '@' else value for key, value in inner.items()}
                 for name, inner in LOCATIONS.items()}
    return launch(loop, transport, server={'location': locations}, http={
        'log_format': {'proof': '$request_uri|$status|$limit_rate|$tls_path'}})


def timed_fetch(served, target, fields=()):
    client = served.connect(timeout=60)
    began = time.monotonic()
    response = client.fetch('GET', target, list(fields))
    took = time.monotonic() - began
    client.close()
    assert response.status in (200, 206)
    return hashlib.sha256(response.body).hexdigest(), len(response.body), took


def least(size, rate=RATE):
    """The minimum duration in seconds: the bytes of a tenth of a second are sent at once."""
    return (size - rate / 10) / rate


def test_no_response_exceeds_the_rate(served, throttled):
    """All responses at the same time: the rate applies to each of them."""
    whole = {'/throttled.bin': SIZE, '/variable/throttled.bin?rate=400k': SIZE, '/after/throttled.bin': SIZE - 300 * 1024, '/chunks/throttled.bin': SIZE}
    with concurrent.futures.ThreadPoolExecutor(len(whole) + 2) as pool:
        taken = {target: pool.submit(timed_fetch, served, target) for target in whole}
        part = pool.submit(timed_fetch, served, '/throttled.bin', [('Range', 'bytes=100000-509599')])
        text = pool.submit(timed_fetch, served, '/bytes')
    for target, size in whole.items():
        digest, _, took = taken[target].result()
        assert digest == throttled, target
        assert took >= least(size) - 0.02, target
    _, length, took = part.result()
    assert length == 409600 and took >= least(409600) - 0.02
    _, length, took = text.result()
    assert length == 3000 and took >= least(3000, 1024) - 0.52      # at least 512 bytes are sent at a time


def test_rate_of_zero_is_unlimited(served, throttled):
    for target in ('/variable/throttled.bin', '/variable/throttled.bin?rate=0', '/variable/throttled.bin?rate=nonsense', '/variable/throttled.bin?rate=999g'):
        assert timed_fetch(served, target)[0] == throttled
    assert '"nonsense" is not a size' in served.server.errors()


def test_head_and_disconnection_during_a_throttled_body(served, throttled):
    client = served.connect()
    response = client.fetch('HEAD', '/throttled.bin', [])
    assert response.status == 200 and response.headers['content-length'] == str(SIZE)
    client.send('GET /throttled.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    client.fill()
    client.close()
    assert timed_fetch(served, '/bytes')[1] == 3000


def test_other_clients_are_not_throttled(served, throttled):
    slow = served.connect()
    slow.send('GET /throttled.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
    quick = served.connect()
    assert quick.get('/one.txt').status == 200
    quick.close()
    slow.close()
