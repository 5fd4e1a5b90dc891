"""The actions of kit/hostile_tls.py on idle connections and during a body; meanwhile another connection continues."""
import os

import pytest
from kit import hostile_tls, server as server_kit, site as site_kit, tls13

BODY = 16 << 20


@pytest.fixture
def served(launch, loop, new_directory, big_root):
    return launch(loop, os.environ.get('SLUICE_TLS_TRANSPORT', 'user'),
                  server={'root': big_root, 'keepalive_timeout': '60s', 'client_header_timeout': '2s'})


@pytest.fixture(scope='module')
def big_root(new_directory):
    root = str(new_directory())
    for name, size in (('16m', BODY), ('1m', 1 << 20)):
        site_kit.make_file(os.path.join(root, name), size)
    return root


def content(served, name):
    with open(os.path.join(served.root, name), 'rb') as stream:
        return stream.read()


def connect(served):
    return hostile_tls.connect(served.port, 20 * server_kit.PATIENCE)


@pytest.mark.parametrize('middle', [False, True], ids=['at rest', 'in a body'])
@pytest.mark.parametrize('deed', list(hostile_tls.ACTIONS))
def test_hostile_action_ends_its_own_connection_only(served, deed, middle):
    act, words = hostile_tls.ACTIONS[deed]
    neighbour, client = connect(served), connect(served)
    assert client.get('/1m').body == content(served, '1m')
    neighbour.send('GET /16m HTTP/1.1\r\nHost: localhost\r\n\r\n')
    head = neighbour.head()
    before = len(hostile_tls.lines(served.server))
    if middle:
        client.send('GET /16m HTTP/1.1\r\nHost: localhost\r\n\r\n')
        client.head()
    try:
        act(client.stream)
    except OSError:
        pass                                          # the server closed before everything was sent
    assert hostile_tls.ends(client)
    client.close()
    assert words in hostile_tls.only_line(served.server, before)
    assert neighbour.read_exactly(int(head.headers['content-length'])) == content(served, '16m')
    assert neighbour.get('/1m').body == content(served, '1m')
    neighbour.close()


def test_incomplete_record_times_out(served):
    """client_header_timeout ends an incomplete record."""
    neighbour, client = connect(served), connect(served)
    for each in (neighbour, client):
        assert each.get('/1m').body == content(served, '1m')
    client.send('GET /1m HTTP/1.1\r\n')
    client.stream.sock.sendall(b'\x17\x03\x03\x01\x00' + bytes(100))
    assert hostile_tls.ends(client)
    client.close()
    assert neighbour.get('/1m').body == content(served, '1m')
    neighbour.close()


def test_alert_description_of_each_action(served):
    for deed, description in (('a forged record', 20), ('a record that is too long', 22), ('key updates without end', 10)):
        client = connect(served)
        client.get('/1m')
        try:
            hostile_tls.ACTIONS[deed][0](client.stream)
        except OSError:
            continue                                  # a reset destroyed the alert
        try:
            with pytest.raises(tls13.TlsAlert) as error:
                client.read()
            assert error.value.description == description
        except OSError:
            pass
        client.close()
