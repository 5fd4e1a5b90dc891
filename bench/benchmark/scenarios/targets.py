"""The performance targets of sluice, most of them relative to other servers: the figure of each, and whether it is met."""
from .. import blocks, figures
from ..model import Group, Load, Setup

TITLE = 'Targets'
LOOPS = ('io_uring', 'epoll')
SMALL, MANY_CONNECTIONS = Load('1k'), Load('1k', 10000)
SIZES = {name: Load(name, connections) for name, connections in (('100k', 64), ('1m', 32))}
FILES = ((SMALL, 'HTTPS 1 KiB', 'cpu_request', {'nginx': 0.72, 'h2o': 0.80}), (SIZES['100k'], 'HTTPS 100 KiB', 'cpu_gb', {'nginx': 0.50, 'h2o': 0.75}),
         (SIZES['1m'], 'HTTPS 1 MiB', 'cpu_gb', {'nginx': 0.55, 'h2o': 0.75}))
PROXIED = ((SMALL, 'proxied 1 KiB', 'cpu_request'), (SIZES['100k'], 'proxied 100 KiB', 'cpu_gb'), (SIZES['1m'], 'proxied 1 MiB', 'cpu_gb'))
PROXIED_RATIO = 0.75
FULL, RESUMED = Load('1k', 32, 'full'), Load('1k', 32, 'resumed')
IDLE, HALF = Load('1k', 10000, 'idle'), Load('1k', half_load=True)
PLAIN = {name: Load(name, 16) for name in ('100k', '10m')}
OWN_SHARE_KIB = 1.0
CALLS = 0.5
GROWTH = 1.25


def plan(options):
    peers = [name for name in ('nginx', 'h2o') if name not in options.peers] + options.peers
    both = [Setup('sluice', 'user', loop) for loop in LOOPS]
    user = both + [Setup(peer, 'user') for peer in peers]
    plain = [Setup('sluice', 'plain', loop) for loop in LOOPS]
    proxies = [Setup('sluice', 'user', loop, role='proxy') for loop in LOOPS] + [Setup('nginx', 'user', role='proxy')]
    groups = [Group(load, user) for load, *_ in FILES]
    groups += [Group(load, proxies, count_calls=False) for load, *_ in PROXIED]
    groups += [Group(FULL, user), Group(RESUMED, user), Group(HALF, user, count_calls=False)]
    groups += [Group(load, plain + [Setup('nginx', 'plain')], count_calls=False) for load in PLAIN.values()]
    if not options.emulated:
        groups += [Group(IDLE, user + plain), Group(MANY_CONNECTIONS, user, count_calls=False)]
    return groups


class TargetFigures:
    """The figures of the targets for one event loop of sluice; a figure is None if a measurement is missing."""

    def __init__(self, outcomes, loop):
        self.outcomes = {(outcome.load, outcome.setup): outcome for outcome in outcomes}
        self.loop = loop
        self.noisy = False          # True if a figure that was used is noisy

    def readings(self, load, server='sluice', transport='user', role='files'):
        outcome = self.outcomes.get((load, Setup(server, transport, self.loop if server == 'sluice' else '', role=role)))
        return outcome.readings if outcome else []

    def figure(self, load, name, **setup):
        summary = figures.summary(self.readings(load, **setup), name)
        self.noisy |= bool(summary and summary['noisy'])
        return summary['median'] if summary else None

    def ratio(self, load, name, server, **setup):
        for one in ('sluice', server):       # updates self.noisy
            self.figure(load, name, server=one, **setup)
        return figures.paired_ratio(self.readings(load, **setup), self.readings(load, server, **setup), name)

    def best_peer_p99(self):
        """The highest ratio of sluice's 99th percentile of the latency to that of another server at the same rate."""
        peers = {setup.server for _, setup in self.outcomes if setup.server != 'sluice' and setup.role == 'files'}
        ratios = [ratio for ratio in (self.ratio(HALF, 'p99', peer) for peer in sorted(peers)) if ratio is not None]
        return max(ratios) if ratios else None

    def calls(self):
        outcome = self.outcomes.get((SMALL, Setup('sluice', 'user', self.loop)))
        return outcome.calls if outcome else None

    def growth(self):
        """CPU time per request with 10,000 connections relative to that with 64."""
        few, many = self.figure(SMALL, 'cpu_request'), self.figure(MANY_CONNECTIONS, 'cpu_request')
        return many / few if few and many else None


