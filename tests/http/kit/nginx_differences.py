"""What sluice does otherwise than nginx on purpose: the table that the generated comparison allows, with the reason for each row.

src/import/README.md has the same list in prose.
"""
import re

ALL = None  # the whole answer is another one
# What a location adds to its answers.
SHAPED = ('x-where', 'x-only', 'cache-control', 'expires', 'vary', 'content-type')


def method(request):
    return request.split(' ', 1)[0]


def target(request):
    return request.split(' | ')[0].split(' ', 1)[1]


def field(request, name):
    return next((part[len(name) + 2:] for part in request.split(' | ')[1:] if part.startswith(f'{name}: ')), '')


def charset_alone(there, here):
    kind, _, charset = here.get('content-type', '').partition('; charset=')
    return charset and there.get('content-type') == kind and kind.startswith('text/')


def named_codes(text):
    """Statuses that error_page of the site speaks of, or answers with."""
    return {int(code) for line in re.findall(r'error_page ([^;]*);', text) for code in re.findall(r'\b[2-5]\d\d\b', line)}


# (what, why, names of what may differ, whether it is so in this case)
DELIBERATE = (
    ('OPTIONS is answered for files, with 204 and Allow', 'RFC 9110 9.3.7', ALL,
     lambda text, request, there, here: method(request) == 'OPTIONS' and here.get('status') == 204),
    ('a method that is not known is 501, not 405', 'RFC 9110 15.6.2', ALL,
     lambda text, request, there, here: method(request) == 'PROPFIND' and here.get('status') == 501),
    ('a fragment in a request target is refused', 'RFC 9112 3.2: no request target has one', ALL,
     lambda text, request, there, here: '#' in target(request) and here.get('status') == 400),
    ('control characters in a path are refused', 'they split header fields and lines of logs', ALL,
     lambda text, request, there, here: re.search('%0[0-9a-f]', target(request)) and here.get('status') == 400),
    ('a Range that is not valid is ignored, and a large one is cut', 'RFC 9110 14.1.2, 14.2', ALL,
     lambda text, request, there, here: there.get('status') == 416 and here.get('status') in (200, 206) and
        re.search(r'bytes=(x|5-2|\d*-\d{19,})$|lines', field(request, 'Range'))),
    ('416 has the fields of an error', 'nginx adds those of the answer that is refused, too', SHAPED,
     lambda text, request, there, here: there.get('status') == here.get('status') == 416),
    ('names that begin with a dot are hidden', 'they are rarely meant to be served', ALL,
     lambda text, request, there, here: re.search(r'/(\.|%2e)(hid|git)', target(request), re.I)),
    ('If-None-Match: * fits any answer', 'RFC 9110 13.1.2; nginx wants an ETag', ALL,
     lambda text, request, there, here: 'etag off' in text and field(request, 'If-None-Match') == '*' and here.get('status') in (304, 412)),
    ('the first error stands where its page fails', 'the cause is the first one', ALL,
     lambda text, request, there, here: 400 <= there.get('status', 0) != here.get('status') in named_codes(text)),
    ('the page of an error is asked for without the body of the request', 'it is asked for with GET', ('body', 'length'),
     lambda text, request, there, here: 'error_page' in text and b'content-length: 0' in here.get('body', b'')),
    ('cycles of internal redirects end after ten, with the URI that the next one has', 'nginx says 500 there, too', SHAPED,
     lambda text, request, there, here: there.get('status') == here.get('status') == 500),
    ('server_name_in_redirect without a name leaves the redirect relative', 'nginx: http://:80/', ('location',),
     lambda text, request, there, here: there.get('location', '').startswith('http://:PORT')),
    ('what a rewrite or an if of the server answers has the fields of the location', 'the location is found first', SHAPED,
     lambda text, request, there, here: there.get('status') == here.get('status') and re.search('^    (rewrite|if) ', text, re.M)),
    ('a path that climbs behind the prefix of an alias is refused', 'it leads out of the folder', ALL,
     lambda text, request, there, here: 'alias' in text and re.search(r'\.\.', target(request)) and here.get('status') == 404),
    ('a location with gzip_static says Vary', 'a cache may hold both forms', ('vary',),
     lambda text, request, there, here: 'gzip_static' in text and here.get('vary', '').startswith('Accept-Encoding')),
    ('a status that nginx has no page for has one', 'each error has a page', ('body', 'length', 'content-type', 'vary'),
     lambda text, request, there, here: there.get('body') == b'' and f'return {there["status"]};' in text),
    ('a request that is refused before its head is read is of no server in particular', 'its Host is not known',
     SHAPED,
     lambda text, request, there, here: there.get('status') == here.get('status') == 400),
    ('alias of a file with a slash behind it is 403 or 404', 'nginx: 500', ALL,
     lambda text, request, there, here: there.get('status') == 500 and 'alias' in text and here.get('status') in (403, 404)),
    ('a Range of another method than GET, or of parts that overlap, is ignored', 'RFC 9110 14.2', ALL,
     lambda text, request, there, here: there.get('status') in (206, 416) and here.get('status') == 200 and field(request, 'Range') and
        (method(request) != 'GET' or field(request, 'Range') == 'bytes=0-0,0-0,0-0')),
    ('the redirect to what passes requests on has no fields of that location', 'import writes a location of its own for it',
     SHAPED,
     lambda text, request, there, here: there.get('status') == here.get('status') == 301 and 'proxy_pass' in text and
        there.get('location', '').split('?')[0].endswith('/')),
    ('an answer has a type, with default_type "" too', 'clients would guess it', ('content-type',),
     lambda text, request, there, here: 'default_type ""' in text and 'content-type' not in there),
    ('charset is said with all of text/*', 'one rule for all text', ('content-type',),
     lambda text, request, there, here: charset_alone(there, here)),
)


def explained(text, request, there, here):
    """True where rows of the table explain all that is different in the two answers to a request of the site of this text."""
    left = {name for name in {*there, *here} if there.get(name) != here.get(name)}
    for _, _, names, applies in DELIBERATE:
        if left and applies(text, request, there, here):
            left -= left if names is ALL else set(names)
    return not left
