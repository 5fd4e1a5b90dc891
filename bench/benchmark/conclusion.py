"""The conclusion of a report in one paragraph."""
import statistics

from . import figures, model, scenarios
from .blocks import base_of, by_load

LOADS_MAX = 4                           # that the conclusion names
COMPARED_SERVERS = ('nginx', 'h2o')          # the servers that the conclusion names


def outcomes_of(results):
    return [(scenario['name'], [model.Outcome.from_json(tree) for tree in scenario['outcomes']]) for scenario in results['scenarios']]


def ratios_to(server, found):
    """{load: {loop and transport: ratio of the CPU time per response}} of kept connections."""
    shown = {}
    for load, outcomes in by_load(found).items():
        for outcome in outcomes:
            if outcome.setup.server != 'sluice' or load != model.Load(load.size, load.connections):
                continue
            ratio = figures.paired_ratio(outcome.readings, base_of(outcome, outcomes, server), 'cpu_request')
            if ratio is not None:
                shown.setdefault(load.label, {})[' '.join(outcome.setup.label.split()[1:])] = ratio
    return dict(list(shown.items())[:LOADS_MAX])


def ratio_sentence(server, found):
    shown = ratios_to(server, found)
    if not shown:
        return ''
    each = [f'{label}: ' + ', '.join(f'{figures.number(ratio)} ({setup})' for setup, ratio in ratios.items()) for label, ratios in shown.items()]
    return f'CPU time per response of sluice divided by that of {server}: {"; ".join(each)}.'


def spread_sentence(found):
    spreads = [summary['spread'] for outcome in found for summary in [figures.summary(outcome.readings, 'cpu_request')] if summary]
    return f'The spread of the rounds is ±{statistics.median(spreads) * 50:.0f} % for the median setup.' if spreads else ''


def targets_sentence(found):
    targets = scenarios.module_of('targets')
    counts = [(loop, *targets.count_met(found, loop)) for loop in targets.LOOPS]
    shown = [f'{met} of {measured} with {loop}' for loop, met, measured in counts if measured]
    return f'Targets met: {", ".join(shown)}.' if shown else ''


def conclusion(results):
    """Ratios to other servers in the first scenario that has them, the targets, and TLS compared with plain HTTP."""
    sections = outcomes_of(results)
    first = next((found for _, found in sections if any(ratios_to(server, found) for server in COMPARED_SERVERS)), [])
    sentences = [ratio_sentence(server, first) for server in COMPARED_SERVERS]
    for name, found in sections:
        sentences += [targets_sentence(found)] if name == 'targets' else []
        sentences += [block.text for block in scenarios.module_of('quick').cost_sentences(by_load(found))] if name == 'quick' else []
    sentences.append(spread_sentence([outcome for _, found in sections for outcome in found]))
    sentences = [sentence for sentence in sentences if sentence]
    return '**Conclusion.** ' + (' '.join(sentences) if sentences else 'Nothing was measured.')
