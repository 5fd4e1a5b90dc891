"""set, map, geo, rewrite and when over each transport."""
import subprocess

import pytest

HTTP = {
    'map': {'$http_user_agent $kind': {'default': 'person', '~*(bot|spider)': 'robot: $1'},
            '$host $site': {'hostnames': 'on', 'default': 'main', '*.wild.test': 'wild'}},
    'geo': {'$near': {'default': 'no', '127.0.0.0/8': 'yes'}},
}
SERVER = {
    'rewrite': '^/v1/(.*)$ /v2/$1',
    'location': {
        '/kind': {'return': '200 "$kind, $site, $near"'},
        '/v2/': {'return': '200 "$uri?$args"'},
        '/old/': {'rewrite': '^/old/(.*)$ /new/$1 permanent'},
        '/spin/': {'rewrite': '^ /spin/more last'},
        '/form': {'when': {'$request_method = POST and $content_type ~ json': {'return': '200 taken'},
                           '$request_method = POST': {'return': '415 "send JSON"'}}, 'return': '200 form'},
        '/door': {'set': '$state open', 'when': {'-f $document_root/one.txt': {'set': '$state shut'}}, 'return': '200 $state'},
    }}


@pytest.fixture
def served(launch, loop, transport):
    return launch(loop, transport, http=HTTP, server=SERVER)


@pytest.fixture
def client(served):
    made = served.connect()
    yield made
    made.close()


def test_map_and_geo_set_variables(client):
    assert client.get('/kind').body == b'person, main, yes'
    assert client.get('/kind', User_Agent='A Spider of sorts').body == b'robot: Spider, main, yes'
    assert client.fetch('GET', '/kind', [('Host', 'a.wild.test')]).body == b'person, wild, yes'


def test_rewrite_rules_replace_or_redirect(client):
    assert client.get('/v1/a%20b?x=1').body == b'/v2/a b?x=1'
    response = client.get('/old/p%3Fq?x=1')
    assert response.status == 301 and response.headers['location'] == '/new/p%3Fq?x=1'
    assert client.get('/spin/').status == 500
    assert client.alive()


def test_when_conditions_select_the_response(client):
    assert client.get('/form').body == b'form'
    assert client.fetch('POST', '/form', [('Content-Type', 'application/json')], b'{}').body == b'taken'
    response = client.fetch('POST', '/form', [('Content-Type', 'text/plain')], b'{}')
    assert response.status == 415 and response.body == b'send JSON'
    assert client.get('/door').body == b'shut'
    assert client.alive()


def test_curl_follows_the_redirect(served):
    output = subprocess.run(['curl', '-skL', '--max-redirs', '3', '-w', ' %{http_code} %{num_redirects}', served.url('/old/one.txt')],
                          capture_output=True, text=True, timeout=30, check=True).stdout
    assert output.endswith(' 404 1')


def test_server_conditions_do_not_apply_in_named_locations(launch, loop, transport):
    served = launch(loop, transport, server={'when': {'$uri ~ ^/in/': {'return': '403'}}, 'location': {
        '/go': {'rewrite': '^ /in/y break', 'try_files': ['/nothing', '@named']}, '@named': {'return': '200 "named $uri"'}, '/in/': {}}})
    client = served.connect()
    assert client.get('/go').body == b'named /in/y' and client.get('/in/y').status == 403
    client.close()
