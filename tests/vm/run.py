#!/usr/bin/env python3
"""Boots a downloaded kernel in an emulator, with this machine's files mounted read-only, and runs the tests in it.

guest.sh defines the parts, which all run in one boot. The output of each part is in BUILD/vm/VERSION/out/PART.log. Prints the
numbers of results for each test file, and the output of failed parts. Without the kernel, the emulator or the Python packages
the tests are skipped (exit status 77); with SLUICE_REQUIRE_VM=1 they fail.
"""
import argparse
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
sys.path[:0] = [os.path.dirname(HERE), HERE]       # also if bench/run imports this file
import fetch  # noqa: E402
import packages  # noqa: E402

BOOT_AND_RUN_SECONDS = int(os.environ.get('SLUICE_VM_SECONDS', '3000'))
PARTS = os.environ.get('SLUICE_VM_PARTS')       # the parts, if the arguments name none
OUTCOMES = ('PASSED', 'FAILED', 'ERROR', 'SKIPPED')
CONSOLE_LINES = 60
# A second 9p device with this machine's files, which guest.sh mounts with a cache.
FILES = ('-fsdev local,id=files,path=/,security_model=none,readonly=on,multidevs=remap '
         '-device virtio-9p-pci,fsdev=files,mount_tag=sluice-files')
# Console messages about the end of a guest, in order of precedence.
CAUSES = ('no end within .+', r'qemu-system-\S+: .+', 'insmod: .+', '[Ff]ailed to mount.+', 'Out of memory: .+', 'Kernel panic - not syncing: .+',
          'script exited with code (?!0$).+')


def skip(why):
    required = os.environ.get('SLUICE_REQUIRE_VM') == '1'
    print(f'{"failed" if required else "skipped"}: {why}')
    return 1 if required else 77


def check_kernel(image):
    """Returns 0 if a guest can boot the kernel; otherwise prints the fault and returns 1."""
    try:
        fetch.check(image)
    except (OSError, LookupError) as error:
        print(f'failed: {error}: delete {os.path.dirname(os.path.dirname(os.path.dirname(image)))} and fetch the kernel again with vm-kernels')
        return 1
    return 0


def read(path):
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf-8', errors='replace') as stream:
        return stream.read()


def kill_group(program):
    """Kills the process group, since the emulator is a grandchild process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)


def unblock_sigterm():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def run_and_kill(line, environment, seconds):
    """Runs a program and returns its output; kills all of its processes at the end, also after SIGTERM. Raises TimeoutExpired, whose
    `output` is the output until then."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))       # raises an exception, like Ctrl-C
    # Inside Popen the exception would lose the process, which may run already.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    # stdout is a pipe, because the emulator opens its outputs a second time by name and would truncate a file.
    program = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                               text=True, errors='replace', start_new_session=True, preexec_fn=unblock_sigterm)
    try:
        unblock_sigterm()
        return program.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired as timeout:
        kill_group(program)
        timeout.output = program.communicate()[0]
        raise
    finally:
        kill_group(program)
        program.wait()


def boot(programs, image, out, command, counting=False):
    """Runs the command in the guest and writes its output to out/output. Returns the output of the emulator and the console; may raise
    TimeoutExpired. `counting`: the guest has one processor, whose clock advances by 1 ns per instruction: equal work takes equal time."""
    environment = {**os.environ, 'PATH': f'{programs}:/usr/sbin:/sbin:{os.environ["PATH"]}'}
    line = [os.path.join(programs, 'vng'), '--verbose', '--disable-kvm', '--force-9p', '--run', image, '--cpus', '1' if counting else '2', '-m', '3G',
            '--append', 'no_timer_check',       # otherwise the kernel panics on a busy machine, where its check of the emulated timer fails
            f'--qemu-opts=-cpu max {FILES}{" -icount shift=0" if counting else ""}', '--rwdir', out, '--', f'{command} > {shlex.quote(out)}/output 2>&1']
    return run_and_kill(line, environment, BOOT_AND_RUN_SECONDS)


