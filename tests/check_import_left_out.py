#!/usr/bin/env python3
"""Checks `sluice import` in a build with -Dimport=disabled: it fails, and its message has the build option."""
import argparse
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('sluice', metavar='SLUICE', help='the server binary')
    done = subprocess.run([parser.parse_args().sluice, 'import', '/dev/null'], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 1 and done.stdout == '' and '-Dimport=enabled' in done.stderr:
        return 0
    print(f'exit {done.returncode}, printed {done.stdout!r}, {done.stderr!r}')
    return 1


if __name__ == '__main__':
    sys.exit(main())
