"""Small responses in parallel with files that are not in memory: delays of a server's loop while other clients read from disk."""
import contextlib
import dataclasses
import multiprocessing
import os
import subprocess
import threading
import time

from . import counters, load_generator, servers

READERS, READER_SIZE = 4, 64 << 20
DROP_EVERY_S, LOOK_EVERY_S = 0.1, 0.001       # reading a file takes longer than DROP_EVERY_S
SECONDS_MIN = 0.5
ATTEMPTS = 12                       # retries: 10 ms of CPU taken by the hypervisor add 10 ms of latency
READ_LONGER_S = 0.5                 # duration of the readers beyond that of the probe
FIRST, SECOND = ('chrt', '-f', '50'), ('nice', '-n', '-20')     # as root; the probe has priority over the readers


def prepare(folder):
    """The readers' files, one for each reader; raises Failed if the file system keeps them in memory."""
    paths = [os.path.join(folder, 'www', f'cold{number}') for number in range(READERS)]
    kind = subprocess.run(['stat', '-f', '-c', '%T', folder], capture_output=True, text=True, check=True).stdout.strip()
    if kind in ('tmpfs', 'ramfs'):
        raise servers.Failed(f'{folder} is in memory, so this scenario cannot read from disk: use --folder')
    for path in paths:
        if not os.path.exists(path):
            with open(path, 'wb') as stream:
                stream.write(os.urandom(READER_SIZE))
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(path, 0o644)
    return paths


def be_first(pids):
    """Raises the priority of the server, so that other processes of the machine do not delay it (root only)."""
    for pid in pids:
        for task in os.listdir(f'/proc/{pid}/task'):
            with contextlib.suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, int(task), -10)


@contextlib.contextmanager
def dropped(paths):
    """Drops these files from the page cache every DROP_EVERY_S inside a with block, on the client's CPU."""
    over = threading.Event()

    def drop():
        os.sched_setaffinity(0, {servers.cpus()[1]})        # applies to this thread only
        with contextlib.ExitStack() as files:
            opened = [files.enter_context(open(path, 'rb')) for path in paths]
            while not over.wait(DROP_EVERY_S):
                for file in opened:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    dropper = threading.Thread(target=drop)
    dropper.start()
    try:
        yield
    finally:
        over.set()
        dropper.join()


def waits_for_disk(path):
    return counters.read(path).rpartition(')')[2].split()[0] == 'D'


def watch(paths, pipe):
    """The sampling loop of disk_waits. Runs in its own process, since a thread would wait for the other threads of this process."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
    looks = seen = 0
    while not pipe.poll(LOOK_EVERY_S):
        seen += any(map(waits_for_disk, paths))
        looks += 1
    pipe.send(seen / max(looks, 1))


def loops_of(server):
    """The /proc files with the state of the server's loops: h2o runs them as threads of its first process, others in a worker."""
    pids = server.pids()
    if server.setup.server == 'h2o':
        return [f'/proc/{pids[0]}/task/{thread}/stat' for thread in os.listdir(f'/proc/{pids[0]}/task')]
    return [f'/proc/{pids[-1]}/stat']


@contextlib.contextmanager
def disk_waits(server):
    """Samples every millisecond whether the loop waits for a disk; sets 'share' of the dict to the fraction of such samples."""
    here, there = multiprocessing.Pipe()
    watcher = multiprocessing.Process(target=watch, args=(loops_of(server), there))
    watcher.start()
    found = {}
    try:
        yield found
    finally:
        here.send('over')
        found['share'] = here.recv()
        watcher.join()


def undisturbed(attempt):
    """Repeats attempt() until the hypervisor takes no CPU time during it, and returns its result with 'taken': 0; after ATTEMPTS, the last
    result."""
    for _ in range(ATTEMPTS):
        before = counters.taken_ticks()
        found = attempt()
        taken = counters.taken_ticks() - before
        if taken == 0:
            break
    return {**found, 'taken': taken}


def read_with_readers(server, paths, probe, reader):
    """Starts the readers and the probe; returns the counts of one run of the probe."""
    with dropped(paths), contextlib.ExitStack() as clients:
        readers = [clients.enter_context(reader(path)) for path in paths]
        for one in readers:
            one.begin()
        # Starts the watcher before the probe: a process forked later would inherit, and keep open, the probe's standard input.
        with disk_waits(server) as waits, probe() as blast:
            before = counters.snapshot(server.pids())
            begin = time.monotonic()
            counted = blast.go()
            spent = counters.spent(before, counters.snapshot(server.pids()))
            elapsed = time.monotonic() - begin
        read_all = [one.line() for one in readers]
    return {**counted, **spent, 'elapsed': elapsed, 'disk': waits['share'],
            'cold_rate': sum(one['bytes'] / one['seconds'] for one in read_all)}


def read(program, server, load, setup, folder, seconds):
    """One reading: latency of the probe alone ('quiet') and with the readers, and the state of the server's loop in that time."""
    seconds = max(seconds, SECONDS_MIN)
    first, second = (FIRST, SECOND) if os.geteuid() == 0 else ((), ())
    probe_words = load_generator.words_of(load, setup, seconds)
    reader_words = load_generator.words_of(dataclasses.replace(load, rate=0), setup, seconds + READ_LONGER_S)
    paths = prepare(folder)

    def probe():
        return load_generator.Blast(program, server, f'/{load.size}', probe_words, first)

    def reader(path):
        return load_generator.Blast(program, server, f'/{os.path.basename(path)}', reader_words, second)

    def alone():
        with probe() as blast:
            return blast.go()
    be_first(server.pids())
    quiet = undisturbed(alone)
    loaded = undisturbed(lambda: read_with_readers(server, paths, probe, reader))
    return {**loaded, 'quiet': quiet['latency'], 'taken': max(quiet['taken'], loaded['taken'])}
