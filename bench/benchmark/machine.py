"""Facts of the machine, for the report: what ran, on what, and whether the kernel can encrypt."""
import os
import platform
import re
import socket
import subprocess

from . import recipes, servers

TCP_ULP = 31


def first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ''
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else ''


def ktls_works():
    """True where the kernel takes TLS on a connected socket."""
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


def are_siblings(one, other):
    """True where two CPUs are threads of one core."""
    try:
        with open(f'/sys/devices/system/cpu/cpu{one}/topology/thread_siblings_list', encoding='ascii') as stream:
            ends = [[int(number) for number in part.split('-')] for part in stream.read().strip().split(',')]
    except (OSError, ValueError):
        return False
    return any(end[0] <= other <= end[-1] for end in ends) and one != other


def memory_mib():
    return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') >> 20


def versions(options, names):
    found = {'sluice': first_line(options.sluice, '-v'), 'OpenSSL': first_line('openssl', 'version')}
    flags = {'caddy': 'version'}
    for name in names:
        program = servers.find(recipes.PROGRAMS[name])
        found[name] = first_line(program, flags.get(name, '-v')) if program else 'not installed'
    return found


def facts(options, names, emulated):
    server, client = servers.cpus()
    return {
        'processor': processor(), 'cpus': os.cpu_count(), 'memory_mib': memory_mib(), 'kernel': platform.release(),
        'system': platform.platform(), 'emulated': emulated, 'ktls': ktls_works(), 'server_cpu': server, 'client_cpu': client,
        'one_core': are_siblings(server, client), 'load_before': os.getloadavg()[0], 'versions': versions(options, names),
        'certificate': 'ECDSA P-256, self-signed', 'suite': 'TLS_AES_128_GCM_SHA256 unless a row says otherwise',
    }
