"""The types of a measurement: Load (requests of the client), Setup (server and transport), Group (setups compared under a load), Outcome."""
import dataclasses

IDLE_KINDS = ('idle', 'idle-http2', 'websockets')      # kinds that measure the memory of idle connections
OWN_SERVER_KINDS = (*IDLE_KINDS, 'cold_cache', 'upgrade')            # kinds that start a server for each reading
HANDSHAKES = ('full', 'resumed')    # kinds with a new connection for each request
OPENSSL = 'openssl'                 # Setup.server of handshakes without a server program
TRANSPORTS = ('plain', 'user', 'ktls')
KINDS = {'requests': '', 'full': 'full handshakes', 'resumed': 'resumed handshakes', 'idle': 'idle', 'idle-http2': 'idle, HTTP/2', 'websockets': 'idle WebSockets',
         'cold_cache': 'while files are read from disk', 'upgrade': 'during an upgrade'}


@dataclasses.dataclass(frozen=True)
class Setup:
    """A server and its transport. `transport` is plain, user (TLS in user space) or ktls. `role` is files (file server), proxy (HTTP proxy
    of a file server) or tcp (TCP proxy of a file server). `overrides` are (name, value) pairs added to the server's configuration (sluice:
    directives; haproxy in the role tcp: options), and `name` describes them."""
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
    """`kind` is a key of KINDS: requests (keep-alive), full or resumed (a new connection for each request), idle, idle-http2 or websockets
    (idle connections), cold_cache (small responses while other clients request files that are not in the page cache), or upgrade (a binary
    upgrade under load). `rate` is in requests per second; 0: each response triggers the next request. `half_load` uses half the rate of the slowest setup. `idle` is the
    number of additional idle connections, `streams` the number of concurrent requests on each HTTP/2 connection, `slow` the bytes per
    second that each connection reads (0: no limit). `profiled` samples by perf."""
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

    @property
    def is_charted(self):
        """True if charts show the CPU time per GB of this load: the responses on keep-alive connections determine it."""
        return self.kind == 'requests' and not self.half_load


@dataclasses.dataclass
class Group:
    """A load and the setups that are compared under it, in interleaved rounds. `count_calls` also counts system calls."""
    load: Load
    setups: list
    count_calls: bool = True


@dataclasses.dataclass
class Outcome:
    """The readings (dicts of counts, one for each round) of a setup under a load, or a failure."""
    load: Load
    setup: Setup
    readings: list = dataclasses.field(default_factory=list)
    calls: float = None             # system calls per request
    access_log: dict = None         # of sluice: $tls_path, $tls_path_reason, share of zero-copy bytes
    command: list = dataclasses.field(default_factory=list)
    client: list = dataclasses.field(default_factory=list)
    failure: str = ''               # the reason if there are no readings

    def to_json(self):
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(tree):
        setup = {**tree['setup'], 'overrides': tuple(tuple(pair) for pair in tree['setup']['overrides'])}
        return Outcome(**{**tree, 'load': Load(**tree['load']), 'setup': Setup(**setup)})
