"""Does blast count as others do? The same server under blast, wrk and h2load."""
from .. import blocks, figures
from ..model import Group, Load, Setup

TITLE = 'The client beside wrk and h2load'
CLIENTS = ('blast', 'wrk', 'h2load')
SIZES = ('1k', '100k')


def plan(options):
    size = SIZES[:1] if options.emulated else SIZES
    return [Group(Load(one, 64, client=client), [Setup('sluice', 'user', options.loop)], count_calls=False)
            for one in size for client in CLIENTS]


def present(found, _results):
    rows = []
    for outcome in found:
        if outcome.readings:
            rows.append([f'{outcome.load.client}, {outcome.load.size}',
                         *(figures.shown(figures.summary(outcome.readings, name)) for name in ('rate', 'cpu_request', 'client_share'))])
        else:
            rows.append([f'{outcome.load.client}, {outcome.load.size}', f'not measured: {outcome.missing}', '', ''])
    return [blocks.Table('64 connections, TLS in user space', ['', 'requests, /s', 'server CPU per request, us', 'client CPU, %'], rows),
            blocks.Text('What must agree is the server\'s CPU per request; rates differ where a client is the limit. The handshakes of wrk '
                        'and h2load are within the measured time, those of blast are not.')]
