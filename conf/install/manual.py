#!/usr/bin/env python3
"""Converts the reference of directives (docs/configuration.md, docs/directives/) to a manual page.

usage: manual.py VERSION PAGE... >sluice.yaml.5     `manual.py --pages DOCS` prints the paths of all pages

The title and introduction of configuration.md are omitted. An unsupported construct of Markdown is an error.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'docs/site'))
import markdown  # noqa: E402
import pages  # noqa: E402

HEAD = '''.\\" Generated from the directive tables by conf/install/manual.py.
.TH SLUICE.YAML 5 "" "sluice {version}" "File Formats"
.ds AD l
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


def escape(text):
    """Escapes text for roff: it prints exactly these ASCII characters, and no line is a request."""
    text = text.replace('\\', r'\e')
    for character, name in (('-', r'\-'), ("'", r'\(aq'), ('`', r'\(ga'), ('^', r'\(ha'), ('~', r'\(ti'), ('"', r'\(dq')):
        text = text.replace(character, name)
    return r'\&' + text if text.startswith('.') else text


def breakable(code):
    """Escapes code and allows line breaks after separators of long words."""
    return ' '.join(re.sub(r'([:,;|/])(?=[^:,;|/])', r'\1\\:', escape(word)) if len(word) > 40 else escape(word)
                    for word in code.split(' '))


def inline(text):
    """Converts a paragraph: code becomes bold, a link becomes its text."""
    roff = ''
    for kind, part, _ in markdown.parts(text):
        if kind == 'code':
            roff += rf'\fB{breakable(part)}\fR'
        else:
            roff += inline(part) if kind == 'link' else escape(part)
    return roff


def print_table(lines):
    """Converts a table: each row becomes an entry whose tag is the first cell."""
    for line in lines[2:]:
        first, *others = markdown.table_row(line)
        yield from ('.TP', rf'\fI{inline(first)}\fR', inline('; '.join(cell for cell in others if cell)))


def print_block(lines):
    yield from ('.PP', '.RS 4', '.EX', *(escape(line) for line in lines), '.EE', '.RE')


def print_heading(level, text):
    text = text.replace('`', '')
    return f'.SH "{escape(text.upper())}"' if level == 1 else f'.SS "{escape(text)}"'


def convert(text):
    """Yields the lines of a page. In configuration.md the sections begin at level 2."""
    is_directive_page = text.startswith('# Directives: ')
    started = is_directive_page
    for kind, lines in markdown.blocks(text):
        if kind == 'heading':
            level = len(lines[0]) - len(lines[0].lstrip('#'))
            started = started or level == 2
            if started:
                yield print_heading(level if is_directive_page else level - 1, lines[0].lstrip('# '))
        elif not started:
            continue
        elif kind == 'code':
            yield from print_block(lines)
        elif kind == 'table':
            yield from print_table(lines)
        elif kind == 'list':
            sys.exit(f'manual.py has no translation for: {lines[0]}')
        else:
            yield from ('.PP', inline(' '.join(lines)))


def main():
    version, *names = sys.argv[1:]
    if version == '--pages':
        print(*pages.reference_pages(pathlib.Path(names[0])), sep='\n')
        return
    page = HEAD.format(version=version)
    try:
        for name in names:
            page += '\n'.join(convert(pathlib.Path(name).read_text(encoding='utf-8'))) + '\n'
    except markdown.Unknown as fault:
        sys.exit(f'{name}: markdown.py has no translation for: {fault}')
    sys.stdout.buffer.write((page + TAIL).encode('ascii'))


if __name__ == '__main__':
    main()
