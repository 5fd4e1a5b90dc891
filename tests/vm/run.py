#!/usr/bin/env python3
"""Boots a fetched kernel in an emulator, with this machine's files beneath it (read-only), and runs the tests in there.

usage: run.py BUILD_FOLDER VERSION SLUICE [PARTS [PYTEST_ARGUMENTS...]]

One boot for all: guest.sh has the parts, of which PARTS names one or some ("endings|http"). Each part's words are in
BUILD_FOLDER/vm/VERSION/out/PART.log; printed are a count for each file of tests, and the words of the parts that
failed. Without the kernel, the emulator or the Python packages the tests are skipped (exit 77), unless SLUICE_REQUIRE_VM is 1.
"""
import collections
import contextlib
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import packages  # noqa: E402

BOOT_AND_RUN_SECONDS = int(os.environ.get('SLUICE_VM_SECONDS', '3000'))
OUTCOMES = ('PASSED', 'FAILED', 'ERROR', 'SKIPPED')


def skip(why):
    required = os.environ.get('SLUICE_REQUIRE_VM') == '1'
    print(f'{"failed" if required else "skipped"}: {why}')
    return 1 if required else 77


def read(path):
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf-8', errors='replace') as stream:
        return stream.read()


def run_whole(line, environment, seconds):
    """Runs a program and all that it starts, and returns what was said. Nothing of it goes on, after TimeoutExpired or SIGTERM neither."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))       # an exception like Ctrl-C's
    with tempfile.TemporaryFile() as said:
        program = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, env=environment,
                                   start_new_session=True)
        try:
            program.wait(seconds)
        finally:                                                # the emulator is a child's child
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        said.seek(0)
        return said.read().decode(errors='replace')


def boot(programs, image, out, command, root=None):
    """Runs the command in the guest; what it says lands in out/said. Returns what the emulator said; may raise TimeoutExpired.

    With `root` that folder is the guest's root, where `out` is called /out; otherwise it is this machine's own.
    """
    environment = {**os.environ, 'PATH': f'{programs}:/usr/sbin:/sbin:{os.environ["PATH"]}'}
    line = [os.path.join(programs, 'vng'), '--disable-kvm', '--force-9p', '--run', image, '--cpus', '2', '-m', '3G',
            '--qemu-opts=-cpu max', *(['--root', root, f'--rwdir=/out={out}'] if root else ['--rwdir', out]),
            '--', f'{command} > {"/out" if root else shlex.quote(out)}/said 2>&1']
    return run_whole(line, environment, BOOT_AND_RUN_SECONDS)


def report(part, said):
    """A line for each file of tests: how many passed, failed, were skipped."""
    counts = collections.defaultdict(collections.Counter)
    for outcome, name in re.findall(rf'^({"|".join(OUTCOMES)}) (?:\[\d+\] )?([\w./]+\.py)', said, re.M):
        counts[os.path.basename(name)][outcome] += 1
    for name, found in sorted(counts.items()):
        print(f'{part:10} {name:26}', ', '.join(f'{found[outcome]} {outcome.lower()}' for outcome in OUTCOMES if found[outcome]))


def run_parts(programs, image, out, command, root=None):
    """0 when every part that was begun in the guest ended well, and the guest with them."""
    try:
        told = boot(programs, image, out, command, root)
    except subprocess.TimeoutExpired:
        told = f'no end within {BOOT_AND_RUN_SECONDS} s'
    failed = [] if read(os.path.join(out, 'status')).strip() == '0' else ['guest']
    logs = sorted(glob.glob(os.path.join(out, '*.log')))
    if not logs:
        failed.append('nothing was run')
    for begun in logs:
        part = os.path.basename(begun)[:-4]
        said = read(begun)
        report(part, said)
        if read(os.path.join(out, f'{part}.status')).strip() != '0':
            print(f'==== {part} failed:\n{said}')
            failed.append(part)
    if 'guest' in failed:
        print(f'==== the guest said:\n{read(os.path.join(out, "said"))}\n==== the emulator said:\n{told[-4000:]}')
    print('failed: ' + ', '.join(failed) if failed else 'all parts passed')
    return 1 if failed else 0


def main():
    build, version, sluice, rest = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3]), sys.argv[4:]
    kernel = os.path.join(build, 'vm', version, 'kernel')
    if not os.path.exists(kernel):
        return skip(f'no kernel {version} in {os.path.dirname(kernel)}; fetch it with: ninja -C {build} vm-kernels')
    if not shutil.which('qemu-system-x86_64'):
        return skip('no qemu-system-x86_64')
    folder = packages.prepare(build)
    if folder is None:
        return skip('no virtme-ng')
    out = os.path.join(build, 'vm', version, 'out')
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    command = ['bash', os.path.join(HERE, 'guest.sh'), out, os.path.join(folder, 'bin', 'python'), sluice, *rest]
    return run_parts(os.path.join(folder, 'bin'), read(kernel).strip(), out, shlex.join(command))


if __name__ == '__main__':
    sys.exit(main())
