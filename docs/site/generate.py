#!/usr/bin/env python3
"""Compares the generated pages of docs/ and conf/sluice.schema.json with the output of the tables of the build, and checks all pages.

usage: generate.py [--write] REFERENCE SOURCE_ROOT     exit 1 and a diff if they differ
"""
import difflib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import markdown
import pages


def schema_faults(schema, path='#'):
    """Every reference in the schema has a target in it, and every type is one of JSON."""
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
    return [markdown.anchor(heading) for _, heading in markdown.headings(text)]


def page_faults(text):
    """Headings with the same anchor, and rows of the tables without a text."""
    known = anchors(text)
    yield from (f'several headings have the anchor #{name}' for name in sorted(set(known)) if known.count(name) > 1)
    yield from (f'no syntax: {line}' for line in text.splitlines() if re.search(r'Value: `\.\.\.`', line))
    yield from (f'no type or meaning: {line}' for line in text.splitlines() if line.startswith('|') and '(null)' in line)


def link_faults(path, text):
    """Links to a file that does not exist, or that has no heading with that anchor."""
    for target in markdown.links(text):
        if re.match(r'https?:', target):
            continue
        name, _, name_anchor = target.partition('#')
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            yield f'{target}: no such file'
        elif name_anchor and file.suffix == '.md' and name_anchor not in anchors_of_file(file):
            yield f'no heading has the anchor of {target}'


def anchors_of_file(path):
    """The anchors of any Markdown file, also of one with other constructs."""
    text = re.sub(r'^```.*?^```', '', path.read_text(encoding='utf-8'), flags=re.M | re.S)
    return [markdown.anchor(line) for line in text.splitlines() if line.startswith('#')]


def example_faults(root):
    """Each example is a row of its table, and each row an example."""
    folder = root / 'conf/examples'
    rows = [name for _, name, _ in pages.recipes((folder / 'README.md').read_text(encoding='utf-8'))]
    files = sorted(path.name for path in folder.glob('*.yaml'))
    yield from (f'conf/examples/README.md: no row for {name}' for name in files if name not in rows)
    yield from (f'conf/examples/README.md: {name} does not exist, or has two rows' for name in rows if name not in files or rows.count(name) > 1)


def comparison_faults(text):
    """Each feature that sluice has links to a test in the sources."""
    rows = [markdown.table_row(line) for kind, lines in markdown.blocks(text) if kind == 'table' for line in lines[2:]]
    yield from (f'no link to a test: {feature}' for feature, own, *_ in rows if own != 'no' and '](../tests/' not in own)


def measured_faults(text, measurements):
    """Each figure that the page on scaling marks as measured is one of the benchmark."""
    figures = re.findall(r'([\d.]+) [^|()]{0,60}\(measured', text)
    yield from (f'{figure} is not in bench/README.md' for figure in figures if not re.search(rf'(?<![\d.]){re.escape(figure)}(?![\d.])', measurements))
    if not figures:
        yield 'no figure is marked as measured'


def compare(path, made, write):
    """Whether the file has this text; writes it, or prints the difference."""
    kept = path.read_text(encoding='utf-8') if path.exists() else ''
    if write:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made, encoding='utf-8')
    elif kept != made:
        print(f'{path} is not the output of the tables; `ninja -C build reference` rewrites it:')
        sys.stdout.writelines(difflib.unified_diff(kept.splitlines(True), made.splitlines(True), 'kept', 'made'))
    return write or kept == made


def main():
    arguments = sys.argv[1:]
    write = arguments[:1] == ['--write']
    program, root = arguments[1:] if write else arguments
    root = pathlib.Path(root).resolve()
    docs = root / 'docs'
    wrapper = shlex.split(os.environ.get('MESON_EXE_WRAPPER', ''))  # a cross-build: meson passes the command that runs its programs
    printed = {kind: subprocess.run([*wrapper, program, kind], check=True, capture_output=True, text=True).stdout
               for kind in ('reference', 'schema', 'variables', 'nginx')}
    made, faults = pages.generated(printed, (docs / 'site/nginx.names').read_text(encoding='utf-8'), root / 'conf/examples', docs)
    faults += [f'sluice.schema.json: {fault}' for fault in schema_faults(json.loads(printed['schema']))]
    faults += example_faults(root)
    same = [compare(root / 'conf/sluice.schema.json', printed['schema'], write)]
    same += [compare(docs / name, text, write) for name, text in made.items()]
    for path in sorted([*docs.glob('*.md'), *docs.glob('directives/*.md')]):
        name, text = str(path.relative_to(docs)), path.read_text(encoding='utf-8')
        if name.startswith('directives/') and name not in made:
            faults.append(f'{name}: the tables have no such group')
        faults += [f'{name}: {fault}' for fault in (*page_faults(text), *link_faults(path, text))]
    faults += [f'comparison.md: {fault}' for fault in comparison_faults((docs / 'comparison.md').read_text(encoding='utf-8'))]
    faults += [f'scaling.md: {fault}' for fault in measured_faults((docs / 'scaling.md').read_text(encoding='utf-8'),
                                                                   (root / 'bench/README.md').read_text(encoding='utf-8'))]
    print(*faults, sep='\n', end='\n' if faults else '')
    return 0 if all(same) and not faults else 1


if __name__ == '__main__':
    sys.exit(main())
