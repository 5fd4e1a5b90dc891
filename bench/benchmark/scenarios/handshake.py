"""The cost of a TLS handshake, compared with a program that only performs OpenSSL handshakes over memory BIOs."""
import statistics

from .. import blocks, figures
from ..model import OPENSSL, HANDSHAKES, Group, Load, Setup
from .targets import format_target

TITLE = 'Handshakes compared with OpenSSL alone'
KEEPALIVE = Load('1k', 32)
LOADS = {kind: Load('1k', 32, kind) for kind in HANDSHAKES}
TARGET = 1.10


def setups(options):
    loops = ('io_uring', 'epoll') if options.loop == 'auto' else (options.loop,)
    return [Setup('sluice', 'user', loop) for loop in loops] + [Setup(peer, 'user') for peer in options.peers]


def plan(options):
    servers = setups(options)
    return [Group(KEEPALIVE, servers, count_calls=False),
            *(Group(load, [Setup(OPENSSL), *servers], count_calls=False) for load in LOADS.values())]


def median_us(readings, name):
    summary = figures.summary(readings, name)
    return summary['median'] if summary else None


def ratios(readings, keepalive, alone):
    """For each round: the CPU time in user space of a connection, minus that of a keep-alive request, relative to OpenSSL alone."""
    request, base = median_us(keepalive, 'user_request'), median_us(alone, 'user_request')
    if request is None or not base:
        return []
    return [(value - request) / base for value in figures.values_of(readings, 'user_request')]


def row_of(outcome, keepalive, alone):
    values = ratios(outcome.readings, keepalive, alone)
    median = statistics.median(values) if values else None
    return [outcome.setup.label, *(figures.formatted(figures.summary(outcome.readings, name)) for name in ('cpu_request', 'user_request')),
            format_target(median, TARGET, True, figures.spread(values) > figures.NOISY_SPREAD)]


def report_elements(all_outcomes, _results):
    groups = blocks.by_load(all_outcomes)
    keepalive = {outcome.setup: outcome.readings for outcome in groups.get(KEEPALIVE, [])}
    elements = []
    for kind, load in LOADS.items():
        outcomes = groups.get(load, [])
        alone = next((outcome.readings for outcome in outcomes if outcome.setup.server == OPENSSL), [])
        rows = [['OpenSSL alone', *(figures.formatted(figures.summary(alone, name)) for name in ('cpu_request', 'user_request')), '']]
        rows += [row_of(outcome, keepalive.get(outcome.setup, []), alone) for outcome in outcomes if outcome.setup.server != OPENSSL and outcome.readings]
        elements.append(blocks.Table(f'A connection with a {kind} handshake and a response of 1 KiB',
                                 ['', *(figures.title_of(name) for name in ('cpu_request', 'user_request')),
                                  f'user space without the response / OpenSSL alone (at most {TARGET:g})'], rows))
    return [blocks.Text('OpenSSL alone is `build/bench/handshake`: TLS 1.3 over memory BIOs, with the same certificate type and library; only the calls of '
                        'the server are counted. A server also accepts, receives, sends and closes. The ratio therefore compares the time in user '
                        'space, minus that of a response on a keep-alive connection.'), *elements]


def readme_elements(all_outcomes, results):
    return report_elements(all_outcomes, results)
