"""The directories of a cache and of temporary files: created by the master, written by the workers."""
import os
import re
import signal
import subprocess
import threading

import pytest
from cache_site import HIT, MISS, cached_site, fetch, stored, upstream  # pylint: disable=unused-import
from kit import server as server_kit
from kit.lifetime import wait_for


def folders_site(folder, upstream, port):
    """A server whose cache and temporary directories are all below `folder`."""
    location = {'/': {'proxy_pass': f'http://127.0.0.1:{upstream.port}', 'proxy_cache': 'one', 'proxy_temp_path': f'{folder}/answers',
                      'client_body_temp_path': f'{folder}/requests/', 'fastcgi_temp_path': f'{folder}/fastcgi'}}
    return [{'listen': f'127.0.0.1:{port}', 'location': location}], {'proxy_cache_path': {'path': f'{folder}/cache', 'keys_zone': 'one:1m'}}


@pytest.fixture
def start_folders(base, upstream, sluice_copy):
    """start_folders(folder, user) -> a running server; `user`, "nobody" or "root", is the user that starts it."""
    running = []

    def start(folder, user, wait=True):
        port = server_kit.free_port()
        servers, http = folders_site(folder, upstream, port)
        log_folder = folder.parent / (folder.name + '-log')
        made = server_kit.Server(log_folder, servers, http=http)
        os.chmod(log_folder, 0o777)
        os.chmod(made.config_path, 0o644)
        if user == 'nobody':
            made.command_prefix = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'sh', '-c', 'exec "$0" "$2" "$3"', sluice_copy]
        running.append(made)
        if wait:
            made.start([port])
            wait_for(lambda: ' runs, ' in made.errors(), 'the worker is ready')
        return made
    yield start
    for made in running:
        made.stop(check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can start servers as another user')
@pytest.mark.parametrize('user', ['root', 'nobody'])
def test_directories_are_created_for_the_workers(new_directory, start_folders, user):
    folder = new_directory()
    os.chmod(folder, 0o777)
    made = start_folders(folder, user)
    for name in ('answers', 'requests', 'fastcgi', 'cache'):
        found = os.stat(folder / name)
        assert (found.st_uid, found.st_mode & 0o777) == (65534, 0o700), name
    assert '[error]' not in made.errors() and '[crit]' not in made.errors()


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can start servers as another user')
@pytest.mark.parametrize('user', ['root', 'nobody'])
def test_unwritable_directory_is_logged_once(new_directory, start_folders, user):
    folder = new_directory()
    for name in ('answers', 'requests', 'fastcgi', 'cache'):
        (folder / name).mkdir(mode=0o755)
    made = start_folders(folder, user)
    for name in ('answers', 'requests', 'fastcgi', 'cache'):
        lines = [line for line in made.errors().splitlines() if f'{folder}/{name}' in line]
        assert len(lines) == 1 and '[error]' in lines[0] and 'Permission denied' in lines[0], made.errors()


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can start servers as another user')
def test_uncreatable_directory_is_a_start_error(new_directory, start_folders):
    folder = new_directory() / 'missing'
    made = start_folders(folder, 'root', wait=False)
    answer = subprocess.run([server_kit.SLUICE, '-c', made.config_path], capture_output=True, text=True, check=False)
    assert answer.returncode == 1 and f'"{folder}/answers" cannot be created (2: No such file or directory)' in answer.stderr + made.errors()


def test_reload_with_other_levels_deletes_the_stored_files(launch, new_directory, upstream, loop):
    served, folder = cached_site(launch, loop, 'plain', new_directory, upstream, levels='1:2')
    server = served.server
    go = threading.Event()

    def stored_files():
        return {str(path.relative_to(folder)) for path in folder.rglob('*') if path.is_file()}

    def late(peer):
        assert go.wait(60 * server_kit.PATIENCE)
        return upstream.send_response(peer, 'Cache-Control: max-age=60', b'late')
    upstream.answers['/levels'], upstream.answers['/late'] = 'Cache-Control: max-age=60', late
    client, draining = served.connect(promoted=False), served.connect(promoted=False)
    try:
        fetch(client, '/levels')
        stored(client, '/levels')
        client.close()
        name, = stored_files()
        assert re.fullmatch('[0-9a-f]/[0-9a-f]{2}/[0-9a-f]{32}[.][0-9a-f]{16}', name)
        # The old worker stores a response after the first scan of the new one.
        draining.send('GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n')
        wait_for(lambda: upstream.requests_of('/late'), 'the request to the upstream server')
        old, before = set(server.workers()), server.errors().count(server_kit.RUNS)
        server.tree['http']['proxy_cache_path']['levels'] = '2'
        server.write_configuration()
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.errors().count(server_kit.RUNS) > before, 'the new worker runs')
        wait_for(lambda: not stored_files(), 'the stored file is deleted')
        go.set()
        assert draining.read('GET').body == b'late'
        draining.close()
        wait_for(lambda: not old & set(server.workers()), 'the end of the old worker')
        client = served.connect(promoted=False)
        assert fetch(client, '/levels').headers['x-cache'] == MISS
        stored(client, '/levels')
        assert fetch(client, '/levels').headers['x-cache'] == HIT
        client.close()
        wait_for(lambda: len(stored_files()) == 1 and re.fullmatch('[0-9a-f]{2}/[0-9a-f.]{49}', *stored_files()),
                 'only the new file is left', 20)
    finally:
        go.set()
