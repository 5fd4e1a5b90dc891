"""Latency of small responses while the same worker sends files that are not in memory, compared with nginx and h2o."""
from .. import blocks
from ..model import Group, Load, Setup

TITLE = 'Small responses while large files are read from disk'
PROBE = Load('1k', 1, 'cold_cache', rate=1000)
TRANSPORTS = ('plain', 'user', 'ktls')
PEERS = ('nginx', 'h2o')
SHOWN = ('quiet_p99', 'p99', 'cold_ratio', 'p50', 'longest', 'disk', 'taken', 'cold_rate')


def plan(options):
    loops = ('io_uring', 'epoll') if options.loop == 'auto' else (options.loop,)
    setups = [Setup(server, transport, loop) for transport in TRANSPORTS
              for server, loop in (*((peer, '') for peer in options.peers or PEERS), *(('sluice', loop) for loop in loops))]
    return [Group(PROBE, setups, count_calls=False)]


def present(found, _results):
    if not found:
        return []
    return [blocks.Text('One request at a time, at a fixed rate, first alone and then with four readers. Each reader requests a 64 MiB file of its '
                        'own repeatedly, while the benchmark makes the kernel drop these files from memory. Latency needs a '
                        'quiet machine: a run in which a hypervisor took CPU time is repeated, up to twelve times '
                        '(the table has the time taken in the last run). The time that the loop waits for a disk is sampled every millisecond and does not need one.'),
            blocks.table_of(PROBE, found, SHOWN)]
