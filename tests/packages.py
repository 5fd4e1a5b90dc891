#!/usr/bin/env python3
"""Runs Python with the packages of requirements.txt, in a virtual environment that it makes itself, once.

usage: packages.py BUILD_FOLDER [REQUIRE_VARIABLE] -- PYTHON_ARGUMENTS...
       packages.py BUILD_FOLDER -- path            prints the folder of its programs

Where the packages cannot be had (no network), the test is skipped (exit 77), unless the environment variable
REQUIRE_VARIABLE is 1: then it fails.
"""
import fcntl
import hashlib
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = os.path.join(HERE, 'requirements.txt')


def stamp_text(requirements):
    with open(requirements, 'rb') as stream:
        return f'{sys.version_info[:2]} {hashlib.sha256(stream.read()).hexdigest()}'


def install(folder, requirements):
    """Makes the environment and installs into it; True when it is there."""
    if subprocess.run([sys.executable, '-m', 'venv', '--clear', folder], check=False).returncode != 0:
        return False
    pip = [os.path.join(folder, 'bin', 'python'), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check',
           '--retries', '5', '--timeout', '30', '-r', requirements]
    for attempt in range(3):
        if subprocess.run(pip, check=False, stdin=subprocess.DEVNULL).returncode == 0:
            return True
        time.sleep(2 << attempt)
    return False


def prepare(build, requirements=REQUIREMENTS, name='venv'):
    """The environment's folder, or None."""
    folder = os.path.join(build, name)
    stamp = os.path.join(folder, 'stamp')
    with open(os.path.join(build, f'{name}.lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(stamp):
            with open(stamp, encoding='utf-8') as stream:
                if stream.read() == stamp_text(requirements):
                    return folder
        if not install(folder, requirements):
            return None
        with open(stamp, 'w', encoding='utf-8') as stream:
            stream.write(stamp_text(requirements))
    return folder


def main():
    split = sys.argv.index('--')
    options, arguments = sys.argv[1:split], sys.argv[split + 1:]
    folder = prepare(os.path.abspath(options[0]))
    if folder is None:
        required = len(options) > 1 and os.environ.get(options[1]) == '1'
        print(f'the Python packages of {REQUIREMENTS} cannot be installed')
        return 1 if required else 77
    programs = os.path.join(folder, 'bin')
    if arguments == ['path']:
        print(programs)
        return 0
    os.environ['PATH'] = programs + os.pathsep + os.environ['PATH']
    sys.stdout.flush()
    os.execv(os.path.join(programs, 'python'), ['python', *arguments])


if __name__ == '__main__':
    sys.exit(main())
