"""Figures from counts: medians and spreads over rounds, quantiles of latency, ratios of adjacent rounds."""
import statistics

NOISY_SPREAD = 0.15                 # a figure with a larger spread, as a share of its median, is marked (!)


def quantile(histogram, share):
    """The lower bound of the bucket, in ns, that contains the quantile `share`; None if the histogram is empty. The histogram is
    [[lower bound in ns, count], ...] in ascending order."""
    total = sum(count for _, count in histogram)
    if total == 0:
        return None
    rank, cumulative = share * total, 0
    for lower_bound, count in histogram:
        cumulative += count
        if cumulative >= rank:
            return lower_bound
    return histogram[-1][0]


def merged(histograms):
    """The sum of histograms."""
    counts = {}
    for histogram in histograms:
        for lower_bound, count in histogram:
            counts[lower_bound] = counts.get(lower_bound, 0) + count
    return [[lower_bound, counts[lower_bound]] for lower_bound in sorted(counts)]


def ratio_of(numerator, denominator, scale=1):
    """Returns a figure: the ratio of two counts of a reading, or None if one is missing or the divisor is zero."""
    def figure(reading):
        dividend, divisor = reading.get(numerator), reading.get(denominator)
        return dividend / divisor * scale if dividend is not None and divisor else None
    return figure


def latency(share, name='latency'):
    def figure(reading):
        values = quantile(reading.get(name) or [], share)
        return None if values is None else values / 1e3
    return figure


def count_of(name, scale=1):
    return lambda reading: None if reading.get(name) is None else reading[name] * scale


def readers_ratio(reading):
    loaded, baseline = latency(0.99)(reading), latency(0.99, 'baseline')(reading)
    return loaded / baseline if loaded and baseline else None


def response_time(reading):
    """The mean response time in ms by Little's law. It is also valid if a response takes longer than a round."""
    return reading['connections'] * reading['seconds'] / reading['responses'] * 1e3 if reading.get('responses') and 'connections' in reading else None


def switches(reading):
    return reading['switches'] / reading['seconds'] if reading.get('seconds') and 'switches' in reading else None


# name: (title, unit, function that returns the figure of one reading, True if less is better)
FIGURES = {
    'rate': ('requests', '/s', ratio_of('responses', 'seconds'), False),
    'throughput': ('throughput', 'MB/s', ratio_of('bytes', 'seconds', 1e-6), False),
    'cpu_request': ('server CPU per request', 'us', ratio_of('cpu', 'responses_all', 1e6), True),
    'user_request': ('of it in user space', 'us', ratio_of('user', 'responses_all', 1e6), True),
    'system_request': ('of it in the kernel', 'us', ratio_of('system', 'responses_all', 1e6), True),
    'us_kernel': ('in the kernel', 'us', count_of('us_kernel'), True),
    'us_crypto': ('libcrypto', 'us', count_of('us_crypto'), True),
    'us_ssl': ('libssl', 'us', count_of('us_ssl'), True),
    'us_c_library': ('C library', 'us', count_of('us_c_library'), True),
    'us_own': ('own', 'us', count_of('us_own'), True),
    'cpu_gb': ('server CPU per GB', 's', ratio_of('cpu', 'bytes_all', 1e9), True),
    'cpu_mb': ('server CPU per MB', 'ns', ratio_of('cpu', 'bytes_all', 1e15), True),
    'cpu_share': ('server CPU', '%', ratio_of('cpu', 'elapsed', 100), True),
    'client_share': ('client CPU', '%', ratio_of('client_cpu', 'elapsed', 100), True),
    'handshakes_cpu': ('handshakes per CPU second', '/s', ratio_of('handshakes', 'cpu'), False),
    'switches': ('context switches', '/s', switches, True),
    'switches_request': ('context switches per request', '', ratio_of('switches', 'responses_all'), True),
    'response_time': ('response time (connections / rate)', 'ms', response_time, True),
    'p50': ('latency, median', 'us', latency(0.5), True),
    'p99': ('latency, 99 %', 'us', latency(0.99), True),
    'p999': ('latency, 99.9 %', 'us', latency(0.999), True),
    'latency_max': ('latency, maximum', 'us', latency(1), True),
    'baseline_p99': ('latency without readers, 99 %', 'us', latency(0.99, 'baseline'), True),
    'readers_ratio': ('with / without readers', '', readers_ratio, True),
    'iteration_p99': ('iterations of the event loop, 99 %', 'us', latency(0.99, 'iterations'), True),
    'iteration_max': ('iterations of the event loop, maximum', 'us', latency(1, 'iterations'), True),
    'iteration_cpu_p99': ('CPU time of iterations, 99 %', 'us', latency(0.99, 'iterations_cpu'), True),
    'iteration_cpu_max': ('CPU time of iterations, maximum', 'us', latency(1, 'iterations_cpu'), True),
    'disk_wait': ('waiting for a disk', '%', count_of('disk_wait', 100), True),
    'steal_ticks': ('steal time', 'ticks', count_of('steal_ticks'), True),
    'readers_rate': ('readers', 'MB/s', count_of('readers_rate', 1e-6), False),
    'baseline_gap': ('longest gap without an upgrade', 'ms', count_of('baseline_gap', 1e3), True),
    'upgrade_gap': ('longest gap during the upgrade', 'ms', count_of('upgrade_gap', 1e3), True),
    'upgrade_seconds': ('duration of the upgrade', 's', count_of('upgrade_seconds'), True),
    'client_connections': ('connections of the client', '', count_of('client_connections'), True),
    'memory': ('memory', 'KiB', count_of('memory'), True),
    'memory_connection': ('memory per connection', 'KiB', count_of('memory_connection'), True),
}


