"""Serves many sites at once by nginx and by sluice with the imported configuration; reduces a site with a difference to the smallest one
that still has it."""
import dataclasses
import itertools
import re
import shutil
import subprocess

from kit import http1, nginx as nginx_kit, server as server_kit
from kit.nginx_differences import ALL, explaining
from kit.nginx_site import Site, substituted

BATCH_SIZE = 30   # number of sites for one start of both servers
PATIENCE = 5    # seconds for one response


@dataclasses.dataclass(frozen=True)
class Difference:
    site: Site
    request: str
    loop: str
    by_nginx: dict     # nginx's response
    by_sluice: dict

    def signature(self):
        """Statuses and names of the differing properties, without their values: equal for most differences with the same cause."""
        names = {name for name in {*self.by_nginx, *self.by_sluice} if self.by_nginx.get(name) != self.by_sluice.get(name)}
        return self.by_nginx.get('status'), self.by_sluice.get('status'), tuple(sorted(names))


def parts(found):
    """The properties of multipart/byteranges without the boundary. nginx sends a line break before the first boundary; it is removed."""
    kind, _, boundary = found.get('content-type', '').partition('; boundary=')
    if kind != 'multipart/byteranges' or 'body' not in found:
        return {}
    body = re.sub(rb'; charset=[\w-]+', b'', found['body'].replace(boundary.encode(), b''))
    return {'content-type': kind, 'body': body.lstrip(), 'length': None}


def fetch(port, request):
    """The properties of the response that must be the same from both servers; 'error' if no valid response was received."""
    try:
        response, ignored = nginx_kit.fetch(port, request, timeout=PATIENCE)
    except (TimeoutError, ConnectionError, http1.BadResponse) as error:
        return {'error': type(error).__name__}
    found = nginx_kit.comparable_properties(response, ignored, port)
    found.update(parts(found))
    if request.startswith('HEAD ') and found.get('status', 0) >= 300:    # a response to HEAD does not show which server generated the page
        found = {name: value for name, value in found.items() if name not in ('content-type', 'length', 'body')}
    if response is not None:
        for name in ('set-cookie', 'retry-after', 'refresh', 'content-language'):
            if name in response.headers:
                found[name] = response.headers[name]
    return {name: value.replace(str(port), 'PORT') if isinstance(value, str) else
            value.replace(str(port).encode(), b'PORT') if isinstance(value, bytes) else value for name, value in found.items()}


