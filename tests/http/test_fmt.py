"""`sluice fmt`: for every configuration of this repository, formatting is idempotent, keeps the meaning, and keeps the comments."""
import os
import pathlib
import stat
import subprocess

import pytest
import yaml
from kit import server as server_kit

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESSY = '# top\nhttp:\n    server:\n    -   listen:   [ 8080,8443 ssl ]   # where\n        root: www\n\n\n    # end\n'
NEAT = '# top\nhttp:\n  server:\n    - listen: [8080, 8443 ssl]        # where\n      root: www\n\n  # end\n'
CONFIGURATIONS = sorted([*ROOT.glob('conf/**/*.yaml'), *ROOT.glob('tests/**/*.yaml'), *ROOT.glob('bench/**/*.yaml')])
CASES = (ROOT / 'tests/unit/conf/broken.cases').read_text(errors='replace').split('=== ')[1:]


def fmt(*arguments, text=None, cwd=None):
    return subprocess.run([server_kit.SLUICE, 'fmt', *map(str, arguments)], input=text, capture_output=True, check=False, cwd=cwd,
                          timeout=60 * server_kit.PATIENCE, encoding='utf-8', stdin=subprocess.DEVNULL if text is None else None)


def events(text):
    def properties(event):
        return (type(event), *[getattr(event, name, None) for name in ('anchor', 'tag', 'value', 'implicit', 'style', 'flow_style')])
    return [properties(event) for event in yaml.parse(text, Loader=yaml.SafeLoader)]


def check_properties(before, after):
    """Properties of the formatted text; PyYAML parses both texts independently."""
    assert events(before) == events(after)
    assert before.count('#') == after.count('#')
    assert [line.strip() for line in before.splitlines() if line.strip().startswith('#')] == \
           [line.strip() for line in after.splitlines() if line.strip().startswith('#')]
    assert '\n\n\n' not in after and not any(line.endswith(' ') for line in after.splitlines())
    again = fmt('-', text=after)
    assert again.returncode == 0 and again.stdout == after


@pytest.mark.parametrize('path', CONFIGURATIONS, ids=[str(path.relative_to(ROOT)) for path in CONFIGURATIONS])
def test_every_configuration_keeps_its_meaning(path):
    done = fmt(path)
    assert done.returncode == 0, done.stderr
    check_properties(path.read_text(), done.stdout)


def test_invalid_configurations_are_formatted_or_rejected():
    laid_out = 0
    for case in CASES:
        text = case.split('\n', 1)[1].split('~~~\n')[0]
        done = fmt('-', text=text)
        if done.returncode == 0:
            laid_out += 1
            check_properties(text, done.stdout)
        else:
            assert done.stdout == '' and ': error: ' in done.stderr, case
    assert laid_out > 60


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'sluice.yaml'
    path.write_text(MESSY)
    return path


def test_formatted_text_is_printed(path):
    done = fmt(path)
    assert (done.returncode, done.stdout, done.stderr) == (0, NEAT, '')
    assert path.read_text() == MESSY
    assert fmt('-', text=MESSY).stdout == NEAT


def test_option_check_lists_unformatted_files(path):
    done = fmt('--check', path)
    assert (done.returncode, done.stdout) == (1, f'{path}\n') and path.read_text() == MESSY
    path.write_text(NEAT)
    assert (fmt('--check', path).returncode, fmt('--check', path).stdout) == (0, '')


@pytest.mark.parametrize('option', ['--diff', '-d'])
def test_option_diff_prints_changes(path, option):
    done = fmt(option, path)
    head, rest = done.stdout.split('@@', 1)
    assert (done.returncode, done.stderr, head) == (1, '', f'--- {path}.orig\n+++ {path}\n')
    assert rest == (' -1,8 +1,7 @@\n # top\n http:\n-    server:\n-    -   listen:   [ 8080,8443 ssl ]   # where\n-        root: www\n'
                    '+  server:\n+    - listen: [8080, 8443 ssl]        # where\n+      root: www\n \n-\n-    # end\n+  # end\n')
    assert path.read_text() == MESSY
    assert fmt(option, '-', text=MESSY).returncode == 1
    path.write_text(NEAT)
    done = fmt(option, path)
    assert (done.returncode, done.stdout) == (0, '')


