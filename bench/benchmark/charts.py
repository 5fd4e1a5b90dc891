"""Charts as SVG with a panel of quantities and a panel of ratios, for light and dark backgrounds."""
import html
import math

from . import figures

# Colours of Okabe and Ito, distinguishable with colour vision deficiencies and visible on white and on dark grey.
COLOURS = ('#0072b2', '#d17a00', '#009e73', '#d55e00', '#56b4e9', '#cc79a7', '#8f8420', '#7d7d7d')
STYLE = ('<style>.background{fill:#fff}.text{fill:#24292f}.secondary{fill:#57606a}.grid{stroke:#d8dee4}.line{stroke:#24292f}'
         '@media(prefers-color-scheme:dark){.background{fill:#0d1117}.text{fill:#e6edf3}.secondary{fill:#9198a1}.grid{stroke:#30363d}.line{stroke:#e6edf3}}</style>')
WIDTH, LEFT, GAP = 1060, 210, 40        # LEFT: width of the labels of the bars
VALUE_WIDTH = 96                        # width of the figure behind the longest bar
BAR, SPACE, HEADING = 15, 12, 20
LINE = 16


def text(x, y, content, anchor='start', kind='text', more=''):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}"{more}>{html.escape(content)}</text>'


def ticks(maximum):
    """Round numbers from 0 to at most `maximum`, about five."""
    if maximum <= 0:
        return [0]
    step = 10 ** math.floor(math.log10(maximum / 4))
    step = next(step * factor for factor in (1, 2, 5, 10) if maximum / (step * factor) <= 5)
    return [step * count for count in range(int(maximum / step + 1e-9) + 1)]


class Panel:
    """A panel whose axis goes from 0 to `maximum`, between the x positions `left` and `right`."""

    def __init__(self, left, right, maximum, title):
        self.left, self.right, self.maximum, self.title = left, right, maximum or 1, title

    def x(self, value):
        return self.left + (self.right - self.left - VALUE_WIDTH) * value / self.maximum

    def axis(self, top, bottom):
        parts = []
        for tick in ticks(self.maximum):
            x = self.x(tick)
            parts += [f'<path d="M{x:.1f} {top}V{bottom}" class="grid"/>',
                      text(x, bottom + LINE, figures.number(tick) if tick else '0', 'middle', 'secondary')]
        return [*parts, text(self.left, bottom + 2 * LINE + 2, self.title)]

    def bar(self, y, value, label, colour, ends=None):
        """A bar with its label; `ends` are the lowest and highest round, drawn as a line."""
        parts = [f'<rect x="{self.left:.1f}" y="{y + 1}" width="{self.x(value) - self.left:.1f}" height="{BAR - 2}" fill="{colour}"/>']
        last = value
        if ends and ends[1] > ends[0]:
            last = max(value, ends[1])
            parts.append(f'<path d="M{self.x(ends[0]):.1f} {y + BAR / 2}H{self.x(ends[1]):.1f}" class="line"/>')
        return [*parts, text(self.x(last) + 5, y + BAR - 3, label)]


def panels_of(bars):
    """(panel of quantities or None, panel of ratios or None) of Bars."""
    summaries = [value for values in bars.series.values() for value in values if value]
    ratios = [ratio for values in bars.ratios.values() for ratio in values if ratio is not None]
    middle = LEFT + (WIDTH - LEFT) * (0.55 if ratios else 1.0) if summaries else LEFT - GAP
    first = Panel(LEFT, middle, max(value['high'] for value in summaries), bars.axis) if summaries else None
    second = Panel(middle + GAP, WIDTH, max(1.0, *ratios), f'{bars.axis.partition(" (")[0] if not summaries else "ratio"} / {bars.base}, '
                   f'{"lower" if bars.less else "higher"} is better') if ratios else None
    return first, second


def rows_of(bars, index):
    """(label, summary or None, ratio or None, colour) of the bars of one category."""
    rows = []
    for at, label in enumerate(bars.labels()):
        value = bars.series.get(label, [None] * len(bars.categories))[index]
        ratio = bars.ratios.get(label, [None] * len(bars.categories))[index]
        if value or ratio is not None:
            rows.append((label, value, ratio, COLOURS[at % len(COLOURS)]))
    return rows


def category(bars, index, y, first, second):
    """The SVG elements of one category, and the y position below them."""
    parts = [text(8, y + HEADING - 6, bars.categories[index], more=' font-weight="600"')]
    y += HEADING
    for label, value, ratio, colour in rows_of(bars, index):
        parts.append(text(LEFT - 8, y + BAR - 3, label, 'end'))
        if first and value:
            parts += first.bar(y, value['median'], figures.formatted(value), colour, (value['low'], value['high']))
        if second and ratio is not None:
            parts += second.bar(y, ratio, f'{ratio:.2f}', colour)
        y += BAR
    return parts, y + SPACE


def wrapped(content, width=185):
    lines = ['']
    for word in content.split():
        if len(lines[-1]) + len(word) > width:
            lines.append('')
        lines[-1] += (' ' if lines[-1] else '') + word
    return [line for line in lines if line]


def draw(bars, footer=''):
    """The SVG of Bars; `footer` names machine, versions and the meaning of the lines."""
    first, second = panels_of(bars)
    parts, top = [], HEADING + 10
    y = top
    for index in range(len(bars.categories)):
        category_parts, y = category(bars, index, y, first, second)
        parts += category_parts
    bottom = y - SPACE + 4
    axes = [part for panel in (first, second) if panel for part in panel.axis(top, bottom)]
    if second:
        axes.append(f'<path d="M{second.x(1):.1f} {top}V{bottom}" class="line" stroke-dasharray="4 3"/>')
    notes = wrapped(footer)
    height = bottom + 2 * LINE + 14 + LINE * len(notes) + 6
    below = [text(8, bottom + 2 * LINE + 22 + LINE * at, line, kind='secondary', more=' font-size="11"') for at, line in enumerate(notes)]
    return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
                      f'font-family="system-ui,sans-serif" font-size="12"><title>{html.escape(bars.title)}</title>{STYLE}',
                      f'<rect width="{WIDTH}" height="{height}" class="background"/>', text(8, 18, bars.title, more=' font-size="14" font-weight="600"'),
                      *axes, *parts, *below, '</svg>']) + '\n'
