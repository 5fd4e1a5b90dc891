#!/usr/bin/env python3
"""Every message of the loader stands, word for word, in a case: a broken file and all that is said of it.

A message is a call of conf_error, conf_warning or tls_fail in src/ or modules/ with its format; the cases are tests/unit/conf/broken.cases (what
every file can get wrong, over a small vocabulary) and tests/http/refused.cases (what the server and its modules refuse).

usage: check_messages.py [ROOT]      exit 1 and one line for each message that no case has
"""
import pathlib
import re
import sys

CASES = ('tests/unit/conf/broken.cases', 'tests/http/refused.cases')
# No file of a few lines gets there: memory that runs out, what a machine's own state brings about, and guards behind other checks.
UNREACHABLE = {
    'out of memory': 'a machine without memory',
    'out of memory while reading the configuration': 'the same',
    'this is no YAML': 'a guard of fmt: the loader has a word for whatever libyaml refuses',
    'formatted, this file would no longer say the same, or lose a comment': 'a guard of fmt: no file is known that comes to it',
    'this build has no %s': 'a build with both loops has them',
    'the certificate "%s" cannot be used: %s': 'OpenSSL refuses what it has just read',
    '"%.*s" is no server name: a "*" may only be the first or the last label': 'server_name is checked before; tests/unit/tls has it',
    'keys of session tickets cannot be drawn: there is no randomness': 'a machine without randomness',
    'no server is given': 'an endpoint has one',
    '"%s" was not read': 'a file that appears while it is looked at',
    'the file name "%.64s..." is too long': 'tests/unit/tls has it',
    '"%s" is too large for a PEM file (more than %d bytes)': 'tests/unit/tls has it',
    'a self-signed certificate cannot be made: %s': 'OpenSSL without memory',
    'the parameters in "%s" cannot be used: %s': 'OpenSSL refuses what it has just read',
    'ssl_conf_command: %s': 'OpenSSL refuses at the end what it took word by word',
    'ssl_protocols cannot be set: %s': 'OpenSSL without the versions that it was built with',
    'the session context cannot be set: %s': 'OpenSSL without memory',
    'the self-signed certificate cannot be kept: %s': 'the same',
    'no ssl_certificate is given': 'the loader says it before',
    'session tickets cannot be set up: %s': 'OpenSSL without memory',
    'a path has fewer than %d bytes': 'a path longer than the system takes',
    '"%.*s" cannot be read by this user, and was not tested': 'root, who tests here, reads everything',
}
# Who tells, and which argument the format is; -1: the last.
CALLS = [(re.compile(r'\bconf_(?:error|warning)\('), 3), (re.compile(r'\btls_fail\('), 1), (re.compile(r'\brefuse(?:_row)?\(reader, '), -1)]
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
DIRECTIVE = re.compile(r'%(?:[-+ #0]*)(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j)?[diouxXcsp%]')
ESCAPES = {'n': '\n', 't': '\t', '"': '"', '\\': '\\'}


def arguments(text, start):
    """The arguments of the call whose '(' is before `start`."""
    depth, at, begin, found = 1, start, start, []
    while depth:
        char = text[at]
        if char in '"\'':
            end = at + 1
            while text[end] != char:
                end += 2 if text[end] == '\\' else 1
            at = end
        elif char in '([{':
            depth += 1
        elif char in ')]}':
            depth -= 1
        if (char == ',' and depth == 1) or depth == 0:
            found.append(text[begin:at])
            begin = at + 1
        at += 1
    return found


def literal(argument):
    """The text of adjacent string literals and STR_FMT; None where it is anything else."""
    if re.sub(r'\s|STR_FMT|PRIu64', '', STRING.sub('', argument)):
        return None
    pieces = re.findall(r'"(?:\\.|[^"\\])*"|STR_FMT|PRIu64', argument)
    text = ''.join({'STR_FMT': '%.*s', 'PRIu64': 'lu'}.get(piece, piece[1:-1]) for piece in pieces)
    return re.sub(r'\\(.)', lambda match: ESCAPES.get(match.group(1), match.group(0)), text)


def formats(argument):
    """The formats that an argument can be: one, or those of a choice; what is known only when it runs gives none."""
    whole = literal(argument)
    pieces = [whole] if whole is not None else map(literal, re.split(r'[?:](?=(?:[^"]|"(?:\\.|[^"\\])*")*$)', argument))
    return [piece.partition('\n')[0] for piece in pieces if piece]


def messages(root):
    """(place, format) of every message."""
    for folder in ('src', 'modules'):
        for path in sorted((root / folder).rglob('*.[ch]')):
            text = path.read_text(encoding='utf-8')
            for call, which in CALLS:
                for match in call.finditer(text):
                    line = text.count('\n', 0, match.start()) + 1
                    found = arguments(text, match.end())
                    if len(found) > which and not found[which].lstrip().startswith('const char'):
                        yield from ((f'{path.relative_to(root)}:{line}', form) for form in formats(found[which]))


def pattern(form):
    """The format as a regular expression of what it can become; other words may lead to it."""
    parts, at = [], 0
    for match in DIRECTIVE.finditer(form):
        parts += [re.escape(form[at:match.start()]), '%' if match.group(0) == '%%' else '.*']
        at = match.end()
    return re.compile('(?:.* )?' + ''.join(parts) + re.escape(form[at:]))


def said(root):
    """Every message of the cases."""
    found = set()
    for name in CASES:
        text = (root / name).read_text(encoding='utf-8', errors='replace') if (root / name).exists() else ''
        found |= set(re.findall(r'^(?:\S+:\d+:\d+: |\S+: )?(?:error|warning): (.*)$', text, re.M))
    return found


def faults(root):
    known = said(root)
    for place, form in messages(root):
        if not re.search(r'[a-z]', DIRECTIVE.sub('', form)) or form in UNREACHABLE:
            continue
        whole = pattern(form)
        if not any(whole.fullmatch(message) for message in known):
            yield f'{place}: no case says "{form}"'


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = list(faults(root))
    print('\n'.join(found))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
