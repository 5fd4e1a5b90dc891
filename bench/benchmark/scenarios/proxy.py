"""Proxying TCP to TCP: splice against copying. It needs the stream module, and says so where it is not built in."""
from .. import blocks, figures
from ..model import Group, Load, Setup

TITLE = 'Proxying TCP to TCP: splice against copying'
PUBLISHED = {'copy': 737926, 'splice': 410900}      # ns per MB; and 99.93 % less memory by splice
WAYS = (('splice', 'on'), ('copy', 'off'))


def plan(options):
    size = '1m' if options.emulated else '100m'
    return [Group(Load(size, 8), [Setup('stream', 'plain', options.loop, (('proxy_splice', switch),), name) for name, switch in WAYS],
                  count_calls=False)]


def present(found, _results):
    rows = []
    for outcome in found:
        here = figures.summary([{**reading, 'cpu': reading['cpu'] * 1e6} for reading in outcome.readings], 'cpu_gb')
        memory = figures.summary(outcome.readings, 'memory')
        rows.append([outcome.setup.name, figures.shown(here) if here else f'not measured: {outcome.missing}',
                     figures.number(PUBLISHED[outcome.setup.name]), figures.shown(memory)])
    return [blocks.Table('Between two sockets', ['', 'server CPU here, ns per MB', 'published, ns per MB', 'memory here, KiB'], rows)]
