#!/usr/bin/env python3
"""Converts the reference of directives (conf/README.md) to a manual page.

usage: manual.py README.md VERSION >sluice.yaml.5

The table of files and the contents are left out. Faults of the input end the conversion: a construct of Markdown without a
translation here would otherwise appear as it is in the page.
"""
import pathlib
import re
import sys

HEAD = '''.\\" Generated from the directive tables by conf/install/manual.py.
.TH SLUICE.YAML 5 "" "sluice {version}" "File Formats"
.SH NAME
sluice.yaml \\- configuration of the sluice web server
.ad l
.SH DESCRIPTION
The configuration of
.BR sluice (1)
is YAML with the names of nginx's directives.
.B sluice help
.I NAME
prints each entry of this page.
'''
TAIL = '''.SH SEE ALSO
.BR sluice (1)
'''
OMITTED = {'Contents'}


def escape(text):
    """Text as roff that prints exactly these ASCII characters; no line of it is a request."""
    text = text.replace('\\', r'\e')
    for character, name in (('-', r'\-'), ("'", r'\(aq'), ('`', r'\(ga'), ('^', r'\(ha'), ('~', r'\(ti'), ('"', r'\(dq')):
        text = text.replace(character, name)
    return r'\&' + text if text.startswith('.') else text


def breakable(code):
    """Code that may continue on the next line after a separator, if it is too long for one."""
    return ' '.join(re.sub(r'([:,;|/])(?=[^:,;|/])', r'\1\\:', escape(word)) if len(word) > 40 else escape(word)
                    for word in code.split(' '))


def inline(text):
    """A paragraph: code becomes bold, a link its text."""
    text = re.sub(r'\[([^\]]*)\]\((?:#|[\w./]+|https?:)[^)]*\)', r'\1', text)
    parts = re.split(r'(``? .+? ``?|`[^`]+`)', text)
    for i, part in enumerate(parts):
        code = part.strip('`')
        parts[i] = rf'\fB{breakable(code.strip() if part.startswith("``") else code)}\fR' if i % 2 else escape(part)
    return ''.join(parts)


def table_row(line):
    """The cells of a row; a bar inside code is no separator."""
    hidden = re.sub(r'`[^`]*`', lambda found: found[0].replace('|', '\0'), line.strip().strip('|'))
    return [cell.strip().replace('\0', '|').replace('\\|', '|') for cell in re.split(r'(?<!\\)\|', hidden)]


def print_table(lines):
    """A table: an entry for each row, under its first cell."""
    for line in lines[2:]:
        first, *others = table_row(line)
        yield from ('.TP', rf'\fI{inline(first)}\fR', inline('; '.join(cell for cell in others if cell)))


def print_block(lines):
    yield from ('.PP', '.RS 4', '.EX', *(escape(line) for line in lines), '.EE', '.RE')


def print_heading(text):
    text = text.replace('`', '')
    level = '.SS' if text.startswith('### ') else '.SH'
    title = text.lstrip('# ')
    return f'{level} "{escape(title.upper() if level == ".SH" else title)}"'


def blocks(text):
    """Yields (kind, lines): heading, code, table or text."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        begin = at
        if lines[at].startswith('```'):
            at = lines.index('```', at + 1) + 1
            yield 'code', lines[begin + 1:at - 1]
            continue
        at += 1
        if lines[begin].startswith('#'):
            yield 'heading', lines[begin:at]
        elif lines[begin]:
            kind = 'table' if lines[begin].startswith('|') else 'text'
            while at < len(lines) and lines[at] and not lines[at].startswith(('#', '```')) and (lines[at][0] == '|') == (kind == 'table'):
                at += 1
            yield kind, lines[begin:at]


def convert(text):
    """The lines of the page, from the first section on."""
    section = None
    for kind, lines in blocks(text):
        if kind == 'heading' and lines[0].startswith('## '):
            section = lines[0][3:]
        if section is None or section in OMITTED:
            continue
        if kind == 'heading':
            yield print_heading(lines[0])
        elif kind == 'code':
            yield from print_block(lines)
        elif kind == 'table':
            yield from print_table(lines)
        elif lines[0].startswith(('- ', '* ', '> ', '<')):
            sys.exit(f'manual.py has no translation for: {lines[0]}')
        else:
            yield from ('.PP', inline(' '.join(lines)))


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding='utf-8')
    page = HEAD.format(version=sys.argv[2]) + '\n'.join(convert(text)) + '\n' + TAIL
    sys.stdout.buffer.write(page.encode('ascii'))


if __name__ == '__main__':
    main()
