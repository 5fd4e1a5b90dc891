"""The CPU time of a response by component, compared with nginx and h2o, for the loads of the targets."""
import dataclasses

from .. import blocks
from ..model import Group
from . import targets

TITLE = 'Where the time goes'
NAMES = ('cpu_request', 'us_kernel', 'us_crypto', 'us_ssl', 'us_c_library', 'us_own')


def plan(options):
    """The loads of the targets that count CPU time; loads of idle connections and at half load have no profile."""
    return [Group(dataclasses.replace(group.load, profiled=True), group.setups, count_calls=False) for group in targets.plan(options)
            if group.load.kind != 'idle' and not group.load.half_load]


def report_elements(found, _results):
    elements = [blocks.Text('Samples of `perf`, which has a cost of its own: the shares are meaningful, and their sum is higher than without perf. '
                        '`own` is the program with all libraries that are not named.')]
    for load, outcomes in blocks.by_load(found).items():
        base = next((outcome for outcome in outcomes if outcome.setup.server == 'nginx' and outcome.readings), None)
        elements.append(blocks.table_of(load, outcomes, NAMES, base))
    return elements


def readme_elements(found, results):
    return report_elements(found, results)
