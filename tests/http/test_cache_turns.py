"""The cache where things take another turn: errors with pages of their own, answers without an end, a purge while something is fetched."""
import os
import threading

import pytest
from kit import server as server_kit
from kit.lifetime import wait_for
from test_cache import EXPIRED, HIT, MISS, REVALIDATED, STALE, Scripted, ask, stored

HUGE = b'x' * 16_000_000    # more than any socket takes
SOON = 'Cache-Control: max-age=60, stale-while-revalidate=100\nAge: 70'


@pytest.fixture(scope='module')
def upstream():
    made = Scripted()
    yield made
    made.stop()
    assert not made.faults, made.faults


@pytest.fixture
def served(launch, loop, transport, fresh, upstream, sites):
    if (loop, transport) not in sites:
        folder = fresh()
        os.chmod(folder, 0o755)
        to = {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_cache': 'one', 'proxy_cache_key': '$uri'}
        patient = {'proxy_cache_lock': True, 'proxy_cache_lock_timeout': '100s', 'proxy_cache_lock_age': '100s'}
        location = {
            '/': to,
            '/page.html': {'return': '200 page'},
            '/patient/': {**to, **patient, 'proxy_cache_revalidate': True},
            '/huge/': {'internal': True, 'alias': f'{folder}/huge/'},
            '/stores/': {**to, 'proxy_cache_key': '$arg_of', 'proxy_cache_revalidate': True},
            '/caught/': {**to, 'proxy_cache_key': '$arg_of', 'proxy_cache_revalidate': True, 'proxy_intercept_errors': True,
                         'error_page': '404 =404 /page.html'},
            '/small/': {**to, 'proxy_cache': 'small', **patient},
            '/purge/': {**to, 'proxy_cache_purge': 'PURGE 127.0.0.1'},
            '/away/': {'error_page': '404 = @away'},
            '@away': {**to, 'proxy_cache_background_update': True},
            '/same/': {**to, **patient, 'proxy_cache_key': '/away/$arg_of'},
        }
        (folder / 'huge').mkdir()
        (folder / 'huge' / 'file').write_bytes(HUGE)
        http = {'proxy_cache_path': [{'path': str(folder / 'one'), 'keys_zone': 'one:1m'},
                                     {'path': str(folder / 'small'), 'keys_zone': 'small:1m', 'max_size': '300k'}]}
        sites[loop, transport] = launch(loop, transport, server={'location': location, 'add_header': 'X-Cache $upstream_cache_status always'}, http=http)
    return sites[loop, transport]


@pytest.fixture(scope='module')
def sites():
    return {}


@pytest.fixture
def client(served):
    made = served.connect(promoted=False)
    yield made
    made.close()


@pytest.fixture
def path(request, loop, transport):
    numbers = iter(range(1000))

    def make(prefix='/'):
        return f'{prefix}{loop}-{transport}-{abs(hash(request.node.name))}-{next(numbers)}'
    return make


@pytest.mark.parametrize('said, how', [('', HIT), ('\nETag: "a"', REVALIDATED)])
def test_an_error_out_of_the_cache_has_its_page(client, upstream, path, said, how):
    """Stored by a location that passes it on, and asked for by one that has a page for it."""
    name = path('')
    target, told = f'/stores/?of={name}', f'/caught/?of={name}'
    age = '70' if how == REVALIDATED else '0'
    upstream.answers[target] = f'Status: 404\nCache-Control: max-age=60, stale-if-error=100\nAge: {age}{said}'
    upstream.answers[told] = 'Status: 304\nETag: "a"'
    assert ask(client, target).body == f'{target} 1'.encode()
    wait_for(lambda: ask(client, target, 'Cache-Control: only-if-cached, max-stale').status == 404, 'it is stored')
    answer = ask(client, told)
    assert (answer.status, answer.body, answer.headers['x-cache']) == (404, b'page', how)
    assert len(upstream.asked(told)) == (how == REVALIDATED)
    assert ask(client, target, 'Cache-Control: max-stale').body == f'{target} 1'.encode()


def test_an_answer_without_an_end_is_not_stored(client, served, upstream, path):
    """It goes on to its client whole; of the cache's folder it takes no more than max_size, and whoever waited asks for himself."""
    target = path('/small/')
    more, first, piece = threading.Event(), threading.Event(), b'x' * 65536

    def say(talk):
        talk.read_body()
        talk.send('HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n')
        for number in range(16):
            talk.send(b'%x\r\n%s\r\n' % (len(piece), piece))
            if number == 12 and not first.is_set():
                first.set()
                more.wait(20 * server_kit.PATIENCE)
        talk.send('0\r\n\r\n')
        return True
    upstream.answers[target] = say
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.head().status == 200
    other = served.connect(promoted=False)
    # Thirteen pieces are past max_size: the right to fetch has been given back, though the answer is not over.
    for _ in range(13):
        client.take(int(client.line(), 16) + 2)
    assert ask(other, target).body == piece * 16
    more.set()
    client.chunked()
    assert ask(other, target).headers['x-cache'] == MISS
    other.close()


@pytest.mark.parametrize('how', ['it still holds', 'it stands elsewhere'])
def test_nobody_waits_for_a_client_that_is_slow(client, served, upstream, path, how):
    """Once it is known what the answer is, the right to fetch is given back, however long the client takes to have it."""
    target = path('/patient/')
    told, go = threading.Event(), threading.Event()
    first = how == 'it stands elsewhere'

    def say(talk):
        if not first and len(upstream.asked(target)) == 1:
            return upstream.tell(talk, 'Cache-Control: max-age=60, stale-if-error=1\nAge: 70\nETag: "a"', HUGE)
        told.set()
        assert go.wait(20 * server_kit.PATIENCE)
        return upstream.tell(talk, 'X-Accel-Redirect: /huge/file' if first else 'Status: 304\nETag: "a"\nCache-Control: max-age=60', b'')
    upstream.answers[target] = say
    if not first:
        assert ask(client, target).body == HUGE
        wait_for(lambda: ask(client, target, 'Cache-Control: only-if-cached, max-stale').status == 200, 'it is stored')
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert told.wait(20 * server_kit.PATIENCE)
    other = served.connect(promoted=False)
    other.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    third = served.connect(promoted=False)
    assert ask(third, '/page.html').body == b'page'     # so the one before it has been looked at
    go.set()
    assert client.head().status == 200
    assert other.read().body == HUGE
    for one in (other, third):
        one.close()


def test_what_was_asked_for_before_a_purge_is_not_stored(client, served, upstream, path):
    target = path('/purge/')
    told, go = threading.Event(), threading.Event()

    def say(talk):
        if len(upstream.asked(target)) > 1:
            return upstream.tell(talk, 'Cache-Control: max-age=60', b'new')
        told.set()
        assert go.wait(20 * server_kit.PATIENCE)
        return upstream.tell(talk, 'Cache-Control: max-age=60', b'old')
    upstream.answers[target] = say
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert told.wait(20 * server_kit.PATIENCE)
    other = served.connect(promoted=False)
    assert ask(other, target, method='PURGE').status == 404
    go.set()
    assert client.read().body == b'old'
    answer = ask(client, target)
    while answer.headers['x-cache'] != HIT:     # stored behind the answer
        assert answer.body == b'new'
        answer = ask(client, target)
    assert answer.body == b'new'
    other.close()


def test_an_unsafe_method_is_a_purge(client, served, upstream, path):
    """The same with Vary, where names and answers lie apart."""
    target = path()
    told, go = threading.Event(), threading.Event()

    def say(talk):
        if talk.request.method == 'POST' or len(upstream.asked(target)) > 2:
            return upstream.tell(talk, 'Cache-Control: max-age=60\nVary: X-V', b'new')
        told.set()
        assert go.wait(20 * server_kit.PATIENCE)
        return upstream.tell(talk, 'Cache-Control: max-age=60\nVary: X-V', b'old')
    upstream.answers[target] = say
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nX-V: 1\r\n\r\n')
    assert told.wait(20 * server_kit.PATIENCE)
    other = served.connect(promoted=False)
    assert ask(other, target, method='POST').status == 200
    go.set()
    assert client.read().body == b'old'
    answer = ask(client, target, 'X-V: 1')
    while answer.headers['x-cache'] != HIT:
        assert answer.body == b'new'
        answer = ask(client, target, 'X-V: 1')
    assert answer.body == b'new'
    other.close()


def test_an_update_stays_where_its_parent_stood(client, served, upstream, path):
    """In a named location, which no URI leads to; and whoever waits for the right to fetch gets it when that is over."""
    target = path('/away/')
    upstream.answers[target] = SOON
    assert ask(client, target).headers['x-cache'] == MISS
    stored(client, target)
    assert ask(client, target).headers['x-cache'] == STALE
    wait_for(lambda: len(upstream.asked(target)) >= 2, 'the update')
    other = '/same/?of=' + target[len('/away/'):]
    upstream.answers[other] = 'Cache-Control: max-age=60'
    wait_for(lambda: ask(client, other).headers['x-cache'] == EXPIRED, 'the right to fetch')
