#!/usr/bin/env python3
"""Checks by symbols that the object files of a static library have no cyclic dependency.

Exit status 1 if a library has a cycle, 77 if nm is not installed.
"""
import argparse
import collections
import re
import subprocess
import sys

# The generated module table refers to all modules, and the static module refers to the table.
IGNORED_MEMBERS = re.compile(r'module_table')
SKIPPED = 77


def symbols(library):
    """Returns (the member that defines each symbol, the symbols that each member needs)."""
    listing = subprocess.run(['nm', '-A', '-P', library], capture_output=True, text=True, check=True).stdout
    return parse(listing)


def parse(listing):
    defined, needed = {}, collections.defaultdict(set)
    for line in listing.splitlines():
        location, name, kind = line.split()[:3]
        member = re.search(r'([^\[/:]*\.o)\]?:$', location)
        if not member or IGNORED_MEMBERS.search(member[1]):
            continue
        if kind == 'U':
            needed[member[1]].add(name)
        elif kind in 'TDRBV':
            defined[name] = member[1]
    return defined, needed


def cycles(defined, needed):
    """The groups of members that depend on each other (strongly connected components, by Tarjan's algorithm)."""
    calls = {member: sorted({defined[name] for name in names if name in defined} - {member}) for member, names in needed.items()}
    order, low, stack, components = {}, {}, [], []

    def visit(member):
        order[member] = low[member] = len(order)
        stack.append(member)
        for other in calls.get(member, ()):
            if other not in order:
                visit(other)
            if other in stack:
                low[member] = min(low[member], low[other])
        if low[member] == order[member]:
            group = [stack.pop()]
            while group[-1] != member:
                group.append(stack.pop())
            if len(group) > 1:
                components.append(sorted(group))

    for member in sorted(calls):
        if member not in order:
            visit(member)
    return components


def report(components, defined, needed):
    for group in components:
        print('cycle: ' + ', '.join(group))
        for member in group:
            for other in group:
                names = sorted(name for name in needed[member] if defined.get(name) == other)
                if names and other != member:
                    print(f'    {member} needs {", ".join(names)} of {other}')


SELF_TEST = [
    ('lib.a[a.c.o]: one T 0 1\nlib.a[b.c.o]: one U\n', []),
    ('lib.a[a.c.o]: one T 0 1\nlib.a[a.c.o]: two U\nlib.a[b.c.o]: one U\nlib.a[b.c.o]: two T 0 1\n', [['a.c.o', 'b.c.o']]),
    ('lib.a[a.c.o]: a T 0 1\nlib.a[a.c.o]: b U\nlib.a[b.c.o]: b T 0 1\nlib.a[b.c.o]: c U\nlib.a[c.c.o]: c T 0 1\nlib.a[c.c.o]: a U\n'
     'lib.a[d.c.o]: a U\n', [['a.c.o', 'b.c.o', 'c.c.o']]),
    ('x/lib.a:x/a.c.o: one T 0 1\nx/lib.a:x/a.c.o: two U\nx/lib.a:x/b.c.o: one U\nx/lib.a:x/b.c.o: two D 0 1\n', [['a.c.o', 'b.c.o']]),
    ('lib.a[a.c.o]: one t 0 1\nlib.a[a.c.o]: two U\nlib.a[b.c.o]: one U\nlib.a[b.c.o]: two T 0 1\n', []),
]


def self_test():
    wrong = [listing for listing, expected in SELF_TEST if cycles(*parse(listing)) != expected]
    for listing in wrong:
        print(f'{listing!r}: {cycles(*parse(listing))}')
    print(f'{len(SELF_TEST)} tables, {len(wrong)} with an unexpected result')
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('libraries', metavar='LIBRARY', nargs='*', help='a static library')
    parser.add_argument('--self-test', action='store_true', help='instead, checks tables with known cycles')
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    count = 0
    for library in options.libraries:
        try:
            defined, needed = symbols(library)
        except FileNotFoundError:
            print('skipped: nm is not installed')
            return SKIPPED
        components = cycles(defined, needed)
        report(components, defined, needed)
        count += len(components)
    print(f'{count} cycles')
    return 1 if count else 0


if __name__ == '__main__':
    sys.exit(main())
