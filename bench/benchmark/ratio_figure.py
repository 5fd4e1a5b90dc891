"""Draws the figure of README.md from the table of ratios in bench/README.md."""
import re

from . import blocks, charts

SECTION = '## Compared with nginx and h2o'
NAME = 'ratios.svg'
ROWS = {'1 KiB, 25 rounds': 'CPU time per response of 1 KiB', '100 KiB': 'CPU time per response of 100 KiB', '1 MiB': 'CPU time per response of 1 MiB',
        '100 MiB': 'CPU time per response of 100 MiB',
        '10,000 idle connections, memory': 'memory of 10,000 idle connections'}


def table(page):
    """{row: {column: ratio}} of the first table of the section."""
    section = page[page.index(SECTION):]
    lines = re.search(r'((?:^\|.*\|$\n)+)', section, re.M).group(1).splitlines()
    cells = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
    return {row[0]: dict(zip(cells[0][1:], map(float, row[1:]))) for row in cells[2:]}


def conditions(page):
    """Versions, machine and spread from the text above the table."""
    above = ' '.join(page[page.index(SECTION):].split('|')[0].split())
    found = [re.search(pattern, above) for pattern in (r'nginx [\d.]+ and h2o [\d.]+', r'Virtual machine [^,]*', r'Linux [\d.]+\d', r'OpenSSL [\d.]+\d',
                                                      r'measured on [\d-]+', r'spreads are [^.;]*')]
    return 'HTTPS, encrypted in user space: ' + ', '.join(match.group(0) for match in found) + '.'


def draw(page):
    """The SVG of a page that has the table."""
    found = table(page)
    columns = list(next(iter(found.values())))
    bars = blocks.Bars('ratios', 'CPU time and memory of sluice, divided by that of nginx and h2o', 'CPU time or memory of sluice', list(ROWS.values()), {},
                       'the same of nginx or h2o', {column: [found[row][column] for row in ROWS] for column in columns})
    return charts.draw(bars, conditions(page))
