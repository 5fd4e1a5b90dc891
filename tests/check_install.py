#!/usr/bin/env python3
"""What `meson install` writes: each file in its folder, a configuration that loads and listens on loopback only, and never over one
that is there.

usage: check_install.py BUILD_FOLDER SLUICE
"""
import json
import os
import pathlib
import re
import subprocess
import sys
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
    """The lines of the loaded configuration."""
    return subprocess.run([sluice, '-T', '-c', path], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def listening(lines):
    """The addresses below listen."""
    start = next(number for number, line in enumerate(lines) if line.strip() == '- listen:')
    return [found[1] for line in lines[start + 1:start + 10] if (found := re.match(r'\s+- ([\d.]+:\d+)( ssl)?$', line))]


def broken_links(folder):
    """Links of the installed documents to files that are not installed with them."""
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
    assert shipped.read_text() == '# changed\n', 'a configuration that is there is kept'
    assert len(installed(share / 'sluice.schema.json').read_text()) > 100, 'the schema follows the program'


def main():
    with tempfile.TemporaryDirectory() as root:
        check(sys.argv[1], sys.argv[2], pathlib.Path(root))


if __name__ == '__main__':
    main()
