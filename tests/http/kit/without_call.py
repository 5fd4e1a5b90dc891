"""Runs a program on a kernel that seems to lack a system call, as in containers that forbid it."""
import sys

# Forbids one system call by a filter (EPERM), and then executes the other arguments.
PROGRAM = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (0x06, 0, 0, 0x00050000 | 1), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('=HBBI', *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack('@HP', len(rows), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


def without_call(number):
    """The command prefix of a program that cannot make this system call; its number must be the same on all architectures (from 424)."""
    return [sys.executable, '-c', PROGRAM, str(number)]
