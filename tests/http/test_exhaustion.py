"""Resources that run out: the service degrades, each cause is logged once per second, and the server recovers without a restart."""
import collections
import contextlib
import ctypes
import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time

import pytest

from kit import http1, server as server_kit
from kit.exhaustion import Answers, assert_one_line_per_second, seconds_of, serves
from kit.lifetime import signal_and_wait, wait_for

SLOW = int(os.environ.get('SLUICE_SLOW', '1000'))      # slow clients
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason='needs root for namespaces')
PLAIN_BUILD = pytest.mark.skipif(b'__asan_init' in open(server_kit.SLUICE, 'rb').read(), reason='sanitizers end a process without memory')
CLONE_NEWNET = 0x40000000


def send_incomplete_requests(port, count, field):
    """Connections that have sent an incomplete request with a long field."""
    connections = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            connections.append(socket.create_connection(('127.0.0.1', port), timeout=5))
            connections[-1].sendall(f'GET /one.txt HTTP/1.1\r\n{field}'.encode())
    return connections


def test_clients_are_rejected_without_free_descriptors(start, loop):
    """Clients in the middle of a request hold all descriptors: none can be reclaimed, and other clients are rejected."""
    server = start(loop, wait=False, worker_processes=2, http={'client_header_timeout': '60s'})
    server.command_prefix = ['prlimit', '--nofile=100:100']
    server.start([server.plain])
    connections = send_incomplete_requests(server.plain, 250, '')
    load = [Answers(lambda: http1.connect(server.plain, timeout=5), ['/one.txt']) for _ in range(2)]
    wait_for(lambda: seconds_of('Too many open files', server.errors()) >= 3, 'no descriptor left')
    for thread in load:
        thread.stop()
    for one in connections:
        one.close()
    wait_for(lambda: all(serves(server.plain) for _ in range(20)), 'it serves again')
    assert_one_line_per_second(server.errors())
    assert signal_and_wait(server, 15) == 0


@PLAIN_BUILD
def test_failed_allocations_leave_the_worker_running(start, loop):
    """RLIMIT_AS of a running worker: allocations fail, and the worker continues to run."""
    server = start(loop, user='root root', http={'open_file_cache': 'off', 'large_client_header_buffers': '8 64k'})
    worker, = server.workers()
    before = resource.prlimit(worker, resource.RLIMIT_AS)
    field = 'X-Long: ' + 'x' * 30000 + '\r\n'
    with open(f'/proc/{worker}/statm', encoding='ascii') as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    resource.prlimit(worker, resource.RLIMIT_AS, (used + (256 << 10), before[1]))
    load = Answers(lambda: http1.connect(server.port, 'user', timeout=5), ['/one.txt', '/missing'])
    connections = send_incomplete_requests(server.plain, 400, field)
    wait_for(lambda: seconds_of('memory|Cannot allocate', server.errors()) >= 3, 'no memory left')
    counts = load.stop()
    for one in connections:
        one.close()
    resource.prlimit(worker, resource.RLIMIT_AS, before)
    wait_for(lambda: all(serves(server.plain) for _ in range(20)), 'it serves again')
    assert server.workers() == [worker], f'{server.errors()}\n{counts}'
    assert_one_line_per_second(server.errors())
    assert signal_and_wait(server, 15) == 0


class MemoryGroup:
    """A control group with a limit of its memory, in the hierarchy of version 2 or 1."""

    # hierarchy, file of the limit, file of the usage
    KINDS = [('/sys/fs/cgroup', 'memory.max', 'memory.current'), ('/sys/fs/cgroup/memory', 'memory.limit_in_bytes', 'memory.usage_in_bytes')]

    def __init__(self):
        for hierarchy, limit, usage in self.KINDS:
            path = f'{hierarchy}/sluice-test-{os.getpid()}'
            with contextlib.suppress(OSError):
                os.mkdir(path)
                if os.path.exists(f'{path}/{limit}'):
                    self.path, self.limit, self.usage = path, f'{path}/{limit}', f'{path}/{usage}'
                    self.prefix = ['sh', '-c', f'echo $$ >{path}/cgroup.procs && exec "$@"', 'sh']
                    return
                os.rmdir(path)
        pytest.skip('no control group for memory')

    def add_room(self, size):
        """Sets the limit to the present usage and `size` bytes more."""
        with open(self.limit, 'w', encoding='ascii') as stream:
            stream.write(str(int(server_kit.read_text(self.usage)) + size))

    def remove(self):
        os.rmdir(self.path)


