"""Clients that speak HTTP/2, each where it is installed: 1,000 files over few connections, each body with its hash."""
import asyncio
import hashlib
import json
import os
import shutil
import ssl
import subprocess

import httpx
import pytest
from kit import go_programs, http2, server as server_kit, site as site_kit
from kit.browser import CHROMIUM, browse
from kit.lifetime import wait_for

TIMEOUT = 300 * server_kit.PATIENCE
FILES, CONNECTIONS = 1000, 6
LINE = f'$connection|$server_protocol|{server_kit.PROOF}'
PAGE = '''<!doctype html><title>files</title><link rel=icon href=data:,><script>
const found = {same: 0};
const check = async (name, hash) => {
  const digest = await crypto.subtle.digest('SHA-256', await (await fetch(name)).arrayBuffer());
  found.same += Array.from(new Uint8Array(digest), byte => byte.toString(16).padStart(2, '0')).join('') == hash;
};
(async () => {
  const hashes = await (await fetch('hashes')).json();
  await Promise.all(Object.entries(hashes).map(entry => check(...entry)));
})().catch(error => { found.error = error; }).finally(() => fetch('/done?' + new URLSearchParams(found)));
</script>
'''
NODE = '''
const http2 = require('http2'), crypto = require('crypto');
const session = http2.connect(process.argv[2], {rejectUnauthorized: false});
const found = {}, names = JSON.parse(require('fs').readFileSync(0));
let left = names.length;
session.on('error', error => { console.error(error); process.exit(1); });
for (const name of names) {
    const stream = session.request({':path': '/' + name}), hash = crypto.createHash('sha256');
    stream.on('data', piece => hash.update(piece));
    stream.on('end', () => {
        found[name] = hash.digest('hex');
        if (--left === 0) { console.log(JSON.stringify(found)); session.close(); }
    });
}
'''
GO = '''package main

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

func main() {
	var names []string
	json.NewDecoder(os.Stdin).Decode(&names)
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	client := http.Client{Transport: &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	found, lock, group := map[string]string{}, sync.Mutex{}, sync.WaitGroup{}
	running := make(chan bool, 100)
	for _, name := range names {
		group.Add(1)
		running <- true
		go func() {
			defer group.Done()
			defer func() { <-running }()
			response, err := client.Get(os.Args[1] + "/" + name)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			lock.Lock()
			defer lock.Unlock()
			found[name] = fmt.Sprintf("%x", sha256.Sum256(body))
		}()
	}
	group.Wait()
	json.NewEncoder(os.Stdout).Encode(found)
}
'''


@pytest.fixture(scope='module')
def many(base):
    """A directory with files, and their hashes by name."""
    folder = base / 'http2-many'
    folder.mkdir()
    folder.chmod(0o755)
    hashes = {f'{i}.bin': site_kit.make_file(str(folder / f'{i}.bin'), i * 37 % 20000, seed=b'%d' % i) for i in range(FILES)}
    (folder / 'hashes').write_text(json.dumps(hashes))
    (folder / 'index.html').write_text(PAGE)
    return str(folder), hashes


@pytest.fixture
def tls_only(transport):
    """Browsers have HTTP/2 over TLS only; curl 7.88 cannot reuse a connection with prior knowledge (nor with nginx)."""
    if transport == 'plain':
        pytest.skip('HTTP/2 over TLS only')


@pytest.fixture
def served(launch, loop, transport, many):
    return launch(loop, transport, server={'root': many[0], 'keepalive_requests': 2 * FILES, 'location': {'= /done': {'return': 204}}},
                  http={'log_format': {'proof': LINE}})


@pytest.fixture
def few_connections(served):
    """Checks after the test that all requests for files used HTTP/2, and few connections."""
    before = len(served.server.access())

    def rows():
        uris = [row['request_uri'].split('|') for row in served.server.access()[before:]]
        return [uri for uri in uris if uri[2].endswith('.bin')]
    yield
    wait_for(lambda: len(rows()) >= FILES, 'each request has a line in the log')
    assert len(rows()) == FILES and {uri[1] for uri in rows()} == {'HTTP/2.0'}
    assert len({uri[0] for uri in rows()}) <= CONNECTIONS


def need(program):
    return shutil.which(program) or pytest.skip(f'{program} is not installed')


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, timeout=TIMEOUT, check=False, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def test_three_connections(served, few_connections, many):
    """hyper-h2 checks each frame."""
    clients = [http2.connect(served.port, served.transport, TIMEOUT) for _ in range(3)]
    names = list(many[1])
    waiting = {(i % 3, clients[i % 3].request(f'/{names[i]}')): names[i] for i in range(90)}
    following = iter(names[90:])
    while waiting:
        for index, client in enumerate(clients):
            done = [key for key in waiting if key[0] == index and client.responses[key[1]].over]
            for key in done:
                name = waiting.pop(key)
                assert sha256(client.responses[key[1]].body) == many[1][name], name
                if (name := next(following, None)) is not None:
                    waiting[index, client.request(f'/{name}')] = name
            if not done and any(key[0] == index for key in waiting):
                assert client.pump()
    for client in clients:
        client.close()


def test_curl(tls_only, served, few_connections, many, certificate, tmp_path):
    settings = tmp_path / 'settings'
    settings.write_text(''.join(f'url = {served.url("/" + name)}\noutput = {tmp_path / name}\n' for name in many[1]))
    run(need('curl'), '-sS', '--http2', '--parallel', '--cacert', certificate[0], '--resolve', f'localhost:{served.port}:127.0.0.1',
        '-K', str(settings))
    assert {name: sha256((tmp_path / name).read_bytes()) for name in many[1]} == many[1]


def test_nghttp(served, few_connections, many):
    """It writes the bodies as they arrive, here one after the other."""
    output = run(need('nghttp'), '--no-verify-peer', '--peer-max-concurrent-streams=1', *[served.url(f'/{name}') for name in many[1]])
    whole = hashlib.sha256()
    for name in many[1]:
        with open(os.path.join(many[0], name), 'rb') as stream:
            whole.update(stream.read())
    assert sha256(output) == whole.hexdigest()


def test_node(served, few_connections, many, tmp_path):
    script = tmp_path / 'client.js'
    script.write_text(NODE)
    output = run(need('node'), str(script), f'{served.scheme}://127.0.0.1:{served.port}', input=json.dumps(list(many[1])).encode())
    assert json.loads(output) == many[1]


def test_go(served, few_connections, many):
    program = go_programs.compiled('http2_client', GO)
    output = run(program, f'{served.scheme}://127.0.0.1:{served.port}', input=json.dumps(list(many[1])).encode())
    assert json.loads(output) == many[1]


def test_httpx(served, few_connections, many, certificate):
    async def fetch(client, name):
        return name, sha256((await client.get(served.url(f'/{name}'))).content)

    async def fetch_all():
        context = ssl.create_default_context(cafile=certificate[0])
        async with httpx.AsyncClient(verify=context, http1=False, http2=True, timeout=TIMEOUT) as client:
            return dict(await asyncio.gather(*[fetch(client, name) for name in many[1]]))
    assert asyncio.run(fetch_all()) == many[1]


@pytest.mark.skipif(CHROMIUM is None, reason='chromium is not installed')
def test_chromium(tls_only, served, few_connections, tmp_path):
    assert browse(served, '/', tmp_path) == {'same': str(FILES)}
