"""Describes the machine for the report: hardware, kernel, versions, and the load of other processes."""
import os
import platform
import re
import socket
import subprocess
import time

from . import server_configuration, servers

TCP_ULP = 31
CLOCK_TICKS = os.sysconf('SC_CLK_TCK')


def first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ''
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else ''


def ktls_works():
    """Returns True if the kernel accepts the TLS ULP on a connected socket."""
    with socket.create_server(('127.0.0.1', 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        try:
            client.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b'tls')
            return True
        except OSError:
            return False


def processor():
    try:
        with open('/proc/cpuinfo', encoding='ascii', errors='replace') as stream:
            text = stream.read()
    except OSError:
        return platform.machine()
    name = re.search(r'model name\s*:\s*(.*)', text)
    return name.group(1) if name else platform.machine()


def is_listed(cpu, text):
    """Returns True if a CPU list in the kernel's notation ('0-3,8') includes the CPU."""
    ends = [[int(number) for number in part.split('-')] for part in text.strip().split(',')]
    return any(end[0] <= cpu <= end[-1] for end in ends)


def are_siblings(one, other):
    """Returns True if the two CPUs are threads of one core."""
    try:
        with open(f'/sys/devices/system/cpu/cpu{one}/topology/thread_siblings_list', encoding='ascii') as stream:
            return one != other and is_listed(other, stream.read())
    except OSError:
        return False


def memory_mib():
    return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') >> 20


class BackgroundLoad:
    """The average number of CPUs that other processes used: the total usage minus that of the benchmark's processes that have ended."""

    def __init__(self):
        self.begin, self.before = time.monotonic(), self.cpu_seconds()

    @staticmethod
    def cpu_seconds():
        """(CPU seconds of other processes, steal time in seconds) since boot; see proc_stat(5)."""
        with open('/proc/stat', encoding='ascii') as stream:
            user, nice, system, _, _, irq, softirq, steal = (int(word) / CLOCK_TICKS for word in stream.readline().split()[1:9])
        return user + nice + system + irq + softirq - sum(os.times()[:4]), steal

    def averages(self):
        elapsed = max(time.monotonic() - self.begin, 1e-3)
        others, steal = ((now - then) / elapsed for now, then in zip(self.cpu_seconds(), self.before))
        return {'others': max(others, 0.0), 'steal': steal}


def versions(options, names):
    texts = {'sluice': first_line(options.sluice, '-v'), 'OpenSSL': first_line('openssl', 'version')}
    flags = {'caddy': 'version'}
    for name in names:
        program = servers.find_program(server_configuration.PROGRAMS[name])
        texts[name] = first_line(program, flags.get(name, '-v')) if program else 'not installed'
    return texts


def facts(options, names, emulated):
    server, client = servers.cpus()
    return {
        'processor': processor(), 'cpus': os.cpu_count(), 'memory_mib': memory_mib(), 'kernel': platform.release(),
        'system': platform.platform(), 'emulated': emulated, 'ktls': ktls_works(), 'server_cpu': server, 'client_cpu': client,
        'one_core': are_siblings(server, client), 'versions': versions(options, names),
        'certificate': 'ECDSA P-256, self-signed', 'suite': 'TLS_AES_128_GCM_SHA256 unless a row says otherwise',
    }
