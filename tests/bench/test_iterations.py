"""test_iterations.py BLAST: the library beside BLAST counts the iterations of a process that waits by epoll."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../bench'))
sys.dont_write_bytecode = True

from benchmark import iterations  # noqa: E402

BLAST = sys.argv.pop()
SKIPPED = 77
if 'MESON_EXE_WRAPPER' in os.environ:
    print("skipped: this machine's Python cannot load a library for another processor")
    sys.exit(SKIPPED)
# Three waits: an iteration that uses 30 ms of the CPU, and one that sleeps 30 ms.
LOOP = '''
import select, time
epoll = select.epoll()
epoll.poll(0)
end = time.thread_time() + 0.03
while time.thread_time() < end:
    pass
epoll.poll(0)
time.sleep(0.03)
epoll.poll(0)
'''


class Library(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def measured(self, blast):
        found = iterations.Iterations(blast, self.folder.name)
        before = found.counts()
        subprocess.run([sys.executable, '-c', LOOP], env={**os.environ, **found.environment}, check=True)
        return found.since(before)

    def test_each_iteration_is_counted_in_its_bucket(self):
        found = self.measured(BLAST)
        self.assertEqual({kind: sum(count for _, count in histogram) for kind, histogram in found.items()}, {'elapsed': 2, 'cpu': 2})
        self.assertGreaterEqual(found['elapsed'][0][0], 30_000_000)         # the lower bounds of the buckets, in ns
        cpu = [bound for bound, _ in found['cpu']]
        self.assertGreaterEqual(max(cpu), 30_000_000)
        self.assertLess(min(cpu), 30_000_000)                               # while it slept

    def test_without_the_library_there_is_no_histogram(self):
        self.assertEqual(self.measured('/nowhere/blast'), {'elapsed': [], 'cpu': []})


unittest.main()
