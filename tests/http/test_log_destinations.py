"""Selected lines, and destinations of the logs other than files, compared with those of nginx."""
import concurrent.futures
import datetime
import json
import os
import re
import signal
import socket
import time

import pytest
from kit import http1, nginx as nginx_kit, server as server_kit
from kit.lifetime import wait_for
from test_upgrade import Echo, HANDSHAKE


class Pair:
    """nginx, and sluice with the imported configuration: `text` is the content of http, with @PORT@ and @LOG@ (a path without its end)."""

    def __init__(self, folder, text, loop, own_places=None, error_log=None):
        self.servers, self.ports, self.logs = {}, {}, {}
        for name in ('nginx', 'sluice'):
            own = folder / name
            own.mkdir()
            self.ports[name], self.logs[name] = server_kit.free_port(), own / 'log'
            places = {'PORT': self.ports[name], 'LOG': self.logs[name], **(own_places or {}).get(name, {})}
            conf = nginx_kit.write_conf(own, text, places)
            if error_log:
                conf.write_text(re.sub('error_log .*;', f'error_log {error_log.replace("@ERRORS@", places["ERRORS"])};', conf.read_text(), count=1))
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
@pytest.mark.http1('the configuration of nginx has no HTTP/2')
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


class Receiver:
    """A syslog receiver: a datagram socket, by UDP or at a path."""

    def __init__(self, path=None):
        self.path, self.port = path, None
        self.open()

    def open(self):
        self.socket = socket.socket(socket.AF_UNIX if self.path else socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path) if self.path else ('127.0.0.1', self.port or 0))
        if self.path:
            os.chmod(self.path, 0o666)
        else:
            self.port = self.socket.getsockname()[1]
        self.socket.settimeout(10 * server_kit.PATIENCE)

    @property
    def name(self):
        return f'unix:{self.path}' if self.path else f'127.0.0.1:{self.port}'

    def close(self):
        self.socket.close()
        if self.path:
            self.path.unlink()

    def read(self):
        """The next datagram."""
        return self.socket.recv(65536).decode('latin-1')

    def read_until(self, text):
        """All datagrams up to the first that contains the text."""
        found = [self.read()]
        while text not in found[-1]:
            found.append(self.read())
        return found


TIME = r'[A-Z][a-z]{2} [ 1-3]\d \d\d:\d\d:\d\d'


def without_time(datagram):
    """nginx's datagram without its time, which is checked here."""
    found = re.match(rf'(?s)(<\d+>)({TIME})( .*)', datagram)
    assert found, datagram
    now = datetime.datetime.now()
    then = datetime.datetime.strptime(f'{now.year} {found[2]}', '%Y %b %d %H:%M:%S')
    assert abs((now - then).total_seconds()) < 120 or now.month != then.month, datagram
    return found[1] + found[3]


@pytest.fixture(params=['udp', 'unix'])
def make_receiver(request, tmp_path):
    made = []

    def make():
        made.append(Receiver(tmp_path / f'socket{len(made)}' if request.param == 'unix' else None))
        return made[-1]
    yield make
    for receiver in made:
        receiver.socket.close()


@pytest.mark.skipif(not nginx_kit.NGINX, reason='nginx is not installed')
@pytest.mark.http1('the configuration of nginx has no HTTP/2')
def test_datagrams_are_those_of_nginx(tmp_path, loop, make_receiver):
    """The datagrams of the access log are equal byte for byte, those of the error log except for its text."""
    access = {name: make_receiver() for name in ('nginx', 'sluice')}
    errors = {name: make_receiver() for name in ('nginx', 'sluice')}
    pair = Pair(tmp_path, """
        log_format line '$request_method $uri $args "$http_x" $status';
        log_format raw escape=none '$arg_raw|$http_x';
        client_max_body_size 10;
        server {
            listen 127.0.0.1:@PORT@;
            access_log syslog:server=@ACCESS@ line;
            access_log syslog:server=@ACCESS@,facility=daemon,tag=Tag_1,severity=error,nohostname raw if=$arg_raw;
            access_log syslog:server=@ACCESS@,nohostname,facility=kern,severity=emerg line if=$arg_kern;
            location / { root @WWW@; }
        }""", loop, {name: {'ACCESS': access[name].name, 'ERRORS': errors[name].name, 'WWW': tmp_path} for name in access},
        'syslog:server=@ERRORS@,facility=local3 info')
    try:
        assert nginx_kit.left_out(pair.notes) == []
        (tmp_path / 'file').write_text('file')
        for target, field in (('/file', 'a'), ('/file?raw=%25s%n\\', 'tab\there'), ('/none?kern=1', '"quoted"\x80'), ('/file?last', 'x' * 3000)):
            pair.get(target, X=field)
        lines = {name: [without_time(datagram) for datagram in receiver.read_until('last')] for name, receiver in access.items()}
        assert lines['nginx'] == lines['sluice']
        host = socket.gethostname().lower()
        assert lines['sluice'][:3] == [f'<190> {host} nginx: GET /file - "a" 200', f'<190> {host} nginx: GET /file raw=%25s%n\\x5C "tab\\x09here" 200',
                                       '<27> Tag_1: %25s%n\\|tab\there']
        assert len(lines['sluice']) == 6
        for port in pair.ports.values():
            client = http1.connect(port)
            assert client.fetch('POST', '/file', [], b'x' * 11).status == 413
        shown = {name: receiver.read_until('client intended to send too large')[-1] for name, receiver in errors.items()}
        for datagram in shown.values():
            assert re.match(rf'<155>{TIME} {host} nginx: \d{{4}}/\d\d/\d\d \d\d:\d\d:\d\d \[error\] \d+#\d+: \*\d+ client intended [^\n]*$', datagram), datagram
    finally:
        pair.stop()


