"""A certificate authority by the command line of OpenSSL: client certificates, valid and invalid, and revocation lists."""
import os
import ssl
import subprocess

CONFIGURATION = '''
[ca]
default_ca = own
[own]
database = {folder}/index
new_certs_dir = {folder}
serial = {folder}/serial
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
default_md = sha256
policy = any
unique_subject = no
default_crl_days = 30
[any]
organizationName = optional
commonName = supplied
'''


def openssl(*words):
    subprocess.run(['openssl', *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


class Authority:
    """The certificate of the authority is `folder`/ca.pem; all certificates that it issues are stored in `folder`."""

    def __init__(self, folder, name='authority'):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.certificate = folder, os.path.join(folder, 'ca.pem')
        self.configuration = os.path.join(folder, 'ca.cnf')
        with open(self.configuration, 'w', encoding='ascii') as stream:
            stream.write(CONFIGURATION.format(folder=folder))
        open(os.path.join(folder, 'index'), 'w', encoding='ascii').close()
        with open(os.path.join(folder, 'serial'), 'w', encoding='ascii') as stream:
            stream.write('1001\n')
        openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', f'{folder}/ca.key',
                '-out', self.certificate, '-days', 30, '-subj', f'/CN={name}', '-addext', 'basicConstraints=critical,CA:TRUE')

    def client(self, name, start='20240101000000Z', end='20490101000000Z'):
        """Issues a client certificate; returns the paths of certificate and key."""
        path = os.path.join(self.folder, name)
        openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', f'{path}.key',
                '-out', f'{path}.csr', '-subj', f'/O=Sluice Tests/CN={name}')
        openssl('ca', '-batch', '-notext', '-config', self.configuration, '-in', f'{path}.csr', '-out', f'{path}.pem',
                '-startdate', start, '-enddate', end)
        return f'{path}.pem', f'{path}.key'

    def revoke(self, certificate):
        openssl('ca', '-config', self.configuration, '-revoke', certificate[0])

    def crl(self):
        """Writes a new certificate revocation list; returns its path."""
        path = os.path.join(self.folder, 'list.crl')
        openssl('ca', '-config', self.configuration, '-gencrl', '-out', path)
        return path


def context(certificate=None, version=None):
    """An SSLContext of a client that sends this certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if version:
        made.minimum_version = made.maximum_version = version
    if certificate:
        made.load_cert_chain(*certificate)
    return made
