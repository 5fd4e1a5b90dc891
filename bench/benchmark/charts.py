"""Charts as SVG, by the standard library: a panel of quantities and a panel of ratios, in light and dark."""
import html
import math

from . import figures

# Colours of Okabe and Ito, distinguishable with colour vision deficiencies and visible on white and on dark grey.
COLOURS = ('#0072b2', '#d17a00', '#009e73', '#d55e00', '#56b4e9', '#cc79a7', '#8f8420', '#7d7d7d')
STYLE = ('<style>.sheet{fill:#fff}.ink{fill:#24292f}.faint{fill:#57606a}.grid{stroke:#d8dee4}.mark{stroke:#24292f}'
         '@media(prefers-color-scheme:dark){.sheet{fill:#0d1117}.ink{fill:#e6edf3}.faint{fill:#9198a1}.grid{stroke:#30363d}.mark{stroke:#e6edf3}}</style>')
WIDTH, LEFT, GAP = 1060, 210, 40        # LEFT: the room for the labels of the bars
VALUE = 96                              # room for the figure behind the longest bar
BAR, SPACE, HEADING = 15, 12, 20
LINE = 16


def text(x, y, words, anchor='start', kind='ink', more=''):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}"{more}>{html.escape(words)}</text>'


def ticks(most):
    """Round numbers from 0 on, about five up to `most`."""
    if most <= 0:
        return [0]
    step = 10 ** math.floor(math.log10(most / 4))
    step = next(step * factor for factor in (1, 2, 5, 10) if most / (step * factor) <= 5)
    return [step * count for count in range(int(most / step + 1e-9) + 1)]


class Panel:
    """An axis from 0 to `most`, between two x positions."""

    def __init__(self, left, right, most, title):
        self.left, self.right, self.most, self.title = left, right, most or 1, title

    def x(self, value):
        return self.left + (self.right - self.left - VALUE) * value / self.most

    def axis(self, top, bottom):
        parts = []
        for tick in ticks(self.most):
            x = self.x(tick)
            parts += [f'<path d="M{x:.1f} {top}V{bottom}" class="grid"/>',
                      text(x, bottom + LINE, figures.number(tick) if tick else '0', 'middle', 'faint')]
        return [*parts, text(self.left, bottom + 2 * LINE + 2, self.title)]

    def bar(self, y, value, words, colour, ends=None):
        """A bar with its figure; `ends` are the lowest and highest round."""
        parts = [f'<rect x="{self.left:.1f}" y="{y + 1}" width="{self.x(value) - self.left:.1f}" height="{BAR - 2}" fill="{colour}"/>']
        last = value
        if ends and ends[1] > ends[0]:
            last = max(value, ends[1])
            parts.append(f'<path d="M{self.x(ends[0]):.1f} {y + BAR / 2}H{self.x(ends[1]):.1f}" class="mark"/>')
        return [*parts, text(self.x(last) + 5, y + BAR - 3, words)]


def panels_of(bars):
    """(panel of quantities or None, panel of ratios or None)"""
    found = [value for values in bars.series.values() for value in values if value]
    ratios = [ratio for values in bars.ratios.values() for ratio in values if ratio is not None]
    middle = LEFT + (WIDTH - LEFT) * (0.55 if ratios else 1.0) if found else LEFT - GAP
    first = Panel(LEFT, middle, max(value['high'] for value in found), bars.axis) if found else None
    second = Panel(middle + GAP, WIDTH, max(1.0, *ratios), f'{bars.axis.partition(" (")[0] if not found else "ratio"} / {bars.base}, '
                   f'{"lower" if bars.less else "higher"} is better') if ratios else None
    return first, second


def rows_of(bars, place):
    """(label, summary or None, ratio or None, colour) of the bars of one category."""
    rows = []
    for at, label in enumerate(bars.labels()):
        value = bars.series.get(label, [None] * len(bars.categories))[place]
        ratio = bars.ratios.get(label, [None] * len(bars.categories))[place]
        if value or ratio is not None:
            rows.append((label, value, ratio, COLOURS[at % len(COLOURS)]))
    return rows


def category(bars, place, y, first, second):
    """The parts of one category, and the y below them."""
    parts = [text(8, y + HEADING - 6, bars.categories[place], more=' font-weight="600"')]
    y += HEADING
    for label, value, ratio, colour in rows_of(bars, place):
        parts.append(text(LEFT - 8, y + BAR - 3, label, 'end'))
        if first and value:
            parts += first.bar(y, value['median'], figures.shown(value), colour, (value['low'], value['high']))
        if second and ratio is not None:
            parts += second.bar(y, ratio, f'{ratio:.2f}', colour)
        y += BAR
    return parts, y + SPACE


def wrapped(words, width=185):
    lines = ['']
    for word in words.split():
        if len(lines[-1]) + len(word) > width:
            lines.append('')
        lines[-1] += (' ' if lines[-1] else '') + word
    return [line for line in lines if line]


def draw(bars, footer=''):
    """The SVG of Bars; `footer` names machine, versions and the meaning of the lines."""
    first, second = panels_of(bars)
    parts, top = [], HEADING + 10
    y = top
    for place in range(len(bars.categories)):
        made, y = category(bars, place, y, first, second)
        parts += made
    bottom = y - SPACE + 4
    axes = [part for panel in (first, second) if panel for part in panel.axis(top, bottom)]
    if second:
        axes.append(f'<path d="M{second.x(1):.1f} {top}V{bottom}" class="mark" stroke-dasharray="4 3"/>')
    notes = wrapped(footer)
    height = bottom + 2 * LINE + 14 + LINE * len(notes) + 6
    below = [text(8, bottom + 2 * LINE + 22 + LINE * at, line, kind='faint', more=' font-size="11"') for at, line in enumerate(notes)]
    return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
                      f'font-family="system-ui,sans-serif" font-size="12"><title>{html.escape(bars.title)}</title>{STYLE}',
                      f'<rect width="{WIDTH}" height="{height}" class="sheet"/>', text(8, 18, bars.title, more=' font-size="14" font-weight="600"'),
                      *axes, *parts, *below, '</svg>']) + '\n'
