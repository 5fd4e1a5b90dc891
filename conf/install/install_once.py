#!/usr/bin/env python3
"""Installs configuration files. Installs none if the first one exists already, and never overwrites a file.

usage: install_once.py FOLDER NAME=SOURCE...

FOLDER is below the prefix, unless it is absolute. A file that was deleted from an existing configuration stays deleted.
"""
import os
import pathlib
import shutil
import sys


def main():
    folder = pathlib.Path(os.environ['MESON_INSTALL_PREFIX']) / sys.argv[1]
    target = pathlib.Path(os.environ.get('DESTDIR', '') + str(folder))
    files = {target / name: source for name, source in (argument.split('=', 1) for argument in sys.argv[2:])}
    first = next(iter(files))
    if first.exists():
        print(f'{first} exists already: the files in {target} are not changed')
        return
    for path, source in files.items():
        if path.exists():
            print(f'{path} exists already, and is not changed')
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
        path.chmod(0o644)
        print(f'Installing {path.name} to {path.parent}')


if __name__ == '__main__':
    main()
