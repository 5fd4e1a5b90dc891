"""The example of each directive in the reference passes `sluice -t` and the JSON Schema in every scope that permits the directive."""
import json
import pathlib
import re
import shutil
import subprocess

import jsonschema
import pytest
import yaml
from kit import server as server_kit, site as site_kit

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / 'docs/directives').glob('*.md'))
SERVE = 'http:\n  server:\n    listen: 8080\n'
# scope: (configuration before the example, indentation of the example)
SCOPES = {
    'the main scope': (SERVE, ''),
    'events': (SERVE + 'events:\n', '  '),
    'http': ('http:\n  server:\n    listen: 8080\n', '  '),
    'server': (SERVE, '    '),
    'location': (SERVE + '    location:\n      /a/:\n', '        '),
    'upstream': (SERVE + '  upstream:\n    group:\n      server: [127.0.0.1:9001, 127.0.0.1:9002]\n', '      '),
    'stream': ('stream:\n  server: {listen: 5432, proxy_pass: 127.0.0.1:9001}\n', '  '),
    'a server of stream': ('stream:\n  server:\n    listen: 5432\n    proxy_pass: 127.0.0.1:9001\n', '    '),
}
# directive: the part of this configuration that the example replaces
REPLACED = {'listen': r' +listen: (8080|5432)\n', 'server': r' +server: \[.*\n', 'proxy_pass': r' +proxy_pass: .*\n',
            'return': r' +proxy_pass: .*\n'}
# directive: other directives that the example requires in http or stream
BESIDE = {'listen': 'ssl_certificate: self-signed', 'ssl_verify_client': 'ssl_client_certificate: internal-ca.pem',
          'auth_basic': 'auth_basic_user_file: users.htpasswd',
          'limit_req': 'limit_req_zone: "$binary_remote_addr zone=one:10m rate=10r/s"',
          'limit_conn': 'limit_conn_zone: "$binary_remote_addr zone=addr:10m"',
          'secure_link_required': 'secure_link: "$arg_sum"\n  secure_link_md5: $uri',
          'proxy_cache': 'proxy_cache_path: {path: cache, keys_zone: "one:1m"}'}
# A server_name in stream is matched before there is a request, so the regular expression of the example is not permitted there.
NOT_HERE = [('server_name', 'a server of stream')]


def examples():
    """(scope, example) for every scope of every directive."""
    for section in ''.join(page.read_text() for page in PAGES).split('\n## ')[1:]:
        name = re.match(r'`(\w+)`', section).group(1)
        where = re.search(r'^Where: (.*?)\. Value', section, re.M | re.S).group(1).replace('\n', ' ')
        text = re.search(r'```yaml\n(.*?)```', section, re.S).group(1)
        for scope in where.split(', '):
            if (name, scope) not in NOT_HERE:
                yield pytest.param(scope, text, id=f'{name}-{scope}')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('reference')
    certificate, _ = site_kit.make_certificate(str(folder))
    (folder / 'users.htpasswd').write_text('')
    (folder / 'internal-ca.pem').write_bytes(pathlib.Path(certificate).read_bytes())
    return folder


@pytest.fixture(scope='module')
def schema():
    text = subprocess.run([server_kit.SLUICE, 'schema'], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
    return jsonschema.Draft7Validator(json.loads(text))


@pytest.mark.parametrize('scope, example', examples())
def test_examples_load_and_match_the_schema(folder, schema, scope, example):
    before, indent = SCOPES[scope]
    name = example.split(':')[0]
    before = re.sub(REPLACED.get(name, '^$'), '', before)
    if name in BESIDE:
        first, _, rest = before.partition('\n')
        before = '\n  '.join([first, BESIDE[name]]) + '\n' + rest
    example = example.replace('/etc/ssl/internal-ca.pem', str(folder / 'internal-ca.pem'))
    path = folder / 'sluice.yaml'
    text = before + ''.join(f'{indent}{line}\n' for line in example.splitlines())
    path.write_text(text)
    done = subprocess.run([server_kit.SLUICE, '-t', '-c', path], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          timeout=60 * server_kit.PATIENCE)
    assert done.returncode == 0, f'{text}\n{done.stderr}'
    assert [error.message for error in schema.iter_errors(yaml.safe_load(text))] == [], text


def test_help_entries_are_self_contained():
    """`sluice help NAME` prints a single entry, so no entry may refer to the one above it."""
    entries = [entry for page in PAGES for entry in re.findall(r'^## `(\w+)`[^\n]*\n\n(.*?)\n', page.read_text(), re.M)]
    leaning = [(name, text) for name, text in entries if re.match(r'The same (by|,|for)|The same, |Its |How long (that|such) |Where they ', text)
               or re.search(r'such a connection|encoded so', text)]
    assert len(entries) > 250 and leaning == []


def readme_block(language):
    text = (ROOT / 'README.md').read_text()
    return re.search(rf'```{language}\n(.*?)```', text, re.S).group(1)


def covered(expected, tree):
    """Whether `tree` has everything in `expected`; further keys are permitted, and a list of one item equals that item."""
    if isinstance(expected, dict):
        return isinstance(tree, dict) and all(key in tree and covered(value, tree[key]) for key, value in expected.items())
    if isinstance(expected, list):
        tree = tree if isinstance(tree, list) else [tree]
        return len(expected) == len(tree) and all(map(covered, expected, tree))
    return expected == tree


def test_readme_configurations_load(folder):
    """The YAML in README.md passes `sluice -t`, and `sluice import` produces it from the nginx configuration beside it."""
    ours, theirs = readme_block('yaml'), readme_block('nginx')
    certificate, key = site_kit.make_certificate(str(folder))
    whole = folder / 'whole.pem'
    whole.write_text(pathlib.Path(certificate).read_text() + pathlib.Path(key).read_text())
    (folder / 'sluice.yaml').write_text(ours.replace('/etc/ssl/example.pem', str(whole)))
    (folder / 'nginx.conf').write_text('events {}\n' + theirs.replace('/etc/ssl/example.pem', str(whole)))
    subprocess.run([server_kit.SLUICE, '-t', '-c', folder / 'sluice.yaml'], check=True, stdin=subprocess.DEVNULL)
    made = subprocess.run([server_kit.SLUICE, 'import', folder / 'nginx.conf'], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert covered(yaml.safe_load((folder / 'sluice.yaml').read_text()), yaml.safe_load(made.stdout)), made.stdout
    if shutil.which('nginx'):
        subprocess.run(['nginx', '-t', '-q', '-p', folder, '-c', folder / 'nginx.conf'], check=True, stdin=subprocess.DEVNULL)
