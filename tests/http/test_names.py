"""Resolution of upstream host names: it runs in the event loop, is repeated when the TTL ends, and does not delay the start."""
import collections
import concurrent.futures
import re
import signal
import socket
import threading

import pytest
from kit import http1, server as server_kit
from kit.lifetime import wait_for
from kit.dns import A, AAAA, SERVFAIL, SRV, Dns
from kit.upstream import Upstream

SECONDS = 3600


class Environment:
    """A server under test whose resolver is a scripted name server."""

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

    def responding_server(self, path='/'):
        """The name of the upstream server that responded, or the error status."""
        response = self.get(path)
        return response.body.decode().split()[0] if response.status == 200 else response.status

    def until(self, expected, path='/'):
        wait_for(lambda: self.responding_server(path) == expected, f'{expected} responds')

    def stop(self):
        if self.server:
            self.server.stop()
        self.dns.stop()
        for one in self.upstreams:
            one.stop()
            assert not one.faults


@pytest.fixture(params=server_kit.LOOPS)
def environment(request, tmp_path):
    made = Environment(tmp_path, request.param)
    yield made
    made.stop()


def test_changed_address_is_used(environment):
    one = environment.upstream('one')
    environment.upstream('two', port=one.port, address='127.0.0.2')
    environment.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    environment.start({'app': {'server': f'app.test:{one.port}'}})
    assert environment.responding_server() == 'one'
    environment.dns.zone['app.test', A] = [(SECONDS, '127.0.0.2')]
    environment.until('two')
    assert [environment.responding_server() for _ in range(4)] == ['two'] * 4, 'the removed address gets no request'
    environment.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1'), (SECONDS, '127.0.0.2')]
    environment.until('one')
    assert {environment.responding_server() for _ in range(4)} == {'one', 'two'}


def test_dns_ttl_is_respected(environment):
    one = environment.upstream('one')
    environment.dns.zone.update({('long.test', A): [(SECONDS, '127.0.0.1')], ('short.test', A): [(1, '127.0.0.1')]})
    environment.start({'long': {'server': f'long.test:{one.port}'}, 'short': {'server': f'short.test:{one.port}'}}, resolver='ipv6=off',
                locations={'/long': {'proxy_pass': 'http://long'}, '/short': {'proxy_pass': 'http://short'}})
    assert environment.responding_server('/long') == environment.responding_server('/short') == 'one'
    wait_for(lambda: environment.dns.questions.count(('short.test', A)) >= 3, 'three queries', 20)
    assert environment.dns.questions.count(('long.test', A)) == 1
    assert ('short.test', AAAA) not in environment.dns.questions


def test_a_and_aaaa_are_queried(environment):
    try:
        one = environment.upstream('six', address='::1')
    except OSError:
        pytest.skip('no IPv6 here')
    environment.dns.zone['app.test', AAAA] = [(SECONDS, '::1')]
    environment.start({'app': {'server': f'app.test:{one.port}'}})
    assert environment.responding_server() == 'six'
    assert ('app.test', A) in environment.dns.questions and ('app.test', AAAA) in environment.dns.questions


def test_only_the_enabled_address_family_is_queried(environment):
    one = environment.upstream('one')
    environment.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    environment.start({'app': {'server': f'app.test:{one.port}'}}, resolver='ipv6=off')
    assert environment.responding_server() == 'one'
    assert ('app.test', AAAA) not in environment.dns.questions


def test_srv_records_set_ports_and_weights(environment):
    """SRV records supply ports, weights and priorities: servers of a higher priority value are backups."""
    one, two, spare = (environment.upstream(name) for name in ('one', 'two', 'spare'))
    environment.dns.zone.update({
        ('_http._tcp.app.test', SRV): [(SECONDS, (10, 3, one.port, 'a.test')), (SECONDS, (10, 1, two.port, 'a.test')),
                                       (SECONDS, (20, 1, spare.port, 'b.test'))],
        ('a.test', A): [(SECONDS, '127.0.0.1')],
        ('b.test', A): [(SECONDS, '127.0.0.1')]})
    environment.start({'app': {'server': {'address': 'app.test', 'service': 'http', 'fail_timeout': '60s'}}})
    seen = [environment.responding_server() for _ in range(8)]
    assert seen.count('one') == 6 and seen.count('two') == 2
    one.stop()
    two.stop()
    assert environment.responding_server() == 'spare'


