#!/usr/bin/env python3
"""Compares conf/README.md, VARIABLES.md, NGINX.md and sluice.schema.json with what the tables of the build say.

usage: check_generated.py [--write] CONF_REFERENCE CONF_FOLDER     exit 1 and a diff where they differ
"""
import difflib
import json
import pathlib
import re
import subprocess
import sys

FILES = {'reference': 'README.md', 'schema': 'sluice.schema.json', 'variables': 'VARIABLES.md', 'nginx': 'NGINX.md'}


def schema_faults(schema, path='#'):
    """Every reference inside the schema must lead somewhere, and every type be one of JSON's."""
    definitions = schema.get('definitions', {})
    known = {'object', 'array', 'string', 'number', 'integer', 'boolean', 'null'}

    def walk(node, at):
        if isinstance(node, list):
            for i, item in enumerate(node):
                yield from walk(item, f'{at}/{i}')
        if not isinstance(node, dict):
            return
        reference = node.get('$ref')
        if isinstance(reference, str) and reference.removeprefix('#/definitions/') not in definitions:
            yield f'{at}: {reference} leads nowhere'
        types = node.get('type', [])
        for name in [types] if isinstance(types, str) else types if isinstance(types, list) else []:
            if name not in known:
                yield f'{at}: {name} is no type'
        for key, value in node.items():
            yield from walk(value, f'{at}/{key}')

    return list(walk(schema, path))


def anchors(text):
    """The anchors that GitHub makes of the headings."""
    return [re.sub(r'[^a-z0-9_ -]', '', line.lstrip('# ').lower()).replace(' ', '-')
            for line in re.sub(r'^```.*?^```', '', text, flags=re.M | re.S).splitlines() if line.startswith('#')]


def page_faults(text):
    """Every heading has an anchor of its own, and every link into the page leads to one."""
    known = anchors(text)
    yield from (f'several headings have the anchor #{name}' for name in sorted(set(known)) if known.count(name) > 1)
    yield from (f'no heading has the anchor #{name}' for name in re.findall(r'\]\(#([^)]*)\)', text) if name not in known)
    yield from (f'no syntax: {line}' for line in text.splitlines() if re.search(r'Value: `\.\.\.`', line))
    yield from (f'no type or meaning: {line}' for line in text.splitlines() if line.startswith('|') and '(null)' in line)


def main():
    arguments = sys.argv[1:]
    write = arguments[:1] == ['--write']
    program, folder = arguments[1:] if write else arguments
    failed = False
    for kind, name in FILES.items():
        made = subprocess.run([program, kind], check=True, capture_output=True, text=True).stdout
        path = pathlib.Path(folder) / name
        if kind == 'schema':
            for fault in schema_faults(json.loads(made)):
                print(fault)
                failed = True
        else:
            for fault in page_faults(made):
                print(f'{name}: {fault}')
                failed = True
        if write:
            path.write_text(made)
            continue
        kept = path.read_text() if path.exists() else ''
        if kept != made:
            failed = True
            print(f'{path} is not what the tables say; `ninja -C build reference` rewrites it:')
            sys.stdout.writelines(difflib.unified_diff(kept.splitlines(True), made.splitlines(True), 'kept', 'made'))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
