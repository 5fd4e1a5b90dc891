"""Starts the server under test with a generated configuration, reads its logs and processes, and stops it."""
import fcntl
import json
import os
import signal
import socket
import subprocess
import tempfile
import time

SLUICE = os.environ.get('SLUICE', os.path.join(os.path.dirname(__file__), '../../../build/sluice'))
# Multiplies all timeouts: an emulated machine is slower by this factor. No test asserts a duration.
PATIENCE = float(os.environ.get('SLUICE_PATIENCE', '1'))
# The loop backends to test. Meson sets SLUICE_LOOP for a test that it runs once per backend.
LOOPS = [loop for loop in os.environ.get('SLUICE_LOOPS', 'epoll io_uring').split() if os.environ.get('SLUICE_LOOP', loop) == loop]
FIRST_PORT = int(os.environ.get('SLUICE_FIRST_PORT', '21100'))
LAST_PORT = FIRST_PORT + 800
RUNS = ' runs, '    # in the line of the error log that a configuration causes when its workers are ready
SANITIZER_MARKS = ('ERROR: AddressSanitizer', 'ERROR: LeakSanitizer', 'runtime error:', 'Assertion ')
ACCESS_FIELDS = ('request_uri', 'status', 'tls_path', 'tls_path_reason', 'bytes_zero_copy', 'body_bytes_sent',
                 'ssl_protocol', 'ssl_cipher', 'ssl_session_reused', 'request_method')
PROOF = '|'.join(f'${field}' for field in ACCESS_FIELDS)

# Set if the kernel must encrypt every large response.
KERNEL_ONLY = os.environ.get('SLUICE_TRANSPORTS') == 'ktls'

_next_port = FIRST_PORT + os.getpid() * 7 % 700
_held_ports = []


def free_port():
    """A port on 127.0.0.1 that is not in use. A lock reserves it among the test processes, because servers can share a port without an
    error (SO_REUSEPORT)."""
    global _next_port
    for _ in range(800):
        _next_port = FIRST_PORT if _next_port >= LAST_PORT else _next_port + 1
        lock = open(os.path.join(tempfile.gettempdir(), f'sluice-test-port-{_next_port}'), 'ab')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(('127.0.0.1', _next_port))
        except OSError:
            lock.close()
            continue
        _held_ports.append(lock)
        return _next_port
    raise RuntimeError('no free port')


def yaml(value, indent=0):
    """A tree of dicts, lists and scalars as block YAML. Scalars are in double quotes, except integers and `on` and `off`."""
    pad = '  ' * indent
    if isinstance(value, dict):
        lines = []
        for key, inner in value.items():
            name = key if key.replace('_', '').isalnum() else json.dumps(key)
            if isinstance(inner, (dict, list)) and inner:
                lines.append(f'{pad}{name}:\n{yaml(inner, indent + 1)}')
            else:
                lines.append(f'{pad}{name}: {yaml(inner)}')
        return '\n'.join(lines) if lines else '{}'
    if isinstance(value, list):
        lines = []
        for item in value:
            text = yaml(item, indent + 1)
            lines.append(f'{pad}- {text.lstrip()}' if isinstance(item, (dict, list)) else f'{pad}- {text}')
        return '\n'.join(lines) if lines else '[]'
    if value is True or value is False:
        return 'on' if value else 'off'
    if isinstance(value, int):
        return str(value)
    return json.dumps(str(value), ensure_ascii=False)


