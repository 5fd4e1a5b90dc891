"""Runs the benchmark in the emulated machine of tests/vm, whose kernel supports TLS. The host writes the report."""
import importlib.util
import os
import shlex
import shutil
import sys

from . import servers

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'tests')
BOOT_SECONDS = 300                  # time limit of the guest above that of the benchmark in it
GUEST_FOLDER = '/dev/shm'           # the served files are in the guest's memory


def vm_runner():
    """The module tests/vm/run.py, which boots the guest."""
    sys.path.insert(0, TESTS)
    spec = importlib.util.spec_from_file_location('vm_run', os.path.join(TESTS, 'vm', 'run.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernel_image(build, version):
    path = os.path.join(build, 'vm', version, 'kernel')
    if not os.path.exists(path):
        raise servers.BenchmarkError(f'no kernel {version}: fetch it with ninja -C {build} vm-kernels')
    with open(path, encoding='utf-8') as stream:
        return stream.read().strip()


def arguments_of(options, out):
    """Arguments of the benchmark in the guest."""
    arguments = [word for name in options.scenario for word in ('--scenario', name)]
    arguments += ['--sizes', ','.join(options.sizes)] if options.sizes else []
    arguments += ['--transports', ','.join(options.transports)] if options.transports else []
    arguments += ['--peers', ','.join(options.peers)] if options.peers else []
    return arguments + ['--emulated', '--out', out, '--rounds', str(options.rounds), '--seconds', str(options.seconds),
                    '--warm', str(options.warm), '--loop', options.loop, '--sluice', os.path.abspath(options.sluice),
                    '--blast', os.path.abspath(options.blast), '--folder', GUEST_FOLDER]


def measure(options):
    """Boots the guest and runs the benchmark; returns the path of its results.json."""
    build = os.path.abspath(options.build)
    machine = vm_runner()
    machine.BOOT_AND_RUN_SECONDS = options.vm_minutes * 60 + BOOT_SECONDS
    programs = machine.packages.prepare(build)
    if not programs or not servers.find_program('qemu-system-x86_64'):
        raise servers.BenchmarkError('the emulator is missing: qemu-system-x86_64, and virtme-ng, which is installed automatically if there is a network')
    image = kernel_image(build, options.vm)
    out = os.path.join(build, 'vm', options.vm, 'out-bench')
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    command = ['env', f'PYTHONPATH={os.path.dirname(HERE)}', 'bash', os.path.join(HERE, 'guest.sh'), sys.executable, '-m', 'benchmark',
               *arguments_of(options, out)]
    print(f'measuring in an emulated machine with Linux {options.vm}, which is slow; its output is in {out}/output', flush=True)
    error = ''
    try:
        error = machine.boot(os.path.join(programs, 'bin'), image, out, f'timeout -k 30 {options.vm_minutes * 60} {shlex.join(command)}',
                             counting=True)
    except machine.subprocess.TimeoutExpired:
        print(f'not finished within {options.vm_minutes} minutes: the report has the measurements until then', file=sys.stderr)
    path = os.path.join(out, 'results.json')
    if not os.path.exists(path):
        raise servers.BenchmarkError(f'the emulated machine produced no results (see {out}/output); output of the emulator:\n'
                             f'{error[-2000:]}')
    return path
