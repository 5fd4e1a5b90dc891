"""The test server sluice-forbidden: its location / runs an action of tests/sandbox/forbidden.c in a worker."""
import os

from kit import http1, server as server_kit

BINARY = os.path.join(os.path.dirname(server_kit.SLUICE), 'tests/sandbox/sluice-forbidden')


def attempt(server, action, value=''):
    """The result of an action in a worker, 0 or an errno; None if it ended the worker."""
    try:
        return int(http1.connect(server.plain).get(f'/?action={action}&value={value}').body)
    except (EOFError, ConnectionError):
        return None


def request(server, action):
    """Requests an action, without waiting for its result. Returns the connection."""
    client = http1.connect(server.plain)
    client.send(f'GET /?action={action} HTTP/1.1\r\nHost: localhost\r\n\r\n')
    return client
