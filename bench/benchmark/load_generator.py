"""The load: bench/blast on the client's CPU, and one reading of a server under it."""
import json
import os
import subprocess
import time

from . import counters, servers


def arguments_of(load, setup, seconds, warm=0.0, rate=0.0, busy=False):
    """Arguments of blast for a load; with `busy` it polls instead of sleeping."""
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
    """A running blast. On entry it connects, checks the responses and warms up; go() runs the load and returns the counts."""

    def __init__(self, program, server, path, arguments, first=()):
        self.command = [*first, program, '-w', *arguments, str(server.port), path]
        self.process = subprocess.Popen(['taskset', '-c', str(servers.cpus()[1]), *self.command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = self.line()

    def line(self):
        output = self.process.stdout.readline()
        if not output:
            raise servers.BenchmarkError(f'blast: {self.process.stderr.read().strip()[-300:]}')
        return json.loads(output)

    def begin(self):
        self.process.stdin.close()

    def go(self):
        self.begin()
        return self.line()

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

    def __exit__(self, *_):
        self.stop()


def read_load(program, server, load, arguments):
    """One reading: the counts of the client, and the usage of the server in the same time. Excludes connecting and warming up."""
    with Blast(program, server, f'/{load.size}', arguments) as blast:
        pids = server.pids()
        begin, before = time.monotonic(), counters.snapshot(pids)
        counted = blast.go()
        after, elapsed = counters.snapshot(pids), time.monotonic() - begin
    return {**counted, **counters.usage_between(before, after), 'elapsed': elapsed, 'memory': counters.memory_kib(pids),
            'connections': load.connections}


def read_idle(program, server, load, arguments):
    """The memory of the server with idle connections, each after one response: in total, and the increase per connection."""
    few = ['-c', '64', '-s', '0.2'] + [word for word in arguments if word in ('-n', '-2')]
    with Blast(program, server, f'/{load.size}', few) as blast:
        blast.go()
    time.sleep(0.5 * servers.PATIENCE)
    before = counters.memory_kib(server.pids())
    resting = [word if at == 0 or arguments[at - 1] != '-s' else '0' for at, word in enumerate(arguments)]
    with Blast(program, server, f'/{load.size}', resting):
        time.sleep(1.5 * servers.PATIENCE)
        memory = counters.memory_kib(server.pids())
    return {'memory': memory, 'memory_connection': (memory - before) / load.connections}


def count_calls(program, server, load, arguments):
    """System calls of the server per request, in a separate run; None if they cannot be counted."""
    with Blast(program, server, f'/{load.size}', arguments) as blast:
        with counters.SystemCalls(server.pids()) as calls:
            counted = blast.go()
    return calls.total / counted['responses_all'] if calls.total is not None and counted['responses_all'] else None


def read_access_log(folder, setup, load, ports, sluice, program):
    """Fields of sluice's access log for two responses: path, reason, share of bytes not copied in user space."""
    log = os.path.join(folder, 'witness.log')
    with servers.Server(setup, folder, ports, sluice, log) as server:
        with Blast(program, server, f'/{load.size}', ['-c', '1', '-m', '2', *(['-n'] if setup.transport == 'plain' else [])]) as blast:
            blast.go()
    with open(log, encoding='utf-8') as stream:
        lines = [line.split() for line in stream]
    os.unlink(log)
    if not lines or len(lines[-1]) != 4:
        return None
    path, reason, copied_not, sent = lines[-1]
    return {'path': path, 'reason': reason, 'zero_copy': int(copied_not) / max(int(sent), 1)}
