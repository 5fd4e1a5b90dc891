"""The manifests of conf/examples/kubernetes: valid by the schemas of Kubernetes, consistent; their configuration runs, is reloaded, and uses renewed
certificates."""
import os
import pathlib
import re
import signal
import ssl
import subprocess
import tempfile

import kubernetes_validate
import pytest
import yaml

from kit import http1, server as server_kit
from kit.authority import openssl
from kit.lifetime import wait_for

FOLDER = pathlib.Path(server_kit.__file__).parents[3] / 'conf/examples/kubernetes'
VERSIONS = ('1.31', '1.37')
MANIFESTS = {f'{path.stem}-{manifest["kind"]}-{number}': manifest for path in sorted(FOLDER.glob('*.yaml')) if path.stem != 'kustomization'
             for number, manifest in enumerate(yaml.safe_load_all(path.read_text(encoding='utf-8')))}


def find(kind, name='sluice'):
    return next(manifest for manifest in MANIFESTS.values() if (manifest['kind'], manifest['metadata']['name']) == (kind, name))


PODS = {kind: find(kind, name)['spec'] for kind, name in (('Deployment', 'sluice'), ('DaemonSet', 'sluice-edge'))}


def container(kind, name):
    return next(part for part in PODS[kind]['template']['spec']['containers'] if part['name'] == name)


@pytest.mark.parametrize('version', VERSIONS)
@pytest.mark.parametrize('name', MANIFESTS)
def test_manifest_is_valid(name, version):
    kubernetes_validate.validate(MANIFESTS[name], version, strict=True)


def test_a_misspelled_field_is_rejected():
    manifest = dict(find('Deployment'), spec=dict(find('Deployment')['spec'], replica=2))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, VERSIONS[0], strict=True)


@pytest.mark.parametrize('kind', PODS)
def test_references_exist(kind):
    spec = PODS[kind]
    labels, pod = spec['template']['metadata']['labels'], spec['template']['spec']
    assert spec['selector']['matchLabels'].items() <= labels.items()
    for volume in pod['volumes']:
        if 'configMap' in volume:
            assert 'sluice.yaml' in find('ConfigMap', volume['configMap']['name'])['data']
        elif 'secret' in volume:
            assert find('Secret', volume['secret']['secretName'])['data']
    volumes = {volume['name'] for volume in pod['volumes']}
    ports = {port['name'] for port in container(kind, 'sluice')['ports']}
    for part in pod['containers']:
        assert {mount['name'] for mount in part['volumeMounts']} == volumes
    assert find('NetworkPolicy')['spec']['podSelector']['matchLabels'].items() <= labels.items()
    assert {port['port'] for rule in find('NetworkPolicy')['spec']['ingress'] for port in rule['ports']} == ports
    if kind == 'Deployment':
        for other in (find('Service')['spec']['selector'], find('PodDisruptionBudget')['spec']['selector']['matchLabels']):
            assert other.items() <= labels.items()
        assert {port['targetPort'] for port in find('Service')['spec']['ports']} <= ports


def test_both_kinds_of_pods_are_equal():
    """Apart from the ports of the machine."""
    for name in ('sluice', 'reload'):
        one, other = (dict(container(kind, name), ports=None) for kind in PODS)
        assert one == other


def test_workers_do_not_depend_on_the_machine():
    assert yaml.safe_load(find('ConfigMap')['data']['sluice.yaml'])['worker_processes'] == 2


def make_certificate():
    """The files of a Secret of the type kubernetes.io/tls."""
    with tempfile.TemporaryDirectory() as folder:
        openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=www.example.com', '-days', 2,
                '-keyout', f'{folder}/tls.key', '-out', f'{folder}/tls.crt')
        return {name: pathlib.Path(folder, name).read_text(encoding='utf-8') for name in ('tls.key', 'tls.crt')}


def mount(folder, files):
    """Writes the files as a pod mounts them: behind a link `..data` that is replaced at each change."""
    data = folder / f'..version{len(list(folder.iterdir()))}'
    data.mkdir()
    for name, text in files.items():
        (data / name).write_text(text, encoding='utf-8')
    (folder / '..next').symlink_to(data.name)
    (folder / '..next').replace(folder / '..data')
    for name in files:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f'..data/{name}')


