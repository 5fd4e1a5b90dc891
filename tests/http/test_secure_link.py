"""secure_link with hashes computed by openssl, as in its reference."""
import subprocess
import time

import pytest


@pytest.fixture
def served(launch, loop, transport):
    return launch(loop, transport, server={'secure_link': '$arg_sum,$arg_expires', 'location': {
        '/': {},
        '/new/': {'secure_link_sha256': '$secure_link_expires$uri$remote_addr secret', 'secure_link_required': True, 'return': '200 in'},
        '/old/': {'secure_link_md5': '$secure_link_expires$uri$remote_addr secret', 'secure_link_required': True, 'return': '200 in'},
    }})


def sum_of(text, kind):
    made = subprocess.run(f'openssl {kind} -binary | basenc --base64url | tr -d =\\\\n', shell=True, input=text.encode(),
                          capture_output=True, check=True)
    return made.stdout.decode()


def fetch(served, target):
    client = served.connect()
    try:
        return client.fetch('GET', target, []).status
    finally:
        client.close()


@pytest.mark.parametrize('path, kind', [('/new/a', 'sha256'), ('/old/a', 'md5')])
def test_signature_and_expiry_decide(served, path, kind):
    later, gone = int(time.time()) + 3600, int(time.time()) - 10
    good = sum_of(f'{later}{path}127.0.0.1 secret', kind)
    assert fetch(served, f'{path}?sum={good}&expires={later}') == 200
    assert fetch(served, f'{path}?sum={good}&expires={later + 1}') == 403
    assert fetch(served, f'{path}b?sum={good}&expires={later}') == 403
    assert fetch(served, f'{path}?sum={good[:-1]}&expires={later}') == 403
    assert fetch(served, f'{path}?expires={later}') == 403
    assert fetch(served, path) == 403
    over = sum_of(f'{gone}{path}127.0.0.1 secret', kind)
    assert fetch(served, f'{path}?sum={over}&expires={gone}') == 410
