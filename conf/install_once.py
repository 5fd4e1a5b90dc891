#!/usr/bin/env python3
"""Installs configuration files that are not there yet: what an administrator has changed is never overwritten.

usage: install_once.py FOLDER FILE...     FOLDER below the prefix, as meson passes it on
"""
import os
import pathlib
import shutil
import sys


def main():
    folder = pathlib.Path(sys.argv[1])
    destination = os.environ.get('DESTDIR', '')
    if not folder.is_absolute():
        folder = pathlib.Path(os.environ['MESON_INSTALL_PREFIX']) / folder
    target = pathlib.Path(destination + str(folder))
    target.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:]:
        source = pathlib.Path(name)
        if (target / source.name).exists():
            print(f'{target / source.name} is there already, and kept')
            continue
        shutil.copyfile(source, target / source.name)
        print(f'Installing {source} to {target}')


if __name__ == '__main__':
    main()
