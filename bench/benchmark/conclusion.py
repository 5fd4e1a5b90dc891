"""The conclusion of a report in one paragraph."""
import statistics

from . import figures, model, scenarios
from .blocks import base_of, by_load

LOADS = 4                           # that the conclusion names
NEAREST = ('nginx', 'h2o')          # the servers that the conclusion names


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
    return dict(list(shown.items())[:LOADS])


def compared(server, found):
    shown = ratios_to(server, found)
    if not shown:
        return ''
    each = [f'{label}: ' + ', '.join(f'{figures.number(ratio)} ({setup})' for setup, ratio in ratios.items()) for label, ratios in shown.items()]
    return f'CPU time per response of sluice divided by that of {server}: {"; ".join(each)}.'


def spread_of(found):
    spreads = [summary['spread'] for outcome in found for summary in [figures.summary(outcome.readings, 'cpu_request')] if summary]
    return f'The spread of the rounds is ±{statistics.median(spreads) * 50:.0f} % for the median setup.' if spreads else ''


def targets_met(found):
    targets = scenarios.named('targets')
    counts = [(loop, *targets.met(found, loop)) for loop in targets.LOOPS]
    shown = [f'{met} of {measured} with {loop}' for loop, met, measured in counts if measured]
    return f'Targets met: {", ".join(shown)}.' if shown else ''


def conclusion(results):
    """Ratios to other servers in the first scenario that has them, the targets, and TLS compared with plain HTTP."""
    parts = outcomes_of(results)
    first = next((found for _, found in parts if any(ratios_to(server, found) for server in NEAREST)), [])
    sentences = [compared(server, first) for server in NEAREST]
    for name, found in parts:
        sentences += [targets_met(found)] if name == 'targets' else []
        sentences += [block.text for block in scenarios.named('quick').answer(by_load(found))] if name == 'quick' else []
    sentences.append(spread_of([outcome for _, found in parts for outcome in found]))
    sentences = [sentence for sentence in sentences if sentence]
    return '**Conclusion.** ' + (' '.join(sentences) if sentences else 'Nothing was measured.')
