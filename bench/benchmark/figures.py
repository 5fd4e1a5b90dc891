"""Figures from counts: median and spread over rounds, quantiles of latency, ratios of neighbouring rounds."""
import statistics

NOISY_SPREAD = 0.15                     # a spread beyond this share of the median is marked


def quantile(histogram, share):
    """The duration in ns below which `share` of the counts lie, of [[least ns, count], ...] in order; None if empty."""
    total = sum(count_of for _, count_of in histogram)
    if total == 0:
        return None
    rank, seen = share * total, 0
    for lower_bound, count_of in histogram:
        seen += count_of
        if seen >= rank:
            return lower_bound
    return histogram[-1][0]


def merged(histograms):
    """The sum of histograms."""
    counts = {}
    for histogram in histograms:
        for lower_bound, count_of in histogram:
            counts[lower_bound] = counts.get(lower_bound, 0) + count_of
    return [[lower_bound, counts[lower_bound]] for lower_bound in sorted(counts)]


def ratio_of(numerator, denominator, scale=1):
    """A figure that is the ratio of two counts; None if the second is zero."""
    def figure(reading):
        dividend, divisor = reading.get(numerator), reading.get(denominator)
        return dividend / divisor * scale if dividend is not None and divisor else None
    return figure


def latency(share, name='latency'):
    def figure(reading):
        found = quantile(reading.get(name) or [], share)
        return None if found is None else found / 1e3
    return figure


def count_of(name, scale=1):
    return lambda reading: None if reading.get(name) is None else reading[name] * scale


def readers_ratio(reading):
    loaded, baseline = latency(0.99)(reading), latency(0.99, 'baseline')(reading)
    return loaded / baseline if loaded and baseline else None


def response_time(reading):
    """The mean response time in ms by Little's law, which is valid also if a response takes longer than a round."""
    return reading['connections'] * reading['seconds'] / reading['responses'] * 1e3 if reading.get('responses') and 'connections' in reading else None


def switches(reading):
    return reading['switches'] / reading['seconds'] if reading.get('seconds') and 'switches' in reading else None


# name: (title, unit, figure of one reading, True if less is better)
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
    'baseline_p99': ('latency alone, 99 %', 'us', latency(0.99, 'baseline'), True),
    'readers_ratio': ('with readers / alone', '', readers_ratio, True),
    'disk_wait': ('waiting for a disk', '%', count_of('disk_wait', 100), True),
    'steal_ticks': ('steal time', 'ticks', count_of('steal_ticks'), True),
    'readers_rate': ('readers', 'MB/s', count_of('readers_rate', 1e-6), False),
    'memory': ('memory', 'KiB', count_of('memory'), True),
    'memory_connection': ('memory per connection', 'KiB', count_of('memory_connection'), True),
}


def title_of(name):
    """'throughput, MB/s'"""
    return ', '.join(filter(None, FIGURES[name][:2]))


# Quantity and unit as the title of an axis.
AXIS_TITLES = {'cpu_gb': 'CPU seconds per GB sent', 'cpu_request': 'CPU microseconds per response', 'rate': 'responses per second',
              'throughput': 'MB sent per second', 'memory': 'memory of the server in KiB', 'memory_connection': 'memory per connection in KiB',
              'handshakes_cpu': 'handshakes per CPU second', 'p99': '99th percentile of the latency in microseconds'}


def axis_title(name):
    title, unit = FIGURES[name][:2]
    return AXIS_TITLES.get(name) or f'{title}{f" in {unit}" if unit else ""}'


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
    relative_spread = spread(values)
    return {'median': statistics.median(values), 'low': min(values), 'high': max(values), 'spread': relative_spread,
            'noisy': relative_spread > NOISY_SPREAD}


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
    return f'{number(found["median"])}{apart}{" (!)" if found["noisy"] else ""}'
