#!/usr/bin/env python3
"""Server CPU per request, per gigabyte and memory per idle connection, beside nginx and h2o, in interleaved rounds.

usage: figures.py [--sluice build/sluice] [--blast build/bench/blast] [--rounds 5] [--seconds 3] [--idle 10000]
                  [--only nginx,h2o,sluice-epoll] [--files 1k,1m,100m] [--plain]

Every server has one worker on CPU 0, the load comes from CPU 1. What is counted is the CPU time of the server's
processes (/proc/PID/task/*/schedstat: user and system, in nanoseconds), not throughput, so a client that is too slow
does not change the figure. TLS 1.3, TLS_AES_128_GCM_SHA256, keep-alive, 64 connections, user-space encryption unless
--ktls says otherwise.
"""
import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

SUITE = 'TLS_AES_128_GCM_SHA256'
SIZES = {'1k': 1024, '16k': 16384, '100k': 102400, '1m': 1 << 20, '100m': 100 << 20}
CONNECTIONS = 64
FIRST_PORT = int(os.environ.get('FIGURES_PORT', '21900'))

NGINX = '''
daemon off; worker_processes 1; worker_rlimit_nofile 20000; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 19000; }}
http {{
  sendfile on; access_log off; open_file_cache max=1000; keepalive_timeout 1h; keepalive_requests 1000000000;
  ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {folder}/crt; ssl_certificate_key {folder}/key; {ktls}
  server {{ listen 127.0.0.1:{port}{ssl}; root {folder}/www; }}
}}
'''
H2O = '''
num-threads: 1
max-connections: 19000
http1-request-timeout: 3600
error-log: /dev/null
listen:
  host: 127.0.0.1
  port: {port}
{ssl}
hosts:
  default:
    paths:
      /:
        file.dir: {folder}/www
'''
H2O_SSL = '''  ssl:
    certificate-file: {folder}/crt
    key-file: {folder}/key
    ocsp-update-interval: 0
    cipher-suite: ECDHE-ECDSA-AES128-GCM-SHA256'''
SLUICE = '''
worker_processes: 1
pid: {folder}/{name}.pid
error_log: {{path: {folder}/{name}.log, level: warn}}
events: {{use: {loop}, worker_connections: 19000}}
http:
  access_log: off
  keepalive_timeout: 1h
  keepalive_requests: 1000000000
  server:
    - listen: 127.0.0.1:{port}{ssl}
      root: {folder}/www
      ssl_certificate: {folder}/crt
      ssl_certificate_key: {folder}/key
      ssl_ktls: {ktls}
'''


