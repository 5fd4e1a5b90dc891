"""How long small answers take while the same worker sends files that are not in memory, beside nginx and h2o."""
from .. import blocks
from ..model import Group, Load, Setup

TITLE = 'Small answers beside files that are not in memory'
PROBE = Load('1k', 1, 'cold', rate=1000)
PATHS = ('plain', 'user', 'ktls')
PEERS = ('nginx', 'h2o')
SHOWN = ('quiet_p99', 'p99', 'cold_ratio', 'p50', 'longest', 'disk', 'taken', 'cold_rate')


def plan(options):
    loops = ('io_uring', 'epoll') if options.loop == 'auto' else (options.loop,)
    setups = [Setup(server, path, loop) for path in PATHS
              for server, loop in (*((peer, '') for peer in options.peers or PEERS), *(('sluice', loop) for loop in loops))]
    return [Group(PROBE, setups, count_calls=False)]


def present(found, _results):
    if not found:
        return []
    return [blocks.Text('One request at a time, at a fixed rate, alone and then beside four readers, each of whom asks for a 64 MiB file of its '
                        'own again and again, while the kernel is told all the time to drop these files from its memory. Latency needs a '
                        'quiet machine, so a run during which a hypervisor took a CPU away is run again, up to twelve times '
                        '(what was taken in the last is told); the time that the loop waits for a disk, seen by looking every millisecond, does not.'),
            blocks.table_of(PROBE, found, SHOWN)]
