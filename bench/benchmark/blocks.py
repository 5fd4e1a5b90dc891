"""The elements of a report. Scenarios create them, report.py writes them."""
import dataclasses

from . import figures


@dataclasses.dataclass
class Text:
    text: str


@dataclasses.dataclass
class Table:
    title: str
    columns: list
    rows: list


@dataclasses.dataclass
class Bars:
    """Grouped bars: `series` is {label: [summary or None for each category]}."""
    name: str
    title: str
    unit: str
    categories: list
    series: dict


def by_load(found):
    """{load: [outcomes]} in the order of measurement."""
    groups = {}
    for outcome in found:
        groups.setdefault(outcome.load, []).append(outcome)
    return groups


def table_of(load, outcomes, names, base=None, ratio_of='cpu_request'):
    """A table with one row for each setup; with `base`, the ratio to that setup in neighbouring rounds."""
    columns = [''] + [figures.titled(name) for name in names]
    has_calls = any(outcome.calls is not None for outcome in outcomes)
    has_witness = any(outcome.witness for outcome in outcomes)
    columns += ['calls per request'] if has_calls else []
    columns += ['zero-copy'] if has_witness else []
    columns += [f'/ {base.setup.label}'] if base else []
    rows = []
    for outcome in outcomes:
        if not outcome.readings:
            rows.append([outcome.setup.label, f'not measured: {outcome.missing}', *[''] * (len(columns) - 2)])
            continue
        row = [outcome.setup.label, *(figures.shown(figures.summary(outcome.readings, name)) for name in names)]
        row += [figures.number(outcome.calls)] if has_calls else []
        row += [f'{outcome.witness["zero_copy"]:.0%}' if outcome.witness else '-'] if has_witness else []
        row += [figures.number(figures.paired_ratio(outcome.readings, base.readings, ratio_of))] if base else []
        rows.append(row)
    return Table(load.label, columns, rows)


def bars_of(name, title, figure, groups):
    """Bars of one figure of each setup, grouped by load."""
    labels = list(dict.fromkeys(outcome.setup.label for outcomes in groups.values() for outcome in outcomes if outcome.readings))
    series = {label: [] for label in labels}
    for outcomes in groups.values():
        here = {outcome.setup.label: outcome for outcome in outcomes}
        for label in labels:
            series[label].append(figures.summary(here[label].readings, figure) if label in here else None)
    return Bars(name, title, figures.FIGURES[figure][1], [load.label for load in groups], series)


def limits_of(found):
    """A text that lists the loads in which the client, and not the server, had no CPU time left."""
    hit = []
    for outcome in found:
        client, server = (figures.summary(outcome.readings, name) for name in ('client_share', 'cpu_share'))
        if client and server and client['median'] > 90 and server['median'] < 90:
            hit.append(f'{outcome.setup.label} ({outcome.load.label})')
    return [Text('The client was the bottleneck of: ' + '; '.join(hit) + '. Their rates are those of the client; CPU per request and '
                 'per GB are valid for the server.')] if hit else []