def title_of(name):
    """The title with the unit, such as 'throughput, MB/s'."""
    return ', '.join(filter(None, FIGURES[name][:2]))


# Titles of axes: quantity and unit.
AXIS_TITLES = {'cpu_gb': 'CPU seconds per GB sent', 'cpu_request': 'CPU microseconds per response', 'rate': 'responses per second',
              'throughput': 'MB sent per second', 'memory': 'memory of the server in KiB', 'memory_connection': 'memory per connection in KiB',
              'handshakes_cpu': 'handshakes per CPU second', 'p99': '99th percentile of the latency in microseconds'}


def axis_title(name):
    title, unit = FIGURES[name][:2]
    return AXIS_TITLES.get(name) or f'{title}{f" in {unit}" if unit else ""}'


def values_of(readings, name):
    """The figures of the rounds that have one."""
    values = (FIGURES[name][2](reading) for reading in readings)
    return [value for value in values if value is not None]


def spread(values):
    """Highest minus lowest round as a share of the median; with five or more rounds, the interquartile range instead."""
    median = statistics.median(values) if values else 0
    if len(values) < 2 or median == 0:
        return 0.0
    if len(values) >= 5:
        quarters = statistics.quantiles(values, n=4)
        return (quarters[2] - quarters[0]) / abs(median)
    return (max(values) - min(values)) / abs(median)


def summary(readings, name):
    """{'median', 'low', 'high', 'spread', 'noisy'}; None without values."""
    values = values_of(readings, name)
    if not values:
        return None
    relative_spread = spread(values)
    return {'median': statistics.median(values), 'low': min(values), 'high': max(values), 'spread': relative_spread,
            'noisy': relative_spread > NOISY_SPREAD}


def paired_ratio(ours, theirs, name):
    """The median of the ratios of adjacent rounds, or None. A drift of the machine's speed does not change it."""
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


def formatted(values):
    """'12.3 ±4 %', with '(!)' if the figure is noisy; '-' for None."""
    if values is None:
        return '-'
    apart = f' ±{values["spread"] * 50:.0f} %' if values['spread'] else ''
    return f'{number(values["median"])}{apart}{" (!)" if values["noisy"] else ""}'
