"""Creates the document root of the servers, with files of random bytes, and their certificate."""
import os
import subprocess

from . import sizes

BLOCK = 1 << 20


def make_file(path, size):
    """Creates a file of random bytes. A large file repeats one random block in different rotations, which is faster to create."""
    block = os.urandom(BLOCK)
    with open(path, 'wb') as stream:
        for at in range(0, size, BLOCK):
            rotation = at // BLOCK * 4099 % BLOCK
            stream.write((block[rotation:] + block[:rotation])[:size - at])


def make_certificate(folder, key='ec'):
    """Creates the files crt, key and pem (both in one file): ECDSA P-256, or RSA with 2048 bits."""
    kind = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] if key == 'ec' else ['rsa:2048']
    subprocess.run(['openssl', 'req', '-x509', '-newkey', *kind, '-nodes', '-keyout', f'{folder}/key', '-out', f'{folder}/crt',
                    '-days', '30', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
                   check=True, stderr=subprocess.DEVNULL)
    with open(f'{folder}/pem', 'wb') as stream:
        for name in ('crt', 'key'):
            with open(f'{folder}/{name}', 'rb') as part:
                stream.write(part.read())


def prepare(folder, names):
    """Creates the certificate and the files `names` in www; unprivileged workers can read all of them."""
    www = os.path.join(folder, 'www')
    os.makedirs(www, exist_ok=True)
    for name in sorted(names):
        make_file(os.path.join(www, name), sizes.bytes_of(name))
    make_certificate(folder)
    for path, _, files in os.walk(folder):
        os.chmod(path, 0o755)
        for name in files:
            os.chmod(os.path.join(path, name), 0o644)
