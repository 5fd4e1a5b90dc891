"""The measured items: a Load (of the client) and a Setup (a server and its transport); Outcomes hold the results."""
import dataclasses

IDLE_KINDS = ('idle', 'idle-http2', 'websockets')      # kinds with idle connections: memory is measured

OPENSSL = 'openssl'                   # the server of a setup that measures handshakes of the library alone
HANDSHAKES = ('full', 'resumed')      # kinds with a new connection for each request
TRANSPORTS = ('plain', 'user', 'ktls')
KINDS = {'requests': '', 'full': 'full handshakes', 'resumed': 'resumed handshakes', 'idle': 'idle', 'idle-http2': 'idle, HTTP/2', 'websockets': 'idle WebSockets',
         'cold_cache': 'while files are read from disk'}


@dataclasses.dataclass(frozen=True)
class Setup:
    """A server and its transport. `transport` is plain, user (TLS in user space) or ktls. `role` is files (serves files), proxy (passes
    requests to a file server) or tcp (passes bytes to one). `tweaks` are pairs that override the server's recipe (sluice: directives;
    haproxy in the role tcp: options), and `name` describes them."""
    server: str
    transport: str = 'user'
    loop: str = ''
    overrides: tuple = ()
    name: str = ''
    role: str = 'files'

    @property
    def label(self):
        parts = [self.server, self.loop, 'as proxy' if self.role == 'proxy' else '', self.name or ('plain' if self.transport == 'plain' else f'TLS {self.transport}')]
        return ' '.join(part for part in parts if part)


@dataclasses.dataclass(frozen=True)
class Load:
    """`kind` is requests (keep-alive), full or resumed (a new connection for each request), idle or websockets (idle connections), or cold
    (a probe together with readers of files that are not in memory). `rate` is in requests per second; 0 sends the next request when a
    response arrives. `streams` is the number of concurrent requests on each connection of HTTP/2. `half_load` uses half the rate of the slowest setup. `profiled` runs perf as well."""
    size: str
    connections: int = 64
    kind: str = 'requests'
    rate: float = 0
    half_load: bool = False
    idle: int = 0
    pipeline: int = 1
    streams: int = 0
    protocol: str = 'TLSv1.3'
    suite: str = ''
    slow: int = 0
    client: str = 'blast'
    profiled: bool = False

    @property
    def label(self):
        parts = [self.size, f'{self.connections} connections' if self.connections > 1 else '1 connection']
        parts += [f'{self.streams} streams each' if self.streams else '', KINDS[self.kind]]
        parts += [f'and {self.idle} idle' if self.idle else '', f'at {self.rate:.0f}/s' if self.rate else '']
        parts += ['at half load' if self.half_load else '', f'pipelined {self.pipeline}' if self.pipeline > 1 else '']
        parts += [f'{self.slow} B/s each' if self.slow else '', self.protocol if self.protocol != 'TLSv1.3' else '', self.suite]
        parts += [f'by {self.client}' if self.client != 'blast' else '']
        return ', '.join(part for part in parts if part)


@dataclasses.dataclass
class Group:
    """A load and the setups that are compared under it, in alternating rounds."""
    load: Load
    setups: list
    count_calls: bool = True


@dataclasses.dataclass
class Outcome:
    """The readings (dicts of counts, one for each round) of a setup under a load, or the reason why there are none."""
    load: Load
    setup: Setup
    readings: list = dataclasses.field(default_factory=list)
    calls: float = None             # system calls per request
    access_log: dict = None            # from sluice's access log: path, reason, share of zero-copy bytes
    command: list = dataclasses.field(default_factory=list)
    client: list = dataclasses.field(default_factory=list)
    failure: str = ''

    def to_json(self):
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(tree):
        setup = {**tree['setup'], 'overrides': tuple(tuple(pair) for pair in tree['setup']['overrides'])}
        return Outcome(**{**tree, 'load': Load(**tree['load']), 'setup': Setup(**setup)})
