"""Durations of the iterations of a server's event loop, measured by build/bench/libiterations.so in the server's processes."""
import array
import os

BUCKETS, BUCKET_NS = 20000, 10000   # as in bench/iterations.c
KINDS = ('elapsed', 'cpu')          # the histograms in the order of the file


class Iterations:
    """The file of the histograms. `environment` is for the server; empty if the library was not built."""

    def __init__(self, blast, folder):
        library = os.path.join(os.path.dirname(os.path.abspath(blast)), 'libiterations.so')
        self.path = os.path.join(folder, 'iterations')
        self.environment = {'LD_PRELOAD': library, 'ITERATIONS': self.path} if os.path.exists(library) else {}
        with open(self.path, 'wb') as stream:
            stream.write(bytes(8 * BUCKETS * len(KINDS)))

    def counts(self):
        with open(self.path, 'rb') as stream:
            return array.array('Q', stream.read())

    def since(self, before):
        """{kind: histogram} of the iterations since `before` (a result of counts()); empty histograms without the library."""
        found = [new - old for new, old in zip(self.counts(), before)]
        parts = [found[number * BUCKETS:(number + 1) * BUCKETS] for number in range(len(KINDS))]
        return {kind: [[bucket * BUCKET_NS, count] for bucket, count in enumerate(part) if count] for kind, part in zip(KINDS, parts)}
