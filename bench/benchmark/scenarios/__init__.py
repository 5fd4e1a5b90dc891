"""The scenarios. Each is a module with TITLE, plan(options) -> [Group], report_elements(outcomes, results) -> elements of a report
(blocks.py), and optionally readme_elements(outcomes, results) for bench/README.md."""
import importlib

NAMES = ('quick', 'comparison', 'agreement', 'matrix', 'zerocopy', 'proxy', 'splice', 'relay', 'http2', 'cold_cache', 'upgrade', 'sandbox', 'threshold', 'targets', 'profile', 'handshake')
PAGE = ('quick', 'targets', 'zerocopy', 'proxy', 'splice', 'agreement', 'cold_cache', 'upgrade')    # shown in bench/README.md
PAGE_EMULATED = ('threshold', 'relay')


def module_of(name):
    return importlib.import_module(f'{__name__}.{name}')
