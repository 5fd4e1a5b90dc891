"""CPU per request and per GB, and memory of idle connections, compared with nginx and h2o."""
from .. import blocks, sizes
from ..model import Group, Load, Setup

TITLE = 'CPU and memory compared with other servers'
SIZES = ('1k', '1m', '100m')
LARGE = 16 << 20                    # from this size on: 8 connections instead of 64
TRANSPORTS = ('user', 'ktls')
PEERS = ('nginx', 'h2o')
IDLE = 10000


def setups(options, transports):
    loops = ('io_uring', 'epoll') if options.loop == 'auto' else (options.loop,)
    peers = options.peers or PEERS
    return [Setup(server, transport, loop) for transport in transports for server, loop in (*((peer, '') for peer in peers), *(('sluice', loop) for loop in loops))]


def plan(options):
    groups = [Group(Load(size, 8 if sizes.bytes_of(size) >= LARGE or options.emulated else 64), setups(options, TRANSPORTS), count_calls=False)
              for size in options.sizes or SIZES]
    return groups if options.emulated else [*groups, Group(Load('1k', IDLE, 'idle'), setups(options, ('user',)))]


def report_elements(all_outcomes, _results):
    elements = []
    for load, outcomes in blocks.by_load(all_outcomes).items():
        base = next((outcome for outcome in outcomes if outcome.setup.server != 'sluice' and outcome.readings), None)
        names = ('memory', 'memory_connection') if load.kind == 'idle' else ('cpu_request', 'cpu_gb', 'user_request', 'system_request', 'rate')
        elements.append(blocks.table_of(load, outcomes, names, base, 'memory_connection' if load.kind == 'idle' else 'cpu_request'))
    return [*blocks.charts_of('comparison', blocks.by_load(all_outcomes)), *elements]


def readme_elements(_found, _results):
    return []                       # bench/README.md has the scenario targets instead
