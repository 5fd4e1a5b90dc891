"""Latency of small responses while the same worker sends files that are not in memory, compared with nginx and h2o."""
from .. import blocks
from ..model import Group, Load, Setup

TITLE = 'Small responses while large files are read from disk'
PROBE = Load('1k', 1, 'cold_cache', rate=1000)
TRANSPORTS = ('plain', 'user', 'ktls')
PEERS = ('nginx', 'h2o')
FIGURE_NAMES = ('baseline_p99', 'p99', 'readers_ratio', 'p50', 'latency_max', 'iteration_p99', 'iteration_max', 'iteration_cpu_p99', 'iteration_cpu_max',
                'disk_wait', 'steal_ticks', 'readers_rate')


def plan(options):
    loops = ('io_uring', 'epoll') if options.loop == 'auto' else (options.loop,)
    setups = [Setup(server, transport, loop) for transport in TRANSPORTS
              for server, loop in (*((peer, '') for peer in options.peers or PEERS), *(('sluice', loop) for loop in loops))]
    return [Group(PROBE, setups, count_calls=False)]


def report_elements(all_outcomes, _results):
    if not all_outcomes:
        return []
    return [blocks.Text('One request at a time, at a fixed rate, first without and then with four readers. Each reader requests a separate 8 MiB '
                        'file eight times a second, while the benchmark drops these files from the page cache. Steal time adds to the latency: a run '
                        'with steal time is repeated, at most twelve times; the table has the steal time of the last run. The time that the '
                        'event loop waits for a disk is sampled every millisecond; steal time does not affect it. An iteration of the event loop is the '
                        'time between two waits for events, with the readers; the elapsed time includes the time in which other processes run.'),
            blocks.table_of(PROBE, all_outcomes, FIGURE_NAMES)]
