"""The elements of a report: Text, Table and Bars. Scenarios create them, report.py writes them."""
import dataclasses

from . import figures


@dataclasses.dataclass
class Text:
    text: str


@dataclasses.dataclass
class Table:
    """`note` is printed below the rows."""
    title: str
    columns: list
    rows: list
    note: str = ''


@dataclasses.dataclass
class Bars:
    """Grouped bars: `series` is {label: [summary or None for each category]}, `axis` names quantity and unit. `ratios` is {label: [ratio to
    `base` or None for each category]}. `less`: lower figures are better."""
    name: str
    title: str
    axis: str
    categories: list
    series: dict
    base: str = ''
    ratios: dict = dataclasses.field(default_factory=dict)
    less: bool = True

    def labels(self):
        return list(dict.fromkeys([*self.series, *self.ratios]))


def by_load(outcomes):
    """{load: [outcomes]} in the order of measurement."""
    groups = {}
    for outcome in outcomes:
        groups.setdefault(outcome.load, []).append(outcome)
    return groups


def not_measured(outcomes):
    """One line with the setups that have no readings, grouped by reason; '' if there are none."""
    reasons = {}
    for outcome in outcomes:
        if not outcome.readings:
            reasons.setdefault(outcome.failure or 'no rounds', []).append(outcome.setup.label)
    return 'not measured: ' + '; '.join(f'{", ".join(labels)} ({reason})' for reason, labels in reasons.items()) if reasons else ''


def table_of(load, outcomes, names, base=None, ratio_of='cpu_request'):
    """A table with one row for each setup. The last column is the ratio to the setup `base`, if given, in adjacent rounds."""
    columns = [''] + [figures.title_of(name) for name in names]
    has_calls = any(outcome.calls is not None for outcome in outcomes)
    has_access_log = any(outcome.access_log for outcome in outcomes)
    columns += ['calls per request'] if has_calls else []
    columns += ['zero-copy'] if has_access_log else []
    columns += [f'/ {base.setup.label}'] if base else []
    rows = []
    for outcome in outcomes:
        if not outcome.readings:
            continue
        row = [outcome.setup.label, *(figures.formatted(figures.summary(outcome.readings, name)) for name in names)]
        row += [figures.number(outcome.calls)] if has_calls else []
        row += [f'{outcome.access_log["zero_copy"]:.0%}' if outcome.access_log else '-'] if has_access_log else []
        row += [figures.number(figures.paired_ratio(outcome.readings, base.readings, ratio_of))] if base else []
        rows.append(row)
    return Table(load.label, columns, rows, not_measured(outcomes))


def base_of(outcome, outcomes, server):
    """The readings of `server` with the same transport as `outcome`."""
    return next((other.readings for other in outcomes if other.setup.server == server and other.setup.transport == outcome.setup.transport), [])


def bars_of(name, title, figure, groups, base='nginx'):
    """Bars of one figure of each setup, grouped by load, with the ratios to the server `base` if it was measured."""
    labels = list(dict.fromkeys(outcome.setup.label for outcomes in groups.values() for outcome in outcomes if outcome.readings))
    series, ratios = {label: [] for label in labels}, {label: [] for label in labels}
    for outcomes in groups.values():
        by_label = {outcome.setup.label: outcome for outcome in outcomes}
        for label in labels:
            outcome = by_label.get(label)
            series[label].append(figures.summary(outcome.readings, figure) if outcome else None)
            ratios[label].append(figures.paired_ratio(outcome.readings, base_of(outcome, outcomes, base), figure) if outcome else None)
    less = figures.FIGURES[figure][3]
    return Bars(name, title, f'{figures.axis_title(figure)} ({"lower" if less else "higher"} is better)', [load.label for load in groups], series,
                base, ratios, less)


def charts_of(name, groups):
    """Charts of the CPU time of requests and the memory of idle connections; a chart without figures is omitted."""
    busy = {load: outcomes for load, outcomes in groups.items() if load.is_charted}
    idle = {load: outcomes for load, outcomes in groups.items() if load.kind == 'idle'}
    elements = [bars_of(f'{name}-cpu', 'CPU time of the server', 'cpu_gb', busy), bars_of(f'{name}-memory', 'Memory of the server', 'memory', idle)]
    return [bars for bars in elements if bars.series]


def saturated_clients(outcomes):
    """A Text with the setups and loads in which the client used all of its CPU and the server did not; [] if there are none."""
    saturated = []
    for outcome in outcomes:
        client, server = (figures.summary(outcome.readings, name) for name in ('client_share', 'cpu_share'))
        if client and server and client['median'] > 90 and server['median'] < 90:
            saturated.append(f'{outcome.setup.label} ({outcome.load.label})')
    return [Text('The client was the bottleneck of: ' + '; '.join(saturated) + '. Their rates are limited by the client; CPU per request and '
                 'per GB are valid.')] if saturated else []
