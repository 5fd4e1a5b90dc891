"""A generated part of an nginx configuration: its directives as a tree, and the requests for it.

@N@ is replaced by the number of the site in its batch, @PORT@ by its port. The other placeholders are those of the files in nginx/, so
that a printed site has their format.
"""
import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Directive:
    """One directive; `inside` has the directives of its block, or is None if it ends with a semicolon."""
    text: str
    inside: tuple = None

    def lines(self, indent=0):
        pad = '    ' * indent
        if self.inside is None:
            return [f'{pad}{self.text};']
        return [f'{pad}{self.text} {{', *(line for child in self.inside for line in child.lines(indent + 1)), f'{pad}}}']

    def smaller(self):
        """All trees with one child removed, or with one child reduced."""
        for number, child in enumerate(self.inside or ()):
            if child.text.startswith('listen '):
                continue
            before, after = self.inside[:number], self.inside[number + 1:]
            yield Directive(self.text, before + after)
            for one in child.smaller():
                yield Directive(self.text, (*before, one, *after))


@dataclasses.dataclass(frozen=True)
class Site:
    http: tuple         # maps and upstream groups
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


INHERITED = ('add_header', 'add_trailer', 'proxy_set_header', 'proxy_hide_header', 'proxy_pass_header')


def with_inherited(directive, outer):
    """Returns the directive with outer directives repeated in its block, if the block has directives of the same name: in this case nginx
    does not inherit the outer ones, sluice inherits them, and the importer reports this difference.

    `outer` maps the name of such a directive to its occurrences in effect around this one.
    """
    if directive.inside is None or directive.text.split()[0] not in ('server', 'location', 'if', 'limit_except'):
        return directive
    more, holds = [], dict(outer)
    for name in INHERITED:
        own = [one for one in directive.inside if one.text.startswith(f'{name} ')]
        if own:
            output = {one.text.split()[1].lower() for one in own}
            stored = [one for one in outer.get(name, ()) if one.text.split()[1].lower() not in output]
            more += stored
            holds[name] = (*stored, *own)
    return Directive(directive.text, tuple(with_inherited(one, holds) for one in (*more, *directive.inside)))


def inheritable(directives):
    """The `outer` argument of with_inherited() for these directives of `http`."""
    return {name: tuple(one for one in directives if one.text.startswith(f'{name} ')) for name in INHERITED}


def substituted(text, places):
    """The text with each @NAME@ replaced by its value in `places`."""
    return re.sub(r'@([A-Z]+)@', lambda found: str(places.get(found[1], found[0])), text)
