"""Compares the figures of one server under blast, blast --verify (which works like the other two), wrk and h2load."""
from .. import blocks, figures
from ..model import Group, Load, Setup

TITLE = 'The client compared with wrk and h2load'
CLIENTS = ('blast', 'blast --verify', 'wrk', 'h2load')
CONNECTIONS = 64
SIZE = '1k'
SHAKES = Load(SIZE, 32, 'full')
SHOWN = ('rate', 'cpu_request', 'client_share', 'switches_request')
COLUMNS = (*map(figures.titled, SHOWN), 'calls per request', f'without {CONNECTIONS} handshakes, us')


def plan(options):
    setups = [Setup('sluice', 'user', options.loop)]
    return [Group(SHAKES, setups, count_calls=False)] + [Group(Load(SIZE, CONNECTIONS, client=client), setups) for client in CLIENTS]


def without_handshakes(outcome, shake):
    """CPU per request minus the handshakes, at `shake` microseconds each. The figures of blast without --verify never include them."""
    cost = 0 if outcome.load.client == 'blast' else CONNECTIONS * shake / 1e6
    return figures.summary([{**reading, 'cpu': reading['cpu'] - cost} for reading in outcome.readings], 'cpu_request')


def present(found, _results):
    shake = figures.summary([reading for outcome in found if outcome.load == SHAKES for reading in outcome.readings], 'cpu_request')
    rows = []
    for outcome in (outcome for outcome in found if outcome.load != SHAKES):
        name = outcome.load.client
        if not outcome.readings:
            rows.append([name, f'not measured: {outcome.missing}', *[''] * (len(COLUMNS) - 1)])
            continue
        rows.append([name, *(figures.shown(figures.summary(outcome.readings, figure)) for figure in SHOWN), figures.number(outcome.calls),
                     figures.shown(without_handshakes(outcome, shake['median'])) if shake else '-'])
    return [blocks.Table(f'{SIZE}, {CONNECTIONS} connections, TLS in user space', ['', *COLUMNS], rows),
            blocks.Text('`blast --verify` works like wrk and h2load: it decrypts every record, sleeps while there is none, and its '
                        'handshakes are counted. Its server CPU per request must equal theirs. The first row is blast with its usual settings. '
                        f'It costs the server less for two reasons. The {CONNECTIONS} handshakes are divided among all requests: the slower the '
                        f'client, the higher the share per request; the last column subtracts them, at '
                        f'{figures.number(shake["median"]) if shake else "-"} us each. And with a faster client the server finds more requests '
                        'per loop iteration: it sleeps less (context switches) and makes fewer system calls per request.')]
