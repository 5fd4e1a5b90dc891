#!/usr/bin/env python3
"""Checks that the names which the Python files of tests/ and bench/ import from each other exist. Only the suite http would show a
missing one, since it runs these files."""
import ast
import functools
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ('tests', 'bench')


def python_files():
    for folder in FOLDERS:
        for place, _, names in os.walk(os.path.join(TOP, folder)):
            yield from (os.path.join(place, name) for name in sorted(names) if name.endswith('.py'))


@functools.cache
def parse(path):
    with open(path, encoding='utf-8') as stream:
        return ast.parse(stream.read(), path)


def bound_names(node):
    """The names that the statements of a module bind, without those inside of functions and classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            yield child.name
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).split('.')[0] for alias in child.names)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        else:
            yield from bound_names(child)


def module_path(path, node):
    """The file or directory that a `from` statement names, if it is one of this project."""
    place = os.path.dirname(path)
    for _ in range(1, node.level):
        place = os.path.dirname(place)
    found = os.path.join(place, *(node.module or '').split('.'))
    return next((one for one in (f'{found}.py', found.rstrip('/')) if os.path.exists(one)), None)


@functools.cache
def names_of(path):
    return set(bound_names(parse(path))) if os.path.exists(path) else set()


def has_name(module, name):
    if os.path.isdir(module):
        return os.path.exists(os.path.join(module, f'{name}.py')) or os.path.isdir(os.path.join(module, name)) or \
            has_name(os.path.join(module, '__init__.py'), name)
    return name in names_of(module)


def missing(path):
    for node in (node for node in parse(path).body if isinstance(node, ast.ImportFrom)):
        module = module_path(path, node)
        if module:
            yield from (f'{os.path.relpath(path, TOP)}:{node.lineno}: {os.path.relpath(module, TOP)} has no {alias.name}'
                        for alias in node.names if not has_name(module, alias.name))


def main():
    files = list(python_files())
    found = [fault for path in files for fault in missing(path)]
    print(*found, f'{len(files)} files, {len(found)} missing names', sep='\n')
    return 1 if found or not files else 0


if __name__ == '__main__':
    sys.exit(main())