@pytest.mark.parametrize('kind', [A, SRV], ids=['A', 'SRV'])
def test_servers_are_added_and_removed_under_load(environment, kind):
    """As pods behind a headless service of Kubernetes: the name server lists a new one when it is ready, and one that has ended a while longer.
    No request fails."""
    addresses = [f'127.0.0.{number}' for number in range(1, 5)]
    port = environment.upstream(addresses[0]).port
    for name in addresses[1:]:
        environment.upstream(name, port=port, address=name).stop()
    pods = dict(zip(addresses, environment.upstreams))

    def publish(listed):
        if kind == SRV:
            environment.dns.zone |= {(f'{name}.test', A): [(SECONDS, name)] for name in listed}
            environment.dns.zone['_http._tcp.app.test', SRV] = [(SECONDS, (1, 1, port, f'{name}.test')) for name in listed]
        else:
            environment.dns.zone['app.test', A] = [(SECONDS, name) for name in listed]

    publish(addresses[:1])
    server = 'app.test service=http' if kind == SRV else f'app.test:{port}'
    environment.start({'app': {'server': server, 'keepalive': 8}}, http={'proxy_next_upstream': ['error', 'timeout']})
    over, seen = threading.Event(), collections.Counter()

    def client():
        while not over.is_set():
            seen[environment.responding_server()] += 1

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(client) for _ in range(4)]
        try:
            for turn in range(8):
                leaving, coming = addresses[turn % 4], addresses[(turn + 1) % 4]
                pods[coming].start()
                publish([leaving, coming])
                before = seen[coming]
                wait_for(lambda coming=coming, before=before: seen[coming] > before, 'the new server gets requests')
                pods[leaving].stop()
                before = sum(seen.values())
                wait_for(lambda before=before: sum(seen.values()) > before + 20, 'requests without the server that has ended')
                publish([coming])
        finally:
            over.set()
        for one in clients:
            one.result(60)
    assert set(seen) == set(addresses), f'{seen}\n{environment.server.errors()[-3000:]}'


GARBAGE = 'Timeout|Misformatted DNS reply'       # older versions of c-ares ignore an invalid response and wait, newer ones fail at once
# Newer versions also fail all other pending queries to the name server, so invalid responses are tested separately.
BAD = [{'fails': (SERVFAIL, 'DNS server'), 'denied': (3, 'not found'), 'silent': (None, 'Timeout')},
       {'short': (b'\0' * 5, GARBAGE), 'garbled': (b'\xff' * 40, GARBAGE)}]


@pytest.mark.parametrize('bad', BAD, ids=['no response', 'garbage'])
def test_failed_resolutions_are_502_and_logged(environment, bad):
    """A failed resolution causes 502 and one log line with the name; the resolver repeats it, and uses a valid response at once."""
    one = environment.upstream('one')
    environment.dns.zone.update({f'{name}.test': response for name, (response, _) in bad.items()})
    environment.start({'sound': {'server': f'127.0.0.1:{one.port}'}, **{name: {'server': f'{name}.test:{one.port}'} for name in bad}},
                locations={f'/{name}': {'proxy_pass': f'http://{name}'} for name in ('sound', *bad)})
    assert environment.responding_server('/sound') == 'one'
    for name, (_, output) in bad.items():
        assert environment.responding_server(f'/{name}') == 502
        lines = re.findall(f'upstream host "{name}.test" cannot be resolved.*', environment.server.errors())
        assert len(lines) == 1 and re.search(output, lines[0]), lines
    for name in bad:
        del environment.dns.zone[f'{name}.test']
        environment.dns.zone[f'{name}.test', A] = [(SECONDS, '127.0.0.1')]
    for name in bad:
        environment.until('one', f'/{name}')
        assert f'upstream host "{name}.test" is resolved again' in environment.server.errors()


