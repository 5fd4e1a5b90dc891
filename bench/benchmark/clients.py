"""Runs h2load for HTTP/2, and wrk, h2load and blast for a comparison of clients. The server's CPU time includes the handshakes. For the
comparison blast decrypts every record and sleeps while there is none, as the other two do."""
import re
import resource
import subprocess
import time

from . import counters, servers, sizes

# name: (command line, pattern of the number of responses in the output)
CLIENTS = {'blast --verify': ('blast -v{n} -c {connections} -s {seconds} {port} /{size}', re.compile(r'"responses_all": (\d+)')),
           'wrk': ('wrk -t 1 -c {connections} -d {seconds} {scheme}://127.0.0.1:{port}/{size}', re.compile(r'(\d+) requests in')),
           'h2load': ('h2load --h1 -t 1 -c {connections} -D {seconds} {scheme}://127.0.0.1:{port}/{size}',
                      re.compile(r'requests: .*?(\d+) succeeded')),
           'h2load h2': ('h2load -t 1 -c {connections} -m {streams} -D {seconds} {scheme}://127.0.0.1:{port}/{size}',
                         re.compile(r'Application protocol: h2.*requests: .*?(\d+) succeeded', re.DOTALL))}


def whole_seconds(seconds):
    """wrk and h2load accept only whole seconds."""
    return max(1, round(seconds))


def arguments_of(load, setup, seconds, port):
    """The arguments for a load."""
    scheme, n = ('http', 'n') if setup.transport == 'plain' else ('https', '')
    return CLIENTS[load.client][0].format(connections=load.connections, streams=load.streams, seconds=whole_seconds(seconds), port=port,
                                          size=load.size, scheme=scheme, n=n).split()


def run(blast, server, load, setup, seconds):
    """Runs the client on its CPU; returns the number of responses."""
    arguments = arguments_of(load, setup, seconds, server.port)
    program = blast if arguments[0] == 'blast' else servers.find_program(arguments[0])
    if not program:
        raise servers.BenchmarkError(f'{arguments[0]} is not installed')
    done = subprocess.run(['taskset', '-c', str(servers.cpus()[1]), program, *arguments[1:]], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL, timeout=60 + 10 * seconds)
    found = CLIENTS[load.client][1].search(done.stdout)
    if not found or not int(found.group(1)):
        raise servers.BenchmarkError(f'{load.client}: {(done.stdout + done.stderr)[-200:]}')
    return int(found.group(1))


def read(blast, server, load, setup, seconds):
    """One reading; the measured time includes the handshakes."""
    pids = server.pids()
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin, before = time.monotonic(), counters.snapshot(pids)
    responses = run(blast, server, load, setup, seconds)
    after, elapsed = counters.snapshot(pids), time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    size = responses * sizes.bytes_of(load.size)
    return {'responses': responses, 'responses_all': responses, 'bytes': size, 'bytes_all': size, 'seconds': whole_seconds(seconds), 'elapsed': elapsed,
            'client_cpu': used.ru_utime + used.ru_stime - own.ru_utime - own.ru_stime, **counters.usage_between(before, after)}


def count_calls(blast, server, load, setup, seconds):
    """System calls of the server per request, in a separate run; None if they cannot be counted."""
    with counters.SystemCalls(server.pids()) as calls:
        responses = run(blast, server, load, setup, seconds)
    return calls.total / responses if calls.total is not None else None
