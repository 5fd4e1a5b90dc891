"""Repeats published experiments on zero copy, and runs them over HTTPS too, for which no figures are published."""
import dataclasses

from .. import blocks, figures
from ..model import Group, Load, Setup

TITLE = 'Zero copy: published experiments repeated'
BUFFERS_8K, BUFFERS_32K, BUFFERS_64K = ((('sendfile', 'off'), ('output_buffers', f'1 {size}')) for size in ('8k', '32k', '64k'))


@dataclasses.dataclass(frozen=True)
class Experiment:
    """`copies` are (name, overrides) of the variants that copy; `published` is {figure: (one for each variant, then that of zero copy)}."""
    title: str
    load: Load
    copies: tuple
    published: dict


EXPERIMENTS = (
    Experiment('A video over HTTP, 30 connections: io.Copy against sendfile', Load('300m', 30), (('copy 32k', BUFFERS_32K),),
               {'rate': ('19.35', '31.67'), 'throughput': ('5,860', '9,540'), 'cpu_share': ('480-500', '110-130'),
                'response_time': ('2.6 times the latency', '1')}),
    Experiment('One file of 100 MB: read and write against sendfile', Load('100m', 1), (('copy 32k', BUFFERS_32K),),
               {'throughput': ('490.83', '695.33')}),
    Experiment('One file of 1 GB', Load('1g', 1), (('copy 32k', BUFFERS_32K),), {'throughput': ('1,701', '2,612')}),
    Experiment('Buffers of 8 KB, of 64 KB, zero copy', Load('100m', 8), (('copy 8k', BUFFERS_8K), ('copy 64k', BUFFERS_64K)),
               {'throughput': ('520', '680', '1,850'), 'cpu_share': ('85', '78', '23'), 'switches': ('45,000', '38,000', '8,500')}),
)
EMULATED = {'300m': '16m', '100m': '8m', '1g': '32m'}
UNPUBLISHED = ('cpu_gb',)           # measured figures without published values


def load_of(experiment, emulated):
    """The load of the experiment. An emulated machine gets smaller files: a response must complete within a round."""
    if not emulated:
        return experiment.load
    return dataclasses.replace(experiment.load, size=EMULATED[experiment.load.size], connections=min(experiment.load.connections, 4))


def setups(experiment, loop):
    copies = [Setup('sluice', 'plain', loop, overrides, f'HTTP, {name}') for name, overrides in experiment.copies]
    return copies + [Setup('sluice', 'plain', loop, name='HTTP, sendfile'),
                     Setup('sluice', 'user', loop, name='HTTPS, encrypted in user space'),
                     Setup('sluice', 'ktls', loop, name='HTTPS, kTLS and sendfile')]


def plan(options):
    return [Group(load_of(experiment, options.emulated), setups(experiment, options.loop)) for experiment in EXPERIMENTS]


def published_of(experiment, figure):
    texts = experiment.published.get(figure, ())
    return [*texts, *[''] * (len(experiment.copies) + 1 - len(texts)), '', '']


def table_of(experiment, outcomes):
    """A table with a row for each figure and a column for each variant; published values follow the measured ones."""
    columns = ['', *(outcome.setup.name for outcome in outcomes)]
    rows = []
    for figure in [*experiment.published, *UNPUBLISHED]:
        title, unit = figures.FIGURES[figure][:2]
        rows.append([f'{title}, {unit}: here', *(figures.formatted(figures.summary(outcome.readings, figure)) for outcome in outcomes)])
        if figure in experiment.published:
            rows.append([f'{title}, {unit}: published', *published_of(experiment, figure)])
    rows.append(['bytes not copied in user space',
                 *(f'{outcome.access_log["zero_copy"]:.0%}' if outcome.access_log else '-' for outcome in outcomes)])
    return blocks.Table(f'{experiment.title} (here: {outcomes[0].load.label})', columns, rows)


def sendfile_cost(outcomes):
    """A Text with the CPU time of sendfile relative to copying, over HTTP and over HTTPS."""
    by_name = {outcome.setup.name: outcome.readings for outcome in outcomes}
    plain = figures.paired_ratio(by_name.get('HTTP, sendfile', []), outcomes[0].readings, 'cpu_gb')
    tls = figures.paired_ratio(by_name.get('HTTPS, kTLS and sendfile', []), by_name.get('HTTPS, encrypted in user space', []), 'cpu_gb')
    text = f'CPU per GB of sendfile / of copying: {figures.number(plain)} over HTTP'
    return blocks.Text(f'{text}; {figures.number(tls)} over HTTPS (kTLS / user space).' if tls else
                       f'{text}; not measured over HTTPS, since this kernel has no TLS.')


def report_elements(all_outcomes, results):
    groups = blocks.by_load(all_outcomes)
    elements = [blocks.Text('The published figures come from other machines with other servers. Only the ratios between the columns can be compared. '
                        'Here one worker has one CPU, so that 100 % is the maximum. No published figures exist for the HTTPS columns: '
                        'their authors considered copying unavoidable there.')]
    for experiment in EXPERIMENTS:
        outcomes = groups.get(load_of(experiment, results['machine']['emulated']))
        if outcomes:
            elements += [table_of(experiment, outcomes), sendfile_cost(outcomes)]
    return elements
