"""`sluice ctl log-level`: what the processes log, and how long a change lasts."""
import json
import os
import re
import signal
import socket
import threading

from kit import http1, server as server_kit
from kit.lifetime import wait_for
from kit.load import load
from kit.upstream import Upstream
from test_control import controlled  # pylint: disable=unused-import

TIMEOUT = 20 * server_kit.PATIENCE


def level_of(controlled):
    [row] = controlled.ctl('log-level')
    return row['level'], row['configured']


def change(controlled, level):
    [row] = controlled.ctl('log-level', level)
    assert row['level'] == level


def debugging(controlled, since=0):
    """The processes with lines of level debug about connections."""
    return {int(pid) for pid in re.findall(r'\[debug\] (\d+)#0: \*\d+ ', controlled.server.errors()[since:])}


def becomes_quiet(controlled, clients):
    """The workers write no more lines of level debug about requests."""
    def quiet():
        since = len(controlled.server.errors())
        clients.more()
        return not debugging(controlled, since)
    wait_for(quiet, 'no more lines of level debug')


def reopen(controlled, old):
    """Renames the error log, and lets the master open it again. Returns its lines."""
    os.rename(controlled.server.error_path, old)
    controlled.server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(controlled.server.error_path), 'the new error log')
    return server_kit.read_text(old) + controlled.server.errors()


def test_all_processes(controlled, tmp_path):
    controlled.start(workers=3)
    assert level_of(controlled) == ('info', 'info')
    with load(controlled.port, '/one.txt') as clients:
        clients.more()
        assert not debugging(controlled)
        change(controlled, 'debug')
        wait_for(lambda: debugging(controlled) == set(controlled.server.workers()), 'lines of level debug of each worker')
        assert re.search(rf'\[notice\] {controlled.server.process.pid}#0: control: the error log has the level debug, before: info', controlled.server.errors())
        change(controlled, 'error')
        becomes_quiet(controlled, clients)
        assert level_of(controlled) == ('error', 'info')
    controlled.until('control: the error log has the level error, before: debug')
    assert 'signal USR1' not in reopen(controlled, tmp_path / 'old')
    change(controlled, 'notice')
    assert 'signal USR1: reopening the logs' in reopen(controlled, tmp_path / 'older'), 'the master, too'


def test_open_connections(controlled):
    """A change applies to connections that are open, also to those of `stream`."""
    upstream = Upstream()
    port = server_kit.free_port()
    controlled.start(workers=1, main={'stream': {'server': {'listen': f'127.0.0.1:{port}', 'proxy_pass': f'127.0.0.1:{upstream.port}'}}})
    with socket.create_connection(('127.0.0.1', controlled.port), timeout=TIMEOUT) as stream:
        client = http1.Client(stream)
        raised, lowered = (http1.Client(socket.create_connection(('127.0.0.1', port), timeout=TIMEOUT)) for _ in range(2))
        assert {one.get('/').status for one in (raised, lowered)} == {200} and client.get('/one.txt').status == 200
        assert not debugging(controlled)
        change(controlled, 'debug')
        assert client.get('/one.txt').status == 200
        assert 'request: "GET /one.txt HTTP/1.1"' in controlled.server.errors()
        raised.stream.close()
        wait_for(lambda: len(re.findall(r'\[debug\].*closed: status 200', controlled.server.errors())) == 1, 'the end of the stream')
        change(controlled, 'info')
        since = len(controlled.server.errors())
        lowered.stream.close()
        assert client.get('/one.txt').status == 200
        wait_for(lambda: controlled.ctl('workers')[0]['connections'] <= 2, 'the end of the second stream')
        assert not debugging(controlled, since)
    upstream.stop()


def test_debug_connection_stays(controlled):
    controlled.start(workers=1, main={'events': {'use': controlled.loop, 'debug_connection': '127.0.0.1'}})
    for level in ('debug', 'error'):
        change(controlled, level)
        since = len(controlled.server.errors())
        controlled.get()
        assert debugging(controlled, since) == set(controlled.server.workers())


def test_replaced_worker(controlled):
    controlled.start()
    change(controlled, 'debug')
    [former, _] = controlled.server.workers()
    os.kill(former, signal.SIGKILL)
    wait_for(lambda: former not in controlled.server.workers() and len(controlled.server.workers()) == 2, 'its replacement')
    [new] = set(controlled.server.workers()) - {former, _}
    with load(controlled.port, '/one.txt'):
        wait_for(lambda: new in debugging(controlled), 'lines of level debug of the new worker')
    assert level_of(controlled) == ('debug', 'info')


