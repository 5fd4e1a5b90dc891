"""The intended differences between sluice and nginx that the generated comparison permits, with the reason for each row.

src/import/README.md has the same list in prose.
"""
import re
import urllib.parse

ALL = None  # the whole response differs
# Header fields that directives of a location add to responses.
LOCATION_FIELDS = ('x-where', 'x-only', 'cache-control', 'expires', 'vary', 'content-type')


def method(request):
    return request.split(' ', 1)[0]


def target(request):
    return request.split(' | ')[0].split(' ', 1)[1]


def field(request, name):
    return next((part[len(name) + 2:] for part in request.split(' | ')[1:] if part.startswith(f'{name}: ')), '')


def differs_by_charset(by_nginx, by_sluice):
    kind, _, charset = by_sluice.get('content-type', '').partition('; charset=')
    return charset and by_nginx.get('content-type') == kind and kind.startswith('text/')


def equal_except_slashes(one, other):
    return re.sub('/+', '/', one or '') == re.sub('/+', '/', other or '')


def list_members(value):
    return [name for name in (value or '').split(', ') if name]


def ruled_codes(text):
    """The statuses in the `return` directives of servers, alone or in an `if`."""
    return {int(code) for code in re.findall(r'^    (?:if [^\n]*\{\n        )?return (\d{3})', text, re.M)}


def pages(text, *codes):
    """The error_page directives with any of these statuses."""
    return [line for line in re.findall(r'error_page ([^;]*);', text) if {str(code) for code in codes} & set(line.split())]


def changed_codes(text, *codes):
    """The statuses of responses that error_page may put in the place of these; empty without such a directive."""
    lines = pages(text, *codes)
    return {200, 206, 301, 302, 304, 403, 404, 405, 410, 500} | {int(code) for line in lines for code in re.findall(r'=(\d{3})', line)} if lines else set()


def refuses_range(by_nginx):
    """Whether nginx's response is a 416, or the error page of one."""
    return by_nginx.get('status') == 416 or by_nginx.get('content-range', '').startswith('bytes */')


def reordered(one, other):
    """Whether two lists have the same members in another order."""
    return sorted(list_members(one)) == sorted(list_members(other))


def uri_of(found):
    """$uri in the X-Where of a response."""
    return found.get('x-where', '').partition(' ')[2].split(' ')[0]


def requests_folder(request):
    """True if the path of the target has the form of a folder's path."""
    return urllib.parse.unquote(target(request).split('?')[0]).endswith(('/', '/.', '/..'))


def aliases_without_slash(text):
    """Locations whose path and alias both end without a slash: nginx joins the alias and the rest of the path."""
    return re.findall(r'location (?:\^~ )?"?(/[^ "]*[^/ "]|/)"? \{(?:[^{}]|\{[^{}]*\})*?alias [^;]*[^/;];', text)


def has_alias_without_slash(text, request):
    """True if nginx opens a file beside the folder of an alias."""
    path = re.sub('/+', '/', urllib.parse.unquote(target(request).split('?')[0]))
    begins = [path[len(prefix):] for prefix in aliases_without_slash(text) if path.startswith(prefix)]
    return any(rest and rest[0] != '/' for rest in begins)


def uses_of_no_group(text):
    """Labels of the locations that use $1, while their own pattern has no group, or beside an `if` with a pattern."""
    block = r'(?:[^{}]|\{[^{}]*\})*'
    label = r'\{\n[^{}]*?add_header X-Where "(\S+) '
    return set(re.findall(r'location ~\*? [^(\n]*' + label + block + r'\$1', text)) | set(
        re.findall(r'location ~[^\n]*' + label + block + r'if \([^\n]*~[^\n]*\{[^{}]*(?:\}' + block + r')?\$1', text))


def adds_accept_encoding(by_nginx, by_sluice):
    """Whether sluice's Vary adds Accept-Encoding to that of nginx, and, where nginx sends a built-in page, Accept."""
    more = [name for name in list_members(by_sluice.get('vary')) if name not in list_members(by_nginx.get('vary'))]
    return 'Accept-Encoding' in more and set(more) <= {'Accept-Encoding', *([] if 'body' in by_nginx else ['Accept'])}


