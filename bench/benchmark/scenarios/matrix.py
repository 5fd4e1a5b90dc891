"""Variations of one parameter each from a base load: 64 connections, TLS 1.3, AES-128-GCM."""
from .. import blocks
from ..model import Group, Load, Setup

TITLE = 'The matrix'
BASE_SIZE, MIDDLE_SIZE = '1k', '100k'
SIZES = (('1k', 64), ('10k', 64), ('100k', 64), ('1m', 32), ('100m', 8), ('1g', 2))
CONNECTION_LOADS = (Load('1k', 1), Load('1k', 1000), Load('1k', 64, idle=10000), Load('1k', 10000))
SUITES = (('TLSv1.3', 'TLS_AES_256_GCM_SHA384'), ('TLSv1.3', 'TLS_CHACHA20_POLY1305_SHA256'),
          ('TLSv1.2', 'ECDHE-ECDSA-AES128-GCM-SHA256'), ('TLSv1.2', 'ECDHE-ECDSA-AES256-GCM-SHA384'),
          ('TLSv1.2', 'ECDHE-ECDSA-CHACHA20-POLY1305'))
HANDSHAKES = (Load('1k', 32, 'full'), Load('1k', 32, 'resumed'), Load('1k', 32, 'full', protocol='TLSv1.2'),
          Load('1k', 32, 'resumed', protocol='TLSv1.2'))
SUMMARY = ('rate', 'throughput', 'cpu_request', 'user_request', 'system_request', 'cpu_gb', 'cpu_share', 'client_share', 'switches', 'p50',
           'p99', 'p999', 'memory')
EMULATED_CONNECTIONS_MAX = 1000


def setups(options, transports):
    return [Setup(server, transport, loop) for server, loop in (('sluice', 'io_uring'), ('sluice', 'epoll'), *((peer, '') for peer in options.peers))
            for transport in transports]


def plan(options):
    every, tls = setups(options, ('plain', 'user', 'ktls')), setups(options, ('user', 'ktls'))
    user = setups(options, ('user',))
    groups = [Group(Load(size, connections), every) for size, connections in SIZES]
    groups += [Group(load, setups(options, ('plain', 'user')), count_calls=load.connections == 1) for load in CONNECTION_LOADS]
    groups += [Group(Load(MIDDLE_SIZE, 64, protocol=protocol, suite=suite), tls, count_calls=False) for protocol, suite in SUITES]
    groups += [Group(load, user) for load in HANDSHAKES]
    groups += [Group(Load(BASE_SIZE, 64, half_load=True), user, count_calls=False), Group(Load(BASE_SIZE, 64, pipeline=8), user)]
    groups += [Group(Load('1m', 200, slow=100000), tls), Group(Load(BASE_SIZE, 10000, 'idle'), setups(options, ('plain', 'user')))]
    if options.emulated:
        groups = [group for group in groups if group.load.size not in ('100m', '1g')
                  and group.load.connections + group.load.idle <= EMULATED_CONNECTIONS_MAX]
    return groups


def report_elements(all_outcomes, _results):
    groups = blocks.by_load(all_outcomes)
    elements = []
    for load, outcomes in groups.items():
        names = {'idle': ('memory', 'memory_connection'), 'full': ('handshakes_cpu', 'rate', 'cpu_request', 'p50', 'p99'),
                 'resumed': ('handshakes_cpu', 'rate', 'cpu_request', 'p50', 'p99')}.get(load.kind, SUMMARY)
        base = next((outcome for outcome in outcomes if outcome.readings), None)
        elements.append(blocks.table_of(load, outcomes, names, base, 'memory_connection' if load.kind == 'idle' else 'cpu_request'))
    by_size = {load: outcomes for load, outcomes in groups.items() if (load.size, load.connections) in SIZES and load == Load(load.size, load.connections)}
    if by_size:
        elements += [blocks.bars_of('matrix-cpu', 'Server CPU per GB, by size', 'cpu_gb', by_size),
                 blocks.bars_of('matrix-throughput', 'Throughput, by size', 'throughput', by_size)]
    handshakes = {load: outcomes for load, outcomes in groups.items() if load.kind in ('full', 'resumed')}
    return elements + ([blocks.bars_of('matrix-handshakes', 'Handshakes per CPU second', 'handshakes_cpu', handshakes)] if handshakes else [])


def readme_elements(_found, _results):
    return []                       # too long for bench/README.md
