"""Other people's clients, to see that blast agrees with them: wrk and h2load, read as blast's readings are."""
import re
import resource
import subprocess
import time

from . import counters, servers


def wrk(load, seconds, url):
    return ['-t', '1', '-c', str(load.connections), '-d', f'{max(1, round(seconds))}s', url]


def h2load(load, seconds, url):
    return ['--h1', '-t', '1', '-c', str(load.connections), '-D', f'{max(1, round(seconds))}', url]


# name: (its command line, where it says how many answers came)
CLIENTS = {'wrk': (wrk, re.compile(r'(\d+) requests in')), 'h2load': (h2load, re.compile(r'requests: .*?(\d+) succeeded'))}


def read_client(server, load, setup, seconds):
    """One reading by another client; connecting is within its time, unlike blast's."""
    words, answers = CLIENTS[load.client]
    program = servers.find(load.client)
    if not program:
        raise servers.Failed(f'{load.client} is not installed')
    url = f'{"http" if setup.path == "plain" else "https"}://127.0.0.1:{server.port}/{load.size}'
    pids = server.pids()
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin, before = time.monotonic(), counters.snapshot(pids)
    done = subprocess.run(['taskset', '-c', str(servers.cpus()[1]), program, *words(load, seconds, url)], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL, timeout=60 + 10 * seconds)
    after, elapsed = counters.snapshot(pids), time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = answers.search(done.stdout)
    if not found or not int(found.group(1)):
        raise servers.Failed(f'{load.client}: {(done.stdout + done.stderr)[-200:]}')
    return {'answers': int(found.group(1)), 'answers_all': int(found.group(1)), 'seconds': max(1, round(seconds)), 'elapsed': elapsed,
            'client_cpu': used.ru_utime + used.ru_stime - own.ru_utime - own.ru_stime, **counters.spent(before, after)}
