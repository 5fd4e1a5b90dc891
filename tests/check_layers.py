#!/usr/bin/env python3
"""Checks the sources against the layers of src/README.md and against rules that a compiler does not check.

In src/ and modules/: ALLOWED_INCLUDES lists the permitted includes of each layer. Only base/clock.c calls clocks, only the io_uring
backend includes liburing.h, and http/ uses no file descriptor. Further rules: lengths of files and functions, columns, banned words.
In tests/ and bench/: only the lengths of files and, in C, the columns.

Prints each fault as FILE:LINE: FAULT. Exit status 1: there are faults.
"""
import argparse
import os
import re
import sys
import tempfile

ALLOWED_INCLUDES = {
    'base': set(),
    'io': {'base'},
    'tls': {'base'},
    'wire': {'base', 'io', 'tls'},
    'http': {'base'},
    'conf': {'base'},
    'log': {'base', 'io', 'conf'},
    'import': {'base', 'conf'},
    'cache': {'base', 'io', 'conf'},
    'limit': {'base', 'conf'},
    'sandbox': {'base'},
    'upstream': {'base', 'io', 'tls', 'wire', 'http', 'conf'},
    'acme': {'base', 'io', 'conf'},
    'otlp': {'base', 'tls', 'http'},
    'site': {'base', 'io', 'tls', 'wire', 'http', 'conf', 'cache', 'limit', 'sandbox', 'upstream', 'log', 'acme', 'otlp'},
    'master': {'base', 'io', 'tls', 'wire', 'http', 'conf', 'upstream', 'cache', 'log', 'sandbox', 'site', 'acme', 'otlp'},
    'server': {'base', 'io', 'tls', 'wire', 'http', 'conf', 'cache', 'limit', 'sandbox', 'upstream', 'log', 'site', 'master', 'acme', 'otlp'},
    'control': {'base', 'tls', 'http', 'conf', 'cache', 'limit', 'upstream', 'site', 'master', 'server'},
    'stream': {'base', 'io', 'tls', 'wire', 'http', 'conf', 'upstream', 'log', 'site', 'master', 'server'},
    'command': {'base', 'conf', 'import', 'server', 'log', 'site', 'master', 'stream'},
    'doctor': {'base', 'io', 'tls', 'wire', 'conf', 'log', 'command', 'sandbox', 'site', 'acme'},
    'explain': {'base', 'io', 'http', 'conf', 'upstream', 'server', 'command', 'log', 'site', 'master'},
    'top': {'base', 'http', 'conf', 'log', 'command'},
    'lint': {'base', 'io', 'tls', 'http', 'conf', 'upstream', 'command', 'log', 'sandbox', 'site'},
}
MODULE_INCLUDE_FOLDERS = {'base', 'http', 'wire', 'cache', 'limit', 'upstream', 'acme', 'otlp'}
MODULE_INCLUDE_FILES = {'server/module.h', 'server/page/html.h', 'server/page/page.h', 'master/counters.h', 'site/field_name.h', 'site/user_variables.h', 'site/capture.h', 'site/subjects.h',
                     'server/representation.h', 'stream/stream_module.h', 'site/when.h', 'conf/directive.h', 'io/file_cache.h', 'io/directory.h'}
GENERATED = {'build_options.h', 'build_versions.h', 'module_table.h'}

FILE_LINES = 500
FUNCTION_LINES = 60
PARSER_LINES = 100
COLUMNS = 120
PARSER = re.compile(r'pars|url|date|range')

CLOCK_CALL = re.compile(r'(?<![\w.>])(clock_gettime|gettimeofday|timespec_get|time|ftime|clock)\s*\(')
CLOCK_FILE = 'src/base/clock.c'
HTTP_CALL = re.compile(r'(?<![\w.>])(read|write|pread|pwrite|readv|writev|send|sendmsg|recv|recvmsg|sendfile|splice|'
                       r'open|openat|close|socket|accept|connect|poll|epoll_wait)\s*\(')
