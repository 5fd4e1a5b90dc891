#!/usr/bin/env python3
"""Checks packages.py: after a failed installation, tests retry it only on request or after FAILED_FOR_S seconds."""
import contextlib
import io
import os
import sys
import tempfile
import time

import packages

TRIED = []


def install(folder, _):
    """Replaces packages.install: fails until the file `works` exists beside the directory."""
    TRIED.append(folder)
    os.makedirs(folder, exist_ok=True)
    return os.path.exists(os.path.join(os.path.dirname(folder), 'works'))


def run(build, *arguments):
    """Runs packages.main(); returns exit status and output."""
    text = io.StringIO()
    sys.argv = ['packages.py', build, 'SLUICE_CHECK_REQUIRED', '--', *arguments]
    with contextlib.redirect_stdout(text):
        return packages.main(), text.getvalue()


def check(build):
    failed = os.path.join(build, 'venv.failed')
    status, output = run(build, 'a_test.py')
    assert status == 77 and f'{build} -- path' in output, output
    assert run(build, 'a_test.py')[0] == 77 and len(TRIED) == 1, 'the second test tries again'
    os.environ['SLUICE_CHECK_REQUIRED'] = '1'
    assert run(build, 'a_test.py')[0] == 1 and len(TRIED) == 1, 'if the packages are required, the test fails'
    assert run(build, 'path')[0] == 1 and len(TRIED) == 2, 'with the argument path it tries at once'
    past = time.time() - packages.FAILED_FOR_S - 1
    os.utime(failed, (past, past))
    assert run(build, 'a_test.py')[0] == 1 and len(TRIED) == 3, 'some minutes later it tries'
    packages.write(failed, 'of other requirements')
    assert run(build, 'a_test.py')[0] == 1 and len(TRIED) == 4, 'other requirements are tried'
    packages.write(os.path.join(build, 'works'), '')
    assert packages.prepare(build) is None and len(TRIED) == 4
    assert run(build, 'path') == (0, f'{build}/venv/bin\n') and len(TRIED) == 5
    assert not os.path.exists(failed)
    assert packages.prepare(build) == f'{build}/venv' and len(TRIED) == 5, 'installed once'


def main():
    packages.install = install
    with tempfile.TemporaryDirectory() as build:
        check(build)


if __name__ == '__main__':
    main()
