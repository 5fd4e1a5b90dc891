"""Waits for processes, ports and log lines, and reads the state of processes from /proc."""
import contextlib
import os
import signal
import socket
import time

from kit import server as server_kit

BIG = 8 << 20


def wait_for(check, what, seconds=15, pause=0.01):
    """Returns the first true result of check(). Fails with the text `what`, or what(), after `seconds`."""
    deadline = time.monotonic() + seconds * server_kit.PATIENCE
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(pause)


def refused(port):
    try:
        socket.create_connection(('127.0.0.1', port), timeout=1).close()
        return False
    except ConnectionRefusedError:
        return True


def alive(pid):
    """True if the process exists and is not a zombie."""
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as stream:
            return stream.read().rsplit(')', 1)[1].split()[0] != 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill_each(pids):
    """Kills these processes. The master may have reaped some of them since they were listed."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def signal_and_wait(server, how, seconds=20):
    server.process.send_signal(how)
    return server.process.wait(seconds * server_kit.PATIENCE)


def sockets_of(pid):
    """Inodes of the sockets that a process has open."""
    inodes = set()
    for name in os.listdir(f'/proc/{pid}/fd'):
        try:
            target = os.readlink(f'/proc/{pid}/fd/{name}')
        except FileNotFoundError:
            continue
        if target.startswith('socket:['):
            inodes.add(target[8:-1])
    return inodes


def peers_of(pid):
    """Remote ports of the TCP connections that a process has open."""
    inodes = sockets_of(pid)
    with open('/proc/net/tcp', encoding='ascii') as stream:
        rows = [line.split() for line in stream.readlines()[1:]]
    return {int(row[2].split(':')[1], 16) for row in rows if row[9] in inodes}
