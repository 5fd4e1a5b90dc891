#!/usr/bin/env python3
"""The twenty rules of kernel TLS (src/tls/README.md) each name a test by their number, and every test named there exists."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
RULES = range(1, 21)


def tests():
    """The names of all tests; Python's without "test_"."""
    found = set()
    for path in (ROOT / 'tests').rglob('*.[cp]*'):
        if path.suffix == '.c':
            found |= set(re.findall(r'^START_TEST\((\w+)\)', path.read_text(encoding='utf-8'), re.M))
        elif path.suffix == '.py':
            found |= set(re.findall(r'^def test_(\w+)\(', path.read_text(encoding='utf-8'), re.M))
    return found


def table():
    """{number of the rule: names of its tests}"""
    text = (ROOT / 'src/tls/README.md').read_text(encoding='utf-8')
    rows = re.findall(r'^\| (\d+) \|.*\|([^|]*)\|$', text, re.M)
    return {int(number): re.findall(r'`(\w+)`', named) for number, named in rows}


def faults(rows, known):
    for number in RULES:
        named = rows.get(number)
        if named is None:
            yield f'rule {number} is not in the table'
            continue
        if not any(name.startswith(f'rule_{number:02}_') for name in named):
            yield f'rule {number} names no test rule_{number:02}_...'
        for name in named:
            if name not in known:
                yield f'rule {number} names {name}, and there is no such test'


def main():
    found = list(faults(table(), tests()))
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
