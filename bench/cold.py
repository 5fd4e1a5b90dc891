#!/usr/bin/env python3
"""How long small answers take while the same worker sends files that are not in memory, beside nginx and h2o.

usage: cold.py [--sluice build/sluice] [--blast build/bench/blast] [--rounds 3] [--seconds 4] [--readers 4] [--rate 1000]
               [--only nginx,h2o,sluice-epoll,sluice-io_uring] [--folder /var/tmp] [--transports plain,tls] [--ktls]

Every server has one worker on CPU 0, the clients share CPU 1. Each reader asks for a 64 MiB file of its own, one answer
after the other as fast as it can, while the kernel is told all the time to drop these files from its memory. The probe
asks for 1 KiB at a fixed rate; its latency counts from the moment a request was due. As root, server and probe go
before everything else on their CPU, so that what is seen is the server's own delay. Latency needs a quiet machine;
`on disk`, the part of the time in which the thread of the loop waited for a disk, does not. The folder must lie on a
disk: in a tmpfs nothing is ever cold.
"""
import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading

import figures

READER_SIZE = 64 << 20
DROP_EVERY_S = 0.1  # a file takes longer to read than this: no byte of it is still in memory when it is asked for again


def be_first(pids):
    """On a machine that others use as well, the server is to be delayed by nobody but itself (root only)."""
    for pid in pids:
        for task in os.listdir(f'/proc/{pid}/task'):
            try:
                os.setpriority(os.PRIO_PROCESS, int(task), -10)
            except PermissionError:
                return