def test_option_diff_of_several_files(path):
    broken, other = path.with_name('broken.yaml'), path.with_name('other.yaml')
    broken.write_text('a: [1\n')
    other.write_text(MESSY)
    done = fmt('--diff', path, broken, other)
    assert done.returncode == 1 and 'is never closed' in done.stderr
    assert f'+++ {path}\n' in done.stdout and f'+++ {other}\n' in done.stdout and str(broken) not in done.stdout


def test_option_diff_without_a_final_newline(path):
    path.write_text('a:   1')
    done = fmt('--diff', path)
    assert (done.returncode, done.stderr) == (1, '')
    assert done.stdout == f'--- {path}.orig\n+++ {path}\n@@ -1 +1 @@\n-a:   1\n\\ No newline at end of file\n+a: 1\n'


def test_option_diff_requires_the_diff_program(path):
    done = subprocess.run([server_kit.SLUICE, 'fmt', '--diff', path], capture_output=True, check=False, timeout=60, encoding='utf-8',
                          env={'PATH': str(path.parent)})
    assert (done.returncode, done.stdout) == (1, '') and 'diff, which is not installed' in done.stderr


def test_option_diff_of_a_long_file():
    text = 'a:\n' + '    b:   [1,2]   # c\n\n\n' * 50000
    done = fmt('--diff', '-', text=text.replace('b:', 'b%d:') % tuple(range(50000)))
    assert done.returncode == 1 and done.stdout.count('\n-    b') == done.stdout.count('\n+  b') == 50000


def test_option_w_replaces_the_file(path):
    path.chmod(0o640)
    link = path.with_name('link.yaml')
    link.symlink_to('sluice.yaml')
    done = fmt('-w', link)
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')
    assert path.read_text() == NEAT and link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(path.parent)) == ['link.yaml', 'sluice.yaml']
    before = path.stat()
    assert fmt('-w', path).returncode == 0
    assert path.stat().st_ino == before.st_ino, 'what is laid out already is not written'


@pytest.mark.skipif(os.geteuid() != 0, reason='only root may give files away')
def test_owner_is_preserved(path):
    os.chown(path, 4242, 4343)
    assert fmt('-w', path).returncode == 0
    assert (path.stat().st_uid, path.stat().st_gid) == (4242, 4343) and path.read_text() == NEAT


def test_invalid_file_does_not_stop_the_others(path):
    broken = path.with_name('broken.yaml')
    broken.write_text('a: [1\n')
    other = path.with_name('other.yaml')
    other.write_text(MESSY)
    done = fmt('-w', path, broken, path.with_name('absent.yaml'), other)
    assert done.returncode == 1
    assert f'{broken}:1:4: error: this \'[\' is never closed' in done.stderr
    assert f'cannot read {path.with_name("absent.yaml")}: No such file or directory' in done.stderr
    assert broken.read_text() == 'a: [1\n'
    assert path.read_text() == NEAT and other.read_text() == NEAT


@pytest.mark.skipif(os.geteuid() == 0, reason='root writes everywhere')
def test_unwritable_directory_is_reported(path):
    path.parent.chmod(0o555)
    try:
        done = fmt('-w', path)
    finally:
        path.parent.chmod(0o755)
    assert done.returncode == 1 and 'cannot write' in done.stderr and path.read_text() == MESSY


def test_empty_file_is_formatted(path):
    path.write_text('')
    assert (fmt(path).returncode, fmt(path).stdout, fmt('--check', path).returncode) == (0, '', 0)


def test_formatting_time_of_a_long_line_is_linear():
    text = 'a: [' + ', '.join(['b'] * 300000) + ']\n'
    done = fmt('-', text=text.replace(', ', ','))
    assert done.returncode == 0 and done.stdout == text


def test_environment_variables_are_not_substituted():
    text = 'http: {server: {listen: "${SURELY_UNSET:?no}"}}\n'
    assert fmt('-', text=text).stdout == text


@pytest.mark.parametrize('arguments, output', [
    ([], 'fmt requires a file'), (['-w', '-'], 'takes files'), (['-x', 'a'], 'invalid option of fmt: "-x"'),
    (['-w', '--check', 'a'], 'one of'), (['a', '-w'], 'precede its files'), ([''], 'empty name')])
def test_invalid_arguments(arguments, output):
    done = fmt(*arguments)
    assert done.returncode == 1 and output in done.stderr
