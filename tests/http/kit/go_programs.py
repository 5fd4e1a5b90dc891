"""Programs written in Go, which are built once into the directory `go` of the build."""
import contextlib
import fcntl
import json
import os
import shutil
import subprocess

import pytest

from . import server as server_kit
from .server import read_text

TIMEOUT = 300 * server_kit.PATIENCE

LEGO = 'github.com/go-acme/lego/v4@v4.22.2'      # that of Debian 13
# Files without the 150 DNS providers and the libraries of Amazon, most of the work.
LEGO_FILES = {'providers/dns/zz_gen_dns_providers.go': '''package dns

import (
	"fmt"

	"github.com/go-acme/lego/v4/challenge"
	"github.com/go-acme/lego/v4/providers/dns/exec"
)

func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	if name == "exec" {
		return exec.NewDNSProvider()
	}
	return nil, fmt.Errorf("unrecognized DNS provider: %s", name)
}
''', 'providers/http/s3/s3.go': '''package s3

import (
	"errors"

	"github.com/go-acme/lego/v4/challenge"
)

func NewHTTPProvider(bucket string) (challenge.Provider, error) {
	return nil, errors.New("this build has no S3")
}
'''}


@contextlib.contextmanager
def locked(folder):
    """Creates the folder and locks it: no other test process builds in it meanwhile."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'lock'), 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def folder_of(name):
    return os.path.join(os.path.dirname(os.path.abspath(server_kit.SLUICE)), 'go', name)


def run(name, folder, *arguments, **options):
    """Runs go with the modules of the folder; skips the test if it fails or takes too long. Returns its output."""
    go = shutil.which('go') or pytest.skip('go is not installed')
    try:
        done = subprocess.run([go, *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False,
                              env={**os.environ, 'GOPATH': folder, 'GOBIN': os.path.join(folder, 'bin'), 'GOFLAGS': '-modcacherw'}, **options)
    except subprocess.TimeoutExpired:
        pytest.skip(f'{name} is not built after {TIMEOUT} s')
    if done.returncode != 0:
        pytest.skip(f'{name} cannot be built: {(done.stderr.strip() or done.stdout.strip())[-300:]}')
    return done.stdout


def lego():
    """The path of a lego that asks for the window of renewal, with the DNS provider `exec` only; skips the test if it cannot be built."""
    folder = folder_of('lego')
    found, source = os.path.join(folder, 'bin', 'lego'), os.path.join(folder, 'source')
    with locked(folder):
        if not os.path.exists(found):
            module = json.loads(run('lego', folder, 'mod', 'download', '-json', LEGO))['Dir']
            shutil.rmtree(source, ignore_errors=True)
            shutil.copytree(module, source)
            for path, text in LEGO_FILES.items():
                with open(os.path.join(source, path), 'w', encoding='ascii') as stream:
                    stream.write(text)
            run('lego', folder, 'build', '-o', found, './cmd/lego', cwd=source)
    return found


def build(name, *packages):
    """The folder with the programs of the packages ("PATH@VERSION" of one module); skips the test if they cannot be built. `name` is that of
    their folder."""
    folder = folder_of(name)
    programs = os.path.join(folder, 'bin')
    with locked(folder):
        if not os.path.isdir(programs) or len(os.listdir(programs)) < len(packages):
            run(name, folder, 'install', *packages)
    return programs


def compiled(name, text):
    """The path of the program with this text, which uses the standard library only; skips the test if it cannot be compiled."""
    folder = folder_of(name)
    program, source = os.path.join(folder, name), os.path.join(folder, 'main.go')
    with locked(folder):
        if not os.path.exists(program) or read_text(source) != text:
            with open(source, 'w', encoding='ascii') as stream:
                stream.write(text)
            run(name, folder, 'build', '-o', program, source)
    return program
