#!/usr/bin/env python3
"""Boots a fetched kernel in an emulator, with this machine's files beneath it (read-only), and runs tests in there.

usage: run.py BUILD_FOLDER VERSION SLUICE TEST_FILE [PYTEST_ARGUMENTS...]

A test file whose name holds "without_module" runs in a guest that has no tls module and cannot load one. Without the
kernel, the emulator or the Python packages the test is skipped (exit 77), unless SLUICE_REQUIRE_VM is 1.
"""
import os
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import packages  # noqa: E402

BOOT_AND_RUN_SECONDS = 1500


def skip(why):
    required = os.environ.get('SLUICE_REQUIRE_VM') == '1'
    print(f'{"failed" if required else "skipped"}: {why}')
    return 1 if required else 77


def boot(programs, image, out, command):
    """Runs the command in the guest; everything it says lands in out/said."""
    environment = {**os.environ, 'PATH': f'{programs}:/usr/sbin:/sbin:{os.environ["PATH"]}'}
    line = [os.path.join(programs, 'vng'), '--disable-kvm', '--force-9p', '--run', image, '--cpus', '2', '-m', '3G',
            '--rwdir', out, '--qemu-opts=-cpu max', '--', f'{command} > {shlex.quote(out)}/said 2>&1']
    return subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                          timeout=BOOT_AND_RUN_SECONDS, check=False)


def main():
    build, version, sluice, test = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3]), sys.argv[4]
    kernel = os.path.join(build, 'vm', version, 'kernel')
    if not os.path.exists(kernel):
        return skip(f'no kernel {version} in {os.path.dirname(kernel)}; fetch it with: ninja -C {build} vm-kernels')
    if not shutil.which('qemu-system-x86_64'):
        return skip('no qemu-system-x86_64')
    folder = packages.prepare(build)
    if folder is None:
        return skip('no virtme-ng')
    with open(kernel, encoding='utf-8') as stream:
        image = stream.read().strip()
    out = os.path.join(build, 'vm', version, 'out-' + os.path.splitext(os.path.basename(test))[0])
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    command = ['bash', os.path.join(HERE, 'guest.sh'), out, os.path.join(folder, 'bin', 'python'), sluice,
               os.path.join(HERE, test), *sys.argv[5:]]
    try:
        told = boot(os.path.join(folder, 'bin'), image, out, shlex.join(command)).stdout.decode(errors='replace')
    except subprocess.TimeoutExpired:
        told = f'no end within {BOOT_AND_RUN_SECONDS} s'
    said = os.path.join(out, 'said')
    print(open(said, encoding='utf-8', errors='replace').read() if os.path.exists(said) else '')
    status = os.path.join(out, 'status')
    if not os.path.exists(status):
        print(f'the guest did not finish; the emulator said:\n{told[-4000:]}')
        return 1
    with open(status, encoding='ascii') as stream:
        return int(stream.read())


if __name__ == '__main__':
    sys.exit(main())
