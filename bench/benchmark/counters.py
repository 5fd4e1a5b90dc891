"""Kernel counters of processes: CPU time, context switches, memory, and system calls by perf or strace."""
import os
import re
import shutil

from . import tracers

CLOCK_TICKS_MIN = 10                # the ratio of user and system time requires this number of ticks
CLOCK_TICKS = os.sysconf('SC_CLK_TCK')


def process_tree(pid):
    """The pids of a process and of all its descendants."""
    pids = [pid]
    for one in pids:
        try:
            for task in os.listdir(f'/proc/{one}/task'):
                with open(f'/proc/{one}/task/{task}/children', encoding='ascii') as stream:
                    pids += [int(child) for child in stream.read().split()]
        except FileNotFoundError:
            continue
    return pids


def read(path):
    with open(path, encoding='ascii', errors='replace') as stream:
        return stream.read()


def cpu_seconds(pids):
    """{'cpu', 'user', 'system'} in seconds: cpu by the scheduler's clock, user and system by clock ticks."""
    ran = user = system = 0
    for pid in pids:
        fields = read(f'/proc/{pid}/stat').rpartition(')')[2].split()
        user += int(fields[11])
        system += int(fields[12])
        for task in os.listdir(f'/proc/{pid}/task'):
            ran += int(read(f'/proc/{pid}/task/{task}/schedstat').split()[0])
    return {'cpu': ran / 1e9, 'user': user / CLOCK_TICKS, 'system': system / CLOCK_TICKS}


def context_switches(pids):
    total = 0
    for pid in pids:
        for task in os.listdir(f'/proc/{pid}/task'):
            found = re.findall(r'ctxt_switches:\s+(\d+)', read(f'/proc/{pid}/task/{task}/status'))
            total += sum(map(int, found))
    return total


def memory_kib(pids):
    """The proportional set size: shared pages count once."""
    return sum(int(line.split()[1]) for pid in pids for line in read(f'/proc/{pid}/smaps_rollup').splitlines()
               if line.startswith('Pss:'))


def steal_ticks():
    """Steal time since boot in clock ticks; see proc_stat(5)."""
    return int(read('/proc/stat').split(maxsplit=9)[8])


def snapshot(pids):
    return {**cpu_seconds(pids), 'switches': context_switches(pids)}


def usage_between(before, after):
    """The usage between two snapshots. User and system time are scaled so that their sum is the scheduler's time, which is exact."""
    used = {name: after[name] - before[name] for name in after}
    ticks = used['user'] + used['system']
    for name in ('user', 'system'):
        used[name] = used['cpu'] * used[name] / ticks if ticks >= CLOCK_TICKS_MIN / CLOCK_TICKS else None
    return used


class SystemCalls:
    """Counts the system calls of processes inside a with block by perf or strace; `total` is None if both are missing or fail."""

    def __init__(self, pids):
        self.pids, self.total = pids, None
        self.tracer = self.pattern = None

    def __enter__(self):
        if shutil.which('perf'):
            self.tracer = tracers.Perf('stat', '-x,', '-e', 'raw_syscalls:sys_enter', '-p', ','.join(map(str, self.pids)))
            self.pattern = r'^(\d+),,raw_syscalls'
        elif shutil.which('strace'):
            self.tracer = tracers.Strace(self.pids)
            self.pattern = r'^100\.00\s+\S+\s+(?:\d+\s+)?(\d+)\s+(?:\d+\s+)?total'
        return self

    def __exit__(self, *_):
        found = self.tracer and re.search(self.pattern, self.tracer.end(), re.M)
        self.total = int(found.group(1)) if found else None
