"""Hypothesis strategies that generate sites: nginx configurations within the subset that `sluice import` supports.

nginx accepts nearly all generated sites; kit/nginx_pair.py discards the others.
"""
import dataclasses

import hypothesis
from hypothesis import strategies as st

from kit.nginx_requests import requests
from kit.nginx_site import Directive, Site, inheritable, with_inherited

SEGMENTS = ('a', 'b', 'folder', 'bare', 'one.txt', 'none', 'inner.txt', 'ten.txt', 'style.css')
PREFIXES = ('/', '/a', '/a/', '/a/b', '/a/b/', '/folder', '/folder/', '/folder/inner.txt', '/bare/', '/one', '/none/',
            '/one.txt', '/c/', '/link-folder/', '"/x y/"', '/grüße.txt', '/a//', '/.hidden', '/A/')
PATTERNS = (r'\.txt$', '^/a', '^/(a|b)/(.*)$', r'"^/(?<name>\w+)/"', '/$', 'B', 'INNER', r'^(.+)\.(css|txt)$', '^/folder/(.+)$',
            '^/c(/.*)$', r'"^/a/(\d{1,3})$"', '^/[^/]+$', r'/\.', '"x y"')
VARIABLES = ('$uri', '$args', '$arg_x', '$request_uri', '$host', '$server_name', '$request_method', '$is_args', '$scheme',
             '$http_x_kind', '$document_uri', '$query_string', '$request_filename', '$document_root', '$cookie_c', '$remote_addr',
             '$server_protocol', '$content_length', '$http_host', '$content_type', '$m@N@', '$h@N@', '$g@N@', '$request', '$https',
             '$realpath_root', '$server_addr', '$arg_y', '$limit_rate', '$remote_user')
CODES = (200, 201, 204, 400, 401, 403, 404, 405, 409, 410, 418, 429, 500, 502, 503, 599, 444)
MOVES = (301, 302, 303, 307, 308)
TARGETS = ('/one.txt', '/none', '/folder/', '/folder', '/a/x', '/b', '/c/y', '/a?x=2', '/bare/', '/ten.txt?y=1', '/empty.txt')


class SiteGenerator:
    """Draws the random choices for one site, and stores the names and paths generated so far."""

    def __init__(self, draw):
        self.draw, self.named, self.caches, self.paths = draw, [], False, ['/', '/one.txt', '/folder', '/none', '/folder/inner.txt']

    def pick(self, options):
        return self.draw(st.sampled_from(options))

    def chance(self, percent):
        return self.draw(st.integers(0, 99)) < percent

    def some(self, options, most):
        """At most `most` of the options, each at most once, in their original order."""
        chosen = self.draw(st.sets(st.sampled_from(range(len(options))), max_size=most))
        return [options[number] for number in sorted(chosen)]

    def variables(self):
        return '|'.join(self.pick(VARIABLES) for _ in range(self.draw(st.integers(1, 3))))

    def location_of(self, name):
        if name not in self.named:
            self.named.append(name)
        return name


# Generators of the directives that produce a location's response. Arguments: (maker, path, kind); kind is "prefix", "exact", "regex",
# "named" or "server".

def no_directives(make, path, kind):
    return []


def a_return(make, path, kind):
    code = make.pick(CODES)
    choice = make.pick(('text', 'code', 'move', 'url', 'path'))
    if choice == 'text' and code != 444:
        return [Directive(f'return {code} "{make.pick(("said", ""))} {make.variables()}"')]
    if choice == 'move':
        return [Directive(f'return {make.pick(MOVES)} {make.pick(("https://example.test$request_uri", "/moved?$args", "$scheme://$host/x", "/a/$arg_x"))}')]
    if choice == 'url':
        return [Directive('return http://example.test$uri')]
    if choice == 'path':
        return [Directive(f'return 302 {make.pick(TARGETS)}')]
    return [Directive(f'return {code}')]


def a_root(make, path, kind):
    return [Directive(f'root @WWW@{make.pick(("", "/", "/folder", "/nowhere", "/$arg_x"))}')]


def an_alias(make, path, kind):
    if kind == 'exact':
        return [Directive(f'alias @WWW@/{make.pick(("one.txt", "folder/inner.txt", "none", "folder", "folder/"))}')]
    if kind == 'regex':
        return [Directive(f'alias @WWW@{make.pick(("/$1", "$uri", "/folder/$1", "/one.txt"))}')]
    if kind != 'prefix':
        return []
    end = '/' if path.endswith('/') or make.chance(15) else ''
    return [Directive(f'alias @WWW@{make.pick(("", "/folder", "/bare"))}{end}')]


