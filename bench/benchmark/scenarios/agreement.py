"""Compares blast with wrk and h2load: the figures of one server under each client."""
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


def without_handshakes(outcome, handshake_us):
    """CPU per request minus the handshakes. The measured time of blast without --verify has no handshakes."""
    cost = 0 if outcome.load.client == 'blast' else CONNECTIONS * handshake_us / 1e6
    return figures.summary([{**reading, 'cpu': reading['cpu'] - cost} for reading in outcome.readings], 'cpu_request')


def report_elements(all_outcomes, _results):
    handshake = figures.summary([reading for outcome in all_outcomes if outcome.load == HANDSHAKES for reading in outcome.readings], 'cpu_request')
    rows = []
    for outcome in (outcome for outcome in all_outcomes if outcome.load != HANDSHAKES):
        name = outcome.load.client
        if not outcome.readings:
            rows.append([name, f'not measured: {outcome.failure}', *[''] * (len(COLUMNS) - 1)])
            continue
        rows.append([name, *(figures.formatted(figures.summary(outcome.readings, figure)) for figure in FIGURE_NAMES), figures.number(outcome.calls),
                     figures.formatted(without_handshakes(outcome, handshake['median'])) if handshake else '-'])
    return [blocks.Table(f'{SIZE}, {CONNECTIONS} connections, TLS in user space', ['', *COLUMNS], rows),
            blocks.Text('`blast --verify` decrypts every record and sleeps while there is none, as wrk and h2load do, and its handshakes are part of the '
                        'measured time. Its server CPU per request must equal theirs. The first row is blast with its usual settings, which '
                        f'cost the server less for two reasons. First, the CPU time of {CONNECTIONS} handshakes is divided by the number of requests, '
                        'which is lower for a slower client; the last column subtracts it, at '
                        f'{figures.number(handshake["median"]) if handshake else "-"} us per handshake. Second, with a faster client the server finds '
                        'more requests per loop iteration: it has fewer context switches and system calls per request.')]
