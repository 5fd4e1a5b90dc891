#!/usr/bin/env python3
"""Runs Python with the packages of requirements.txt. They are installed once, into a virtual environment in the build directory.

If the packages cannot be installed (without a network), the test is skipped (exit status 77); if the environment variable
REQUIRE_VARIABLE is 1, it fails. Since a failing installation takes a minute, tests do not retry it within FAILED_FOR_S seconds;
with the argument `path` the script always retries it.
"""
import argparse
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
    """Creates the environment and installs the packages; True on success. An existing environment, which other tests may be using,
    gets the packages that it lacks."""
    kept = os.path.exists(os.path.join(folder, 'lib', f'python{sys.version_info[0]}.{sys.version_info[1]}'))
    if not kept and subprocess.run([sys.executable, '-m', 'venv', '--clear', folder], check=False).returncode != 0:
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


def failed_recently(path, text):
    """True if an installation of the same requirements failed within the last FAILED_FOR_S seconds."""
    return read(path) == text and 0 <= time.time() - os.stat(path).st_mtime < FAILED_FOR_S


def prepare(build, requirements=REQUIREMENTS, name='venv', retry=False):
    """Returns the directory of the environment, or None. `retry` repeats an installation that failed recently."""
    folder = os.path.join(build, name)
    stamp, failed, text = os.path.join(folder, 'installed'), os.path.join(build, f'{name}.failed'), stamp_text(requirements)
    with open(os.path.join(build, f'{name}.lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if read(stamp) == text:
            return folder
        if not retry and failed_recently(failed, text):
            return None
        if not install(folder, requirements):
            write(failed, text)
            return None
        write(stamp, text)
        if os.path.exists(failed):
            os.remove(failed)
    return folder


def print_failure(build):
    print(f'The Python packages of {REQUIREMENTS} cannot be installed; the next attempt is in {FAILED_FOR_S // 60} minutes. To '
          f'retry immediately and see the reason: {shlex.join(["python3", os.path.abspath(__file__), build, "--", "path"])}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', metavar='BUILD', help='the build directory')
    parser.add_argument('require', metavar='REQUIRE_VARIABLE', nargs='?', help='an environment variable')
    parser.usage = '%(prog)s BUILD [REQUIRE_VARIABLE] -- PYTHON_ARGUMENT...\n       %(prog)s BUILD -- path      prints the directory of the programs'
    split = sys.argv.index('--') if '--' in sys.argv else len(sys.argv)
    options, arguments = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1:]
    if not arguments:
        parser.error('no arguments follow "--"')
    build = os.path.abspath(options.build)
    folder = prepare(build, retry=arguments == ['path'])
    if folder is None:
        required = options.require is not None and os.environ.get(options.require) == '1'
        print_failure(build)
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
