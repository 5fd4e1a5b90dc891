#!/usr/bin/env python3
"""Checks a command of a build without it (-DCOMMAND=disabled): it fails, and its message has the build option."""
import argparse
import os
import pty
import subprocess
import sys
import tempfile

import wrapped


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('sluice', metavar='SLUICE', help='the server binary')
    parser.add_argument('command', metavar='COMMAND')
    parser.add_argument('arguments', metavar='ARGUMENT', nargs='*')
    options = parser.parse_args()
    ours, theirs = pty.openpty()    # `top` needs a terminal
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([wrapped.runnable(options.sluice, folder), options.command, *options.arguments], stdin=theirs,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(ours)
    os.close(theirs)
    if done.returncode == 1 and done.stdout == '' and f'-D{options.command}=enabled' in done.stderr:
        return 0
    print(f'exit {done.returncode}, printed {done.stdout!r}, {done.stderr!r}')
    return 1


if __name__ == '__main__':
    sys.exit(main())
