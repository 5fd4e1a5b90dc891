#!/usr/bin/env python3
"""Checks that the completions of bash, zsh and fish and the manual page have exactly the options of the program: the program must accept
each of them, and they must include each option that `sluice -h` prints.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import wrapped

COMMANDS = {'serve', 'docs', 'doctor', 'explain', 'lint', 'fmt', 'schema', 'help', 'import', 'top', 'ctl'}
VALUES = {'--format': 'text', '-s': 'stop', '--port': '1', '--interval': '1', '--seconds': '1', '-g': 'daemon: off'}  # of options that do not accept any text
FOLDER = pathlib.Path(__file__).resolve().parent.parent / 'conf/install'


def bash(script, sluice):
    path = f'{pathlib.Path(sluice).parent}:{os.environ["PATH"]}'
    return subprocess.run(['bash', '-c', f'. {FOLDER}/sluice.bash; {script}'], check=True, capture_output=True, text=True,
                          env={**os.environ, 'PATH': path}).stdout.split()


def complete(sluice, *words):
    """The completions that bash proposes for the last word."""
    quoted = ' '.join(f"'{word}'" for word in words)
    return set(bash(f'COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _sluice; echo "${{COMPREPLY[@]}}"', sluice))


def accepts(sluice, command, option):
    """True if the program accepts the option, with or without a value, and then prints the usage."""
    for value in ([VALUES.get(option, 'value')], []):
        words = [*([command] if command else []), option, *value, '--help']
        result = subprocess.run([sluice, *words], check=False, capture_output=True, text=True, timeout=30)
        if result.returncode == 0 and result.stdout.startswith('sluice '):
            return True
    return False


def zsh_options(command):
    text = (FOLDER / '_sluice').read_text(encoding='utf-8')
    if command:
        branch = re.search(rf'^    {command}\)(.*?);;$', text, re.M | re.S) or re.search(r'^    \*\)(.*?);;$', text, re.M | re.S)
    else:
        branch = re.search(r"^    _arguments '-c(.*?)^}", text, re.M | re.S)
    options = set(re.findall(r"'(?:\([^)]*\))?(-{1,2}[\w-]+)\[", branch[0]))
    return options | ({'--help'} if '$help' in branch[0] else set())


def fish_options(command):
    options = set()
    for line in (FOLDER / 'sluice.fish').read_text(encoding='utf-8').splitlines():
        match = re.match(r"complete -c sluice -n (?:\$main|['\"]__fish_seen_subcommand_from ([^'\"]*)['\"])", line)
        if match and (match[1] is None if not command else match[1] and {command, '$commands'} & set(match[1].split())):
            options |= {f'-{name}' for name in re.findall(r' -s (\w)\b', line)} | {f'--{name}' for name in re.findall(r' -l ([\w-]+)', line)}
    return options


def check_options(sluice):
    """All shells have the same options; the program accepts and documents each of them; no option that -h prints is missing."""
    usage = subprocess.run([sluice, '-h'], check=True, capture_output=True, text=True).stdout
    page = (FOLDER / 'sluice.1.in').read_text(encoding='utf-8').replace('\\-', '-')
    every = set()
    for command in ['', *sorted(COMMANDS)]:
        options = set(bash(f'_sluice_options {command}', sluice))
        assert options, command
        every |= options
        assert zsh_options(command) == options, f'{command}: bash {sorted(options)}, zsh {sorted(zsh_options(command))}'
        assert fish_options(command) == options, f'{command}: bash {sorted(options)}, fish {sorted(fish_options(command))}'
        for option in options:
            assert accepts(sluice, command, option), f'the program does not accept: sluice {command} {option}'
            assert option == '--help' or re.search(rf'(?<![\w-]){option}(?![\w-])', page), f'sluice(1) lacks {option}'
        assert command == 'help' or not accepts(sluice, command, '--nosuch'), command
    printed = set(re.findall(r'(?<![\w-])--?[A-Za-z][\w-]*', usage))
    assert printed <= every, f'no completion: {sorted(printed - every)}'
    assert COMMANDS == set(re.findall(r'^  sluice (\w+)', usage.split('Examples')[0], re.M)), 'the commands of -h'


def check_ctl_words(sluice):
    printed = subprocess.run([sluice, 'ctl', 'help'], check=True, capture_output=True, text=True).stdout.splitlines()[2:]
    commands = [line.strip().split('  ')[0].split() for line in printed]
    page = (FOLDER / 'sluice.1.in').read_text(encoding='utf-8').replace('\\-', '-')
    schema = json.loads(subprocess.run([sluice, 'schema'], check=True, capture_output=True, text=True).stdout)
    levels = set(schema['properties']['error_log']['allOf'][0]['oneOf'][1]['properties']['level']['enum'])
    for name in ('_sluice', 'sluice.fish'):
        found = re.search(r"debug[a-z ]*", (FOLDER / name).read_text(encoding='utf-8'))[0]
        assert set(found.split()) == levels, name
    assert complete(sluice, 'sluice', 'ctl', '') == {words[0] for words in commands}
    for words in commands:
        following = {other[1] for other in commands if other[0] == words[0] and len(other) > 1 and other[1].islower()}
        following |= levels if words[0] == 'log-level' else set()
        assert complete(sluice, 'sluice', 'ctl', words[0], '') == following, words
        name = ' '.join(word for word in words if word.islower())
        assert re.search(rf'^\.BR? "?{name}\b', page, re.M), f'sluice(1) lacks ctl {name}'


def check_words(sluice):
    assert complete(sluice, 'sluice', '') == COMMANDS
    assert complete(sluice, 'sluice', 'se') == {'serve'}
    assert complete(sluice, 'sluice', '-s', 're') == {'reopen', 'reload'}
    refused = subprocess.run([sluice, '-s', 'nosuch'], check=False, capture_output=True, text=True).stderr
    signals = set(re.findall(r'\w+', refused.split('it takes ')[1].split('(')[0])) - {'or'}
    for shell, text in (('zsh', r':signal:\((.*?)\)'), ('fish', r"-s s -x -a '(.*?)'")):
        path = FOLDER / ('_sluice' if shell == 'zsh' else 'sluice.fish')
        assert set(re.search(text, path.read_text(encoding='utf-8'))[1].split()) == signals, shell
    assert complete(sluice, 'sluice', '-s', '') == signals and 'upgrade' in signals
    assert complete(sluice, 'sluice', 'lint', '--format', '') == {'text', 'gcc', 'json', 'sarif'}
    assert complete(sluice, 'sluice', 'help', 'proxy_pass_r') == {'proxy_pass_request_body', 'proxy_pass_request_headers'}
    assert complete(sluice, 'sluice', 'help', '') > {'root', 'location', 'combined', 'listen'}
    assert complete(sluice, 'sluice', 'serve', '--au') == {'--autoindex'}
    assert complete(sluice, 'sluice', '-c', '') == set(), 'names of files'
    for name in complete(sluice, 'sluice', 'help', ''):
        subprocess.run([sluice, 'help', name], check=True, stdout=subprocess.DEVNULL)


def check_syntax():
    for shell, option, name in (('bash', '-n', 'sluice.bash'), ('zsh', '-n', '_sluice'), ('fish', '--no-execute', 'sluice.fish')):
        if shutil.which(shell):
            subprocess.run([shell, option, FOLDER / name], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sluice', metavar='SLUICE', help='the server binary')
    check_syntax()
    with tempfile.TemporaryDirectory() as folder:
        sluice = wrapped.runnable(parser.parse_args().sluice, folder)
        check_options(sluice)
        check_words(sluice)
        check_ctl_words(sluice)


if __name__ == '__main__':
    main()
