"""Prints CPU ticks of the server for a response of 8 MiB, compared with nginx in the same guest; does not check them."""
import hashlib
import os
import shutil
import statistics
import subprocess
import time

import pytest
from kit import http1, server as server_kit

ROUNDS = 7
NGINX = '''
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{ sendfile on; access_log off; open_file_cache max=1000; server {{ listen 127.0.0.1:{port} ssl; root {root};
  ssl_protocols TLSv1.3; ssl_certificate {certificate}; ssl_certificate_key {key}; {option} }} }}
'''


class Nginx:
    """Debian's nginx with one worker, with or without kernel TLS."""

    def __init__(self, folder, www, certificate, option):
        self.port = server_kit.free_port()
        with open(f'{folder}/nginx.conf', 'w', encoding='ascii') as stream:
            stream.write(NGINX.format(folder=folder, port=self.port, root=www['folder'], certificate=certificate[0],
                                      key=certificate[1], option=option))
        self.process = subprocess.Popen([shutil.which('nginx') or '/usr/sbin/nginx', '-p', str(folder), '-c', f'{folder}/nginx.conf'],
                                        stderr=subprocess.DEVNULL)
        time.sleep(3)

    def ticks(self):
        with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='ascii') as stream:
            pids = [self.process.pid, *map(int, stream.read().split())]
        return sum(server_kit.process_ticks(pid) for pid in pids)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def measure(ticks, port, expected):
    """The server's ticks for one 8 MiB response that is in the page cache."""
    client = http1.connect(port, 'own', suites=['TLS_AES_128_GCM_SHA256'], timeout=300)
    client.get('/1k')
    before = ticks()
    body = client.get('/8m').body
    used = ticks() - before
    client.close()
    assert hashlib.sha256(body).hexdigest() == expected
    return used


def test_cpu_time_compared_with_nginx(start, www, certificate, tmp_path):
    if not shutil.which('nginx', path='/usr/sbin:/sbin:' + os.environ['PATH']):
        pytest.skip('no nginx')
    nginx_servers = {}
    for name, option in (('nginx ktls', 'ssl_conf_command Options KTLS;'), ('nginx user', '')):
        folder = tmp_path / name.replace(' ', '-')
        folder.mkdir()
        nginx_servers[name] = Nginx(folder, www, certificate, option)
    runs = {name: (nginx.ticks, nginx.port) for name, nginx in nginx_servers.items()}
    for loop in ('epoll', 'io_uring'):
        for ktls in ('on', 'off'):
            server, port = start(loop, ktls)
            runs[f'sluice {loop} {"ktls" if ktls == "on" else "user"}'] = (server.ticks, port)
    ticks = {name: [] for name in runs}
    order = list(runs)
    for round_number in range(ROUNDS):       # each server is measured in each position
        for name in order[round_number % len(order):] + order[:round_number % len(order)]:
            ticks[name].append(measure(*runs[name], www['8m']))
    for nginx in nginx_servers.values():
        nginx.stop()
    base = statistics.median(ticks['nginx ktls'])
    lines = [f'{name:22} median {statistics.median(values):6} ticks  ratio {statistics.median(values) / base:.2f}  {values}'
             for name, values in ticks.items()]
    print('\nCPU ticks of the server for 8 MiB, TLS_AES_128_GCM_SHA256:\n' + '\n'.join(lines))
    out = os.environ.get('OUT')
    if out:
        with open(os.path.join(out, 'figure'), 'w', encoding='ascii') as stream:
            stream.write('\n'.join(lines) + '\n')
