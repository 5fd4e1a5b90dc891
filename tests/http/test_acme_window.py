"""The authority's window for renewal (RFC 9773), with a lego that asks for it and a pebble whose window a test can set. All certificates are
far from two thirds of their lifetime. A removed record of the last answer, and a reload, make the server ask at once."""
import contextlib
import http.server
import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
import urllib.request

import pytest

from kit import go_programs, http1, server as server_kit
from kit.acme import TRUSTED, Site, site_starter, untrusting
from kit.lifetime import wait_for
from kit.programs import program
from kit.wall_clock import WallClock

PEBBLE = 'github.com/letsencrypt/pebble/v2/cmd/pebble@v2.8.0'
YEARS = {'past': (2001, 2002), 'future': (2098, 2099)}
AHEAD = 'window for the renewal of "a.test" has not been reached'


@pytest.fixture(scope='session')
def pebble():
    return os.path.join(go_programs.build('pebble', PEBBLE), 'pebble')


@pytest.fixture
def start_site(tmp_path, pebble):
    """start_site(**settings of Site, authority=settings of Pebble) -> a site with its authority, and a status page."""
    program('pebble-challtestsrv')
    folder = tmp_path / 'bin'
    folder.mkdir()
    tmp_path.chmod(0o755)
    shutil.copy(go_programs.lego(), folder)      # other users may not be able to read the build directory
    with site_starter(tmp_path) as starter:
        yield lambda authority=None, **settings: starter(client='lego', names='a.test', status_port=server_kit.free_port(),
                                                         authority={'executable': pebble, **(authority or {})},
                                                         environment={'PATH': f'{folder}:{os.environ["PATH"]}'}, **settings)


def set_window(site, when):
    start, end = (f'{year}-01-01T00:00:00Z' for year in YEARS[when])
    site.pebble.set_renewal_info(site.peer(), json.dumps({'suggestedWindow': {'start': start, 'end': end}}))


def record_of(site):
    """The file of the last attempt, as numbers and one text; empty while there is none."""
    with contextlib.suppress(FileNotFoundError):
        lines = (site.state / 'certificates/a.test.state').read_text(encoding='ascii').splitlines()
        return {name: value if name == 'error' else int(value) for name, _, value in (line.partition(' ') for line in lines)}
    return {}


def ask_again(site):
    (site.state / 'certificates/a.test.state').unlink()
    site.server.process.send_signal(signal.SIGHUP)


def wait_for_record(site, **values):
    wait_for(lambda: values.items() <= record_of(site).items(), f'no record with {values}')


def reported(site, window):
    """Waits until the status page has the value of `window`. Returns its row of the certificate, and the finding of doctor."""
    def known():
        with contextlib.closing(http1.connect(site.status_port)) as client:     # a reload ends the connections of the old workers
            row = json.loads(client.get('/?format=json').body)['acme'][0]
        return row if row['expires_seconds'] and row['next_attempt_seconds'] and row['window'] == window else None
    row = wait_for(known, f'the status page shows window {window}')
    with contextlib.closing(http1.connect(site.status_port)) as client:
        assert f'sluice_acme_window{{name="a.test"}} {window}\n' in client.get('/').body.decode()
        assert ('window of the authority' if window else 'two thirds of the lifetime') in client.get('/?format=html').body.decode()
    done = subprocess.run([server_kit.SLUICE, 'doctor', '--json', '-c', site.server.config_path], check=False, capture_output=True, text=True)
    return row, next(item for item in json.loads(done.stdout)['findings'] if item['name'] == 'acme')


def revoke(site):
    folder = next((site.state / 'clients').glob('lego-*'))
    subprocess.run([*site.server.command_prefix, go_programs.lego(), '--path', str(folder), '--server', site.pebble.directory, '--email',
                    'admin@example.org', '--domains', 'a.test', 'revoke', '--keep'], check=True, capture_output=True)


@pytest.mark.parametrize('reason', ['window in the past', 'revoked'])
def test_a_reached_window_renews(start_site, reason):
    site = start_site()
    first = site.wait_for_certificate()
    if reason == 'revoked':
        revoke(site)
    else:
        set_window(site, 'past')
    ask_again(site)
    second = site.wait_for_certificate(but=first.serial_number)
    assert second.public_key() != first.public_key(), 'each certificate has a new key'
    assert not list(site.state.rglob('clients/*/certificates/*.key')), 'the client keeps no copy of the key'
    wait_for_record(site, failures=0, window=0)
    assert site.server.errors().count('requesting a certificate') == 1, 'the second one was not due by its lifetime'
    # The window of the new certificate is ahead.
    ask_again(site)
    site.wait_for_log(AHEAD)
    assert site.peer().serial_number == second.serial_number


