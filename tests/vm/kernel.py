"""Reads the TLS state of the guest's kernel: counters, the record number of another process's socket, and system calls (strace)."""
import contextlib
import ctypes
import glob
import os
import re
import shutil
import socket
import struct
import subprocess

from kit.lifetime import wait_for

SOL_TLS, TLS_TX = 282, 1
TLS_STAT = '/proc/net/tls_stat'
# struct tls12_crypto_info_*: cipher number -> (offset of rec_seq after header, iv, key and salt, size of the struct).
CRYPTO_INFO_LAYOUTS = {51: (4 + 8 + 16 + 4, 40), 52: (4 + 8 + 32 + 4, 56), 54: (4 + 12 + 32 + 0, 56)}


def counters():
    with open(TLS_STAT, encoding='ascii') as stream:
        return {name: int(value) for name, value in (line.split() for line in stream)}


def idle_counters():
    """Waits until no kTLS socket exists, since those of an ended server are released later; returns the counters."""
    wait_for(lambda: counters()['TlsCurrTxSw'] == 0, 'no kTLS socket', 60)
    return counters()


def socket_inode(server_port, client_port):
    """The inode of the server's socket of a connection on 127.0.0.1."""
    with open('/proc/net/tcp', encoding='ascii') as stream:
        for line in stream.readlines()[1:]:
            fields = line.split()
            local, remote = (int(fields[at].split(':')[1], 16) for at in (1, 2))
            if local == server_port and remote == client_port:
                return fields[9]
    raise AssertionError(f'no connection {server_port} <- {client_port}')


def server_socket(pids, server_port, client_port):
    """(pid, descriptor) of the server's socket."""
    expected = f'socket:[{socket_inode(server_port, client_port)}]'
    for pid in pids:
        for number in os.listdir(f'/proc/{pid}/fd'):
            try:
                if os.readlink(f'/proc/{pid}/fd/{number}') == expected:
                    return pid, int(number)
            except FileNotFoundError:
                continue
    raise AssertionError('no process holds the socket')


def record_sequence(pid, number):
    """rec_seq (the number of the next record) of a kTLS socket of another process. Raises OSError if the socket has no kTLS."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    descriptor = libc.syscall(438, pidfd, number, 0)      # pidfd_getfd
    os.close(pidfd)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), 'pidfd_getfd')
    with socket.socket(fileno=descriptor) as duplicate:
        cipher = struct.unpack('HH', duplicate.getsockopt(SOL_TLS, TLS_TX, 4))[1]
        offset, size = CRYPTO_INFO_LAYOUTS[cipher]
        return int.from_bytes(duplicate.getsockopt(SOL_TLS, TLS_TX, size)[offset:offset + 8], 'big')


def tracer_of(path):
    """TracerPid in a /proc/PID/task/TID/status; 0 if the thread has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(path, encoding='ascii') as stream:
        return int(re.search(r'^TracerPid:\s*(\d+)', stream.read(), re.M)[1])
    return 0


class Strace:
    """Records the calls of a process on its sockets. `inject` makes a call fail ("setsockopt:error=EPERM:when=2")."""
    CALLS = 'sendfile,sendto,sendmsg,sendmmsg,write,writev,splice,setsockopt,io_uring_enter,mmap,preadv2'

    def __init__(self, pid, path, inject=None):
        self.path = path
        faults = ['-e', f'inject={inject}'] if inject else []
        self.process = subprocess.Popen([shutil.which('strace'), '-f', '-p', str(pid), '-e', f'trace={self.CALLS}', *faults, '-o', path],
                                        stderr=subprocess.PIPE)
        self.wait_for_threads(pid)

    def wait_for_threads(self, pid):
        """Waits until strace has attached to each thread of the process."""
        def attached():
            assert self.process.poll() is None, 'strace has ended'
            return all(tracer_of(path) == self.process.pid for path in glob.glob(f'/proc/{pid}/task/*/status'))
        wait_for(attached, 'strace attaches', 60)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        with open(self.path, encoding='utf-8', errors='replace') as stream:
            return stream.read()


def bytes_by_call(trace, number):
    """The bytes that the system calls wrote to the descriptor: {'sendfile': n, 'sendto': m, ...}."""
    sums = {}
    for call, result in re.findall(rf'\b(\w+)\({number}, .*\)\s+= (\d+)', trace):
        if call != 'setsockopt':
            sums[call] = sums.get(call, 0) + int(result)
    for target, result in re.findall(r'\bsplice\(\d+, [^,]+, (\d+), .*\)\s+= (\d+)', trace):
        if int(target) == number:
            sums['splice'] = sums.get('splice', 0) + int(result)
    return sums


def set_sysctl(name, value):
    path = '/proc/sys/' + name.replace('.', '/')
    with open(path, encoding='ascii') as stream:
        before = stream.read().strip()
    with open(path, 'w', encoding='ascii') as stream:
        stream.write(str(value))
    return before
