"""Selected lines, and destinations of the logs other than files, compared with those of nginx."""
import socket

import pytest
from kit import http1, nginx as nginx_kit, server as server_kit
from kit.lifetime import wait_for
from test_upgrade import Echo, HANDSHAKE


class Pair:
    """nginx, and sluice with the imported configuration: `text` is the content of http, with @PORT@ and @LOG@ (a path without its end)."""

    def __init__(self, folder, text, loop, places=None):
        self.servers, self.ports, self.logs = {}, {}, {}
        for name in ('nginx', 'sluice'):
            own = folder / name
            own.mkdir()
            self.ports[name], self.logs[name] = server_kit.free_port(), own / 'log'
            conf = nginx_kit.write_conf(own, text, {'PORT': self.ports[name], 'LOG': self.logs[name], **(places or {}).get(name, {})})
            command = nginx_kit.nginx_command(own, conf)
            if name == 'sluice':
                status, self.notes = nginx_kit.import_file(conf, own / 'sluice.yaml')
                assert status == 0, self.notes
                self.imported = (own / 'sluice.yaml').read_text(encoding='utf-8').replace('use: epoll', f'use: {loop}')
                (own / 'sluice.yaml').write_text(self.imported, encoding='utf-8')
                command = [server_kit.SLUICE, '-c', str(own / 'sluice.yaml')]
            self.servers[name] = nginx_kit.RunningServer(command, [self.ports[name]], own / 'output')

    def get(self, target, **headers):
        for port in self.ports.values():
            client = http1.connect(port)
            client.get(target, **headers)
            client.close()

    def stop(self):
        for server in self.servers.values():
            server.stop()

    def lines(self, end):
        return {name: server_kit.read_text(f'{path}.{end}').splitlines() for name, path in self.logs.items()}


@pytest.mark.skipif(not nginx_kit.NGINX, reason='nginx is not installed')
def test_conditions_are_those_of_nginx(tmp_path, loop):
    pair = Pair(tmp_path, """
        log_format line '$status $args';
        map $status $failed { ~^[45] 1; default 0; }
        map $arg_n $text { default ""; one 1; zero 0; zeros 00; blank " "; }
        server {
            listen 127.0.0.1:@PORT@;
            access_log @LOG@.failed line if=$failed;
            access_log @LOG@.text line if=$text;
            access_log @LOG@.arg line buffer=4k flush=1s if=$arg_n$arg_m;
            location / { return 200 ok; }
            location /none { return 404; }
        }""", loop)
    try:
        for target in ('/', '/none', '/?n=one', '/?n=zero', '/none?n=zeros', '/?n=blank', '/?n=0', '/?m=0', '/?n=0&m=0', '/?n=', '/?other=1'):
            pair.get(target)
    finally:
        pair.stop()
    for end in ('failed', 'text', 'arg'):
        lines = pair.lines(end)
        assert lines['nginx'] and lines['nginx'] == lines['sluice'], end


def test_condition_of_an_upgraded_connection(tmp_path, loop):
    """Its line is written when the connection ends, and the condition has the values of the request."""
    port, echo = server_kit.free_port(), Echo()
    tunnel = {'proxy_pass': f'http://127.0.0.1:{echo.port}', 'proxy_set_header': ['Upgrade $http_upgrade', 'Connection upgrade'], 'access_log': [
        f'{tmp_path}/status.log line if=$switched', f'{tmp_path}/absent.log line if=$arg_absent', f'{tmp_path}/sample.log line sample=1']}
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'location': {'/tunnel': tunnel}}], loop=loop,
                               http={'log_format': {'line': '$status $uri'}, 'access_log': 'off',
                                     'map': {'$status $switched': {'101': '1', 'default': '0'}}}).start([port])
    with socket.create_connection(('127.0.0.1', port)) as client:
        client.sendall(HANDSHAKE.encode())
        assert client.recv(4096).startswith(b'HTTP/1.1 101 ')
        client.sendall(b'hello')
        wait_for(lambda: client.recv(4096).endswith(b'hello'), 'no echo')
        assert not server_kit.read_text(tmp_path / 'status.log')
    wait_for(lambda: server_kit.read_text(tmp_path / 'status.log'), 'no line')
    server.stop()
    assert server_kit.read_text(tmp_path / 'status.log') == '101 /tunnel\n' == server_kit.read_text(tmp_path / 'sample.log')
    assert server_kit.read_text(tmp_path / 'absent.log') == ''


def test_samples_are_counted_by_each_worker(tmp_path, loop):
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'return': '200 ok'}], loop=loop, http={
        'log_format': {'n': '$arg_n'}, 'access_log': [f'{tmp_path}/sample.log n sample=1/10',
                                                      {'path': f'{tmp_path}/even.log', 'format': 'n', 'if': '$arg_log', 'sample': 0.5}]})
    server.start([port])
    client = http1.connect(port)
    for number in range(100):
        client.get(f'/?n={number}&log={number % 2}')
    server.stop()
    assert server_kit.read_text(tmp_path / 'sample.log').split() == [str(number) for number in range(0, 100, 10)]
    assert server_kit.read_text(tmp_path / 'even.log').split() == [str(number) for number in range(1, 100, 4)]
