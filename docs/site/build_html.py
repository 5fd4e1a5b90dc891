#!/usr/bin/env python3
"""Converts the pages of docs/ to HTML, with an index for the search.

usage: build_html.py DOCS FOLDER VERSION     replaces FOLDER

The pages name no external resource and contain no script or style; their Content-Security-Policy permits only the files beside them.
"""
import html
import json
import pathlib
import posixpath
import re
import shutil
import sys

import markdown

PAGE = '''<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · sluice</title>
<link rel="stylesheet" href="{root}docs.css">
<script src="{root}search-index.js" defer></script>
<script src="{root}search.js" defer></script>
</head>
<body>
<header>
<a href="{root}index.html">sluice {version}</a>
<nav>{nav}</nav>
<div id="search" hidden><input type="search" placeholder="Search ( / )" aria-label="Search" autocomplete="off" spellcheck="false">
<ol id="results" aria-live="polite"></ol></div>
</header>
<main>
{body}</main>
</body>
</html>
'''
NAV = {'configuration': 'Configuration', 'variables': 'Variables', 'recipes': 'Recipes', 'nginx': 'From nginx', 'migrating': 'Migrating',
       'scaling': 'Scaling', 'comparison': 'Comparison', 'stability': 'Stability'}
WIDE = 4  # columns; a table with more scrolls instead of breaking words
STATIC = ('docs.css', 'search.js')


class Page:
    """One page: its path below docs/, its Markdown, and the paths of all pages."""

    def __init__(self, path, text, known):
        self.path, self.text, self.known = path, text, known
        self.root = '../' * path.count('/')

    def link(self, target, text):
        """A link to another page or to the web; a file of the sources, which is not installed, is named instead."""
        if re.match(r'https?:', target):
            return f'<a href="{html.escape(target)}">{text}</a>'
        name, mark, name_anchor = target.partition('#')
        path = posixpath.normpath(posixpath.join(posixpath.dirname(self.path), name)) if name else self.path
        if path in self.known:
            place = posixpath.relpath(html_name(path), posixpath.dirname(self.path) or '.') if name else ''
            return f'<a href="{html.escape(place + mark + name_anchor)}">{text}</a>'
        return f'<span title="{html.escape(posixpath.relpath(path, ".."))}">{text}</span>'

    def inline(self, text):
        made = ''
        for kind, part, target in markdown.parts(text):
            if kind == 'link':
                made += self.link(target, self.inline(part))
            else:
                tag = {'code': 'code', 'bold': 'strong'}.get(kind)
                made += f'<{tag}>{html.escape(part)}</{tag}>' if tag else html.escape(part)
        return made

    def table(self, lines):
        head, *rows = [markdown.table_row(line) for line in lines[:1] + lines[2:]]
        yield f'<div class="{"wide table" if len(head) > WIDE else "table"}"><table>\n<thead><tr>' + ''.join(f'<th>{self.inline(cell)}</th>' for cell in head) + '</tr></thead>\n'
        for row in rows:
            yield '<tr>' + ''.join(f'<td>{self.inline(cell)}</td>' for cell in row) + '</tr>\n'
        yield '</table></div>\n'

    def heading(self, line):
        level, text = len(line) - len(line.lstrip('#')), line.lstrip('# ')
        anchor = markdown.anchor(text)
        return f'<h{level} id="{anchor}"><a href="#{anchor}">{self.inline(text)}</a></h{level}>\n'

    def body(self):
        for kind, lines in markdown.blocks(self.text):
            if kind == 'heading':
                yield self.heading(lines[0])
            elif kind == 'code':
                yield '<pre><code>' + html.escape('\n'.join(lines), quote=False) + '\n</code></pre>\n'
            elif kind == 'table':
                yield from self.table(lines)
            elif kind == 'list':
                yield '<ul>\n' + ''.join(f'<li>{self.inline(item)}</li>\n' for item in markdown.list_items(lines)) + '</ul>\n'
            else:
                yield f'<p>{self.inline(" ".join(lines))}</p>\n'

    def html(self, version):
        title = markdown.headings(self.text)[0][1]
        nav = ' '.join(f'<a href="{self.root}{name}.html">{text}</a>' for name, text in NAV.items())
        return PAGE.format(title=html.escape(title), root=self.root, version=html.escape(version), nav=nav, body=''.join(self.body()))


def html_name(path):
    return re.sub(r'README\.md$', 'index.md', path).removesuffix('.md') + '.html'


def plain(text):
    return ''.join(plain(part) if kind == 'link' else part for kind, part, _ in markdown.parts(text))


def search_entries(pages):
    """[name, kind, address, text] of each directive and block, variable, name of nginx, recipe and page."""
    for page in pages:
        place = html_name(page.path)
        title = page.path.removesuffix('.md').rpartition('/')[2]
        heading = None
        for kind, lines in markdown.blocks(page.text):
            if kind == 'heading':
                heading = lines[0].lstrip('# ')
                level = len(lines[0]) - len(lines[0].lstrip('#'))
            elif kind == 'text' and heading:
                what = 'page' if level == 1 else 'directive' if page.path.startswith('directives/') else title
                yield [plain(heading), what, place if level == 1 else f'{place}#{markdown.anchor(heading)}', plain(' '.join(lines))]
                heading = None
            elif kind == 'table' and page.path in ('variables.md', 'nginx.md'):
                what = 'variable' if title == 'variables' else 'nginx'
                for row in (markdown.table_row(line) for line in lines[2:]):
                    if not (what == 'nginx' and row[1].startswith('[')):
                        yield [plain(row[0]), what, f'{place}#{markdown.anchor(heading_of(page, lines))}', plain(row[-1])]


def heading_of(page, table):
    """The heading above a table."""
    heading = ''
    for kind, lines in markdown.blocks(page.text):
        heading = lines[0].lstrip('# ') if kind == 'heading' else heading
        if lines == table:
            break
    return heading


def main():
    docs, folder, version = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    paths = sorted(str(path.relative_to(docs)) for path in [*docs.glob('*.md'), *docs.glob('directives/*.md')])
    pages = [Page(path, (docs / path).read_text(encoding='utf-8'), set(paths)) for path in paths]
    shutil.rmtree(folder, ignore_errors=True)
    (folder / 'directives').mkdir(parents=True)
    for page in pages:
        try:
            (folder / html_name(page.path)).write_text(page.html(version), encoding='utf-8')
        except markdown.Unknown as fault:
            sys.exit(f'{page.path}: markdown.py has no translation for: {fault}')
    entries = json.dumps(list(search_entries(pages)), ensure_ascii=False, separators=(',', ':'))
    (folder / 'search-index.js').write_text(f'const searchEntries = {entries};\n', encoding='utf-8')
    for name in STATIC:
        shutil.copyfile(docs / 'site' / name, folder / name)


if __name__ == '__main__':
    main()
