"""The scenarios by name. Each is a module with TITLE, plan(options) -> [Group], present(outcomes, results) -> [blocks]."""
import importlib

NAMES = ('quick', 'beside', 'agreement', 'matrix', 'zerocopy', 'proxy', 'splice', 'relay', 'cold', 'threshold', 'targets', 'profile')
PAGE = ('quick', 'targets', 'zerocopy', 'proxy', 'splice', 'agreement', 'cold')    # what bench/README.md shows
PAGE_EMULATED = ('threshold', 'relay')


def named(name):
    return importlib.import_module(f'{__name__}.{name}')
