"""Compares the figures of one server under blast, blast --verify (which works like the other two), wrk and h2load."""
from .. import blocks, figures
from ..model import Group, Load, Setup

TITLE = 'The client compared with wrk and h2load'
CLIENTS = ('blast', 'blast --verify', 'wrk', 'h2load')
CONNECTIONS = 64
SIZE = '1k'
HANDSHAKES = Load(SIZE, 32, 'full')
FIGURE_NAMES = ('rate', 'cpu_request', 'client_share', 'switches_request')
COLUMNS = (*map(figures.title_of, FIGURE_NAMES), 'calls per request', f'without {CONNECTIONS} handshakes, us')


def plan(options):
    setups = [Setup('sluice', 'user', options.loop)]
    return [Group(HANDSHAKES, setups, count_calls=False)] + [Group(Load(SIZE, CONNECTIONS, client=client), setups) for client in CLIENTS]


def without_handshakes(outcome, handshake):
    """CPU per request minus the handshakes, at `shake` microseconds each. The figures of blast without --verify never include them."""
    cost = 0 if outcome.load.client == 'blast' else CONNECTIONS * handshake / 1e6
    return figures.summary([{**reading, 'cpu': reading['cpu'] - cost} for reading in outcome.readings], 'cpu_request')


def report_elements(found, _results):
    handshake = figures.summary([reading for outcome in found if outcome.load == HANDSHAKES for reading in outcome.readings], 'cpu_request')
    rows = []
    for outcome in (outcome for outcome in found if outcome.load != HANDSHAKES):
        name = outcome.load.client
        if not outcome.readings:
            rows.append([name, f'not measured: {outcome.failure}', *[''] * (len(COLUMNS) - 1)])
            continue
        rows.append([name, *(figures.shown(figures.summary(outcome.readings, figure)) for figure in FIGURE_NAMES), figures.number(outcome.calls),
                     figures.shown(without_handshakes(outcome, handshake['median'])) if handshake else '-'])
    return [blocks.Table(f'{SIZE}, {CONNECTIONS} connections, TLS in user space', ['', *COLUMNS], rows),
            blocks.Text('`blast --verify` works like wrk and h2load: it decrypts every record, sleeps while there is none, and its '
                        'handshakes are counted. Its server CPU per request must equal theirs. The first row is blast with its usual settings. '
                        f'It costs the server less for two reasons. The {CONNECTIONS} handshakes are divided among all requests: the slower the '
                        f'client, the higher the share per request; the last column subtracts them, at '
                        f'{figures.number(handshake["median"]) if handshake else "-"} us each. And with a faster client the server finds more requests '
                        'per loop iteration: it sleeps less (context switches) and makes fewer system calls per request.')]
