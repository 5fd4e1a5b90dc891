"""Compares two result files: the changes of figures of the same load and setup that exceed the spread."""
import dataclasses
import statistics

from . import blocks, figures, report

COMPARED = ('cpu_request', 'rate', 'p99', 'memory_connection')


def measured(results):
    """{(scenario, load, setup): outcome}"""
    return {(scenario['name'], outcome.load.label, outcome.setup.label): outcome
            for scenario in results['scenarios'] for outcome in report.outcomes_of(scenario) if outcome.readings}


def change_of(name, before, after):
    """'better', 'worse', or 'same' if the two ranges overlap."""
    if before['low'] <= after['high'] and after['low'] <= before['high']:
        return 'same'
    return 'better' if (after['median'] < before['median']) == figures.FIGURES[name][3] else 'worse'


def pairs_of(first, second, names=COMPARED):
    """(key, figure, summary in the first file, summary in the second) of each of these figures that both files have."""
    old, new = measured(first), measured(second)
    for key in (key for key in new if key in old):
        for name in names:
            before, after = figures.summary(old[key].readings, name), figures.summary(new[key].readings, name)
            if before and after and before['median']:
                yield key, name, before, after


def rows_of(first, second):
    return [[' / '.join(key), figures.axis_title(name), figures.formatted(before), figures.formatted(after),
             figures.number(after['median'] / before['median']), change_of(name, before, after)]
            for key, name, before, after in pairs_of(first, second)]


def table(first, second):
    return blocks.Table(f'{first["made"]} and {second["made"]}', ['', 'figure', 'first', 'second', 'second / first', ''],
                        rows_of(first, second))


def bars(first, second):
    """CPU time per GB of each setup in both files: per response, those of small files would be too small for the axis."""
    charted = {key for key, outcome in measured(second).items() if outcome.load.is_charted}
    pairs = [(key, before, after) for key, _, before, after in pairs_of(first, second, ('cpu_gb',)) if key in charted]
    labels = ('first', 'second')
    return blocks.Bars('compare-cpu', 'CPU time of the server in both runs', f'{figures.axis_title("cpu_gb")} (lower is better)',
                       [' / '.join(key) for key, *_ in pairs], dict(zip(labels, zip(*((before, after) for _, before, after in pairs)))),
                       'first', {'second': [after['median'] / before['median'] for _, before, after in pairs]} if pairs else {})


def conclusion(first, second):
    changes = [change_of(name, before, after) for _, name, before, after in pairs_of(first, second)]
    ratios = [after['median'] / before['median'] for _, name, before, after in pairs_of(first, second) if name == 'cpu_request']
    if not changes:
        return '**Conclusion.** The files have no figure in common.'
    cpu = f' CPU time per response, second divided by first: median {figures.number(statistics.median(ratios))}, ' \
          f'from {figures.number(min(ratios))} to {figures.number(max(ratios))}.' if ratios else ''
    return (f'**Conclusion.** Of {len(changes)} figures {changes.count("better")} are better in the second run, {changes.count("worse")} are worse, '
            f'and {changes.count("same")} do not differ by more than their spread.{cpu}')


def footer(first, second):
    return ' '.join(f'{name.capitalize()}: {report.footer(results)}' for name, results in (('first', first), ('second', second)))


def sections_of(first, second):
    """The sections of the report; see report.sections_of."""
    chart = bars(first, second)
    facts = [dataclasses.replace(report.machine_table(results), title=f'Machine and versions of the {name} run')
             for name, results in (('first', first), ('second', second))]
    return [('', [blocks.Text(conclusion(first, second)), *([chart] if chart.series else []), table(first, second), *facts])]
