"""limit_conn in stream: counted by all workers together, and released by every kind of end."""
import contextlib
import os
import signal
import socket
import struct

import pytest
from kit import server as server_kit
from kit.lifetime import wait_for
from test_stream import UpstreamServer, echo

LINGER = struct.pack('ii', 1, 0)


class Limited:
    def __init__(self, loop, folder, upstreams):
        self.ports = {name: server_kit.free_port() for name in ('two', 'own', 'dry', 'free', 'text', 'http')}

        def on(name, **rest):
            return {'listen': f'127.0.0.1:{self.ports[name]}', 'proxy_pass': upstreams.address, **rest}
        text = on('text', **{'return': 'hello', 'limit_conn': 'keyed 1'})
        del text['proxy_pass']
        self.server = server_kit.Server(folder, [{'listen': f'127.0.0.1:{self.ports["http"]}', 'location': {
            '/': {'return': '200 ok', 'limit_conn': 'addr 1'}}}], loop=loop, http={'limit_conn_zone': '$arg_key zone=addr:1m'}, main={
                'worker_processes': 2, 'stream': {
                    'limit_conn_zone': ['$binary_remote_addr zone=addr:1m', {'key': '$server_port', 'zone': 'keyed:1m'}],
                    'limit_conn': 'addr 2',
                    'server': [on('two'), on('own', limit_conn='keyed 1'), on('dry', limit_conn='keyed 1', limit_conn_dry_run=True),
                               on('free', limit_conn={'addr': 1000}), text]}})
        self.server.start([self.ports['http']])
        wait_for(lambda: ' runs, ' in self.server.errors(), 'every worker is ready')

    def connect(self, name):
        stream = socket.create_connection(('127.0.0.1', self.ports[name]))
        stream.settimeout(30 * server_kit.PATIENCE)
        return stream

    def serves(self, stream):
        """True if the echo of a byte arrives; False if the connection has ended."""
        with contextlib.suppress(OSError):
            stream.sendall(b'x')
            return stream.recv(1) == b'x'
        return False

    def is_accepted(self, name):
        with self.connect(name) as stream:
            return self.serves(stream)


@pytest.fixture(params=server_kit.os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split())
def limited(request, new_directory):
    upstreams = UpstreamServer(echo)
    made = Limited(request.param, new_directory(), upstreams)
    yield made
    made.server.stop()
    upstreams.listener.close()


def open_connections(limited, name, count):
    connections = [limited.connect(name) for _ in range(count)]
    assert all(limited.serves(stream) for stream in connections)
    return connections


def test_limit_conn_rejects_excess_connections(limited):
    first, second = open_connections(limited, 'two', 2)
    assert not limited.is_accepted('two')
    assert 'limiting connections by zone "addr"' in limited.server.errors()
    assert 'rejected with 503 by module limit_conn' in limited.server.errors()
    assert limited.is_accepted('free')                     # the directive of the server replaces the outer one
    first.close()
    wait_for(lambda: limited.is_accepted('two'), 'the place of the closed connection')
    second.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
    second.close()
    assert len(wait_for(lambda: hold_or_none(limited), 'both places')) == 2


def hold_or_none(limited):
    connections = [limited.connect('two') for _ in range(2)]
    if all(limited.serves(stream) for stream in connections):
        return connections
    for stream in connections:
        stream.close()
    return None


def test_limit_conn_zones_and_keys(limited):
    connections = open_connections(limited, 'own', 1)
    assert not limited.is_accepted('own')
    connections += open_connections(limited, 'dry', 3)
    assert 'limiting connections, dry run by zone "keyed"' in limited.server.errors()
    with limited.connect('text') as stream:
        assert stream.recv(100) == b'hello'
    wait_for(lambda: limited.connect('text').recv(100) == b'hello', 'the text again')
    for stream in connections:
        stream.close()


def test_killed_worker_releases_its_counts(limited):
    connections = open_connections(limited, 'two', 2)
    assert not limited.is_accepted('two')
    for worker in limited.server.workers():
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: limited.server.errors().count('exited on signal 9') == 2, 'both workers are dead')
    wait_for(lambda: len(limited.server.workers()) == 2, 'their successors')
    wait_for(lambda: limited.is_accepted('two'), 'places are free')
    for stream in connections:
        stream.close()


@pytest.mark.parametrize('stream, output', [
    ({'limit_conn': 'addr 1'}, 'there is no limit_conn_zone "addr"'),       # zones of http are not visible in stream
    ({'limit_conn': 'addr'}, 'a zone and a number'),
    ({'limit_conn_zone': '$arg_key zone=other:1m'}, 'arg_key'),
    ({'limit_conn_zone': ['$remote_addr zone=a:1m', '$remote_addr zone=a:1m']}, 'already used by another zone')])
def test_invalid_configurations_are_rejected(tmp_path, stream, output):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path, [{'listen': f'127.0.0.1:{port}'}], http={'limit_conn_zone': '$arg_key zone=addr:1m'},
                               main={'stream': {'server': {'listen': f'127.0.0.1:{server_kit.free_port()}', 'return': 'x'}, **stream}})
    with pytest.raises(RuntimeError) as error:
        server.start([port])
    assert output in str(error.value)
