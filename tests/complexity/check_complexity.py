#!/usr/bin/env python3
"""Runs the complexity driver under callgrind: instructions for an input of 2n are at most 2.2 times those for n.

Counts of instructions do not depend on the machine's load. The driver itself compares the memory.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

FACTOR = 2.2
LEAST = 100000      # permitted beyond the factor: work whose amount a limit bounds
ATTEMPTS = 4        # measurements of a kind that seems too steep
GROUPS = 8          # processes: each starts under valgrind, which takes a second
SKIPPED = 77


def measurements(folder):
    """{kind: {label: instructions}}, from the dumps, which contain the names of their measurements."""
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


def run(driver, kinds):
    """meson sets MALLOC_PERTURB_, with which each allocation would cost instructions in proportion to its size."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, 'CK_FORK': 'no', 'MALLOC_PERTURB_': '0', 'LOOPBACK_BACKEND': 'epoll'}
        command = ['valgrind', '--tool=callgrind', '--collect-atstart=no', '--instr-atstart=no', f'--callgrind-out-file={folder}/out',
                   f'--log-file={folder}/log', driver, *kinds]     # valgrind logs a warning for each system call that it does not know
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            with open(f'{folder}/log', errors='replace') as log:
                print(done.stdout[-2000:], log.read()[-2000:], sep='\n')
            raise RuntimeError(f'{driver} failed with {", ".join(kinds)}: {done.returncode}')
        return measurements(folder)


def repeat(driver, kind, costs):
    """Measures a kind that seems too steep again, in processes of its own. The helper thread of the log, and timers that expire on a busy
    machine, can only add instructions: of several measurements the least counts."""
    for _ in range(1, ATTEMPTS):
        if not too_steep(costs):
            break
        again = run(driver, [kind])[kind]
        costs = {label: min(count, again[label]) for label, count in costs.items()}
    return costs


def measure(driver, kinds):
    """{kind: {label: instructions}}."""
    found = run(driver, kinds)
    return {kind: repeat(driver, kind, found[kind]) for kind in kinds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('driver', metavar='DRIVER')
    parser.add_argument('kind', metavar='KIND', nargs='?', default='', help='only this kind of input')
    options = parser.parse_args()
    if not shutil.which('valgrind'):
        print('skipped: valgrind is not installed, and instructions cannot be counted without it')
        return SKIPPED
    listed = subprocess.run([options.driver, '--list'], capture_output=True, text=True, check=True).stdout.splitlines()
    kinds = [kind for kind in listed if options.kind in ('', kind)]
    groups = [kinds[first::GROUPS] for first in range(min(GROUPS, len(kinds)))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(collections.ChainMap(*pool.map(lambda group: measure(options.driver, group), groups)))
    steep = [kind for kind, costs in found.items() if too_steep(costs)]
    for kind, costs in sorted(found.items(), key=lambda item: (item[0] in steep, item[0])):
        print(f'{kind:50} {costs["1"]:11} {costs["n"]:11} {costs["2n"]:11}{"  TOO STEEP" if kind in steep else ""}')
    print(f'{len(found)} kinds, {len(steep)} of them grow faster than {FACTOR} times for twice the input')
    return 1 if steep or not found else 0


sys.exit(main())