def a_try_files(make, path, kind):
    tried = [make.pick(('$uri', '$uri/', '/one.txt', '/folder/', '/none', '$uri.txt', '/folder$uri', '$uri/index.html', '/$arg_x',
                        '/folder/$1', '/bare/', '""', '/link-folder/inner.txt')) for _ in range(make.draw(st.integers(1, 3)))]
    last = make.pick(('=404', '=403', '=204', '@NAMED', '/one.txt', '/none', '/folder/', '/a/x?y=$arg_x', '/c/y?$args', '$uri/'))    # nginx never sends =200
    if last == '@NAMED':
        last = make.location_of('@first')
    return [Directive('try_files ' + ' '.join([*tried, last]))]


def a_rewrite(make, path, kind):
    flags = ('last', 'break', 'redirect', 'permanent') if kind != 'server' else ('last', 'redirect', 'permanent')
    made = []
    for _ in range(make.draw(st.integers(1, 2))):
        pattern = '^/old/(.*)$' if kind == 'server' else make.pick(('^/a/(.*)$', '^(.*)$', '^/b', r'^/(\w+)/(.*)$', '^/folder(/.*)$', '(.+)/$', r'\.css$', '^/none', r'^/(?<word>\w+)$'))
        groups = pattern.count('(')
        target = make.pick(('/one.txt', '/folder/inner.txt', '/c/y', '/b/$1' if groups else '/b/', '/$2/$1' if groups > 1 else '/ten.txt',
                            '/c/y?z=1', '/c/$1?' if groups else '/c/?', '/folder', '/none', 'https://example.test/$args', '/x%20y/$arg_x',
                            '/$word' if '?<' in pattern else '/folder/', '/q?a=$uri'))
        made.append(Directive(f'rewrite {pattern} {target}' + ('' if target.startswith('http') else f' {make.pick(flags)}')))
    return made


def a_proxy_pass(make, path, kind):
    uris = ('', '', '/', '/up', '/up/', '/up?q=1', '$request_uri', '/$1$uri')
    if kind in ('regex', 'named'):
        uris = ('', '', '$request_uri', '$uri$is_args$args')
    made = [Directive(f'proxy_pass http://{make.pick(("127.0.0.1:@UPSTREAM@", "127.0.0.1:@UPSTREAM@", "up@N@"))}{make.pick(uris)}')]
    made += {one.text.split()[0]: one for one in make.some(PROXY_SHAPES, 2)}.values()
    return made + (a_cache(make) if make.chance(25) else [])


def a_cache(make):
    make.caches = True
    output = {one.text.split()[0] + one.text.split()[-1]: one for one in make.some(CACHE_SHAPES, 3)}
    once = {}
    for one in output.values():
        once.setdefault(one.text if one.text.startswith('proxy_cache_valid') else one.text.split()[0], one)
    return [Directive('proxy_cache kept'), Directive(f'proxy_cache_key "@N@ {make.pick(CACHE_KEYS)}"'),
            Directive('add_header X-Cache $upstream_cache_status always'), *once.values()]


def a_file(make, path, kind):
    return [Directive(f'index {make.pick(("none index.html", "inner.txt", "/one.txt", "no$arg_x inner.txt", "folder/"))}'),
            *([Directive('autoindex on')] if make.chance(20) else [])]


RESPONSE_MAKERS = (no_directives, no_directives, a_return, a_return, a_root, an_alias, an_alias, a_try_files, a_try_files, a_rewrite, a_rewrite, a_proxy_pass, a_proxy_pass, a_file)

PROXY_SHAPES = (
    Directive('proxy_set_header Host $host'), Directive('proxy_set_header X-Mine "$uri-$http_x_kind"'),
    Directive('proxy_set_header Accept-Encoding ""'), Directive('proxy_method POST'), 
    Directive('proxy_pass_request_headers off'), Directive('proxy_set_body "made $args"'), Directive('proxy_hide_header X-Echo'),
    Directive('proxy_intercept_errors on'), Directive('proxy_redirect off'), Directive('proxy_redirect http://elsewhere.test/ /here/'),
    Directive('proxy_cookie_path /a/ /z/'), Directive('proxy_cookie_domain one.test two.test'),
    Directive('proxy_buffering off'), Directive('proxy_request_buffering off'), Directive('proxy_ignore_headers X-Accel-Redirect'),
    Directive('proxy_ignore_headers X-Accel-Expires Expires'), Directive('proxy_pass_header Server'), Directive('proxy_http_version 1.1'), Directive('proxy_http_version 1.0'),
)

