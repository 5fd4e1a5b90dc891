"""Programs written in Go, which are built once into the build folder."""
import fcntl
import os
import shutil
import subprocess

import pytest

from . import server as server_kit

TIMEOUT = 300 * server_kit.PATIENCE


def build(name, *packages):
    """The folder with the programs of the packages ("PATH@VERSION" of one module); skips the test if they cannot be built. `name` is that of
    their folder."""
    folder = os.path.join(os.path.dirname(os.path.abspath(server_kit.SLUICE)), name)
    programs = os.path.join(folder, 'bin')
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'lock'), 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(programs) or len(os.listdir(programs)) < len(packages):
            go = shutil.which('go') or pytest.skip('go is not installed')
            done = subprocess.run([go, 'install', *packages], capture_output=True, text=True, timeout=TIMEOUT, check=False,
                                  env={**os.environ, 'GOPATH': folder, 'GOBIN': programs, 'GOFLAGS': '-modcacherw'})
            if done.returncode != 0:
                pytest.skip(f'{name} cannot be built: {done.stderr.strip()[-300:]}')
    return programs
