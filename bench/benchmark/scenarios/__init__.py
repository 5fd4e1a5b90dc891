"""The scenarios by name. Each is a module with TITLE, plan(options) -> [Group], present(outcomes, results) -> [blocks]."""
import importlib

NAMES = ('quick', 'agreement', 'matrix', 'zerocopy', 'proxy', 'splice', 'threshold', 'targets')


def named(name):
    return importlib.import_module(f'{__name__}.{name}')
