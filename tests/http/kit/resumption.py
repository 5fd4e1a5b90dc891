"""Sessions of `openssl s_client`, kept in a file and taken up again."""
import subprocess

from . import server

VERSIONS = ['-tls1_2', '-tls1_3']


def visit(port, version, given=None, kept=None, name='localhost', target='/', more=()):
    """One request over a connection of its own, with the session of the file `given`, the new one into `kept`: (resumed, answer)."""
    words = ['openssl', 's_client', '-connect', f'127.0.0.1:{port}', '-servername', name, version, '-ign_eof', *more]
    words += ['-sess_in', str(given)] if given else []
    words += ['-sess_out', str(kept)] if kept else []
    request = f'GET {target} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n'
    done = subprocess.run(words, input=request.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60 * server.PATIENCE, check=False)
    said = done.stdout.decode(errors='replace')
    assert '\nReused, ' in said or '\nNew, ' in said, said
    return '\nReused, ' in said, said
