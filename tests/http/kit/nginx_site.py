"""A generated piece of nginx's configuration: directives as a tree, the requests that it is asked, and how both are written.

@N@ stands for the number of the site among those that are served together, @PORT@ for its port; other places are those of the
files of nginx/, so that a site is printed as one of these.
"""
import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Directive:
    """One directive; `inside` is None where it ends with a semicolon, else what stands in its braces."""
    text: str
    inside: tuple = None

    def lines(self, indent=0):
        pad = '    ' * indent
        if self.inside is None:
            return [f'{pad}{self.text};']
        return [f'{pad}{self.text} {{', *(line for child in self.inside for line in child.lines(indent + 1)), f'{pad}}}']

    def smaller(self):
        """Trees of one thing less: without one of the children, or with a smaller one."""
        for number, child in enumerate(self.inside or ()):
            if child.text.startswith('listen '):
                continue
            before, after = self.inside[:number], self.inside[number + 1:]
            yield Directive(self.text, before + after)
            for one in child.smaller():
                yield Directive(self.text, (*before, one, *after))


@dataclasses.dataclass(frozen=True)
class Site:
    http: tuple         # maps, groups: what stands beside its servers
    servers: tuple
    requests: tuple

    def text(self):
        return '\n'.join(line for one in (*self.http, *self.servers) for line in one.lines())

    def smaller(self):
        for field in ('http', 'servers'):
            whole = getattr(self, field)
            for number, one in enumerate(whole):
                before, after = whole[:number], whole[number + 1:]
                if before + after or field == 'http':
                    yield dataclasses.replace(self, **{field: before + after})
                for less in one.smaller():
                    yield dataclasses.replace(self, **{field: (*before, less, *after)})
        for number, request in enumerate(self.requests):
            before, after = self.requests[:number], self.requests[number + 1:]
            if before + after:
                yield dataclasses.replace(self, requests=before + after)
            parts = request.split(' | ')
            for skipped in range(1, len(parts)):
                yield dataclasses.replace(self, requests=(*before, ' | '.join(parts[:skipped] + parts[skipped + 1:]), *after))


GROWING = ('add_header', 'add_trailer', 'proxy_set_header', 'proxy_hide_header', 'proxy_pass_header')


def repeated(directive, outer):
    """The directive with what inner scopes of nginx's forget said again in each: sluice adds there (noted by the importer).

    `outer`: {name of a growing directive: those that hold around it}.
    """
    if directive.inside is None or directive.text.split()[0] not in ('server', 'location', 'if', 'limit_except'):
        return directive
    more, holds = [], dict(outer)
    for name in GROWING:
        own = [one for one in directive.inside if one.text.startswith(f'{name} ')]
        if own:
            said = {one.text.split()[1].lower() for one in own}
            kept = [one for one in outer.get(name, ()) if one.text.split()[1].lower() not in said]
            more += kept
            holds[name] = (*kept, *own)
    return Directive(directive.text, tuple(repeated(one, holds) for one in (*more, *directive.inside)))


def holding(directives):
    """`outer` of `repeated` for these directives of http."""
    return {name: tuple(one for one in directives if one.text.startswith(f'{name} ')) for name in GROWING}


def filled(text, places):
    """The text with what stands for each @NAME@."""
    return re.sub(r'@([A-Z]+)@', lambda found: str(places.get(found[1], found[0])), text)
