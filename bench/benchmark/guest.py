"""The same measurements inside the emulated machine of tests/vm, whose kernel has TLS; only the report is made outside."""
import importlib.util
import os
import shlex
import shutil
import sys

from . import servers

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'tests')
BOOT_SECONDS = 300                  # beyond the guest's own limit: it ends itself, so that no emulator is left behind
FOLDER = '/dev/shm'                 # in the guest: files in memory


def emulator():
    """tests/vm/run.py, which knows how to boot."""
    sys.path.insert(0, TESTS)
    spec = importlib.util.spec_from_file_location('vm_run', os.path.join(TESTS, 'vm', 'run.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernel_image(build, version):
    path = os.path.join(build, 'vm', version, 'kernel')
    if not os.path.exists(path):
        raise servers.Failed(f'no kernel {version}: fetch it with ninja -C {build} vm-kernels')
    with open(path, encoding='utf-8') as stream:
        return stream.read().strip()


def words_of(options, out):
    """The command line of the benchmark in the guest."""
    words = [word for name in options.scenario for word in ('--scenario', name)]
    words += ['--sizes', ','.join(options.sizes)] if options.sizes else []
    words += ['--paths', ','.join(options.paths)] if options.paths else []
    words += ['--peers', ','.join(options.peers)] if options.peers else []
    return words + ['--emulated', '--out', out, '--rounds', str(options.rounds), '--seconds', str(options.seconds),
                    '--warm', str(options.warm), '--loop', options.loop, '--sluice', os.path.abspath(options.sluice),
                    '--blast', os.path.abspath(options.blast), '--folder', FOLDER]


def measure(options):
    """Boots, measures, and returns the path of the guest's results.json."""
    build = os.path.abspath(options.build)
    machine = emulator()
    machine.BOOT_AND_RUN_SECONDS = options.vm_minutes * 60 + BOOT_SECONDS
    programs = machine.packages.prepare(build)
    if not programs or not servers.find('qemu-system-x86_64'):
        raise servers.Failed('the emulator is missing: qemu-system-x86_64, and virtme-ng (it comes by itself where there is a network)')
    image = kernel_image(build, options.vm)
    out = os.path.join(build, 'vm', options.vm, 'out-bench')
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    command = ['env', f'PYTHONPATH={os.path.dirname(HERE)}', 'bash', os.path.join(HERE, 'guest.sh'), sys.executable, '-m', 'benchmark',
               *words_of(options, out)]
    print(f'measuring in an emulated machine with Linux {options.vm}; it takes its time (what it says: {out}/said)', flush=True)
    told = ''
    try:
        told = machine.boot(os.path.join(programs, 'bin'), image, out, f'timeout -k 30 {options.vm_minutes * 60} {shlex.join(command)}')
    except machine.subprocess.TimeoutExpired:
        print(f'not finished within {options.vm_minutes} minutes: the report holds what there was', file=sys.stderr)
    path = os.path.join(out, 'results.json')
    if not os.path.exists(path):
        raise servers.Failed(f'the emulated machine brought nothing (see {out}/said); the emulator said:\n'
                             f'{told[-2000:]}')
    return path
