"""Generated nginx configurations, served by nginx and by sluice after `sluice import`: the responses must be equal, except for the
differences in kit/nginx_differences.py.

SLUICE_DIFFERENTIAL_SEED is the first seed; for SLUICE_DIFFERENTIAL_SECONDS further seeds follow. A difference is printed in the format
of the files in nginx/, which test_import.py tests.
"""
import itertools
import os
import time

import pytest

pytest.importorskip('hypothesis')

import hypothesis.configuration  # noqa: E402

from conftest import LOOPS  # noqa: E402
from kit import nginx as nginx_kit, site as site_kit  # noqa: E402

FIRST = int(os.environ.get('SLUICE_DIFFERENTIAL_SEED', '1'))
SECONDS = float(os.environ.get('SLUICE_DIFFERENTIAL_SECONDS', '0'))
SEEDS = 50      # about a minute
PRINTED = 5        # number of differences that are reduced and printed


@pytest.fixture(scope='module')
def pairs(base):
    if nginx_kit.NGINX is None:
        pytest.skip('nginx is not installed')
    hypothesis.configuration.set_hypothesis_home_dir(str(base / 'hypothesis'))    # otherwise Hypothesis writes a directory beside the tests
    from kit.nginx_echo import Echo
    from kit.nginx_pair import Pairs
    folder = base / 'differential'
    (folder / 'www').mkdir(parents=True)
    www = site_kit.make_site(str(folder / 'www'))
    for where, folders, files in os.walk(www):
        for name in folders + files:
            os.utime(os.path.join(where, name), (1700000000, 1700000000), follow_symlinks=False)
    os.utime(www, (1700000000, 1700000000))
    upstream = nginx_kit.Upstream(Echo)
    places = {'WWW': www, 'PACKED': nginx_kit.make_precompressed(folder / 'packed'), 'UPSTREAM': upstream.port}
    yield Pairs(folder, places, LOOPS)
    upstream.stop()


def batches():
    """Sites that are served together, and the directives around them."""
    from kit.nginx_grammar import generated_sites
    end = time.monotonic() + SECONDS
    for number in itertools.count(FIRST):
        if time.monotonic() >= end and (SECONDS or number >= FIRST + SEEDS):
            return
        yield number, *generated_sites(number)


@pytest.mark.http1('the configuration of nginx has no HTTP/2')
def test_nginx_and_imported_configuration_agree(pairs):
    found, sites, compared = {}, 0, 0
    for _, made, prelude in batches():
        batch = pairs.run(made, prelude)
        sites, compared = sites + len(made), compared + batch.compared
        for difference in batch.differences:
            found.setdefault(difference.signature(), (difference, prelude))
    print(f'{sites} sites, {compared} requests compared, {len(found)} kinds of difference')
    described = [pairs.describe(pairs.shrink(difference, prelude), prelude) for difference, prelude in list(found.values())[:PRINTED]]
    assert not found, f'{len(found)} kinds of difference\n' + '\n\n'.join(described)
    assert compared > sites, 'nearly all sites were left out'
