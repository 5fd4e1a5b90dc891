"""Measures groups. In each round all setups of a group are measured, and each round begins with another setup (A B, B A)."""
import dataclasses
import subprocess
import tempfile

from . import clients, cold_cache, document_root, http2, iterations, load_generator, model, openssl_handshake, profile, server_configuration, servers, upgrade, websockets


class Bench:
    """State of all measurements: options, ports, the directory of the files, running servers, the progress display."""

    def __init__(self, options, ktls_works, progress):
        self.options, self.ktls_works, self.progress = options, ktls_works, progress
        self.ports = servers.Ports(options.port)
        self.busy_poll = not options.emulated and len(set(servers.cpus())) == 2
        self.folder = None
        self.running = {}

    def server(self, setup):
        """The server of a setup, started at first use; it runs until the end of the scenario."""
        if setup not in self.running:
            self.running[setup] = servers.Server(setup, self.folder, self.ports, self.options.sluice)
        return self.running[setup]

    def stop(self):
        for server in self.running.values():
            server.stop()
        self.running = {}

    def arguments(self, outcome, rate=0.0):
        if outcome.setup.server == model.OPENSSL:
            return openssl_handshake.arguments_of(outcome.load, self.options.seconds)
        if outcome.load.kind in ('idle-http2', 'websockets', 'upgrade'):
            return ['(Python sockets)']
        if outcome.load.client in clients.CLIENTS:
            return clients.arguments_of(outcome.load, outcome.setup, self.options.seconds, 'PORT')
        return ['blast', *load_generator.arguments_of(outcome.load, outcome.setup, self.options.seconds, self.options.warm, rate, self.busy_poll)]

    def read(self, outcome, rate):
        if outcome.setup.server == model.OPENSSL:
            return openssl_handshake.read(self.options.blast, outcome.load, self.options.seconds)
        if outcome.load.kind == 'idle':
            with servers.Server(outcome.setup, self.folder, self.ports, self.options.sluice) as server:
                outcome.command = server.command
                return load_generator.read_idle(self.options.blast, server, outcome.load, self.arguments(outcome)[1:])
        if outcome.load.kind == 'idle-http2':
            with servers.Server(outcome.setup, self.folder, self.ports, self.options.sluice) as server:
                outcome.command = server.command
                return websockets.read_idle_memory(server, outcome.load, outcome.setup, http2.connect)
        if outcome.load.kind == 'websockets':
            with websockets.Origin() as origin, \
                    servers.Server(outcome.setup, self.folder, self.ports, self.options.sluice, origin=origin.port) as server:
                outcome.command = server.command
                return websockets.read_idle_memory(server, outcome.load, outcome.setup)
        if outcome.load.kind == 'upgrade':
            with servers.Server(outcome.setup, self.folder, self.ports, self.options.sluice) as server:
                outcome.command = server.command
                return upgrade.read(server, outcome.load, outcome.setup, self.options.sluice, self.options.seconds)
        if outcome.load.kind == 'cold_cache':
            measured = iterations.Iterations(self.options.blast, self.folder)
            with servers.Server(outcome.setup, self.folder, self.ports, self.options.sluice, environment=measured.environment) as server:
                outcome.command = server.command
                return cold_cache.read(self.options.blast, server, outcome.load, outcome.setup, self.folder, self.options.seconds, measured)
        server = self.server(outcome.setup)
        outcome.command = server.command
        if outcome.load.client in clients.CLIENTS:
            return clients.read(self.options.blast, server, outcome.load, outcome.setup, self.options.seconds)
        if outcome.load.profiled:
            return profile.read(self.options.blast, server, outcome.load, self.arguments(outcome, rate)[1:])
        return load_generator.read_load(self.options.blast, server, outcome.load, self.arguments(outcome, rate)[1:])

    def count_calls(self, outcome):
        """System calls per request, counted in a separate run."""
        server, load, seconds = self.server(outcome.setup), outcome.load, min(self.options.seconds, 0.5)
        if load.client in clients.CLIENTS:
            return clients.count_calls(self.options.blast, server, load, outcome.setup, seconds)
        return load_generator.count_calls(self.options.blast, server, load, load_generator.arguments_of(load, outcome.setup, seconds, busy=self.busy_poll))


def attempt(outcome, measurement):
    """Runs a measurement and returns its result. Stores a failure in the outcome and returns None: the benchmark continues."""
    try:
        return measurement()
    except (servers.BenchmarkError, OSError, ValueError, subprocess.SubprocessError) as fault:
        outcome.failure = outcome.failure or ' '.join(str(fault).split())[:400]
        return None


def half_rate_of_slowest(bench, outcomes):
    """Half the rate of the slowest setup: all setups get the same load."""
    rates = []
    for outcome in outcomes:
        reading = attempt(outcome, lambda outcome=outcome: bench.read(outcome, 0))
        if reading:
            rates.append(reading['responses'] / reading['seconds'])
    return min(rates) / 2 if rates else 0


def measure_group(bench, group):
    outcomes = [model.Outcome(group.load, setup, failure=server_configuration.unsupported_reason(setup, group.load, bench.ktls_works))
                for setup in group.setups]
    supported = [outcome for outcome in outcomes if not outcome.failure]
    for outcome in supported:
        outcome.client = bench.arguments(outcome)
        if group.load.kind not in model.OWN_SERVER_KINDS and outcome.setup.server != model.OPENSSL:
            attempt(outcome, lambda outcome=outcome: bench.server(outcome.setup))
    rate = half_rate_of_slowest(bench, supported) if group.load.half_load else 0
    for round_number in range(bench.options.rounds if group.load.kind not in model.IDLE_KINDS else 1):
        for index in range(len(supported)):
            outcome = supported[(index + round_number) % len(supported)]
            if not outcome.failure:
                bench.progress.step(f'{group.load.label}: {outcome.setup.label}')
                reading = attempt(outcome, lambda outcome=outcome: bench.read(outcome, rate))
                outcome.readings += [reading] if reading else []
    for outcome in supported:
        if not outcome.failure and group.count_calls and group.load.kind == 'requests' and not group.load.slow:
            measure_details(bench, group, outcome)
    return outcomes


def measure_details(bench, group, outcome):
    """Counts system calls and reads the access log in separate runs, because both change the CPU time."""
    bench.progress.step(f'{group.load.label}: {outcome.setup.label}, system calls', 0)
    outcome.calls = attempt(outcome, lambda: bench.count_calls(outcome))
    if outcome.setup.server == 'sluice':
        outcome.access_log = attempt(outcome, lambda: load_generator.read_access_log(bench.folder, outcome.setup, group.load, bench.ports,
                                                                      bench.options.sluice, bench.options.blast))


def measurement_count(groups, rounds):
    """The number of measurements, for the progress display."""
    return sum(len(group.setups) * (1 if group.load.kind in model.IDLE_KINDS else rounds) for group in groups)


def with_transports(groups, transports):
    """The groups with the setups of these transports only; all groups if `transports` is empty."""
    filtered = [dataclasses.replace(group, setups=[setup for setup in group.setups if not transports or setup.transport in transports]) for group in groups]
    return [group for group in filtered if group.setups]


def measure(bench, groups):
    """Yields the outcomes of each group. Stops the servers at the end, also after an exception."""
    with tempfile.TemporaryDirectory(prefix='sluice-bench-', dir=bench.options.folder) as folder:
        bench.folder = folder
        try:
            document_root.prepare(folder, {group.load.size for group in groups} | {'1k'})
            for group in groups:
                yield measure_group(bench, group)
        finally:
            bench.stop()
