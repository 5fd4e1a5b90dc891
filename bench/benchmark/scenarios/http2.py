"""HTTP/2 over TLS, compared with nginx, h2o and nghttpd: CPU per small response and per GB, memory of idle connections."""
from .. import blocks, figures
from ..model import Group, Load, Setup

TITLE = 'HTTP/2'
SMALL = Load('1k', 10, streams=100, client='h2load h2')
LARGE = Load('1m', 10, streams=4, client='h2load h2')
IDLE, IDLE_HTTP1 = Load('1k', 1000, 'idle-http2'), Load('1k', 1000, 'idle')
FIGURE_NAMES = {SMALL: ('rate', 'cpu_request', 'system_request', 'cpu_share'), LARGE: ('throughput', 'cpu_gb', 'cpu_request', 'cpu_share')}
IDLE_FIGURES = ('memory', 'memory_connection')
# (load, figure, other server, maximum of the ratio to its figure)
TARGETS = ((SMALL, 'cpu_request', 'nginx', 0.3), (SMALL, 'cpu_request', 'nghttpd', 0.7), (LARGE, 'cpu_gb', 'nginx', 0.6), (LARGE, 'cpu_gb', 'h2o', 1.0))
IDLE_EXTRA_KIB_MAX = 6              # target: additional memory of an idle connection relative to HTTP/1.1


def plan(options):
    setups = [Setup('sluice', 'user', options.loop), Setup('nginx', overrides=(('http2', 'on'),), name='http2'), Setup('h2o'), Setup('nghttpd')]
    return [Group(load, setups) for load in (SMALL, LARGE, IDLE)] + [Group(IDLE_HTTP1, setups[:1])]


def readings_of(outcomes, server):
    return next((outcome.readings for outcome in outcomes if outcome.setup.server == server), [])


def target_sentences(groups):
    """One sentence for each target whose servers were measured."""
    for load, figure, server, maximum in TARGETS:
        outcomes = groups.get(load, [])
        ratio = figures.paired_ratio(readings_of(outcomes, 'sluice'), readings_of(outcomes, server), figure)
        if ratio:
            yield f'{load.size}: {figures.title_of(figure)} / {server}: {figures.number(ratio)}; the target is at most {maximum}.'
    idle = [figures.summary(readings_of(groups.get(load, []), 'sluice'), 'memory_connection') for load in (IDLE, IDLE_HTTP1)]
    if all(idle):
        yield f'An idle connection of HTTP/2 takes {figures.number(idle[0]["median"] - idle[1]["median"])} KiB more than one of HTTP/1.1; ' \
              f'the target is at most {IDLE_EXTRA_KIB_MAX}.'


def report_elements(all_outcomes, _results):
    groups = blocks.by_load(all_outcomes)
    elements = [blocks.table_of(load, outcomes, FIGURE_NAMES.get(load, IDLE_FIGURES),
                            next((outcome for outcome in outcomes if outcome.setup.server == 'nginx' and outcome.readings), None),
                            {SMALL: 'cpu_request', LARGE: 'cpu_gb'}.get(load, 'memory_connection')) for load, outcomes in groups.items()]
    return elements + [blocks.Text(' '.join(target_sentences(groups)))]