CACHE_KEYS = ('$uri$is_args$args', '$request_uri', '$uri', '$host$request_uri', '$request_method$uri', '$uri $http_x_answer')
CACHE_SHAPES = (
    Directive('proxy_cache_valid 200 301 302 10m'), Directive('proxy_cache_valid any 10m'), Directive('proxy_cache_valid 10m'),
    Directive('proxy_cache_valid 404 1m'), Directive('proxy_cache_methods GET HEAD POST'), Directive('proxy_cache_bypass $arg_x'),
    Directive('proxy_no_cache $arg_y $http_x_kind'), Directive('proxy_cache_min_uses 2'), Directive('proxy_cache_convert_head off'),
    Directive('proxy_cache_revalidate on'), Directive('proxy_cache_use_stale error timeout http_500 http_404'), Directive('proxy_cache_lock on'),
    Directive('proxy_cache_background_update on'), Directive('proxy_ignore_headers Cache-Control Expires'),
    Directive('proxy_ignore_headers Set-Cookie Vary'), Directive('proxy_buffering on'),
)

# Directives that change a response or restrict access.
OTHER_DIRECTIVES = (
    Directive('expires 1h'), Directive('expires -1'), Directive('expires max'), Directive('expires epoch'), Directive('expires off'),
    Directive('expires $e@N@'), Directive('charset utf-8'), Directive('charset off'), Directive('charset iso-8859-1'),
    Directive('default_type application/json'), Directive('default_type text/html'), Directive('default_type ""'),
    Directive('types', tuple(Directive(line) for line in ('text/html css', 'text/x-new txt', 'text/css html', 'image/x-new png bin'))), Directive('types', ()), Directive('etag off'),
    Directive('if_modified_since off'), Directive('if_modified_since before'), Directive('max_ranges 0'), Directive('max_ranges 1'),
    Directive('internal'), Directive('deny all'), Directive('allow all'), Directive('deny 127.0.0.1'), Directive('allow 127.0.0.0/8'),
    Directive('limit_except GET', (Directive('deny all'),)), Directive('limit_except POST', (Directive('deny all'),)),
    Directive('auth_basic members'), Directive('auth_basic off'), Directive('satisfy any'), Directive('absolute_redirect off'),
    Directive('absolute_redirect on'), Directive('server_name_in_redirect on'), Directive('port_in_redirect off'),
    Directive('client_max_body_size 5'), Directive('add_trailer X-Trailer $uri'), Directive('recursive_error_pages on'),
    Directive('log_not_found off'), Directive('add_header X-Only "$args"'), Directive('add_header Cache-Control "private, x=1"'),
    Directive('add_header Vary X-Kind'), Directive('set $s@N@ "$uri.$arg_x"'), Directive('chunked_transfer_encoding off'),
    Directive('sendfile on'), Directive('tcp_nodelay off'), Directive('limit_rate 100m'),
    Directive('add_header Last-Modified ""'), Directive('autoindex on'),
    Directive('gzip on'), Directive('gzip on'), Directive('gzip_types text/plain text/css text/x-echo'), Directive('gzip_types *'),
    Directive('gzip_min_length 1'), Directive('gzip_min_length 5'), Directive('gzip_proxied any'), Directive('gzip_proxied no-cache expired auth'),
    Directive('gzip_vary on'), Directive('gzip_http_version 1.0'), Directive('gzip_comp_level 9'), Directive('gunzip on'),
    Directive('disable_symlinks on'), Directive('disable_symlinks if_not_owner'), Directive('disable_symlinks off'),
    Directive('gzip_static on'), Directive('proxy_set_header X-Mine outer'), Directive('proxy_intercept_errors on'),
)
CONDITIONS = ('$arg_x', '$arg_x = 1', '$request_method = POST', '$http_x_kind ~ ^a', '$http_x_kind !~* A', '$uri ~ ^/(a|b)/(.*)', '-f $request_filename',
              '!-e $request_filename', '-d $request_filename', '$host != localhost', '$m@N@', '$args ~ "x=(?<got>[0-9]+)"', '$http_cookie ~ c=(.)')

# Conditions for the server level: nginx evaluates them again after an internal redirect, sluice once.
CONSTANT = ('$http_x_kind ~ ^a', '$http_x_kind !~* A', '$host != localhost', '$http_cookie ~ c=(.)')


