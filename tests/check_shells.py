#!/usr/bin/env python3
"""Asks zsh and fish for completions, and compares them with those of bash. Skipped without zsh and fish."""
import argparse
import contextlib
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

import check_completion
import wrapped

LINES = (['sluice', ''], ['sluice', 'se'], ['sluice', '-s', 're'], ['sluice', 'ctl', ''], ['sluice', 'ctl', 'upstreams', ''], ['sluice', 'ctl', '--json', 'c'],
         ['sluice', 'ctl', 'log-level', ''], ['sluice', 'help', 'proxy_pass_r'], ['sluice', 'lint', '--format', ''], ['sluice', 'serve', '--au'])
TIMEOUT_S = 60 * float(os.environ.get('SLUICE_PATIENCE', '1'))
ZSHRC = '''PS1='ready> '
fpath=({folder} $fpath)
autoload -Uz compinit && compinit -u -D
zstyle ':completion:*' verbose no
LISTMAX=1000
unsetopt always_last_prompt
'''


def check_fish(expected, environment):
    script = f'source {check_completion.FOLDER}/sluice.fish; for line in $argv; complete -C "$line"; echo; end'
    ran = subprocess.run(['fish', '-c', script, *map(' '.join, LINES)], check=True, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S)
    assert not ran.stderr, ran.stderr
    for words, rows in zip(LINES, ran.stdout.split('\n\n')[:-1], strict=True):
        found = {row.partition('\t')[0] for row in rows.splitlines()}
        assert found == expected[tuple(words)], f'fish: {words}: {sorted(found)} instead of {sorted(expected[tuple(words)])}'


class Zsh:
    """An interactive zsh on a terminal."""

    def __init__(self, environment):
        process, self.terminal = pty.fork()
        if process == 0:
            os.execvpe('zsh', ['zsh', '-i'], {**environment, 'TERM': 'dumb', 'COLUMNS': '200'})
        self.process = process
        self.read_until(lambda text: 'ready> ' in text)

    def read_until(self, complete):
        """Returns the output as soon as `complete` is true for it; also when TIMEOUT_S is over."""
        text, end = '', time.monotonic() + TIMEOUT_S
        while not complete(text) and select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
            text += re.sub(r'\x1b\[[0-9;?]*[a-zA-Z]|\r', '', os.read(self.terminal, 65536).decode())
        return text

    def completions(self, line, expected):
        """The words of `expected` that zsh proposes or inserts for the line."""
        def words(text):
            return expected & set(re.findall(r'[\w-]+', text.replace(line, '', 1) if len(expected) > 1 else text))
        os.write(self.terminal, f'{line}\t\t'.encode())
        return words(self.read_until(lambda text: words(text) == expected))

    def close(self):
        with contextlib.suppress(OSError):      # it has ended
            os.write(self.terminal, b'\x03exit\n')
        os.close(self.terminal)
        os.waitpid(self.process, 0)


def check_zsh(expected, environment):
    (pathlib.Path(environment['HOME']) / '.zshrc').write_text(ZSHRC.format(folder=check_completion.FOLDER), encoding='utf-8')
    for words in LINES:
        shell = Zsh(environment)
        found = shell.completions(' '.join(words), expected[tuple(words)])
        shell.close()
        assert found == expected[tuple(words)], f'zsh: {words}: only {sorted(found)} of {sorted(expected[tuple(words)])}'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sluice', metavar='SLUICE', help='the server binary')
    options = parser.parse_args()
    if not shutil.which('zsh') and not shutil.which('fish'):
        print('skipped: neither zsh nor fish is installed')
        return 77
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        sluice = wrapped.runnable(options.sluice, folder)
        expected = {tuple(words): check_completion.complete(sluice, *words) for words in LINES}
        assert all(expected.values()), expected
        environment = {'HOME': home, 'LC_ALL': 'C.UTF-8', 'PATH': f'{pathlib.Path(sluice).parent}:{os.environ["PATH"]}'}
        if shutil.which('fish'):
            check_fish(expected, environment)
        if shutil.which('zsh'):
            check_zsh(expected, environment)
    return 0


if __name__ == '__main__':
    sys.exit(main())
