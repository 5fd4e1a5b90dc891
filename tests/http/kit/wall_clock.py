"""A wall clock of a server that a test sets, by the preloaded library wall_clock.c."""
import os
import struct

import pytest

from . import server as server_kit

LIBRARY = os.path.join(os.path.dirname(server_kit.SLUICE), 'tests/http/libwall_clock.so')


class WallClock:
    """The clock, with its offset in the file `path`, which all users of the server can read. `environment`: variables of the server. Skips
    the test without the library, and with AddressSanitizer, which must be loaded first."""

    def __init__(self, path):
        if not os.path.exists(LIBRARY):
            pytest.skip('wall_clock.c is not built')
        with open(server_kit.SLUICE, 'rb') as stream:
            if b'__asan_init' in stream.read():
                pytest.skip('AddressSanitizer must be loaded first')
        self.path = path
        self.path.write_bytes(struct.pack('q', 0))
        self.path.chmod(0o644)
        self.environment = {'LD_PRELOAD': LIBRARY, 'WALL_CLOCK': str(path)}

    def shift(self, seconds):
        """Sets the clock to that of the machine plus these seconds."""
        with open(self.path, 'r+b', buffering=0) as stream:
            stream.write(struct.pack('q', seconds))
