"""limit_except: its directives apply to methods that it does not list, independently of `when` in the location."""
import pytest

KEEPS_OUT = {'GET': {'deny': 'all'}}
SERVER = {
    'when': {'$arg_any = 1': {'return': '200 any'}},
    'location': {
        '/open/': {'return': '200 open'},
        '/read/': {'limit_except': KEEPS_OUT, 'return': '200 read'},
        '/both/': {'limit_except': {'GET POST': {'return': '405 "not so"'}}, 'return': '200 both'},
        '/let/': {'limit_except': {'GET': {'allow': '127.0.0.0/8', 'deny': 'all'}}, 'return': '200 let'},
        '/when/': {'when': {'$arg_x = 1': {'return': '200 when'}}, 'limit_except': KEEPS_OUT, 'return': '200 last'},
        '/outer/': {'limit_except': KEEPS_OUT, 'return': '200 outer', 'location': {
            '/outer/inner/': {'return': '200 inner'},
            '/outer/anew/': {'limit_except': {'GET POST': {'deny': 'all'}}, 'return': '200 anew'}}},
        r'~ ^/parts/(\w+)': {'limit_except': KEEPS_OUT, 'return': '200 "part $1"'},
    }}


@pytest.mark.parametrize('method, target, status, body', [
    ('GET', '/read/', 200, b'read'), ('HEAD', '/read/', 200, b''), ('POST', '/read/', 403, None), ('DELETE', '/read/', 403, None),
    ('POST', '/open/', 200, b'open'),
    ('POST', '/both/', 200, b'both'), ('PUT', '/both/', 405, b'not so'),
    ('POST', '/let/', 200, b'let'),
    ('GET', '/when/?x=1', 200, b'when'), ('GET', '/when/', 200, b'last'), ('POST', '/when/?x=1', 403, None),
    ('GET', '/read/?any=1', 200, b'any'), ('POST', '/read/?any=1', 200, b'any'),
    ('POST', '/outer/', 403, None), ('POST', '/outer/inner/', 403, None), ('GET', '/outer/inner/', 200, b'inner'),
    ('POST', '/outer/anew/', 200, b'anew'), ('PUT', '/outer/anew/', 403, None),
    ('GET', '/parts/one', 200, b'part one'), ('PUT', '/parts/one', 403, None),
])
def test_limit_except_applies_to_other_methods(launch, loop, transport, method, target, status, body):
    client = launch(loop, transport, server=SERVER).connect()
    response = client.fetch(method, target, [], b'x' if method in ('POST', 'PUT') else b'')
    assert response.status == status
    assert body is None or response.body == body
    client.close()
