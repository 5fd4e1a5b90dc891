"""The response size above which encryption in the kernel costs less: CPU per response in user space and with kTLS."""
from .. import blocks, figures, sizes
from ..model import Group, Load, Setup

TITLE = 'The size above which kernel TLS costs less'
SIZES = ('1k', '4k', '16k', '32k', '64k', '128k', '256k', '1m', '4m', '16m')
FIRST_SIZES = ('1k', '16k', '64k', '256k', '1m')
BYTES_IN_FLIGHT_MAX = 16 << 20      # a round must end in time on a slow machine


def setups(loop):
    return [Setup('sluice', 'user', loop, (('ssl_ktls', 'off'),)),
            Setup('sluice', 'ktls', loop, (('ssl_ktls', 'on'), ('ssl_ktls_threshold', '1')))]


def plan(options):
    both = setups(options.loop)
    keepalive = [Group(Load(size, max(1, min(8, BYTES_IN_FLIGHT_MAX // sizes.bytes_of(size)))), both, count_calls=False) for size in options.sizes or SIZES]
    return keepalive + [Group(Load(size, 2, 'resumed'), both, count_calls=False) for size in options.sizes or FIRST_SIZES]


def ratios(all_outcomes, kind):
    """{size: (user, kernel, kernel / user)} of summaries, ordered by size; None if the kernel was not measured."""
    rows = {}
    for load, outcomes in blocks.by_load(all_outcomes).items():
        if load.kind == kind:
            by_transport = {outcome.setup.transport: outcome.readings for outcome in outcomes}
            user, kernel = by_transport.get('user') or [], by_transport.get('ktls') or []
            rows[load.size] = (figures.summary(user, 'cpu_request'), figures.summary(kernel, 'cpu_request'),
                               figures.paired_ratio(kernel, user, 'cpu_request'))
    return dict(sorted(rows.items(), key=lambda item: sizes.bytes_of(item[0])))


def break_even(rows):
    """The smallest size from which on the kernel never costs more; None if there is none or nothing was measured."""
    smallest = None
    for size, (_, _, ratio) in rows.items():
        if ratio is not None:
            smallest = (smallest or size) if ratio <= 1 else None
    return smallest


def report_elements(all_outcomes, _results):
    keepalive, first = ratios(all_outcomes, 'requests'), ratios(all_outcomes, 'resumed')
    elements = [blocks.Table('Server CPU per response, us', ['', 'keep-alive: user space', 'keep-alive: kernel', 'kernel / user',
                                                       'first: user space', 'first: kernel', 'kernel / user'],
                         [[size, *row_of(keepalive.get(size)), *row_of(first.get(size))] for size in keepalive])]
    if any(ratio is not None for _, _, ratio in keepalive.values()):
        elements.append(blocks.Text(f'`keep-alive`: connections on which kTLS was enabled before; from {break_even(keepalive) or "no size"} on the kernel '
                                f'never costs more. `first`: the only response of a connection that resumed a session, including the handshake '
                                f'and enabling kTLS; from {break_even(first) or "no size"} on. `ssl_ktls_threshold` decides on the first '
                                f'large response of a connection.'))
    return elements


def row_of(row):
    return [figures.formatted(row[0]), figures.formatted(row[1]), figures.number(row[2])] if row else ['-'] * 3
