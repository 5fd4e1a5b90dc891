"""The TLS session cache in shared memory, for clients without tickets."""
import os
import re
import signal
import socket
import ssl

import pytest

from kit import http1, server as server_kit, site as site_kit
from kit.authority import Authority
from kit.lifetime import wait_for
from kit.resumption import server_starter, fetch_with_session

# Server settings and client options with which a client can resume only by session id.
VARIANTS = {'no ticket known': ({}, '-tls1_2', ['-no_ticket']), 'tickets off, 1.2': ({'ssl_session_tickets': 'off'}, '-tls1_2', []),
            'tickets off, 1.3': ({'ssl_session_tickets': 'off'}, '-tls1_3', [])}
SHARED = {'ssl_session_cache': 'shared:SSL:1m'}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def variant(request):
    return request.param


@pytest.fixture
def start_server(certificate, tmp_path, loop):
    with server_starter(certificate, tmp_path, loop, 'worker $pid; $ssl_session_reused') as start:
        yield start


def session_client(server, variant):
    """Returns a function that connects with the session in `session_in`, saves the new one in `session_out`, and returns whether the session was
    resumed."""
    def connect(**words):
        more = [*variant[2], *words.pop('more', [])]
        return fetch_with_session(words.pop('port', server.port), variant[1], more=more, **words)[0]
    return connect


def resumes_everywhere(server, variant, session):
    seen = set()
    for _ in range(60):
        resumed, response = fetch_with_session(server.port, variant[1], session_in=session, more=variant[2])
        assert resumed and '; r' in response, response
        seen.add(int(re.search(r'worker (\d+);', response)[1]))
        if seen >= set(server.workers()):
            return
    raise AssertionError(f'only {seen} of {server.workers()} answered')


@pytest.mark.parametrize('cache', ['shared:SSL:1m', 'builtin', 'builtin:1000', 'builtin:100 shared:SSL:1m'])
def test_session_resumes_at_each_worker(start_server, tmp_path, variant, cache):
    server = start_server({'ssl_session_cache': cache, **variant[0]})
    session = tmp_path / 'session'
    assert not session_client(server, variant)(session_out=session)
    resumes_everywhere(server, variant, session)


@pytest.mark.parametrize('cache', [None, 'off', 'none'])
def test_session_cache_off_resumes_nothing(start_server, tmp_path, variant, cache):
    server = start_server({**({'ssl_session_cache': cache} if cache else {}), **variant[0]})
    connect, session = session_client(server, variant), tmp_path / 'session'
    connect(session_out=session)
    assert not session.exists() or not connect(session_in=session)


def test_session_resumes_after_worker_death_and_reload(start_server, tmp_path, variant):
    server = start_server({**SHARED, **variant[0]})
    session = tmp_path / 'session'
    session_client(server, variant)(session_out=session)
    gone = server.workers()[0]
    os.kill(gone, signal.SIGKILL)
    wait_for(lambda: gone not in server.workers() and len(server.workers()) == 2, 'a new worker')
    resumes_everywhere(server, variant, session)
    before = set(server.workers())
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: not before & set(server.workers()) and len(server.workers()) == 2, 'new workers alone')
    resumes_everywhere(server, variant, session)


def test_ssl_session_timeout_expires_sessions(start_server, tmp_path, variant):
    life = round(2 * max(1, server_kit.PATIENCE / 3))   # seconds; handshakes in an emulated machine are slow
    server = start_server({**SHARED, **variant[0], 'ssl_session_timeout': f'{life}s'})
    connect, session = session_client(server, variant), tmp_path / 'session'
    for _ in range(5):          # on a slow machine the session may expire before it is used
        connect(session_out=session)
        if connect(session_in=session):
            break
    else:
        raise AssertionError('it is never resumed')
    wait_for(lambda: not connect(session_in=session), 'the session has expired', seconds=life + 5)


