"""Proxying TCP to TCP by splice, as sluice's stream module does, compared with HAProxy with and without splice."""
from .. import blocks, figures
from ..model import Group, Load, Setup

TITLE = 'Proxying TCP to TCP: splice against copying'
PUBLISHED = [['published: copying', '737,926', '', '', ''], ['published: splice', '410,900', '', '99.93 % less', '']]
HAPROXY_SPLICE = (('option', 'splice-request'), ('option', 'splice-response'))
FIGURE_NAMES = ('cpu_mb', 'throughput', 'memory')


def plan(options):
    setups = [Setup('sluice', 'plain', options.loop, (), 'splice', 'tcp'), Setup('haproxy', 'plain', '', HAPROXY_SPLICE, 'splice', 'tcp'),
              Setup('haproxy', 'plain', '', (), 'copying', 'tcp')]
    return [Group(Load('1m', 2) if options.emulated else Load('100m', 8), setups)]


def report_elements(all_outcomes, _results):
    rows = [[outcome.setup.label, *(figures.formatted(figures.summary(outcome.readings, name)) for name in FIGURE_NAMES), figures.number(outcome.calls)]
            if outcome.readings else [outcome.setup.label, f'not measured: {outcome.failure}', '', '', ''] for outcome in all_outcomes]
    return [blocks.Table('Between two sockets', ['', *map(figures.title_of, FIGURE_NAMES), 'calls per response'], [*rows, *PUBLISHED])]