def test_reload(controlled):
    """A reload that fails keeps the level; one that succeeds sets that of the file, also in workers that are replaced later."""
    controlled.start()
    change(controlled, 'debug')
    good = dict(controlled.server.tree)
    controlled.server.tree['http'] = {'nosuch': 1}
    controlled.server.write_configuration()
    controlled.server.process.send_signal(signal.SIGHUP)
    controlled.until('reload failed: the running configuration stays in use')
    assert level_of(controlled) == ('debug', 'info')
    with load(controlled.port, '/one.txt') as clients:
        since = len(controlled.server.errors())
        wait_for(lambda: debugging(controlled, since) == set(controlled.server.workers()), 'lines of level debug of each worker')
        controlled.server.tree = {**good, 'error_log': {'path': controlled.server.error_path, 'level': 'notice'}}
        controlled.server.write_configuration()
        before = set(controlled.server.workers())
        controlled.reload()
        wait_for(lambda: not before & set(controlled.server.workers()), 'the end of the former workers')
        becomes_quiet(controlled, clients)
    assert level_of(controlled) == ('notice', 'notice')
    [former, _] = controlled.server.workers()
    os.kill(former, signal.SIGKILL)
    wait_for(lambda: former not in controlled.server.workers() and len(controlled.server.workers()) == 2, 'its replacement')
    assert [level_of(controlled) for _ in range(10)] == [('notice', 'notice')] * 10


def test_upgrade(controlled):
    """The new master begins with the level of the configuration."""
    controlled.start()
    change(controlled, 'debug')
    with controlled.upgraded():
        assert [level_of(controlled) for _ in range(5)] == [('info', 'info')] * 5


def test_concurrent_changes(controlled):
    """Each command succeeds, and all workers have the last level."""
    controlled.start(workers=3)
    ran = []
    threads = [threading.Thread(target=lambda level: ran.append(controlled.run('log-level', level)), args=(level,))
               for level in ('debug', 'error', 'warn', 'info', 'notice', 'crit') * 2]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(ran) == 12 and {(one.returncode, one.stderr) for one in ran} == {(0, '')}
    change(controlled, 'notice')
    wait_for(lambda: {level_of(controlled) for _ in range(12)} == {('notice', 'info')}, 'the last level in all workers')


def patch(body):
    return f'PATCH /v1/log-level HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}'


def test_wrong_words(controlled):
    controlled.start(workers=1)
    assert 'the field "level" is one of emerg, alert, crit, error, warn, notice, info, debug' in controlled.refused('log-level', 'verbose')
    assert '"log-level" takes 1 argument, found 2; sluice ctl help names them' in controlled.refused('log-level', 'debug', 'now')
    for request, status, error in ((patch('{}'), 400, 'the field "level" is missing'), (patch('level=debug'), 400, 'the body is not a JSON object'),
                                   (patch('{"level": 7}'), 400, 'the field "level" is one of'),
                                   ('POST /v1/log-level HTTP/1.0', 405, '/v1/log-level takes GET and PATCH')):
        response = controlled.request(request)
        assert response.startswith(f'HTTP/1.1 {status} ')
        assert error in json.loads(response.split('\r\n\r\n', 1)[1])['error']
    assert level_of(controlled) == ('info', 'info')


def test_master_that_does_not_run(controlled):
    """The request waits for the master, other requests do not. A client that goes away has made its change nevertheless."""
    controlled.start(workers=1)
    os.kill(controlled.server.process.pid, signal.SIGSTOP)
    try:
        with controlled.connect() as stays, controlled.connect() as goes:
            goes.sendall(patch('{"level": "warn"}').encode())
            stays.sendall(patch('{"level": "debug"}').encode())
            assert level_of(controlled) == ('info', 'info') and len(controlled.ctl('workers')) == 1
            goes.close()
            assert level_of(controlled) == ('info', 'info')
            os.kill(controlled.server.process.pid, signal.SIGCONT)
            response = b''.join(iter(lambda: stays.recv(65536), b'')).decode()
    finally:
        os.kill(controlled.server.process.pid, signal.SIGCONT)
    assert response.startswith('HTTP/1.1 200 ') and '"level": "debug"' in response
    for level in ('debug', 'warn'):
        controlled.until(f'the error log has the level {level}, before: ')
    assert level_of(controlled)[0] in ('debug', 'warn'), 'that of the request which the worker read last'
