"""Real input over HTTPS: all of /usr/share/doc and a file of 1 GiB (or SLUICE_REAL_MIB), fetched by curl, all hashes compared."""
import hashlib
import os
import subprocess
import urllib.parse

import pytest
from kit import server as server_kit

DOC = os.environ.get('SLUICE_REAL_INPUT', '/usr/share/doc')
BIG = int(os.environ.get('SLUICE_REAL_MIB', '1024')) << 20


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, 'rb') as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def walk(root):
    """Returns (files that must be served, links that must be refused) as relative paths. Links to absolute paths or outside the root must
    be refused."""
    good, refused = [], []
    real_root = os.path.realpath(root)
    for folder, names, files in os.walk(root):
        for name in files + names:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                result = expected_result(real_root, path)
                if result == 'refused':
                    refused.append(os.path.relpath(path, root))
                elif result == 'file':
                    good.append(os.path.relpath(path, root))
            elif os.path.isfile(path):
                good.append(os.path.relpath(path, root))
        names[:] = [name for name in names if not name.startswith('.')]
    hidden = [name for name in good + refused if any(part.startswith('.') for part in name.split('/'))]
    return [name for name in good if name not in hidden], [name for name in refused if name not in hidden]


def expected_result(root, path):
    """Resolves a link step by step in the same way as RESOLVE_BENEATH: an absolute link or a step above the root is refused."""
    parts, done, steps = os.path.relpath(path, root).split('/'), [], 0
    while parts:
        part = parts.pop(0)
        if part == '..':
            if not done:
                return 'refused'
            done.pop()
            continue
        here = os.path.join(root, *done, part)
        if os.path.islink(here):
            steps += 1
            target = os.readlink(here)
            if target.startswith('/'):
                return 'refused'
            if steps > 40:
                return 'broken'
            parts = target.split('/') + parts
        elif not os.path.lexists(here):
            return 'broken'
        elif part != '.':
            done.append(part)
    return 'file' if os.path.isfile(os.path.join(root, *done)) else 'folder'


@pytest.fixture(scope='session')
def tree():
    if not os.path.isdir(DOC):
        pytest.skip(f'no {DOC}')
    return walk(os.path.realpath(DOC))


def fetch_all(served, names, out, parallel):
    """Fetches every name by one curl over keep-alive connections; returns {name: status} and the number of connections."""
    config = os.path.join(out, 'curl.conf')
    with open(config, 'w', encoding='utf-8') as stream:
        for number, name in enumerate(names):
            url = served.url('/' + urllib.parse.quote(name))
            stream.write(f'url = "{url}"\noutput = "{out}/{number}"\n')
    options = ['--parallel', '--parallel-max', str(parallel)] if parallel > 1 else []
    done = subprocess.run(['curl', '-sS', '-k', '--resolve', f'localhost:{served.port}:127.0.0.1', '--http1.1', *options, '-K', config,
                           '-w', '%{filename_effective} %{http_code} %{num_connects}\n'],
                          capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [row.split() for row in done.stdout.splitlines()]
    statuses = {int(os.path.basename(row[0])): int(row[1]) for row in rows if len(row) == 3}
    connections = sum(int(row[-1]) for row in rows)
    return {name: statuses.get(number) for number, name in enumerate(names)}, connections


@pytest.mark.parametrize('parallel', [1, 8])
def test_all_files_of_usr_share_doc(launch, loop, tree, tmp_path, parallel):
    names, _ = tree
    served = launch(loop, 'user', server={'root': os.path.realpath(DOC), 'keepalive_requests': '100000'})
    statuses, connections = fetch_all(served, names, str(tmp_path), parallel)
    closed = [name for name, status in statuses.items() if status == 403 and not os.stat(os.path.join(DOC, name)).st_mode & 0o004]
    wrong = {name: status for name, status in statuses.items() if status != 200 and name not in closed}
    assert not wrong, dict(list(wrong.items())[:10])
    for number, name in enumerate(names):
        if name not in closed:
            path = tmp_path / str(number)
            got = sha256_of(path) if path.exists() else hashlib.sha256(b'').hexdigest()
            assert got == sha256_of(os.path.join(DOC, name)), name
    # Sequential transfers need one connection; the number for parallel transfers depends on the version of curl.
    assert connections <= (1 if parallel == 1 else max(parallel * 4, len(names) // 10)), f'keep-alive: {connections} connections for {len(names)} files'
    print(f'{len(names)} files, {connections} connections')


def test_links_out_of_the_root_are_rejected(launch, loop, tree, tmp_path):
    _, refused = tree
    if not refused:
        pytest.skip('no link leaves it')
    served = launch(loop, 'user', server={'root': os.path.realpath(DOC), 'keepalive_requests': '100000'})
    # The URI of a link to a directory has no trailing slash, so the link itself is refused.
    statuses, _ = fetch_all(served, refused, str(tmp_path), 1)
    assert set(statuses.values()) == {403}, {name: status for name, status in statuses.items() if status != 403}
    print(f'{len(refused)} links refused')


@pytest.fixture(scope='session')
def big(new_directory):
    """1 GiB in which one MiB of every sixteen is random and the rest is sparse: quick to create, and the complete file is hashed."""
    folder = new_directory()
    path = folder / 'big.bin'
    with open(path, 'wb') as stream:
        stream.truncate(BIG)
        for at in range(0, BIG, 16 << 20):
            stream.seek(at)
            stream.write(os.urandom(1 << 20))
    yield str(folder), sha256_of(path)
    path.unlink()


@pytest.mark.parametrize('clients', [1, 3])
def test_file_of_one_gib_by_curl(launch, loop, big, clients):
    folder, expected = big
    served = launch(loop, 'user', server={'root': folder})
    command = (f'curl -sS -k --max-time {600 * server_kit.PATIENCE} --resolve localhost:{served.port}:127.0.0.1 '
               f'{served.url("/big.bin")} | sha256sum')
    running = [subprocess.Popen(['sh', '-c', command], stdout=subprocess.PIPE, text=True) for _ in range(clients)]
    assert [process.communicate()[0].split()[0] for process in running] == [expected] * clients


def test_ranges_of_a_file_of_one_gib(launch, loop, big):
    folder, expected = big
    served = launch(loop, 'user', server={'root': folder})
    client = served.connect(timeout=120)
    digest = hashlib.sha256()
    for at in range(0, BIG, 64 << 20):
        response = client.get('/big.bin', Range=f'bytes={at}-{at + (64 << 20) - 1}')
        assert response.status == 206
        digest.update(response.body)
    assert digest.hexdigest() == expected
