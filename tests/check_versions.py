#!/usr/bin/env python3
"""Checks that all files name the version of meson.build, that it is a semantic version, and that CHANGELOG.md has a section for each release.

check_versions.py [--self-test]
"""
import datetime
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEMANTIC = r'(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}'
# file: a regular expression whose group is the version; each of its matches is compared
NAMED = {
    'README.md': r'^\| \| sluice (\S+) \|',
    'SECURITY.md': r'version (\S+) has no separate',
    'debian/changelog': r'\Asluice \(1:(\S+)\)', # the epoch: see docs/stability.md
    'conf/install/sluice.spec': r'^Version: +(\S+)$',
    'conf/examples/container/Containerfile': r'\bsluice:(\d\S*)',
    'conf/examples/kubernetes/deployment.yaml': r'image: sluice:(\S+)',
    'conf/examples/kubernetes/daemonset.yaml': r'image: sluice:(\S+)',
}


def version_of(text):
    """The version in the text of meson.build."""
    return re.search(r"^  version: '([^']*)'", text, re.M)[1]


def name_faults(version, read):
    """`read` returns the text of a file."""
    if not re.fullmatch(SEMANTIC, version):
        yield f'meson.build: {version} is not MAJOR.MINOR.PATCH'
    for name, pattern in NAMED.items():
        found = re.findall(pattern, read(name), re.M)
        yield from (f'{name}: {other} instead of {version}' for other in found if other != version)
        if not found:
            yield f'{name}: the version is not found'


def is_date(text):
    try:
        return datetime.date.fromisoformat(text) is not None
    except ValueError:
        return False


def changelog_faults(version, text):
    """Sections: Unreleased, then the releases, the latest first. Until the first release the text says so."""
    headings = re.findall(r'^## (.*)$', text, re.M)
    if not headings or headings[0] != '[Unreleased]':
        yield 'CHANGELOG.md: the first section is not [Unreleased]'
    releases = [re.fullmatch(rf'\[({SEMANTIC})\] - (\S+)', heading) for heading in headings[1:]]
    yield from (f'CHANGELOG.md: not "[VERSION] - DATE": {heading}' for heading, found in zip(headings[1:], releases) if not found or not is_date(found[2]))
    numbers = [tuple(map(int, found[1].split('.'))) for found in releases if found]
    if numbers != sorted(set(numbers), reverse=True):
        yield 'CHANGELOG.md: the sections are not in the order of their versions'
    if numbers and numbers[0] != tuple(map(int, version.split('.'))):
        yield f'CHANGELOG.md: no section for {version}'
    if bool(numbers) == ('There has been no release yet' in text):
        yield 'CHANGELOG.md: "There has been no release yet" contradicts the sections'


def source(name):
    return (ROOT / name).read_text(encoding='utf-8')


def self_test():
    version = version_of(source('meson.build'))
    for changed in NAMED:
        for other, fault in (('9.9.9', f'{changed}: 9.9.9 instead'), ('', f'{changed}: the version is not found')):
            faults = list(name_faults(version, lambda name, changed=changed, other=other: source(name).replace(version, other) if name == changed else source(name)))
            assert any(text.startswith(fault) for text in faults) and all(text.startswith(changed) for text in faults), faults
    assert any('MAJOR' in fault for fault in name_faults('1.02.3', source))
    good = '## [Unreleased]\n## [1.2.3] - 2026-12-01\n## [1.2.2] - 2026-11-01\n'
    assert not list(changelog_faults('1.2.3', good)) and not list(changelog_faults('0.1.0', 'There has been no release yet\n## [Unreleased]\n'))
    for version, bad in (('1.2.4', good), ('1.2.3', good.replace('1.2.2', '1.3.0')), ('1.2.3', good.replace('12-01', '13-01')),
                         ('1.2.3', good.replace(' - 2026-11-01', '')), ('1.2.3', good.replace('[Unreleased]', 'Next')), ('0.1.0', '## [Unreleased]\n'),
                         ('1.2.3', 'There has been no release yet\n' + good)):
        assert list(changelog_faults(version, bad)), (version, bad)


def main():
    if sys.argv[1:] == ['--self-test']:
        self_test()
        return 0
    version = version_of(source('meson.build'))
    faults = [*name_faults(version, source), *changelog_faults(version, source('CHANGELOG.md'))]
    print(*faults, sep='\n', end='\n' if faults else '')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
