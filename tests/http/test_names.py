"""Names of servers behind this one: asked for on the loop, again when they hold no more, and never in the way of a start."""
import re
import signal
import socket
import time

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for
from kit.dns import A, AAAA, SERVFAIL, SRV, Dns
from kit.upstream import Upstream

LOOPS = server_kit.os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split()
SECONDS = 3600


class World:
    """A server under test, whose names this machine's scripted name server knows."""

    def __init__(self, folder, loop):
        self.folder, self.loop = folder, loop
        self.dns = Dns()
        self.port = server_kit.free_port()
        self.server = None
        self.upstreams = []

    def upstream(self, name, port=0, address='127.0.0.1'):
        one = Upstream(name=name, port=port, address=address)
        self.upstreams.append(one)
        return one

    def start(self, upstreams=None, locations=None, resolver='valid=100ms', http=None, main=None):
        self.server = server_kit.Server(
            self.folder, [{'listen': f'127.0.0.1:{self.port}', 'location': locations or {'/': {'proxy_pass': 'http://app'}}}],
            loop=self.loop, main=main,
            http={'resolver': f'127.0.0.1:{self.dns.port} {resolver}', 'resolver_timeout': '2s',
                  **({'upstream': upstreams} if upstreams else {}), **(http or {})})
        self.server.start([self.port])
        return self

    def get(self, path='/'):
        with socket.create_connection(('127.0.0.1', self.port), timeout=30) as stream:
            return http1.Client(stream).get(path)

    def who(self, path='/'):
        """The name of the server that answered; or the status where none did."""
        response = self.get(path)
        return response.body.decode().split()[0] if response.status == 200 else response.status

    def until(self, wanted, path='/'):
        deadline = time.monotonic() + 15 * server_kit.PATIENCE
        while (seen := self.who(path)) != wanted:
            assert time.monotonic() < deadline, f'{seen} instead of {wanted}:\n{self.server.errors()}'
            time.sleep(0.02)

    def stop(self):
        if self.server:
            self.server.stop()
        self.dns.stop()
        for one in self.upstreams:
            one.stop()
            assert not one.faults


@pytest.fixture(params=LOOPS)
def world(request, tmp_path):
    made = World(tmp_path, request.param)
    yield made
    made.stop()


def test_answers_that_change(world):
    one = world.upstream('one')
    world.upstream('two', port=one.port, address='127.0.0.2')
    world.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    world.start({'app': {'server': f'app.test:{one.port}'}})
    assert world.who() == 'one'
    world.dns.zone['app.test', A] = [(SECONDS, '127.0.0.2')]
    world.until('two')
    assert [world.who() for _ in range(4)] == ['two'] * 4, 'the address that is gone is not asked any more'
    world.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1'), (SECONDS, '127.0.0.2')]
    world.until('one')
    assert {world.who() for _ in range(4)} == {'one', 'two'}


def test_the_time_to_live_is_kept(world):
    one = world.upstream('one')
    world.dns.zone.update({('long.test', A): [(SECONDS, '127.0.0.1')], ('short.test', A): [(1, '127.0.0.1')]})
    world.start({'long': {'server': f'long.test:{one.port}'}, 'short': {'server': f'short.test:{one.port}'}}, resolver='ipv6=off',
                locations={'/long': {'proxy_pass': 'http://long'}, '/short': {'proxy_pass': 'http://short'}})
    assert world.who('/long') == world.who('/short') == 'one'
    deadline = time.monotonic() + 20 * server_kit.PATIENCE
    while world.dns.asked.count(('short.test', A)) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert world.dns.asked.count(('long.test', A)) == 1
    assert ('short.test', AAAA) not in world.dns.asked


def test_both_families(world):
    try:
        one = world.upstream('six', address='::1')
    except OSError:
        pytest.skip('no IPv6 here')
    world.dns.zone['app.test', AAAA] = [(SECONDS, '::1')]
    world.start({'app': {'server': f'app.test:{one.port}'}})
    assert world.who() == 'six'
    assert ('app.test', A) in world.dns.asked and ('app.test', AAAA) in world.dns.asked


def test_only_the_wanted_family_is_asked_for(world):
    one = world.upstream('one')
    world.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    world.start({'app': {'server': f'app.test:{one.port}'}}, resolver='ipv6=off')
    assert world.who() == 'one'
    assert ('app.test', AAAA) not in world.dns.asked


def test_services(world):
    """Ports, weights and priorities come with SRV records: the higher number is a backup."""
    one, two, spare = (world.upstream(name) for name in ('one', 'two', 'spare'))
    world.dns.zone.update({
        ('_http._tcp.app.test', SRV): [(SECONDS, (10, 3, one.port, 'a.test')), (SECONDS, (10, 1, two.port, 'a.test')),
                                       (SECONDS, (20, 1, spare.port, 'b.test'))],
        ('a.test', A): [(SECONDS, '127.0.0.1')],
        ('b.test', A): [(SECONDS, '127.0.0.1')]})
    world.start({'app': {'server': {'address': 'app.test', 'service': 'http', 'fail_timeout': '60s'}}})
    seen = [world.who() for _ in range(8)]
    assert seen.count('one') == 6 and seen.count('two') == 2
    one.stop()
    two.stop()
    assert world.who() == 'spare'


