"""Requests from several clients while a test changes the server."""
import contextlib
import socket
import threading
import time

from . import http1, server as server_kit
from .lifetime import wait_for


class Load:
    """What the clients have seen: the time at which each request began, status and body; and the errors."""

    def __init__(self):
        self.seen, self.faults, self.ended = [], [], threading.Event()

    def run(self, port, path, headers):
        try:
            while not self.ended.is_set():
                with socket.create_connection(('127.0.0.1', port), timeout=30 * server_kit.PATIENCE) as stream:
                    client = http1.Client(stream)
                    for _ in range(5):
                        begun = time.monotonic()
                        response = client.get(path, **headers)
                        self.seen.append((begun, response.status, response.body.decode()))
                        if response.closes:
                            break
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(error)

    def more(self, count=40):
        """The bodies of responses to requests that begin after this call."""
        now = time.monotonic()

        def bodies():
            return [body for begun, _, body in list(self.seen) if begun > now]
        wait_for(lambda: self.faults or len(bodies()) >= count, f'{count} responses')
        assert not self.faults, self.faults
        return bodies()[:count]


@contextlib.contextmanager
def load(port, path='/', clients=4, **headers):
    made = Load()
    threads = [threading.Thread(target=made.run, args=(port, path, headers)) for _ in range(clients)]
    for one in threads:
        one.start()
    try:
        yield made
    finally:
        made.ended.set()
        for one in threads:
            one.join()
    assert not made.faults, made.faults
    assert {status for _, status, _ in made.seen} == {200}, 'no request fails'
