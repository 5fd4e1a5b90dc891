"""A promoted connection sends a file that is not in the page cache (rule 17): while the disk does not respond, the same worker serves
other clients. The test counts disk reads and does not measure time."""
import hashlib
import threading

import disk
import kernel
import pytest
from conftest import wait_for_self_tests
from kit import http1, server as server_kit, site

UNCACHED_SIZE, DISK_SIZE = 4 << 20, 32 << 20
SUITE = ['TLS_AES_128_GCM_SHA256']
STEPS = 3                                   # disk reads that are permitted one by one


@pytest.fixture(params=[0, 128])
def uncached(request, tmp_path):
    """(the disk, the hash of /cold), for a read-ahead of 0 and of 128 KiB. The disk is newly mounted, so no file is in the page cache."""
    (tmp_path / 'files').mkdir()
    site.make_file(str(tmp_path / 'files' / 'warm'), 65536)
    digest = site.make_file(str(tmp_path / 'files' / 'cold'), UNCACHED_SIZE)
    nbd_disk = disk.Disk(str(tmp_path / 'files'), str(tmp_path / 'image'), '/dev/shm/disk', DISK_SIZE)
    with open('/sys/block/nbd0/queue/read_ahead_kb', 'w', encoding='ascii') as setting:
        setting.write(str(request.param))
    yield nbd_disk, digest
    nbd_disk.close()


@pytest.fixture
def server_on_disk(uncached, certificate, tmp_path, loop):
    port = server_kit.free_port()
    block = {'listen': [f'127.0.0.1:{port} ssl'], 'root': uncached[0].path, 'ssl_ktls': 'on', 'send_timeout': '10m',
             'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1]}
    server = server_kit.Server(tmp_path / 'server', [block], loop=loop, http={'open_file_cache_valid': '10m'})
    server.start([port])
    wait_for_self_tests(server)
    yield server, port
    uncached[0].allow(None)
    server.stop()


class ReaderThread(threading.Thread):
    """Receives a response in a separate thread."""

    def __init__(self, client):
        super().__init__()
        self.client, self.body, self.error = client, bytearray(), None
        self.start()

    def run(self):
        try:
            head = self.client.head()
            while len(self.body) < int(head.headers['content-length']):
                self.body += self.client.read_exactly(16384)
        except EOFError as error:
            self.error = error


def promoted(port):
    client = http1.connect(port, 'own', suites=SUITE, timeout=60 * server_kit.PATIENCE)
    before = kernel.counters()['TlsTxSw']
    assert client.get('/warm').status == 200
    assert kernel.counters()['TlsTxSw'] == before + 1
    return client


def test_rule_17_uncached_promoted_file_delays_no_other_client(uncached, server_on_disk):
    nbd_disk, digest = uncached
    server, port = server_on_disk
    client, other = promoted(port), promoted(port)
    assert client.fetch('HEAD', '/cold').status == 200, 'the server opens the file without reading it'
    nbd_disk.allow(0)
    before = nbd_disk.reads
    client.send('GET /cold HTTP/1.1\r\nHost: localhost\r\n\r\n')
    reader = ReaderThread(client)
    for step in range(1, STEPS + 1):
        assert nbd_disk.wait_for_reads(before + step, 60 * server_kit.PATIENCE), 'no further read arrives'
        for _ in range(5):
            assert len(other.get('/warm').body) == 65536
        assert len(reader.body) < UNCACHED_SIZE, 'the rest is still on disk'
        nbd_disk.allow(1)
    nbd_disk.allow(None)
    reader.join()
    assert reader.error is None and hashlib.sha256(reader.body).hexdigest() == digest
    row = server.access_for('/cold', 2)[-1]
    assert (row['tls_path'], int(row['bytes_zero_copy'])) == ('ktls-sendfile', UNCACHED_SIZE)
    client.close()
    other.close()
