"""Proxied requests compared with nginx and HAProxy: CPU for small responses, CPU per GB of large ones, memory of idle WebSockets."""
from .. import blocks, sizes
from ..model import Group, Load, Setup

TITLE = 'Reverse proxy'
SMALL, LARGE, WEBSOCKETS = Load('1k'), Load('10m', 8), Load('1k', 1000, 'websockets')
EMULATED = {SMALL: Load('1k', 8), LARGE: Load('1m', 2), WEBSOCKETS: Load('1k', 100, 'websockets')}
FIGURES = {'websockets': ('memory', 'memory_connection')}


def setups(options, transports):
    loops = [options.loop] if options.loop != 'auto' else ['io_uring', 'epoll']
    return [Setup(server, transport, loop, role='proxy') for transport in transports
            for server, loop in (*(('sluice', loop) for loop in loops), ('nginx', ''), ('haproxy', ''))]


def plan(options):
    """The default loads, or responses of the sizes of --sizes."""
    load_of = EMULATED.get if options.emulated else lambda load: load
    if options.sizes:
        return [Group(Load(size, 8 if sizes.bytes_of(size) >= sizes.bytes_of('10m') or options.emulated else 64), setups(options, ('user',)))
                for size in options.sizes]
    return [Group(load_of(SMALL), setups(options, ('user',))), Group(load_of(LARGE), setups(options, ('user', 'ktls'))),
            Group(load_of(WEBSOCKETS), setups(options, ('user',)), count_calls=False)]


def report_elements(all_outcomes, _results):
    elements = [blocks.Text('HTTPS to the client, plain HTTP to the upstream server, keep-alive on both sides. Only the proxy is measured; a '
                        'sluice serves the files to all proxies. nginx writes no temporary files.')] if all_outcomes else []
    for load, outcomes in blocks.by_load(all_outcomes).items():
        base = next((outcome for outcome in outcomes if outcome.setup.server == 'nginx' and outcome.readings), None)
        elements.append(blocks.table_of(load, outcomes, FIGURES.get(load.kind, ('rate', 'cpu_request', 'cpu_gb', 'p50', 'p99', 'memory')), base,
                                    'memory_connection' if load.kind == 'websockets' else 'cpu_request'))
    return elements
