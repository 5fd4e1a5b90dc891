"""Latency of small responses while other clients request files that are not in the page cache."""
import contextlib
import dataclasses
import multiprocessing
import os
import subprocess
import threading
import time

from . import counters, load_generator, servers

READERS, READER_SIZE, READER_RATE = 4, 8 << 20, 8       # 256 MiB/s together: a faster disk causes steal time on a virtual machine
DROP_INTERVAL_S = 0.1               # shorter than the interval between two requests of a reader
SAMPLE_INTERVAL_S = 0.001
SECONDS_MIN = 0.5
ATTEMPTS_MAX = 12
READERS_EXTRA_S = 0.5               # the readers run longer than the probe
PROBE_PRIORITY, READER_PRIORITY = ('chrt', '-f', '50'), ('nice', '-n', '-20')     # requires root


def prepare(folder):
    """Creates a file for each reader; returns their paths. Raises BenchmarkError if the file system is in memory."""
    paths = [os.path.join(folder, 'www', f'cold{number}') for number in range(READERS)]
    kind = subprocess.run(['stat', '-f', '-c', '%T', folder], capture_output=True, text=True, check=True).stdout.strip()
    if kind in ('tmpfs', 'ramfs'):
        raise servers.BenchmarkError(f'{folder} is in memory, so this scenario cannot read from disk: use --folder')
    for path in paths:
        if not os.path.exists(path):
            with open(path, 'wb') as stream:
                stream.write(os.urandom(READER_SIZE))
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(path, 0o644)
    return paths


def raise_priority(pids):
    """Raises the priority of the server above that of other processes; requires root, and has no effect otherwise."""
    for pid in pids:
        for task in os.listdir(f'/proc/{pid}/task'):
            with contextlib.suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, int(task), -10)


@contextlib.contextmanager
def page_cache_dropped(paths):
    """Inside a with block: drops these files from the page cache every DROP_INTERVAL_S, on the client's CPU."""
    stopped = threading.Event()

    def drop():
        os.sched_setaffinity(0, {servers.cpus()[1]})        # of this thread
        with contextlib.ExitStack() as files:
            descriptors = [files.enter_context(open(path, 'rb')) for path in paths]
            while not stopped.wait(DROP_INTERVAL_S):
                for file in descriptors:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    thread = threading.Thread(target=drop)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def is_waiting_for_disk(path):
    """False, too, for a process or thread that has ended."""
    with contextlib.suppress(OSError):
        return counters.read(path).rpartition(')')[2].split()[0] == 'D'
    return False


def sample_disk_waits(paths, pipe):
    """The sampling loop of disk_wait_share, in a separate process: the interpreter lock would delay a thread."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
    samples = waiting = 0
    pipe.send('ready')
    while not pipe.poll(SAMPLE_INTERVAL_S):
        waiting += any(map(is_waiting_for_disk, paths))
        samples += 1
    pipe.send(waiting / max(samples, 1))


def event_loop_stat_paths(server):
    """The /proc/*/stat files of the server's event loops: threads of the first process in h2o, a worker process in other servers."""
    pids = server.pids()
    if server.setup.server == 'h2o':
        return [f'/proc/{pids[0]}/task/{thread}/stat' for thread in os.listdir(f'/proc/{pids[0]}/task')]
    return [f'/proc/{pids[-1]}/stat']


@contextlib.contextmanager
def disk_wait_share(server):
    """Samples every SAMPLE_INTERVAL_S whether the event loop waits for a disk. Yields a dict, whose 'share' is set at the end.

    The sampler is spawned: a process forked beside the thread of page_cache_dropped could inherit a locked lock, and never end. A pipe whose
    other end only the sampler has reports its end.
    """
    context = multiprocessing.get_context('spawn')
    parent_end, child_end = context.Pipe()
    sampler = context.Process(target=sample_disk_waits, args=(event_loop_stat_paths(server), child_end), daemon=True)
    sampler.start()
    child_end.close()
    received(parent_end)
    result = {}
    try:
        yield result
    finally:
        with contextlib.suppress(BrokenPipeError):
            parent_end.send('stop')
        result['share'] = received(parent_end)
        sampler.join()


def received(pipe):
    try:
        return pipe.recv()
    except (EOFError, ConnectionResetError):
        raise servers.BenchmarkError('the process that samples waits for a disk has ended early') from None


def repeat_without_steal(measurement):
    """Repeats measurement() until there is no steal time during it, at most ATTEMPTS_MAX times. Returns the last result with its
    'steal_ticks'."""
    for _ in range(ATTEMPTS_MAX):
        before = counters.steal_ticks()
        result = measurement()
        steal = counters.steal_ticks() - before
        if steal == 0:
            break
    return {**result, 'steal_ticks': steal}


def read_with_readers(server, paths, probe, reader, iterations):
    """Starts the readers and the probe; returns the counts of one run of the probe."""
    with page_cache_dropped(paths), contextlib.ExitStack() as clients:
        readers = [clients.enter_context(reader(path)) for path in paths]
        for client in readers:
            client.start()
        with disk_wait_share(server) as disk_wait, probe() as blast:
            before, counts_before = counters.snapshot(server.pids()), iterations.counts()
            start = time.monotonic()
            counts = blast.run()
            usage = counters.usage_between(before, counters.snapshot(server.pids()))
            elapsed = time.monotonic() - start
            durations = iterations.since(counts_before)
        reader_counts = [client.read_line() for client in readers]
    return {**counts, **usage, 'elapsed': elapsed, 'disk_wait': disk_wait['share'], 'iterations': durations['elapsed'], 'iterations_cpu': durations['cpu'],
            'readers_rate': sum(counts['bytes'] / counts['seconds'] for counts in reader_counts)}


def read(program, server, load, setup, folder, seconds, iterations):
    """One reading: latency of the probe without readers ('baseline') and with them, and the state of the server's loop and the durations of
    its iterations (iterations.py) with them."""
    seconds = max(seconds, SECONDS_MIN)
    probe_priority, reader_priority = (PROBE_PRIORITY, READER_PRIORITY) if os.geteuid() == 0 else ((), ())
    probe_words = load_generator.arguments_of(load, setup, seconds)
    reader_words = load_generator.arguments_of(dataclasses.replace(load, rate=READER_RATE), setup, seconds + READERS_EXTRA_S)
    paths = prepare(folder)

    def probe():
        return load_generator.Blast(program, server, f'/{load.size}', probe_words, probe_priority)

    def reader(path):
        return load_generator.Blast(program, server, f'/{os.path.basename(path)}', reader_words, reader_priority)

    def without_readers():
        with probe() as blast:
            return blast.run()
    raise_priority(server.pids())
    baseline = repeat_without_steal(without_readers)
    loaded = repeat_without_steal(lambda: read_with_readers(server, paths, probe, reader, iterations))
    return {**loaded, 'baseline': baseline['latency'], 'steal_ticks': max(baseline['steal_ticks'], loaded['steal_ticks'])}
