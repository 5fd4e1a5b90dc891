"""The generated pages of docs/, as Markdown: the output of the program `reference`, divided into a page for each group of directives;
the index of nginx's names; the recipes.
"""
import fnmatch
import re

import markdown

README = '''# Documentation

`sluice help NAME` prints an entry in the terminal. The pages of directives and variables are generated from the tables in the sources; a
test compares them.

| page | contents |
|-|-|
| [Configuration](configuration.md) | scopes, the notation of values, blocks |
| [Variables](variables.md) | values of requests and connections in texts and conditions |
| [Recipes](recipes.md) | complete configurations for common tasks |
| [From nginx](nginx.md) | each directive and variable of nginx, and its counterpart |
{others}
## Directives

| group | directives |
|-|-|
'''
CONFIGURATION = '''# Configuration

sluice reads one YAML file, `sluice.yaml`, with the names of nginx's directives. `sluice -t` checks it, `sluice -T` prints it with all
included files. An editor with a YAML language server checks it by the schema that `sluice schema` prints. The [index](README.md#directives)
lists all directives.

'''
NGINX = '''# From nginx

`sluice import nginx.conf -o sluice.yaml` converts a configuration. This index has the directives and variables of nginx. A link leads to the
directive or variable of the same name; its help states differences. The other names have an alternative; for directives, `sluice help NAME` and `sluice
import` print the same text. For a directive without a counterpart that handles or protects requests, the imported configuration answers 503
until it is replaced. A name that ends with `*` stands for all names with that prefix.

'''
RECIPES = '''# Recipes

Each of these configurations runs without changes, from the directory `conf/examples` of the sources or `examples` below the installed
documentation: `sluice -t -c FILE` checks it, `sluice -c FILE` runs it. Environment variables name ports, upstream servers and files, with
defaults.

'''


def sections(text):
    """{heading: text below it} for the headings of level 2."""
    found = re.split(r'^## (.*)\n', text, flags=re.M)
    return dict(zip(found[1::2], found[2::2]))


def entries(reference):
    """[(page, heading, anchor)] of the blocks and directives of the reference."""
    found = []
    for title, text in sections(reference).items():
        page = f'directives/{title.partition(": ")[2]}.md' if title.startswith('Directives: ') else 'configuration.md'
        found += [(page, heading, markdown.anchor(heading)) for level, heading in markdown.headings(text) if level == 3]
    return found


def name_of(heading):
    return re.match(r'`(\w+)`', heading)[1]


def index_page(reference, others):
    """docs/README.md; `others` are the pages written by hand: {file: (title, contents)}."""
    rows = []
    for title in sections(reference):
        if title.startswith('Directives: '):
            group = title.partition(': ')[2]
            page = f'directives/{group}.md'
            names = ', '.join(f'[{heading}]({page}#{anchor})' for at, heading, anchor in entries(reference) if at == page)
            rows.append(f'| [{group}]({page}) | {names} |\n')
    table = ''.join(f'| [{title}]({name}) | {text} |\n' for name, (title, text) in others.items())
    return README.format(others=table) + ''.join(rows)


def reference_pages(docs):
    """The paths of the pages of directives below the folder, in the order of the reference."""
    index = (docs / 'README.md').read_text(encoding='utf-8')
    return [docs / 'configuration.md', *(docs / name for name in re.findall(r'^\| \[\w+\]\((directives/\w+\.md)\)', index, re.M))]


def group_page(title, text):
    return f'# {title}\n' + re.sub(r'^### ', '## ', text, flags=re.M).rstrip('\n') + '\n'


def read_names(text):
    """[(name, answer)] of nginx.names; the answer is empty where the tables have one."""
    rows = [line.partition(':') for line in text.splitlines() if line and not line.startswith('#')]
    return [(name.strip(), answer.strip()) for name, _, answer in rows]


def in_stream(text):
    return re.search(r'\bstream\b', text) is not None


def with_links(text, known):
    """An alternative in which the names of directives are links. Of several entries, that of stream if the text is about stream."""
    def link(found):
        entries = re.findall(r'\[.*?\]\(.*?\)(?=, |$)', known.get(found[0], ''))
        about = [entry for entry in entries if len(entries) == 1 or in_stream(entry.partition('](')[0]) == in_stream(text)]
        return about[0] if about else found[0]
    return re.sub(r"(?<![\w$/'])(?:(?<=^use )|(?<=, use )|(?=\w+_))[a-z]\w*(?![\w*])", link, text)


