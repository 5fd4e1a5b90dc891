"""A promoted connection sends a file that is not in memory (rule 17): while the disk does not respond, the same worker serves other
clients. The test counts disk reads and does not measure time."""
import hashlib
import threading

import disk
import kernel
import pytest
from conftest import wait_for_self_tests
from kit import http1, server as server_kit, site

COLD, DISK = 4 << 20, 32 << 20
SUITE = ['TLS_AES_128_GCM_SHA256']
STEPS = 3                                   # disk reads that are permitted one by one


@pytest.fixture(params=[0, 128])
def cold(request, tmp_path):
    """(the disk, the hash of /cold), for a read-ahead of 0 and of 128 KiB. The disk is newly mounted, so no file is in the page cache."""
    (tmp_path / 'files').mkdir()
    site.make_file(str(tmp_path / 'files' / 'warm'), 65536)
    digest = site.make_file(str(tmp_path / 'files' / 'cold'), COLD)
    made = disk.Disk(str(tmp_path / 'files'), str(tmp_path / 'image'), '/dev/shm/disk', DISK)
    with open('/sys/block/nbd0/queue/read_ahead_kb', 'w', encoding='ascii') as setting:
        setting.write(str(request.param))
    yield made, digest
    made.close()


@pytest.fixture
def served(cold, certificate, tmp_path, loop):
    port = server_kit.free_port()
    block = {'listen': [f'127.0.0.1:{port} ssl'], 'root': cold[0].path, 'ssl_ktls': 'on', 'send_timeout': '10m',
             'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1]}
    server = server_kit.Server(tmp_path / 'server', [block], loop=loop, http={'open_file_cache_valid': '10m'})
    server.start([port])
    wait_for_self_tests(server)
    yield server, port
    cold[0].allow(None)
    server.stop()


class Reader(threading.Thread):
    """Receives a response in a separate thread."""

    def __init__(self, client):
        super().__init__()
        self.client, self.body, self.cut = client, bytearray(), None
        self.start()

    def run(self):
        try:
            head = self.client.head()
            while len(self.body) < int(head.headers['content-length']):
                self.body += self.client.take(16384)
        except EOFError as error:
            self.cut = error


def promoted(port):
    client = http1.connect(port, 'own', suites=SUITE, timeout=60 * server_kit.PATIENCE)
    before = kernel.counters()['TlsTxSw']
    assert client.get('/warm').status == 200
    assert kernel.counters()['TlsTxSw'] == before + 1
    return client


def test_rule_17_uncached_promoted_file_delays_no_other_client(cold, served):
    made, digest = cold
    server, port = served
    asking, other = promoted(port), promoted(port)
    assert asking.ask('HEAD', '/cold').status == 200, 'opened, and not read'
    made.allow(0)
    before = made.reads
    asking.send('GET /cold HTTP/1.1\r\nHost: localhost\r\n\r\n')
    reader = Reader(asking)
    for step in range(1, STEPS + 1):
        assert made.wait_for_reads(before + step, 60 * server_kit.PATIENCE), 'no further read arrives'
        for _ in range(5):
            assert len(other.get('/warm').body) == 65536
        assert len(reader.body) < COLD, 'the rest is still on disk'
        made.allow(1)
    made.allow(None)
    reader.join()
    assert reader.cut is None and hashlib.sha256(reader.body).hexdigest() == digest
    row = server.access_for('/cold', 2)[-1]
    assert (row['tls_path'], int(row['bytes_zero_copy'])) == ('ktls-sendfile', COLD)
    asking.close()
    other.close()
