#!/usr/bin/env python3
"""A guest that does not end is ended, with all that it started: run.py's run_whole, with a shell in the emulator's place."""
import os
import signal
import subprocess
import sys
import tempfile
import time

import run

SILENT = 'sleep 1000 & echo $! >{0}.made; mv {0}.made {0}; wait'      # the emulator is a child's child


def ended(pid):
    """A zombie has ended, too: it may be nobody's task to bury it."""
    for _ in range(1000):
        try:
            with open(f'/proc/{pid}/stat', encoding='ascii') as stream:
                if stream.read().rsplit(')', 1)[1].split()[0] == 'Z':
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def number_in(path):
    while not os.path.exists(path):
        time.sleep(0.01)
    return int(run.read(path))


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'pid')
        assert run.run_whole(['sh', '-c', 'echo well; exit 3'], os.environ, 60) == 'well\n'
        try:
            said = run.run_whole(['sh', '-c', SILENT.format(path)], os.environ, 1)
            raise AssertionError(f'it ended by itself: {said}')
        except subprocess.TimeoutExpired:
            pass
        assert ended(number_in(path)), 'what was started goes on after the time'
        os.unlink(path)
        script = f'import run, os; run.run_whole(["sh", "-c", {SILENT.format(path)!r}], os.environ, 1000)'
        runner = subprocess.Popen([sys.executable, '-c', script], cwd=run.HERE)
        started = number_in(path)
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(60) == 1
        assert ended(started), 'what was started goes on after the runner'


if __name__ == '__main__':
    main()
