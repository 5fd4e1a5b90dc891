#!/usr/bin/env python3
"""Builds sluice in a folder that holds another Debian (debootstrap), runs the fast tests there, then boots a guest upon it.

usage: debian.py BUILD_FOLDER SOURCE_FOLDER RELEASE KERNEL [PART [PYTEST_ARGUMENTS...]]

So the tests of the guest run with that Debian's OpenSSL (12: 3.0, 13: 3.5), libraries and Python. The folder is
BUILD_FOLDER/vm/debian-RELEASE; it is made once. Needs root, debootstrap and a network; without them the tests are
skipped (exit 77), unless SLUICE_REQUIRE_VM is 1.
"""
import os
import shlex
import shutil
import subprocess
import sys

import fetch
import run

SUITES = {'12': 'bookworm', '13': 'trixie'}
PACKAGES = ('gcc libc6-dev meson ninja-build pkg-config libssl-dev liburing-dev libyaml-dev libc-ares-dev libpcre2-dev zlib1g-dev libbrotli-dev libzstd-dev libcrypt-dev check libsubunit-dev python3-venv '
            'ca-certificates curl e2fsprogs openssl strace iproute2 kmod util-linux procps').split()
TRUSTED = ('/etc/ssl/certs/ca-certificates.crt', '/etc/pip.conf')
BUILD = ('cd /sluice && { test -d build || meson setup build -Dwerror=true; } && ninja -C build && meson test -C build --suite fast '
         '--print-errorlogs && python3 tests/packages.py build -- path')


def enter(root, command):
    """Runs a shell command in the folder, with a /proc and /dev that vanish with it."""
    mounts = (f'mount -t proc proc {shlex.quote(root)}/proc && mount --rbind /dev {shlex.quote(root)}/dev && '
              f'exec chroot {shlex.quote(root)} sh -ec "$0"')
    subprocess.run(['unshare', '--mount', '--pid', '--fork', 'sh', '-ec', mounts, command], check=True, stdin=subprocess.DEVNULL,
                   env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive', 'LC_ALL': 'C.UTF-8', 'HOME': '/root', 'TMPDIR': '/tmp',
                        'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'})


def make(root, release):
    """The Debian, once, and what is to be installed in it."""
    if not os.path.exists(os.path.join(root, 'made')):
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run([shutil.which('debootstrap') or '/usr/sbin/debootstrap', '--variant=minbase', SUITES[release], root,
                        fetch.mirrors()[0]], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wanted = ' '.join(PACKAGES)
    if run.read(os.path.join(root, 'made')) == wanted:
        return
    shutil.copy('/etc/resolv.conf', os.path.join(root, 'etc/resolv.conf'))
    enter(root, f'apt-get -q -o Acquire::Retries=5 install -y --no-install-recommends {wanted}')
    for path in TRUSTED:                        # whom this machine tls_contexts and asks
        if os.path.exists(path):
            shutil.copy(path, root + path)
    with open(os.path.join(root, 'made'), 'w', encoding='ascii') as stream:
        stream.write(wanted)


def build(root, source):
    """The sources as they are now, built and tested in there."""
    target = os.path.join(root, 'sluice')
    os.makedirs(target, exist_ok=True)
    for name in ('src', 'conf', 'modules', 'tests', 'bench', 'meson.build', 'meson_options.txt', 'README.md', 'LICENSE'):
        origin, copy = os.path.join(source, name), os.path.join(target, name)
        if os.path.isdir(origin):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(origin, copy, symlinks=True)
        elif os.path.exists(origin):
            shutil.copy2(origin, copy)
    enter(root, BUILD)


def main():
    folder, source, release, version, rest = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
    kernel = os.path.join(folder, 'vm', version, 'kernel')
    if os.getuid() != 0:
        return run.skip('another Debian is made by root only')
    if not shutil.which('debootstrap', path='/usr/sbin:' + os.environ['PATH']):
        return run.skip('no debootstrap')
    if not os.path.exists(kernel):
        return run.skip(f'no kernel {version}; fetch it with: ninja -C {folder} vm-kernels')
    if run.refuse(run.read(kernel).strip()):
        return 1
    programs = os.path.join(run.packages.prepare(folder) or '', 'bin')
    root = os.path.join(folder, 'vm', f'debian-{release}')
    try:
        make(root, release)
        build(root, source)
    except subprocess.CalledProcessError as error:
        print(f'failed: {error}')
        return 1
    out = os.path.join(folder, 'vm', f'out-debian-{release}')
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    os.makedirs(os.path.join(root, 'out'), exist_ok=True)
    modules = os.path.join(root, 'kernel-modules')      # guest.sh puts them where the guest looks
    shutil.rmtree(modules, ignore_errors=True)
    shutil.copytree(os.path.join(folder, 'vm', version, 'root/lib/modules'), modules, symlinks=True)
    command = ['bash', '/sluice/tests/vm/guest.sh', '/out', '/sluice/build/venv/bin/python', '/sluice/build/sluice', *rest]
    return run.run_parts(programs, run.read(kernel).strip(), out, shlex.join(command), root)


if __name__ == '__main__':
    sys.exit(main())