def error_page(make):
    codes = ' '.join(str(code) for code in make.some((403, 404, 405, 410, 413, 401, 500, 502, 503, 416), 3)) or '404'
    target = make.pick(('/one.txt', '/none', '/a/x', '@NAMED', '/folder/', '/c/y?e=$args', 'http://example.test/e', '/c/y'))
    change = make.pick(('', '', '=200 ', '= ', '=410 ')) if not target.startswith('http') else ''
    if target == '@NAMED':
        target = make.location_of('@first')
    return Directive(f'error_page {codes} {change}{target}')


def a_condition(make, kind):
    what = make.pick((
        Directive('return 403'), Directive('return 200 "if $uri"'), Directive('return 302 /if?$args'), Directive('add_header X-If $uri'),
        Directive('expires 2h'), Directive('rewrite ^ /one.txt last'), Directive('rewrite ^(.*)$ /c$1 last'), Directive('return 404 "$1 $got@N@"'),
        Directive('root @WWW@/folder'), Directive('set $s@N@ if'), Directive('return 444'), Directive('rewrite ^/(.*)$ /b/$1 permanent')))
    if kind == 'server' and not what.text.startswith(('return', 'rewrite')):
        what = Directive('return 403')
    condition = make.pick(CONDITIONS if kind != 'server' else CONSTANT).replace('<got>', '<got@N@>')
    return Directive(f'if ({condition})', (what,))


def other_directives(make, kind):
    """Directives of a location in addition to those of RESPONSE_MAKERS."""
    # nginx accepts most directives only once in a block.
    found = {}
    for one in make.some(OTHER_DIRECTIVES, 3 if kind != 'server' else 5):
        name = one.text.split()[0]
        if (name in ('internal', 'limit_except') and kind in ('server', 'named')) or \
                (name in ('deny', 'allow', 'auth_basic') and kind == 'server' and not make.chance(10)):
            continue
        found.setdefault(one.text.split()[0] if not one.text.startswith(('add_', 'allow', 'deny')) else one.text, one)
    made = list(found.values())
    if make.chance(25):
        made.append(error_page(make))
    if make.chance(15 if kind == 'prefix' else 5):
        made.append(a_condition(make, kind))
    return made


def identifying_header(label):
    """add_header with a field that contains the label of the location, and the URI and arguments there."""
    return Directive(f'add_header X-Where "{label} $uri $args" always')


def without_access_rules(shapes, responses):
    """Removes access rules beside a `return`: sluice checks access first, nginx does not, and the importer reports this difference."""
    returns = any(one.text.startswith('return') for one in responses)
    return [one for one in shapes if not (returns and one.text.split()[0] in ('deny', 'allow', 'auth_basic'))]


def a_location(make, outer, depth, label):
    """(key, directive) of a location inside `outer`, the path of the enclosing location; None inside a location with a regular expression."""
    kind = make.pick(('prefix', 'prefix', 'prefix', 'exact', 'regex', 'regex'))
    if outer is None:
        kind = 'regex'
    if kind == 'regex':
        path = make.pick(PATTERNS)
        key = f'{make.pick(("~", "~", "~*"))} {path}'
    elif outer in ('', '/'):
        path = make.pick(PREFIXES)
        key = path
    else:
        path = outer.rstrip('"') + make.pick(('x', '/', 'b/', 'inner.txt', 'b', '')) + ('"' if outer.startswith('"') else '')
        key = path
    if kind == 'exact':
        key = f'= {path}'
    elif kind == 'prefix' and make.chance(15):
        key = f'^~ {path}'
    if kind != 'regex':
        make.paths.append(path.strip('"'))
    responses = make.pick(RESPONSE_MAKERS)(make, path.strip('"'), kind)
    inside = [identifying_header(label), *without_access_rules(other_directives(make, kind), responses), *responses]
    aliased = kind == 'regex' and any(one.text.startswith('alias') for one in responses)   # its $1 would refer to the captures of another pattern
    if depth < 2 and kind != 'exact' and not aliased and make.chance(25):
        inside += locations(make, None if kind == 'regex' else path, depth + 1, label)
    return key, Directive(f'location {key}', tuple(inside))


def locations(make, outer, depth, label):
    found = {}
    for number in range(make.draw(st.integers(1, 5 if depth == 0 else 2))):
        key, made = a_location(make, outer, depth, f'{label}{number}')
        found.setdefault(key, made)
    return list(found.values())


def named_locations(make):
    made = []
    for name in make.named:
        responses = make.pick((a_return, a_proxy_pass, a_root, no_directives, a_rewrite, a_try_files))
        responses = responses(make, '/', 'named')
        inside = [identifying_header(name), *without_access_rules(other_directives(make, 'named'), responses), *responses]
        made.append(Directive(f'location {name}', tuple(inside)))
    return made