# The loop and kTLS backends: only these files may use preprocessor conditions.
BACKENDS = re.compile(r'src/(io/loop_[a-z]+\.c|io/loop\.c|tls/ktls[a-z_]*\.[ch]|tls/tls_bio\.c)$')
BANNED = {'ctx', 'data', 'info', 'manager', 'handle', 'process', 'util', 'misc'}  # except in cache_manager, a term of nginx
UNFINISHED = re.compile(r'\b(TODO|FIXME|XXX|HACK|stub)\b')

COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def strip_comments_and_literals(text):
    """Replaces comments and literals by blanks; line numbers do not change."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group(0))
    return COMMENT_OR_TEXT.sub(blank, text)


def line_of(text, offset):
    return text.count('\n', 0, offset) + 1


def functions(code):
    """(name, first line, lines) of each function whose opening brace is in column one."""
    found = []
    lines = code.split('\n')
    for number, line in enumerate(lines):
        if line.rstrip() != '{':
            continue
        head = number - 1
        while head > 0 and lines[head - 1].strip() and not lines[head - 1].rstrip().endswith((';', '}')) \
                and not lines[head - 1].startswith('#'):
            head -= 1
        signature = ' '.join(lines[head:number])
        name = re.search(r'(\w+)\s*\(', signature)
        end = number + 1
        while end < len(lines) and lines[end].rstrip() not in ('}', '};'):
            end += 1
        if name and end < len(lines):
            found.append((name.group(1), head + 1, end - head + 1))
    return found


def check_includes(path, text, folder, faults):
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', text, re.M):
        kind, target = match.groups()
        where = f'{path}:{line_of(text, match.start())}'
        if target == 'liburing.h' and path != 'src/io/loop_uring.c':
            faults.append(f'{where}: liburing.h belongs to src/io/loop_uring.c alone')
        if kind == '<' or target in GENERATED:
            continue
        fault = include_fault(path, folder, target)
        if fault:
            faults.append(f'{where}: {fault}')


def include_fault(path, folder, target):
    """The reason why this include is not permitted; None: it is permitted."""
    target_folder = target.split('/')[0]
    if folder == 'main':
        return None
    if folder == 'modules':
        own = '/'.join(path.split('/')[:2]) + '/'
        if target.startswith(own) or '/' not in target or target in MODULE_INCLUDE_FILES or target_folder in MODULE_INCLUDE_FOLDERS \
                or target.startswith('modules/gateway/'):   # for the modules that pass requests to upstream servers
            return None
        return f'a module may not include "{target}"'
    if '/' not in target:
        return f'write "{folder}/{target}": includes are written from src/'
    if target_folder == folder or target_folder in ALLOWED_INCLUDES[folder]:
        return None
    return f'{folder} may not include {target_folder} ("{target}")'


def check_calls(path, code, folder, faults):
    if path != CLOCK_FILE:
        for match in CLOCK_CALL.finditer(code):
            faults.append(f'{path}:{line_of(code, match.start())}: {match.group(1)}() outside base/clock.c')
    if folder == 'http':
        for match in HTTP_CALL.finditer(code):
            faults.append(f'{path}:{line_of(code, match.start())}: {match.group(1)}() in http/, which uses no file descriptor')


def check_names(path, code, faults):
    for word in re.split(r'[_.]', os.path.basename(path).replace('cache_manager', '')):
        if word in BANNED:
            faults.append(f'{path}:1: "{word}" in a file name')
    for match in re.finditer(r'(?<![\w.>])([a-z_][a-z0-9_]*)\b', code):
        if match.group(1) in BANNED - {'data'}:   # `data` is permitted as a member: struct str {data, length}
            faults.append(f'{path}:{line_of(code, match.start())}: banned name "{match.group(1)}"')
    for match in re.finditer(r'\b(?:struct|enum|union)\s+(\w+)\s*\{', code):
        banned = BANNED & set(match.group(1).replace('cache_manager', '').split('_'))
        if banned:
            faults.append(f'{path}:{line_of(code, match.start())}: "{banned.pop()}" in the type name {match.group(1)}')
    for match in re.finditer(r'\btypedef\s+(struct|union|enum)\b', code):
        faults.append(f'{path}:{line_of(code, match.start())}: typedef of a {match.group(1)}')
    for match in re.finditer(r'\btypedef\b[^;{]*?\b(\w+_t)\s*;', code):
        faults.append(f'{path}:{line_of(code, match.start())}: type name {match.group(1)} ends in _t')


def check_functions(path, code, faults):
    in_parser_file = PARSER.search(os.path.basename(path))
    for name, line, length in functions(code):
        limit = PARSER_LINES if in_parser_file or PARSER.search(name) else FUNCTION_LINES
        if length > limit:
            faults.append(f'{path}:{line}: {name} has {length} lines (at most {limit})')
        banned = BANNED & set(name.replace('cache_manager', '').split('_'))
        if banned:
            faults.append(f'{path}:{line}: "{banned.pop()}" in the function name {name}')


def check_length(path, text, faults):
    lines = text.count('\n')
    if lines > FILE_LINES:
        faults.append(f'{path}:1: {lines} lines (at most {FILE_LINES})')


def check_text(path, text, faults):
    check_length(path, text, faults)
    for number, line in enumerate(text.split('\n'), 1):
        if '\t' in line:
            faults.append(f'{path}:{number}: a tab')
        if len(line) > COLUMNS:
            faults.append(f'{path}:{number}: {len(line)} columns (at most {COLUMNS})')


def check_conventions(path, text, code, faults):
    if not text.startswith('/*'):
        faults.append(f'{path}:1: the file does not begin with a comment')
    for match in UNFINISHED.finditer(text):
        faults.append(f'{path}:{line_of(text, match.start())}: "{match.group(0)}": finish it')
    if not BACKENDS.match(path):
        for match in re.finditer(r'^[ \t]*#[ \t]*(if|ifdef|elif)\b[^\n]*', code, re.M):
            faults.append(f'{path}:{line_of(code, match.start())}: {match.group(0).strip()} outside a backend: split the file')


def check_source(path, text, folder, faults):
    check_text(path, text, faults)
    if folder is None:
        return
    code = strip_comments_and_literals(text)
    check_includes(path, text, folder, faults)
    check_calls(path, code, folder, faults)
    check_names(path, code, faults)
    check_functions(path, code, faults)
    check_conventions(path, text, code, faults)


def read_text(path):
    with open(path, encoding='utf-8') as stream:
        return stream.read()


def folder_of(path):
    """The layer of a file: a directory of src/, 'modules', 'main', or None for files without a layer."""
    parts = path.split('/')
    if parts[0] == 'modules':
        return 'modules'
    if parts[0] == 'src':
        return parts[1] if len(parts) > 2 else 'main'
    return None


def check_tree(root):
    faults = []
    for top in ('src', 'modules', 'tests', 'bench'):
        for folder, names, files in os.walk(os.path.join(root, top)):
            names[:] = sorted(name for name in names if not name.startswith('.'))
            for name in sorted(files):
                path = os.path.relpath(os.path.join(folder, name), root)
                layer = folder_of(path)
                if layer not in ALLOWED_INCLUDES and layer not in ('modules', 'main', None):
                    faults.append(f'{path}:1: directory "{layer}" is missing in ALLOWED_INCLUDES')
                elif name.endswith(('.c', '.h')):
                    check_source(path, read_text(os.path.join(root, path)), layer, faults)
                elif name.endswith('.py'):
                    check_length(path, read_text(os.path.join(root, path)), faults)
    return faults


HEAD = '/*\n * A file for the self-test.\n */\n'
SELF_TEST = [
    # path, text, expected fault; None: no fault
    ('src/base/good.c', HEAD + '#include <time.h>\n\n/* time() in a comment; */\nint f(void)\n{\n    return wall.time(1);\n}\n', None),
    ('src/base/clock.c', HEAD + 'long f(void)\n{\n    return time(0);\n}\n', None),
    ('src/io/x.c', HEAD + '#include "base/str.h"\n#include "io/y.h"\n', None),
    ('modules/return/return.c', HEAD + '#include "server/module.h"\n#include "http/status.h"\n#include "return.h"\n', None),
    ('src/main.c', HEAD + '#include "master/master.h"\n', None),
    ('tests/unit/http/test_x.c', '#include "server/connection.h"\nint process(void);\n', None),
    ('src/http/x.c', HEAD + '#include "io/loop.h"\n', 'http may not include io'),
    ('src/base/x.c', HEAD + '#include "str.h"\n', 'includes are written from src/'),
    ('src/tls/x.h', HEAD + '#  include "io/loop.h"\n', 'tls may not include io'),
    ('modules/return/x.c', HEAD + '#include "io/loop.h"\n', 'a module may not include'),
    ('modules/return/x.c', HEAD + '#include "modules/static/x.h"\n', 'a module may not include'),
    ('modules/return/x.c', HEAD + '#include "modules/gateway/gateway.h"\n', None),
    ('modules/return/x.c', HEAD + '#include "server/worker.h"\n', 'a module may not include'),
    ('src/io/loop_epoll.c', HEAD + '#include <liburing.h>\n', 'liburing.h belongs'),
    ('src/server/x.c', HEAD + 'long f(void)\n{\n    return clock_gettime(0, 0);\n}\n', 'outside base/clock.c'),
    ('src/server/x.c', HEAD + 'long f(void)\n{\n    return time (0);\n}\n', 'outside base/clock.c'),
    ('src/http/x.c', HEAD + 'long f(void)\n{\n    return read(0, 0, 0);\n}\n', 'uses no file descriptor'),
    ('src/odd/x.c', HEAD, 'is missing in ALLOWED_INCLUDES'),
    ('src/base/x.c', HEAD + 'struct conf_manager {\n    int x;\n};\n', '"manager" in the type name'),
    ('src/base/x.c', HEAD + 'void f(void *ctx);\n', 'banned name "ctx"'),
    ('src/base/x.c', HEAD + 'void tls_ctx_free(void)\n{\n}\n', '"ctx" in the function name'),
    ('src/base/x_util.c', HEAD, '"util" in a file name'),
    ('src/base/x.c', HEAD + 'typedef struct a b;\n', 'typedef of a struct'),
    ('src/base/x.c', HEAD + 'typedef int small_t;\n', 'ends in _t'),
    ('src/base/x.c', HEAD + 'void f(void)\n{\n' + '    x();\n' * 60 + '}\n', 'has 63 lines (at most 60)'),
    ('src/base/x.c', HEAD + 'void head_parse(int a,\n                int b)\n{\n' + '    x();\n' * 90 + '}\n', None),
    ('src/http/url.c', HEAD + 'void f(void)\n{\n' + '    x();\n' * 100 + '}\n', 'has 103 lines (at most 100)'),
    ('src/base/x.c', HEAD + 'int a;\n' * 500, 'lines (at most 500)'),
    ('tests/http/test_x.py', 'a = 1\n' * 501, '501 lines (at most 500)'),
    ('tests/http/test_x.py', '\ta = "' + 'a' * 120 + '"\n', None),
    ('src/base/x.c', HEAD + '\tint a;\n', 'a tab'),
    ('src/base/x.c', HEAD + '/* ' + 'a' * 115 + ' */\n', 'columns'),
    ('src/base/x.h', HEAD + '/* ' + 'a' * 115 + ' */\n', 'columns'),
    ('src/base/x.c', 'int a;\n', 'does not begin with a comment'),
    ('src/base/x.c', HEAD + '/* TO' + 'DO: all of it */\n', 'finish it'),
    ('src/base/x.c', HEAD + '#ifdef LINUX\n#endif\n', 'outside a backend'),
    ('src/io/loop_uring.c', HEAD + '#include <liburing.h>\n#if A\n#endif\n', None),
]


def self_test():
    failed = 0
    for path, text, expected in SELF_TEST:
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), 'w', encoding='utf-8') as stream:
                stream.write(text)
            faults = check_tree(root)
        good = not faults if expected is None else len(faults) == 1 and expected in faults[0]
        if not good:
            failed += 1
            print(f'{path}: expected {expected!r}, found {faults}')
    print(f'{len(SELF_TEST)} trees, {failed} with an unexpected result')
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('root', metavar='ROOT', nargs='?', default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                        help='the root of the repository (default: of this one)')
    parser.add_argument('--self-test', action='store_true', help='instead, checks generated trees with one fault each')
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not os.path.isdir(os.path.join(options.root, 'src')):
        parser.error(f'{options.root} has no directory src')
    faults = check_tree(options.root)
    for fault in faults:
        print(fault)
    print(f'{len(faults)} faults')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