def report(part, output):
    """Prints the numbers of passed, failed and skipped tests of each file."""
    counts = collections.defaultdict(collections.Counter)
    for outcome, number, name in re.findall(rf'^({"|".join(OUTCOMES)}) (?:\[(\d+)\] )?([\w./]+\.py)', output, re.M):
        counts[os.path.basename(name)][outcome] += int(number or 1)
    for name, found in sorted(counts.items()):
        print(f'{part:10} {name:26}', ', '.join(f'{found[outcome]} {outcome.lower()}' for outcome in OUTCOMES if found[outcome]))


def cause(console):
    """The cause of an early end, from the messages on the console."""
    return next((found[0] for found in (re.findall(pattern, console, re.M) for pattern in CAUSES) if found), 'unknown: the console has no message about it')


def run_parts(programs, image, out, command):
    """Boots the guest. Returns 0 if the guest and all started parts succeeded."""
    try:
        console = boot(programs, image, out, command)
    except subprocess.TimeoutExpired as timeout:
        console = f'{timeout.output}\nno end within {BOOT_AND_RUN_SECONDS} s'
    failed = [] if read(os.path.join(out, 'status')).strip() == '0' else ['guest']
    logs = sorted(glob.glob(os.path.join(out, '*.log')))
    if not logs:
        failed.append('no part was started')
    for log in logs:
        part = os.path.basename(log)[:-4]
        text = read(log)
        report(part, text)
        if read(os.path.join(out, f'{part}.status')).strip() != '0':
            print(f'==== {part} failed:\n{text}')
            failed.append(part)
    if 'guest' in failed:
        text, last = read(os.path.join(out, 'output')), '\n'.join(console.splitlines()[-CONSOLE_LINES:])
        print(f'==== output in the guest:\n{text}\n==== console and emulator:\n{last}\n==== cause of the end: {cause(console)}')
    print('failed: ' + ', '.join(failed) if failed else 'all parts passed')
    return 1 if failed else 0


def folders(environment, python, sluice):
    """The directories that the tests read, except /usr: sources, build, Python environment, Python itself."""
    found = [os.path.dirname(os.path.dirname(HERE)), os.path.dirname(sluice), environment, os.path.dirname(os.path.dirname(python))]
    return [path for path in dict.fromkeys(map(os.path.realpath, found)) if path != '/usr']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', metavar='BUILD', help='the build directory')
    parser.add_argument('version', metavar='VERSION', help='a version that fetch.py has downloaded')
    parser.add_argument('sluice', metavar='SLUICE', help='the server binary')
    parser.add_argument('rest', metavar='PARTS [PYTEST_ARGUMENT...]', nargs=argparse.REMAINDER,
                        help='a part or several ("connections|http"), then arguments for pytest')
    options = parser.parse_args()
    build, version, sluice = os.path.abspath(options.build), options.version, os.path.abspath(options.sluice)
    kernel = os.path.join(build, 'vm', version, 'kernel')
    if not os.path.exists(kernel):
        return skip(f'no kernel {version} in {os.path.dirname(kernel)}; fetch it with: ninja -C {build} vm-kernels')
    if check_kernel(read(kernel).strip()):
        return 1
    if not shutil.which('qemu-system-x86_64'):
        return skip('no qemu-system-x86_64')
    folder = packages.prepare(build)
    if folder is None:
        packages.print_failure(build)
        return skip('no virtme-ng')
    out = os.path.join(build, 'vm', version, 'out')
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    python = os.path.join(folder, 'bin', 'python')
    with open(os.path.join(out, 'folders'), 'w', encoding='utf-8') as stream:
        stream.writelines(f'{path}\n' for path in folders(folder, os.path.realpath(python), sluice))
    command = ['bash', os.path.join(HERE, 'guest.sh'), out, python, sluice, *(options.rest or filter(None, [PARTS]))]
    return run_parts(os.path.join(folder, 'bin'), read(kernel).strip(), out, shlex.join(command))


if __name__ == '__main__':
    sys.exit(main())
