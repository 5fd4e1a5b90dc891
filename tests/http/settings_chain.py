"""Chains of internal redirects with different settings at each step, for test_settings_fuzz.py: their strategies, their configuration, a
scripted upstream server, and a model of the permitted statuses."""
import threading

from hypothesis import strategies as st
from kit.upstream import Upstream

PATIENCE = 60

sizes = st.sampled_from([0, 1, 100, 1023, 1024, 4096, 5000, 16384, 20000, 65536, 70000, 150000, 300000])

# The location settings that affect the request body or the sending of the response.
settings = st.fixed_dictionaries({}, optional={
    'client_body_buffer_size': st.sampled_from(['1k', '2k', '4k', '16k', '64k', '1m']),
    'client_max_body_size': st.sampled_from(['0', '1k', '16k', '64k', '1m']),
    'proxy_request_buffering': st.booleans(),
    'proxy_buffering': st.booleans(),
    'proxy_buffers': st.sampled_from(['2 4k', '8 4k', '8 32k']),
    'proxy_max_temp_file_size': st.sampled_from(['0', '64k', '1g']),
    'proxy_limit_rate': st.sampled_from(['0', '20m']),
    'output_buffers': st.sampled_from(['1 4k', '2 32k', '1 128k']),
    'sendfile': st.booleans(),
    'tcp_nodelay': st.booleans(),
    'gzip': st.booleans(),
    'limit_rate': st.sampled_from(['0', '20m']),
    'keepalive_timeout': st.sampled_from(['0', '20s', '75s']),
    'keepalive_requests': st.sampled_from([1, 2, 1000]),
    'client_body_timeout': st.sampled_from(['50s', '90s']),
    'send_timeout': st.sampled_from(['50s', '90s']),
    'client_min_rate': st.sampled_from(['0', '1']),
    'lingering_close': st.sampled_from(['on', 'always']),
    'reset_timedout_connection': st.booleans(),
    'server_tokens': st.booleans(),
})

# How a step leads to the next one.
LEAVES = ['try_files', 'return', 'dead', 'refuses late', 'refuses early', 'refuses midway', 'accel name', 'accel path', 'gate']
ENDS = ['echo', 'gated echo', 'return', 'no_response']

steps = st.fixed_dictionaries({'leave': st.sampled_from(LEAVES), 'settings': settings, 'when': st.none() | settings,
                               'mirror': st.sampled_from([False, False, False, True])})
ends = st.fixed_dictionaries({'leave': st.sampled_from(ENDS), 'settings': settings, 'when': st.none() | settings,
                              'mirror': st.sampled_from([False, False, False, True])})
chains = st.tuples(st.lists(steps, max_size=3), ends).map(lambda pair: pair[0] + [pair[1]])

DEFAULTS = {'client_max_body_size': '1m', 'proxy_request_buffering': False}
BYTES = {'0': 0, '1k': 1024, '16k': 16384, '64k': 65536, '1m': 1 << 20}


class Case:
    """One request: its body, the body sizes that the upstream server received, and its gate."""

    def __init__(self, body):
        self.body, self.seen, self.faults = body, [], []
        self.gate = threading.Event()
        self.gates_requested = 0


