"""The scenarios by name. Each is a module with TITLE, plan(options) -> [Group] and present(outcomes, results) -> [blocks]."""
import importlib

NAMES = ('quick', 'comparison', 'agreement', 'matrix', 'zerocopy', 'proxy', 'splice', 'relay', 'http2', 'cold_cache', 'threshold', 'targets', 'profile', 'handshake')
PAGE = ('quick', 'targets', 'zerocopy', 'proxy', 'splice', 'agreement', 'cold_cache')    # shown in bench/README.md
PAGE_EMULATED = ('threshold', 'relay')


def module_of(name):
    return importlib.import_module(f'{__name__}.{name}')