class Server:
    """One server process. `http` and `main` are merged into the default configuration; `servers` is its list of servers."""

    def __init__(self, folder, servers, loop='epoll', http=None, main=None, environment=None, command_prefix=(), arguments=()):
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.error_path = os.path.join(self.folder, 'error.log')
        self.access_path = os.path.join(self.folder, 'access.log')
        self.output_path = os.path.join(self.folder, 'output')
        self.config_path = os.path.join(self.folder, 'sluice.yaml')
        self.process = None
        self.command_prefix, self.arguments = list(command_prefix), list(arguments)
        self.environment = environment or {}
        tree = {
            'worker_processes': 1,
            'pid': os.path.join(self.folder, 'pid'),
            'error_log': {'path': self.error_path, 'level': 'info'},
            'events': {'use': loop},
            'http': {
                'log_format': {'proof': PROOF},
                'access_log': {'path': self.access_path, 'format': 'proof', 'flush': '20ms'},
                **({'ssl_ktls': 'on'} if KERNEL_ONLY else {}),  # `auto` may find that user space is faster
                **(http or {}),
                'server': servers,
            },
        }
        tree.update(main or {})
        tree.setdefault('worker_heartbeat_timeout', '60s')  # tests stop workers, and run on loaded machines
        self.tree = {key: value for key, value in tree.items() if value is not None}
        self.write_configuration()

    def write_configuration(self):
        """Writes `tree` to the configuration file."""
        with open(self.config_path, 'w', encoding='utf-8') as stream:
            stream.write(yaml(self.tree) + '\n')

    def start(self, ports):
        """Starts the server and returns once every port accepts connections."""
        output = open(self.output_path, 'ab')
        self.process = subprocess.Popen([*self.command_prefix, SLUICE, '-c', self.config_path, *self.arguments], stdin=subprocess.DEVNULL,
                                        stdout=output, stderr=output, env={**os.environ, **self.environment})
        output.close()
        deadline = time.monotonic() + 20 * PATIENCE
        for port in ports:
            while True:
                if self.process.poll() is not None:
                    raise RuntimeError(f'the server ended with {self.process.returncode}:\n{self.output()}')
                try:
                    socket.create_connection(('127.0.0.1', port), timeout=1).close()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        self.stop(check=False)
                        raise RuntimeError(f'no process listens on port {port}:\n{self.output()}') from None
                    time.sleep(0.05)
        return self

    def sent_without_kernel(self):
        """Access log rows of large responses that the kernel could have encrypted and did not. Not counted: the path "openssl", where
        OpenSSL offers no key, and the reason "bytes", where the body is in memory. The list is empty if the log has other fields."""
        if self.tree['http']['log_format'].get('proof') != PROOF:
            return []
        return [str(row) for row in self.access() if row.get('ssl_protocol', '-') != '-' and row['status'] in ('200', '206')
                and int(row['body_bytes_sent']) >= 65536 and row['tls_path_reason'] != 'bytes'
                and not row['tls_path'].startswith(('ktls-', 'openssl'))]

    def stop(self, how=signal.SIGTERM, check=True):
        """Stops the server. With `check`, each of these is an error: an exit status other than 0, a sanitizer's report, a large response
        that the kernel should have encrypted."""
        if self.process is None:
            return 0
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(20 * PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                if check:
                    raise RuntimeError(f'the server did not end after signal {how}:\n{self.output()}') from None
        if check:
            output = self.output()
            marks = [mark for mark in SANITIZER_MARKS if mark in output]
            if process.returncode != 0 or marks:
                raise RuntimeError(f'the server ended with {process.returncode} {marks}:\n{output}')
            if KERNEL_ONLY and (others := self.sent_without_kernel()):
                raise RuntimeError('not by the kernel:\n' + '\n'.join(others))
        return process.returncode

    def output(self):
        return read_text(self.output_path) + read_text(self.error_path)

    def errors(self):
        return read_text(self.error_path)

    def access(self):
        """The rows of the access log as dicts, one for each request, in order."""
        lines = read_text(self.access_path).splitlines()
        return [dict(zip(ACCESS_FIELDS, line.rsplit('|', len(ACCESS_FIELDS) - 1))) for line in lines]     # the URI may contain any character

    def access_for(self, uri, count=1):
        """Waits for the last `count` rows for this URI: the log is written in batches."""
        deadline = time.monotonic() + 10 * PATIENCE
        while True:
            rows = [row for row in self.access() if row['request_uri'] == uri]
            if len(rows) >= count:
                return rows[-count:]
            if time.monotonic() > deadline:
                raise AssertionError(f'no {count} access-log lines for {uri}:\n{read_text(self.access_path)[-2000:]}')
            time.sleep(0.05)

    def processes(self):
        """Process ids of the server and its children."""
        found = [self.process.pid]
        for pid in found:
            try:
                with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as stream:
                    found += [int(child) for child in stream.read().split()]
            except FileNotFoundError:
                continue
        return found

    def workers(self):
        return self.processes()[1:]

    def ticks(self):
        """User and system time of all processes of the server, in clock ticks."""
        return sum(process_ticks(pid) for pid in self.processes())


def process_ticks(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as stream:
        fields = stream.read().rsplit(')', 1)[1].split()
    return int(fields[11]) + int(fields[12])


def read_text(path):
    try:
        with open(path, encoding='utf-8', errors='replace') as stream:
            return stream.read()
    except FileNotFoundError:
        return ''