class Actors(Upstream):
    """An upstream server that acts on the request field X-Act, for the case in X-Case."""

    def __init__(self):
        self.cases = {}
        super().__init__()
        self.scripts = self

    def get(self, _path, _plain):
        return self.act

    def act(self, peer):
        request = peer.request
        case = self.cases.get(request.header('x-case'))
        words = (request.header('x-act') or '').split(' ')
        if case is None:        # a delayed step of an earlier request that has ended
            return False
        return getattr(self, words[0])(peer, case, words[1:])

    def read(self, peer, case):
        """Reads the body; a fault unless it is the client's body, or empty because a redirect dropped it."""
        body = peer.read_body()
        case.seen.append(len(body))
        if body and body != case.body:
            case.faults.append(f'{peer.request.line}: {len(body)} bytes of {len(case.body)}, the same up to '
                               f'{next((at for at, pair in enumerate(zip(body, case.body)) if pair[0] != pair[1]), None)}')
        return body

    @staticmethod
    def send_response(peer, status, body=b'', fields=''):
        peer.send(f'HTTP/1.1 {status} Status\r\n{fields}Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body)
        return True

    def last_handler(self, peer, status):
        """Sends a response before the request is complete. Reads the rest of the request, because a reset could destroy the response."""
        self.send_response(peer, status, fields='Connection: close\r\n')
        while peer.fill():
            peer.buffer = b''
        return False

    def echo(self, peer, case, _words):
        return self.send_response(peer, 200, self.read(peer, case))

    def discard(self, peer, case, _words):
        self.read(peer, case)
        return self.send_response(peer, 204)

    def no_response(self, peer, case, _words):
        self.read(peer, case)
        return False

    def late(self, peer, case, _words):
        self.read(peer, case)
        return self.send_response(peer, 503, b'late')

    def early(self, peer, _case, _words):
        return self.last_handler(peer, 503)

    def midway(self, peer, case, _words):
        has_body = peer.request.header('transfer-encoding') or peer.request.header('content-length') not in (None, '0')
        expected = len(case.body) // 2 if has_body else 0
        while len(peer.buffer) < expected and peer.fill():
            pass
        return self.last_handler(peer, 503)

    def accel(self, peer, case, words):
        self.read(peer, case)
        return self.send_response(peer, 200, b'not this', f'X-Accel-Redirect: {words[0]}\r\n')

    def wait(self, peer, case, words):
        peer.read_body()
        case.gates_requested += 1
        assert case.gate.wait(PATIENCE)
        return self.send_response(peer, int(words[0]))


def redirect_directives(leave, place, port, closed):
    """The directives of a step that lead to the location `place`."""
    def passed(act):
        return {'proxy_pass': f'http://127.0.0.1:{port}', 'proxy_set_header': {'X-Act': act}}
    if leave == 'try_files':
        return {'try_files': f'/no-such-file {place}'}
    if leave == 'return':
        return {'return': 503, 'error_page': f'503 = {place}'}
    if leave == 'dead':
        return {'proxy_pass': f'http://127.0.0.1:{closed}', 'error_page': f'502 = {place}'}
    if leave.startswith('refuses'):
        return {**passed(leave.split()[1]), 'proxy_intercept_errors': True, 'error_page': f'503 = {place}'}
    if leave.startswith('accel'):
        return passed(f'accel {place}')
    if leave == 'gate':
        return {'auth_request': '/gate/403', 'error_page': f'403 = {place}', 'return': 500}
    if leave == 'return end':
        return {'return': '200 returned'}
    if leave == 'gated echo':
        return {'auth_request': '/gate/200', **passed('echo')}
    return passed(leave)


def location_of(number, index, chain):
    """The location key of step `index`; a step that is reached by its path has no named location."""
    if index == 0:
        return f'/chain{number}/'
    if chain[index - 1]['leave'] == 'accel path':
        return f'/chain{number}-{index}/'
    return f'@chain{number}-{index}'


def locations(all_chains, port, closed):
    """The locations of a server for these chains."""
    made = {'= /one.txt': {},
            '/mirror': {'internal': True, 'proxy_pass': f'http://127.0.0.1:{port}', 'proxy_set_header': {'X-Act': 'discard'},
                        'client_max_body_size': 0}}
    for status in (200, 403):
        made[f'/gate/{status}'] = {'internal': True, 'proxy_pass': f'http://127.0.0.1:{port}',
                                   'proxy_set_header': {'X-Act': f'wait {status}'}}
    for number, chain in enumerate(all_chains):
        for index, step in enumerate(chain):
            leave = step['leave']
            following = location_of(number, index + 1, chain) if index + 1 < len(chain) else None
            if following is None and leave == 'return':
                leave = 'return end'
            block = {**step['settings'], **redirect_directives(leave, following, port, closed)}
            if step['mirror']:
                block['mirror'] = '/mirror'
            if step['when'] is not None:
                block['when'] = {'$http_x_when': step['when']}
            made[location_of(number, index, chain)] = block
    return made


class Outcome:
    """The permitted results of a request: the statuses, and whether a 200 from an echo has the body (None: either)."""

    def __init__(self):
        self.statuses, self.body = set(), True


def expected(chain, size, coding, overlaid):
    """The model: follows the chain by the documented rules."""
    outcome = Outcome()
    limited = False             # a chunked body above the limit of a location on the way
    spent = stored = by_error = False
    has_body = True
    for index, step in enumerate(chain):
        own = {**DEFAULTS, **step['settings'], **((step['when'] or {}) if overlaid else {})}
        leave, last = step['leave'], index + 1 == len(chain)
        limit = BYTES[own['client_max_body_size']]
        over = has_body and limit and size > limit and not by_error     # client_max_body_size does not apply to a body received before the error page
        if over and coding == 'length':
            outcome.statuses |= {413}       # in addition to the statuses of earlier steps
            return outcome
        limited |= bool(over and coding == 'chunked')
        passes = leave not in ('try_files', 'return', 'gate')
        if limited and passes:
            outcome.statuses |= {413}
        if has_body and size and spent and passes:
            outcome.statuses |= {502, 503}      # part of the body was sent to an earlier upstream server and is lost
        if has_body and ((step['mirror'] and leave not in ('return', 'gate')) or (passes and own['proxy_request_buffering'])):
            stored |= not spent
        if has_body and leave.startswith('refuses') and size and not stored:
            spent = True
        if has_body and leave.startswith('accel') and size and not stored:
            spent = True
        by_error |= leave not in ('try_files', 'accel name', 'accel path')
        if leave == 'accel path':
            has_body = False
        if last:
            outcome.statuses |= {502} if leave == 'no_response' else {200}
    if limited:
        outcome.statuses |= {413}
    outcome.body = has_body
    return outcome
