"""auth_basic with real hashes and clients: credentials, the number of hash computations, and other requests during a slow hash."""
import base64
import concurrent.futures
import os
import subprocess

import pytest

from kit.lifetime import wait_for
from kit.upstream import Upstream

# Hashes of "open sesame": bcrypt with cost 4 and 12, yescrypt, and `htpasswd -nbm`.
QUICK = 'quick:$2y$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy\n'
SLOW = 'slow:$2y$12$abcdefghijklmnopqrstuuq2uHH4t8IjTa8PV9VUUF1vssBH6WaR2\n'
YES = 'yes:$y$j7T$abcdefghijklmnop$tuhKAXxK3ivTx8JKk9zEG0FkymOYgcnmkCtX1ub3bm2\n'
APR1 = 'apr1:$apr1$wjftKpe/$xN5.8OhjwSSEYeHOg/uoB.\n'


@pytest.fixture
def users(tmp_path):
    path = tmp_path / 'users'
    path.write_text(QUICK + SLOW + YES + APR1)
    path.chmod(0o644)
    return path


@pytest.fixture
def served(launch, loop, transport, users):
    return launch(loop, transport, server={'location': {
        '/': {'return': '200 open'},
        '/in': {'auth_basic': 'Members', 'auth_basic_user_file': str(users), 'return': '200 "in $remote_user"'},
        '/any': {'satisfy': 'any', 'deny': 'all', 'auth_basic': 'Members', 'auth_basic_user_file': str(users), 'return': '200 in'},
        '/subrequest': {'satisfy': 'any', 'auth_request': '/no', 'auth_basic': 'Members', 'auth_basic_user_file': str(users),
                        'return': '200 in'},
        '/no': {'internal': 'on', 'return': '403'},
    }})


def credentials(user, password='open sesame'):
    return [('Authorization', 'Basic ' + base64.b64encode(f'{user}:{password}'.encode()).decode())]


def fetch(served, target, fields=()):
    client = served.connect(timeout=60)
    try:
        return client.fetch('GET', target, list(fields))
    finally:
        client.close()


def test_credentials_decide_the_status(served):
    refused = fetch(served, '/in')
    assert refused.status == 401
    assert refused.headers['www-authenticate'] == 'Basic realm="Members", charset="UTF-8"'
    for user in ('quick', 'slow', 'yes', 'apr1'):
        response = fetch(served, '/in', credentials(user))
        assert response.status == 200 and response.body == f'in {user}'.encode()
        assert fetch(served, '/in', credentials(user, 'open sesamf')).status == 401
    assert fetch(served, '/in', credentials('nobody')).status == 401
    for target in ('/any', '/subrequest'):
        assert fetch(served, target).status == 401
        assert fetch(served, target, credentials('quick')).status == 200
    assert 'user "quick": password mismatch' in served.server.errors()
    assert 'user "nobody" was not found in' in served.server.errors()
    assert 'sesam' not in served.server.output()


def test_curl_authenticates(served):
    def curl(*more):
        return subprocess.run(['curl', '-sk', '-o', os.devnull, '-w', '%{http_code}', *more, served.url('/in')],
                              capture_output=True, check=True, text=True).stdout
    assert curl('-u', 'quick:open sesame') == '200'
    assert curl('-u', 'quick:open') == '401'
    assert curl() == '401'


def own_demand(peer):
    peer.send('HTTP/1.1 200 OK\r\nWWW-Authenticate: Bearer\r\nContent-Length: 3\r\n\r\nown')
    return True


def test_error_page_of_an_upstream_has_www_authenticate(launch, loop, transport, users):
    """A 401 has WWW-Authenticate (RFC 9110 15.5.2) exactly once, also if an upstream server produces the error page."""
    application = Upstream({'/own': own_demand})
    closed = {'auth_basic': 'Members', 'auth_basic_user_file': str(users)}
    to = {'proxy_pass': f'http://127.0.0.1:{application.port}'}
    served = launch(loop, transport, server={'location': {
        '/in': {**closed, 'error_page': '401 /page'}, '/too': {**closed, 'error_page': '401 @named'}, '/own-in': {**closed, 'error_page': '401 /own'},
        '/page': to, '/own': to, '@named': to}})
    for target, body in (('/in', b'one GET /page\n'), ('/too', b'one GET /too\n')):
        response = fetch(served, target)
        assert (response.status, response.body) == (401, body)
        assert response.headers['www-authenticate'] == 'Basic realm="Members", charset="UTF-8"'
    response = fetch(served, '/own-in')
    assert (response.status, response.body, response.headers['www-authenticate']) == (401, b'own', 'Bearer')
    application.stop()


def test_parallel_requests_hash_the_password_once(served):
    fetch(served, '/')
    before = served.server.ticks()
    assert fetch(served, '/in', credentials('slow')).status == 200
    once = served.server.ticks() - before
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(lambda _: fetch(served, '/in', credentials('slow')).status, range(50)))
    assert responses == [200] * 50
    # Fifty connections also cost time, but far less than fifty hashes of a quarter of a second each.
    assert served.server.ticks() - before < max(once, 1) * 12 + 100


def test_password_hash_delays_no_other_request(served):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        wrong = [pool.submit(fetch, served, '/in', credentials('slow', f'wrong {number}')) for number in range(8)]
        quick = [fetch(served, '/').status for _ in range(20)]
        waited = sum(not one.done() for one in wrong)
        assert quick == [200] * 20
        assert waited > 0, 'the hashes were complete before any other response'
        assert [one.result().status for one in wrong] == [401] * 8


def test_changed_password_file_is_read_again(served, users):
    assert fetch(served, '/in', credentials('quick')).status == 200
    users.write_text(YES)
    wait_for(lambda: fetch(served, '/in', credentials('quick')).status == 401, 'the file is read again')
    assert fetch(served, '/in', credentials('yes')).status == 200
    users.unlink()
    wait_for(lambda: fetch(served, '/in', credentials('yes')).status == 403, 'access without a password file')
    users.write_text(QUICK)
    users.chmod(0o644)
    wait_for(lambda: fetch(served, '/in', credentials('quick')).status == 200, 'a new file')
