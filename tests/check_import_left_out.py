#!/usr/bin/env python3
"""`sluice import` in a build with -Dimport=disabled: it fails, and names the option.

usage: check_import_left_out.py SLUICE
"""
import subprocess
import sys


def main():
    done = subprocess.run([sys.argv[1], 'import', '/dev/null'], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 1 and done.stdout == '' and '-Dimport=enabled' in done.stderr:
        return 0
    print(f'exit {done.returncode}, printed {done.stdout!r}, {done.stderr!r}')
    return 1


if __name__ == '__main__':
    sys.exit(main())
