"""The actions of ../http/kit/hostile_tls.py during a promoted body, while another connection receives a promoted body."""
import hashlib

import kernel
import pytest
from kit import hostile_tls


def sha256(body):
    return hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize('name', [name for name in hostile_tls.ACTIONS if name != 'key updates without end'])
def test_hostile_action_ends_its_own_connection_only(start, www, loop, name):
    action, words = hostile_tls.ACTIONS[name]
    server, port = start(loop, 'on')
    promoted = kernel.counters()['TlsTxSw']
    other, client = hostile_tls.connect(port, 300), hostile_tls.connect(port, 300)
    other.send('GET /8m HTTP/1.1\r\nHost: localhost\r\n\r\n')
    head = other.head()
    before = len(hostile_tls.lines(server))
    client.send('GET /16m HTTP/1.1\r\nHost: localhost\r\n\r\n')
    client.read_exactly(1 << 20)
    assert kernel.counters()['TlsTxSw'] - promoted == 2
    try:
        action(client.stream)
    except OSError:
        pass                                          # the server closed before everything was sent
    assert hostile_tls.ends(client)
    assert not client.stream.closed, 'an interrupted response must not look complete'
    client.close()
    assert words in hostile_tls.only_line(server, before)
    assert sha256(other.read_exactly(int(head.headers['content-length']))) == www['8m']
    assert sha256(other.get('/1m').body) == www['1m']
    other.close()
    assert kernel.counters()['TlsTxSw'] - promoted == 2 and kernel.counters()['TlsRxSw'] == 0