class Batch:
    """Several sites that one nginx, and one sluice for each loop backend, serve together."""

    def __init__(self, pairs, sites, prelude):
        self.pairs, self.sites, self.prelude = pairs, dict(enumerate(sites)), prelude
        self.rejected, self.reported, self.differences, self.compared = {}, {}, [], 0

    def write(self, folder, ports):
        """Writes nginx's configuration file. Returns its path and a function from a line number to the site's number."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        parts = [('\n'.join(line for one in self.prelude for line in one.lines()), None)]
        for number, site in self.sites.items():
            text = substituted(site.text(), {**self.pairs.places, 'N': number, 'PORT': ports[number]})
            parts.append((text, number))
        whole = nginx_kit.main_file(folder, '\n'.join(text for text, _ in parts))
        path = folder / 'nginx.conf'
        path.write_text(whole)
        begin = whole[:whole.index(parts[0][0])].count('\n')
        owners = [None] * begin + [number for text, number in parts for _ in text.split('\n')]
        return path, lambda line: owners[line - 1] if 0 < line <= len(owners) else None

    def remove_rejected(self):
        """Removes, one by one, the sites that nginx rejects."""
        while self.sites:
            folder = self.pairs.folder / 'nginx'
            path, owner = self.write(folder, self.pairs.ports[0])
            done = subprocess.run([*nginx_kit.nginx_command(folder, path), '-t'], capture_output=True, text=True, timeout=60, check=False)
            if done.returncode == 0:
                return path
            found = re.search(r'\[emerg\].* in \S+/nginx\.conf:(\d+)', done.stderr)
            bad = owner(int(found[1])) if found else None
            if bad is None:     # the message names no line
                unknown = re.search(r'(?:unknown "[a-z]+|\D)(\d+)" variable', done.stderr)
                bad = int(unknown[1]) if unknown else None
            assert bad in self.sites, done.stderr
            self.rejected[bad] = done.stderr, self.sites.pop(bad)
        return None

    def remove_reported(self, report, owner):
        """Removes the sites for which the importer reports a changed meaning."""
        for part in re.findall(r'^(?:not carried over|carried over, with another meaning here) \(\d+\):\n((?:  .*\n)*)', report, re.M):
            for line, note in re.findall(r'^  \S+:(\d+): (.*\n.*)', part, re.M):
                number = owner(int(line))
                if number in self.sites:
                    self.reported[number] = note, self.sites.pop(number)

    def run(self):
        conf = self.remove_rejected()
        if conf is None:
            return self
        started = []
        try:
            paths = []
            for number, loop in enumerate(self.pairs.loops, 1):
                folder = self.pairs.folder / loop
                path, owner = self.write(folder, self.pairs.ports[number])
                status, report = nginx_kit.import_file(path, folder / 'sluice.yaml', '-p', str(folder))
                assert status in (0, 2), report
                yaml = (folder / 'sluice.yaml').read_text().replace('use: epoll', f'use: {loop}')
                (folder / 'sluice.yaml').write_text(yaml)
                paths.append((folder, report, owner))
            for folder, report, owner in paths:
                self.remove_reported(report, owner)
            if not self.sites:
                return self
            folder = self.pairs.folder / 'nginx'
            started.append(nginx_kit.RunningServer(nginx_kit.nginx_command(folder, conf), self.listening(0), folder / 'output'))
            for number, (folder, _, _) in enumerate(paths, 1):
                started.append(nginx_kit.RunningServer([server_kit.SLUICE, '-c', str(folder / 'sluice.yaml')],
                                                 self.listening(number), folder / 'output'))
            for number, site in self.sites.items():
                self.compare(number, site)
        finally:
            for one in started:
                one.stop()
        return self

    def listening(self, server):
        return [port for number, port in enumerate(self.pairs.ports[server]) if number in self.sites]

    def compare(self, number, site):
        around = ''.join(line for one in self.prelude for line in one.lines())
        ignored = False
        for request in site.requests:
            by_nginx, *heres = [fetch(ports[number], substituted(request, {**self.pairs.places, 'N': number})) for ports in self.pairs.ports]
            self.compared += 1
            for loop, by_sluice in zip(self.pairs.loops, heres):
                by_sluice = nginx_kit.without_built_in_page(by_nginx, by_sluice)
                rows = [] if by_sluice == by_nginx else explaining(around + site.text(), request, by_nginx, by_sluice)
                if rows is None:
                    self.differences.append(Difference(site, request, loop, by_nginx, by_sluice))
                    break
                ignored |= any(names is ALL for _, _, names, _ in rows)
            if ignored and 'proxy_cache ' in site.text():     # the caches of the two servers may differ
                break


class Pairs:
    """The directories and ports of the servers of one test; `places` maps each NAME to the value that replaces @NAME@."""

    def __init__(self, folder, places, loops):
        self.folder, self.places, self.loops = folder, places, loops
        self.ports = [[server_kit.free_port() for _ in range(BATCH_SIZE)] for _ in range(len(loops) + 1)]

    def run(self, sites, prelude):
        return Batch(self, sites, prelude).run()

    def differences(self, sites, prelude):
        """The differences of any number of sites."""
        left = iter(sites)
        while some := list(itertools.islice(left, BATCH_SIZE)):
            yield from self.run(some, prelude).differences

    def shrink(self, difference, prelude):
        """The smallest site that has a difference with the same signature()."""
        alone = dataclasses.replace(difference.site, requests=(difference.request,))
        found = next((one for one in self.differences([alone], prelude) if one.signature() == difference.signature()), None)
        best = found or difference
        while True:
            same = [one for one in self.differences(best.site.smaller(), prelude) if one.signature() == difference.signature()]
            if not same:
                return best
            best = min(same, key=lambda one: len(one.site.text()) + sum(map(len, one.site.requests)))

    def describe(self, difference, prelude):
        """The difference in the format of nginx/, the imported configuration, and both responses."""
        site = difference.site
        self.run([site], prelude)
        yaml = self.folder / self.loops[0] / 'sluice.yaml'
        text = '\n'.join([*(f'#? {request}' for request in site.requests), *(line for one in prelude for line in one.lines()), site.text()])
        return '\n'.join([text.replace('@N@', ''), '', '--- imported:', yaml.read_text() if yaml.exists() else '(nothing)',
                          f'--- {difference.request} ({difference.loop})', f'nginx:  {difference.by_nginx}', f'sluice: {difference.by_sluice}'])
