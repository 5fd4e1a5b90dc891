#!/usr/bin/env python3
"""Runs the complexity driver under callgrind: instructions for an input of 2n are at most 2.2 times those for n.

    check_complexity.py DRIVER [KIND]

Counts of instructions do not depend on the machine's load. The memory is compared by the driver itself.
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

FACTOR = 2.2
LEAST = 100000      # instructions by which a bounded number of members may differ: the bound holds, not the factor
SKIPPED = 77


def measurements(folder):
    """{kind: {label: instructions}}, from the dumps: each names its measurement."""
    found = collections.defaultdict(dict)
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), errors='replace') as dump:
            text = dump.read()
        trigger = re.search(r'^desc: Trigger: Client Request: (.*): (\w+)$', text, re.M)
        if trigger:
            found[trigger[1]][trigger[2]] = int(re.search(r'^summary: (\d+)', text, re.M)[1])
    return found


def too_steep(costs):
    return costs['2n'] - costs['1'] > FACTOR * (costs['n'] - costs['1']) + LEAST


def run(driver, kind):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, 'CK_FORK': 'no', 'LOOPBACK_BACKEND': 'epoll', 'COMPLEXITY_KIND': kind}
        command = ['valgrind', '--tool=callgrind', '--collect-atstart=no', f'--callgrind-out-file={folder}/out', driver]
        subprocess.run(command, env=environment, check=True)
        return measurements(folder)


def main():
    if not shutil.which('valgrind'):
        print('skipped: valgrind is not installed, and instructions cannot be counted without it')
        return SKIPPED
    found = run(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else '')
    # Buffers that other kinds left, and the log's helper thread, cost one kind more than another: in a process of its own none does.
    for kind in [kind for kind, costs in found.items() if too_steep(costs)]:
        found[kind] = run(sys.argv[1], kind)[kind]
    steep = [kind for kind, costs in found.items() if too_steep(costs)]
    for kind, costs in sorted(found.items()):
        print(f'{kind:50} {costs["1"]:11} {costs["n"]:11} {costs["2n"]:11}{"  TOO STEEP" if kind in steep else ""}')
    print(f'{len(found)} kinds, {len(steep)} of them grow faster than {FACTOR} times for twice the input')
    return 1 if steep or not found else 0


sys.exit(main())