# (difference, reason, names of the properties that may differ, whether the row applies to this case)
INTENDED = (
    ('OPTIONS for files is 204 with Allow', 'RFC 9110 9.3.7', ALL,
     lambda text, request, by_nginx, by_sluice: method(request) == 'OPTIONS' and
        (by_sluice.get('status') == 204 or by_nginx.get('status') == 405 and by_sluice.get('status', 0) >= 400 and '@first' in text)),
    ('an unknown method is 501, not 405', 'RFC 9110 15.6.2', ALL,
     lambda text, request, by_nginx, by_sluice: method(request) == 'PROPFIND' and by_sluice.get('status') == 501),
    ('a fragment in a request target is rejected', 'RFC 9112 3.2 permits none', ALL,
     lambda text, request, by_nginx, by_sluice: '#' in target(request) and by_sluice.get('status') == 400),
    ('control characters in a path are rejected', 'they could split header fields and log lines', ALL,
     lambda text, request, by_nginx, by_sluice: re.search('%0[0-9a-f]', target(request)) and by_sluice.get('status') == 400),
    ('an invalid Range is ignored, and the end of a large one is reduced to the end of the file', 'RFC 9110 14.1.2, 14.2', ALL,
     lambda text, request, by_nginx, by_sluice: refuses_range(by_nginx) and by_sluice.get('status') in (200, 206) and
        re.search(r'bytes=(x|5-2|\d*-\d{19,})$|lines', field(request, 'Range'))),
    ('416 has the fields of an error', 'nginx also adds those of the response that it replaces', (*LOCATION_FIELDS, 'content-range', 'x-if'),
     lambda text, request, by_nginx, by_sluice: by_nginx.get('status') == by_sluice.get('status') >= 400 and
        (by_nginx['status'] == 416 or by_nginx.get('content-range', '').startswith('bytes */'))),
    ('names that begin with a dot are hidden', 'such files are rarely public', ALL,
     lambda text, request, by_nginx, by_sluice: re.search('/\\.(hid|git)', urllib.parse.unquote(target(request)))),
    ('If-None-Match: * matches any representation, and If-Modified-Since is ignored', 'RFC 9110 13.1.2, 13.1.3; nginx requires an ETag, and evaluates both', ALL,
     lambda text, request, by_nginx, by_sluice: field(request, 'If-None-Match') == '*' and by_sluice.get('status') in (304, 412)),
    ('preconditions do not apply to a text from `return`', 'RFC 9110 13.2.1: such a response has no validators', ALL,
     lambda text, request, by_nginx, by_sluice: 'If-' in request and by_nginx.get('status') in (304, 412) and 'return 20' in text),
    ('a directory listing differs', 'each server has its own format', ('body', 'content-type', 'length'),
     lambda text, request, by_nginx, by_sluice: b'<title>Index of' in by_nginx.get('body', b'') or ('autoindex on' in text and method(request) == 'HEAD' and not by_nginx.get('length'))),
    ('fields of an error that is redirected are passed on', 'a client may use Retry-After there', ('retry-after',),
     lambda text, request, by_nginx, by_sluice: 'error_page' in text and by_sluice.get('status', 0) >= 300),
    ('captures are encoded in a redirect', 'nginx: characters of a path can become a query', ('location',),
     lambda text, request, by_nginx, by_sluice: 'rewrite' in text and equal_except_slashes(urllib.parse.unquote(by_sluice.get('location', ''), 'latin-1'), urllib.parse.unquote(by_nginx.get('location', ''), 'latin-1'))),
    ('a response without a body has no Content-Type', 'RFC 9110 8.3: it describes the content', ('content-type',),
     lambda text, request, by_nginx, by_sluice: by_sluice.get('length') == '0' and 'content-type' not in by_sluice),
    ('an error page is requested without the body of the request', 'it is requested with GET', ('body', 'length'),
     lambda text, request, by_nginx, by_sluice: 'error_page' in text and b'content-length: 0' in by_sluice.get('body', b'')),
    ('cycles of internal redirects end after ten, with the URI of the next one', 'nginx also ends them with 500', LOCATION_FIELDS,
     lambda text, request, by_nginx, by_sluice: by_nginx.get('status') == by_sluice.get('status') == 500),
    ('internal redirects also merge slashes, which may cause a cycle', 'both forms select the same location', ALL,
     lambda text, request, by_nginx, by_sluice: by_sluice.get('status') == 500 and re.search(r'try_files [^;]*\$uri/;', text)),
    ('internal redirects also merge slashes', 'both forms select the same location', ('x-where',),
     lambda text, request, by_nginx, by_sluice: '//' in by_nginx.get('x-where', '') and equal_except_slashes(by_nginx['x-where'], by_sluice.get('x-where'))),
    ('a response with trailers is sent in chunks', 'RFC 9112 7.1.2', ('length',), lambda text, request, by_nginx, by_sluice: 'add_trailer' in text),
    ('a relative Location of an upstream server stays relative', 'it is correct for every host name and port', ('location',),
     lambda text, request, by_nginx, by_sluice: 'proxy_pass' in text and by_sluice.get('location', '').startswith('/') and
        re.sub('^https?://[^/]*', '', by_nginx.get('location', '')) == by_sluice['location']),
    ('an error page is sent completely and unconditionally', 'range and preconditions apply to the requested resource', ALL,
     lambda text, request, by_nginx, by_sluice: 'error_page' in text and by_sluice.get('status') == 200 and by_nginx.get('status') in (206, 304, 412, 416)),
    ('an error page has its own Content-Type', 'nginx: that of the response with X-Accel-Redirect', ('content-type',),
     lambda text, request, by_nginx, by_sluice: 'X-Accel-Redirect' in request and by_sluice.get('status', 0) >= 400),
    ('no range of an empty file is satisfiable', 'RFC 9110 15.5.17', ALL,
     lambda text, request, by_nginx, by_sluice: 'empty' in urllib.parse.unquote(target(request)) and field(request, 'Range') and
        by_sluice.get('status') in {416} | changed_codes(text, 416)),
    ('expires uses the type multipart/byteranges', 'nginx: that of the parts', ('expires', 'cache-control'),
     lambda text, request, by_nginx, by_sluice: by_sluice.get('content-type') == 'multipart/byteranges'),
    ('a space in a URI from variables is encoded', 'RFC 9112 3.2; nginx passes it on', ALL,
     lambda text, request, by_nginx, by_sluice: '%20' in target(request) and 'proxy_pass' in text and
        (b'Bad request syntax' in by_nginx.get('body', b'') or method(request) == 'HEAD' and by_nginx.get('status') == 400 or
         by_sluice.get('status') == 200 and (b'%20' in by_sluice.get('body', b'') or method(request) == 'HEAD'))),
    ('a directory listing has Content-Length', 'it is generated before it is sent', ('length',),
     lambda text, request, by_nginx, by_sluice: 'autoindex on' in text and by_nginx.get('length') is None),
    ('a large Range is reduced before error_page 416 applies', 'RFC 9110 14.1.2', ALL,
     lambda text, request, by_nginx, by_sluice: by_sluice.get('status') == 206 and re.search(r'-\d{19,}$', field(request, 'Range'))),
    ('WWW-Authenticate is sent once', 'nginx repeats it with the error page', ('www-authenticate',),
     lambda text, request, by_nginx, by_sluice: by_nginx.get('www-authenticate') == ', '.join([by_sluice.get('www-authenticate', '')] * 2)),
    ('alias is a directory, with or without a trailing slash', 'no file beside the directory is served', ALL,
     lambda text, request, by_nginx, by_sluice: has_alias_without_slash(text, request) and by_nginx.get('status') in {404} | changed_codes(text, 404)),
    ('a dot behind the prefix of an alias is not the directory', 'no file has this name', ALL,
     lambda text, request, by_nginx, by_sluice: 'alias' in text and urllib.parse.unquote(target(request).split('?')[0]).endswith('.') and by_nginx.get('status') == 301 and
        by_sluice.get('status') in {404} | changed_codes(text, 404)),
    ('a path beside the directory of alias is not a file', 'as above', ('body', 'length'),
     lambda text, request, by_nginx, by_sluice: has_alias_without_slash(text, request) and "$request_filename" in text),
    ('groups keep their values until another pattern with groups matches', 'other patterns capture nothing; nginx deletes the values', ALL,
     lambda text, request, by_nginx, by_sluice: {by_nginx.get('x-where', '').split(' ')[0], by_sluice.get('x-where', '').split(' ')[0]} & uses_of_no_group(text)),
    ('server_name_in_redirect without a name leaves the redirect relative', 'nginx: http://:80/', ('location',),
     lambda text, request, by_nginx, by_sluice: re.match('http://(:PORT)?/', by_nginx.get('location', ''))),
    ('a path with ".." after the prefix of an alias is rejected', 'it leaves the directory', ALL,
     lambda text, request, by_nginx, by_sluice: re.search('alias|proxy_pass', text) and '..' in urllib.parse.unquote(target(request)) and
        by_sluice.get('status') in {404} | changed_codes(text, 404)),
    ('a location with gzip_static adds Vary', 'a cache may store both representations', ('vary',),
     lambda text, request, by_nginx, by_sluice: 'gzip_static' in text and by_sluice.get('vary', '').startswith('Accept-Encoding')),
    ('a response that could be encoded has Vary: Accept-Encoding', 'RFC 9110 12.5.5; nginx: only with gzip_vary', ('vary',),
     lambda text, request, by_nginx, by_sluice: re.search('gu?n?zip on', text) and adds_accept_encoding(by_nginx, by_sluice)),
    ('responses of all statuses are encoded', 'nginx: only those of 200, 403 and 404', ('content-encoding', 'length', 'accept-ranges', 'vary'),
     lambda text, request, by_nginx, by_sluice: 'gzip on' in text and by_sluice.get('content-encoding') == 'gzip' and
        by_nginx.get('status') == by_sluice.get('status') and ('body' not in by_nginx or by_nginx['status'] not in (200, 403, 404))),
    ('the members of Vary may have another order', 'it has no meaning', ('vary',),
     lambda text, request, by_nginx, by_sluice: reordered(by_nginx.get('vary'), by_sluice.get('vary'))),
    ('with If-Match, If-Unmodified-Since is ignored', 'RFC 9110 13.1.4; nginx evaluates both', ALL,
     lambda text, request, by_nginx, by_sluice: field(request, 'If-Match') and field(request, 'If-Unmodified-Since') and
        by_nginx.get('status') in {412} | changed_codes(text, 412)),
    ("try_files in a location below one with an alias: $uri is the path of try_files", 'nginx cuts the alias off and adds the prefix of the location', ('x-where', 'location'),
     lambda text, request, by_nginx, by_sluice: 'try_files' in text and 'alias' in text and by_nginx.get('status') == by_sluice.get('status') and
        uri_of(by_nginx).endswith(uri_of(by_sluice))),
    ('the same for the last path of try_files', "nginx continues with a URI that has no slash at its beginning", ALL,
     lambda text, request, by_nginx, by_sluice: 'try_files' in text and 'alias' in text and uri_of(by_nginx)[:1] not in ('', '/')),
    ("an upstream server's error on an error page is passed on", 'it may be the page itself; nginx sends its built-in page',
     ('body', 'content-type', 'length', 'retry-after', 'x-echo'),
     lambda text, request, by_nginx, by_sluice: 'proxy_intercept_errors on' in text and 'body' not in by_nginx and
        by_nginx.get('status') == by_sluice.get('status') and bool(pages(text, by_nginx['status']))),
    ('the response to a cycle of internal redirects may have an error page', 'nginx sends its built-in page', ALL,
     lambda text, request, by_nginx, by_sluice: by_nginx.get('status') == 500 and 'body' not in by_nginx and bool(pages(text, 500)) and
        re.search('rewrite|try_files', text) and by_sluice.get('status') in changed_codes(text, 500)),
    ('Accept-Encoding: * accepts gzip', 'RFC 9110 12.5.3', ('content-encoding', 'length', 'accept-ranges'),
     lambda text, request, by_nginx, by_sluice: field(request, 'Accept-Encoding') == '*' and by_sluice.get('content-encoding') == 'gzip'),
    ('the upstream server evaluates If-Match and If-Unmodified-Since, the cache does not', 'RFC 9111 4.3.2', ALL,
     lambda text, request, by_nginx, by_sluice: by_sluice.get('x-cache') == 'BYPASS' and re.search('If-(Match|Unmodified)', request)),
    ('If-Range is compared with the date of the file', 'add_header hides it only from the client', ALL,
     lambda text, request, by_nginx, by_sluice: 'add_header Last-Modified ""' in text and 'If-Range' in request and by_nginx.get('status') == 200 and
        by_sluice.get('status') in (206, 416)),
    ('with proxy_cache_convert_head off, the response to a HEAD is not stored', 'a GET would get it without a body', ALL,
     lambda text, request, by_nginx, by_sluice: 'proxy_cache_convert_head off' in text and by_nginx.get('x-cache') == 'HIT' and by_sluice.get('x-cache') == 'MISS'),
    ('with proxy_cache_convert_head off, a HEAD keeps its preconditions', 'nothing is stored, so the upstream server may evaluate them', ('body', 'length'),
     lambda text, request, by_nginx, by_sluice: 'proxy_cache_convert_head off' in text and method(request) == 'HEAD' and 'If-' in request),
    ('$request_filename has single slashes', 'also with merge_slashes off', ('body', 'length'),
     lambda text, request, by_nginx, by_sluice: 'merge_slashes off' in text and '$request_filename' in text and '//' in target(request)),
    ('a directory listing has no validators, so If-None-Match: * does not match it', 'it is generated for each request', ALL,
     lambda text, request, by_nginx, by_sluice: 'autoindex on' in text and field(request, 'If-None-Match') == '*' and by_nginx.get('status') == 304 and
        b'<title>/' in by_sluice.get('body', b'<title>/')),
    ('a stored response without Last-Modified is compared by its Date', 'RFC 9111 4.3.2', ALL,
     lambda text, request, by_nginx, by_sluice: 'proxy_cache ' in text and field(request, 'If-Modified-Since') and by_sluice.get('status') == 304 and
        'last-modified' not in by_nginx and by_nginx.get('status') == 200),
    ('a path that try_files found is passed on from its error page', 'nginx passes the path of the request', ('body', 'length'),
     lambda text, request, by_nginx, by_sluice: 'try_files' in text and 'error_page' in text and by_nginx.get('x-echo') == 'yes' and
        by_nginx.get('body', b'').split(b'\n')[1:] == by_sluice.get('body', b'').split(b'\n')[1:]),
    ('groups of a server_name keep their values', 'nginx deletes them before it evaluates an `if` with a pattern', ('body', 'length'),
     lambda text, request, by_nginx, by_sluice: 'server_name "~' in text and re.search(r'if \([^\n]*~[^\n]*\{[^{}]*\$1', text)),
    ('the groups of a pattern in a map are not $1 of the request', 'they belong to the value of its row', ('body', 'length'),
     lambda text, request, by_nginx, by_sluice: 'x-echo' not in by_nginx and re.search(r'map [^{]*\{[^}]*~\*?[^\n]*\(', text) and
        re.search(r'return \d+ "[^"]*\$1', text)),
    ('index names files', 'nginx also accepts a directory', ALL,
     lambda text, request, by_nginx, by_sluice: 'index folder/' in text and re.search(' /+folder/', by_nginx.get('x-where', '')) and
        by_sluice.get('status') in {403} | changed_codes(text, 403) | ({200} if 'autoindex on' in text else set())),
    ('proxy_method also holds for a HEAD that fills the cache', 'nginx sends GET, and stores the response to it', ALL,
     lambda text, request, by_nginx, by_sluice: 'proxy_method' in text and 'x-cache' in by_sluice and method(request) == 'HEAD' and
        by_nginx.get('status') == by_sluice.get('status')),
    ('error_page 416 adds the fields of its location once', 'nginx also adds them to the response that it replaces',
     (*LOCATION_FIELDS, 'x-if', 'content-range'),
     lambda text, request, by_nginx, by_sluice: 'error_page' in text and field(request, 'Range') and
        by_nginx.get('x-where', '').endswith(', ' + by_sluice.get('x-where', ' '))),
    ('gzip_proxied permits encoding only where its parameters apply', 'nginx also encodes without Expires and Cache-Control',
     ('content-encoding', 'length', 'accept-ranges', 'vary'),
     lambda text, request, by_nginx, by_sluice: 'gzip_proxied' in text and field(request, 'Via') and 'content-encoding' not in by_sluice and
        by_nginx.get('content-encoding') == 'gzip' and not {'expires', 'cache-control'} & set(by_nginx)),
    ('a URI that a rewrite takes out of the prefix of an alias is a path below its directory', 'nginx cuts its first bytes off', ALL,
     lambda text, request, by_nginx, by_sluice: 'alias' in text and re.search('rewrite [^;]* break;', text) and by_nginx.get('status') == 500 and
        by_sluice.get('status') in {200, 206, 304, 404, 412, 416} | changed_codes(text, 404)),
    ('with proxy_buffering off, responses are stored, too', 'the cache does not need buffers', ALL,
     lambda text, request, by_nginx, by_sluice: 'proxy_buffering off' in text and by_nginx.get('x-cache') == 'MISS' and by_sluice.get('x-cache') == 'HIT'),
    ('return 204 has no text, also as an error page', 'nginx sends it with the status of the error', ('body', 'content-type', 'length'),
     lambda text, request, by_nginx, by_sluice: 'return 204 "' in text and 'error_page' in text and by_sluice.get('status', 0) >= 300 and
        by_sluice.get('body') == b''),
    ('a Range applies to the file, so the response is not encoded', 'RFC 9110 14.2; nginx encodes the whole in its place', ALL,
     lambda text, request, by_nginx, by_sluice: 'gzip on' in text and by_nginx.get('content-encoding') == 'gzip' and field(request, 'Range') and
        by_nginx['status'] == 200 and by_sluice.get('status') in (206, 416) and 'content-encoding' not in by_sluice),
    ('a response that may be stored supports ranges', 'the stored response supports them', ('accept-ranges',),
     lambda text, request, by_nginx, by_sluice: 'x-cache' in by_sluice and by_sluice.get('accept-ranges') == 'bytes'),
    ('the first response that is stored already supports ranges, or is 416', 'the next ones support them', ALL,
     lambda text, request, by_nginx, by_sluice: 'proxy_cache ' in text and field(request, 'Range') and by_nginx.get('status') == 200 and
        by_sluice.get('status') in {206, 416} | changed_codes(text, 416)),
    ('a path with a link that disable_symlinks rejects is 403', 'nginx documents that access is denied; its 404 results from ENOTDIR', ALL,
     lambda text, request, by_nginx, by_sluice: re.search('disable_symlinks (on|if)', text) and 'link-folder' in urllib.parse.unquote(target(request)) and
        (by_nginx.get('status') == 404 or pages(text, 404)) and by_sluice.get('status') in {403} | changed_codes(text, 403)),
    ('parts of multipart/byteranges have the type of their file', 'also with default_type "" and after X-Accel-Redirect', ('body',),
     lambda text, request, by_nginx, by_sluice: ('default_type ""' in text or 'X-Accel-Redirect' in request) and by_sluice.get('content-type') == 'multipart/byteranges'),
    ('an error from the rules of a server has its error page', 'nginx applies these rules to the page again and sends its built-in page', ALL,
     lambda text, request, by_nginx, by_sluice: 'body' not in by_nginx and any(
        by_nginx.get('status') in ({code, 500} if 'recursive_error_pages on' in text else {code}) and
        bool(pages(text, code)) and by_sluice.get('status') in changed_codes(text, code) | {code} for code in ruled_codes(text))),
    ('the response to a request with Authorization is not stored', 'RFC 9111 3.5; nginx stores it', ALL,
     lambda text, request, by_nginx, by_sluice: by_nginx.get('x-cache') == 'HIT' and by_sluice.get('x-cache') == 'MISS' and field(request, 'Authorization')),
    ('a field that proxy_set_header names twice has the last value', 'nginx sends both', ('body', 'length'),
     lambda text, request, by_nginx, by_sluice: text.count('proxy_set_header X-Mine') > 1 and
        [line for line in by_nginx.get('body', b'').split(b'\n') if not line.startswith(b'x-mine: ')] ==
        [line for line in by_sluice.get('body', b'').split(b'\n') if not line.startswith(b'x-mine: ')]),
    ('statuses for which nginx has no built-in page have one', 'each error has a page', ('body', 'length', 'content-type', 'content-encoding', 'vary'),
     lambda text, request, by_nginx, by_sluice: by_nginx.get('body') == b'' and f'return {by_nginx["status"]};' in text),
    ('a request that is rejected before its head is read gets the response of the default server', 'Host is unknown at this time',
     LOCATION_FIELDS,
     lambda text, request, by_nginx, by_sluice: by_nginx.get('status') == by_sluice.get('status') == 400),
    ('alias of a file with a trailing slash is 403 or 404', 'nginx: 500', ALL,
     lambda text, request, by_nginx, by_sluice: re.search(r'alias [^;]*\.txt;', text) and
        (requests_folder(request) or re.search('error_page [^;]*/folder/;', text)) and
        by_nginx.get('status') in {500} | changed_codes(text, 500) and by_sluice.get('status') in {403, 404} | changed_codes(text, 403, 404)),
    ('an error page is sent even if the body of the request is too large', 'the page is requested without it', ALL,
     lambda text, request, by_nginx, by_sluice: ' | =' in request and 'client_max_body_size' in text and 'error_page' in text and
        by_nginx.get('status') == 413 and by_sluice.get('status', 0) >= 400),
    ('the URI of an absolute form without a path begins with a slash', 'RFC 9112 3.2.2: it is that of /', ('location',),
     lambda text, request, by_nginx, by_sluice: re.match(r'http://[^/?]*\?', target(request)) and '$request_uri' in text and
        by_sluice.get('location', '').replace('/?', '?', 1) == by_nginx.get('location')),
    ('the same in the text of a `return`', 'as above', ('body', 'length'),
     lambda text, request, by_nginx, by_sluice: re.match(r'http://[^/?]*(\?|$| )', target(request)) and '$request_uri' in text and 'return' in text),
    ('the response to 204 has no type', 'it has no body', ('cache-control', 'expires'),
     lambda text, request, by_nginx, by_sluice: by_nginx.get('status') == by_sluice.get('status') == 204 and 'expires $e' in text),
    ('with a cache, a Range is not passed on', 'nginx passes it on below proxy_cache_min_uses', ('body', 'length'),
     lambda text, request, by_nginx, by_sluice: 'proxy_cache_min_uses' in text and field(request, 'Range') and by_nginx.get('x-echo') == 'yes'),
    ('a Range of a method other than GET, or with overlapping ranges, is ignored', 'RFC 9110 14.2', ALL,
     lambda text, request, by_nginx, by_sluice: (by_nginx.get('status') == 206 or refuses_range(by_nginx)) and by_sluice.get('status') == 200 and field(request, 'Range') and
        (method(request) != 'GET' or field(request, 'Range') == 'bytes=0-0,0-0,0-0')),
    ('the redirect to a location with proxy_pass has no fields of that location', 'import writes a location of its own for it',
     LOCATION_FIELDS,
     lambda text, request, by_nginx, by_sluice: by_nginx.get('status') == by_sluice.get('status') and 'proxy_pass' in text and
        (re.search(r'/(\?.*)?$', by_nginx.get('location', '')) or 'internal' in text and by_nginx['status'] == 404)),
    ('this redirect has no other settings of that location', 'import writes a separate location for it', ALL,
     lambda text, request, by_nginx, by_sluice: 'proxy_pass' in text and (
        by_nginx.get('status') == 301 and by_sluice.get('status') in {403} | changed_codes(text, 403) and 'deny' in text or
        by_nginx.get('status') == 413 and by_sluice.get('status') == 301 and 'client_max_body_size' in text)),
    ('a response has a Content-Type, also with default_type ""', 'without it clients would determine the type by the content', ('content-type',),
     lambda text, request, by_nginx, by_sluice: 'default_type ""' in text and 'content-type' not in by_nginx),
    ('expires uses the type of a response that has none in nginx', 'the row above', ('expires', 'cache-control'),
     lambda text, request, by_nginx, by_sluice: 'default_type ""' in text and 'expires $e' in text and 'content-type' not in by_nginx),
    ('charset is added to all of text/*', 'one rule for all text', ('content-type',),
     lambda text, request, by_nginx, by_sluice: differs_by_charset(by_nginx, by_sluice)),
)


def explaining(text, request, by_nginx, by_sluice):
    """The rows of the table that explain every difference between the two responses; None: some difference has no row.

    `text` is the configuration of the site.
    """
    left = {name for name in {*by_nginx, *by_sluice} if by_nginx.get(name) != by_sluice.get(name)}
    rows = []
    for row in INTENDED:
        _, _, names, applies = row
        if left and applies(text, request, by_nginx, by_sluice):
            rows.append(row)
            left -= left if names is ALL else set(names)
    return None if left else rows
