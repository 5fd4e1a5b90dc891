#!/usr/bin/env python3
"""The twenty rules of kernel TLS (src/tls/README.md) each name a test by their number, and every test named there exists.

One of them is kept by what is not in the source, and is seen to here: rule 16.
"""
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


def test_rule_16_what_the_kernel_refuses_is_never_asked():
    """MSG_WAITALL and zero-copy sends fail on a kTLS socket, and one whose receiving side is the kernel's wants another receive."""
    refused = re.compile(r'\b(MSG_WAITALL|MSG_ZEROCOPY|SO_ZEROCOPY|TLS_RX|IORING_OP_SEND(MSG)?_ZC|io_uring_prep_send(msg)?_zc\w*)\b')
    for path in sorted((ROOT / 'src').rglob('*.[ch]')):
        for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
            found = refused.search(re.sub(r'/\*.*', '', line))
            if found:
                yield f'{path.relative_to(ROOT)}:{number}: rule 16 forbids {found.group(1)}'


def main():
    found = [*faults(table(), tests()), *test_rule_16_what_the_kernel_refuses_is_never_asked()]
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
