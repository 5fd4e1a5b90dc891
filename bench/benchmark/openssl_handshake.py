"""Runs build/bench/handshake (handshakes of OpenSSL over memory BIOs) on the server's CPU."""
import json
import os
import subprocess

from . import servers

HANDSHAKES_PER_SECOND = 2000        # number of handshakes for each second of a measurement


def arguments_of(load, seconds):
    return ['handshake', load.kind, str(max(50, int(seconds * HANDSHAKES_PER_SECOND)))]


def read(blast, load, seconds):
    """One reading. The program is in the directory of blast."""
    name, *arguments = arguments_of(load, seconds)
    command = ['taskset', '-c', str(servers.cpus()[0]), os.path.join(os.path.dirname(blast), name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 + 60 * seconds)
    if done.returncode:
        raise servers.BenchmarkError(f'handshake: {done.stderr.strip()[-300:]}')
    return json.loads(done.stdout)
