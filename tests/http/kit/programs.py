"""Upstream servers that are installed programs: tests start, kill and restart them; at exit the test process kills them."""
import atexit
import os
import shutil
import subprocess
import sys

import pytest

from . import server as server_kit
from .lifetime import refused, wait_for

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), 'applications')


def program(name):
    """The path of a program; skips the test if the program is not installed."""
    found = shutil.which(name) or shutil.which(name, path='/usr/sbin')
    if found is None:
        pytest.skip(f'{name} is not installed')
    return found


def wait_for_port(port):
    wait_for(lambda: not refused(port), f'a process listens on port {port}', 20)


class Program:
    """A program that listens on a port; {port} in `arguments` is replaced by its number."""

    def __init__(self, arguments, port=None, **options):
        self.port = port or server_kit.free_port()
        self.arguments = [argument.replace('{port}', str(self.port)) for argument in arguments]
        self.options = options
        self.process = None
        atexit.register(self.kill)      # a failed test does not call stop()
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, **self.options)
        wait_for_port(self.port)

    def kill(self):
        """Ends the program by SIGKILL, with all its connections."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()


def node(script, *arguments):
    return Program([program('node'), os.path.join(FOLDER, script), '{port}', *arguments])


def uvicorn(module, *more):
    return Program([sys.executable, '-m', 'uvicorn', '--host', '127.0.0.1', '--port', '{port}', '--app-dir', FOLDER,
                    '--log-level', 'warning', '--no-use-colors', '--no-proxy-headers', *more, module])


def python(script, *arguments, **options):
    return Program([sys.executable, os.path.join(FOLDER, script), '{port}', *arguments], **options)