class Blast:
    """A client on CPU 1 with one connection: connected when made, run by go()."""

    def __init__(self, arguments, server, target, seconds, first, *words):
        first = first if os.geteuid() == 0 else []
        kind = ['-n'] if arguments.plain else ['-x', figures.SUITE]
        self.process = subprocess.Popen(['taskset', '-c', '1', *first, arguments.blast, *kind, '-w', '-c', '1', '-s', str(seconds), *words,
                                         str(server.port), target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            sys.exit(f'{server.name}: no load could be made')

    def go(self):
        self.process.stdin.close()

    def done(self):
        said = json.loads(self.process.stdout.readline())
        self.process.wait()
        return said


def quantile(latency, part):
    """Seconds below which `part` of the answers took; from [[least nanoseconds of a bucket, count], ...]."""
    left = part * sum(count for _, count in latency)
    for nanoseconds, count in latency:
        left -= count
        if left <= 0:
            return nanoseconds / 1e9
    return latency[-1][0] / 1e9


def probe(arguments, server):
    client = Blast(arguments, server, '/1k', arguments.seconds, ['chrt', '-f', '50'], '-r', str(arguments.rate))
    client.go()
    return client.done()['latency']


@contextlib.contextmanager
def cold(paths):
    """While inside, the kernel drops these files again and again."""
    over = threading.Event()

    def drop():
        files = [os.open(path, os.O_RDONLY) for path in paths]
        while not over.wait(DROP_EVERY_S):
            for file in files:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        for file in files:
            os.close(file)
    os.sched_setaffinity(0, {1})
    dropper = threading.Thread(target=drop)
    dropper.start()
    try:
        yield
    finally:
        over.set()
        dropper.join()


def waits_for_disk(path):
    with open(path, encoding='ascii') as stat:
        return stat.read().rsplit(')', 1)[1].split()[0] == 'D'


def watch_disk_waits(paths, pipe):
    """A process of its own: a thread here would wait for others, and look when the server sends nothing."""
    if os.geteuid() == 0:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
    looks = seen = 0
    while not pipe.poll(0.001):
        seen += any(waits_for_disk(path) for path in paths)
        looks += 1
    pipe.send(seen / max(looks, 1))


@contextlib.contextmanager
def disk_waits(server):
    """Looks every millisecond whether a loop waits for a disk; the part of its looks that saw it is in the dict when this is over."""
    worker = server.pids()[-1]
    threads = os.listdir(f'/proc/{worker}/task') if server.name == 'h2o' else [worker]
    here, there = multiprocessing.Pipe()
    watcher = multiprocessing.Process(target=watch_disk_waits, args=([f'/proc/{worker}/task/{thread}/stat' for thread in threads], there))
    watcher.start()
    found = {}
    try:
        yield found
    finally:
        here.send('over')
        found['share'] = here.recv()
        watcher.join()


def measure(arguments, server):
    """{'quiet': seconds, 'loaded': ..., ...} of one round."""
    quiet = probe(arguments, server)
    names = [f'cold{number}' for number in range(arguments.readers)]
    with cold([os.path.join(server.folder, 'www', name) for name in names]):
        readers = [Blast(arguments, server, f'/{name}', arguments.seconds + 1, ['nice', '-n', '-20']) for name in names]
        for reader in readers:
            reader.go()
        with disk_waits(server) as waits:
            loaded = probe(arguments, server)
        done = [reader.done() for reader in readers]
    return {'quiet': quantile(quiet, 0.99), 'loaded': quantile(loaded, 0.99), 'median': quantile(loaded, 0.5),
            'max': quantile(loaded, 1), 'disk': waits['share'], 'read': sum(one['bytes'] / one['seconds'] for one in done)}


def show(arguments, found):
    kind = 'HTTP' if arguments.plain else 'HTTPS, kTLS' if arguments.ktls else 'HTTPS'
    print(f'\n{kind}: 1 KiB answers, alone and beside {arguments.readers} readers of cold 64 MiB files; medians of {arguments.rounds} rounds')
    print(f'{"":16} {"quiet p99":>10} {"p99":>10} {"ratio":>7} {"lowest":>7} {"highest":>8} {"p50":>10} {"max":>10} {"on disk":>8} {"readers":>10}')
    for name, rounds in found.items():
        middle = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        ratios = [one['loaded'] / one['quiet'] for one in rounds]
        print(f'{name:16} {middle["quiet"] * 1e6:7.0f} us {middle["loaded"] * 1e6:7.0f} us {statistics.median(ratios):7.1f} {min(ratios):7.1f} '
              f'{max(ratios):8.1f} {middle["median"] * 1e6:7.0f} us {middle["max"] * 1e6:7.0f} us {middle["disk"]:8.1%} {middle["read"] / 1e6:5.0f} MB/s', flush=True)


def measure_all(arguments, folder, names):
    servers = []
    try:
        for at, name in enumerate(names):
            servers.append(figures.Server(name, folder, figures.FIRST_PORT + at, arguments))
        found = {server.name: [] for server in servers}
        for turn in range(arguments.rounds):
            for server in servers[turn % len(servers):] + servers[:turn % len(servers)]:
                be_first(server.pids())
                found[server.name].append(measure(arguments, server))
        show(arguments, found)
    finally:
        for server in servers:
            server.stop()


def make_cold_files(arguments, folder):
    kind = subprocess.run(['stat', '-f', '-c', '%T', folder], capture_output=True, text=True, check=True).stdout.strip()
    print(f'files on: {kind}')
    if kind == 'tmpfs':
        sys.exit(f'{arguments.folder} is no disk')
    for number in range(arguments.readers):
        with open(os.path.join(folder, f'www/cold{number}'), 'wb') as stream:
            stream.write(os.urandom(READER_SIZE))
            stream.flush()
            os.fsync(stream.fileno())


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sluice', default=os.path.join(here, 'build/sluice'))
    parser.add_argument('--blast', default=os.path.join(here, 'build/bench/blast'))
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=4)
    parser.add_argument('--readers', type=int, default=4)
    parser.add_argument('--rate', type=int, default=1000)
    parser.add_argument('--only', default='nginx,h2o,sluice-epoll,sluice-io_uring')
    parser.add_argument('--folder', default='/var/tmp')
    parser.add_argument('--transports', default='plain,tls')
    parser.add_argument('--ktls', action='store_true')
    arguments = parser.parse_args()
    arguments.sluice, arguments.blast = os.path.abspath(arguments.sluice), os.path.abspath(arguments.blast)
    figures.versions(arguments)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        figures.prepare(folder, [])
        make_cold_files(arguments, folder)
        for transport in arguments.transports.split(','):
            arguments.plain = transport == 'plain'
            measure_all(arguments, folder, arguments.only.split(','))


if __name__ == '__main__':
    main()
