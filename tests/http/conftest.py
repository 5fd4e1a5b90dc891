"""Fixtures of the end-to-end tests: one running server per backend of the loop, one transport after the other.

SLUICE_LOOPS and SLUICE_TRANSPORTS narrow the matrix ("epoll", "plain user"). The suite "vm" runs the same tests with
"ktls" alone: there a connection gets a large body first, so that whatever the test does then goes by the kernel.
"""
import itertools
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from kit import http1, server as server_kit, site as site_kit  # noqa: E402
from kit.lifetime import BIG, wait_for  # noqa: E402

LOOPS = os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split()
TRANSPORTS = os.environ.get('SLUICE_TRANSPORTS', 'plain user').split()
LARGE = '/65536.bin'       # as large as ssl_ktls_threshold
PROMOTING = 'promoting.test'    # over kTLS a site of each server, beside the one that is tested: it has LARGE


@pytest.fixture(scope='session')
def base():
    """A folder that every user may enter: workers give up root. (pytest's own folders are closed to others.)"""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='sluice-test-'))
    folder.chmod(0o755)
    yield folder
    if os.environ.get('SLUICE_KEEP') == '1':
        print(f'\nkept: {folder}')
    else:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope='session')
def fresh(base):
    """fresh() -> a new folder."""
    numbers = itertools.count()

    def make():
        folder = base / f'room{next(numbers)}'
        folder.mkdir()
        folder.chmod(0o755)
        return folder
    return make


@pytest.fixture
def tmp_path(fresh):
    return fresh()


@pytest.fixture(scope='session')
def site(base):
    """The folder that is served."""
    (base / 'www').mkdir()
    return site_kit.make_site(str(base / 'www'))


@pytest.fixture(scope='session')
def certificate(base):
    (base / 'certificates').mkdir()
    return site_kit.make_certificate(str(base / 'certificates'))


@pytest.fixture(scope='session')
def rsa_certificate(base, certificate):
    return site_kit.make_certificate(str(base / 'certificates'), kind='rsa')


def kernel_counter(name):
    """The kernel's own count of TLS sockets, of this network namespace."""
    with open('/proc/net/tls_stat', encoding='ascii') as stream:
        return int(dict(line.split() for line in stream)[name])


class Served:
    """A server with a plain and a TLS port, seen through one transport."""

    def __init__(self, server, ports, transport, root):
        self.server, self.ports, self.transport, self.root = server, ports, transport, root
        self.port = ports['plain' if transport == 'plain' else 'tls']
        self.scheme = 'http' if transport == 'plain' else 'https'

    def connect(self, timeout=20, own=False, promoted=True, **options):
        """With `own` by the TLS client of the kit. Over kTLS the connection is promoted, where `promoted` allows it."""
        client = http1.connect(self.port, 'own' if own else self.transport, timeout=timeout * server_kit.PATIENCE, **options)
        if promoted and self.transport == 'ktls':
            before = kernel_counter('TlsTxSw')
            assert client.get(LARGE, Host=PROMOTING).status == 200
            assert kernel_counter('TlsTxSw') > before, 'the kernel encrypts nothing'
        return client

    def url(self, target):
        return f'{self.scheme}://localhost:{self.port}{target}'


@pytest.fixture(scope='session')
def launch(site, certificate, fresh):
    """launch(loop, transport, server={...}, http={...}, main={...}) -> Served; equal calls share a server.

    Where kTLS alone is asked for, a test of another transport is skipped.
    """
    running = {}

    def launcher(loop, transport, server=None, http=None, main=None, environment=None):
        if TRANSPORTS == ['ktls'] and transport != 'ktls':
            pytest.skip('kTLS only')
        ktls = {'ktls': 'on'}.get(transport, 'off')
        key = repr((loop, ktls, server, http, main, environment))
        if key not in running:
            ports = {'plain': server_kit.free_port(), 'tls': server_kit.free_port()}
            block = {'listen': [f'127.0.0.1:{ports["plain"]}', f'127.0.0.1:{ports["tls"]} ssl'], 'server_name': 'localhost',
                     'root': site, 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1],
                     'ssl_ktls': ktls, **(server or {})}
            blocks = [block]
            if transport == 'ktls':
                blocks.append({**{name: value for name, value in block.items() if name.startswith('ssl_') and name != 'ssl_verify_client'},
                               'listen': f'127.0.0.1:{ports["tls"]} ssl', 'server_name': PROMOTING, 'root': site})
            made = server_kit.Server(fresh(), blocks, loop=loop, http=http, main=main, environment=environment)
            running[key] = made.start(ports.values()), ports
        return Served(*running[key], transport, (server or {}).get('root', site))
    yield launcher
    faults = []
    for made, _ in running.values():
        try:
            made.stop()
        except RuntimeError as error:
            faults.append(str(error))
    if TRANSPORTS == ['ktls'] and kernel_counter('TlsRxSw'):
        faults.append('the kernel decrypts, too')
    assert not faults, '\n'.join(faults)


@pytest.fixture(params=LOOPS)
def loop(request):
    return request.param


@pytest.fixture(params=TRANSPORTS)
def transport(request):
    return request.param


@pytest.fixture(scope='session')
def tls_transport():
    """For tests that are over TLS always."""
    return 'ktls' if TRANSPORTS == ['ktls'] else 'user'


@pytest.fixture
def served(launch, loop, transport):
    """The usual server."""
    return launch(loop, transport)


@pytest.fixture
def client(served):
    made = served.connect()
    yield made
    made.close()


@pytest.fixture(scope='session')
def big(site):
    return site_kit.make_file(os.path.join(site, 'process-big.bin'), BIG)


@pytest.fixture
def start(tmp_path, site, certificate):
    """start(**main) -> a running Server of its own with `.port` (TLS) and `.plain`."""
    running = []

    def starter(loop='epoll', http=None, wait=True, **main):
        ports = server_kit.free_port(), server_kit.free_port()
        block = {'listen': [f'127.0.0.1:{ports[0]}', f'127.0.0.1:{ports[1]} ssl'], 'root': site,
                 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1]}
        made = server_kit.Server(tmp_path / f'server{len(running)}', [block], loop=loop, http=http, main=main)
        os.chmod(made.folder, 0o755)
        made.plain, made.port = ports
        running.append(made)
        if wait:
            made.start(ports)
            wait_for(lambda: len(made.workers()) == made.tree['worker_processes'], 'every worker')
            if 'error_log' not in main:
                # A worker that dies before this line ends the start.
                wait_for(lambda: ' runs, ' in made.errors(), 'every worker is ready')
        return made
    yield starter
    for made in running:
        made.stop(check=False)


@pytest.fixture(scope='session')
def sluice_for_all(base):
    """The program where every user may run it: the folder of the build may be closed to others."""
    return shutil.copy(server_kit.SLUICE, base / 'sluice')
