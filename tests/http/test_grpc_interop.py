"""The interoperability cases of gRPC (https://github.com/grpc/grpc/blob/master/doc/interop-test-descriptions.md), with client and server of the
Go module google.golang.org/grpc, through grpc_pass."""
import os
import socket
import subprocess

import pytest

from kit import go_programs, server as server_kit
from kit.lifetime import wait_for

VERSION = 'v1.68.0'
TIMEOUT = 60 * server_kit.PATIENCE
CASES = ['empty_unary', 'large_unary', 'client_streaming', 'server_streaming', 'ping_pong', 'empty_stream', 'timeout_on_sleeping_server',
         'cancel_after_begin', 'cancel_after_first_response', 'status_code_and_message', 'special_status_message', 'custom_metadata',
         'unimplemented_method', 'unimplemented_service']


@pytest.fixture(scope='session')
def programs():
    """The programs `client` and `server`."""
    return go_programs.build('grpc-interop', *(f'google.golang.org/grpc/interop/{name}@{VERSION}' for name in ('client', 'server')))


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', port)) == 0


@pytest.fixture(scope='session')
def upstream_port(programs):
    port = server_kit.free_port()
    process = subprocess.Popen([os.path.join(programs, 'server'), '-port', str(port)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_for(lambda: listens(port), 'the gRPC server listens')
    yield port
    process.kill()
    process.wait()


@pytest.mark.parametrize('case', CASES)
def test_interop_case_succeeds(launch, loop, transport, certificate, programs, upstream_port, case):
    served = launch(loop, transport, server={'location': {'/': {'grpc_pass': f'grpc://127.0.0.1:{upstream_port}'}}, 'client_max_body_size': 0})
    tls = [] if transport == 'plain' else ['-use_tls', '-use_test_ca', '-ca_file', certificate[0], '-server_host_override', 'localhost']
    done = subprocess.run([os.path.join(programs, 'client'), '-server_host', '127.0.0.1', '-server_port', str(served.port), '-test_case', case, *tls],
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
