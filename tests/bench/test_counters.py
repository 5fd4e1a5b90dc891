"""Unit tests of benchmark/counters.py and profile.py: what perf and strace count."""
import os
import shutil
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../../bench'))
from benchmark import counters, profile     # noqa: E402

CALLS = 1000
# After each line of input: system calls, CPU time, and a line of output.
CHILD = f'''
import os
for line in iter(input, ''):
    for _ in range({CALLS}):
        os.getppid()
    print(sum(range(1000000)), flush=True)
'''


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

    def count(self, program):
        """The number of system calls that this program counts, without another one."""
        which = shutil.which
        with unittest.mock.patch('shutil.which', lambda name: which(name) if name == program else None):
            self.work()
            with counters.SystemCalls([self.child.pid]) as calls:
                self.work()
            self.work()
        if calls.total is None:
            self.skipTest(f'{program} cannot trace')
        self.assertTrue(CALLS < calls.total < CALLS + 100, calls.total)

    def test_perf_counts_the_calls_of_the_block(self):
        self.count('perf')

    def test_strace_counts_the_calls_of_the_block(self):
        self.count('strace')

    def test_missing_programs_count_nothing(self):
        with unittest.mock.patch('shutil.which', lambda name: None), counters.SystemCalls([self.child.pid]) as calls:
            self.work()
        self.assertIsNone(calls.total)

    def test_failed_perf_counts_nothing(self):
        with counters.SystemCalls([2 ** 22 + 1]) as calls:
            self.work()
        self.assertIsNone(calls.total)

    def test_samples_are_of_the_process(self):
        if not shutil.which('perf'):
            self.skipTest('perf is not installed')
        with profile.PerfSamples([self.child.pid]) as samples:
            for _ in range(5):
                self.work()
        if samples.shares is None:
            self.skipTest('perf cannot sample')
        self.assertGreater(samples.shares['own'], 0.5)


if __name__ == '__main__':
    unittest.main()
