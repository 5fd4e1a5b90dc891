"""Plain HTTP, user-space TLS and kTLS: throughput and CPU."""
from .. import blocks, figures, sizes
from ..model import Group, Load, Setup

TITLE = 'Plain, user-space TLS and kTLS'
LOADS = (Load('1k'), Load('100k'), Load('10m', connections=16))
LOADS_EMULATED = (Load('1k', connections=16), Load('100k', connections=8), Load('4m', connections=2))
BYTES_IN_FLIGHT_MAX = 64 << 20
TRANSPORTS = ('plain', 'user', 'ktls')


def load_generator(options):
    """The default loads, or those of --sizes. Large files and emulated machines get fewer connections."""
    if options.sizes:
        return [Load(size, max(1, min(16 if options.emulated else 64, BYTES_IN_FLIGHT_MAX // sizes.bytes_of(size)))) for size in options.sizes]
    return LOADS_EMULATED if options.emulated else LOADS


def plan(options):
    setups = [Setup(server, transport, loop) for server, loop in (('sluice', options.loop), *((peer, '') for peer in options.peers))
              for transport in TRANSPORTS]
    return [Group(load, setups) for load in load_generator(options)]


def cost_sentences(groups):
    """The CPU time of TLS in user space and of kTLS relative to plain HTTP, as a Text."""
    sentences = []
    for load, outcomes in groups.items():
        ours = {outcome.setup.transport: outcome.readings for outcome in outcomes if outcome.setup.server == 'sluice' and outcome.readings}
        if 'plain' not in ours or 'user' not in ours:
            continue
        cost = figures.paired_ratio(ours['user'], ours['plain'], 'cpu_request')
        text = f'{load.size}: TLS in user space takes {figures.number(cost)} times the CPU of plain HTTP'
        if 'ktls' in ours:
            text += f', kTLS {figures.number(figures.paired_ratio(ours["ktls"], ours["plain"], "cpu_request"))} times'
        sentences.append(text + '.')
    return [blocks.Text(' '.join(sentences))] if sentences else []


def report_elements(all_outcomes, _results):
    groups = blocks.by_load(all_outcomes)
    names = ('rate', 'throughput', 'cpu_request', 'system_request', 'cpu_gb', 'cpu_share', 'switches', 'p50', 'p99', 'p999', 'memory')
    elements = cost_sentences(groups)
    for load, outcomes in groups.items():
        base = next((outcome for outcome in outcomes if outcome.setup.transport == 'plain' and outcome.readings), None)
        elements.append(blocks.table_of(load, outcomes, names, base))
    elements.append(blocks.bars_of('quick-cpu', 'Server CPU per GB', 'cpu_gb', groups))
    elements.append(blocks.bars_of('quick-throughput', 'Throughput', 'throughput', groups))
    return elements


def readme_elements(all_outcomes, _results):
    """One table: CPU per request and throughput by size."""
    groups = blocks.by_load(all_outcomes)
    columns = ['', *(f'{load.size}: {figures.title_of(name)}' for load in groups for name in ('cpu_request', 'throughput'))]
    labels = dict.fromkeys(outcome.setup.label for outcome in all_outcomes if outcome.readings)
    rows = []
    for label in labels:
        readings = [next((one.readings for one in outcomes if one.setup.label == label), []) for outcomes in groups.values()]
        rows.append([label, *(figures.formatted(figures.summary(one, name)) for one in readings for name in ('cpu_request', 'throughput'))])
    return [*cost_sentences(groups), blocks.Table('Server CPU and throughput', columns, rows)] if rows else []