def ratio_rows():
    """(title, target, True if the target is a maximum, function of TargetFigures) of the ratios to other servers."""
    rows = [(f'{title}, CPU / {peer}', expected, True, lambda measured, load=load, name=name, peer=peer: measured.ratio(load, name, peer))
            for load, title, name, targets in FILES for peer, expected in targets.items()]
    rows += [(f'{title}, CPU / nginx', PROXIED_RATIO, True, lambda measured, load=load, name=name: measured.ratio(load, name, 'nginx', role='proxy'))
             for load, title, name in PROXIED]
    rows += [(f'handshakes per CPU second, {name} / nginx', expected, False,
              lambda measured, load=load: measured.ratio(load, 'handshakes_cpu', 'nginx')) for name, load, expected in (('full', FULL, 1.0), ('resumed', RESUMED, 1.2))]
    rows += [(f'HTTP {name} by sendfile, CPU per GB / nginx', 1.0, True,
              lambda measured, load=load: measured.ratio(load, 'cpu_gb', 'nginx', transport='plain')) for name, load in PLAIN.items()]
    return rows


TARGETS = (
    *ratio_rows(),
    ('10,000 idle HTTPS connections, memory / nginx', 1.0, True, lambda measured: measured.ratio(IDLE, 'memory', 'nginx')),
    ('10,000 idle connections without TLS, KiB each (sluice\'s own share)', OWN_SHARE_KIB, True,
     lambda measured: measured.figure(IDLE, 'memory_connection', transport='plain')),
    ('99 % latency at half load / the best peer\'s', 1.0, True, TargetFigures.best_peer_p99),
    ('system calls per request, 64 connections (io_uring)', CALLS, True, lambda measured: measured.calls() if measured.loop == 'io_uring' else None),
    ('CPU per request, 10,000 connections / 64', GROWTH, True, TargetFigures.growth),
)


def format_target(value, expected, at_most, noisy=False):
    """'0.61 pass' or '1.30 MISS', with '(!)' if a figure is noisy; '-' if it was not measured."""
    if value is None:
        return '-'
    is_met = value <= expected if at_most else value >= expected
    return f'{figures.number(value)} {"pass" if is_met else "**MISS**"}{" (!)" if noisy else ""}'


def count_met(outcomes, loop):
    """(number of targets that are met, number of targets that were measured)"""
    texts = [evaluate_target(outcomes, loop, target) for target in TARGETS]
    return sum(' pass' in text for text in texts), sum(text != '-' for text in texts)


def evaluate_target(outcomes, loop, target):
    _, expected, at_most, figure = target
    target_figures = TargetFigures(outcomes, loop)
    value = figure(target_figures)
    return format_target(value, expected, at_most, target_figures.noisy)


def report_elements(all_outcomes, _results):
    rows = [[target[0], f'{"at most" if target[2] else "at least"} {target[1]:g}', *(evaluate_target(all_outcomes, loop, target) for loop in LOOPS)]
            for target in TARGETS]
    elements = [blocks.Table('Targets', ['', 'target', *(f'sluice {loop}' for loop in LOOPS)], rows)]
    files, proxied = ([outcome for outcome in all_outcomes if outcome.setup.role == role] for role in ('files', 'proxy'))
    for load, outcomes in (*blocks.by_load(files).items(), *blocks.by_load(proxied).items()):
        names = {'idle': ('memory', 'memory_connection'), 'full': ('handshakes_cpu', 'p50', 'p99'), 'resumed': ('handshakes_cpu', 'p50', 'p99')}.get(
            load.kind, ('rate', 'cpu_request', 'cpu_gb', 'p50', 'p99'))
        nginx = next((outcome for outcome in outcomes if outcome.setup.server == 'nginx' and outcome.readings), None)
        ratio_of = {'idle': 'memory', 'full': 'handshakes_cpu', 'resumed': 'handshakes_cpu'}.get(load.kind, 'cpu_request')
        elements.append(blocks.table_of(load, outcomes, names, nginx, ratio_of))
    return [*elements, *blocks.charts_of('targets', blocks.by_load(files))]


def readme_elements(all_outcomes, results):
    return report_elements(all_outcomes, results)[:1]
