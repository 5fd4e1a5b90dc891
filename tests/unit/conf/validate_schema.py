"""Validates the JSON Schema with an independent validator, like an editor: it accepts the shipped files and reports mistakes."""
import argparse
import json
import pathlib
import sys

import jsonschema
import yaml

# A source with a mistake, and the path of the node that an editor must underline, as keys and indices.
REFUSED = [
    ('http: {server: {lisen: 80}}', ['http', 'server']),
    ('listen: 80', []),
    ('wrker_processes: 2', []),
    ('worker_processes: many', ['worker_processes']),
    ('worker_processes: 0', ['worker_processes']),
    ('daemon: maybe', ['daemon']),
    ('http: {sendfile: maybe}', ['http', 'sendfile']),
    ('http: {sendfile: [on]}', ['http', 'sendfile']),
    ('http: {keepalive_timeout: 65}', ['http', 'keepalive_timeout']),
    ('http: {keepalive_timeout: 1 minute}', ['http', 'keepalive_timeout']),
    ('http: {client_max_body_size: 10x}', ['http', 'client_max_body_size']),
    ('http: {max_ranges: 5000}', ['http', 'max_ranges']),
    ('http: {lingering_close: never}', ['http', 'lingering_close']),
    ('events: {use: kqueue}', ['events', 'use']),
    ('events: {worker_connections: lots}', ['events', 'worker_connections']),
    ('events: [worker_connections]', ['events']),
    ('http: {server: {location: {/: {listen: 80}}}}', ['http', 'server', 'location', '/']),
    ('http: {server: [{listen: 80}, {rot: www}]}', ['http', 'server', 1]),
    ('http: {server: {location: {/a: {location: {/a/b: {autoindex: perhaps}}}}}}',
     ['http', 'server', 'location', '/a', 'location', '/a/b', 'autoindex']),
    ('http: {server: {location: [/]}}', ['http', 'server', 'location']),
    ('http: {server: {ssl_protocols: [TLSv1.1]}}', ['http', 'server', 'ssl_protocols', 0]),
    ('http: {server: {ssl_ktls: sometimes}}', ['http', 'server', 'ssl_ktls']),
    ('http: {upstream: {a: {servers: [127.0.0.1:1]}}}', ['http', 'upstream', 'a']),
    ('http: {upstream: {a: {keepalive: -1}}}', ['http', 'upstream', 'a', 'keepalive']),
    ('error_log: {paht: stderr}', ['error_log']),
    ('http: {include: {a: b}}', ['http', 'include']),
    ('stream: {server: {root: www}}', ['stream', 'server']),
    ('stream: {server: {listen: 1, proxy_timeout: 5}}', ['stream', 'server', 'proxy_timeout']),
    ('- http: {}', []),
]
ACCEPTED = [
    'http: {sendfile: off, client_max_body_size: 10m, keepalive_timeout: 1h30m}',
    'http: {keepalive_timeout: 0, client_max_body_size: 0}',
    'http: {sendfile: "${SENDFILE:-on}", keepalive_timeout: "${KEEP}"}',
    'x-anything: [1]',
    'http: {x-site: {a: 1}, include: [a.yaml, b/*.yaml]}',
    'http: {server: [{listen: 80}, {listen: [80, 443 ssl], ssl_protocols: [TLSv1.2, TLSv1.3]}]}',
]


def leaves(error):
    """The innermost errors of a failed choice between alternative forms."""
    if not error.context:
        yield error
    for inner in error.context:
        yield from leaves(inner)


def places(validator, tree):
    """The nodes that an editor underlines: that of each error, and those of its alternatives."""
    for error in validator.iter_errors(tree):
        yield list(error.absolute_path)
        for leaf in leaves(error):
            yield list(leaf.absolute_path)


def shipped(folder):
    """(path, content) of the shipped files; an included file is placed in the scope that includes it."""
    examples = folder / 'examples'
    for path in [folder / 'sluice.yaml', *sorted(examples.glob('*.yaml')), *sorted(examples.glob('*/sluice.yaml'))]:
        yield path, yaml.safe_load(path.read_text())
    for path in sorted((examples / 'kubernetes').glob('*.yaml')):
        for manifest in yaml.safe_load_all(path.read_text()):
            yield path, yaml.safe_load(manifest['data']['sluice.yaml']) if manifest['kind'] == 'ConfigMap' else {}
    yield folder / 'types.yaml', {'http': {'types': yaml.safe_load((folder / 'types.yaml').read_text())}}
    for path in sorted((folder / 'examples' / 'sites').glob('*.yaml')):
        yield path, {'http': yaml.safe_load(path.read_text())}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('folder', metavar='CONF', type=pathlib.Path, help='the directory conf/')
    folder = parser.parse_args().folder
    schema = json.loads((folder / 'sluice.schema.json').read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    faults = []
    known = {path for path, _ in shipped(folder)}
    faults += [f'{path} is not looked at' for path in sorted(folder.rglob('*.yaml')) if path not in known]
    for path, tree in shipped(folder):
        for error in validator.iter_errors(tree):
            faults.append(f'{path}: {list(error.absolute_path)}: {error.message}')
    for text in ACCEPTED:
        for error in validator.iter_errors(yaml.safe_load(text)):
            faults.append(f'{text}: {error.message}')
    for text, place in REFUSED:
        found = list(places(validator, yaml.safe_load(text)))
        if place not in found:
            faults.append(f'{text}: {place} is not among {found}')
    print('\n'.join(faults))
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
