"""Fixtures of the end-to-end tests: a running server for each loop backend and each transport.

SLUICE_LOOPS and SLUICE_TRANSPORTS select some of them ("epoll", "plain user"). The suite "vm" runs the same tests with the transport
"ktls" only. There each connection first receives a large body, so that the kernel encrypts everything that follows.
"""
import itertools
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from kit import forbidden as forbidden_kit, http1, server as server_kit, site as site_kit  # noqa: E402
from kit.lifetime import BIG, wait_for  # noqa: E402

LOOPS = server_kit.LOOPS
TRANSPORTS = os.environ.get('SLUICE_TRANSPORTS', 'plain user').split()
LARGE = '/65536.bin'       # the size of ssl_ktls_threshold
PROMOTING = 'promoting.test'    # with kTLS each server has an additional virtual server of this name that serves LARGE


def pytest_collection_modifyitems(items):
    for item in items:
        marker = item.get_closest_marker('http1')
        if marker and http1.PROTOCOL == 'http2':
            item.add_marker(pytest.mark.skip(reason=f'HTTP/1.1: {marker.args[0]}'))


@pytest.fixture(scope='session')
def base():
    """A directory that every user may enter: workers run without root privileges, and other users cannot enter the directories of pytest."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='sluice-test-'))
    folder.chmod(0o755)
    yield folder
    if os.environ.get('SLUICE_KEEP') == '1':
        print(f'\nkept: {folder}')
    else:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope='session')
def new_directory(base):
    """new_directory() -> the path of a new directory."""
    numbers = itertools.count()

    def make():
        folder = base / f'run{next(numbers)}'
        folder.mkdir()
        folder.chmod(0o755)
        return folder
    return make


@pytest.fixture
def tmp_path(new_directory):
    return new_directory()


@pytest.fixture(scope='session')
def site(base):
    """The document root."""
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
    """The kernel's counter of TLS sockets in this network namespace (/proc/net/tls_stat)."""
    with open('/proc/net/tls_stat', encoding='ascii') as stream:
        return int(dict(line.split() for line in stream)[name])


class Served:
    """A server with a plain and a TLS port, accessed through one transport."""

    def __init__(self, server, ports, transport, root):
        self.server, self.ports, self.transport, self.root = server, ports, transport, root
        self.port = ports['plain' if transport == 'plain' else 'tls']
        self.scheme = 'http' if transport == 'plain' else 'https'

    def connect(self, timeout=20, own=False, promoted=True, **options):
        """Connects; with `own`, through the TLS client in kit/tls13.py. With kTLS the connection is promoted first, unless `promoted` is
        False."""
        client = http1.connect(self.port, 'own' if own else self.transport, timeout=timeout * server_kit.PATIENCE, **options)
        if promoted and self.transport == 'ktls':
            before = kernel_counter('TlsTxSw')
            assert client.get(LARGE, Host=PROMOTING).status == 200
            assert kernel_counter('TlsTxSw') > before, 'the kernel encrypts nothing'
        return client

    def url(self, target):
        return f'{self.scheme}://localhost:{self.port}{target}'


@pytest.fixture(scope='session')
def launch(site, certificate, new_directory):
    """launch(loop, transport, server={...}, http={...}, main={...}) -> Served; equal calls share a server.

    If kTLS is the only selected transport, tests of other transports are skipped.
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
            made = server_kit.Server(new_directory(), blocks, loop=loop, http=http, main=main, environment=environment)
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
    """The transport of tests that always use TLS."""
    return 'ktls' if TRANSPORTS == ['ktls'] else 'user'


@pytest.fixture
def served(launch, loop, transport):
    """The server with the default configuration of the tests."""
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
    """start(**main) -> a running Server for one test, with the ports `.port` (TLS) and `.plain`, or with the list `servers`."""
    running = []

    def starter(loop='epoll', http=None, wait=True, servers=None, **main):
        ports = server_kit.free_port(), server_kit.free_port()
        block = {'listen': [f'127.0.0.1:{ports[0]}', f'127.0.0.1:{ports[1]} ssl'], 'root': site,
                 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1]}
        made = server_kit.Server(tmp_path / f'server{len(running)}', [block] if servers is None else servers, loop=loop, http=http, main=main)
        os.chmod(made.folder, 0o755)
        made.plain, made.port = ports
        running.append(made)
        if wait:
            made.start(ports)
            wait_for(lambda: len(made.workers()) == made.tree['worker_processes'], 'every worker')
            if 'error_log' not in main:
                # A worker that dies before it writes this line ends the whole server.
                wait_for(lambda: ' runs, ' in made.errors(), 'every worker is ready')
        return made
    yield starter
    for made in running:
        made.stop(check=False)


@pytest.fixture(scope='session')
def sluice_copy(base):
    """A copy of the server binary that every user may execute: other users may be unable to enter the build directory."""
    return shutil.copy(server_kit.SLUICE, base / 'sluice')


@pytest.fixture
def forbidden(tmp_path, monkeypatch):
    """forbidden(loop, more=servers, **main) -> a server whose location /?NAME+VALUE runs an action of tests/sandbox/forbidden.c."""
    running = []
    if not os.path.exists(forbidden_kit.BINARY):
        pytest.skip('this build lacks modules')
    monkeypatch.setattr(server_kit, 'SLUICE', forbidden_kit.BINARY)

    def launch(loop, location=None, http=None, environment=None, wait=True, more=(), **main):
        port = server_kit.free_port()
        block = {'listen': f'127.0.0.1:{port}', 'location': {'/': {'forbidden': '$arg_action $arg_value'}, **(location or {})}}
        made = server_kit.Server(tmp_path / f'forbidden{len(running)}', [block, *more], loop=loop, http=http, main=main,
                                 environment=environment)
        os.chmod(made.folder, 0o755)
        made.plain = port
        running.append(made)
        if wait:
            made.start([port])
            wait_for(lambda: ' runs, ' in made.errors(), 'every worker is ready')
        return made
    yield launch
    for made in running:
        made.stop(check=False)