def test_resolved_address_outlives_its_ttl_on_failure(environment):
    one = environment.upstream('one')
    environment.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    environment.start({'app': {'server': f'app.test:{one.port}'}})
    assert environment.responding_server() == 'one'
    environment.dns.zone['app.test'] = SERVFAIL
    wait_for(lambda: 'cannot be resolved' in environment.server.errors(), 'the failed resolution')
    assert environment.responding_server() == 'one'


@pytest.mark.parametrize('failure', [SERVFAIL, None], ids=['an error', 'silence'])
def test_a_reload_keeps_addresses_while_dns_fails(environment, failure):
    """New workers start with the addresses that the old workers used, and replace them after the next response."""
    one = environment.upstream('one')
    environment.upstream('two', port=one.port, address='127.0.0.2')
    environment.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    environment.start({'app': {'server': f'app.test:{one.port}'}}, locations={
        '/': {'proxy_pass': 'http://app'}, '/variable': {'proxy_pass': f'http://$arg_name:{one.port}'}}, resolver='valid=1h')
    assert environment.responding_server() == 'one'
    assert environment.responding_server('/variable?name=app.test') == 'one'
    del environment.dns.zone['app.test', A]
    environment.dns.zone['app.test'] = failure
    before, requests = environment.server.workers(), len(environment.dns.questions)
    environment.server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: environment.server.workers() and not set(environment.server.workers()) & set(before), 'the old workers have ended')
    assert len(environment.dns.questions) > requests, 'the new workers resolve the name'
    assert [environment.responding_server() for _ in range(3)] == ['one'] * 3
    assert environment.responding_server('/variable?name=app.test') == 'one'
    del environment.dns.zone['app.test']
    environment.dns.zone['app.test', A] = [(SECONDS, '127.0.0.2')]
    environment.until('two')


def test_resolver_valid_bounds_the_retry_delay(environment):
    environment.dns.zone['app.test'] = SERVFAIL
    environment.start({'app': {'server': 'app.test:80'}}, resolver='valid=100ms')
    wait_for(lambda: len(environment.dns.questions) >= 60, 'the resolution is repeated')


def test_unreachable_name_server_is_502(environment):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(('127.0.0.1', 0))
        environment.dns.stop()
        environment.dns = Dns()
        unused_port = unused.getsockname()[1]
    environment.start({'app': {'server': 'app.test:80'}}, http={'resolver': f'127.0.0.1:{unused_port}'})
    assert environment.responding_server() == 502


def test_variable_host_name_is_resolved(environment):
    one = environment.upstream('one')
    environment.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    environment.start(locations={'/': {'proxy_pass': f'http://$arg_name:{one.port}'}})
    assert environment.responding_server('/?name=app.test') == 'one'
    assert environment.responding_server('/?name=nobody.test') == 502
    assert 'upstream host "nobody.test" cannot be resolved' in environment.server.errors()


def test_hosts_file_precedes_dns(environment):
    one = environment.upstream('one')
    environment.start(locations={'/': {'proxy_pass': f'http://localhost:{one.port}'}}, http={'resolver': f'127.0.0.1:{environment.dns.port}'})
    assert environment.responding_server() == 'one'
    assert not [name for name, _ in environment.dns.questions if name == 'localhost']


def test_resolver_of_an_upstream_block(environment):
    one = environment.upstream('one')
    other = Dns({('app.test', A): [(SECONDS, '127.0.0.1')]})
    environment.start({'app': {'server': f'app.test:{one.port}', 'resolver': f'127.0.0.1:{other.port}'}})
    assert environment.responding_server() == 'one'
    assert not environment.dns.questions
    other.stop()


def test_stream_resolver_does_not_apply_to_http(environment):
    """The resolver of `stream` cannot resolve app.test; the resolver of `http` can."""
    one = environment.upstream('one')
    unused_port = server_kit.free_port()
    environment.dns.zone['app.test', A] = [(SECONDS, '127.0.0.1')]
    environment.start(locations={'/': {'proxy_pass': f'http://$arg_host:{one.port}'}},
                main={'stream': {'resolver': f'127.0.0.1:{unused_port}',
                                 'server': {'listen': f'127.0.0.1:{server_kit.free_port()}', 'proxy_pass': f'127.0.0.1:{one.port}'}}})
    assert environment.responding_server('/?host=app.test') == 'one'
