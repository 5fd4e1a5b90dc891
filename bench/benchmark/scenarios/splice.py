"""Proxying TCP to TCP: splice against copying. What sluice's stream module does, beside HAProxy in both ways."""
from .. import blocks, figures
from ..model import Group, Load, Setup

TITLE = 'Proxying TCP to TCP: splice against copying'
PUBLISHED = {'copy': ('737,926', ''), 'splice': ('410,900', '99.93 % less')}        # ns per MB, memory
HAPROXY_SPLICE = (('option', 'splice-request'), ('option', 'splice-response'))


def plan(options):
    setups = [Setup('sluice', 'plain', options.loop, (('proxy_splice', 'off'),), 'copy', 'tcp'),
              Setup('sluice', 'plain', options.loop, (), 'splice', 'tcp'),
              Setup('haproxy', 'plain', '', (), 'copy', 'tcp'), Setup('haproxy', 'plain', '', HAPROXY_SPLICE, 'splice', 'tcp')]
    return [Group(Load('1m', 2) if options.emulated else Load('100m', 8), setups)]


def present(found, _results):
    rows = []
    for outcome in found:
        here = figures.summary(outcome.readings, 'cpu_mb')
        published = PUBLISHED[outcome.setup.name] if outcome.setup.server == 'sluice' else ('', '')
        rows.append([outcome.setup.label, figures.shown(here) if here else f'not measured: {outcome.missing}', published[0],
                     figures.shown(figures.summary(outcome.readings, 'throughput')),
                     figures.shown(figures.summary(outcome.readings, 'memory')), published[1], figures.number(outcome.calls)])
    return [blocks.Table('Between two sockets', ['', 'server CPU here, ns per MB', 'published, ns per MB', 'throughput, MB/s',
                                                 'memory here, KiB', 'published', 'calls per answer'], rows)]
