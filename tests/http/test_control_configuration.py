"""`sluice ctl configuration files|diff`: whether the files on disk are those that run."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess

import pytest
import yaml
from kit import server as server_kit
from kit.lifetime import wait_for
from test_control import Controlled

SNIPPET = 'return: 200 "loaded\\n"  # Grüße\n'


class Configured(Controlled):
    """A server whose location / comes from conf.d/*.yaml."""

    def begin(self):
        self.snippets = pathlib.Path(self.folder, 'conf.d')
        self.snippets.mkdir()
        self.snippet = self.snippets / 'one.yaml'
        self.snippet.write_text(SNIPPET)
        self.start(workers=2, location={'/': {'include': 'conf.d/*.yaml'}})
        self.main = pathlib.Path(self.server.config_path)

    def diff(self, status, *options):
        ran = self.run('configuration', 'diff', options=options)
        assert ran.returncode == status, ran.stdout + ran.stderr
        return ran

    def states(self, status):
        ran = self.diff(status, '--json')
        return {os.path.relpath(row['path'], self.folder): row['state'] for row in json.loads(ran.stdout)['files']}

    def reject(self):
        """A reload of files that are not valid."""
        text = 'reload failed: the running configuration stays in use'
        failed = self.server.errors().count(text)
        self.server.process.send_signal(signal.SIGHUP)
        self.until(text, failed + 1)


@pytest.fixture(params=server_kit.LOOPS)
def configured(request, tmp_path, certificate, site):
    made = Configured(tmp_path, request.param, certificate, site)
    yield made
    if made.server:
        made.server.stop()


def digest(path):
    return subprocess.run(['sha256sum', path], check=True, capture_output=True, text=True).stdout.split()[0]


def test_files_with_digests(configured):
    configured.begin()
    assert configured.ctl('configuration', 'files') == [
        {'path': str(path), 'bytes': path.stat().st_size, 'sha256': digest(path)} for path in (configured.main, configured.snippet)]
    assert configured.run('configuration', 'files').stdout.splitlines()[0].split() == ['path', 'bytes', 'sha256']
    head = f'GET /v1/configuration/text?sha256={digest(configured.snippet)} HTTP/1.0'
    response = configured.request(head)
    assert '\r\nContent-Type: text/plain; charset=utf-8\r\n' in response and response.split('\r\n\r\n', 1)[1] == SNIPPET
    for query in ('', '?sha256=', '?sha256=' + hashlib.sha256(b'other').hexdigest()):
        assert configured.request(f'GET /v1/configuration/text{query} HTTP/1.0').startswith('HTTP/1.1 404 ')


def test_edit_and_reload(configured):
    configured.begin()
    equal = configured.diff(0)
    assert equal.stdout.splitlines() == ['state      path', f'unchanged  {configured.main}', f'unchanged  {configured.snippet}']
    configured.snippet.write_text(SNIPPET.replace('loaded', 'edited'))
    assert configured.states(1) == {configured.main.name: 'unchanged', 'conf.d/one.yaml': 'changed'}
    lines = configured.diff(1).stdout.splitlines()
    assert f'changed    {configured.snippet}' in lines
    begin = lines.index(f'--- {configured.snippet} (running)')
    assert lines[begin + 1] == f'+++ {configured.snippet}'
    assert lines[begin + 3:] == ['-' + SNIPPET.strip(), '+' + SNIPPET.replace('loaded', 'edited').strip()]
    assert configured.get('/').body == b'loaded\n'
    configured.reload()
    wait_for(lambda: configured.get('/').body == b'edited\n', 'a response of the new workers')
    assert configured.states(0) == {configured.main.name: 'unchanged', 'conf.d/one.yaml': 'unchanged'}
    configured.snippet.write_text('')
    assert '-' + SNIPPET.replace('loaded', 'edited').strip() in configured.diff(1).stdout


def test_new_missing_and_unused_files(configured):
    configured.begin()
    (configured.snippets / 'two.yaml').write_text('add_header: {X-Two: yes}\n')
    (configured.snippets / 'three.txt').write_text('no include reads it\n')
    assert configured.states(1) == {configured.main.name: 'unchanged', 'conf.d/one.yaml': 'unchanged', 'conf.d/two.yaml': 'new'}
    configured.reload()
    assert configured.states(0)['conf.d/two.yaml'] == 'unchanged'
    configured.snippet.unlink()
    assert configured.states(1) == {configured.main.name: 'unchanged', 'conf.d/one.yaml': 'missing', 'conf.d/two.yaml': 'unchanged'}
    configured.server.tree['http']['server'][0]['location'] = {'/': {'return': 204}}
    configured.server.write_configuration()
    assert configured.states(1) == {configured.main.name: 'changed', 'conf.d/one.yaml': 'missing', 'conf.d/two.yaml': 'unused'}
    configured.main.unlink()
    assert configured.states(1) == {configured.main.name: 'missing', 'conf.d/one.yaml': 'missing', 'conf.d/two.yaml': 'unchanged'}


def test_rejected_reload(configured):
    """The files of the configuration that runs stay those to compare with. -c needs only `control` of a file with errors."""
    configured.begin()
    configured.snippet.write_text('retrun: 204\n')
    configured.reject()
    ran = subprocess.run([server_kit.SLUICE, 'ctl', '-c', str(configured.main), 'configuration', 'diff'], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1 and '\n+retrun: 204\n' in ran.stdout and ran.stderr == ''
    configured.main.write_text(yaml.safe_dump(configured.server.tree) + 'broken: [\n')
    configured.reject()
    (configured.snippets / 'two.yaml').write_text('add_header: {X-Two: yes}\n')
    ran = subprocess.run([server_kit.SLUICE, 'ctl', '-c', str(configured.main), 'configuration', 'diff'], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1 and '\n+broken: [\n' in ran.stdout, ran.stderr
    assert 'the files on disk have errors, which sluice -t prints' in ran.stderr
    assert configured.get('/').body == b'loaded\n'


def test_unreadable_files_and_failures(configured):
    configured.begin()
    configured.snippet.unlink()
    os.mkfifo(configured.snippet)
    ran = configured.diff(2)
    assert f'unreadable  {configured.snippet}' in ran.stdout and 'it is not a regular file' in ran.stderr
    configured.snippet.unlink()
    configured.snippet.write_text('return: 204\n')
    without = subprocess.run([server_kit.SLUICE, 'ctl', '-s', configured.socket, 'configuration', 'diff'], capture_output=True, text=True, timeout=60,
                             env={'PATH': '/nonexistent'})
    assert without.returncode == 2 and 'the program diff is not installed' in without.stderr
    configured.server.stop()
    assert 'connect() to unix:' in configured.diff(2).stderr


def test_upgrade(configured):
    """The new master loads the files again."""
    configured.begin()
    configured.snippet.write_text(SNIPPET.replace('loaded', 'edited'))
    assert configured.states(1)['conf.d/one.yaml'] == 'changed'
    with configured.upgraded():
        assert configured.states(0)['conf.d/one.yaml'] == 'unchanged'
        assert configured.ctl('configuration', 'files')[1]['sha256'] == digest(configured.snippet)
