#!/usr/bin/env python3
"""Checks `meson install`: the installed files, a configuration that loads and listens on loopback only, and that an existing
configuration is not overwritten.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

CONF = {'sluice.yaml', 'types.yaml'}
SHARE = {'sluice.schema.json', 'www/icon.svg', 'www/index.html', 'www/style.css'}
DOC = {'README.md', 'modules.md', 'types.yaml', 'examples/README.md', 'examples/sites/docs.yaml', 'www/index.html'}


def meson(*arguments, **environment):
    return subprocess.run(['meson', *arguments], check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}).stdout


def option(build, name):
    return next(row['value'] for row in json.loads(meson('introspect', build, '--buildoptions')) if row['name'] == name)


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob('*') if path.is_file()}


def effective(sluice, path):
    """The lines of the effective configuration."""
    return subprocess.run([sluice, '-T', '-c', path], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def listening(lines):
    """The addresses of the listen directive."""
    start = next(number for number, line in enumerate(lines) if line.strip() == '- listen:')
    return [found[1] for line in lines[start + 1:start + 10] if (found := re.match(r'\s+- ([\d.]+:\d+)( ssl)?$', line))]


def broken_links(folder):
    """Links in the installed documents whose target is not installed."""
    found = [(page, link) for page in folder.rglob('*.md') for link in re.findall(r'\]\((?!https?:|#)([^)#]+)', page.read_text())]
    return [f'{page.relative_to(folder)}: {link}' for page, link in found if not (page.parent / link).exists()]


def check(build, sluice, root):
    meson('install', '-C', build, '--no-rebuild', '--quiet', DESTDIR=str(root))
    prefix = pathlib.Path(option(build, 'prefix'))
    conf, share = prefix / option(build, 'sysconfdir') / 'sluice', prefix / option(build, 'datadir') / 'sluice'
    doc = prefix / option(build, 'datadir') / 'doc/sluice'

    def installed(path):
        return root / path.relative_to('/')
    assert files(installed(conf)) == CONF, files(installed(conf))
    assert files(installed(share)) == SHARE, files(installed(share))
    assert files(installed(doc)) > DOC, files(installed(doc))
    assert not broken_links(installed(doc)), broken_links(installed(doc))
    shipped = installed(conf / 'sluice.yaml')
    text = shipped.read_text()
    assert text.startswith(f'# yaml-language-server: $schema={share}/sluice.schema.json\n'), text
    lines = effective(sluice, shipped)
    assert any(line.strip() == f'root: {share}/www' for line in lines), lines
    assert listening(lines) == ['127.0.0.1:8080', '127.0.0.1:8443'], lines
    shipped.write_text('# changed\n')
    installed(share / 'sluice.schema.json').write_text('{}')
    meson('install', '-C', build, '--no-rebuild', '--quiet', DESTDIR=str(root))
    assert shipped.read_text() == '# changed\n', 'an existing configuration is not overwritten'
    assert len(installed(share / 'sluice.schema.json').read_text()) > 100, 'the schema is updated'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', metavar='BUILD', help='the build directory')
    parser.add_argument('sluice', metavar='SLUICE', help='the server binary')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        check(options.build, options.sluice, pathlib.Path(root))


if __name__ == '__main__':
    main()
