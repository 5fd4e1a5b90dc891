"""Writes report.md and report.html from results.json: both consist of the same sections, which are lists of elements (blocks.py)."""
import html
import os
import re

from . import blocks, charts, conclusion, figures, model, scenarios

STYLE = '''body{font:15px/1.5 system-ui,sans-serif;max-width:1068px;margin:2em auto;padding:0 16px;color:#222;background:#fff}
table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{border:1px solid #ccc;padding:.2em .3em;
text-align:right;font-size:12px;line-height:1.3}td:first-child,th:first-child{text-align:left}th{background:#f2f2f2;font-weight:600}
caption{text-align:left;font-weight:600;padding:.3em 0}.note{margin:-1.2em 0 1.5em;font-size:13px}svg{max-width:100%;height:auto}
code{background:#f2f2f2;overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}td,th{border-color:#30363d}th,code{background:#161b22}}'''
LEGEND = ('Each figure is the median of the rounds; `±` is half the distance between the lowest and the highest round (from five rounds on, '
           'of the middle half). `(!)` marks a figure whose rounds differ too much to support a conclusion: measure again on a '
           'quieter machine. Rounds of all setups alternate, and ratios are medians of ratios of adjacent rounds: a machine that '
           'becomes slower during a run does not change them. CPU is the CPU time of the server\'s processes, from the scheduler\'s clock. '
           'A client on a separate CPU polls without sleeping, so that the server\'s CPU time excludes waking it; its own CPU time excludes polls that '
           'found no response. '
           'At a fixed rate, the latency of a request counts from its due time, so that it includes stalls of the server.')
EMULATED = ('**These figures come from an emulated processor.** A Debian kernel with TLS ran in qemu without hardware virtualization. The '
            'clock of its one processor advances by 1 ns per instruction: a time is a number of instructions, which does not depend on the load of the '
            'host. Only ratios are meaningful, and the relative cost of AES instructions differs from hardware.')


QUIET = 0.1                         # CPUs that other processes may use without a warning


def outcomes_of(scenario):
    return [model.Outcome.from_json(tree) for tree in scenario['outcomes']]


def machine_table(results):
    machine = results['machine']
    rows = [['processor', machine['processor'] + (', emulated' if machine['emulated'] else '')],
            ['CPUs', f'{machine["cpus"]}; server on {machine["server_cpu"]}, client on {machine["client_cpu"]}'],
            ['memory', f'{machine["memory_mib"]} MiB'], ['kernel', machine['kernel']],
            ['kernel TLS', 'supported' if machine['ktls'] else 'not supported by this kernel'],
            ['CPUs used by other processes', f'{machine.get("others", 0.0):.2f}, steal time {machine.get("steal", 0.0):.2f}'],
            ['certificate', machine['certificate']], ['suite', machine['suite']],
            *[[name, version] for name, version in machine['versions'].items()],
            ['rounds', f'{results["options"]["rounds"]} of {results["options"]["seconds"]:g} s, '
                       f'after a warm-up of {results["options"]["warm"]:g} s'],
            ['created', f'{results["made"]} by `{results["command"]}`']]
    return blocks.Table('Machine and versions', ['', ''], rows)


def warnings(results):
    """The warnings about the machine, which precede the first figure."""
    texts = [blocks.Text(EMULATED)] if results['machine']['emulated'] else []
    if results['machine']['server_cpu'] == results['machine']['client_cpu']:
        texts.append(blocks.Text('**Server and client shared one CPU**: rates support no conclusion; CPU per request is valid.'))
    if results['machine'].get('one_core'):
        texts.append(blocks.Text('**Server and client ran on two threads of one core**, which slow each other down: all figures are affected.'))
    if not results['machine']['ktls']:
        texts.append(blocks.Text('This kernel has no TLS (`sluice doctor` reports the reason): kTLS was not measured. '
                                 '`bench/run --vm` measures it in an emulated machine.'))
    others, steal = (results['machine'].get(name, 0.0) for name in ('others', 'steal'))
    if others + steal > QUIET and not results['machine']['emulated']:
        texts.append(blocks.Text(f'**The machine was not quiet**: during the run other processes used {others:.2f} of its {results["machine"]["cpus"]} '
                                 f'CPUs, and steal time was {steal:.2f}. This affects rates and latencies, and to a lesser degree CPU per request.'))
    return texts


def sections_of(results):
    """[(heading, elements)] of a complete report: the conclusion and the first chart, the machine, then each scenario."""
    sections, chart = [], None
    for scenario in results['scenarios']:
        outcomes = outcomes_of(scenario)
        elements = scenarios.module_of(scenario['name']).report_elements(outcomes, results)
        if not chart:
            chart = next((block for block in elements if isinstance(block, blocks.Bars) and block.series), None)
            elements = [block for block in elements if block is not chart]
        sections.append((scenario['title'], [*elements, *blocks.saturated_clients(outcomes)]))
    opening = [blocks.Text(conclusion.conclusion(results)), *([chart] if chart else []), *warnings(results), machine_table(results), blocks.Text(LEGEND)]
    return [('', opening), *sections]


def short_version(text):
    """Extracts the number of a version: '1.22.1' from 'nginx version: nginx/1.22.1'."""
    version = re.search(r'\d+(\.\w+)+', text)
    return version.group(0) if version else text


def footer(results):
    """The footnote of a chart: meaning of the lines, machine, versions."""
    machine = results['machine']
    return (f'Lines: lowest to highest round; ±: half of that, of the middle half from five rounds on. {results["options"]["rounds"]} rounds of '
            f'{results["options"]["seconds"]:g} s. {machine["processor"]}{", emulated" if machine["emulated"] else ""}, Linux {machine["kernel"]}, '
            + ', '.join(f'{name} {short_version(version)}' for name, version in machine['versions'].items()) + f', {results["made"][:10]}.')


