"""The key of a cached response, and its variants (RFC 9111 4.1)."""
import pytest
from cache_site import HIT, MISS, client, fetch, path, served, sites, stored, upstream, wait_for_storing  # pylint: disable=unused-import


def test_proxy_cache_key_selects_the_entry(client, upstream, path):
    target = path('/key/')
    upstream.answers[target + '?a'] = 'Cache-Control: max-age=60'
    fetch(client, target + '?a')
    stored(client, target + '?a')
    assert fetch(client, target + '?b').headers['x-cache'] == HIT


def test_vary_variants_are_stored_separately(client, upstream, path):
    target = path()
    upstream.answers[target] = 'Cache-Control: max-age=60\nVary: Accept-Language'
    bodies = {}
    for language in ('de', 'en', 'fr'):
        bodies[language] = fetch(client, target, f'Accept-Language: {language}').body
        stored(client, target, f'Accept-Language: {language}')
    assert len(set(bodies.values())) == 3 and len(upstream.requests_of(target)) == 3
    for language, body in bodies.items():
        response = fetch(client, target, f'Accept-Language: {language}')
        assert response.headers['x-cache'] == HIT and response.body == body


def test_forwarded_host_is_part_of_the_key(served, client, upstream, path):
    target = path()
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60', peer.request.header('x-forwarded-host').encode())

    def fetch_with_session(host):
        client.send(f'GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n')
        return client.read('GET')
    for host in ('evil.example', 'localhost:81', 'localhost'):
        first = fetch_with_session(host)
        assert (first.headers['x-cache'], first.body) == (MISS, host.encode())
    client.send(f'GET http://localhost:82{target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert client.read('GET').body == b'localhost:82'
    stored(client, target)
    assert fetch(client, target).body == b'localhost'


@pytest.mark.parametrize('name', ['X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Port'])
def test_trusted_forwarded_fields_are_part_of_the_key(client, upstream, path, name):
    """The redirect for http must not be served for https: X-Forwarded fields are part of the key if they come from a trusted proxy."""
    for prefix, expected in (('/trusted/', ['a', 'b', 'b']), ('/', None)):
        target = path(prefix)
        upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60', (peer.request.header(name) or '').encode())
        responses = []
        for value in ('a', 'b', 'b'):
            responses.append(fetch(client, target, f'{name}: {value}'))
            stored(client, target, f'{name}: {value}')
        if expected:
            assert [answer.body.decode() for answer in responses] == expected
        assert [answer.headers['x-cache'] for answer in responses] == ([MISS, MISS, HIT] if expected else [MISS, HIT, HIT])


def test_rewritten_path_is_part_of_the_key(client, upstream, path):
    target = path('/turned/')
    other = target.replace('/turned/', '/other/')
    for one in (target, other):
        upstream.answers[one] = 'Cache-Control: max-age=60'
    assert fetch(client, target, 'X-Turn: 1').body.startswith(other.encode())
    stored(client, target, 'X-Turn: 1')
    assert fetch(client, target).body.startswith(target.encode())
    stored(client, target)
    assert fetch(client, target, 'X-Turn: 1').body.startswith(other.encode())


def test_fields_removed_by_connection_do_not_select_variants(client, upstream, path):
    target = path()
    upstream.answers[target] = lambda peer: upstream.send_response(peer, 'Cache-Control: max-age=60\nVary: Accept-Language',
                                                          (peer.request.header('accept-language') or 'none').encode())
    assert fetch(client, target, 'Accept-Language: fr\nConnection: Accept-Language').body == b'none'
    wait_for_storing(0.05)
    assert fetch(client, target, 'Accept-Language: fr\nConnection: keep-alive').body == b'fr'
    stored(client, target, 'Accept-Language: fr')
    assert fetch(client, target, 'Accept-Language: fr\nConnection: Accept-Language').body == b'fr'
