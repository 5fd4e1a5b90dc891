"""The command line of bench/run."""
import argparse
import datetime
import json
import os
import shlex
import signal
import sys

from . import compare, guest, machine, model, progress, ratio_figure, recipes, report, rounds, scenarios, servers

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FORMAT = 1


def parse(words):
    build = os.environ.get('SLUICE_BUILD', os.path.join(os.path.dirname(HERE), 'build'))
    parser = argparse.ArgumentParser(prog='bench/run', description='What TLS costs on this machine, what kTLS gives, how servers compare.')
    parser.add_argument('--out', default='bench-results', metavar='DIR', help='where the report goes (bench-results)')
    parser.add_argument('--scenario', action='append', choices=scenarios.NAMES, help='may be repeated; quick if none is named')
    parser.add_argument('--full', action='store_true', help='all scenarios')
    parser.add_argument('--peers', default='', help=f'servers beside sluice: {",".join(recipes.PROGRAMS)}, or all that are installed: all')
    parser.add_argument('--sizes', default='', help='quick, beside and threshold: these sizes instead of their own, such as 1k,64k,1m')
    parser.add_argument('--paths', default='', help='only these ways of sending: plain, user, ktls')
    parser.add_argument('--rounds', type=int, help='how often each setup is measured (3)')
    parser.add_argument('--seconds', type=float, help='how long each time (1; 0.6 for --page)')
    parser.add_argument('--warm', type=float, default=0.2, help='seconds of the same load before, not counted (0.2)')
    parser.add_argument('--loop', default='auto', choices=('auto', 'io_uring', 'epoll'), help='sluice\'s kernel interface')
    parser.add_argument('--sluice', default=os.path.join(build, 'sluice'))
    parser.add_argument('--blast', default=os.path.join(build, 'bench', 'blast'))
    parser.add_argument('--folder', default=None, help='where the served files are made')
    parser.add_argument('--port', type=int, default=24000, help='the first of the ports to use')
    parser.add_argument('--report', metavar='JSON', help='measure nothing: make the report of a result file again')
    parser.add_argument('--page', action='store_true', help='put the short form of the results into bench/README.md; where no scenario is '
                        'named, measure those that it shows')
    parser.add_argument('--figure', action='store_true', help='measure nothing: draw the figure of README.md from bench/README.md')
    parser.add_argument('--compare', nargs=2, metavar='JSON', help='measure nothing: show two result files side by side')
    parser.add_argument('--vm', nargs='?', const='6.1', metavar='VERSION', help='measure inside the emulated machine, whose kernel has TLS')
    parser.add_argument('--vm-minutes', type=int, default=40, help='how long it may take (40)')
    parser.add_argument('--emulated', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.build = build
    default = ['quick'] if not options.page else list(scenarios.PAGE_EMULATED if options.vm else scenarios.PAGE)
    options.scenario = list(scenarios.NAMES) if options.full else options.scenario or default
    options.rounds = options.rounds or 3
    options.seconds = options.seconds or (2.0 if options.vm else 0.6 if options.page else 1.0)
    options.sizes = [name for name in options.sizes.split(',') if name]
    options.paths = [name for name in options.paths.split(',') if name]
    if not set(options.paths) <= set(model.PATHS):
        parser.error(f'a path is one of {", ".join(model.PATHS)}')
    options.peers = [name for name in options.peers.split(',') if name]
    unknown = set(options.peers) - set(recipes.PROGRAMS) - {'all'}
    if unknown:
        parser.error(f'no such peer: {", ".join(sorted(unknown))}')
    if 'all' in options.peers:
        options.peers = [name for name, program in recipes.PROGRAMS.items() if machine.servers.find(program)]
    for program in (options.sluice, options.blast):
        if not (options.report or options.compare or options.figure) and not os.access(program, os.X_OK):
            parser.error(f'{program} is not there: build it (meson setup build && ninja -C build)')
    return options


def load_results(path):
    with open(path, encoding='utf-8') as stream:
        results = json.load(stream)
    if results.get('format') != FORMAT:
        sys.exit(f'{path} is no result file of this version')
    return results


def store(results, folder):
    with open(os.path.join(folder, 'results.json'), 'w', encoding='utf-8') as stream:
        json.dump(results, stream, indent=1)
        stream.write('\n')


def measure(options, words):
    """Runs all scenarios; returns the results."""
    facts = machine.facts(options, options.peers, options.emulated)
    results = {'format': FORMAT, 'made': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds'),
               'command': shlex.join(['bench/run', *words]), 'machine': facts, 'scenarios': [],
               'options': {'rounds': options.rounds, 'seconds': options.seconds, 'warm': options.warm, 'loop': options.loop}}
    neighbours = machine.Neighbours()
    with progress.make() as shown:
        for name in options.scenario:
            scenario = scenarios.named(name)
            groups = rounds.only(scenario.plan(options), options.paths)
            shown.begin(scenario.TITLE, rounds.steps(groups, options.rounds))
            part = {'name': name, 'title': scenario.TITLE, 'outcomes': []}
            results['scenarios'].append(part)
            for outcomes in rounds.measure(rounds.Bench(options, facts['ktls'], shown), groups):
                part['outcomes'] += [outcome.to_json() for outcome in outcomes]
                store(results, options.out)
            facts.update(neighbours.seen())
    store(results, options.out)
    return results


def page_write(path, results):
    with open(path, encoding='utf-8') as stream:
        page = report.replaced(stream.read(), report.digest(results), results['machine']['emulated'])
    with open(path, 'w', encoding='utf-8') as stream:
        stream.write(page)


def figure_write(folder):
    with open(os.path.join(folder, 'README.md'), encoding='utf-8') as stream:
        drawn = ratio_figure.draw(stream.read())
    with open(os.path.join(folder, ratio_figure.NAME), 'w', encoding='utf-8') as stream:
        stream.write(drawn)


def main(words):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))     # so that no server is left behind
    try:
        return run(parse(words), words)
    except servers.Failed as fault:
        sys.exit(str(fault))


def run(options, words):
    if options.compare:
        print(report.markdown_table(compare.table(*map(load_results, options.compare))))
        return 0
    if options.figure:
        figure_write(HERE)
        return 0
    os.makedirs(options.out, exist_ok=True)
    if options.report:
        results = load_results(options.report)
    elif options.vm:
        results = load_results(guest.measure(options))
        results['command'] = shlex.join(['bench/run', *words])
        store(results, options.out)
    else:
        results = measure(options, words)
    path = report.write(results, options.out)
    print(f'{path}, {os.path.join(options.out, "report.html")}')
    if options.page:
        page_write(os.path.join(HERE, 'README.md'), results)
    return 0
