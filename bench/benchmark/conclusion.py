"""The conclusion of a report in one paragraph."""
import statistics

from . import figures, model, scenarios
from .blocks import base_of, by_load

LOADS_MAX = 4                       # the number of loads in the conclusion
COMPARED_SERVERS = ('nginx', 'h2o')


def outcomes_of(results):
    return [(scenario['name'], [model.Outcome.from_json(tree) for tree in scenario['outcomes']]) for scenario in results['scenarios']]


def ratios_to(server, outcomes):
    """{load: {loop and transport: ratio of the CPU time per response}} of the loads with keep-alive connections."""
    ratios = {}
    for load, outcomes_of_load in by_load(outcomes).items():
        for outcome in outcomes_of_load:
            if outcome.setup.server != 'sluice' or load != model.Load(load.size, load.connections):
                continue
            ratio = figures.paired_ratio(outcome.readings, base_of(outcome, outcomes_of_load, server), 'cpu_request')
            if ratio is not None:
                ratios.setdefault(load.label, {})[' '.join(outcome.setup.label.split()[1:])] = ratio
    return dict(list(ratios.items())[:LOADS_MAX])


def ratio_sentence(server, outcomes):
    by_load_label = ratios_to(server, outcomes)
    if not by_load_label:
        return ''
    each = [f'{label}: ' + ', '.join(f'{figures.number(ratio)} ({setup})' for setup, ratio in ratios.items()) for label, ratios in by_load_label.items()]
    return f'CPU time per response of sluice divided by that of {server}: {"; ".join(each)}.'


def spread_sentence(outcomes):
    spreads = [summary['spread'] for outcome in outcomes for summary in [figures.summary(outcome.readings, 'cpu_request')] if summary]
    return f'The spread of the rounds is ±{statistics.median(spreads) * 50:.0f} % for the median setup.' if spreads else ''


def targets_sentence(outcomes):
    targets = scenarios.module_of('targets')
    counts = [(loop, *targets.count_met(outcomes, loop)) for loop in targets.LOOPS]
    sentences = [f'{met} of {measured} with {loop}' for loop, met, measured in counts if measured]
    return f'Targets met: {", ".join(sentences)}.' if sentences else ''


def conclusion(results):
    """Ratios to other servers in the first scenario that has them, targets met, TLS compared with plain HTTP, the spread."""
    sections = outcomes_of(results)
    first = next((outcomes for _, outcomes in sections if any(ratios_to(server, outcomes) for server in COMPARED_SERVERS)), [])
    sentences = [ratio_sentence(server, first) for server in COMPARED_SERVERS]
    for name, outcomes in sections:
        sentences += [targets_sentence(outcomes)] if name == 'targets' else []
        sentences += [block.text for block in scenarios.module_of('quick').cost_sentences(by_load(outcomes))] if name == 'quick' else []
    sentences.append(spread_sentence([outcome for _, outcomes in sections for outcome in outcomes]))
    sentences = [sentence for sentence in sentences if sentence]
    return '**Conclusion.** ' + (' '.join(sentences) if sentences else 'Nothing was measured.')
