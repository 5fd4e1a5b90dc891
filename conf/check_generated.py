#!/usr/bin/env python3
"""Compares conf/README.md and conf/sluice.schema.json with what the tables of the build say.

usage: check_generated.py [--write] CONF_REFERENCE CONF_FOLDER     exit 1 and a diff where they differ
"""
import difflib
import json
import pathlib
import subprocess
import sys

FILES = {'reference': 'README.md', 'schema': 'sluice.schema.json'}


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
