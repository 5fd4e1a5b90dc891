"""The JSON Schema as an editor uses it: a validator of its own accepts what is shipped and refuses mistakes.

usage: validate_schema.py CONF_FOLDER
"""
import json
import pathlib
import sys

import jsonschema
import yaml

REFUSED = [
    'http: {server: {lisen: 80}}',
    'listen: 80',
    'http: {sendfile: maybe}',
    'http: {keepalive_timeout: 65}',
    'http: {client_max_body_size: 10x}',
    'events: {use: kqueue}',
    'http: {server: {location: {/: {listen: 80}}}}',
    'error_log: {paht: stderr}',
    'http: {server: {location: [/]}}',
]
ACCEPTED = [
    'http: {sendfile: off, client_max_body_size: 10m, keepalive_timeout: 1h30m}',
    'http: {keepalive_timeout: 0, client_max_body_size: 0}',
    'http: {sendfile: "${SENDFILE:-on}", keepalive_timeout: "${KEEP}"}',
    'x-anything: [1]',
    'http: {x-site: {a: 1}, include: [a.yaml, b/*.yaml]}',
    'http: {server: [{listen: 80}, {listen: [80, 443 ssl], ssl_protocols: [TLSv1.2, TLSv1.3]}]}',
]


def main():
    folder = pathlib.Path(sys.argv[1])
    schema = json.loads((folder / 'sluice.schema.json').read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    faults = []
    for path in [folder / 'sluice.yaml', *sorted((folder / 'examples').glob('*.yaml'))]:
        for error in validator.iter_errors(yaml.safe_load(path.read_text())):
            faults.append(f'{path}: {list(error.absolute_path)}: {error.message}')
    for text in ACCEPTED:
        for error in validator.iter_errors(yaml.safe_load(text)):
            faults.append(f'{text}: {error.message}')
    for text in REFUSED:
        if validator.is_valid(yaml.safe_load(text)):
            faults.append(f'{text}: accepted')
    print('\n'.join(faults))
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