def test_oldest_session_is_evicted(start_server, tmp_path, variant):
    server = start_server({'ssl_session_cache': 'shared:SSL:32k', **variant[0]}, workers=1)
    connect, first, last = session_client(server, variant), tmp_path / 'first', tmp_path / 'last'
    connect(session_out=first)
    assert connect(session_in=first)
    context = http1.tls_context(maximum_version=ssl.TLSVersion.TLSv1_2 if variant[1] == '-tls1_2' else ssl.TLSVersion.TLSv1_3)
    context.options |= ssl.OP_NO_TICKET if variant[2] else 0
    for _ in range(300):
        with context.wrap_socket(socket.create_connection(('127.0.0.1', server.port)), server_hostname='localhost') as stream:
            stream.sendall(b'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
            while stream.recv(4096):
                pass
    connect(session_out=last)
    assert connect(session_in=last) and not connect(session_in=first)


def test_session_is_valid_for_its_server_only(start_server, tmp_path, variant):
    """Servers with the same cache: a session is valid only for the server, and its certificate, with which it was established."""
    (tmp_path / 'other').mkdir()
    other = site_kit.make_certificate(str(tmp_path / 'other'))
    server = start_server({**SHARED, **variant[0]}, {**SHARED, **variant[0], 'server_name': 'other.test', 'ssl_certificate': other[0],
                                          'ssl_certificate_key': other[1]},
                   {**variant[0], 'server_name': 'none.test'})
    connect, session = session_client(server, variant), tmp_path / 'session'
    for name, others in (('localhost', ['other.test', 'none.test']), ('other.test', ['localhost', 'none.test'])):
        connect(session_out=session, name=name)
        assert connect(session_in=session, name=name)
        for name_of_other in others:
            assert not connect(session_in=session, name=name_of_other)
        assert connect(session_in=session, name=name), 'a rejected client does not invalidate the session'


def test_session_cache_of_a_non_default_server(start_server, tmp_path, variant):
    """The handshake begins in the default server, which has no session cache."""
    server = start_server({**variant[0]}, {**SHARED, **variant[0], 'server_name': 'second.test'})
    connect, session = session_client(server, variant), tmp_path / 'session'
    connect(session_out=session, name='second.test')
    assert connect(session_in=session, name='second.test')
    connect(session_out=session)
    assert not session.exists() or not connect(session_in=session)


def test_missing_close_notify_retains_the_session(start_server, variant):
    """An end without close_notify, or by a reset, does not invalidate the session (RFC 5246 7.2.1)."""
    server = start_server({**SHARED, **variant[0]}, workers=1)
    context = http1.tls_context(maximum_version=ssl.TLSVersion.TLSv1_2 if variant[1] == '-tls1_2' else ssl.TLSVersion.TLSv1_3)
    context.options |= ssl.OP_NO_TICKET if variant[2] else 0
    session = None
    for number in range(4):
        stream = socket.create_connection(('127.0.0.1', server.port))
        if number % 2:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
        stream = context.wrap_socket(stream, server_hostname='localhost', session=session)
        stream.sendall(b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
        assert stream.recv(4096).startswith(b'HTTP/1.1 200')
        assert stream.session_reused == (number > 0)
        session = stream.session
        stream.close()
        wait_for(lambda: len(server.access()) > number, 'the server has seen the end')


def test_sessions_with_client_certificates(start_server, tmp_path, variant):
    """A session with a verified client certificate is resumed where a certificate is required; one without is not."""
    authority = Authority(tmp_path / 'authority')
    good = authority.client('good')
    server = start_server({**SHARED, **variant[0], 'ssl_verify_client': 'optional', 'ssl_client_certificate': str(authority.certificate)},
                   {**SHARED, **variant[0], 'server_name': 'strict.test', 'ssl_verify_client': 'on', 'ssl_client_certificate': str(authority.certificate)})
    connect, session = session_client(server, variant), tmp_path / 'session'
    shows = ['-cert', good[0], '-key', good[1]]
    for name in ('localhost', 'strict.test'):
        connect(session_out=session, name=name, more=shows)
        assert connect(session_in=session, name=name)
    session.unlink()
    connect(session_out=session, name='strict.test')
    assert not session.exists() or not connect(session_in=session, name='strict.test', more=shows)
    session.unlink(missing_ok=True)
    connect(session_out=session)
    assert connect(session_in=session), 'the certificate is optional'
    assert not connect(session_in=session, name='strict.test', more=shows), 'of another server'


def test_sessions_in_stream(start_server, tmp_path, certificate, variant):
    port = server_kit.free_port()
    server = start_server({}, main={'stream': {'server': {
        'listen': f'127.0.0.1:{port} ssl', 'ssl_certificate': certificate[0], 'ssl_certificate_key': certificate[1], 'return': 'hello',
        **SHARED, **variant[0]}}})
    connect, session = session_client(server, variant), tmp_path / 'session'
    assert not connect(port=port, session_out=session)
    for _ in range(8):
        assert connect(port=port, session_in=session)
