"""What sluice does otherwise than nginx on purpose: the table that the generated comparison allows, with the reason for each row.

src/import/README.md has the same list in prose.
"""
import re
import urllib.parse

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


def same_but_slashes(one, other):
    return re.sub('/+', '/', one or '') == re.sub('/+', '/', other or '')


def members(value):
    return [name for name in (value or '').split(', ') if name]


def named_codes(text):
    """Statuses that error_page of the site speaks of, or answers with."""
    return {int(code) for line in re.findall(r'error_page ([^;]*);', text) for code in re.findall(r'\b[2-5]\d\d\b', line)}


def refuses_range(there):
    """By 416, or by what error_page says of it."""
    return there.get('status') == 416 or there.get('content-range', '').startswith('bytes */')


def beside(text, request, there, here):
    """nginx has joined alias and the rest of the path without a slash: one of the two has found nothing there."""
    return 404 in (there.get('status'), here.get('status'))


def says_coding(there, here):
    """Vary is that of nginx, and Accept-Encoding: where nginx has a page of its own, Accept, too."""
    more = [name for name in members(here.get('vary')) if name not in members(there.get('vary'))]
    return 'Accept-Encoding' in more and set(more) <= {'Accept-Encoding', *([] if 'body' in there else ['Accept'])}


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
     lambda text, request, there, here: refuses_range(there) and here.get('status') in (200, 206) and
        re.search(r'bytes=(x|5-2|\d*-\d{19,})$|lines', field(request, 'Range'))),
    ('416 has the fields of an error', 'nginx adds those of the answer that is refused, too', (*SHAPED, 'content-range'),
     lambda text, request, there, here: there.get('status') == here.get('status') >= 400 and
        (there['status'] == 416 or there.get('content-range', '').startswith('bytes */'))),
    ('names that begin with a dot are hidden', 'they are rarely meant to be served', ALL,
     lambda text, request, there, here: re.search('/\\.(hid|git)', urllib.parse.unquote(target(request)))),
    ('If-None-Match: * fits any answer, whatever If-Modified-Since says', 'RFC 9110 13.1.2, 13.1.3; nginx wants an ETag, and both', ALL,
     lambda text, request, there, here: field(request, 'If-None-Match') == '*' and here.get('status') in (304, 412)),
    ('no condition is asked of a text of the configuration', 'RFC 9110 13.2.1: they are of a resource with validators', ALL,
     lambda text, request, there, here: 'If-' in request and there.get('status') in (304, 412) and 'return 20' in text),
    ('a list of a folder looks otherwise', 'each server has its own', ('body', 'content-type', 'length'),
     lambda text, request, there, here: b'<title>Index of' in there.get('body', b'') or ('autoindex on' in text and method(request) == 'HEAD' and not there.get('length'))),
    ('fields of an error that is redirected are passed on', 'a client may heed Retry-After there', ('retry-after',),
     lambda text, request, there, here: 'error_page' in text and 300 <= here.get('status', 0) < 400),
    ('what was captured is encoded in a redirect', 'nginx: a query out of a path', ('location',),
     lambda text, request, there, here: 'rewrite' in text and same_but_slashes(urllib.parse.unquote(here.get('location', ''), 'latin-1'), urllib.parse.unquote(there.get('location', ''), 'latin-1'))),
    ('an answer without a body has no type', 'there is nothing that it would be of', ('content-type',),
     lambda text, request, there, here: here.get('length') == '0' and 'content-type' not in here),
    ('the page of an error is asked for without the body of the request', 'it is asked for with GET', ('body', 'length'),
     lambda text, request, there, here: 'error_page' in text and b'content-length: 0' in here.get('body', b'')),
    ('cycles of internal redirects end after ten, with the URI that the next one has', 'nginx says 500 there, too', SHAPED,
     lambda text, request, there, here: there.get('status') == here.get('status') == 500),
    ('internal redirects merge slashes, too, and may then go round', 'one location answers both forms', ALL,
     lambda text, request, there, here: '//' in there.get('x-where', '') and here.get('status') == 500 and re.search(r'try_files [^;]*\$uri/;', text)),
    ('internal redirects merge slashes, too', 'one location answers both forms', ('x-where',),
     lambda text, request, there, here: '//' in there.get('x-where', '') and same_but_slashes(there['x-where'], here.get('x-where'))),
    ('an answer with trailers goes in chunks', 'RFC 9112 7.1.2', ('length',), lambda text, request, there, here: 'add_trailer' in text),
    ('a relative Location of a server behind stays relative', 'it is right behind every name and port', ('location',),
     lambda text, request, there, here: 'proxy_pass' in text and here.get('location', '').startswith('/') and
        re.sub('^https?://[^/]*', '', there.get('location', '')) == here['location']),
    ('the page of an error is whole, and not asked for with conditions', 'they are of the resource that was asked for', ALL,
     lambda text, request, there, here: 'error_page' in text and here.get('status') == 200 and there.get('status') in (206, 304, 412, 416)),
    ('the page of an error says its own type', 'not that of the answer that led there', ('content-type',),
     lambda text, request, there, here: 'X-Accel-Redirect' in request and here.get('status', 0) >= 400),
    ('no part of an empty file is there', 'RFC 9110 15.5.17', ALL,
     lambda text, request, there, here: 'empty' in target(request) and field(request, 'Range') and here.get('status') == 416),
    ('charset is said with what this server has itself', 'a server behind says its own', ('content-type',),
     lambda text, request, there, here: 'proxy_pass' in text and there.get('content-type', '').startswith(here.get('content-type', '-') + '; charset=')),
    ('expires of multipart/byteranges is that of this type', 'nginx: of the parts', ('expires', 'cache-control'),
     lambda text, request, there, here: here.get('content-type') == 'multipart/byteranges'),
    ('a blank in a URI that variables have made is encoded', 'RFC 9112 3.2; nginx passes it on as it is', ALL,
     lambda text, request, there, here: '%20' in target(request) and 'proxy_pass' in text and here.get('x-said') == 'yes' and
        (b'Bad request syntax' in there.get('body', b'') or b'%20' in here.get('body', b'') or method(request) == 'HEAD')),
    ('a list of a folder has a length', 'it is made before it is sent', ('length',),
     lambda text, request, there, here: 'autoindex on' in text and there.get('length') is None),
    ('a large Range is cut before error_page 416 is asked', 'RFC 9110 14.1.2', ALL,
     lambda text, request, there, here: here.get('status') == 206 and re.search(r'-\d{19,}$', field(request, 'Range'))),
    ('WWW-Authenticate is said once', 'nginx says it again with the page of the error', ('www-authenticate',),
     lambda text, request, there, here: there.get('www-authenticate') == ', '.join([here.get('www-authenticate', '')] * 2)),
    ('alias names a folder, with a slash behind it or not', 'no file beside the folder is served', ALL,
     lambda text, request, there, here: re.search('alias [^;]*[^/;];', text) and beside(text, request, there, here)),
    ('server_name_in_redirect without a name leaves the redirect relative', 'nginx: http://:80/', ('location',),
     lambda text, request, there, here: re.match('http://(:PORT)?/', there.get('location', ''))),
    ('a path that climbs behind the prefix of an alias is refused', 'it leads out of the folder', ALL,
     lambda text, request, there, here: re.search('alias|proxy_pass', text) and re.search(r'\.\.', target(request)) and here.get('status') == 404),
    ('a location with gzip_static says Vary', 'a cache may hold both forms', ('vary',),
     lambda text, request, there, here: 'gzip_static' in text and here.get('vary', '').startswith('Accept-Encoding')),
    ('what could be encoded says Vary: Accept-Encoding', 'RFC 9110 12.5.5; nginx: with gzip_vary alone', ('vary',),
     lambda text, request, there, here: re.search('gu?n?zip on', text) and says_coding(there, here)),
    ('pages of errors are encoded, whatever their status', 'nginx encodes those of 403 and 404', ('content-encoding',),
     lambda text, request, there, here: 'gzip on' in text and 'body' not in there and here.get('content-encoding') == 'gzip'),
    ('Accept-Encoding: * takes gzip', 'RFC 9110 12.5.3', ('content-encoding', 'length', 'accept-ranges'),
     lambda text, request, there, here: field(request, 'Accept-Encoding') == '*' and here.get('content-encoding') == 'gzip'),
    ('If-Match and If-Unmodified-Since are asked of the server behind, and not of a stored answer', 'RFC 9111 4.3.2', ALL,
     lambda text, request, there, here: here.get('x-cache') == 'BYPASS' and re.search('If-(Match|Unmodified)', request)),
    ('If-Range is compared with the date of the file', 'add_header hides it from the client alone', ALL,
     lambda text, request, there, here: 'add_header Last-Modified ""' in text and 'If-Range' in request and (there.get('status'), here.get('status')) == (200, 206)),
    ('ranges of what may be stored are given', 'the stored answer has them', ('accept-ranges',),
     lambda text, request, there, here: 'x-cache' in here and here.get('accept-ranges') == 'bytes'),
    ('a Range is given of what may be stored, from the first answer on', 'the next one has it', ALL,
     lambda text, request, there, here: 'x-cache' in here and field(request, 'Range') and (there.get('status'), here.get('status')) == (200, 206)),
    ('a link inside a path that disable_symlinks refuses is 403', 'nginx documents that access is denied; its 404 is that of ENOTDIR', ALL,
     lambda text, request, there, here: re.search('disable_symlinks (on|if)', text) and 'link-folder' in target(request)),
    ('parts of multipart/byteranges have the type of their file', 'it is there with default_type "", too', ('body',),
     lambda text, request, there, here: 'default_type ""' in text and here.get('content-type') == 'multipart/byteranges'),
    ('the page of an error that the rules of a server answer is given', 'nginx asks these rules for it again, and has its built-in page', ALL,
     lambda text, request, there, here: there.get('status', 0) >= 400 and 'body' not in there and 'error_page' in text and
        re.search('^    (return|if|rewrite) ', text, re.M) and (here.get('status') in named_codes(text) | {200, 206, 304})),
    ('the answer to a request with Authorization is not stored', 'RFC 9111 3.5; nginx stores it', ALL,
     lambda text, request, there, here: there.get('x-cache') == 'HIT' and here.get('x-cache') == 'MISS' and field(request, 'Authorization')),
    ('a field that proxy_set_header names twice has the last value', 'nginx sends both', ('body', 'length'),
     lambda text, request, there, here: text.count('proxy_set_header X-Mine') > 1 and
        [line for line in there.get('body', b'').split(b'\n') if not line.startswith(b'x-mine: ')] ==
        [line for line in here.get('body', b'').split(b'\n') if not line.startswith(b'x-mine: ')]),
    ('a status that nginx has no page for has one', 'each error has a page', ('body', 'length', 'content-type', 'content-encoding', 'vary'),
     lambda text, request, there, here: there.get('body') == b'' and f'return {there["status"]};' in text),
    ('a request that is refused before its head is read is of no server in particular', 'its Host is not known',
     SHAPED,
     lambda text, request, there, here: there.get('status') == here.get('status') == 400),
    ('alias of a file with a slash behind it is 403 or 404', 'nginx: 500', ALL,
     lambda text, request, there, here: there.get('status') == 500 and 'alias' in text and here.get('status') in (200, 403, 404)),
    ('a Range of another method than GET, or of parts that overlap, is ignored', 'RFC 9110 14.2', ALL,
     lambda text, request, there, here: (there.get('status') == 206 or refuses_range(there)) and here.get('status') == 200 and field(request, 'Range') and
        (method(request) != 'GET' or field(request, 'Range') == 'bytes=0-0,0-0,0-0')),
    ('the redirect to what passes requests on has no fields of that location', 'import writes a location of its own for it',
     SHAPED,
     lambda text, request, there, here: there.get('status') == here.get('status') and 'proxy_pass' in text and
        (there.get('location', '').split('?')[0].endswith('/') or 'internal' in text and there['status'] == 404)),
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
