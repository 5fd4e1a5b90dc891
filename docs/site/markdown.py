"""Splits the Markdown of this project into blocks, and paragraphs into parts. The manual page is written from these.

Only what the pages use is understood: headings, fenced code, tables, lists of one level, paragraphs; code, links and bold text in them.
A page with another construct ends the build.
"""
import re

PART = re.compile(r'(?P<code>``? .+? ``?|`[^`]+`)|\[(?P<text>(?:`[^`]*`|[^\]`])*)\]\((?P<target>[^)\s]+)\)|\*\*(?P<bold>[^*]+)\*\*')
OTHER = re.compile(r'(\* |> |<|    \S|\d+\. |!\[|---)')


class Unknown(Exception):
    """A construct that this file does not translate."""


def table_row(line):
    """The cells of a row; a bar inside code is no separator."""
    hidden = re.sub(r'`[^`]*`', lambda found: found[0].replace('|', '\0'), line.strip().strip('|'))
    return [cell.strip().replace('\0', '|').replace('\\|', '|') for cell in re.split(r'(?<!\\)\|', hidden)]


def list_items(lines):
    """The items of a list: a line that begins with a blank continues the one before."""
    items = []
    for line in lines:
        if line.startswith('- '):
            items.append(line[2:])
        elif items and line.startswith('  '):
            items[-1] += ' ' + line.strip()
        else:
            raise Unknown(line)
    return items


def kind_of(line):
    if line.startswith('#'):
        return 'heading'
    if OTHER.match(line):
        raise Unknown(line)
    return 'table' if line.startswith('|') else 'list' if line.startswith('- ') else 'text'


def blocks(text):
    """Yields (kind, lines): heading, code (without its fences), table, list or text."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        begin = at
        if lines[at].startswith('```'):
            if '```' not in lines[at + 1:]:
                raise Unknown('code without an end')
            at = lines.index('```', at + 1) + 1
            yield 'code', lines[begin + 1:at - 1]
            continue
        at += 1
        if not lines[begin]:
            continue
        kind = kind_of(lines[begin])
        while kind != 'heading' and at < len(lines) and lines[at] and not lines[at].startswith(('#', '```')) and \
                (lines[at][0] == '|') == (kind == 'table'):
            at += 1
        yield kind, lines[begin:at]


def parts(text):
    """Yields (kind, text, target) of a paragraph: plain, code, link or bold; the target of a link, otherwise None."""
    at = 0
    for found in PART.finditer(text):
        if found.start() > at:
            yield 'plain', text[at:found.start()], None
        if found['code']:
            code = found['code']
            yield 'code', code.strip('`').strip() if code.startswith('``') else code[1:-1], None
        elif found['bold']:
            yield 'bold', found['bold'], None
        else:
            yield 'link', found['text'], found['target']
        at = found.end()
    if at < len(text):
        yield 'plain', text[at:], None


def anchor(heading):
    """The anchor that GitHub makes of a heading."""
    return re.sub(r'[^a-z0-9_ -]', '', heading.lstrip('# ').lower()).replace(' ', '-')


def headings(text):
    """[(level, text)] of the page."""
    return [(len(lines[0]) - len(lines[0].lstrip('#')), lines[0].lstrip('# ')) for kind, lines in blocks(text) if kind == 'heading']


def links(text):
    """The targets of all links in the paragraphs, lists and tables."""
    return [target for kind, lines in blocks(text) if kind not in ('code', 'heading')
            for part, _, target in parts(' '.join(lines)) if part == 'link']
