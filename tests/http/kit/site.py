"""Creates the document root of the tests, and certificates."""
import hashlib
import os
import subprocess


def make_file(path, size, seed=b'sluice'):
    """Creates a file of pseudo-random bytes, the same in every run; returns its SHA-256."""
    digest = hashlib.sha256()
    with open(path, 'wb') as stream:
        block, left, number = 1 << 20, size, 0
        while left:
            piece = hashlib.shake_128(seed + str(size).encode() + str(number).encode()).digest(min(block, left))
            stream.write(piece)
            digest.update(piece)
            left -= len(piece)
            number += 1
    return digest.hexdigest()


def make_certificate(folder, name='localhost', kind='ec', names=('localhost', '*.localhost'), days=30):
    """Creates a self-signed certificate and its key; returns both paths."""
    certificate, key = os.path.join(folder, f'{name}.{kind}.crt'), os.path.join(folder, f'{name}.{kind}.key')
    algorithm = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] if kind == 'ec' else ['-newkey', 'rsa:2048']
    alternatives = ','.join(f'DNS:{item}' for item in names) + ',IP:127.0.0.1'
    subprocess.run(['openssl', 'req', '-x509', *algorithm, '-nodes', '-keyout', key, '-out', certificate, '-days', str(days),
                    '-subj', f'/CN={name}', '-addext', f'subjectAltName={alternatives}'],
                   check=True, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return certificate, key


def write(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())
    return path


def make_site(folder):
    """Creates the document root that most tests use, with small files of many kinds."""
    write(folder, 'index.html', '<!doctype html><title>one</title><p>the first page\n')
    write(folder, 'one.txt', 'one\n')
    write(folder, 'ten.txt', '0123456789')
    write(folder, 'empty.txt', '')
    write(folder, 'folder/index.html', '<!doctype html><title>folder</title>\n')
    write(folder, 'folder/inner.txt', 'inner\n')
    write(folder, 'bare/file.txt', 'no index here\n')
    write(folder, 'style.css', 'p{}\n')
    write(folder, 'picture.png', b'\x89PNG\r\n\x1a\n')
    write(folder, 'noext', 'no extension\n')
    write(folder, 'odd.unknownext', 'odd\n')
    write(folder, '.hidden', 'hidden\n')
    write(folder, '.git/config', 'hidden\n')
    write(folder, '.well-known/security.txt', 'Contact: mailto:root@localhost\n')
    write(folder, 'name with space.txt', 'space\n')
    write(folder, 'grüße.txt', 'utf-8\n')
    write(folder, 'per%cent.txt', 'percent\n')
    write(folder, 'quest?ion.txt', 'question\n')
    write(folder, 'plus+sign.txt', 'plus\n')
    write(os.path.dirname(folder), 'secret.txt', 'outside the root\n')
    write(os.path.dirname(folder), os.path.basename(folder) + '-sibling/secret.txt', 'outside the root\n')
    os.symlink('one.txt', os.path.join(folder, 'link-inside'))
    os.symlink('folder', os.path.join(folder, 'link-folder'))
    os.symlink('../secret.txt', os.path.join(folder, 'link-out'))
    os.symlink(os.path.join(folder, 'one.txt'), os.path.join(folder, 'link-absolute'))
    os.symlink('/etc/passwd', os.path.join(folder, 'link-passwd'))
    os.symlink('nowhere', os.path.join(folder, 'link-broken'))
    os.symlink('link-loop', os.path.join(folder, 'link-loop'))
    os.mkfifo(os.path.join(folder, 'fifo'))
    write(folder, 'closed.txt', 'no permission to read this\n')
    os.chmod(os.path.join(folder, 'closed.txt'), 0)
    for size in (1024, 16384, 65535, 65536, 65537, 1 << 20):
        make_file(os.path.join(folder, f'{size}.bin'), size)
    return folder