@pytest.fixture
def memory_group():
    made = MemoryGroup()
    yield made
    made.remove()


@PLAIN_BUILD
@ROOT
def test_memory_limit_of_a_control_group(memory_group, start, loop):
    """The kernel kills the worker, which has the most memory. The master replaces it, and the replacement serves."""
    server = start(loop, wait=False, http={'large_client_header_buffers': '8 64k', 'client_header_timeout': '60s'})
    server.command_prefix = memory_group.prefix
    server.start([server.plain])
    wait_for(lambda: ' runs, ' in server.errors(), 'every worker is ready')
    worker, = server.workers()
    memory_group.add_room(8 << 20)
    load = Answers(lambda: http1.connect(server.plain, timeout=5), ['/one.txt'])
    connections = send_incomplete_requests(server.plain, 600, ('X-Long: ' + 'x' * 30000 + '\r\n') * 2)
    wait_for(lambda: f'worker process {worker} exited on signal 9' in server.errors(), 'no memory left', 30)
    for one in connections:
        one.close()
    wait_for(lambda: all(serves(server.plain) for _ in range(20)), 'it serves again')
    served = load.counts[200]
    wait_for(lambda: load.counts[200] > served + 50, 'the other clients are served')
    load.stop()
    assert_one_line_per_second(server.errors())
    assert signal_and_wait(server, 15) == 0


class FullDisk:
    """A tmpfs of 32 megabytes at `folder`, in the mount namespace of a server."""

    def __init__(self, folder):
        self.folder, self.pid = str(folder), 0
        os.mkdir(self.folder)
        self.prefix = ['unshare', '--mount', 'sh', '-c', f'mount -t tmpfs -o size=32m,mode=1777 none {self.folder} && exec "$@"', 'sh']

    def path(self, name):
        return f'/proc/{self.pid}/root{self.folder}/{name}'

    def fill(self, server):
        """Fills it. Returns the number of bytes."""
        self.pid = server.process.pid
        size = 0
        with open(self.path('filler'), 'wb', buffering=0) as stream, contextlib.suppress(OSError):
            while True:
                size += stream.write(b'x' * 4096)
        return size

    def free(self):
        os.unlink(self.path('filler'))


@pytest.fixture
def disk(tmp_path):
    probe = subprocess.run(['unshare', '--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt'], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip(f'mount namespaces: {probe.stderr.decode()}')
    return FullDisk(tmp_path / 'disk')


@ROOT
def test_full_disk_for_logs(start, loop, disk):
    server = start(loop, wait=False, error_log={'path': disk.folder + '/error.log', 'level': 'info'},
                   http={'access_log': {'path': disk.folder + '/access.log', 'flush': '20ms'}})
    server.command_prefix = disk.prefix
    server.start([server.plain])
    assert serves(server.plain)
    disk.fill(server)
    load = Answers(lambda: http1.connect(server.plain, timeout=20), ['/one.txt', '/missing'])
    wait_for(lambda: load.counts[200] > 150, 'responses without logs', 90)
    counts = load.stop()
    assert set(counts) == {200, 404}, counts
    disk.free()
    lines = len(server_kit.read_text(disk.path('access.log')).splitlines())

    def logged():
        assert serves(server.plain)
        return len(server_kit.read_text(disk.path('access.log')).splitlines()) > lines + 3
    wait_for(logged, 'new lines in the access log')
    wait_for(lambda: re.search(r'access log .*: \d+ lines dropped: No space left', server_kit.read_text(disk.path('error.log'))), 'the loss is logged')
    assert_one_line_per_second(server_kit.read_text(disk.path('error.log')))
    assert all(re.fullmatch(rf'127\.0\.0\.1 - - \[.*\] "GET \S+ {re.escape(http1.VERSION)}" \d+ \d+ "-" "-" plain plain [0-9a-f]{{32}}', line) for line in
               server_kit.read_text(disk.path('access.log')).splitlines()[lines + 1:]), 'whole lines'
    assert signal_and_wait(server, 15) == 0


BODY = bytes(range(256)) * (1 << 15)                    # 8 MB: more than the buffers of the sockets


class Source(threading.Thread):
    """An upstream server on a Unix socket. It reads the request body, and responds with BODY, with `fields` in the head."""

    def __init__(self, path, fields=''):
        super().__init__(daemon=True)
        self.path, self.fields, self.listener = path, fields, socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o777)
        self.listener.listen(256)
        self.start()

    def run(self):
        while True:
            threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, stream):
        with stream, contextlib.suppress(OSError):
            text = b''
            while b'\r\n\r\n' not in text:
                text += stream.recv(65536)
            head, rest = text.split(b'\r\n\r\n', 1)
            length = re.search(rb'(?i)content-length: (\d+)', head)
            left = int(length.group(1)) - len(rest) if length else 0
            while left > 0:
                left -= len(stream.recv(65536))
            stream.sendall(f'HTTP/1.1 200 OK\r\n{self.fields}Content-Length: {len(BODY)}\r\nConnection: close\r\n\r\n'.encode() + BODY)


