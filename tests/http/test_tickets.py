"""Session tickets: a key that all workers share and rotate, and key files for several machines."""
import os
import re
import signal
import time

import pytest

from kit import server as server_kit, site as site_kit
from kit.lifetime import wait_for
from kit.resumption import VERSIONS, server_starter, fetch_with_session


@pytest.fixture
def start_server(certificate, tmp_path, loop):
    with server_starter(certificate, tmp_path, loop, 'worker $pid;') as start:
        yield lambda workers=2, **block: start(block, workers=workers)


def worker_of(response):
    return int(re.search(r'worker (\d+);', response)[1])


def resumes_everywhere(server, version, session):
    """The session is resumed by each worker."""
    seen = set()
    for _ in range(60):
        resumed, response = fetch_with_session(server.port, version, session_in=session)
        assert resumed, response
        seen.add(worker_of(response))
        if seen >= set(server.workers()):
            return True
    raise AssertionError(f'only {seen} of {server.workers()} answered')


@pytest.mark.parametrize('version', VERSIONS)
def test_ticket_resumes_at_each_worker(start_server, tmp_path, version):
    server = start_server()
    session = tmp_path / 'session'
    assert not fetch_with_session(server.port, version, session_out=session)[0]
    resumes_everywhere(server, version, session)


@pytest.mark.parametrize('version', VERSIONS)
def test_ticket_resumes_after_worker_death_and_reload(start_server, tmp_path, version):
    server = start_server()
    session = tmp_path / 'session'
    giver = worker_of(fetch_with_session(server.port, version, session_out=session)[1])
    os.kill(giver, signal.SIGKILL)
    wait_for(lambda: giver not in server.workers() and len(server.workers()) == 2, 'a new worker')
    resumes_everywhere(server, version, session)
    before = set(server.workers())
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: not before & set(server.workers()) and len(server.workers()) == 2, 'new workers alone')
    resumes_everywhere(server, version, session)


def test_rotated_ticket_key_retains_the_previous_one(start_server, tmp_path):
    life = max(6, round(4 * server_kit.PATIENCE) - 6)  # the life of a key in seconds; handshakes in an emulated machine are slow
    server = start_server(ssl_session_timeout=f'{life}s')

    def rotations():
        return server.errors().count('session tickets are encrypted with a new key')

    def resumed():
        return [fetch_with_session(server.port, version, session_in=tmp_path / version)[0] for version in VERSIONS]
    for _ in range(5):
        time.sleep(life / 2)                # a ticket issued during a rotation expires before the next rotation
        for version in VERSIONS:
            fetch_with_session(server.port, version, session_out=tmp_path / version)
        number = rotations()
        wait_for(lambda: rotations() > number, 'the next key')
        if all(opened := resumed()):
            break
    assert all(opened), 'tickets of the key before'
    number = rotations()
    wait_for(lambda: rotations() > number + 1, 'the second key after it')
    assert not any(resumed())


@pytest.mark.parametrize('version', VERSIONS)
def test_key_files_are_shared_between_machines(start_server, tmp_path, version):
    old, new, session = (tmp_path / name for name in ('old.key', 'new.key', 'session'))
    old.write_bytes(os.urandom(48))
    new.write_bytes(os.urandom(80))
    machines = [start_server(workers=1, ssl_session_ticket_key=[str(key) for key in keys]) for keys in ([old], [new, old], [new])]
    fetch_with_session(machines[0].port, version, session_out=session)
    assert not fetch_with_session(machines[2].port, version, session_in=session)[0]
    assert fetch_with_session(machines[1].port, version, session_in=session)[0]
    fetch_with_session(machines[1].port, version, session_out=session)
    assert fetch_with_session(machines[2].port, version, session_in=session)[0]
    assert not fetch_with_session(machines[0].port, version, session_in=session)[0]


def test_machines_without_key_files_do_not_resume(start_server, tmp_path):
    machines = start_server(workers=1), start_server(workers=1)
    fetch_with_session(machines[0].port, '-tls1_3', session_out=tmp_path / 'session')
    assert not fetch_with_session(machines[1].port, '-tls1_3', session_in=tmp_path / 'session')[0]


def test_ticket_is_bound_to_the_certificate(start_server, tmp_path):
    key = tmp_path / 'ticket.key'
    key.write_bytes(os.urandom(80))
    (tmp_path / 'other').mkdir()
    other = site_kit.make_certificate(str(tmp_path / 'other'))
    machines = (start_server(workers=1, ssl_session_ticket_key=str(key)),
                start_server(workers=1, ssl_session_ticket_key=str(key), ssl_certificate=other[0],
                      ssl_certificate_key=other[1]))
    fetch_with_session(machines[0].port, '-tls1_3', session_out=tmp_path / 'session')
    assert fetch_with_session(machines[0].port, '-tls1_3', session_in=tmp_path / 'session')[0]
    assert not fetch_with_session(machines[1].port, '-tls1_3', session_in=tmp_path / 'session')[0]


@pytest.mark.parametrize('version', VERSIONS)
def test_ssl_session_tickets_off_sends_none(start_server, tmp_path, version):
    server = start_server(ssl_session_tickets='off')
    fetch_with_session(server.port, version, session_out=tmp_path / 'session')
    if (tmp_path / 'session').exists():
        assert not fetch_with_session(server.port, version, session_in=tmp_path / 'session')[0]


def test_invalid_key_file_is_reported_with_its_position(start_server, tmp_path):
    key = tmp_path / 'short.key'
    key.write_bytes(b'short')
    with pytest.raises(RuntimeError) as error:
        start_server(ssl_session_ticket_key=str(key))
    assert re.search(r'sluice.yaml:\d+:\d+: error: the ticket key ".*short.key" has 5 bytes, and neither 80 nor 48', str(error.value))
    assert 'make one with: openssl rand 80 > ' in str(error.value)
