"""The CPU time of a response by component, compared with nginx and h2o, for the loads of the targets."""
import dataclasses

from .. import blocks
from ..model import Group
from . import targets

TITLE = 'CPU time by component'
NAMES = ('cpu_request', 'us_kernel', 'us_crypto', 'us_ssl', 'us_c_library', 'us_own')


def plan(options):
    """The loads of the targets, except those of idle connections and at half load."""
    return [Group(dataclasses.replace(group.load, profiled=True), group.setups, count_calls=False) for group in targets.plan(options)
            if group.load.kind != 'idle' and not group.load.half_load]


def report_elements(all_outcomes, _results):
    elements = [blocks.Text('Sampled by `perf`, which increases the CPU time: the shares are meaningful, the sums are not. '
                        '`own` is the program and all libraries without a column.')]
    for load, outcomes in blocks.by_load(all_outcomes).items():
        base = next((outcome for outcome in outcomes if outcome.setup.server == 'nginx' and outcome.readings), None)
        elements.append(blocks.table_of(load, outcomes, NAMES, base))
    return elements


def readme_elements(all_outcomes, results):
    return report_elements(all_outcomes, results)
