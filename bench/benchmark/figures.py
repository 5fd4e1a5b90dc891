"""Figures from counts: median and spread over rounds, quantiles of latency, ratios of neighbouring rounds."""
import statistics

UNSTEADY = 0.15                     # a spread beyond this share of the median is marked


def quantile(histogram, share):
    """The duration in ns below which `share` of the counts lie, of [[least ns, count], ...] in order; None if empty."""
    total = sum(count for _, count in histogram)
    if total == 0:
        return None
    rank, seen = share * total, 0
    for least, count in histogram:
        seen += count
        if seen >= rank:
            return least
    return histogram[-1][0]


def merged(histograms):
    """The sum of histograms."""
    counts = {}
    for histogram in histograms:
        for least, count in histogram:
            counts[least] = counts.get(least, 0) + count
    return [[least, counts[least]] for least in sorted(counts)]


def per(top, bottom, scale=1):
    """A figure that is the ratio of two counts; None if the second is zero."""
    def figure(reading):
        above, below = reading.get(top), reading.get(bottom)
        return above / below * scale if above is not None and below else None
    return figure


def latency(share, name='latency'):
    def figure(reading):
        found = quantile(reading.get(name) or [], share)
        return None if found is None else found / 1e3
    return figure


def plainly(name, scale=1):
    return lambda reading: None if reading.get(name) is None else reading[name] * scale


def cold_ratio(reading):
    loaded, quiet = latency(0.99)(reading), latency(0.99, 'quiet')(reading)
    return loaded / quiet if loaded and quiet else None


def answer_time(reading):
    """The mean response time in ms by Little's law, which is valid also if a response takes longer than a round."""
    return reading['connections'] * reading['seconds'] / reading['answers'] * 1e3 if reading.get('answers') and 'connections' in reading else None


def switches(reading):
    return reading['switches'] / reading['seconds'] if reading.get('seconds') and 'switches' in reading else None


# name: (title, unit, figure of one reading, True if less is better)
FIGURES = {
    'rate': ('requests', '/s', per('answers', 'seconds'), False),
    'throughput': ('throughput', 'MB/s', per('bytes', 'seconds', 1e-6), False),
    'cpu_request': ('server CPU per request', 'us', per('cpu', 'answers_all', 1e6), True),
    'user_request': ('of it in user space', 'us', per('user', 'answers_all', 1e6), True),
    'system_request': ('of it in the kernel', 'us', per('system', 'answers_all', 1e6), True),
    'us_kernel': ('in the kernel', 'us', plainly('us_kernel'), True),
    'us_crypto': ('libcrypto', 'us', plainly('us_crypto'), True),
    'us_ssl': ('libssl', 'us', plainly('us_ssl'), True),
    'us_c_library': ('C library', 'us', plainly('us_c_library'), True),
    'us_own': ('own', 'us', plainly('us_own'), True),
    'cpu_gb': ('server CPU per GB', 's', per('cpu', 'bytes_all', 1e9), True),
    'cpu_mb': ('server CPU per MB', 'ns', per('cpu', 'bytes_all', 1e15), True),
    'cpu_share': ('server CPU', '%', per('cpu', 'elapsed', 100), True),
    'client_share': ('client CPU', '%', per('client_cpu', 'elapsed', 100), True),
    'shakes': ('handshakes per CPU second', '/s', per('handshakes', 'cpu'), False),
    'switches': ('context switches', '/s', switches, True),
    'switches_request': ('context switches per request', '', per('switches', 'answers_all'), True),
    'answer_time': ('response time (connections / rate)', 'ms', answer_time, True),
    'p50': ('latency, median', 'us', latency(0.5), True),
    'p99': ('latency, 99 %', 'us', latency(0.99), True),
    'p999': ('latency, 99.9 %', 'us', latency(0.999), True),
    'longest': ('latency, maximum', 'us', latency(1), True),
    'quiet_p99': ('latency alone, 99 %', 'us', latency(0.99, 'quiet'), True),
    'cold_ratio': ('with readers / alone', '', cold_ratio, True),
    'disk': ('waiting for a disk', '%', plainly('disk', 100), True),
    'taken': ('taken by a hypervisor', 'ticks', plainly('taken'), True),
    'cold_rate': ('readers', 'MB/s', plainly('cold_rate', 1e-6), False),
    'memory': ('memory', 'KiB', plainly('memory'), True),
    'memory_connection': ('memory per connection', 'KiB', plainly('memory_connection'), True),
}


def titled(name):
    """'throughput, MB/s'"""
    return ', '.join(filter(None, FIGURES[name][:2]))


# Quantity and unit as the title of an axis.
QUANTITIES = {'cpu_gb': 'CPU seconds per GB sent', 'cpu_request': 'CPU microseconds per response', 'rate': 'responses per second',
              'throughput': 'MB sent per second', 'memory': 'memory of the server in KiB', 'memory_connection': 'memory per connection in KiB',
              'shakes': 'handshakes per CPU second', 'p99': '99th percentile of the latency in microseconds'}


def quantity(name):
    title, unit = FIGURES[name][:2]
    return QUANTITIES.get(name) or f'{title}{f" in {unit}" if unit else ""}'


def values_of(readings, name):
    """The figure of each round; rounds without it are omitted."""
    found = (FIGURES[name][2](reading) for reading in readings)
    return [value for value in found if value is not None]


def spread(values):
    """The spread of the rounds as a share of their median: from lowest to highest; with five or more rounds, of the middle half."""
    middle = statistics.median(values) if values else 0
    if len(values) < 2 or middle == 0:
        return 0.0
    if len(values) >= 5:
        quarters = statistics.quantiles(values, n=4)
        return (quarters[2] - quarters[0]) / abs(middle)
    return (max(values) - min(values)) / abs(middle)


def summary(readings, name):
    """{'median', 'low', 'high', 'spread', 'unsteady'}, or None if nothing was measured."""
    values = values_of(readings, name)
    if not values:
        return None
    wide = spread(values)
    return {'median': statistics.median(values), 'low': min(values), 'high': max(values), 'spread': wide,
            'unsteady': wide > UNSTEADY}


def paired_ratio(ours, theirs, name):
    """The median of the ratios of neighbouring rounds, or None; a drift of the machine's speed does not change it."""
    first, second = ([FIGURES[name][2](reading) for reading in readings] for readings in (ours, theirs))
    ratios = [a / b for a, b in zip(first, second) if a is not None and b]
    return statistics.median(ratios) if ratios else None


def number(value):
    """Three significant digits, with thousands separators."""
    if value is None:
        return '-'
    if abs(value) >= 1000:
        return f'{value:,.0f}'
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f'{value:.{digits}f}'


def shown(found):
    """'12.3 ±4 %', with '(!)' if the spread is too wide; '-' if there is no value."""
    if found is None:
        return '-'
    apart = f' ±{found["spread"] * 50:.0f} %' if found['spread'] else ''
    return f'{number(found["median"])}{apart}{" (!)" if found["unsteady"] else ""}'
