"""Clients of a server whose resources run out, and the limit of its log lines."""
import collections
import contextlib
import re
import threading
import time

from kit import http1, server as server_kit


ENDED = re.compile(r'worker process \d+ exited |\d+ workers in a row exited ')


def assert_one_line_per_second(log):
    """At most one line per second, process and cause. Numbers, and the request after the message, belong to no cause; the end of each
    worker process is a cause of its own."""
    counts = collections.Counter()
    for second, level, pid, text in re.findall(r'^(.{19}) \[(\w+)\] (\d+)#\d+: (.*)', log, re.M):
        if level in ('warn', 'error', 'crit', 'alert', 'emerg'):
            counts[second, pid, text if ENDED.match(text) else re.sub(r'\d+', 'N', text.split(', client: ')[0])] += 1
    assert counts and max(counts.values()) == 1, counts.most_common(3)


def seconds_of(message, log):
    """The number of different seconds in which the log has this message."""
    return len(set(re.findall(rf'^(.{{19}}) .*(?:{message})', log, re.M)))


class Answers(threading.Thread):
    """Clients that request `target` on one connection after another until `stop`; counts the responses by status."""

    def __init__(self, connect, targets):
        super().__init__(daemon=True)
        self.connect, self.targets, self.counts, self.ended = connect, targets, collections.Counter(), threading.Event()
        self.start()

    def run(self):
        while not self.ended.is_set():
            for target in self.targets:
                try:
                    client = self.connect()
                    self.counts[client.get(target).status] += 1
                    client.close()
                except (OSError, EOFError, AssertionError, http1.BadResponse):
                    self.counts['failed'] += 1
                time.sleep(0.002)

    def stop(self):
        self.ended.set()
        self.join()
        return self.counts


def serves(port, target='/one.txt', status=200):
    with contextlib.suppress(OSError, EOFError, http1.BadResponse):
        client = http1.connect(port, timeout=5 * server_kit.PATIENCE)
        try:
            return client.get(target).status == status
        finally:
            client.close()
    return False
