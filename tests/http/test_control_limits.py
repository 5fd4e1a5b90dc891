"""`sluice ctl limits`: the zones of limit_req and limit_conn, and the keys that were limited last."""
import socket

import pytest
from kit.lifetime import wait_for
from kit.load import load
from test_control import controlled  # pylint: disable=unused-import


def start(controlled, rate='1r/m', key='$arg_key', **location):
    http = {'limit_req_zone': f'{key} zone=requests:1m rate={rate}', 'limit_conn_zone': '$binary_remote_addr zone=connections:1m'}
    return controlled.start(http=http, location={'/': location or {'limit_req': 'zone=requests'}})


def statuses(controlled, *paths):
    return [controlled.get(path).status for path in paths]


def zones(controlled):
    return {row['zone']: row for row in controlled.ctl('limits')}


def limited(controlled):
    return [(row['zone'], row['key'], row['delayed'], row['rejected']) for row in controlled.ctl('limits', 'keys')]


def test_zones_and_keys(controlled):
    start(controlled)
    assert controlled.ctl('limits', 'keys') == []
    assert statuses(controlled, '/one.txt?key=a', '/one.txt?key=b', '/one.txt?key=a', '/one.txt?key=a', '/one.txt') == [200, 200, 429, 429, 200]
    requests, connections = zones(controlled)['requests'], zones(controlled)['connections']
    assert (requests['limit'], requests['key'], requests['keys'], requests['delayed'], requests['rejected']) == ('limit_req', '$arg_key', 2, 0, 2)
    assert requests['keys_max'] > 1000
    assert (connections['limit'], connections['keys'], connections['rejected']) == ('limit_conn', 0, 0)
    [row] = controlled.ctl('limits', 'keys')
    assert row == {'zone': 'requests', 'key': 'a', 'delayed': 0, 'rejected': 2, 'last': row['last']} and row['last'].startswith('20')
    assert statuses(controlled, '/one.txt?key=b') == [429]
    assert limited(controlled) == [('requests', 'b', 0, 1), ('requests', 'a', 0, 2)]  # the last one first
    table = controlled.run('limits', 'keys').stdout.split('\n')
    assert table[0].split() == ['zone', 'key', 'delayed', 'rejected', 'last'] and table[1].split()[:2] == ['requests', 'b']
    controlled.reload()
    assert limited(controlled) == [('requests', 'b', 0, 1), ('requests', 'a', 0, 2)]


def test_delayed(controlled):
    start(controlled, rate='20r/s', limit_req='zone=requests burst=5')
    assert statuses(controlled, *['/one.txt?key=a'] * 3) == [200] * 3
    [(zone, key, delayed, rejected)] = limited(controlled)
    assert (zone, key, rejected) == ('requests', 'a', 0) and 1 <= delayed <= 2


def test_dry_run(controlled):
    start(controlled, limit_req='zone=requests', limit_req_dry_run='on')
    assert statuses(controlled, *['/one.txt?key=a'] * 3) == [200] * 3
    assert limited(controlled) == [('requests', 'a', 0, 2)]


def test_connections_by_address(controlled):
    """Requests count until their slow responses end."""
    start(controlled, limit_conn='connections 2', limit_rate='1k')
    streams = [socket.create_connection(('127.0.0.1', controlled.port), timeout=30) for _ in range(2)]
    for stream in streams:
        stream.sendall(b'GET /1048576.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
        assert stream.recv(12, socket.MSG_WAITALL) == b'HTTP/1.1 200'
    assert controlled.get().status == 429
    [(zone, key, delayed, rejected)] = limited(controlled)
    assert (zone, key, delayed) == ('connections', '127.0.0.1', 0) and rejected >= 1
    for stream in streams:
        stream.close()
    wait_for(lambda: controlled.get().status == 200, 'the requests have ended')


@pytest.mark.parametrize('key, shown', [('"\\{}', '"\\{}'), ('x' * 100, 'x' * 64), ('\u00e4', None)])
def test_bytes_of_keys(controlled, key, shown):
    """Keys are shown as JSON texts, also if they are not UTF-8; of long ones the beginning."""
    start(controlled, key='$http_x_key')
    responses = [controlled.get(**{'X-Key': key}).status for _ in range(2)]
    assert responses == [200, 429]
    [(_, found, _, rejected)] = limited(controlled)
    assert rejected == 1 and found and (found == shown or not shown)


def test_under_load(controlled):
    """The list has the last 64 keys, while other clients send requests."""
    start(controlled)
    with load(controlled.port, '/one.txt') as clients:
        for count in range(80):
            assert statuses(controlled, *[f'/one.txt?key={count}'] * 2) == [200, 429]
            if count % 8 == 0:
                assert limited(controlled)[0] == ('requests', str(count), 0, 1)
        clients.more()
    assert [key for _, key, _, _ in limited(controlled)] == [str(count) for count in range(79, 15, -1)]
    assert zones(controlled)['requests']['rejected'] == 80


def test_wrong_commands(controlled):
    start(controlled)
    assert '"limits" has no command "frob"' in controlled.run('limits', 'frob').stderr
    assert '"limits keys" takes 0 arguments, found 1' in controlled.run('limits', 'keys', 'x').stderr
    assert '405' in controlled.request('POST /v1/limits HTTP/1.0').split('\r\n')[0]
