"""Runs bench/blast on the client's CPU, and reads the usage of the server during the load."""
import json
import os
import subprocess
import time

from . import counters, servers


def arguments_of(load, setup, seconds, warm=0.0, rate=0.0, busy=False):
    """Arguments of blast for a load. `busy`: it polls without sleeping."""
    arguments = ['-c', str(load.connections), '-s', f'{seconds:g}']
    arguments += ['-n'] if setup.transport == 'plain' else ['-2'] if load.protocol == 'TLSv1.2' else []
    arguments += ['-x', load.suite] if load.suite and setup.transport != 'plain' else []
    arguments += {'requests': [], 'idle': [], 'cold_cache': [], 'full': ['-H'], 'resumed': ['-H'] + (['-e'] if setup.transport != 'plain' else [])}[load.kind]
    arguments += ['-W', f'{warm:g}'] if warm and load.kind != 'idle' else []
    arguments += ['-r', f'{rate or load.rate:g}'] if rate or load.rate else []
    arguments += ['-i', str(load.idle)] if load.idle else []
    arguments += ['-p', str(load.pipeline)] if load.pipeline > 1 else []
    arguments += ['-l', str(load.slow)] if load.slow else []
    arguments += ['-b'] if busy and load.kind == 'requests' and not load.slow else []
    return arguments


class Blast:
    """A blast process. The constructor waits until it has connected, checked the responses and warmed up; run() runs the load and returns
    the counts. `prefix` is a command that runs blast, such as nice."""

    def __init__(self, program, server, path, arguments, prefix=()):
        self.command = [*prefix, program, '-w', *arguments, str(server.port), path]
        self.process = subprocess.Popen(['taskset', '-c', str(servers.cpus()[1]), *self.command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = self.read_line()

    def read_line(self):
        output = self.process.stdout.readline()
        if not output:
            raise servers.BenchmarkError(f'blast: {self.process.stderr.read().strip()[-300:]}')
        return json.loads(output)

    def start(self):
        self.process.stdin.close()

    def run(self):
        self.start()
        return self.read_line()

    def stop(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()         # an error or a signal ends the benchmark now, not after the load
        self.stop()


def read_load(program, server, load, arguments):
    """One reading: the counts of the client, and the usage of the server in the same time, which excludes connection setup and warm-up."""
    with Blast(program, server, f'/{load.size}', arguments) as blast:
        pids = server.pids()
        start, before = time.monotonic(), counters.snapshot(pids)
        counts = blast.run()
        after, elapsed = counters.snapshot(pids), time.monotonic() - start
    return {**counts, **counters.usage_between(before, after), 'elapsed': elapsed, 'memory': counters.memory_kib(pids),
            'connections': load.connections}


def read_idle(program, server, load, arguments):
    """One reading: the memory of the server with idle connections, each after one response, and the increase per connection."""
    warmup_arguments = ['-c', '64', '-s', '0.2'] + [word for word in arguments if word in ('-n', '-2')]
    with Blast(program, server, f'/{load.size}', warmup_arguments) as blast:
        blast.run()
    time.sleep(0.5 * servers.PATIENCE)
    before = counters.memory_kib(server.pids())
    idle_arguments = [word if at == 0 or arguments[at - 1] != '-s' else '0' for at, word in enumerate(arguments)]
    with Blast(program, server, f'/{load.size}', idle_arguments):
        time.sleep(1.5 * servers.PATIENCE)
        memory = counters.memory_kib(server.pids())
    return {'memory': memory, 'memory_connection': (memory - before) / load.connections}


def count_calls(program, server, load, arguments):
    """Runs the load; returns the number of system calls of the server per request, or None if they cannot be counted."""
    with Blast(program, server, f'/{load.size}', arguments) as blast:
        with counters.SystemCalls(server.pids()) as calls:
            counts = blast.run()
    return calls.total / counts['responses_all'] if calls.total is not None and counts['responses_all'] else None


def read_access_log(folder, setup, load, ports, sluice, program):
    """Starts a server with an access log and requests two responses. Returns fields of the last log line: $tls_path, $tls_path_reason, and the
    share of bytes that were not copied in user space."""
    log = os.path.join(folder, 'access.log')
    with servers.Server(setup, folder, ports, sluice, log) as server:
        with Blast(program, server, f'/{load.size}', ['-c', '1', '-m', '2', *(['-n'] if setup.transport == 'plain' else [])]) as blast:
            blast.run()
    with open(log, encoding='utf-8') as stream:
        lines = [read_line.split() for read_line in stream]
    os.unlink(log)
    if not lines or len(lines[-1]) != 4:
        return None
    path, reason, zero_copy, sent = lines[-1]
    return {'path': path, 'reason': reason, 'zero_copy': int(zero_copy) / max(int(sent), 1)}
