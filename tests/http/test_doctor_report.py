"""`sluice doctor --report`: the text, the file, the benchmark, its processes, and private words."""
import json
import os
import pathlib
import re
import signal
import stat
import subprocess

import pytest

from kit import server as server_kit
from kit.lifetime import alive, kill_each, wait_for

SLUICE = server_kit.SLUICE
SECTIONS = ['Versions', 'Processor', 'Limits', 'Kernel TLS', 'Encryption in user space', 'Network devices', 'Descriptors and buffers', 'Other checks',
            'Benchmark']
FIGURE = r'\d+(?:\.\d+)? \(\d+(?:\.\d+)? to \d+(?:\.\d+)?\)'


def run(*arguments, before=(), **options):
    return subprocess.run([*before, SLUICE, 'doctor', *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=120 * server_kit.PATIENCE, **options)


def findings():
    return json.loads(run('--json').stdout)


@pytest.fixture(scope='module')
def report():
    """A report with a short benchmark."""
    ran = run('--report', '--seconds', '4')
    assert ran.returncode == 0, ran.stderr
    assert 'benchmark: round 1 of ' in ran.stderr and 'benchmark: round' not in ran.stdout
    return ran.stdout


def test_report_has_each_section(report):
    assert re.findall(r'^## (.*)$', report, re.M) == SECTIONS
    for label in ('sluice', 'OpenSSL', 'libraries at build time', 'compiler', 'build options', 'kernel', 'C library', 'distribution', 'model', 'cores',
                  'features', 'memory'):
        assert re.search(rf'^\| {label} \| \S.* \|$', report, re.M), label
    assert f'| kernel | Linux {os.uname().release} |' in report


def test_report_has_each_check(report):
    """The same findings as `doctor --json`, apart from figures and names of devices."""
    devices = [name for name in os.listdir('/sys/class/net') if name != 'lo']
    for finding in findings()['findings']:
        mark = {'good': 'ok', 'note': 'note', 'fault': '**no**'}[finding['verdict']]
        if finding['name'] in ('aead', 'cost', 'loop'):  # figures; locked memory of other processes
            start = finding['text'].split(':')[0]
        elif finding['name'] == 'device':
            start = re.sub('|'.join(map(re.escape, sorted(devices, key=len, reverse=True))) or '^$', '[device ', finding['text'], count=1)[:8]
        else:
            start = finding['text'].replace('|', '\\|').replace('<', '&lt;')
        assert f'- {mark}: {start}' in report or finding['name'] == 'loop' and f': {start}' in report, finding


def test_benchmark_measures_each_path(report):
    rows = dict(re.findall(r'^\| (plain HTTP|TLS in user space|kernel TLS) \|(.*)\|$', report, re.M))
    for name in ('plain HTTP', 'TLS in user space'):
        assert re.fullmatch(rf'(?: {FIGURE} \|){{3}} {FIGURE} ', rows[name]), rows
        assert all(float(figure) > 0 for figure in re.findall(r'[\d.]+', rows[name])[:3]), rows
    kernel = findings()['ktls']
    assert re.fullmatch(rf' {FIGURE} \| {FIGURE} \| - \| - ' if kernel else r' - \| - \| - \| - ', rows['kernel TLS']), rows
    row = re.search(r'^    (\|.*\|)$', report, re.M)[1].split('|')[1:-1]
    assert len(row) == 7 and row[1].strip() == os.uname().release and re.fullmatch(r' \d{4}-\d\d-\d\d ', row[6]), row
    for cell, name in zip(row[3:6], ('plain HTTP', 'TLS in user space', 'kernel TLS')):
        assert cell.strip() == rows[name].split()[0]
    assert 'Incomplete' not in report


def test_table_of_bench_has_the_columns_of_the_row(report):
    page = (pathlib.Path(__file__).parents[2] / 'bench/README.md').read_text(encoding='utf-8')
    table = page.partition('\n## Reports of `sluice doctor`\n')[2].partition('\n## ')[0]
    rows = [line for line in table.splitlines() if line.startswith('|')]
    assert len(rows) >= 2 and {line.count('|') for line in rows} == {re.search(r'^    (\|.*\|)$', report, re.M)[1].count('|')}


def test_report_has_no_private_words(report):
    private = {os.uname().nodename, os.uname().nodename.split('.')[0], os.environ.get('USER', ''), os.path.expanduser('~')} - {'', 'root', '/root', 'localhost'}
    for word in private | set(os.listdir('/sys/class/net')) - {'lo', 'bonding_masters'}:
        assert not re.search(rf'(?<!\w){re.escape(word)}(?!\w)', report), word
    assert set(re.findall(r'\b\d{1,3}(?:\.\d{1,3}){3}\b', report)) <= {'127.0.0.1'}
    assert not re.search(r'/home/|/root\b|BEGIN|localhost', report) and os.path.dirname(SLUICE) not in report


def test_private_words_are_replaced():
    """Host, user and home have names that the report contains elsewhere."""
    with open('/etc/os-release', encoding='utf-8') as stream:
        name = re.search(r'^PRETTY_NAME="(.*)"$', stream.read(), re.M)[1]
    words = list(dict.fromkeys(word for word in re.findall(r'[A-Za-z]{3,}', name)))
    if len(words) < 3:
        pytest.skip(f'the name of the distribution has fewer than three words: {name}')
    host, user, home = words[:3]
    before = ['unshare', '-U', '-r', '-u', 'sh', '-c', f'hostname {host} && exec "$@"', 'sh']
    if subprocess.run([*before, 'true'], capture_output=True, check=False).returncode != 0:
        pytest.skip('no user namespaces here')
    ran = run('--report', '--no-benchmark', before=before, env={**os.environ, 'SUDO_USER': user, 'HOME': home})
    expected = name.replace(host, '[host]').replace(user, '[user]').replace(home, '[home]')
    assert ran.returncode == 0 and f'| distribution | {expected} |' in ran.stdout, ran.stdout
    for word in (host, user, home):
        assert not re.search(rf'(?<![A-Za-z0-9]){word}(?![A-Za-z0-9])', ran.stdout), word


def test_file_is_private_and_never_replaced(tmp_path):
    path = tmp_path / 'report.md'
    ran = run('--report', path, '--no-benchmark')
    assert ran.returncode == 0 and ran.stdout == '' and f'The report is in {path}' in ran.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text(encoding='utf-8')
    assert re.findall(r'^## (.*)$', text, re.M) == SECTIONS[:-1]
    again = run('--report', path, '--no-benchmark')
    assert again.returncode == 1 and 'never replaces a file' in again.stderr and path.read_text(encoding='utf-8') == text
    (tmp_path / 'link').symlink_to(tmp_path / 'target')
    assert run('--report', tmp_path / 'link', '--no-benchmark').returncode == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ['link', 'report.md']


def test_file_that_cannot_be_written(tmp_path):
    ran = run('--report', tmp_path / 'none/report.md')
    assert ran.returncode == 1 and 'cannot be written to' in ran.stderr and 'benchmark' not in ran.stderr
    with open('/dev/full', 'w', encoding='ascii') as full:
        ran = subprocess.run([SLUICE, 'doctor', '--report', '-', '--no-benchmark'], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert ran.returncode == 1 and 'the report cannot be written (28: No space left on device)' in ran.stderr
    full = ['unshare', '-U', '-r', '-m', 'sh', '-c', f'mount -t tmpfs -o size=4k none {tmp_path} && echo > {tmp_path}/page && "$@"; code=$?; ls {tmp_path}; exit $code', 'sh']
    if subprocess.run([*full, 'true'], capture_output=True, check=False).returncode == 0:
        ran = run('--report', tmp_path / 'report.md', '--no-benchmark', before=full)
        assert ran.returncode == 1 and ran.stdout == 'page\n' and 'No space left' in ran.stderr


def children(pid):
    """The pids of all descendants."""
    found = []
    for one in [pid, *found]:
        for path in pathlib.Path(f'/proc/{one}/task').glob('*/children'):
            own = [int(child) for child in path.read_text(encoding='ascii').split()]
            found += own + [inner for child in own for inner in children(child)]
    return found


@pytest.fixture
def measuring(tmp_path):
    """A benchmark with its processes: the server's master and its worker."""
    path = tmp_path / 'report.md'
    # Ignored if nohup, or a shell in the background, started the tests.
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGINT)}
    with subprocess.Popen([SLUICE, 'doctor', '--report', path, '--seconds', '120'], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        for number, handler in before.items():
            signal.signal(number, handler)
        lines = iter(process.stderr.readline, '')
        assert any(line.startswith('benchmark: round 1 ') for line in lines)
        wait_for(lambda: len(children(process.pid)) == 2, 'master and worker')
        yield process, children(process.pid), path
        process.kill()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_signal_leaves_nothing(measuring, number):
    """The processes end in every case, also when the command is killed; no file exists."""
    process, started, path = measuring
    process.send_signal(number)
    assert process.wait(30 * server_kit.PATIENCE) == -number
    wait_for(lambda: not any(alive(pid) for pid in started), 'the end of the server')
    if number != signal.SIGKILL:
        assert 'no report was written' in process.stderr.read()
    assert not path.exists()


def test_worker_that_dies(measuring):
    """The report has the reason, and the findings."""
    process, started, path = measuring
    kill_each(started)
    assert process.wait(60 * server_kit.PATIENCE) == 0
    assert 'Incomplete: ' in path.read_text(encoding='utf-8')


def test_running_server_is_not_disturbed(tmp_path, report):
    """The server of the benchmark writes no pid file, and ignores sockets and notifications of a service manager."""
    ran = run('--report', '--seconds', '1', env={**os.environ, 'NOTIFY_SOCKET': str(tmp_path / 'none'), 'LISTEN_FDS': '1', 'LISTEN_PID': '1'})
    assert ran.returncode == 0 and 'Incomplete' not in ran.stdout and '[emerg]' not in ran.stderr, ran.stderr


@pytest.mark.parametrize('arguments, words', [
    (['--report', '--seconds', '0'], 'a number from 1 to 120'), (['--report', '-c', 'x.yaml'], 'excludes "-c"'),
    (['--no-benchmark'], 'requires "--report"'), (['--report', '--json'], 'excludes "--json"')])
def test_invalid_options(arguments, words):
    ran = run(*arguments)
    assert ran.returncode == 1 and words in ran.stderr and ran.stdout == ''
