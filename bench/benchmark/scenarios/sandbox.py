"""The cost of the sandbox: CPU time with `sandbox: on`, relative to `sandbox: off`."""
import statistics

from .. import blocks, figures
from ..model import Group, Load, Setup
from .targets import format_target

TITLE = 'Cost of the sandbox'
LOADS = (Load('1k'), Load('100k'), Load('1k', 32, 'full'))
PROXIED = Load('1k')
OFF = {'overrides': (('sandbox', 'off'),), 'name': 'TLS user, sandbox off'}
TARGET = 1.02


def plan(options):
    loops = ('io_uring', 'epoll') if options.loop == 'auto' else (options.loop,)
    roles = [(load, 'files') for load in LOADS] + [(PROXIED, 'proxy')]
    return [Group(load, [Setup('sluice', 'user', loop, role=role, **words) for loop in loops for words in ({}, OFF)], count_calls=False)
            for load, role in roles]


def ratio_row(on, off):
    """The row of a setup: the median of the ratios of adjacent rounds, with half the distance of their quartiles."""
    first, second = (figures.values_of(one.readings, 'cpu_request') for one in (on, off))
    ratios = [a / b for a, b in zip(first, second) if b]
    median = statistics.median(ratios) if ratios else None
    return [on.load.label, on.setup.label, f'at most {TARGET:g}', f'{format_target(median, TARGET, True)} ±{figures.spread(ratios) * 50:.0f} %']


def pairs(outcomes):
    """(with the sandbox, without it) of each load, loop and role."""
    off = {(one.load, one.setup.loop, one.setup.role): one for one in outcomes if one.setup.overrides}
    keys = [(one, off.get((one.load, one.setup.loop, one.setup.role))) for one in outcomes if not one.setup.overrides]
    return [(on, other) for on, other in keys if other and on.readings and other.readings]


def report_elements(all_outcomes, _results):
    if not all_outcomes:
        return []
    rows = [ratio_row(on, off) for on, off in pairs(all_outcomes)]
    return [blocks.Table('CPU time per response with the sandbox / without it', ['load', 'setup', 'target', 'measured'], rows),
            *(blocks.table_of(load, outcomes, ('cpu_request', 'p50')) for load, outcomes in blocks.by_load(all_outcomes).items())]
