"""`sluice help` on a terminal: the pager and the colours; without a terminal, the plain text."""
import os
import pty
import re
import subprocess

import pytest

from kit import server as server_kit

PLAIN = {'TERM': 'xterm', 'SLUICE_PAGER': ''}


def on_terminal(*words, **environment):
    """(exit status, output) with a terminal as standard input and output, and these variables."""
    kept = {name: value for name, value in os.environ.items() if name not in ('SLUICE_PAGER', 'PAGER', 'NO_COLOR', 'TERM', 'LESS')}
    ours, theirs = pty.openpty()
    process = subprocess.Popen([server_kit.SLUICE, 'help', *words], stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
                               start_new_session=True, env={**kept, **environment})
    os.close(theirs)
    output = b''
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:     # EIO: no process has the terminal open
            break
        if not piece:
            break
        output += piece
    os.close(ours)
    return process.wait(20 * server_kit.PATIENCE), output.decode().replace('\r\n', '\n')


def piped(*words):
    ran = subprocess.run([server_kit.SLUICE, 'help', *words], check=True, capture_output=True, text=True,
                         env={**os.environ, 'TERM': 'xterm', 'PAGER': 'false'})
    return ran.stdout


def without_colours(text):
    return re.sub(r'\033\[\d*m', '', text)


@pytest.mark.parametrize('words', [(), ('proxy_pass',), ('$host',)])
def test_colours_on_a_terminal_only(words):
    plain = piped(*words)
    assert '\033' not in plain
    status, text = on_terminal(*words, **PLAIN)
    assert status == 0 and '\033[1m' in text and without_colours(text) == plain
    for environment in ({**PLAIN, 'NO_COLOR': '1'}, {'TERM': 'dumb', 'PAGER': 'false'}, {'PAGER': 'false'}):
        assert on_terminal(*words, **environment) == (0, plain)


@pytest.fixture
def pager(tmp_path):
    """A pager that writes its input to the file `paged`, and its name to the terminal."""
    for name in ('one', 'other'):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "pager {name} $1 $LESS"\nexec cat >{tmp_path}/paged\n')
        path.chmod(0o755)
    return tmp_path


def test_pager(pager):
    status, text = on_terminal('root', TERM='xterm', PAGER=f'{pager}/one -x')
    assert (status, text) == (0, 'pager one -x FRX\n') and without_colours((pager / 'paged').read_text()) == piped('root')
    assert on_terminal('root', TERM='xterm', PAGER=f'{pager}/one', SLUICE_PAGER=f'{pager}/other', LESS='R') == (0, 'pager other  R\n')
    assert on_terminal('root', TERM='xterm', PAGER=f'{pager}/one', NO_COLOR='1')[0] == 0 and (pager / 'paged').read_text() == piped('root')


def test_a_pager_that_reads_nothing_is_no_error():
    """As after the key q in less."""
    assert on_terminal(TERM='xterm', PAGER='exec true') == (0, '')
    assert on_terminal(TERM='xterm', PAGER='head -n 1 >/dev/null') == (0, '')
    assert on_terminal(TERM='xterm', PAGER='exit 3') == (0, '')


def test_a_missing_pager_is_replaced_by_the_text(tmp_path):
    status, text = on_terminal('root', TERM='xterm', PAGER=f'{tmp_path}/nosuch', NO_COLOR='1')
    assert status == 0 and 'not found' in text and text.endswith(piped('root'))
    # A machine without less: nothing is reported.
    assert on_terminal('root', TERM='xterm', NO_COLOR='1', PATH=str(tmp_path)) == (0, piped('root'))


def test_unknown_names_use_no_pager(pager):
    status, text = on_terminal('nosuch', TERM='xterm', PAGER=f'{pager}/one')
    assert status == 1 and text.startswith("no directive is named 'nosuch'") and not (pager / 'paged').exists()
