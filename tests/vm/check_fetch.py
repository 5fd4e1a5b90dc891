#!/usr/bin/env python3
"""A kernel without a module that the guest needs is refused when it is fetched, by the module's name."""
import os
import tempfile

import fetch


def write(path, lines):
    with open(path, 'w', encoding='ascii') as stream:
        stream.writelines(f'{line}\n' for line in lines)


def main():
    with tempfile.TemporaryDirectory() as folder:
        loadable, builtin = fetch.NEEDED[::2], fetch.NEEDED[1::2]
        dependencies = os.path.join(folder, 'modules.dep')
        lines = [f'kernel/some/{name.replace("_", "-")}.ko.xz: kernel/some/other.ko.xz' for name in loadable]
        write(dependencies, lines)
        write(os.path.join(folder, 'modules.builtin'), [f'kernel/{name}.ko' for name in builtin])
        fetch.check(folder)
        write(dependencies, lines[1:])
        try:
            fetch.check(folder)
            raise AssertionError('nothing is missed')
        except LookupError as error:
            assert str(error).startswith(f'no module {loadable[0]} in {folder}'), error


if __name__ == '__main__':
    main()
