#!/usr/bin/env python3
"""Installs configuration files that are not there yet: what an administrator has changed is never overwritten.

usage: install_once.py FOLDER [OLD=>NEW...] -- FILE...

FOLDER is below the prefix, as meson passes it on. Each OLD, which stands once in the files, becomes NEW: what stands
beside a file in the sources, and elsewhere when it is installed.
"""
import os
import pathlib
import sys


def main():
    folder = pathlib.Path(sys.argv[1])
    destination = os.environ.get('DESTDIR', '')
    if not folder.is_absolute():
        folder = pathlib.Path(os.environ['MESON_INSTALL_PREFIX']) / folder
    target = pathlib.Path(destination + str(folder))
    target.mkdir(parents=True, exist_ok=True)
    split = sys.argv.index('--')
    replacements = [argument.split('=>') for argument in sys.argv[2:split]]
    text = {name: pathlib.Path(name).read_text(encoding='utf-8') for name in sys.argv[split + 1:]}
    for old, new in replacements:
        if sum(content.count(old) for content in text.values()) != 1:
            sys.exit(f'"{old}" does not stand once in {", ".join(text)}')
        text = {name: content.replace(old, new) for name, content in text.items()}
    for name, content in text.items():
        source = pathlib.Path(name)
        if (target / source.name).exists():
            print(f'{target / source.name} is there already, and kept')
            continue
        (target / source.name).write_text(content, encoding='utf-8')
        print(f'Installing {source} to {target}')


if __name__ == '__main__':
    main()
