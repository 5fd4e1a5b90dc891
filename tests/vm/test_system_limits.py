"""The kernel's limit of open files, which all processes share (fs.file-max): ENFILE. No other part runs meanwhile."""
import contextlib
import os
import socket

from kit import http1, server as server_kit
from kit.exhaustion import Answers, assert_one_line_per_second, seconds_of, serves
from kit.lifetime import wait_for
import pytest

FILE_MAX = '/proc/sys/fs/file-max'


@pytest.fixture
def limit_open_files():
    """limit_open_files(number) -> the kernel opens this number of further files for processes without root privileges."""
    before = server_kit.read_text(FILE_MAX)

    def write(text):
        with open(FILE_MAX, 'w', encoding='ascii') as stream:
            stream.write(text)

    def limit(number):
        write(str(int(server_kit.read_text('/proc/sys/fs/file-nr').split()[0]) + number) if number is not None else before)
    yield limit
    limit(None)


def send_incomplete_requests(port, count):
    """Connections in the middle of a request."""
    connections = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            connections.append(socket.create_connection(('127.0.0.1', port), timeout=5 * server_kit.PATIENCE))
            connections[-1].sendall(b'GET /1k HTTP/1.1\r\n')
    return connections


def test_a_full_table_of_open_files(www, tmp_path, loop, limit_open_files):
    os.chmod(tmp_path, 0o755)
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'server', [{'listen': f'127.0.0.1:{port}', 'root': www['folder']}], loop=loop, main={
        'worker_processes': 2, 'user': 'nobody'}, http={'client_header_timeout': '600s', 'open_file_cache': 'off'})
    os.chmod(server.folder, 0o755)
    server.start([port])
    try:
        wait_for(lambda: ' runs, ' in server.errors() and serves(port, '/1k'), 'every worker is ready')
        workers = set(server.workers())
        limit_open_files(64)                        # the connections of root, both ends of which count, may exceed the limit
        connections = send_incomplete_requests(port, 100)
        load = Answers(lambda: http1.connect(port, timeout=2 * server_kit.PATIENCE), ['/1k'])
        wait_for(lambda: seconds_of('Too many open files in system', server.errors()) >= 3, 'no file can be opened')
        limit_open_files(None)
        load.stop()
        for one in connections:
            one.close()
        wait_for(lambda: all(serves(port, '/1k') for _ in range(20)), 'it serves again')
        assert_one_line_per_second(server.errors())
        assert set(server.workers()) == workers
    finally:
        server.stop()
