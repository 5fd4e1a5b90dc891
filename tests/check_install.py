#!/usr/bin/env python3
"""Checks `meson install`: the installed files and the paths in them, a configuration that loads and listens on loopback only, the
systemd unit, the manual pages, and that an existing configuration is not changed.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import wrapped

LOOPBACK = ['127.0.0.1:8080', '127.0.0.1:8443']
SYSTEM = {'systemd/system/sluice.service', 'systemd/system/sluice.socket', 'sysusers.d/sluice.conf', 'tmpfiles.d/sluice.conf',
          'modules-load.d/sluice.conf'}
CONF = {'sluice/sluice.yaml', 'sluice/types.yaml', 'sluice/conf.d/default.yaml', 'logrotate.d/sluice'}
SHARE = {'sluice/sluice.schema.json', 'sluice/grafana/sluice.json', 'sluice/www/icon.svg', 'sluice/www/index.html', 'sluice/www/style.css', 'man/man1/sluice.1',
         'man/man5/sluice.yaml.5', 'bash-completion/completions/sluice', 'zsh/site-functions/_sluice', 'fish/vendor_completions.d/sluice.fish'}
DOC = {'types.yaml', 'html/index.html', 'html/search.js', 'html/directives/proxy.html', 'docs/README.md', 'docs/recipes.md', 'docs/directives/core.md', 'examples/README.md', 'examples/sites/docs.yaml', 'www/index.html'}
EXPOSURE_MAX = 2.0  # of `systemd-analyze security`
ROFF = {r'\-': '-', r'\e': '\\', r'\(aq': "'", r'\(ga': '`', r'\(ha': '^', r'\(ti': '~', r'\(dq': '"', r'\&': ''}


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def meson(*arguments, **environment):
    return run('meson', *arguments, env={**os.environ, **environment})


def install(build, root):
    meson('install', '-C', build, '--no-rebuild', '--quiet', DESTDIR=str(root))


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob('*') if path.is_file()}


def assert_equal(found, expected):
    assert found == expected, f'missing: {sorted(expected - found)}; unexpected: {sorted(found - expected)}'


class Installed:
    """The directories of an installation: their names in installed files, and their paths below `root`, returned by at()."""

    def __init__(self, build, root):
        options = {row['name']: row['value'] for row in json.loads(meson('introspect', build, '--buildoptions'))}
        self.root, self.prefix = root, pathlib.Path(options['prefix'])
        self.sbin, self.etc, self.share, self.var = (self.prefix / options[name]
                                                     for name in ('sbindir', 'sysconfdir', 'datadir', 'localstatedir'))
        self.conf, self.doc, self.lib = self.etc / 'sluice/sluice.yaml', self.share / 'doc/sluice', self.prefix / 'lib'

    def at(self, path):
        return self.root / path.relative_to('/')

    def text(self, path):
        return self.at(path).read_text(encoding='utf-8')


def listening(lines):
    """The addresses of the listen directive."""
    start = next(number for number, line in enumerate(lines) if line.strip() in ('- listen:', 'listen:'))
    return [found[1] for line in lines[start + 1:start + 10] if (found := re.match(r'\s+- ([\d.]+:\d+)( ssl)?$', line))]


def broken_links(folder):
    """The links of the installed documents whose targets are not installed."""
    found = [(page, link) for page in folder.rglob('*.md') for link in re.findall(r'\]\((?!https?:|#)([^)#]+)', page.read_text())]
    return [f'{page.relative_to(folder)}: {link}' for page, link in found if not (page.parent / link).exists()]


def check_files(installed):
    assert_equal(files(installed.at(installed.etc)), CONF)
    assert_equal({name for name in files(installed.at(installed.share)) if not name.startswith('doc/')}, SHARE)
    assert_equal({name for name in files(installed.at(installed.lib)) if '.d/' in name or name.startswith('systemd/')}, SYSTEM)
    assert files(installed.at(installed.doc)) > DOC, files(installed.at(installed.doc))
    assert not broken_links(installed.at(installed.doc)), broken_links(installed.at(installed.doc))
    for path in installed.root.rglob('*'):
        if path.is_file() and not path.is_relative_to(installed.at(installed.sbin)):
            assert not re.search(rb'@[A-Z]{2,}@', path.read_bytes()), f'{path} contains a name without its value'


def check_configuration(installed, sluice):
    text = installed.text(installed.conf)
    assert text.startswith(f'# yaml-language-server: $schema={installed.share}/sluice/sluice.schema.json\n'), text
    # -T as root reports a missing user, and this machine may lack that of the package.
    lines = run(sluice, '-T', '-g', 'user: root', '-c', installed.at(installed.conf)).splitlines()
    words = ' '.join(lines)
    assert re.search(rf'root: {installed.share}/sluice/www\b', words), words
    for name in ('access', 'error'):
        assert f'{installed.var}/log/sluice/{name}.log' in words, words
    assert listening(lines) == LOOPBACK, lines
    site = installed.at(installed.etc / 'sluice/conf.d/default.yaml')
    text = site.read_text(encoding='utf-8')
    site.write_text(text.replace(f'root: {installed.share}', f'root: {installed.at(installed.share)}'), encoding='utf-8')
    assert run(sluice, 'lint', installed.at(installed.conf)) == '', 'the configuration has no lint'
    site.write_text(text, encoding='utf-8')


def check_page(installed):
    """The page of the default site names files that are installed, and its style."""
    page = installed.text(installed.share / 'sluice/www/index.html')
    for path in (installed.conf, installed.etc / 'sluice/conf.d/default.yaml', installed.doc / 'examples'):
        assert f'<code>{path}</code>' in page and installed.at(path).exists(), path
    for name in re.findall(r'(?:href|src)="([^"]*)"', page):
        assert installed.at(installed.share / 'sluice/www' / name).exists(), name


def settings(unit):
    """[(name, value)] of the assignments of a unit."""
    return re.findall(r'^(\w+)=(.*)$', unit, re.M)


def check_units(installed):
    folder = installed.lib / 'systemd/system'
    service, socket = installed.text(folder / 'sluice.service'), installed.text(folder / 'sluice.socket')
    for name, word in (('ExecStart', 'sluice'), ('ExecReload', 'sluice -s reload')):
        assert (name, f'{installed.sbin}/{word} -c {installed.conf}') in settings(service), service
    assert installed.at(installed.sbin / 'sluice').exists()
    assert [value for name, value in settings(socket) if name == 'ListenStream'] == LOOPBACK, socket
    writable = f'-{installed.var}/log/sluice -{installed.var}/cache/sluice'
    assert ('ReadWritePaths', writable) in settings(service), service
    assert ('StateDirectory', 'sluice') in settings(service), service
    for path in (f'{installed.var}/log/sluice', f'{installed.var}/cache/sluice', '/var/lib/sluice', '/run/sluice'):
        assert re.search(rf'^d {path} ', installed.text(installed.lib / 'tmpfiles.d/sluice.conf'), re.M), path
    assert installed.text(installed.etc / 'logrotate.d/sluice').startswith(f'{installed.var}/log/sluice/*.log {{\n')


def check_exposure(installed):
    unit = installed.at(installed.lib / 'systemd/system/sluice.service')
    found = re.search(r'exposure level for \S+ ([\d.]+)', run('systemd-analyze', 'security', '--offline=true', '--no-pager', unit))
    assert float(found[1]) <= EXPOSURE_MAX, f'{found[0]}: more than {EXPOSURE_MAX}'


def roff_text(page):
    """The words of a manual page without requests and escapes."""
    text = re.sub(r'\\f[BIR]|\\:', '', page)
    for escape, character in ROFF.items():
        text = text.replace(escape, character)
    return text


def check_manual(installed, root):
    """sluice.yaml(5) has each heading and each example of the reference, and manual.py fails on an unsupported input."""
    page = roff_text(installed.text(installed.share / 'man/man5/sluice.yaml.5'))
    reference = ''.join(path.read_text(encoding='utf-8') for path in (root / 'docs/configuration.md', *(root / 'docs/directives').glob('*.md')))
    headings, examples = re.findall(r'^##+ (`.*)$', reference, re.M), re.findall(r'^```yaml\n(.*?)^```', reference, re.M | re.S)
    assert len(headings) > 250 and len(examples) > 250
    for heading in headings:
        assert f'\n.SS "{heading.replace("`", "")}"\n' in page, heading
    for example in examples:
        assert f'\n.EX\n{example}.EE\n' in page, example
    with tempfile.NamedTemporaryFile('w', suffix='.md') as unknown:
        for text in ('## A\n\n- a list\n', '## A\n\n1. a list\n', '## A\n\nno ASCII: \u00e4\n', '## A\n\n```\nno end\n'):
            unknown.seek(0)
            unknown.truncate()
            unknown.write(text)
            unknown.flush()
            result = subprocess.run(['python3', '-B', root / 'conf/install/manual.py', '1', unknown.name], check=False, capture_output=True)
            assert result.returncode != 0, text
    if shutil.which('man') and shutil.which('groff'):
        for name in ('man1/sluice.1', 'man5/sluice.yaml.5'):
            faults = subprocess.run(['man', '--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-Z', installed.at(installed.share / 'man' / name)],
                                    check=True, capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C.UTF-8'}).stderr
            assert not faults, faults


def check_second_installation(installed, build):
    """A second installation does not change configuration files, and does not restore deleted ones."""
    changed = [installed.at(installed.conf), installed.at(installed.etc / 'logrotate.d/sluice')]
    for path in changed:
        path.write_text('# changed\n')
    site, types = (installed.at(installed.etc / 'sluice' / name) for name in ('conf.d/default.yaml', 'types.yaml'))
    site.unlink()
    schema = installed.at(installed.share / 'sluice/sluice.schema.json')
    schema.write_text('{}')
    install(build, installed.root)
    assert {path.read_text() for path in changed} == {'# changed\n'}, 'an existing configuration is not overwritten'
    assert not site.exists(), 'a deleted site stays deleted'
    assert len(schema.read_text()) > 100, 'the schema is updated'
    changed[0].unlink()
    types.write_text('# changed\n')
    install(build, installed.root)
    assert changed[0].exists() and site.exists() and types.read_text() == '# changed\n', 'only missing files are installed'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', metavar='BUILD', help='the build directory')
    parser.add_argument('sluice', metavar='SLUICE', help='the server binary')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as folder:
        install(options.build, root)
        installed = Installed(options.build, pathlib.Path(root))
        check_files(installed)
        check_configuration(installed, wrapped.runnable(options.sluice, folder))
        check_page(installed)
        check_units(installed)
        if shutil.which('systemd-analyze'):
            check_exposure(installed)
        check_manual(installed, pathlib.Path(__file__).resolve().parent.parent)
        check_second_installation(installed, options.build)


if __name__ == '__main__':
    main()
