"""Configurations that the server and its modules reject: each case of rejected_config.cases has a file and the complete output of `sluice -t`.

`test_rejected_config.py --rewrite` prints the cases with the present output; review it before you store it. In a case, "+++ NAME" begins
another file.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CASES = pathlib.Path(__file__).with_name('rejected_config.cases')
SLUICE = os.environ.get('SLUICE', os.path.join(os.path.dirname(__file__), '../../build/sluice'))


def cases():
    """(name, source, expected output) of each case."""
    for case in CASES.read_text(encoding='utf-8').split('=== ')[1:]:
        head, _, text = case.partition('~~~\n')
        name, _, source = head.partition('\n')
        yield name, source, text


def diagnose(folder, source):
    """Returns (exit status, output) with the path of the directory replaced."""
    main, *others = re.split(r'^\+\+\+ (\S+)\n', source, flags=re.M)
    for name, text in [('t.yaml', main), *zip(others[::2], others[1::2])]:
        pathlib.Path(folder, name).write_text(text, encoding='utf-8')
    done = subprocess.run([SLUICE, '-t', '-c', 't.yaml'], capture_output=True, text=True, check=False, cwd=folder,
                          stdin=subprocess.DEVNULL, timeout=120)
    message = ''.join(line for line in done.stderr.splitlines(True) if not line.startswith('sluice: '))
    # The reasons that OpenSSL reports differ among its versions.
    message = re.sub(r'((?:key|number \d+) in "[^"]*" cannot be read: ).*', r'\1(the reason given by OpenSSL)', message)
    return done.returncode, message.replace(os.path.realpath(folder), '/folder')


def pytest_generate_tests(metafunc):
    if 'source' in metafunc.fixturenames:
        rows = list(cases())
        metafunc.parametrize('source, output', [row[1:] for row in rows], ids=[row[0] for row in rows])


def test_each_case_has_its_diagnostics(tmp_path, source, output):
    status, found = diagnose(tmp_path, source)
    assert found == output
    assert status == (1 if ': error: ' in output else 0)


def test_cases_are_unique_and_at_least_60():
    names = [name for name, _, _ in cases()]
    assert len(names) >= 60 and len(set(names)) == len(names)


def rewrite():
    for name, source, _ in cases():
        with tempfile.TemporaryDirectory() as folder:
            print(f'=== {name}\n{source}~~~\n{diagnose(folder, source)[1]}', end='')


if __name__ == '__main__':
    sys.exit(rewrite() if sys.argv[1:] == ['--rewrite'] else __doc__)