def nginx_rows(names, unsupported, known):
    """{name: alternative}, and the names without one. `known`: {name: Markdown}; `unsupported`: {pattern: text}."""
    unsupported = {pattern: with_links(text, known) for pattern, text in unsupported.items()}
    rows, missing, used = {}, [], set()
    for name, answer in names:
        patterns = [pattern for pattern in unsupported if fnmatch.fnmatchcase(name, pattern)]
        used.update(patterns)
        if name in known:
            rows[name] = known[name]
        elif patterns:
            rows[name] = unsupported[patterns[0]]
        elif answer and name.startswith('$'):
            rows[name] = answer
        else:
            missing.append(name)
    rows.update((pattern, text) for pattern, text in unsupported.items() if pattern not in used)
    return rows, missing


def known_names(reference, variables):
    """{name: links} for the directives, and for the variables with their dollar."""
    known = {}
    for page, heading, anchor in entries(reference):
        known.setdefault(name_of(heading), []).append(f'[{heading}]({page}#{anchor})')
    known = {name: ', '.join(links) for name, links in known.items()}
    known['include'] = '[`include`](configuration.md#how-values-are-written)'
    for title, text in sections(variables).items():
        for name in re.findall(r'^\| `(\$\w+)`', text, re.M):
            known.setdefault(name, f'[`{name}`](variables.md#{markdown.anchor(title)})')
    return known


def nginx_page(reference, variables, unsupported, names):
    """docs/nginx.md, and the names for which neither the tables nor nginx.names have an answer."""
    texts = dict(re.findall(r'^\| `([^`]+)` \| (.*) \|$', unsupported, re.M))
    rows, missing = nginx_rows(read_names(names), texts, known_names(reference, variables))
    page = NGINX
    for title, dollar in (('Directives of nginx', False), ('Variables of nginx', True)):
        page += f'## {title}\n\n| nginx | sluice |\n|-|-|\n'
        page += ''.join(f'| `{name}` | {rows[name]} |\n' for name in sorted(rows) if name.startswith('$') == dollar) + '\n'
    return page.rstrip('\n') + '\n', missing


def recipes(table):
    """[(task, file, notes)] of the table in conf/examples/README.md."""
    return [(found[1], found[2], found[3]) for found in re.finditer(r'^\| (.*?) \| `([\w-]+\.yaml)` \| (.*) \|$', table, re.M)]


def recipes_page(table, read):
    """docs/recipes.md; `read` returns the text of an example."""
    rows = recipes(table)
    page = RECIPES + ''.join(f'- [{task}](#{markdown.anchor(task)})\n' for task, _, _ in rows)
    for task, name, notes in rows:
        page += f'\n## {task}\n\n{notes[0].upper()}{notes[1:]}. File: [`{name}`](../conf/examples/{name})\n\n```yaml\n{read(name)}```\n'
    return page


def hand_written(folder):
    """{file: (title, contents)}: the contents are the first paragraph's first sentence."""
    found = {}
    for name in ('migrating.md', 'scaling.md', 'comparison.md', 'stability.md'):
        if (folder / name).exists():
            text = (folder / name).read_text(encoding='utf-8')
            first = next(' '.join(lines) for kind, lines in markdown.blocks(text) if kind == 'text')
            found[name] = (text.partition('\n')[0].lstrip('# '), re.split(r'\.(?= |$)', first)[0])
    return found


def generated(printed, names, examples, docs):
    """{path below docs: text}, and the faults. `printed`: {kind: output of the program}."""
    reference, variables = printed['reference'], printed['variables']
    parts = sections(reference)
    configuration = [title for title in parts if not title.startswith('Directives: ')]
    nginx, missing = nginx_page(reference, variables, printed['nginx'], names)
    made = {'README.md': index_page(reference, hand_written(docs)),
            'configuration.md': CONFIGURATION + ''.join(f'## {title}\n{parts[title]}' for title in configuration),
            'variables.md': variables, 'nginx.md': nginx,
            'recipes.md': recipes_page((examples / 'README.md').read_text(encoding='utf-8'),
                                       lambda name: (examples / name).read_text(encoding='utf-8'))}
    for title, text in parts.items():
        if title.startswith('Directives: '):
            made[f'directives/{title.partition(": ")[2]}.md'] = group_page(title, text)
    return made, [f'nginx.names: no table has {name}; src/conf/conf_vocabulary.c has those of directives' for name in missing]
