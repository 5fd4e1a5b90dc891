"""Sizes in the notation of the configuration: 1k, 100k, 1m, 1g (powers of 1024)."""
UNITS = {'': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30}


def bytes_of(name):
    """'100k' -> 102400; ValueError unless the text is a number and a unit."""
    digits = name.rstrip('kmg')
    unit = name[len(digits):]
    if not digits.isdigit() or unit not in UNITS:
        raise ValueError(f'{name!r} is not a size such as 100k')
    return int(digits) * UNITS[unit]
