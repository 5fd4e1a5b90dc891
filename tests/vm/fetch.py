#!/usr/bin/env python3
"""Downloads Debian kernels for the suite "vm" and unpacks them into the build directory; installs nothing.

Each kernel is unpacked into BUILD/vm/VERSION, where the file `kernel` has the path of its image. The packages come from the mirror
that apt uses on this machine, or from DEBIAN_MIRROR. Requires apt, dpkg and kmod, but no root privileges.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

SUITES = {
    '6.1': ('bookworm', 'bookworm-security'),
    '6.12': ('trixie', 'trixie-security'),
    'sid': ('sid', None),
}
# Modules that the guest needs to boot and to run the tests; they may be built in.
NEEDED = '9p 9pnet_virtio virtio_pci virtio_console overlay tls gcm ctr aesni_intel chacha20poly1305 nbd ext4'.split()
KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'


def mirrors():
    """The URIs of the main and the security mirror that this machine uses."""
    mirror = os.environ.get('DEBIAN_MIRROR')
    if mirror:
        return mirror.rstrip('/'), mirror.rstrip('/').replace('/debian', '/debian-security')
    listed = subprocess.run(['apt-get', 'indextargets', '--format', '$(REPO_URI)'], capture_output=True, text=True, check=False)
    found = list(dict.fromkeys(line.rstrip('/') for line in listed.stdout.split()))
    main = next((uri for uri in found if uri.endswith('/debian')), 'http://deb.debian.org/debian')
    security = next((uri for uri in found if uri.endswith('debian-security')), 'http://deb.debian.org/debian-security')
    return main, security


class Apt:
    """apt with separate lists and cache, for a suite that may differ from that of this machine."""

    def __init__(self, folder, suite, security):
        self.folder = folder
        for name in ('lists/partial', 'cache/archives/partial'):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        main_mirror, security_mirror = mirrors()
        signed = f' signed-by={KEYRING}' if os.path.exists(KEYRING) else ''
        with open(os.path.join(folder, 'sources.list'), 'w', encoding='utf-8') as stream:
            stream.write(f'deb [arch=amd64{signed}] {main_mirror} {suite} main\n')
            if security:
                stream.write(f'deb [arch=amd64{signed}] {security_mirror} {security} main\n')
        self.options = ['-o', f'Dir::Etc::sourcelist={folder}/sources.list', '-o', 'Dir::Etc::sourceparts=-',
                        '-o', f'Dir::State::lists={folder}/lists', '-o', f'Dir::Cache={folder}/cache',
                        '-o', 'APT::Sandbox::User=root' if os.getuid() == 0 else 'Acquire::Retries=5',
                        '-o', 'Acquire::Retries=5', '-o', 'Acquire::http::Timeout=60',
                        '-o', 'Acquire::Check-Valid-Until=false',       # of a mirror that is no longer updated; signatures are checked
                        '-o', 'APT::Get::List-Cleanup=0']

    def run(self, program, *arguments, cwd=None):
        return subprocess.run([program, *self.options, *arguments], cwd=cwd, check=True, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE).stdout

    def depends(self, package):
        return re.findall(r'^\s+\|?Depends: <?([^\s>]+)', self.run('apt-cache', 'depends', package), re.M)


def kernel_packages(apt):
    """The packages of linux-image-amd64 that contain the kernel image and its modules."""
    packages = [name for name in apt.depends('linux-image-amd64') if re.match(r'linux-image-\d', name)][:1]
    for name in packages:
        packages += [more for more in apt.depends(name) if re.match(r'linux-(base|binary|modules)-\d', more) and more not in packages]
    return packages


def names_in(path):
    """The module names in modules.dep or modules.builtin."""
    with open(path, encoding='ascii') as stream:
        return {re.sub(r'\.ko.*', '', os.path.basename(line.split(':')[0].strip())).replace('-', '_') for line in stream}


def check(image):
    """Raises LookupError if a needed module is missing: the guest could not mount its root file system and would panic."""
    modules = os.path.join(os.path.dirname(os.path.dirname(image)), 'lib/modules', os.path.basename(image).removeprefix('vmlinuz-'))
    there = set().union(*(names_in(os.path.join(modules, name)) for name in ('modules.dep', 'modules.builtin')))
    if missing := [name for name in NEEDED if name not in there]:
        raise LookupError(f'no module {", ".join(missing)} in {modules}')


def unpack(folder, downloads):
    root = os.path.join(folder, 'root')
    shutil.rmtree(root, ignore_errors=True)
    for name in sorted(os.listdir(downloads)):
        if name.endswith('.deb'):
            subprocess.run(['dpkg', '-x', os.path.join(downloads, name), root], check=True)
    if not os.path.exists(os.path.join(root, 'lib')):
        os.symlink('usr/lib', os.path.join(root, 'lib'))
    version = sorted(os.listdir(os.path.join(root, 'lib/modules')))[-1]
    subprocess.run([shutil.which('depmod') or '/sbin/depmod', '-b', root, version], check=True)
    image = os.path.join(root, 'boot', f'vmlinuz-{version}')
    if not os.path.exists(image):
        os.makedirs(os.path.dirname(image), exist_ok=True)
        shutil.copy(os.path.join(root, 'lib/modules', version, 'vmlinuz'), image)
    check(image)
    return image


def fetch(folder, version):
    kernel = os.path.join(folder, 'kernel')
    if os.path.exists(kernel):
        return
    downloads = os.path.join(folder, 'downloads')
    shutil.rmtree(downloads, ignore_errors=True)
    os.makedirs(downloads)
    apt = Apt(folder, *SUITES[version])
    apt.run('apt-get', 'update')
    packages = kernel_packages(apt)
    apt.run('apt-get', 'download', *packages, cwd=downloads)
    image = unpack(folder, downloads)
    with open(kernel, 'w', encoding='utf-8') as stream:
        stream.write(image)
    for name in ('downloads', 'lists', 'cache'):
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    print(f'{version}: {image}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', metavar='BUILD', help='the build directory')
    parser.add_argument('versions', metavar='VERSION', nargs='*', help=f'one or more of {", ".join(SUITES)} (default: 6.1)')
    options = parser.parse_args()
    unknown = [version for version in options.versions if version not in SUITES]
    if unknown:
        parser.error(f'unknown version {", ".join(unknown)}: choose from {", ".join(SUITES)}')
    for version in options.versions or ['6.1']:
        folder = os.path.join(os.path.abspath(options.build), 'vm', version)
        os.makedirs(folder, exist_ok=True)
        for attempt in range(4):
            try:
                fetch(folder, version)
                break
            except (subprocess.CalledProcessError, OSError, LookupError) as error:
                print(f'{version}: attempt {attempt + 1}: {error}', file=sys.stderr)
                time.sleep(5 << attempt)
        else:
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
