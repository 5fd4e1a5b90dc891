"""Many sites served at once by nginx and by what `sluice import` makes of them; where they differ, the smallest site that still does."""
import dataclasses
import itertools
import re
import shutil
import subprocess

from kit import http1, nginx as nginx_kit, server as server_kit
from kit.nginx_differences import explained
from kit.nginx_site import Site, filled

TOGETHER = 30   # sites in one start of both
PATIENCE = 5    # seconds for one answer


@dataclasses.dataclass(frozen=True)
class Difference:
    site: Site
    request: str
    loop: str
    there: dict     # nginx's answer
    here: dict

    def sign(self):
        """What is different, without its values: equal for most differences of one cause."""
        names = {name for name in {*self.there, *self.here} if self.there.get(name) != self.here.get(name)}
        return self.there.get('status'), self.here.get('status'), tuple(sorted(names))


def parts(found):
    """multipart/byteranges by another boundary: nginx's has a line break before the first part, too."""
    kind, _, boundary = found.get('content-type', '').partition('; boundary=')
    if kind != 'multipart/byteranges' or 'body' not in found:
        return {}
    return {'content-type': kind, 'body': found['body'].replace(boundary.encode(), b'').replace(b'; charset=utf-8', b'').lstrip(),
            'length': None}


def answer(port, request):
    """What two servers must agree on in the answer; what is not an answer is told as that."""
    try:
        response, apart = nginx_kit.ask(port, request, timeout=PATIENCE)
    except (TimeoutError, ConnectionError, http1.BadResponse) as error:
        return {'error': type(error).__name__}
    found = nginx_kit.facts(response, apart, port)
    found.update(parts(found))
    if request.startswith('HEAD ') and found.get('status', 0) >= 300:    # whose words its page would have cannot be told
        found = {name: value for name, value in found.items() if name not in ('content-type', 'length', 'body')}
    if response is not None:
        for name in ('set-cookie', 'retry-after', 'refresh', 'content-language'):
            if name in response.headers:
                found[name] = response.headers[name]
    return {name: value.replace(str(port), 'PORT') if isinstance(value, str) else
            value.replace(str(port).encode(), b'PORT') if isinstance(value, bytes) else value for name, value in found.items()}


