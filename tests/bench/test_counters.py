"""Unit tests of benchmark/counters.py and profile.py: what perf and strace count."""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../../bench'))
from benchmark import counters, profile, tracers     # noqa: E402

CALLS = 1000
# After each line of input: system calls, CPU time, and a line of output.
CHILD = f'''
import os
for line in iter(input, ''):
    for _ in range({CALLS}):
        os.getppid()
    print(sum(range(1000000)), flush=True)
'''


# In place of perf or strace. Acknowledges the first command of --control, and writes its output at SIGINT, or ignores that.
STUB = '''#!{python}
import os, re, signal, sys
output = {output!r}
signal.signal(signal.SIGINT, (lambda *_: sys.exit(output)) if output else signal.SIG_IGN)
control = re.search(r'--control=fd:(\\d+),(\\d+)', sys.argv[-1])
if control:
    os.read(int(control[1]), 16)
    os.write(int(control[2]), b'ack')
else:
    print('strace: Process 1 attached', file=sys.stderr, flush=True)
while True:
    signal.pause()
'''
PERF_OUTPUT = '1234,,raw_syscalls:sys_enter,5678,100.00,,'
STRACE_OUTPUT = '''% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 75.00    0.000300           1       300        10 read
 25.00    0.000100           1       100           getppid
------ ----------- ----------- --------- --------- ----------------
100.00    0.000400           1       400        10 total'''


def only(program):
    """shutil.which finds only this one of perf and strace."""
    which = shutil.which
    return unittest.mock.patch('shutil.which', lambda name: which(name) if name == program else None)


@contextlib.contextmanager
def stub_of(program, output):
    """Inside a with block: a script replaces perf or strace. It prints `output`, or, if that is empty, ignores SIGINT and prints nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, program)
        with open(path, 'w', encoding='ascii') as stream:
            stream.write(STUB.format(python=sys.executable, output=output))
        os.chmod(path, 0o755)
        with unittest.mock.patch.dict(os.environ, PATH=f'{folder}:{os.environ["PATH"]}'), only(program):
            yield


class Stubs(unittest.TestCase):
    def test_total_is_in_the_output_of_perf(self):
        with stub_of('perf', PERF_OUTPUT), counters.SystemCalls([1]) as calls:
            pass
        self.assertEqual(calls.total, 1234)

    def test_total_is_in_the_output_of_strace(self):
        for output in (STRACE_OUTPUT, STRACE_OUTPUT.replace('        10', '          ')):
            with stub_of('strace', output), counters.SystemCalls([1]) as calls:
                pass
            self.assertEqual(calls.total, 400)

    def test_tracer_that_does_not_end_is_killed(self):
        before = os.listdir('/proc/self/fd')
        with unittest.mock.patch('benchmark.tracers.END_TIMEOUT_S', 0.1):
            for program, start in (('perf', lambda: tracers.Perf('stat')), ('strace', lambda: tracers.Strace([1]))):
                with stub_of(program, ''):
                    tracer = start()
                    self.assertRaises(subprocess.TimeoutExpired, tracer.end)
                self.assertIsNotNone(tracer.process.returncode)
        self.assertEqual(os.listdir('/proc/self/fd'), before)


class Tracers(unittest.TestCase):
    def setUp(self):
        self.child = subprocess.Popen([sys.executable, '-c', CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.work()

    def tearDown(self):
        self.child.communicate('\n')

    def work(self):
        self.child.stdin.write('work\n')
        self.child.stdin.flush()
        self.child.stdout.readline()

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(f'{program} is not installed')

    def need_perf(self, *arguments):
        """Skips the test unless perf can run a program with these arguments."""
        self.need('perf')
        done = subprocess.run(['perf', *arguments, 'true'], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(done.stderr)

    def count(self, program):
        """The number of system calls that this program counts, without another one."""
        with only(program):
            self.work()
            with counters.SystemCalls([self.child.pid]) as calls:
                self.work()
            self.work()
        self.assertIsNotNone(calls.total)
        self.assertTrue(CALLS < calls.total < CALLS + 100, calls.total)

    def test_perf_counts_the_calls_of_the_block(self):
        self.need_perf('stat', '-e', 'raw_syscalls:sys_enter')
        self.count('perf')

    def test_strace_counts_the_calls_of_the_block(self):
        self.need('strace')
        tracer = subprocess.Popen(['strace', '-p', str(self.child.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        first_line = tracer.stderr.readline()
        tracer.terminate()
        tracer.communicate()
        if 'attached' not in first_line:
            self.skipTest(first_line)
        self.count('strace')

    def test_missing_programs_count_nothing(self):
        with unittest.mock.patch('shutil.which', lambda name: None), counters.SystemCalls([self.child.pid]) as calls:
            self.work()
        self.assertIsNone(calls.total)

    def test_failed_tracer_counts_nothing(self):
        for program in ('perf', 'strace'):
            with self.subTest(program):
                self.need(program)
                with only(program), counters.SystemCalls([2 ** 22 + 1]) as calls:
                    self.work()
                self.assertIsNone(calls.total)

    def test_samples_are_of_the_process(self):
        self.need_perf('record', '-o', '/dev/null')
        with profile.PerfSamples([self.child.pid]) as samples:
            for _ in range(5):
                self.work()
        self.assertIsNotNone(samples.shares)
        self.assertGreater(samples.shares['own'], 0.5)


if __name__ == '__main__':
    unittest.main()
