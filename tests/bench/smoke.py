#!/usr/bin/env python3
"""Runs bench/run with very short durations: each setup of the scenarios must have readings, and the report must be complete.

The measured values are not checked.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ('run', 'build', 'sluice', 'blast', 'port'):
        parser.add_argument(name, metavar=name.upper())
    parser.add_argument('names', metavar='SCENARIO', nargs='*', help='(default: quick)')
    options = parser.parse_args()
    run, build, sluice, blast, port = (getattr(options, name) for name in ('run', 'build', 'sluice', 'blast', 'port'))
    names = options.names or ['quick']
    with tempfile.TemporaryDirectory() as folder:
        arguments = [word for name in names for word in ('--scenario', name)]
        subprocess.run([sys.executable, run, '--out', folder, '--rounds', '1', '--seconds', '0.1', '--warm', '0', '--sluice', sluice,
                        '--blast', blast, '--port', port, *arguments],
                       check=True, env={**os.environ, 'SLUICE_BUILD': build}, stdin=subprocess.DEVNULL)
        with open(f'{folder}/results.json', encoding='utf-8') as stream:
            results = json.load(stream)
        assert [scenario['name'] for scenario in results['scenarios']] == names
        for scenario in results['scenarios']:
            for outcome in scenario['outcomes']:
                message = f'{scenario["name"]}: {outcome["load"]} {outcome["setup"]}: {outcome["failure"]}'
                unsupported = outcome['setup']['transport'] == 'ktls' and not results['machine']['ktls']
                assert outcome['readings'] or unsupported, message
                assert all(reading.get('responses_all', 1) > 0 for reading in outcome['readings']), message
        for name in ('report.md', 'report.html'):
            with open(f'{folder}/{name}', encoding='utf-8') as stream:
                assert results['scenarios'][0]['title'] in stream.read(), name
        subprocess.run([sys.executable, run, '--compare', f'{folder}/results.json', f'{folder}/results.json'], check=True,
                       env={**os.environ, 'SLUICE_BUILD': build}, stdout=subprocess.DEVNULL)
    return 0


if __name__ == '__main__':
    sys.exit(main())
