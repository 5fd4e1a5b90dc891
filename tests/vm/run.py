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

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]       # also where bench/run loads this
import fetch  # noqa: E402
import packages  # noqa: E402

BOOT_AND_RUN_SECONDS = int(os.environ.get('SLUICE_VM_SECONDS', '3000'))
OUTCOMES = ('PASSED', 'FAILED', 'ERROR', 'SKIPPED')
CONSOLE_LINES = 60
# The machine's files once more, for guest.sh, which mounts them with a cache.
FILES = ('-fsdev local,id=files,path=/,security_model=none,readonly=on,multidevs=remap '
         '-device virtio-9p-pci,fsdev=files,mount_tag=sluice-files')
# What a console says of a guest's end; where several are there, the first of these is the cause.
CAUSES = ('no end within .+', r'qemu-system-\S+: .+', 'insmod: .+', '[Ff]ailed to mount.+', 'Out of memory: .+', 'Kernel panic - not syncing: .+',
          'script exited with code (?!0$).+')


def skip(why):
    required = os.environ.get('SLUICE_REQUIRE_VM') == '1'
    print(f'{"failed" if required else "skipped"}: {why}')
    return 1 if required else 77


def refuse(image):
    """The kernel's fault, said before a guest is begun with it; or 0."""
    try:
        fetch.check(image)
    except (OSError, LookupError) as error:
        print(f'failed: {error}: remove {os.path.dirname(os.path.dirname(os.path.dirname(image)))}, and fetch it again with vm-kernels')
        return 1
    return 0


def read(path):
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf-8', errors='replace') as stream:
        return stream.read()


def end(program):
    """All that the program started ends with it: the emulator is a child's child."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)


def run_whole(line, environment, seconds):
    """Runs a program and all that it starts, and returns what was said. Nothing of it goes on, after SIGTERM neither; nor after
    TimeoutExpired, whose `output` is what was said till then.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))       # an exception like Ctrl-C's
    # A pipe: the emulator opens its outputs once more by name, and a file would be cut and overwritten by each.
    program = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                               text=True, errors='replace', start_new_session=True)
    try:
        return program.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired as late:
        end(program)
        late.output = program.communicate()[0]
        raise
    finally:
        end(program)
        program.wait()


def boot(programs, image, out, command):
    """Runs the command in the guest; what it says lands in out/said. Returns what the emulator and the guest's console said; may raise
    TimeoutExpired.
    """
    environment = {**os.environ, 'PATH': f'{programs}:/usr/sbin:/sbin:{os.environ["PATH"]}'}
    line = [os.path.join(programs, 'vng'), '--verbose', '--disable-kvm', '--force-9p', '--run', image, '--cpus', '2', '-m', '3G',
            '--append', 'no_timer_check',       # a busy machine lets an emulated timer come too late for that check, which panics
            f'--qemu-opts=-cpu max {FILES}', '--rwdir', out, '--', f'{command} > {shlex.quote(out)}/said 2>&1']
    return run_whole(line, environment, BOOT_AND_RUN_SECONDS)


def report(part, said):
    """A line for each file of tests: how many passed, failed, were skipped."""
    counts = collections.defaultdict(collections.Counter)
    for outcome, number, name in re.findall(rf'^({"|".join(OUTCOMES)}) (?:\[(\d+)\] )?([\w./]+\.py)', said, re.M):
        counts[os.path.basename(name)][outcome] += int(number or 1)
    for name, found in sorted(counts.items()):
        print(f'{part:10} {name:26}', ', '.join(f'{found[outcome]} {outcome.lower()}' for outcome in OUTCOMES if found[outcome]))


def cause(console):
    """Why the guest ended before its time, in its own words."""
    return next((found[0] for found in (re.findall(pattern, console, re.M) for pattern in CAUSES) if found), 'its console does not tell')


def run_parts(programs, image, out, command):
    """0 when every part that was begun in the guest ended well, and the guest with them."""
    try:
        console = boot(programs, image, out, command)
    except subprocess.TimeoutExpired as late:
        console = f'{late.output}\nno end within {BOOT_AND_RUN_SECONDS} s'
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
        said, last = read(os.path.join(out, 'said')), '\n'.join(console.splitlines()[-CONSOLE_LINES:])
        print(f'==== the guest said:\n{said}\n==== its console and the emulator said:\n{last}\n==== why it ended: {cause(console)}')
    print('failed: ' + ', '.join(failed) if failed else 'all parts passed')
    return 1 if failed else 0


def folders(environment, python, sluice):
    """What the tests read, besides /usr: the sources, the program, the environment and its Python."""
    found = [os.path.dirname(os.path.dirname(HERE)), os.path.dirname(sluice), environment, os.path.dirname(os.path.dirname(python))]
    return [path for path in dict.fromkeys(map(os.path.realpath, found)) if path != '/usr']


def main():
    build, version, sluice, rest = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3]), sys.argv[4:]
    kernel = os.path.join(build, 'vm', version, 'kernel')
    if not os.path.exists(kernel):
        return skip(f'no kernel {version} in {os.path.dirname(kernel)}; fetch it with: ninja -C {build} vm-kernels')
    if refuse(read(kernel).strip()):
        return 1
    if not shutil.which('qemu-system-x86_64'):
        return skip('no qemu-system-x86_64')
    folder = packages.prepare(build)
    if folder is None:
        packages.explain(build)
        return skip('no virtme-ng')
    out = os.path.join(build, 'vm', version, 'out')
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    python = os.path.join(folder, 'bin', 'python')
    with open(os.path.join(out, 'folders'), 'w', encoding='utf-8') as stream:
        stream.writelines(f'{path}\n' for path in folders(folder, os.path.realpath(python), sluice))
    command = ['bash', os.path.join(HERE, 'guest.sh'), out, python, sluice, *rest]
    return run_parts(os.path.join(folder, 'bin'), read(kernel).strip(), out, shlex.join(command))


if __name__ == '__main__':
    sys.exit(main())
