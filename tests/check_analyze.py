#!/usr/bin/env python3
"""Checks .ci/analyze: what counts as a finding, the rows that accept findings, and a run of the compiler on a faulty source."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), '.ci/analyze')
FAULTY = """#include <stdlib.h>

static int first(const char *text)
{
    return text ? text[0] : 0;
}

int second(char *text)
{
    free(text);
    return text[0] + first("a");
}
"""
ROW = 'gcc src/faulty.c second analyzer-use-after-free a reason of several words\n'


def load():
    loader = importlib.machinery.SourceFileLoader('analyze', SCRIPT)
    sys.dont_write_bytecode = True
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('analyze', loader))
    loader.exec_module(module)
    return module


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def run(analyze, *arguments):
    """Returns exit status and output of main()."""
    output = io.StringIO()
    sys.argv = ['analyze', *arguments]
    with contextlib.redirect_stdout(output):
        try:
            return analyze.main(), output.getvalue()
        except SystemExit as error:
            return error.code, output.getvalue()


def check_findings(analyze, build):
    """Warnings of both tools are findings, notes are not; a warning in a header, reported for two sources, counts once."""
    tidy = '../src/faulty.c:11:12: error: Use of memory after it is freed [clang-analyzer-unix.Malloc,-warnings-as-errors]'
    header = f'{analyze.TOP}/src/faulty.c:5:3: warning: leak of ‘x’ [CWE-401] [-Wanalyzer-malloc-leak]'
    found = analyze.findings([(build, f'{tidy}\n../src/faulty.c:10:5: note: Memory is released\n{header}\n'), (build, header)])
    assert set(found) == {('src/faulty.c', 'second', 'clang-analyzer-unix.Malloc'),
                          ('src/faulty.c', 'first', 'analyzer-malloc-leak')}, found
    found = analyze.findings([(build, 'cc1: warning: use of uninitialized value [CWE-457] [-Wanalyzer-use-of-uninitialized-value]')])
    assert [key[2] for key in found] == ['analyzer-use-of-uninitialized-value'], 'a warning without a line'


def check_failures(analyze, build):
    """A tool that fails without a finding counts as a finding."""
    for words in (['false', 'a.c'], ['sh', '-c', 'echo "a.c: fatal: no such file" >&2; exit 4', 'a.c']):
        found = analyze.findings([analyze.run((build, words))])
        assert [key[2] for key in found] == ['failed'], found
    assert not analyze.findings([analyze.run((build, ['true', 'a.c']))])


def check_compiler(analyze, build):
    """The fault is found; a row accepts it; a row without a finding is an error; a path without sources is an error."""
    assert run(analyze, 'gcc', build)[0] == 1
    status, output = run(analyze, 'gcc', build)
    assert status == 1 and 'src/faulty.c:11: second():' in output and '1 files, 1 findings' in output, output
    write(analyze.ACCEPTED, f'# comment\n\n{ROW}clang-tidy src/faulty.c second bugprone-x not of this tool\n')
    status, output = run(analyze, 'gcc', build)
    assert status == 0 and '0 findings, 1 accepted' in output, output
    write(analyze.ACCEPTED, ROW + ROW.replace('second', 'first'))
    status, output = run(analyze, 'gcc', build)
    assert status == 1 and 'no finding matches "src/faulty.c first analyzer-use-after-free"' in output, output
    write(analyze.ACCEPTED, 'gcc src/faulty.c second analyzer-use-after-free\n')
    assert 'a row has tool' in str(run(analyze, 'gcc', build)[0]), 'a row without a reason'
    assert 'no source' in str(run(analyze, 'gcc', build, 'absent.c')[0])
    assert 'Static analysis' in str(run(analyze, 'lint', build)[0])


def main():
    analyze = load()
    with tempfile.TemporaryDirectory() as top:
        build = os.path.join(top, 'build')
        analyze.TOP, analyze.ACCEPTED = top, os.path.join(top, '.ci/analyze.accepted')
        write(os.path.join(top, 'src/faulty.c'), FAULTY)
        write(os.path.join(top, 'tests/test_other.c'), 'not analysed\n')
        write(analyze.ACCEPTED, '')
        write(os.path.join(build, 'compile_commands.json'), json.dumps([
            {'directory': build, 'file': f'../{name}',
             'command': f'ccache gcc -O2 -flto=auto -Werror -MD -MQ a.o -MF a.d -o a.o -c ../{name}'}
            for name in ('src/faulty.c', 'src/faulty.c', 'tests/test_other.c')]))
        check_findings(analyze, build)
        check_failures(analyze, build)
        if shutil.which('gcc'):
            check_compiler(analyze, build)


if __name__ == '__main__':
    main()
