"""Fixtures of the tests that run in the guest: files in memory, and servers with kernel TLS on and off."""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../http'))
sys.path.insert(0, os.path.dirname(__file__))

from kit import server as server_kit  # noqa: E402
from kit import site  # noqa: E402
from kit.lifetime import wait_for  # noqa: E402

LOOPS = os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split()
# 16m exceeds all buffers between server and client; larger files take long in the guest.
SIZES = {'1k': 1024, '63k': 65535, '64k': 65536, '256k': 1 << 18, '1m': 1 << 20, '2m': 2 << 20, '8m': 8 << 20, '16m': 16 << 20, '32m': 32 << 20}


@pytest.fixture(scope='session')
def www():
    """{'folder': ..., '1m': sha256, ...} of files on a tmpfs."""
    folder = '/dev/shm/www'
    os.makedirs(folder)
    return {'folder': folder, **{name: site.make_file(os.path.join(folder, name), size) for name, size in SIZES.items()}}


@pytest.fixture(scope='session')
def certificate():
    folder = '/dev/shm/certificates'
    os.makedirs(folder)
    return site.make_certificate(folder)


def wait_for_self_tests(made):
    """Waits for the log line after the self-test of the ciphers, which also increments the kernel's counters."""
    wait_for(lambda: 'kTLS' in made.output(), 'the log line', 20, pause=0.1)


@pytest.fixture(scope='session')
def start(www, certificate, tmp_path_factory):
    """start(loop, ktls, **more server keys) -> (server, port); all servers are stopped at the end."""
    running = {}

    def starter(loop, ktls, main=None, **more):
        key = (loop, ktls, str(sorted(more.items())), str(main))
        if key not in running:
            port = server_kit.free_port()
            block = {'listen': [f'127.0.0.1:{port} ssl'], 'server_name': 'localhost', 'root': www['folder'],
                     'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], 'ssl_ktls': ktls, **more}
            # Clients decrypt large bodies on an emulated processor, and then examine the connection, for longer than the default.
            made = server_kit.Server(tmp_path_factory.mktemp('server'), [block], loop=loop, main=main, http={'keepalive_timeout': '1h'})
            made.start([port])
            if ktls != 'off':
                wait_for_self_tests(made)
            wait_for(made.workers, 'a worker')
            running[key] = made, port
        return running[key]
    yield starter
    for made, _ in running.values():
        made.stop()


@pytest.fixture(params=LOOPS)
def loop(request):
    return request.param
