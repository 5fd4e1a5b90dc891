"""Starts and stops the measured servers, each on the server's CPU."""
import os
import shutil
import socket
import ssl
import subprocess
import time

from . import counters, model, server_configuration

PATIENCE = float(os.environ.get('SLUICE_PATIENCE', '1'))


class BenchmarkError(Exception):
    """A server or a load failed. The report contains the text."""


def find_program(program):
    """The path of an installed program, or None."""
    return shutil.which(program, path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin')


def cpus():
    """(CPU of the server, CPU of the client): the first and the last one of this process's affinity mask."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]


def origin_cpu():
    """The CPU of a proxy's upstream server: a third one if available, otherwise that of the proxy."""
    server, client = cpus()
    return next((cpu for cpu in sorted(os.sched_getaffinity(0)) if cpu not in (server, client)), server)


def client_context(setup):
    """The TLS context of a client that accepts the self-signed certificate of the setup; None without TLS."""
    if setup.transport == 'plain':
        return None
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Ports:
    """Allocates unused ports of 127.0.0.1 in ascending order."""

    def __init__(self, first, count=400):
        self.first, self.count, self.next_offset = first, count, 0

    def allocate(self):
        for _ in range(self.count):
            port = self.first + self.next_offset % self.count
            self.next_offset += 1
            with socket.socket() as probe:
                try:
                    probe.bind(('127.0.0.1', port))
                    return port
                except OSError:
                    continue
        raise BenchmarkError(f'no free port from {self.first} on')


def program_of(setup, sluice):
    """The path of the program; raises BenchmarkError if it is not installed, or if sluice was built without a required module."""
    if setup.server == 'sluice' and setup.role != 'files':
        schema = subprocess.run([sluice, 'schema'], capture_output=True, text=True, check=False).stdout
        for word in ({'proxy': 'proxy_pass', 'tcp': 'stream'}[setup.role], *(name for name, _ in setup.overrides)):
            if f'"{word}"' not in schema:
                raise BenchmarkError(f'this sluice has no module with {word}')
    program = sluice if setup.server == 'sluice' else find_program(server_configuration.PROGRAMS[setup.server])
    if not program:
        raise BenchmarkError(f'{setup.server} is not installed')
    return program


class Server:
    """A running server, pinned to a CPU. `folder` contains www, crt, key and pem (document_root.py). `log` is the path of sluice's access log,
    `origin` the port of an upstream server; a proxy without one starts a sluice as its upstream server. `environment` are further variables."""

    def __init__(self, setup, folder, ports, sluice, log='', cpu=None, origin=0, environment=None):
        self.setup, self.folder, self.port = setup, folder, ports.allocate()
        program = program_of(setup, sluice)
        has_no_upstream = setup.role == 'files' or origin
        self.origin = None if has_no_upstream else Server(model.Setup('sluice', 'plain'), folder, ports, sluice, cpu=origin_cpu())
        text, arguments = server_configuration.CONFIGURATIONS[setup.server](setup, folder, self.port, log=log, origin=self.origin.port if self.origin else origin)
        path = os.path.join(folder, f'{setup.server}-{self.port}.conf')
        with open(path, 'w', encoding='utf-8') as stream:
            stream.write(text)
        self.command = [program, *arguments, path]
        self.output_path = os.path.join(folder, f'{setup.server}-{self.port}.out')
        with open(self.output_path, 'wb') as output:
            self.process = subprocess.Popen(['taskset', '-c', str(cpus()[0] if cpu is None else cpu), *self.command], stdout=output, stderr=output,
                                            stdin=subprocess.DEVNULL, env={**os.environ, 'GOMAXPROCS': '1', 'XDG_DATA_HOME': folder,
                                                                           'XDG_CONFIG_HOME': folder, **(environment or {})})
        self.wait()

    def wait(self):
        deadline = time.monotonic() + 20 * PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(('127.0.0.1', self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        self.stop()
        with open(self.output_path, encoding='utf-8', errors='replace') as stream:
            raise BenchmarkError(f'{self.setup.label} does not listen: {"; ".join(stream.read().splitlines()[-3:])[:400]}')

    def pids(self):
        return counters.process_tree(self.process.pid)

    def stop(self):
        if self.origin:
            self.origin.stop()
        self.process.terminate()
        try:
            self.process.wait(10 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
