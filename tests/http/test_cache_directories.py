"""The directories of a cache and of temporary files: created by the master, written by the workers."""
import os
import subprocess

import pytest
from cache_site import upstream  # pylint: disable=unused-import
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
