#!/usr/bin/env python3
"""Checks packages.py: after a failed installation, tests retry it only on request or after FAILED_FOR_S seconds."""
import contextlib
import io
import os
import sys
import tempfile
import time

import packages

ATTEMPTS = []


def install(folder, _):
    """Replaces packages.install: fails until the file `works` exists beside the directory."""
    ATTEMPTS.append(folder)
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
    assert run(build, 'a_test.py')[0] == 77 and len(ATTEMPTS) == 1, 'a second test does not retry'
    os.environ['SLUICE_CHECK_REQUIRED'] = '1'
    assert run(build, 'a_test.py')[0] == 1 and len(ATTEMPTS) == 1, 'if the packages are required, the test fails'
    assert run(build, 'path')[0] == 1 and len(ATTEMPTS) == 2, 'the argument path retries immediately'
    past = time.time() - packages.FAILED_FOR_S - 1
    os.utime(failed, (past, past))
    assert run(build, 'a_test.py')[0] == 1 and len(ATTEMPTS) == 3, 'a test retries after FAILED_FOR_S'
    packages.write(failed, 'of other requirements')
    assert run(build, 'a_test.py')[0] == 1 and len(ATTEMPTS) == 4, 'other requirements are installed'
    packages.write(os.path.join(build, 'works'), '')
    assert packages.prepare(build) is None and len(ATTEMPTS) == 4
    assert run(build, 'path') == (0, f'{build}/venv/bin\n') and len(ATTEMPTS) == 5
    assert not os.path.exists(failed)
    assert packages.prepare(build) == f'{build}/venv' and len(ATTEMPTS) == 5, 'installed once'


def main():
    packages.install = install
    with tempfile.TemporaryDirectory() as build:
        check(build)


if __name__ == '__main__':
    main()