class Batch:
    """One start of nginx and of sluice, once for each backend of its loop, for several sites."""

    def __init__(self, pairs, sites, prelude):
        self.pairs, self.sites, self.prelude = pairs, dict(enumerate(sites)), prelude
        self.refused, self.excused, self.differences, self.compared = {}, {}, [], 0

    def write(self, folder, ports):
        """nginx's file, and the number of the site that each of its lines is of."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        parts = [('\n'.join(line for one in self.prelude for line in one.lines()), None)]
        for number, site in self.sites.items():
            text = filled(site.text(), {**self.pairs.places, 'N': number, 'PORT': ports[number]})
            parts.append((text, number))
        whole = nginx_kit.main_file(folder, '\n'.join(text for text, _ in parts))
        path = folder / 'nginx.conf'
        path.write_text(whole)
        begin = whole[:whole.index(parts[0][0])].count('\n')
        owners = [None] * begin + [number for text, number in parts for _ in text.split('\n')]
        return path, lambda line: owners[line - 1] if 0 < line <= len(owners) else None

    def refuse(self):
        """Takes out the sites that nginx does not take, one by one."""
        while self.sites:
            folder = self.pairs.folder / 'nginx'
            path, owner = self.write(folder, self.pairs.ports[0])
            done = subprocess.run([*nginx_kit.nginx_command(folder, path), '-t'], capture_output=True, text=True, timeout=60, check=False)
            if done.returncode == 0:
                return path
            found = re.search(r'\[emerg\].* in \S+/nginx\.conf:(\d+)', done.stderr)
            bad = owner(int(found[1])) if found else None
            if bad is None:     # it names no line
                unknown = re.search(r'(?:unknown "[a-z]+|\D)(\d+)" variable', done.stderr)
                bad = int(unknown[1]) if unknown else None
            assert bad in self.sites, done.stderr
            self.refused[bad] = done.stderr, self.sites.pop(bad)
        return None

    def excuse(self, said, owner):
        """Takes out the sites of which the importer says that they mean something else."""
        for part in re.findall(r'^(?:not carried over|carried over, with another meaning here) \(\d+\):\n((?:  .*\n)*)', said, re.M):
            for line, note in re.findall(r'^  \S+:(\d+): (.*\n.*)', part, re.M):
                number = owner(int(line))
                if number in self.sites:
                    self.excused[number] = note, self.sites.pop(number)

    def run(self):
        conf = self.refuse()
        if conf is None:
            return self
        started = []
        try:
            paths = []
            for number, loop in enumerate(self.pairs.loops, 1):
                folder = self.pairs.folder / loop
                path, owner = self.write(folder, self.pairs.ports[number])
                status, said = nginx_kit.import_file(path, folder / 'sluice.yaml', '-p', str(folder))
                assert status in (0, 2), said
                yaml = (folder / 'sluice.yaml').read_text().replace('use: epoll', f'use: {loop}')
                (folder / 'sluice.yaml').write_text(yaml)
                paths.append((folder, said, owner))
            for folder, said, owner in paths:
                self.excuse(said, owner)
            if not self.sites:
                return self
            folder = self.pairs.folder / 'nginx'
            started.append(nginx_kit.Running(nginx_kit.nginx_command(folder, conf), self.listening(0), folder / 'output'))
            for number, (folder, _, _) in enumerate(paths, 1):
                started.append(nginx_kit.Running([server_kit.SLUICE, '-c', str(folder / 'sluice.yaml')],
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
        for request in site.requests:
            there, *heres = [answer(ports[number], filled(request, {**self.pairs.places, 'N': number})) for ports in self.pairs.ports]
            self.compared += 1
            for loop, here in zip(self.pairs.loops, heres):
                here = nginx_kit.agree(there, here)
                if here != there and not explained(around + site.text(), request, there, here):
                    self.differences.append(Difference(site, request, loop, there, here))
                    break


class Pairs:
    """Where the servers of one test have their folders and ports; `places` is what stands for @NAME@."""

    def __init__(self, folder, places, loops):
        self.folder, self.places, self.loops = folder, places, loops
        self.ports = [[server_kit.free_port() for _ in range(TOGETHER)] for _ in range(len(loops) + 1)]

    def run(self, sites, prelude):
        return Batch(self, sites, prelude).run()

    def differences(self, sites, prelude):
        """Of any number of sites."""
        left = iter(sites)
        while some := list(itertools.islice(left, TOGETHER)):
            yield from self.run(some, prelude).differences

    def shrink(self, difference, prelude):
        """The smallest site that has a difference of the same kind."""
        alone = dataclasses.replace(difference.site, requests=(difference.request,))
        found = next((one for one in self.differences([alone], prelude) if one.sign() == difference.sign()), None)
        best = found or difference
        while True:
            same = [one for one in self.differences(best.site.smaller(), prelude) if one.sign() == difference.sign()]
            if not same:
                return best
            best = min(same, key=lambda one: len(one.site.text()) + sum(map(len, one.site.requests)))

    def told(self, difference, prelude):
        """The difference as a file of nginx/, what was made of it, and both answers."""
        site = difference.site
        self.run([site], prelude)
        yaml = self.folder / self.loops[0] / 'sluice.yaml'
        text = '\n'.join([*(f'#? {request}' for request in site.requests), *(line for one in prelude for line in one.lines()), site.text()])
        return '\n'.join([text.replace('@N@', ''), '', '--- imported:', yaml.read_text() if yaml.exists() else '(nothing)',
                          f'--- {difference.request} ({difference.loop})', f'nginx:  {difference.there}', f'sluice: {difference.here}'])