class Pod:
    """The directories, ports and processes of a pod with the configuration of the ConfigMap."""

    def __init__(self, folder, upstream):
        self.folder, self.config = folder, folder / 'config'
        self.ports = {port['containerPort']: server_kit.free_port() for port in container('Deployment', 'sluice')['ports']}
        for name in ('run', 'tls', 'tickets', 'config'):
            (folder / name).mkdir()
        self.renew()
        for name in ('current', 'former'):
            (folder / 'tickets' / name).write_bytes(os.urandom(80))
        text = find('ConfigMap')['data']['sluice.yaml'].replace('application:8080', f'127.0.0.1:{upstream}')
        for name in ('run/sluice', 'etc/sluice/tls', 'etc/sluice/tickets'):
            assert f'/{name}/' in text
            text = text.replace(f'/{name}/', f'{folder}/{"run" if "run" in name else name.rsplit("/", 1)[1]}/')
        for port, free in self.ports.items():
            text, found = re.subn(rf'(?<=[ \[]){port}(?=[ ,\]\n])', f'127.0.0.1:{free}', text)
            assert found == 1
        self.text = text
        self.mount(text)

    def mount(self, text):
        mount(self.config, {'sluice.yaml': text})

    def renew(self):
        """Mounts another certificate; returns it in DER."""
        files = make_certificate()
        mount(self.folder / 'tls', files)
        return ssl.PEM_cert_to_DER_cert(files['tls.crt'])

    def run(self, *command, **environment):
        with open(self.folder / 'output', 'ab') as output:
            return subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **environment,
                                    'PATH': os.path.dirname(server_kit.SLUICE) + ':' + os.environ['PATH']})

    def output(self):
        return (self.folder / 'output').read_text(encoding='utf-8')


STOP = signal.Signals[re.search(r'^STOPSIGNAL (\w+)$', (FOLDER.parent / 'container/Containerfile').read_text(encoding='utf-8'), re.M)[1]]


def ended(process):
    """Kubernetes sends the stop signal of the image to each container."""
    process.send_signal(STOP)
    return process.wait(20 * server_kit.PATIENCE)


def test_configuration_runs_and_is_reloaded(tmp_path, site):
    user = {'user': 'root'} if os.geteuid() == 0 else {}
    port = server_kit.free_port()
    application = server_kit.Server(tmp_path / 'application', [{'listen': f'127.0.0.1:{port}', 'root': site}], main=user)
    application.start([port])
    pod = Pod(tmp_path, port)
    sluice = pod.run(server_kit.SLUICE, '-c', str(pod.config / 'sluice.yaml'), '-g', str(user))
    reload = pod.run(*container('Deployment', 'reload')['command'], container('Deployment', 'reload')['args'][0],
                     CONFIG=str(pod.config), INTERVAL='0.1')
    try:
        wait_for(lambda: (tmp_path / 'run/sluice.pid').exists() and server_kit.RUNS in pod.output(), 'the server of the pod runs')
        probe = container('Deployment', 'sluice')['readinessProbe']['httpGet']['path']
        assert http1.connect(pod.ports[9090]).get(probe).status == 200
        for transport, port in (('plain', 8080), ('user', 8443)):
            assert http1.connect(pod.ports[port], transport).get('/one.txt').body == b'one\n'
        renewed = pod.renew()
        wait_for(lambda: http1.connect(pod.ports[8443], 'user').stream.getpeercert(binary_form=True) == renewed, 'the renewed certificate', 40)
        pod.mount(pod.text.replace('= /status: {status: on}', '= /status: {return: 200 changed}'))
        wait_for(lambda: http1.connect(pod.ports[9090]).get('/status').body == b'changed', 'the change is in use')
        pod.mount('http: {srever: 1}')
        wait_for(lambda: 'srever' in pod.output(), 'the wrong configuration is reported')
        assert http1.connect(pod.ports[9090]).get('/status').body == b'changed'
        pod.mount(pod.text)
        wait_for(lambda: http1.connect(pod.ports[9090]).get('/status').body != b'changed', 'the corrected configuration is in use')
    except AssertionError as error:
        raise AssertionError(pod.output()) from error
    finally:
        codes = [ended(reload), ended(sluice)]
        application.stop()
    assert codes == [0, 0], pod.output()