class Server:
    """One server under measurement, started on CPU 0."""

    def __init__(self, name, folder, port, arguments):
        self.name, self.folder, self.port = name, folder, port
        self.process = self.start(arguments)

    def start(self, arguments):
        ssl = '' if arguments.plain else ' ssl'
        ktls = 'on' if arguments.ktls else 'off'
        path = os.path.join(self.folder, f'{self.name}.conf')
        if self.name == 'nginx':
            text = NGINX.format(folder=self.folder, port=self.port, ssl=ssl, ktls='ssl_conf_command Options KTLS;' if arguments.ktls else '')
            command = [find('nginx'), '-p', self.folder, '-c', path]
        elif self.name == 'h2o':
            text = H2O.format(folder=self.folder, port=self.port, ssl='' if arguments.plain else H2O_SSL.format(folder=self.folder))
            command = [find('h2o'), '-c', path]
        else:
            loop = self.name.partition('-')[2] or 'epoll'
            text = SLUICE.format(folder=self.folder, port=self.port, ssl=ssl, name=self.name, loop=loop, ktls=ktls)
            command = [arguments.sluice, '-c', path]
        with open(path, 'w', encoding='ascii') as stream:
            stream.write(text)
        with open(os.path.join(self.folder, f'{self.name}.out'), 'wb') as output:
            process = subprocess.Popen(['taskset', '-c', '0', *command], stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        for _ in range(200):
            if process.poll() is not None:
                break
            try:
                socket.create_connection(('127.0.0.1', self.port), timeout=1).close()
                return process
            except OSError:
                time.sleep(0.05)
        sys.exit(f'{self.name} does not listen: see {self.folder}')

    def pids(self):
        found = [self.process.pid]
        for pid in found:
            for task in os.listdir(f'/proc/{pid}/task'):
                with open(f'/proc/{pid}/task/{task}/children', encoding='ascii') as stream:
                    found += [int(child) for child in stream.read().split()]
        return found

    def cpu_seconds(self):
        total = 0
        for pid in self.pids():
            for task in os.listdir(f'/proc/{pid}/task'):
                with open(f'/proc/{pid}/task/{task}/schedstat', encoding='ascii') as stream:
                    total += int(stream.read().split()[0])
        return total / 1e9

    def memory_kib(self):
        """Proportional set size of its processes."""
        total = 0
        for pid in self.pids():
            with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as stream:
                total += sum(int(line.split()[1]) for line in stream if line.startswith('Pss:'))
        return total

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def find(program):
    path = shutil.which(program, path=os.environ['PATH'] + ':/usr/sbin:/sbin')
    return path or sys.exit(f'{program} is not installed')


class Blast:
    """The load on CPU 1: connected and ready when entered, run by go()."""

    def __init__(self, arguments, server, path, connections, seconds):
        kind = ['-n'] if arguments.plain else ['-x', SUITE]
        self.process = subprocess.Popen(['taskset', '-c', '1', arguments.blast, *kind, '-w', '-c', str(connections), '-s', str(seconds),
                                         str(server.port), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            sys.exit(f'{server.name}: no load could be made')

    def go(self):
        self.process.stdin.close()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def measure_load(arguments, server, name):
    """(CPU seconds per answer, CPU seconds per GB) of one run; connecting and shaking hands is not counted."""
    with Blast(arguments, server, f'/{name}', CONNECTIONS, arguments.seconds) as load:
        before = server.cpu_seconds()
        done = load.go()
        spent = server.cpu_seconds() - before
    return spent / max(done['answers'], 1), spent / max(done['bytes'], 1) * 1e9


def measure_idle(arguments, server):
    """KiB per idle connection, after one request each."""
    with Blast(arguments, server, '/1k', CONNECTIONS, 0.5) as load:
        load.go()
    time.sleep(0.5)
    before = server.memory_kib()
    with Blast(arguments, server, '/1k', arguments.idle, 0):
        time.sleep(2)
        return (server.memory_kib() - before) / arguments.idle


def show(title, unit, scale, values):
    """One table: median, spread (lowest and highest), ratios of the medians to nginx's and h2o's."""
    print(f'\n{title}')
    print(f'{"":16} {"median":>10} {"lowest":>10} {"highest":>10}  {unit:12} {"/nginx":>8} {"/h2o":>8}')
    medians = {name: statistics.median(found) * scale for name, found in values.items() if found}
    for name, found in values.items():
        if not found:
            continue
        ratios = [f'{medians[name] / medians[other]:8.3f}' if other in medians else f'{"-":>8}' for other in ('nginx', 'h2o')]
        print(f'{name:16} {medians[name]:10.3f} {min(found) * scale:10.3f} {max(found) * scale:10.3f}  {unit:12} {" ".join(ratios)}')


def prepare(folder, files):
    os.makedirs(os.path.join(folder, 'www'))
    for name in {'1k', *files}:
        with open(os.path.join(folder, 'www', name), 'wb') as stream:
            stream.write(os.urandom(SIZES[name]))
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout',
                    os.path.join(folder, 'key'), '-out', os.path.join(folder, 'crt'), '-days', '30', '-subj', '/CN=localhost'],
                   check=True, stderr=subprocess.DEVNULL)
    for path, _, names in os.walk(folder):
        os.chmod(path, 0o755)
        for name in names:
            os.chmod(os.path.join(path, name), 0o644)


def versions(arguments):
    for name, command in (('nginx', [find('nginx'), '-v']), ('h2o', [find('h2o'), '-v']), ('sluice', [arguments.sluice, '-v']),
                          ('OpenSSL', ['openssl', 'version']), ('kernel', ['uname', '-r'])):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f'{name}: {(done.stdout + done.stderr).splitlines()[0]}')
    with open('/proc/cpuinfo', encoding='ascii') as stream:
        print(next((line.split(':')[1].strip() for line in stream if line.startswith('model name')), 'unknown CPU'))


def measure_loads(arguments, folder, names, files):
    servers = []
    try:
        for at, name in enumerate(names):
            servers.append(Server(name, folder, FIRST_PORT + at, arguments))
        found = {name: {server.name: ([], []) for server in servers} for name in files}
        for turn in range(arguments.rounds):
            for name in files:
                for server in servers[turn % len(servers):] + servers[:turn % len(servers)]:
                    for place, value in zip(found[name][server.name], measure_load(arguments, server, name)):
                        place.append(value)
        for name in files:
            if SIZES[name] < 1 << 20:
                show(f'server CPU per request, {name}', 'us', 1e6, {who: values[0] for who, values in found[name].items()})
            else:
                show(f'server CPU per GB, {name}', 's', 1, {who: values[1] for who, values in found[name].items()})
    finally:
        for server in servers:
            server.stop()


def measure_idles(arguments, folder, names):
    idle = {}
    for at, name in enumerate(names):
        server = Server(name, folder, FIRST_PORT + 20 + at, arguments)
        try:
            idle[name] = [measure_idle(arguments, server)]
        finally:
            server.stop()
    show(f'memory per idle connection, {arguments.idle} of them', 'KiB', 1, idle)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))     # so that no server is left behind
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser()
    parser.add_argument('--sluice', default=os.path.join(here, 'build/sluice'))
    parser.add_argument('--blast', default=os.path.join(here, 'build/bench/blast'))
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=3)
    parser.add_argument('--idle', type=int, default=0)
    parser.add_argument('--only', default='nginx,h2o,sluice-epoll,sluice-io_uring')
    parser.add_argument('--files', default='1k,1m,100m')
    parser.add_argument('--plain', action='store_true')
    parser.add_argument('--ktls', action='store_true')
    arguments = parser.parse_args()
    arguments.sluice, arguments.blast = os.path.abspath(arguments.sluice), os.path.abspath(arguments.blast)
    names, files = arguments.only.split(','), [name for name in arguments.files.split(',') if name]
    versions(arguments)
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder, files)
        if files:
            measure_loads(arguments, folder, names, files)
        if arguments.idle:
            measure_idles(arguments, folder, names)


if __name__ == '__main__':
    main()