def read_slowly(port, target):
    """Requests a response, and reads it after a pause in which the server buffers it. Returns True if it is BODY."""
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.settimeout(60 * server_kit.PATIENCE)
    stream.connect(('127.0.0.1', port))
    client = http1.Client(stream)
    client.send(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    time.sleep(0.3)
    response = client.read()
    client.close()
    return response.status == 200 and response.body == BODY


def send_body(port, target):
    client = http1.connect(port, timeout=60 * server_kit.PATIENCE)
    response = client.fetch('POST', target, [], BODY)
    client.close()
    return response.status == 200 and response.body == BODY


def in_parallel(count, call, *arguments):
    """Calls it in `count` threads. Returns the results."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(call(*arguments))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results + [False] * (count - len(results))


def start_proxy(start, loop, disk, location, http=None):
    server = start(loop, wait=False, http={'client_max_body_size': '16m', **(http or {})})
    server.tree['http']['server'][0]['location'] = location
    with open(server.config_path, 'w', encoding='utf-8') as stream:
        stream.write(server_kit.yaml(server.tree) + '\n')
    server.command_prefix = disk.prefix
    return server.start([server.plain])


@ROOT
def test_full_disk_for_temporary_files(start, loop, disk, tmp_path):
    """Bodies that cannot be buffered are passed on as they arrive."""
    source = Source(str(tmp_path / 'source'))
    server = start_proxy(start, loop, disk, {'/': {
        'proxy_pass': f'http://unix:{source.path}', 'proxy_temp_path': disk.folder, 'client_body_temp_path': disk.folder,
        'proxy_buffering': 'on', 'proxy_request_buffering': 'on', 'proxy_buffers': '4 8k', 'client_body_buffer_size': '8k'}})
    disk.fill(server)
    for _ in range(3):
        assert in_parallel(8, read_slowly, server.plain, '/') == [True] * 8
        assert in_parallel(8, send_body, server.plain, '/') == [True] * 8
    assert 'No space left on device' in server.errors()
    assert_one_line_per_second(server.errors())
    disk.free()
    time.sleep(1.1)                                     # a line of this second would not be logged
    before = server.errors().count('No space left')
    assert read_slowly(server.plain, '/') and send_body(server.plain, '/')
    assert server.errors().count('No space left') == before, 'bodies are buffered again'
    assert signal_and_wait(server, 15) == 0


@ROOT
def test_full_disk_for_a_cache(start, loop, disk, tmp_path):
    """Responses that cannot be stored are passed on; stored ones are served; storing begins again."""
    source = Source(str(tmp_path / 'source'), 'Cache-Control: max-age=600\r\n')
    server = start_proxy(start, loop, disk, {'/': {
        'proxy_pass': f'http://unix:{source.path}', 'proxy_cache': 'a', 'proxy_temp_path': str(tmp_path),
        'add_header': {'X-Cache': '$upstream_cache_status'}}},
        http={'proxy_cache_path': {'path': disk.folder, 'keys_zone': 'a:1m', 'max_size': '64m'}})

    def is_hit(target):
        client = http1.connect(server.plain)
        response = client.get(target)
        client.close()
        assert response.body == BODY
        return response.headers['x-cache'] == 'HIT'
    wait_for(lambda: is_hit('/before'), 'a stored response')
    disk.fill(server)
    for number in range(6):
        assert read_slowly(server.plain, f'/{number}')
    assert in_parallel(8, read_slowly, server.plain, '/again') == [True] * 8
    assert 'responses are sent without being stored' in server.errors()
    assert_one_line_per_second(server.errors())
    disk.free()
    wait_for(lambda: is_hit('/later'), 'a stored response after that')
    assert signal_and_wait(server, 15) == 0


def test_ring_entries(start, loop):
    """More operations become complete in one iteration of the loop than the ring has entries (4096), or start in it (256)."""
    count = 6000 if resource.getrlimit(resource.RLIMIT_NOFILE)[1] > 13000 else 1500
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    server = start(loop, events={'use': loop, 'worker_connections': 20000})
    clients = [socket.create_connection(('127.0.0.1', server.plain)) for _ in range(count)]
    worker, = server.workers()
    for client in clients[:64]:
        client.sendall(b'GET /one.txt HTTP/1.1\r\nHost: localhost\r\n\r\n')
        assert client.recv(4096)
    for _ in range(3):
        os.kill(worker, 19)
        for client in clients:
            client.sendall(b'GET /one.txt HTTP/1.1\r\nHost: localhost\r\n\r\n')
        os.kill(worker, 18)
        for client in clients:
            client.settimeout(60 * server_kit.PATIENCE)
            assert client.recv(4096).startswith(b'HTTP/1.1 200')
    for client in clients:
        client.close()
    assert server.workers() == [worker] and '[alert]' not in server.errors()
    assert signal_and_wait(server, 15) == 0


class Namespace(threading.Thread):
    """A thread in the network namespace of a process: `call` runs a function there."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.calls, self.ready = pid, [], threading.Condition()
        self.start()

    def run(self):
        with open(f'/proc/{self.pid}/ns/net', 'rb') as space:
            assert ctypes.CDLL(None).setns(space.fileno(), CLONE_NEWNET) == 0
        while True:
            with self.ready:
                self.ready.wait_for(lambda: self.calls)
                function, box = self.calls.pop()
            box.append(function())
            with self.ready:
                self.ready.notify_all()

    def call(self, function):
        box = []
        with self.ready:
            self.calls.append((function, box))
            self.ready.notify_all()
            self.ready.wait_for(lambda: box)
        return box[0]


PORTS = 16


def start_with_few_ports(start, loop, **trees):
    """Starts a server with these parts of its configuration, in a network namespace with 16 local ports. Returns it and the namespace."""
    server = start(loop, wait=False, **trees)
    if subprocess.run(['unshare', '--net', 'true'], check=False).returncode != 0:
        pytest.skip('no network namespaces')
    server.command_prefix = ['unshare', '--net', 'sh', '-c', 'ip link set lo up && '
                             f'echo 40000 {40000 + PORTS - 1} >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"', 'sh']
    server.start([])
    wait_for(lambda: ' runs, ' in server.errors(), 'every worker is ready')
    return server, Namespace(server.process.pid)


def respond(stream):
    stream.recv(65536)
    stream.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
    stream.close()


def connect_unix(path):
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(20 * server_kit.PATIENCE)
    stream.connect(path)
    return http1.Client(stream)


def request_unix(path):
    client = connect_unix(path)
    client.send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    return client


def responds(path, listener):
    """True if a request gets a response. Without a local port it does not reach the listener."""
    client = request_unix(path)
    listener.settimeout(2 * server_kit.PATIENCE)
    with contextlib.suppress(OSError, EOFError):
        respond(listener.accept()[0])
        return client.read().status == 200
    return False


@ROOT
def test_ephemeral_ports(start, loop, tmp_path):
    """Sixteen local ports, and thirty requests to one upstream server: the others get 502 at once, and later ones are served."""
    path, port = str(tmp_path / 'socket'), server_kit.free_port()
    block = {'listen': f'unix:{path}', 'location': {'/': {'proxy_pass': f'http://127.0.0.1:{port}'}}}
    server, namespace = start_with_few_ports(start, loop, http={'proxy_connect_timeout': '20s'}, servers=[block])
    listener = namespace.call(lambda: socket.create_server(('127.0.0.1', port), backlog=64))
    clients = [request_unix(path) for _ in range(30)]
    connections = [listener.accept()[0] for _ in range(PORTS)]
    load = Answers(lambda: connect_unix(path), ['/'])
    wait_for(lambda: load.counts[502] > 100, 'requests without a port', 90)
    assert set(load.stop()) == {502}
    for stream in connections:
        respond(stream)
    statuses = collections.Counter(client.read().status for client in clients)
    assert statuses == {200: PORTS, 502: 30 - PORTS}, statuses
    assert 'Cannot assign requested address' in server.errors()
    assert_one_line_per_second(server.errors())
    wait_for(lambda: responds(path, listener), 'ports are free again', 30)
    assert signal_and_wait(server, 15) == 0


@ROOT
def test_ephemeral_ports_of_stream(start, loop, tmp_path):
    """The same for `stream`: connections without a port are closed at once, and later ones are served."""
    path, port = str(tmp_path / 'socket'), server_kit.free_port()
    server, namespace = start_with_few_ports(start, loop, servers=[], stream={
        'server': {'listen': f'unix:{path}', 'proxy_pass': f'127.0.0.1:{port}'}})
    listener = namespace.call(lambda: socket.create_server(('127.0.0.1', port), backlog=64))
    clients = [request_unix(path) for _ in range(PORTS)]
    connections = [listener.accept()[0] for _ in range(PORTS)]
    load = Answers(lambda: connect_unix(path), ['/'])
    wait_for(lambda: load.counts['failed'] > 300, 'connections without a port', 90)
    assert set(load.stop()) == {'failed'}
    for stream in connections:
        respond(stream)
    for client in clients:
        assert client.read().status == 200
        client.close()
    assert 'Cannot assign requested address' in server.errors()
    assert_one_line_per_second(server.errors())
    wait_for(lambda: responds(path, listener), 'ports are free again', 30)
    assert signal_and_wait(server, 15) == 0


def open_descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


def resident_kib(pid):
    return int(re.search(r'VmRSS:\s+(\d+)', server_kit.read_text(f'/proc/{pid}/status')).group(1))


def test_slow_clients_do_not_delay_others(start, loop, big):
    """Half of the clients send a request byte by byte, the others do not read their response. Two workers, and several client processes."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limit < SLOW * 2 // 3 + 200:                      # the kernel chooses the worker of each connection
        pytest.skip(f'{limit} descriptors')
    server = start(loop, worker_processes=2, events={'use': loop, 'worker_connections': SLOW},
                   http={'client_header_timeout': '1h', 'send_timeout': '1h', 'client_min_rate': 0})
    before = {pid: (open_descriptors(pid), resident_kib(pid)) for pid in server.workers()}
    parts = 4
    programs = [subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), 'kit/slow_clients.py'), f'127.0.0.{2 + part}',
                                  str(server.plain), str(SLOW // parts), '/process-big.bin'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                for part in range(parts)]
    try:
        for program in programs:
            assert program.stdout.readline() == b'open\n'
        wait_for(lambda: sum(open_descriptors(pid) for pid in before) >= sum(opened for opened, _ in before.values()) + SLOW, 'all are accepted', 60)
        assert all(serves(server.plain) for _ in range(50)), 'other clients are served'
        growth = sum(resident_kib(pid) for pid in before) - sum(resident for _, resident in before.values())
        assert growth / SLOW < 24, f'{growth} KiB for {SLOW} clients'
    finally:
        reports = [program.communicate(b'end\n')[0] for program in programs]
    assert reports == [b'lost 0\n'] * parts, reports
    wait_for(lambda: all(serves(server.plain) for _ in range(20)), 'it serves')
    # One response may be in progress, and files remain in the cache of open files.
    wait_for(lambda: all(open_descriptors(pid) <= opened + 8 for pid, (opened, _) in before.items()), 'their descriptors are closed', 60)
    assert set(server.workers()) == set(before)
    assert signal_and_wait(server, 15) == 0
