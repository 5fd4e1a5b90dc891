"""Socket activation: a service manager opens the listening sockets, and passes them by LISTEN_FDS."""
import os
import signal
import socket
import sys

import pytest

from kit import http1, server as server_kit
from kit.lifetime import signal_and_wait, wait_for

# Takes the place of the service manager: gives the inherited sockets the descriptors from 3 on and executes the server.
MANAGER = '''
import os, sys
fds = [os.dup(int(fd)) for fd in sys.argv[1].split(',')]
high = [__import__('fcntl').fcntl(fd, 0, 100) for fd in fds]
for place, fd in enumerate(high):
    os.dup2(fd, 3 + place, inheritable=True)
    os.close(fd)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(high)))
os.execv(sys.argv[2], sys.argv[2:])
'''


@pytest.fixture
def activate(site, tmp_path, loop, monkeypatch):
    """activate(listen, sockets, **main) -> a server whose `listen` addresses were opened before it started."""
    made = []

    def starter(listen, sockets, **main):
        text = ','.join(str(sock.fileno()) for sock in sockets)
        server = server_kit.Server(tmp_path / f'server{len(made)}', [{'listen': listen, 'root': site}], loop=loop, main=main,
                                   command_prefix=(sys.executable, '-c', MANAGER, text))
        popen = server_kit.subprocess.Popen
        monkeypatch.setattr(server_kit.subprocess, 'Popen',
                            lambda *args, **keys: popen(*args, **keys, pass_fds=[sock.fileno() for sock in sockets]))
        os.chmod(server.folder, 0o755)
        server.start([])
        monkeypatch.undo()
        made.append(server)
        wait_for(lambda: ' runs, ' in server.errors(), 'every worker is ready')
        return server
    yield starter
    for server in made:
        server.stop(check=False)


def listening(family=socket.AF_INET, address=('127.0.0.1', 0)):
    sock = socket.socket(family)
    sock.bind(address)
    sock.listen(50)
    return sock


def test_passed_sockets_are_used(activate):
    """A connection made before the start is served, as well as those after a reload with more workers, and after the end of the server the
    sockets still accept connections."""
    passed, unused = listening(), listening()
    port, own = passed.getsockname()[1], server_kit.free_port()
    early = http1.connect(port)
    server = activate([f'127.0.0.1:{port}', f'127.0.0.1:{own}'], [passed, unused], worker_processes=2)
    assert early.get('/one.txt').body == b'one\n'
    assert f'no server listens on 127.0.0.1:{unused.getsockname()[1]}' in server.errors()
    server.tree['worker_processes'] = 3
    server.write_configuration()
    for times in (1, 2):
        for _ in range(20):
            for each in (port, own):
                client = http1.connect(each)
                assert client.get('/one.txt').status == 200
                client.close()
        if times == 1:
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: server.errors().count(' runs, ') == 2, 'the reload')
    assert 'alert' not in server.errors() and 'emerg' not in server.errors()
    assert signal_and_wait(server, signal.SIGTERM) == 0
    socket.create_connection(('127.0.0.1', port), timeout=5).close()


def test_path_of_a_passed_socket_is_not_removed(activate, tmp_path):
    path = str(tmp_path / 'web.sock')
    passed = listening(socket.AF_UNIX, path)
    os.chmod(path, 0o666)
    server = activate(f'unix:{path}', [passed], worker_processes=2)
    for _ in range(10):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(20 * server_kit.PATIENCE)
            sock.connect(path)
            assert http1.Client(sock).get('/one.txt').status == 200
    assert signal_and_wait(server, signal.SIGTERM) == 0
    assert os.path.exists(path)


def test_port_in_use_without_a_passed_socket_is_rejected(site, tmp_path, loop):
    """The passed socket has another address, and the configured port is in use."""
    taken = listening()
    server = server_kit.Server(tmp_path / 'refused', [{'listen': f'127.0.0.1:{taken.getsockname()[1]}', 'root': site}], loop=loop,
                               environment={'LISTEN_FDS': '1', 'LISTEN_PID': '1'})
    server.start([])
    assert server.process.wait(20 * server_kit.PATIENCE) == 1
    assert 'Address already in use' in server.errors() + server.output()
