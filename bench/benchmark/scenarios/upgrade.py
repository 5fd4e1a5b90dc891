"""The longest interval without a response for one client while the server is upgraded to another binary (`-s upgrade`)."""
from .. import blocks, figures
from ..model import Group, Load, Setup
from .targets import format_target

TITLE = 'Upgrade under load'
LOAD = Load('1k', 1, 'upgrade', rate=1000)
FIGURE_NAMES = ('rate', 'baseline_gap', 'upgrade_gap', 'upgrade_seconds', 'client_connections')
TARGET_MS = 50


def plan(options):
    loops = ('io_uring', 'epoll') if options.loop == 'auto' else (options.loop,)
    return [Group(LOAD, [Setup('sluice', transport, loop) for transport in ('plain', 'user') for loop in loops], count_calls=False)]


def target_row(outcome):
    summary = figures.summary(outcome.readings, 'upgrade_gap')
    return [outcome.setup.label, f'at most {TARGET_MS}', format_target(summary['high'] if summary else None, TARGET_MS, True)]


def report_elements(all_outcomes, _results):
    if not all_outcomes:
        return []
    return [blocks.Text('One client sends a thousand requests per second on one connection, one at a time, and connects again if the server closes '
                        'it. The server is upgraded once in each round. A request that gets no response counts as part of the gap; any other '
                        'fault ends the measurement.'),
            blocks.table_of(LOAD, all_outcomes, FIGURE_NAMES),
            blocks.Table('Longest gap of all rounds, in milliseconds', ['', 'target', 'measured'],
                         [target_row(outcome) for outcome in all_outcomes if outcome.readings])]
