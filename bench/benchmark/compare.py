"""Compares two result files: for the same load and setup, the change of a figure beyond its own spread."""
from . import blocks, figures, report

COMPARED = ('cpu_request', 'rate', 'p99', 'memory_connection')


def measured(results):
    """{(scenario, load, setup): readings}"""
    return {(scenario['name'], outcome.load.label, outcome.setup.label): outcome.readings
            for scenario in results['scenarios'] for outcome in report.found_of(scenario) if outcome.readings}


def verdict(name, before, after):
    """'better', 'worse', or 'same' if the two ranges overlap."""
    if before['low'] <= after['high'] and after['low'] <= before['high']:
        return 'same'
    return 'better' if (after['median'] < before['median']) == figures.FIGURES[name][3] else 'worse'


def rows_of(first, second):
    """One row for each figure that both files have."""
    old, new = measured(first), measured(second)
    rows = []
    for key in (key for key in new if key in old):
        for name in COMPARED:
            before, after = figures.summary(old[key], name), figures.summary(new[key], name)
            if before and after and before['median']:
                title, unit = figures.FIGURES[name][:2]
                rows.append([' / '.join(key), f'{title}, {unit}', figures.shown(before), figures.shown(after),
                             figures.number(after['median'] / before['median']), verdict(name, before, after)])
    return rows


def table(first, second):
    return blocks.Table(f'{first["made"]} and {second["made"]}', ['', 'figure', 'first', 'second', 'second / first', ''],
                        rows_of(first, second))
