"""The CPU time of a server by shared object, sampled by perf in a separate run."""
import os
import re
import shutil
import subprocess
import tempfile

from . import load_generator, servers, tracers

SAMPLES_PER_SECOND = 2000
COMPONENTS = (('kernel', r'\[(kernel|vdso|guest)|\.ko'), ('crypto', r'libcrypto'), ('ssl', r'libssl'), ('c_library', r'^(libc|ld-linux|libpthread|libm)[.-]'))


def component_of(name):
    """The component of a shared object: 'kernel', 'crypto', 'ssl', 'c_library', or 'own' for the program and all other libraries."""
    return next((component for component, pattern in COMPONENTS if re.search(pattern, name)), 'own')


def shares(text):
    """{component: share} from the output of `perf report --sort dso`: lines such as '12.34%;libssl.so.3'."""
    found = {component: 0.0 for component in ('own', *(component for component, _ in COMPONENTS))}
    for percent, name in re.findall(r'^\s*([\d.]+)%?\s*;\s*(\S+)', text, re.M):
        found[component_of(name)] += float(percent) / 100
    total = sum(found.values())
    return {component: share / total for component, share in found.items()} if total else None


class PerfSamples:
    """Samples the processes by perf inside a with block; `shares` is None if perf took no samples."""

    def __init__(self, pids):
        self.pids, self.shares = pids, None
        if not shutil.which('perf'):
            raise servers.BenchmarkError('perf is not installed (Debian: linux-perf)')
        self.folder = tempfile.TemporaryDirectory(prefix='sluice-profile-')
        self.samples = os.path.join(self.folder.name, 'samples')

    def __enter__(self):
        self.tracer = tracers.Perf('record', '-q', '-F', str(SAMPLES_PER_SECOND), '-p', ','.join(map(str, self.pids)), '-o', self.samples)
        return self

    def __exit__(self, *_):
        with self.folder:
            self.tracer.end()
            done = subprocess.run(['perf', 'report', '-i', self.samples, '--stdio', '-q', '--no-children', '-g', 'none', '--sort', 'dso', '-t', ';'],
                                  capture_output=True, text=True, check=False)
            self.shares = shares(done.stdout)


def read(program, server, load, arguments):
    """One reading, with the microseconds per response in each component."""
    with PerfSamples(server.pids()) as samples:
        counts = load_generator.read_load(program, server, load, arguments)
    if not samples.shares or not counts['responses_all']:
        raise servers.BenchmarkError('perf took no samples')
    each = counts['cpu'] / counts['responses_all'] * 1e6
    return {**counts, **{f'us_{component}': each * share for component, share in samples.shares.items()}}