@pytest.fixture
def logging(tmp_path, loop, make_receiver):
    """A server whose access log goes to a receiver; the error log is a file."""
    port, receiver = server_kit.free_port(), make_receiver()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'return': '200 ok'}], loop=loop, http={
        'log_format': {'args': '$args'}, 'access_log': f'syslog:server={receiver.name},tag=t,nohostname args'}, main={'worker_processes': 2})
    server.port, server.receiver = port, receiver
    server.start([port])
    yield server
    server.stop()


def arrives(server, text):
    """Sends a request; True if its line arrives soon."""
    http1.connect(server.port).get(f'/?{text}')
    server.receiver.socket.settimeout(0.3)
    try:
        return server.receiver.read().endswith(f' t: {text}')
    except TimeoutError:
        return False
    finally:
        server.receiver.socket.settimeout(10 * server_kit.PATIENCE)


def test_receiver_is_restarted(logging):
    """Lines arrive again in both workers soon after the receiver is back; the losses are counted and logged."""
    assert arrives(logging, 'before')
    logging.receiver.close()
    for number in range(6):
        assert http1.connect(logging.port).get(f'/?lost={number}').status == 200
    logging.receiver.open()
    wait_for(lambda: all(arrives(logging, f'after={number}') for number in range(8)), 'lines do not arrive')
    logging.stop()
    found = re.search(r'access log "syslog:\S+": (\d+) lines dropped: (Connection refused|Transport endpoint is not connected|No such file)', logging.errors())
    assert found and int(found[1]) >= 1, logging.errors()


def test_reload_and_reopening(logging):
    for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGUSR1):
        logging.process.send_signal(number)
        wait_for(lambda number=number: arrives(logging, f'after={number}'), 'no line')
    assert 'failed' not in logging.errors()


def test_receiver_that_does_not_read(logging):
    """A full Unix receiver loses lines; no request waits. A UDP receiver has no such state."""
    if not logging.receiver.path:
        pytest.skip('UDP datagrams are discarded by the receiving side')
    client = http1.connect(logging.port)
    for number in range(2000):
        assert client.get(f'/?{number}').status == 200
        if 'lines dropped: Resource temporarily unavailable' in logging.errors():
            break
    else:
        raise AssertionError(logging.errors())
    server_lines = re.findall('lines dropped', logging.errors())
    assert len(server_lines) == 1


def test_receiver_that_appears_later(tmp_path, loop):
    """The server starts without its receivers, of both logs, and connects when they appear."""
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'return': '200 ok'}], loop=loop, http={
        'log_format': {'args': '$args'}, 'access_log': f'syslog:server=unix:{tmp_path}/access,tag=t args'},
        main={'error_log': f'syslog:server=unix:{tmp_path}/errors,format=rfc5424,tag=own info'})
    server.port = port
    server.start([port])
    assert 'error_log: connect() to the syslog receiver failed (2: No such file or directory)' in server.output()
    server.receiver, errors = Receiver(tmp_path / 'access'), Receiver(tmp_path / 'errors')
    wait_for(lambda: arrives(server, 'here'), 'no line')
    client = http1.connect(port)
    client.send('GET /\x01 HTTP/1.1\r\n\r\n')
    server.process.send_signal(signal.SIGHUP)
    datagram = errors.read_until('reloading the configuration')[-1]
    assert re.fullmatch(r'<189>1 (\S+) \S+ own (\d+) - - signal HUP: reloading the configuration', datagram), datagram
    sent = datetime.datetime.fromisoformat(datagram.split()[1])
    assert abs((datetime.datetime.now(datetime.timezone.utc) - sent).total_seconds()) < 60
    assert int(datagram.split()[4]) == server.process.pid
    errors.read_until('runs, ')
    server.stop()
    errors.read_until('exit')
    server.receiver.close()
    errors.close()


HOSTILE = (b'GET /a"b\\c{}?"},{"level":"emerg HTTP/1.1', b'GET /\xc3\xa9\xff\xfe HTTP/1.1', b'GET /%00%0a%22%5c HTTP/1.1', b'GET /\x01\x7f HTTP/1.1',
           b'GET / HTTP/1.1\r\nHost: "\\', b'POST /%22 HTTP/1.1\r\nHost: a\r\nContent-Length: 11')


