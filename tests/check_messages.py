#!/usr/bin/env python3
"""Checks that every message of the configuration loader appears in a test case with the complete output.

A message is the format of a call of conf_error, conf_warning or tls_fail in src/ or modules/. The cases are in
tests/unit/conf/broken.cases (faults that the loader itself detects, with a small set of directives) and tests/http/rejected_config.cases (faults that the
server and its modules detect). Prints a line for each message without a case. Exit status 1: there are such messages.
"""
import argparse
import pathlib
import re
import sys

CASES = ('tests/unit/conf/broken.cases', 'tests/http/rejected_config.cases')
# Messages that no short configuration file can cause, with the reason.
UNREACHABLE = {
    'out of memory': 'memory is exhausted',
    'out of memory while reading the configuration': 'memory is exhausted',
    'this is not valid YAML': 'a guard of fmt: the loader reports each fault that libyaml finds',
    'formatting would change the meaning of this file, or lose a comment': 'a guard of fmt: no known file causes it',
    'this build has no %s': 'the build of the tests has both loops',
    'this build has no ipsec-mb': 'a build with the library has it; tested in tests/unit/site',
    'the certificate "%s" cannot be used: %s': 'OpenSSL would have to refuse data that it has just accepted',
    '"%.*s" is not a server name: a "*" may only be the first or the last label': 'server_name is checked earlier; tested in tests/unit/tls',
    'keys of session tickets cannot be generated: no random numbers are available': 'the system has no random numbers',
    'no server is given': 'an endpoint always has a server',
    '"%s" was not read': 'a file is created between two system calls',
    'the file name "%.64s..." is too long': 'tested in tests/unit/tls',
    '"%s" is too large for a PEM file (more than %d bytes)': 'tested in tests/unit/tls',
    'a self-signed certificate cannot be generated: %s': 'OpenSSL has no memory',
    'the parameters in "%s" cannot be used: %s': 'OpenSSL would have to refuse data that it has just accepted',
    'ssl_conf_command: %s': 'OpenSSL would have to refuse commands that it has accepted one by one',
    'ssl_protocols cannot be set: %s': 'OpenSSL would have to lack its own versions',
    'the session context cannot be set: %s': 'OpenSSL has no memory',
    'the previous certificate cannot be used: %s': 'memory is exhausted',
    'no ssl_certificate is given': 'the loader reports it earlier',
    'session tickets cannot be set up: %s': 'OpenSSL has no memory',
    'a path must have fewer than %d bytes': 'a path longer than the system permits',
    'there are more than %d zones of status_zone': 'a file with more zones than that; tested in tests/http/test_status_zone.py',
    '"%.*s" cannot be read by this user, and was not tested': 'the tests run as root, which can read every file',
}
# The functions that report, and the index of their format argument; -1: the last one.
CALLS = [(re.compile(r'\bconf_(?:error|warning)\('), 3), (re.compile(r'\btls_fail\('), 1), (re.compile(r'\breject(?:_row)?\(reader, '), -1)]
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
DIRECTIVE = re.compile(r'%(?:[-+ #0]*)(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j)?[diouxXcsp%]')
ESCAPES = {'n': '\n', 't': '\t', '"': '"', '\\': '\\'}


def arguments(text, start):
    """The arguments of the call whose '(' precedes `start`."""
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
    """The text of adjacent string literals and STR_FMT; None if the argument contains other tokens."""
    if re.sub(r'\s|STR_FMT|PRIu64', '', STRING.sub('', argument)):
        return None
    pieces = re.findall(r'"(?:\\.|[^"\\])*"|STR_FMT|PRIu64', argument)
    text = ''.join({'STR_FMT': '%.*s', 'PRIu64': 'lu'}.get(piece, piece[1:-1]) for piece in pieces)
    return re.sub(r'\\(.)', lambda match: ESCAPES.get(match.group(1), match.group(0)), text)


def formats(argument):
    """The possible first lines of a format argument: one, or several for a conditional expression; none if it is known only at run time."""
    full_text = literal(argument)
    pieces = [full_text] if full_text is not None else map(literal, re.split(r'[?:](?=(?:[^"]|"(?:\\.|[^"\\])*")*$)', argument))
    return [piece.partition('\n')[0] for piece in pieces if piece]


def messages(root):
    """(place, format) of every message."""
    for folder in ('src', 'modules'):
        for path in sorted((root / folder).rglob('*.[ch]')):
            text = path.read_text(encoding='utf-8')
            for call, which in CALLS:
                for match in call.finditer(text):
                    line = text.count('\n', 0, match.start()) + 1
                    call_arguments = arguments(text, match.end())
                    if len(call_arguments) > which and not call_arguments[which].lstrip().startswith('const char'):
                        yield from ((f'{path.relative_to(root)}:{line}', form) for form in formats(call_arguments[which]))


def pattern(form):
    """A regular expression that matches the messages of a format; a prefix may precede them."""
    parts, at = [], 0
    for match in DIRECTIVE.finditer(form):
        parts += [re.escape(form[at:match.start()]), '%' if match.group(0) == '%%' else '.*']
        at = match.end()
    return re.compile('(?:.* )?' + ''.join(parts) + re.escape(form[at:]))


def tested_messages(root):
    """All messages in the expected outputs of the cases."""
    found = set()
    for name in CASES:
        text = (root / name).read_text(encoding='utf-8', errors='replace') if (root / name).exists() else ''
        found |= set(re.findall(r'^(?:\S+:\d+:\d+: |\S+: )?(?:error|warning): (.*)$', text, re.M))
    return found


def faults(root):
    known = tested_messages(root)
    for place, form in messages(root):
        if not re.search(r'[a-z]', DIRECTIVE.sub('', form)) or form in UNREACHABLE:
            continue
        regex = pattern(form)
        if not any(regex.fullmatch(message) for message in known):
            yield f'{place}: no case has the message "{form}"'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('root', metavar='ROOT', nargs='?', type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help='the root of the repository (default: of this one)')
    root = parser.parse_args().root
    if not (root / 'src').is_dir():
        parser.error(f'{root} has no directory src')
    found = list(faults(root))
    print('\n'.join(found))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
