#!/usr/bin/env python3
"""Writes text files as C macros: NAME_EXT with the text as a string literal, and NAME_EXT_HASH with its SHA-256 in base64, as
Content-Security-Policy names it.

embed.py OUTPUT FILE...
"""
import base64
import hashlib
import pathlib
import sys


def literal(text):
    """The text as adjacent C string literals, one for each line."""
    lines = text.splitlines(keepends=True)
    return ' \\\n'.join('    "' + line.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n') + '"' for line in lines)


def macros(path):
    text = path.read_text(encoding='ascii')
    name = path.name.replace('.', '_').upper()
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f'#define {name} \\\n{literal(text)}\n#define {name}_HASH "{digest}"\n'


def main(output, *files):
    pathlib.Path(output).write_text('\n'.join(macros(pathlib.Path(file)) for file in files), encoding='ascii')


main(*sys.argv[1:])
