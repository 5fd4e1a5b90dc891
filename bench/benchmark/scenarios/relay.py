"""A large proxied response over HTTPS: spliced and encrypted by the kernel, compared with copied and encrypted in user space."""
from .. import blocks, figures
from ..model import Group, Load, Setup

TITLE = 'Large proxied responses: splice into kernel TLS against copying'
TARGET = 0.6
FIGURE_NAMES = ('cpu_gb', 'cpu_request', 'throughput')


def plan(options):
    loops = [options.loop] if options.loop != 'auto' else ['io_uring', 'epoll']
    setups = [Setup('sluice', transport, loop, (), name, 'proxy') for loop in loops
              for transport, name in (('user', 'copied, encrypted in user space'), ('ktls', 'spliced, encrypted by the kernel'))]
    return [Group(Load(size, connections), setups) for size, connections in ((('4m', 1),) if options.emulated else (('10m', 8), ('100m', 8)))]


def report_elements(all_outcomes, _results):
    elements = []
    for load, outcomes in blocks.by_load(all_outcomes).items():
        copied = {outcome.setup.loop: outcome for outcome in outcomes if outcome.setup.transport == 'user'}
        elements.append(blocks.table_of(load, outcomes, FIGURE_NAMES))
        for outcome in outcomes:
            ratio = outcome.setup.transport == 'ktls' and figures.paired_ratio(outcome.readings, copied[outcome.setup.loop].readings, 'cpu_request')
            if ratio:
                elements.append(blocks.Text(f'{outcome.setup.loop}, {load.label}: CPU of splicing / of copying, median over adjacent rounds: '
                                        f'{figures.number(ratio)}; the target is at most {TARGET}.'))
    return elements
