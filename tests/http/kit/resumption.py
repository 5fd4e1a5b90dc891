"""TLS sessions of `openssl s_client`, saved in a file and resumed."""
import contextlib
import subprocess

from . import server
from .lifetime import wait_for

VERSIONS = ['-tls1_2', '-tls1_3']


def fetch_with_session(port, version, session_in=None, session_out=None, name='localhost', target='/', more=()):
    """Sends one request on a new connection, with the session in the file `session_in`, and saves the new session in `session_out`. Returns (resumed,
    output)."""
    words = ['openssl', 's_client', '-connect', f'127.0.0.1:{port}', '-servername', name, version, '-ign_eof', *more]
    words += ['-sess_in', str(session_in)] if session_in else []
    words += ['-sess_out', str(session_out)] if session_out else []
    request = f'GET {target} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n'
    done = subprocess.run(words, input=request.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60 * server.PATIENCE, check=False)
    text = done.stdout.decode(errors='replace')
    assert '\nReused, ' in text or '\nNew, ' in text, text
    return '\nReused, ' in text, text


@contextlib.contextmanager
def server_starter(certificate, folder, loop, body):
    """Yields start(*blocks, workers=2, main=None) -> a running server with a virtual server for each block, all on its `port`."""
    running = []

    def start(*blocks, workers=2, main=None):
        port = server.free_port()
        whole = [{'listen': f'127.0.0.1:{port} ssl', 'server_name': 'localhost', 'ssl_certificate': certificate[0],
                  'ssl_certificate_key': certificate[1], 'location': {'/': {'return': f'200 "{body}"'}}, **block}
                 for block in blocks]
        made = server.Server(folder / f'server{len(running)}', whole, loop=loop, main={'worker_processes': workers, **(main or {})})
        made.port = port
        running.append(made.start([port]))
        wait_for(lambda: ' runs, ' in made.errors(), 'all workers are ready')
        return made
    try:
        yield start
    finally:
        for made in running:
            made.stop()