def test_a_window_ahead_renews_nothing(start_site):
    site = start_site()
    first = site.wait_for_certificate()
    row, finding = reported(site, window=0)
    assert 'two thirds of the lifetime' in finding['text'], 'the client has not asked yet'
    set_window(site, 'future')
    ask_again(site)
    site.wait_for_log(AHEAD)
    wait_for_record(site, failures=0, error='', window=1)
    row, finding = reported(site, window=1)
    assert (row['failures'], row['error']) == (0, '')
    assert 6 * 3600 <= row['next_attempt_seconds'] - record_of(site)['asked'] <= 7.5 * 3600, 'then the client asks again'
    assert finding['verdict'] == 'good' and 'window of the authority' in finding['text']
    assert site.peer().serial_number == first.serial_number
    assert 'no certificate for' not in site.server.errors()
    # A restart does not ask again.
    site.server.stop()
    site.server.start([site.port, site.http_port])
    reported(site, window=1)
    assert site.server.output().count(AHEAD) == 1


@contextlib.contextmanager
def without_renewal_info(pebble, certificate, key):
    """Yields the URL of a directory of the authority without the field renewalInfo."""
    with urllib.request.urlopen(pebble.directory, context=untrusting()) as response:
        directory = json.loads(response.read())
    assert directory.pop('renewalInfo')

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(directory).encode()
            self.send_response(200)
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            """Nothing is logged."""
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f'https://localhost:{server.server_port}/dir'
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize('fault', ['no window', 'malformed answer'])
def test_without_an_answer_the_lifetime_decides(start_site, fault):
    with contextlib.ExitStack() as stack:
        def directory(pebble):
            return pebble.directory if fault == 'malformed answer' else stack.enter_context(
                without_renewal_info(pebble, pebble.certificate, pebble.settings['privateKey']))
        site = start_site(directory=directory)
        first = site.wait_for_certificate()
        if fault == 'malformed answer':
            site.pebble.set_renewal_info(first, '{"suggestedWindow": 1')
        ask_again(site)
        site.wait_for_log('window for the renewal of "a.test" is not known')
        wait_for_record(site, failures=0, error='', window=0)
        row, finding = reported(site, window=0)
        assert row['failures'] == 0
        remaining = first.not_valid_after_utc - first.not_valid_before_utc
        assert row['next_attempt_seconds'] >= first.not_valid_before_utc.timestamp() + remaining.total_seconds() * 2 // 3
        assert finding['verdict'] == 'good' and 'two thirds of the lifetime' in finding['text']
        assert site.peer().serial_number == first.serial_number


def test_a_failed_question_is_reported(start_site):
    site = start_site(retry='60s')
    first = site.wait_for_certificate()
    for accounts in site.state.glob('clients/lego-*/accounts'):
        shutil.rmtree(accounts)
    ask_again(site)
    site.wait_for_log('no certificate for "a.test"')
    wait_for_record(site, failures=1, window=0)
    assert 'is not registered' in record_of(site)['error']
    assert site.peer().serial_number == first.serial_number


@pytest.fixture
def start_second(tmp_path):
    """start_second(site, seconds) -> another server with the state folder of the site, as on a machine whose clock differs by these seconds."""
    with contextlib.ExitStack() as stack:
        def start(site, seconds=0):
            clock = WallClock(tmp_path / 'clock')
            clock.shift(seconds)
            second = Site(tmp_path / 'second', 'a.test', site.pebble.directory, server_kit.free_port(), state=site.state, client='lego',
                          status_port=server_kit.free_port(), mounts=[(site.pebble.certificate, TRUSTED)],
                          variables={'PATH': f'{tmp_path}/bin:{os.environ["PATH"]}', **clock.environment})
            stack.callback(second.server.stop)
            return second
        yield start


def total(sites, text):
    return sum(site.server.output().count(text) for site in sites)


@pytest.mark.parametrize('seconds', [0, -30])
def test_one_of_two_servers_queries_a_window_ahead(start_site, start_second, seconds):
    site = start_site()
    first = site.wait_for_certificate()
    both = [site, start_second(site, seconds)]
    set_window(site, 'future')
    ask_again(site)
    if seconds:
        site.wait_for_log(AHEAD)    # the answer is in the future of the other server
    both[1].server.process.send_signal(signal.SIGHUP)
    for each in both:
        reported(each, window=1)
        assert each.peer().serial_number == first.serial_number
    assert total(both, AHEAD) == 1


def test_one_of_two_servers_renews_in_a_reached_window(start_site, start_second):
    site = start_site()
    first = site.wait_for_certificate()
    both = [site, start_second(site)]
    set_window(site, 'past')
    ask_again(site)
    both[1].server.process.send_signal(signal.SIGHUP)
    second, other = (each.wait_for_certificate(but=first.serial_number, seconds=90) for each in both)
    assert second.serial_number == other.serial_number
    for each in both:
        reported(each, window=0)
    assert total(both, 'has a new certificate') == 2 and total(both, AHEAD) == 0