def send_hostile(port):
    for head in HOSTILE:
        with socket.create_connection(('127.0.0.1', port)) as client:
            client.sendall(head + (b'' if b'Host' in head else b'\r\nHost: localhost') + b'\r\n\r\n')
            client.settimeout(10 * server_kit.PATIENCE)
            client.recv(4096)


def test_json_error_log(tmp_path, site, loop):
    """Every line is one JSON object with the fields of the text, whatever bytes the request has."""
    port = server_kit.free_port()
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'server_name': 'named', 'root': site, 'client_max_body_size': '10'}], loop=loop,
                               main={'error_log': {'path': str(tmp_path / 'error.json'), 'level': 'info', 'format': 'json'}}).start([port])
    send_hostile(port)
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: 'reopening' in server_kit.read_text(tmp_path / 'error.json'), 'no line')
    pid = server.process.pid
    server.stop()
    rows = [json.loads(line) for line in (tmp_path / 'error.json').read_bytes().decode('utf-8').splitlines()]
    assert len(rows) > len(HOSTILE) / 2
    for row in rows:
        assert list(row)[:3] == ['time', 'level', 'pid']
        assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d', row['time'])
        assert abs(datetime.datetime.fromisoformat(row['time']).timestamp() - time.time()) < 120 * server_kit.PATIENCE
    assert any(row['pid'] == pid and row['level'] == 'notice' and row['message'] == 'signal USR1: reopening the logs' for row in rows)
    large = next(row for row in rows if row['message'].startswith('client intended to send too large'))
    assert {name: large[name] for name in ('level', 'client', 'server', 'request', 'host')} == {
        'level': 'error', 'client': '127.0.0.1', 'server': 'named', 'request': 'POST /%22 HTTP/1.1', 'host': 'a'}
    assert re.fullmatch('[0-9a-f]{32}', large['request_id']) and isinstance(large['connection'], int)
    assert not any(row['level'] == 'emerg' for row in rows)


def parse_journal(datagram):
    """The fields of one datagram in the native protocol of systemd-journald."""
    fields = {}
    while datagram:
        line, _, datagram = datagram.partition(b'\n')
        name, equals, value = line.partition(b'=')
        if not equals:
            length = int.from_bytes(datagram[:8], 'little')
            value, end = datagram[8:8 + length], datagram[8 + length:9 + length]
            assert len(value) == length and end == b'\n', datagram
            datagram = datagram[9 + length:]
        assert re.fullmatch(rb'[A-Z][A-Z0-9_]{0,63}', name) and name not in fields, name
        fields[name.decode()] = value
    return fields


def test_journald(tmp_path, site, loop):
    """Both logs in the journal, with fields, whatever bytes the request has."""
    port, journal = server_kit.free_port(), Receiver(tmp_path / 'journal')
    server = server_kit.Server(tmp_path / 'run', [{'listen': [f'127.0.0.1:{port}'], 'server_name': 'named', 'root': site, 'client_max_body_size': '10'}],
                               loop=loop, http={'log_format': {'raw': {'escape': 'none', 'format': '$request|$http_x\n$arg_a'}},
                                                'access_log': f'journald:server={journal.name},tag=web,severity=debug raw'},
                               main={'error_log': f'journald:server={journal.name},facility=local0 info'}).start([port])
    found = []

    def collect():
        while not found or b'&last' not in found[-1]['MESSAGE']:
            found.append(parse_journal(journal.socket.recv(65536)))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:      # the queue of the socket is short
        collected = pool.submit(collect)
        send_hostile(port)
        http1.connect(port).get('/one.txt?a=PRIORITY=0&last', X='y')
        collected.result()
    for fields in found:
        ours = fields['SYSLOG_IDENTIFIER'] == b'web'
        assert fields['SYSLOG_FACILITY'] == (b'3' if ours else b'16')
        assert fields['PRIORITY'] in ((b'7',) if ours else (b'3', b'4', b'5', b'6'))
    assert found[-1] == {'PRIORITY': b'7', 'SYSLOG_FACILITY': b'3', 'SYSLOG_IDENTIFIER': b'web', 'MESSAGE': f'GET /one.txt?a=PRIORITY=0&last {http1.VERSION}|y\nPRIORITY=0'.encode()}
    large = next(fields for fields in found if b'client intended' in fields['MESSAGE'])
    assert large['MESSAGE'].startswith(b'*') and large['SYSLOG_IDENTIFIER'] == b'sluice' and large['PRIORITY'] == b'3'
    assert (large['SLUICE_CLIENT'], large['SLUICE_SERVER'], large['SLUICE_HOST'], large['SLUICE_REQUEST']) == (b'127.0.0.1', b'named', b'a', b'POST /%22 HTTP/1.1')
    assert large['MESSAGE'].split()[0] == b'*' + large['SLUICE_CONNECTION'] and len(large['SLUICE_REQUEST_ID']) == 32
    server.stop()
    journal.close()
