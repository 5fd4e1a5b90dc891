"""The command line of bench/run."""
import argparse
import datetime
import json
import os
import shlex
import signal
import sys

from . import blocks, compare, guest, machine, model, progress, ratio_figure, report, rounds, scenarios, server_configuration, servers

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FORMAT = 2


def parse(arguments):
    build = os.environ.get('SLUICE_BUILD', os.path.join(os.path.dirname(HERE), 'build'))
    parser = argparse.ArgumentParser(prog='bench/run', description='Measures the cost of TLS on this machine, the effect of kTLS, and sluice compared with other servers; writes a report.')
    parser.add_argument('--out', metavar='DIR', help='directory of the report (default: bench-results; with --compare: no files)')
    parser.add_argument('--scenario', action='append', choices=scenarios.NAMES, help='a scenario to measure; may be repeated (default: quick)')
    parser.add_argument('--full', action='store_true', help='all scenarios')
    parser.add_argument('--peers', default='', help='servers to compare with, separated by commas: '
                        f'{", ".join(server_configuration.PROGRAMS)}; "all" selects those that are installed')
    parser.add_argument('--sizes', default='', help='sizes for the scenarios quick, comparison, proxy and threshold, such as 1k,64k,1m')
    parser.add_argument('--transports', default='', help='the transports to measure: plain, user (TLS in user space), ktls (default: those of the scenario)')
    parser.add_argument('--rounds', type=int, help='number of measurements of each setup (default: 3)')
    parser.add_argument('--seconds', type=float, help='duration of a measurement in seconds (default: 1; 0.6 for --page; 2 for --vm)')
    parser.add_argument('--warm', type=float, default=0.2, help='duration of the warm-up before each measurement in seconds (default: 0.2)')
    parser.add_argument('--loop', default='auto', choices=('auto', 'io_uring', 'epoll'), help='the event loop of sluice')
    parser.add_argument('--sluice', default=os.path.join(build, 'sluice'), help='the server binary')
    parser.add_argument('--blast', default=os.path.join(build, 'bench', 'blast'), help='the load generator')
    parser.add_argument('--folder', default=None, help='directory for the served files (default: a temporary one)')
    parser.add_argument('--port', type=int, default=24000, help='the first port to use (default: 24000)')
    parser.add_argument('--report', metavar='JSON', help='write the report of a result file, without measuring')
    parser.add_argument('--page', action='store_true', help='insert a summary of the results into bench/README.md; without '
                        '--scenario, measure the scenarios of that page')
    parser.add_argument('--figure', action='store_true', help='draw the figure of README.md from the table in bench/README.md, without measuring')
    parser.add_argument('--compare', nargs=2, metavar='JSON', help='compare two result files, without measuring; with --out, '
                        'also as a report with a chart')
    parser.add_argument('--vm', nargs='?', const='6.1', metavar='VERSION', help='measure in an emulated machine with a kernel that supports TLS (default version: 6.1)')
    parser.add_argument('--vm-minutes', type=int, default=40, help='time limit of --vm in minutes (default: 40)')
    parser.add_argument('--emulated', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.build = build
    options.out = options.out or (None if options.compare else 'bench-results')
    default = ['quick'] if not options.page else list(scenarios.PAGE_EMULATED if options.vm else scenarios.PAGE)
    options.scenario = list(scenarios.NAMES) if options.full else options.scenario or default
    options.rounds = options.rounds or 3
    options.seconds = options.seconds or (2.0 if options.vm else 0.6 if options.page else 1.0)
    options.sizes = [name for name in options.sizes.split(',') if name]
    options.transports = [name for name in options.transports.split(',') if name]
    if not set(options.transports) <= set(model.TRANSPORTS):
        parser.error(f'invalid transport: choose from {", ".join(model.TRANSPORTS)}')
    options.peers = [name for name in options.peers.split(',') if name]
    unknown = set(options.peers) - set(server_configuration.PROGRAMS) - {'all'}
    if unknown:
        parser.error(f'unknown server {", ".join(sorted(unknown))}: choose from {", ".join(server_configuration.PROGRAMS)}, all')
    if 'all' in options.peers:
        options.peers = [name for name, program in server_configuration.PROGRAMS.items() if machine.servers.find_program(program)]
    for program in (options.sluice, options.blast):
        if not (options.report or options.compare or options.figure) and not os.access(program, os.X_OK):
            parser.error(f'{program} does not exist: build it (meson setup build && ninja -C build)')
    return options


def load_results(path):
    with open(path, encoding='utf-8') as stream:
        results = json.load(stream)
    if results.get('format') != FORMAT:
        sys.exit(f'{path} is not a result file of this version')
    unknown = {scenario['name'] for scenario in results['scenarios']} - set(scenarios.NAMES)
    if unknown:
        sys.exit(f'{path} has results of unknown scenarios: {", ".join(sorted(unknown))}')
    return results


def store(results, folder):
    with open(os.path.join(folder, 'results.json'), 'w', encoding='utf-8') as stream:
        json.dump(results, stream, indent=1)
        stream.write('\n')


def measure(options, arguments):
    """Runs all scenarios; returns the results."""
    facts = machine.facts(options, options.peers, options.emulated)
    results = {'format': FORMAT, 'made': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds'),
               'command': shlex.join(['bench/run', *arguments]), 'machine': facts, 'scenarios': [],
               'options': {'rounds': options.rounds, 'seconds': options.seconds, 'warm': options.warm, 'loop': options.loop}}
    background_load = machine.BackgroundLoad()
    with progress.make() as display:
        for name in options.scenario:
            scenario = scenarios.module_of(name)
            groups = rounds.with_transports(scenario.plan(options), options.transports)
            display.begin(scenario.TITLE, rounds.measurement_count(groups, options.rounds))
            entry = {'name': name, 'title': scenario.TITLE, 'outcomes': []}
            results['scenarios'].append(entry)
            for outcomes in rounds.measure(rounds.Bench(options, facts['ktls'], display), groups):
                entry['outcomes'] += [outcome.to_json() for outcome in outcomes]
                store(results, options.out)
            facts.update(background_load.averages())
    store(results, options.out)
    return results


def page_write(path, results):
    with open(path, encoding='utf-8') as stream:
        page = report.replace_section(stream.read(), report.readme_section(results), results['machine']['emulated'])
    with open(path, 'w', encoding='utf-8') as stream:
        stream.write(page)


def figure_write(folder):
    with open(os.path.join(folder, 'README.md'), encoding='utf-8') as stream:
        svg = ratio_figure.draw(stream.read())
    with open(os.path.join(folder, ratio_figure.NAME), 'w', encoding='utf-8') as stream:
        stream.write(svg)


def compare_write(first, second, folder):
    """Prints the comparison. With a folder, also writes it there as report.md and report.html with a chart."""
    sections = compare.sections_of(first, second)
    print(report.markdown([('', [block for block in elements if not isinstance(block, blocks.Bars)]) for _, elements in sections], {}))
    if folder:
        os.makedirs(folder, exist_ok=True)
        print(report.write_sections(sections, folder, compare.footer(first, second)))
    return 0


def main(arguments):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))     # SystemExit runs the finally blocks that stop the servers
    try:
        return run(parse(arguments), arguments)
    except servers.BenchmarkError as fault:
        sys.exit(str(fault))


def run(options, arguments):
    if options.compare:
        return compare_write(*map(load_results, options.compare), options.out)
    if options.figure:
        figure_write(HERE)
        return 0
    os.makedirs(options.out, exist_ok=True)
    if options.report:
        results = load_results(options.report)
    elif options.vm:
        results = load_results(guest.measure(options))
        results['command'] = shlex.join(['bench/run', *arguments])
        store(results, options.out)
    else:
        results = measure(options, arguments)
    path = report.write(results, options.out)
    print(f'{path}, {os.path.join(options.out, "report.html")}')
    if options.page:
        page_write(os.path.join(HERE, 'README.md'), results)
    return 0
