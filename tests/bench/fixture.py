"""Readings and results of the benchmark, for its tests without measurements."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../bench'))
sys.dont_write_bytecode = True

from benchmark import model  # noqa: E402

PLAIN = model.Setup('sluice', 'plain')
USER = model.Setup('sluice', 'user')


def reading(cpu, responses=1000):
    return {'seconds': 1.0, 'elapsed': 1.0, 'responses': responses, 'responses_all': responses, 'bytes': responses * 1000,
            'bytes_all': responses * 1000, 'cpu': cpu, 'user': cpu / 2, 'system': cpu / 2, 'switches': 10, 'client_cpu': 0.5,
            'memory': 3000, 'latency': [[1000, responses - 1], [2000, 1]], 'handshakes': 0, 'resumed': 0,
            'baseline': [[150000, responses]], 'upgrade_gap': 0.150}


def outcome(setup, *cpu, load=model.Load('1k')):
    return model.Outcome(load, setup, [reading(one) for one in cpu])


def results_of(*outcomes, **machine):
    facts = {'processor': 'P|1', 'cpus': 2, 'memory_mib': 1, 'kernel': 'k', 'ktls': True, 'server_cpu': 0, 'client_cpu': 1,
             'others': 0.05, 'steal': 0.0, 'certificate': 'c', 'suite': 's', 'versions': {'sluice': '1'}, 'emulated': False, **machine}
    return {'format': 2, 'made': 'now', 'command': 'bench/run', 'machine': facts,
            'options': {'rounds': 3, 'seconds': 1, 'warm': 0.2, 'loop': 'auto'},
            'scenarios': [{'name': 'quick', 'title': 'T', 'outcomes': [one.to_json() for one in outcomes]}]}