def cell(text):
    return str(text).replace('|', '\\|')


def markdown_table(table):
    lines = [f'**{table.title}**', '', '| ' + ' | '.join(map(cell, table.columns)) + ' |',
             '|---|' + '---:|' * (len(table.columns) - 1)]
    lines += ['| ' + ' | '.join(map(cell, row)) + ' |' for row in table.rows]
    return '\n'.join(lines + (['', table.note] if table.note else []))


def html_text(text):
    text = html.escape(text, quote=False)
    text = re.sub(r'\*\*(.+?)\*\*', r'<b>\1</b>', text)
    return re.sub(r'`([^`]+)`', r'<code>\1</code>', text)


def html_table(table):
    rows = ['<tr>' + ''.join(f'<th>{html_text(str(name))}</th>' for name in table.columns) + '</tr>'] if any(table.columns) else []
    rows += ['<tr>' + ''.join(f'<td>{html_text(str(text))}</td>' for text in row) + '</tr>' for row in table.rows]
    return f'<table><caption>{html_text(table.title)}</caption>' + '\n'.join(rows) + '</table>' + \
        (f'<p class="note">{html_text(table.note)}</p>' if table.note else '')


def bars_as_table(bars):
    """The table that replaces a chart in pages without charts."""
    rows = [[label, *(figures.formatted(value) for value in values)] for label, values in bars.series.items()]
    return blocks.Table(f'{bars.title}, {bars.axis}', ['', *bars.categories], rows)


def markdown(sections, chart_paths):
    lines = ['# The cost of TLS on this machine', '']
    for heading, elements in sections:
        lines += [f'## {heading}', ''] if heading else []
        for block in elements:
            if isinstance(block, blocks.Text):
                lines += [block.text, '']
            elif isinstance(block, blocks.Table):
                lines += [markdown_table(block), '']
            elif chart_paths.get(block.name):
                lines += [f'![{block.title}]({os.path.basename(chart_paths[block.name])})', '']
            else:
                lines += [markdown_table(bars_as_table(block)), '']
    return '\n'.join(lines)


def page(sections, chart_paths):
    body = ['<h1>The cost of TLS on this machine</h1>']
    for heading, elements in sections:
        body += [f'<h2>{html_text(heading)}</h2>'] if heading else []
        for block in elements:
            if isinstance(block, blocks.Text):
                body.append(f'<p>{html_text(block.text)}</p>')
            elif isinstance(block, blocks.Table):
                body.append(html_table(block))
            else:
                body.append(read_text(chart_paths[block.name]) if chart_paths.get(block.name) else html_table(bars_as_table(block)))
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>The cost of TLS on this machine</title><style>{STYLE}</style></head>'
            f'<body>{"".join(body)}</body></html>\n')


def read_text(path):
    with open(path, encoding='utf-8') as stream:
        return stream.read()


def write_charts(sections, folder, footnote):
    """Writes the SVG files of all charts; returns {name: path}."""
    chart_paths = {}
    for block in (block for _, elements in sections for block in elements if isinstance(block, blocks.Bars)):
        chart_paths[block.name] = os.path.join(folder, f'{block.name}.svg')
        with open(chart_paths[block.name], 'w', encoding='utf-8') as stream:
            stream.write(charts.draw(block, footnote))
    return chart_paths


def write(results, folder):
    """Writes both reports and the charts; returns the path of report.md."""
    return write_sections(sections_of(results), folder, footer(results))


def write_sections(sections, folder, footnote):
    chart_paths = write_charts(sections, folder, footnote)
    for name, text in (('report.md', markdown(sections, chart_paths)), ('report.html', page(sections, chart_paths))):
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as stream:
            stream.write(text)
    return os.path.join(folder, 'report.md')


# Markers around the two generated parts of bench/README.md: on hardware (False) and in the emulated machine (True).
BEGIN = {False: '<!-- generated by bench/run --page -->', True: '<!-- generated by bench/run --vm --page -->'}
END = '<!-- end of the part generated by bench/run -->'


def portable_command(command):
    """The command line without paths and ports."""
    return re.sub(r' --(out|sluice|blast|folder|port)[ =]\S+', '', command)


def readme_section(results):
    """The generated part of bench/README.md: the machine and the command in one line, and the main tables."""
    machine = results['machine']
    where = 'an emulated machine' if machine['emulated'] else 'a machine'
    line = (f'On {where} ({machine["processor"]}, Linux {machine["kernel"]}, {machine["versions"]["OpenSSL"].partition("(")[0].strip()}), '
            f'{results["options"]["rounds"]} rounds of {results["options"]["seconds"]:g} s, {results["made"][:10]}: '
            f'`{portable_command(results["command"])}`')
    sections = [('In the emulated machine' if machine['emulated'] else 'On hardware', [blocks.Text(line), *warnings(results)])]
    for scenario in results['scenarios']:
        module = scenarios.module_of(scenario['name'])
        elements = getattr(module, 'readme_elements', module.report_elements)(outcomes_of(scenario), results)
        elements = [block for block in elements if not isinstance(block, blocks.Bars)]
        sections += [(scenario['title'], elements)] if elements else []
    return '\n'.join(re.sub('^## ', '### ', line) for line in markdown(sections, {}).split('\n')[2:])


def replace_section(page, text, emulated):
    """Replaces the generated part of the page; raises ValueError if the page lacks its markers."""
    begin = page.index(BEGIN[emulated]) + len(BEGIN[emulated])
    end = page.index(END, begin)
    return f'{page[:begin]}\n\n{text.strip()}\n\n{page[end:]}'
