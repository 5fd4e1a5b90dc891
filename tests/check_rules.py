#!/usr/bin/env python3
"""Checks that each of the twenty rules of kernel TLS (src/tls/README.md) has a test with its number, and that every test listed there
exists.

Rule 16 prohibits certain calls; this script searches the source for them.
"""
import argparse
import pathlib
import re
import sys

RULES = range(1, 21)


def tests(root):
    """The names of all tests, those of Python without "test_"."""
    found = set()
    for path in (root / 'tests').rglob('*.[cp]*'):
        if path.suffix == '.c':
            found |= set(re.findall(r'^START_TEST\((\w+)\)', path.read_text(encoding='utf-8'), re.M))
        elif path.suffix == '.py':
            found |= set(re.findall(r'^def test_(\w+)\(', path.read_text(encoding='utf-8'), re.M))
    return found


def table(root):
    """{number of the rule: names of its tests}"""
    text = (root / 'src/tls/README.md').read_text(encoding='utf-8')
    rows = re.findall(r'^\| (\d+) \|.*\|([^|]*)\|$', text, re.M)
    return {int(number): re.findall(r'`(\w+)`', named) for number, named in rows}


def faults(rows, known):
    for number in RULES:
        named = rows.get(number)
        if named is None:
            yield f'rule {number} is not in the table'
            continue
        if not any(name.startswith(f'rule_{number:02}_') for name in named):
            yield f'rule {number} lists no test rule_{number:02}_...'
        for name in named:
            if name not in known:
                yield f'rule {number} lists {name}, which is not a test'


def test_rule_16_features_refused_by_ktls_are_never_used(root):
    """MSG_WAITALL and zero-copy sends fail on a kTLS socket, and kernel decryption (TLS_RX) would require another way to receive."""
    refused = re.compile(r'\b(MSG_WAITALL|MSG_ZEROCOPY|SO_ZEROCOPY|TLS_RX|IORING_OP_SEND(MSG)?_ZC|io_uring_prep_send(msg)?_zc\w*)\b')
    for path in sorted((root / 'src').rglob('*.[ch]')):
        for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
            found = refused.search(re.sub(r'/\*.*', '', line))
            if found:
                yield f'{path.relative_to(root)}:{number}: rule 16 forbids {found.group(1)}'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('root', metavar='ROOT', nargs='?', type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help='the root of the repository (default: of this one)')
    root = parser.parse_args().root
    if not (root / 'src').is_dir():
        parser.error(f'{root} has no directory src')
    found = [*faults(table(root), tests(root)), *test_rule_16_features_refused_by_ktls_are_never_used(root)]
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
