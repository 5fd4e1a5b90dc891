#!/usr/bin/env python3
"""A whole run of bench/run with tiny durations: every scenario that is asked for measures, and the report is there.

usage: smoke.py BENCH_RUN BUILD_FOLDER SLUICE BLAST PORT [SCENARIO...]; nothing of what was measured is asserted but that it was.
"""
import json
import os
import subprocess
import sys
import tempfile


def main():
    run, build, sluice, blast, port = sys.argv[1:6]
    names = sys.argv[6:] or ['quick']
    with tempfile.TemporaryDirectory() as folder:
        words = [word for name in names for word in ('--scenario', name)]
        subprocess.run([sys.executable, run, '--out', folder, '--rounds', '1', '--seconds', '0.1', '--warm', '0', '--sluice', sluice,
                        '--blast', blast, '--port', port, *words],
                       check=True, env={**os.environ, 'SLUICE_BUILD': build}, stdin=subprocess.DEVNULL)
        with open(f'{folder}/results.json', encoding='utf-8') as stream:
            results = json.load(stream)
        assert [scenario['name'] for scenario in results['scenarios']] == names
        for scenario in results['scenarios']:
            for outcome in scenario['outcomes']:
                what = f'{scenario["name"]}: {outcome["load"]} {outcome["setup"]}: {outcome["missing"]}'
                excused = outcome['setup']['path'] == 'ktls' and not results['machine']['ktls']
                assert outcome['readings'] or excused, what
                assert all(reading.get('answers_all', 1) > 0 for reading in outcome['readings']), what
        for name in ('report.md', 'report.html'):
            with open(f'{folder}/{name}', encoding='utf-8') as stream:
                assert results['scenarios'][0]['title'] in stream.read(), name
        subprocess.run([sys.executable, run, '--compare', f'{folder}/results.json', f'{folder}/results.json'], check=True,
                       env={**os.environ, 'SLUICE_BUILD': build}, stdout=subprocess.DEVNULL)
    return 0


if __name__ == '__main__':
    sys.exit(main())
