"""Draws the figure of the README from the table of ratios in bench/README.md, as bars. Uses only the standard library.

The background is transparent. The grey of text and lines has a contrast of at least 4 to white and to GitHub's dark background.
"""
import html
import re

SECTION = '## Compared with nginx and h2o'
NAME = 'ratios.svg'
ROWS = {'1 KiB, 25 rounds': 'CPU per response of 1 KiB', '1 MiB': 'CPU per response of 1 MiB', '100 MiB': 'CPU per response of 100 MiB',
        '10,000 idle connections, memory': 'memory, 10,000 idle connections'}
INK, COLOURS = '#7d7d7d', {'nginx': '#009e73', 'h2o': '#d17a00'}
LEFT, WIDTH, BAR, GAP, TOP = 320, 380, 15, 16, 44     # WIDTH is the width of a bar of ratio 1


def table(page):
    """{row: {column: ratio}} of the first table of the section."""
    section = page[page.index(SECTION):]
    lines = re.search(r'((?:^\|.*\|$\n)+)', section, re.M).group(1).splitlines()
    cells = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
    return {row[0]: dict(zip(cells[0][1:], map(float, row[1:]))) for row in cells[2:]}


def text(x, y, words, anchor='start', weight='normal'):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" fill="{INK}">{html.escape(words)}</text>'


def bars(label, ratios, y):
    """One row of the table: a bar for each column, labelled with its ratio."""
    parts = [text(LEFT - 96, y + 2 * BAR + 4, label, 'end')]
    for column, ratio in ratios.items():
        loop, peer = column.split(' / ')
        parts += [text(LEFT - 8, y + 12, loop, 'end'),
                  f'<rect x="{LEFT}" y="{y + 1}" width="{ratio * WIDTH:.1f}" height="{BAR - 2}" fill="{COLOURS[peer]}"/>',
                  text(f'{LEFT + ratio * WIDTH + 6:.1f}', y + 12, f'{ratio:.2f}')]
        y += BAR
    return parts


def legend():
    parts, x = [text(LEFT - 96, 16, 'sluice with', 'end'), text(LEFT - 8, 16, 'event loop', 'end')], LEFT
    for peer, colour in COLOURS.items():
        parts += [f'<rect x="{x}" y="5" width="13" height="13" fill="{colour}"/>', text(x + 19, 16, f'relative to {peer}')]
        x += 150
    return parts


def draw(page):
    """The SVG of a page that has the table."""
    found = table(page)
    height = TOP + len(ROWS) * (4 * BAR + GAP) + 8
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" height="{height}" role="img" '
             'font-family="system-ui,sans-serif" font-size="13">',
             '<title>CPU time and memory of sluice, relative to nginx and h2o</title>', *legend()]
    y = TOP
    for name, label in ROWS.items():
        parts += bars(label, found[name], y)
        y += 4 * BAR + GAP
    parts += [f'<path d="M{LEFT + WIDTH} 30V{height - 8}" stroke="{INK}" stroke-dasharray="4 3"/>',
              text(LEFT + WIDTH, 26, '1 = equal', 'middle'), '</svg>']
    return '\n'.join(parts) + '\n'
