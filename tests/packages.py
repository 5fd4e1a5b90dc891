#!/usr/bin/env python3
"""Runs Python with the packages of requirements.txt, in a virtual environment that it makes itself, once.

usage: packages.py BUILD_FOLDER [REQUIRE_VARIABLE] -- PYTHON_ARGUMENTS...
       packages.py BUILD_FOLDER -- path            prints the folder of its programs

Where the packages cannot be installed (no network), the test is skipped (exit 77), unless the environment variable
REQUIRE_VARIABLE is 1: then it fails. The other tests of the next FAILED_FOR_S seconds do not try again, which takes a
minute; the form with `path` always tries.
"""
import fcntl
import hashlib
import os
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = os.path.join(HERE, 'requirements.txt')
FAILED_FOR_S = 600


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


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding='utf-8') as stream:
        return stream.read()


def write(path, text):
    with open(path, 'w', encoding='utf-8') as stream:
        stream.write(text)


def failed_lately(path, text):
    """True where an installation of the same requirements failed within the last FAILED_FOR_S seconds."""
    return read(path) == text and 0 <= time.time() - os.stat(path).st_mtime < FAILED_FOR_S


def prepare(build, requirements=REQUIREMENTS, name='venv', again=False):
    """The environment's folder, or None. `again`: an installation that failed lately is tried once more."""
    folder = os.path.join(build, name)
    stamp, failed, text = os.path.join(folder, 'stamp'), os.path.join(build, f'{name}.failed'), stamp_text(requirements)
    with open(os.path.join(build, f'{name}.lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if read(stamp) == text:
            return folder
        if not again and failed_lately(failed, text):
            return None
        if not install(folder, requirements):
            write(failed, text)
            return None
        write(stamp, text)
        if os.path.exists(failed):
            os.remove(failed)
    return folder


def explain(build):
    print(f'The Python packages of {REQUIREMENTS} cannot be installed, and are not tried again for {FAILED_FOR_S // 60} minutes. To '
          f'see why, and to try at once: {shlex.join(["python3", os.path.abspath(__file__), build, "--", "path"])}')


def main():
    split = sys.argv.index('--')
    options, arguments = sys.argv[1:split], sys.argv[split + 1:]
    build = os.path.abspath(options[0])
    folder = prepare(build, again=arguments == ['path'])
    if folder is None:
        required = len(options) > 1 and os.environ.get(options[1]) == '1'
        explain(build)
        return 1 if required or arguments == ['path'] else 77
    programs = os.path.join(folder, 'bin')
    if arguments == ['path']:
        print(programs)
        return 0
    os.environ['PATH'] = programs + os.pathsep + os.environ['PATH']
    sys.stdout.flush()
    os.execv(os.path.join(programs, 'python'), ['python', *arguments])


if __name__ == '__main__':
    sys.exit(main())
