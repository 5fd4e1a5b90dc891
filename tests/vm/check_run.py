#!/usr/bin/env python3
"""Checks run.py: it kills a guest that hangs, with all processes, and prints the cause of an early end. A shell script replaces the
emulator. Checks also that the tests of sample.txt exist."""
import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time

import run

HANGING = 'echo begun; sleep 1000 & echo $! >{0}.made; mv {0}.made {0}; wait'      # the emulator is a grandchild process
# Opens its outputs by name, as the emulator does, and prints console messages only with --verbose.
FAILING_EMULATOR = """#!/bin/sh
case " $* " in *" --verbose "*) ;; *) exit 1 ;; esac
printf 'first\\ninsmod: invalid module format\\n' >/proc/self/fd/2
echo 'Kernel panic - not syncing: VFS: no root' >/proc/self/fd/1
exit 1
"""


def check_early_end(folder):
    """If the guest ends before a part starts, run.py prints the last lines of the console and the cause with the highest precedence."""
    with open(os.path.join(folder, 'vng'), 'w', encoding='ascii') as stream:
        stream.write(FAILING_EMULATOR)
    os.chmod(os.path.join(folder, 'vng'), 0o755)
    out = os.path.join(folder, 'out')
    os.mkdir(out)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert run.run_parts(folder, 'image', out, 'true') == 1
    assert 'first\ninsmod: invalid module format\nKernel panic' in output.getvalue(), output.getvalue()
    assert 'cause of the end: insmod: invalid module format\n' in output.getvalue()
    assert output.getvalue().endswith('failed: guest, no part was started\n')


def check_sample():
    """Each line of sample.txt names a function of its file."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, 'sample.txt'), encoding='ascii') as stream:
        names = [line.strip().split('::') for line in stream if line.strip()]
    assert names
    for path, name in names:
        with open(os.path.join(folder, path), encoding='utf-8') as stream:
            assert f'\ndef {name}(' in stream.read(), f'{path} has no {name}'


def check_counts():
    """pytest prints tests that were skipped for the same reason in one line."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        run.report('part', 'PASSED ../http/test_a.py::b\nPASSED ../http/test_a.py::c\nSKIPPED [386] ../http/conftest.py:113: why\n'
                           'FAILED test_a.py::d - no\nSKIPPED [2] test_a.py:3: why\nSKIPPED [1] test_a.py:5: why else\n')
    assert [line.split(None, 2)[1:] for line in output.getvalue().splitlines()] == [
        ['conftest.py', '386 skipped'], ['test_a.py', '2 passed, 1 failed, 3 skipped']], output.getvalue()


def ended(pid):
    """Waits for the end of a process. A zombie counts as ended, since it may have no parent that reaps it."""
    for _ in range(1000):
        try:
            with open(f'/proc/{pid}/stat', encoding='ascii') as stream:
                if stream.read().rsplit(')', 1)[1].split()[0] == 'Z':
                    return True
        except (FileNotFoundError, ProcessLookupError):         # the latter error occurs between open and read
            return True
        time.sleep(0.01)
    return False


def number_in(path):
    while not os.path.exists(path):
        time.sleep(0.01)
    return int(run.read(path))


def main():
    check_sample()
    check_counts()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'pid')
        assert run.run_and_kill(['sh', '-c', 'echo well; exit 3'], os.environ, 60) == 'well\n'
        try:
            text = run.run_and_kill(['sh', '-c', HANGING.format(path)], os.environ, 1)
            raise AssertionError(f'no timeout: {text}')
        except subprocess.TimeoutExpired as timeout:
            assert timeout.output == 'begun\n', 'the output until the timeout'
        assert ended(number_in(path)), 'a process survives the timeout'
        os.unlink(path)
        check_early_end(folder)
        script = f'import run, os; run.run_and_kill(["sh", "-c", {HANGING.format(path)!r}], os.environ, 1000)'
        runner = subprocess.Popen([sys.executable, '-c', script], cwd=run.HERE)
        started = number_in(path)
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(60) == 1
        assert ended(started), 'a process survives the runner'


if __name__ == '__main__':
    main()
