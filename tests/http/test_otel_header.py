"""`header` of otel_exporter: fields of the requests to the collector, and secrets that no message shows."""
import signal
import subprocess

import pytest

from kit import server as server_kit
from kit.lifetime import alive, wait_for
from kit.otel_site import site_starter
from test_otel_export import collector  # pylint: disable=unused-import

SECRET = 'kept-2718281828'


@pytest.fixture
def start(tmp_path, collector, loop):
    with site_starter(tmp_path) as starter:
        yield lambda header, **options: starter(collector.port, server_kit.free_port(), exporter={'header': header}, loop=loop, **options)


def fields_of_a_request(site, collector):
    site.fetch('/local/x')
    wait_for(lambda: collector.spans, 'a span')
    return collector.requests[0][1]


def test_fields_are_sent_as_they_are(start, collector, tmp_path):
    (tmp_path / 'token').write_text(f'Bearer {SECRET}\n')
    site = start([{'X-Scope-OrgID': 'Team $1: "a"', 'x-number': 7, 'X-Padded': '  in\t between '},
                  {'Authorization': {'file': tmp_path / 'token'}}, {'x-number': '8'}])
    fields = fields_of_a_request(site, collector)
    assert fields.items() == [
        ('Host', f'127.0.0.1:{collector.port}'), ('User-Agent', fields['User-Agent']), ('Content-Type', 'application/x-protobuf'),
        ('Content-Length', fields['Content-Length']), ('X-Scope-OrgID', 'Team $1: "a"'), ('x-number', '7'), ('X-Padded', 'in\t between'),
        ('Authorization', f'Bearer {SECRET}'), ('x-number', '8')]


def test_value_of_the_environment(start, collector):
    site = start({'authorization': 'Bearer ${TOKEN}'}, environment={'TOKEN': SECRET})
    assert fields_of_a_request(site, collector)['Authorization'] == f'Bearer {SECRET}'


def test_file_is_read_again_by_a_reload(start, collector, tmp_path):
    token = tmp_path / 'token'
    token.write_text('first\r\n')
    site = start({'authorization': {'file': token}})
    assert fields_of_a_request(site, collector)['Authorization'] == 'first'
    first = site.exporter()
    token.write_text('second')
    site.server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: not alive(first), 'the end of the first exporter')
    site.fetch('/local/y')
    wait_for(lambda: len(collector.spans) == 2, 'another span')
    assert collector.requests[-1][1]['Authorization'] == 'second'


def test_many_fields_fit(start, collector):
    site = start({f'x-field-{number}': 'v' * 1000 for number in range(16)})
    fields = fields_of_a_request(site, collector)
    assert [fields[f'x-field-{number}'] for number in range(16)] == ['v' * 1000] * 16


def test_failures_do_not_show_the_value(start, collector):
    collector.statuses = [401]
    site = start({'authorization': SECRET})
    site.fetch('/local/x')
    wait_for(lambda: 'the collector responded with status 401' in site.server.errors(), 'a line in the log')
    assert SECRET not in site.server.errors() and SECRET not in site.server.output()


def reported(folder, header):
    """The complete output of `sluice -t`, which rejects the configuration."""
    made = server_kit.Server(folder, [{'listen': '127.0.0.1:1', 'return': '200 ok'}],
                             http={'otel_exporter': {'endpoint': 'http://localhost', 'header': header}})
    done = subprocess.run([server_kit.SLUICE, '-t', '-c', made.config_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and ': error: ' in done.stderr, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize('name', ['Host', 'content-length', 'CONTENT-TYPE', 'Content-Encoding', 'Transfer-Encoding', 'Connection', 'Keep-Alive',
                                  'Proxy-Connection', 'TE', 'Trailer', 'Upgrade', 'Expect', 'User-Agent'])
def test_fields_of_the_server_are_rejected(tmp_path, name):
    assert f'header cannot set {name}' in reported(tmp_path, {name: SECRET})


@pytest.mark.parametrize('name', ['a b', 'a:', '', 'a\r\nb', 'é', '(a)'])
def test_invalid_names_are_rejected(tmp_path, name):
    output = reported(tmp_path, {name: SECRET})
    assert 'is not a header field name' in output and SECRET not in output


@pytest.mark.parametrize('header, message', [
    ({'authorization': f'{SECRET}\r\nX-Other: 1'}, 'header authorization: the value has a line break or another control byte'),
    ({'authorization': f'{SECRET}\0'}, 'header authorization: the value has a line break or another control byte'),
    ({'authorization': [SECRET]}, "'header' takes a text, not a list"),
    (f'authorization {SECRET}', "'header' takes a mapping from names to values"),
    ([f'authorization {SECRET}'], "'header' takes a mapping from names to values"),
    ({'authorization': SECRET, 'x': ''}, 'header x: the value is empty'),
    ({'authorization': SECRET * 1200}, 'header: all fields together have more than 16384 bytes'),
])
def test_messages_about_values_do_not_show_them(tmp_path, header, message):
    output = reported(tmp_path, header)
    assert message in output and SECRET not in output


@pytest.mark.parametrize('content, message', [
    (None, 'cannot be read (2: No such file or directory)'), (f'{SECRET}\n\n', 'the value has a line break'), ('\n', 'the value is empty'),
    (f'{SECRET}\0', 'another control byte'), (SECRET * 1200, 'all fields together have more than 16384 bytes')])
def test_invalid_files_are_rejected(tmp_path, content, message):
    if content is not None:
        (tmp_path / 'token').write_text(content)
    output = reported(tmp_path, {'authorization': {'file': tmp_path / 'token'}})
    assert message in output and SECRET not in output


def test_error_on_the_line_of_a_value_does_not_show_it(tmp_path):
    path = tmp_path / 'sluice.yaml'
    path.write_text(f'http:\n  server: {{listen: 1, return: 200}}\n  otel_exporter: {{endpoint: "ftp://a", intervall: 1, header: {{x: {SECRET}}}}}\n')
    done = subprocess.run([server_kit.SLUICE, '-t', '-c', str(path)], capture_output=True, text=True, check=False)
    assert "'otel_exporter' has no key 'intervall'" in done.stderr and 'the line has a secret' in done.stderr
    assert done.returncode == 1 and SECRET not in done.stderr and SECRET not in done.stdout
    done = subprocess.run([server_kit.SLUICE, 'lint', str(path)], capture_output=True, text=True, check=False)
    assert 'intervall' in done.stdout + done.stderr and SECRET not in done.stderr and SECRET not in done.stdout


@pytest.mark.parametrize('inner, message', [({}, 'the mapping has no file'), ({'path': '/x'}, "has no key 'path'")])
def test_mapping_without_a_file_is_rejected(tmp_path, inner, message):
    path = tmp_path / 'sluice.yaml'
    text = '{}' if not inner else '{path: /x}'
    path.write_text(f'http: {{server: {{listen: 1, return: 200}}, otel_exporter: {{endpoint: "http://a", header: {{x: {text}}}}}}}\n')
    done = subprocess.run([server_kit.SLUICE, '-t', '-c', str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and message in done.stderr, done.stderr