GARBAGE = 'Timeout|Misformatted DNS reply'       # c-ares waits for a better answer, newer ones do not
# Newer ones also lay garbage at the door of all questions that the server was asked meanwhile: so it is asked for by itself.
BAD = [{'fails': (SERVFAIL, 'DNS server'), 'denied': (3, 'not found'), 'silent': (None, 'Timeout')},
       {'short': (b'\0' * 5, GARBAGE), 'garbled': (b'\xff' * 40, GARBAGE)}]


@pytest.mark.parametrize('bad', BAD, ids=['no answer', 'garbage'])
def test_bad_answers_stop_nothing(world, bad):
    """502 and one line that names it; asked again, and used as soon as there is an answer."""
    one = world.upstream('one')
    world.dns.zone.update({f'{name}.test': answer for name, (answer, _) in bad.items()})
    world.start({'sound': {'server': f'127.0.0.1:{one.port}'}, **{name: {'server': f'{name}.test:{one.port}'} for name in bad}},
                locations={f'/{name}': {'proxy_pass': f'http://{name}'} for name in ('sound', *bad)})
    assert world.who('/sound') == 'one'
    for name, (_, said) in bad.items():
        assert world.who(f'/{name}') == 502
        lines = re.findall(f'upstream host "{name}.test" cannot be resolved.*', world.server.errors())
        assert len(lines) == 1 and re.search(said, lines[0]), lines
    for name in bad:
        del world.dns.zone[f'{name}.test']
        world.dns.zone[f'{name}.test', A] = [(SECONDS, '127.0.0.1')]
    for name in bad:
        world.until('one', f'/{name}')
        assert f'upstream host "{name}.test" is resolved again' in world.server.errors()


def test_an_answer_outlives_its_name_server(world):
    one = world.upstream('one')
    world.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    world.start({'app': {'server': f'app.test:{one.port}'}})
    assert world.who() == 'one'
    world.dns.zone['app.test'] = SERVFAIL
    deadline = time.monotonic() + 10 * server_kit.PATIENCE
    while 'cannot be resolved' not in world.server.errors():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert world.who() == 'one'


@pytest.mark.parametrize('failure', [SERVFAIL, None], ids=['an error', 'silence'])
def test_a_reload_keeps_addresses_while_dns_fails(world, failure):
    """New workers begin with the addresses that the old ones used, and take others as soon as there is an answer."""
    one = world.upstream('one')
    world.upstream('two', port=one.port, address='127.0.0.2')
    world.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    world.start({'app': {'server': f'app.test:{one.port}'}}, locations={
        '/': {'proxy_pass': 'http://app'}, '/variable': {'proxy_pass': f'http://$arg_name:{one.port}'}}, resolver='valid=1h')
    assert world.who() == 'one'
    assert world.who('/variable?name=app.test') == 'one'
    del world.dns.zone['app.test', A]
    world.dns.zone['app.test'] = failure
    before, asked = world.server.workers(), len(world.dns.asked)
    world.server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: world.server.workers() and not set(world.server.workers()) & set(before), 'the old workers have ended')
    assert len(world.dns.asked) > asked, 'the new workers ask'
    assert [world.who() for _ in range(3)] == ['one'] * 3
    assert world.who('/variable?name=app.test') == 'one'
    del world.dns.zone['app.test']
    world.dns.zone['app.test', A] = [(SECONDS, '127.0.0.2')]
    world.until('two')


def test_valid_bounds_the_time_until_a_failure_is_retried(world):
    world.dns.zone['app.test'] = SERVFAIL
    world.start({'app': {'server': 'app.test:80'}}, resolver='valid=100ms')
    wait_for(lambda: len(world.dns.asked) >= 60, 'the name is asked for again and again')


def test_a_name_server_that_is_not_there(world):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(('127.0.0.1', 0))
        world.dns.stop()
        world.dns = Dns()
        nobody = unused.getsockname()[1]
    world.start({'app': {'server': 'app.test:80'}}, http={'resolver': f'127.0.0.1:{nobody}'})
    assert world.who() == 502


def test_a_name_made_of_variables(world):
    one = world.upstream('one')
    world.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    world.start(locations={'/': {'proxy_pass': f'http://$arg_name:{one.port}'}})
    assert world.who('/?name=app.test') == 'one'
    assert world.who('/?name=nobody.test') == 502
    assert 'upstream host "nobody.test" cannot be resolved' in world.server.errors()


def test_the_hosts_file(world):
    one = world.upstream('one')
    world.start(locations={'/': {'proxy_pass': f'http://localhost:{one.port}'}}, http={'resolver': f'127.0.0.1:{world.dns.port}'})
    assert world.who() == 'one'
    assert not [name for name, _ in world.dns.asked if name == 'localhost']


def test_a_block_with_a_name_server_of_its_own(world):
    one = world.upstream('one')
    other = Dns({('app.test', A): [(SECONDS, '127.0.0.1')]})
    world.start({'app': {'server': f'app.test:{one.port}', 'resolver': f'127.0.0.1:{other.port}'}})
    assert world.who() == 'one'
    assert not world.dns.asked
    other.stop()


def test_a_stream_s_resolver_is_not_that_of_targets_made_of_variables(world):
    """The name servers of `stream` know nothing of app.test."""
    one = world.upstream('one')
    nobody = server_kit.free_port()
    world.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    world.start(locations={'/': {'proxy_pass': f'http://$arg_host:{one.port}'}},
                main={'stream': {'resolver': f'127.0.0.1:{nobody}',
                                 'server': {'listen': f'127.0.0.1:{server_kit.free_port()}', 'proxy_pass': f'127.0.0.1:{one.port}'}}})
    assert world.who('/?host=app.test') == 'one'
