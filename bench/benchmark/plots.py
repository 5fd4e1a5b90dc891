"""Bars as SVG and PNG."""
import os
import re

# Colours of Okabe and Ito, distinguishable with colour vision deficiencies.
COLOURS = ['#0072B2', '#E69F00', '#009E73', '#D55E00', '#56B4E9', '#CC79A7', '#F0E442', '#000000']


def draw(bars, folder):
    """Writes NAME.svg and NAME.png; returns the path of the SVG, or None if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use('Agg')
    matplotlib.rcParams['svg.hashsalt'] = 'sluice'
    from matplotlib import pyplot
    count = len(bars.series)
    figure, axes = pyplot.subplots(figsize=(max(6.0, 1.2 + 0.28 * count * len(bars.categories)), 3.6), layout='constrained')
    width = 0.8 / max(count, 1)
    for at, (label, values) in enumerate(bars.series.items()):
        places = [place + (at - (count - 1) / 2) * width for place, value in enumerate(values) if value]
        there = [value for value in values if value]
        errors = [[value['median'] - value['low'] for value in there], [value['high'] - value['median'] for value in there]]
        axes.bar(places, [value['median'] for value in there], width * 0.95, yerr=errors, label=label, capsize=2,
                 color=COLOURS[at % len(COLOURS)], error_kw={'linewidth': 0.8})
    axes.set_xticks(range(len(bars.categories)), bars.categories, fontsize=8)
    axes.set_ylabel(bars.unit)
    axes.set_title(bars.title, fontsize=10)
    axes.spines[['top', 'right']].set_visible(False)
    if count > 1:
        figure.legend(fontsize=7, loc='outside lower center', ncols=min(count, 4))
    path = os.path.join(folder, f'{bars.name}.svg')
    figure.savefig(path, metadata={'Date': None})
    figure.savefig(os.path.join(folder, f'{bars.name}.png'), dpi=120)
    pyplot.close(figure)
    return path


def inline(path):
    """The SVG without the lines before its root element, for an HTML page."""
    with open(path, encoding='utf-8') as stream:
        return re.search(r'<svg.*', stream.read(), re.S).group(0)
