#!/usr/bin/env python3
"""Checks fetch.py: its arguments, and that a kernel without a required module is rejected, with the module's name, after the download
and before the boot."""
import contextlib
import io
import os
import subprocess
import sys
import tempfile

import fetch
import run


def write(path, lines):
    with open(path, 'w', encoding='ascii') as stream:
        stream.writelines(f'{line}\n' for line in lines)


def check_arguments():
    """--help prints the usage, and an unknown version is an error: neither argument is used as the build directory."""
    with tempfile.TemporaryDirectory() as folder:
        for arguments, status, words in ((['--help'], 0, 'usage: fetch.py '), (['build', '5.10'], 2, 'unknown version 5.10')):
            done = subprocess.run([sys.executable, os.path.join(run.HERE, 'fetch.py'), *arguments], cwd=folder, capture_output=True,
                                  text=True, timeout=60, check=False)
            assert (done.returncode, os.listdir(folder)) == (status, []) and words in done.stdout + done.stderr, done


def main():
    check_arguments()
    with tempfile.TemporaryDirectory() as build:
        root, image = f'{build}/vm/sid/root', f'{build}/vm/sid/root/boot/vmlinuz-7.2'
        modules = f'{root}/lib/modules/7.2'
        os.makedirs(modules)
        loadable, builtin = fetch.NEEDED[::2], fetch.NEEDED[1::2]
        lines = [f'kernel/some/{name.replace("_", "-")}.ko.xz: kernel/some/other.ko.xz' for name in loadable]
        write(f'{modules}/modules.dep', lines)
        write(f'{modules}/modules.builtin', [f'kernel/{name}.ko' for name in builtin])
        fetch.check(image)
        write(f'{modules}/modules.dep', lines[1:])
        try:
            fetch.check(image)
            raise AssertionError('nothing is missed')
        except LookupError as error:
            assert str(error) == f'no module {loadable[0]} in {modules}', error
        write(f'{build}/vm/sid/kernel', [image])
        printed = io.StringIO()
        sys.argv = ['run.py', build, 'sid', 'sluice']
        with contextlib.redirect_stdout(printed):
            assert run.main() == 1
        assert printed.getvalue().startswith(f'failed: no module {loadable[0]} in {modules}'), printed.getvalue()


if __name__ == '__main__':
    main()
