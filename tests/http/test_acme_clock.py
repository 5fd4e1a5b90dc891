"""Jumps of the wall clock, and certificates by ACME. Those of pebble are valid for five years."""
import contextlib
import json
import signal
import time

import pytest

from kit import http1, server as server_kit
from kit.acme import site_starter
from kit.lifetime import alive, wait_for
from kit.programs import program
from kit.wall_clock import WallClock

YEAR = 365 * 86400
REQUEST = 'requesting a certificate for "a.test"'


@pytest.fixture
def clock(tmp_path):
    tmp_path.chmod(0o755)
    return WallClock(tmp_path / 'clock')


@pytest.fixture
def start_site(tmp_path, clock):
    """start_site(**settings of Site, authority=settings of Pebble) -> a site with its authority, and a status page."""
    program('uacme'), program('pebble')
    with site_starter(tmp_path) as starter:
        yield lambda **settings: starter(names='a.test', environment=clock.environment, status_port=server_kit.free_port(), **settings)


def next_attempt_s(site):
    with contextlib.closing(http1.connect(site.status_port)) as client:
        return json.loads(client.get('/?format=json').body)['acme'][0]['next_attempt_seconds']


def check_now(site):
    """A reload replaces the renewal process; the new one has checked the certificate when it has reported the next attempt."""
    workers = site.server.workers()
    site.server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: not any(alive(pid) for pid in workers), 'the old workers, which report the old state, have ended')
    return wait_for(lambda: next_attempt_s(site), 'the renewal process reports the next attempt')


def test_a_clock_set_forward_renews_within_a_minute(start_site, clock):
    site = start_site()
    first = site.wait_for_certificate()
    assert abs(check_now(site) - time.time() - YEAR * 10 / 3) < YEAR, 'at two thirds of the lifetime'
    clock.shift(4 * YEAR)
    second = site.wait_for_certificate(but=first.serial_number, seconds=90)
    # The clock of the authority differs, so that the new certificate is past two thirds of its lifetime, too.
    assert check_now(site) > time.time() + 4 * YEAR + 30 * 86400, 'the next request is delayed'
    assert site.server.errors().count(REQUEST) == 2 and site.peer().serial_number == second.serial_number
    # After a correction, its lifetime decides again.
    clock.shift(0)
    assert abs(check_now(site) - time.time() - YEAR * 10 / 3) < YEAR
    assert site.server.errors().count(REQUEST) == 2


def test_a_clock_set_back_renews_nothing(start_site, clock):
    site = start_site()
    first = site.wait_for_certificate()
    clock.shift(-YEAR)
    assert check_now(site) > time.time() + 2 * YEAR
    assert site.server.errors().count(REQUEST) == 1 and site.peer().serial_number == first.serial_number


def test_a_clock_set_back_ends_the_delay_after_failures(start_site, clock):
    site = start_site(retry='12h', authority={'domainBlocklist': ['a.test']})
    site.wait_for_log('next attempt in ')
    assert check_now(site) > time.time(), 'a reload waits for a minute'
    clock.shift(-YEAR)
    check_now(site)
    site.wait_for_log('no certificate for "a.test"', 2)