NAMES = ('a@N@.test', 'a@N@.test www.a@N@.test', '*.w@N@.test', '.d@N@.test', 'www.p@N@.*', r'"~^r(?<n>\d+)\.@N@\.test$"', '""', '_', '127.0.0.1',
         'A@N@.Other', '*.a@N@.test a@N@.test')


def a_server(make, number, default):
    make.named.clear()
    name = make.pick(NAMES)
    inside = [Directive('listen 127.0.0.1:@PORT@' + (' default_server' if default else '')), Directive(f'server_name {name}'),
              Directive('root @WWW@'), Directive('auth_basic_user_file @PACKED@/users'), identifying_header(f's{number}')]
    inside += [one for one in other_directives(make, 'server') if one.text != 'internal']
    if make.chance(20):
        inside.append(Directive(f'merge_slashes {make.pick(("off", "on"))}'))
    if make.chance(10):
        make.paths += ['/old/', '/old/x']
        inside += a_rewrite(make, '/', 'server')
    if make.chance(4):
        inside += a_return(make, '/', 'server')
    inside += locations(make, '', 0, f'L{number}')
    inside += named_locations(make)
    return Directive('server', tuple(inside))


def http_directives(make):
    """The maps of this site's variables, and its upstream group."""
    source = make.pick(('$http_x_kind', '$uri', '$arg_x', '$request_method', '$args'))
    return (
        Directive(f'map {source} $m@N@', (Directive('default other'), Directive('a "it is $uri"'), Directive('~^/(a|b) "like $1"'), Directive('GET 0'),
                                        Directive('"" ""'), Directive(r'~*^(?<got@N@>A+)$ $got@N@'))),
        Directive('map $host $h@N@', (Directive('hostnames'), Directive('default none'), Directive('.a@N@.test one'), Directive('www.* two'))),
        Directive('map $sent_http_content_type $e@N@', (Directive('default off'), Directive('text/css 1d'), Directive('~^text/plain 2h'),
                                                      Directive('application/json epoch'))),
        Directive('geo $arg_x $g@N@', (Directive('default out'), Directive('10.0.0.0/8 ten'), Directive('127.0.0.1 here'))),
        Directive('upstream up@N@', (Directive('server 127.0.0.1:@UPSTREAM@'), *([Directive('keepalive 2')] if make.chance(50) else []))),
    )


@st.composite
def sites(draw):
    make = SiteGenerator(draw)
    http = http_directives(make)
    count = make.pick((1, 1, 1, 1, 2, 3))
    servers = tuple(a_server(make, number, number == count - 1 and count > 1) for number in range(count))
    return Site(http, servers, tuple(draw(requests(tuple(dict.fromkeys(make.paths)), make.caches))))


# Directives of the `http` block around all sites of one batch.
TYPES = Directive('types', tuple(Directive(line) for line in ('text/html html', 'text/plain txt', 'text/css css', 'image/png png',
                                                              'application/octet-stream bin')))
CACHE = Directive('proxy_cache_path cache keys_zone=kept:1m levels=1:2 inactive=1h')
PRELUDES = (
    (TYPES, CACHE),
    (TYPES, CACHE, Directive('charset utf-8'), Directive('default_type application/octet-stream'), Directive('expires 5m')),
    (TYPES, CACHE, Directive('error_page 404 /one.txt'), Directive('index inner.txt index.html'), Directive('server_tokens off')),
    (TYPES, CACHE, Directive('absolute_redirect off'), Directive('etag off'), Directive('proxy_set_header Host $host'),
     Directive('gzip on'), Directive('gzip_min_length 1')),
    (TYPES, CACHE, Directive('underscores_in_headers on'), Directive('default_type ""'), Directive('proxy_intercept_errors on'),
     Directive('error_page 502 503 504 = /ten.txt')),
)

# After this many examples Hypothesis mutates earlier ones, which would repeat much of them.
FIRST_EXAMPLES = 10


def generated_sites(number):
    """Returns the sites for this seed, which are the same in every run, and the directives around them."""
    found = []

    @hypothesis.seed(number)
    @hypothesis.settings(max_examples=FIRST_EXAMPLES, database=None, phases=[hypothesis.Phase.generate], deadline=None,
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(sites())
    def collect(site):
        found.append(site)
    collect()
    prelude = PRELUDES[number % len(PRELUDES)]
    return [dataclasses.replace(site, servers=tuple(with_inherited(one, inheritable(prelude)) for one in site.servers))
            for site in found[1:]], prelude     # for every seed the first example is the minimal one
