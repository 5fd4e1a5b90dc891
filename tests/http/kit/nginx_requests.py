"""Hypothesis strategies that generate requests, as lines in the format of nginx/."""
from hypothesis import strategies as st

METHODS = ('GET',) * 14 + ('HEAD', 'HEAD', 'POST', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND')
ENDS = ('',) * 6 + ('/', 'x', '/x', '/b/', 'one.txt', '/one.txt', '/inner.txt', 'inner.txt', '/none', 'b/c', '/../one.txt', '/./one.txt', '//one.txt',
                  '/..', '/.', '/12', '/style.css', '%20', '/x%2Fy', '.', '/%2e%2e/one.txt', '/;x=1', '/index.html', '..%2fone.txt', '/a.txt/b')
QUERIES = ('',) * 8 + ('?', '?x=1', '?x=1&y=2', '?x=a%20b', '?x=10.1.2.3', '?a', '?x=', '?x=/folder', '??x=1', '?x=%2e%2e', '?X=3', '?y=1&x=2&x=3',
                     '?x=folder', '?x#y', '?x=inner.txt')
PLAIN = ('/one.txt', '/folder', '/folder/', '/bare/', '/bare', '/none', '/empty.txt', '/noext', '/odd.unknownext', '/style.css', '/x%20y/z',
         '/name%20with%20space.txt', '/gr%C3%BC%C3%9Fe.txt', '/per%25cent.txt', '/plus+sign.txt', '/.hidden', '/link-folder/inner.txt',
         '/link-inside', '/65536.bin', '/ten.txt', '/quest%3Fion.txt', '/.git/config', '/picture.png', '/folder/../one.txt', '/a/../../one.txt',
         '/%', '/%zz', '/%2', '/a%00b', '/a\\b', '/a|b', '/"q"', '/<x>', '/a^b`{}', '/..', '/../one.txt', '//', '//folder//inner.txt', '/a%0ab',
         '/A/', '/FOLDER/', '/one.TXT', '/a:b', '/one.txt/', '/one.txt/x', '/folder/inner.txt/', '/\xff', '/a%ff', '*', 'http://localhost/one.txt',
         'http://other.test/folder', 'http://LOCALHOST:80', '/link-broken', '/closed-folder/x', '/a/;b', '/a/%3Fx=1', '/a/%23x', '/a/%25',
         '/a/%2525', '/a/%7Eb', '/a/x+y', '/a/x%2By', '/a/%E4', '/c/y%20z?x=y%20z')
HOSTS = ('a@N@.test', 'www.a@N@.test', 'x.w@N@.test', 'w@N@.test', 'd@N@.test', 'x.d@N@.test', 'www.p@N@.org', 'r12.@N@.test', 'A@N@.TEST',
         'a@N@.test:80', 'a@N@.test:9999', 'a@N@.test.', '127.0.0.1', '[::1]', 'unknown.test', 'a@N@.other', 'x.y.a@N@.test', 'localhost.')
MTIME = 'Tue, 14 Nov 2023 22:13:20 GMT'
FIELDS = (
    'Range: bytes=0-1', 'Range: bytes=-2', 'Range: bytes=3-', 'Range: bytes=100-', 'Range: bytes=0-0, 2-3', 'Range: bytes=x', 'Range: bytes=5-2',
    'Range: bytes=0-99999999999999999999', 'Range: lines=1-2', 'Range: bytes=0-0,0-0,0-0', 'Range: bytes= 0-1', 'Range: bytes=-0',
    f'If-Modified-Since: {MTIME}', 'If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT', 'If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT',
    'If-Modified-Since: nonsense', 'If-None-Match: *', 'If-None-Match: "up"', 'If-None-Match: "none"', 'If-None-Match: W/"none"', 'If-Match: *', 'If-Match: "none"',
    f'If-Unmodified-Since: {MTIME}', 'If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT', f'If-Range: {MTIME}', 'If-Range: "none"',
    'X-Kind: a', 'X-Kind: A', 'X-Kind: AAA', 'X-Kind: b', 'Cookie: c=1; d=2', 'Cookie: c=2', 'Accept-Encoding: gzip', 'Accept-Encoding: gzip',
    'Accept-Encoding: br, gzip;q=0.5', 'Accept-Encoding: gzip;q=0', 'Accept-Encoding: *', 'Accept-Encoding: identity', 'Via: 1.1 other',
    'Authorization: Basic Ym9iOnNlY3JldA==', 'Authorization: Basic Ym9iOndyb25n', 'Authorization: Basic', 'Authorization: Bearer x',
    'Content-Type: text/mine', 'X_Under: 1', 'Referer: http://a@N@.test/x', 'User-Agent: test/1', 'Accept: text/html', 'X-Mine: client',
)
# Request fields for the upstream server (kit/nginx_echo.py).
ANSWERS = (
    'X-Answer: 404', 'X-Answer: 500', 'X-Answer: 403', 'X-Answer: 204', 'X-Answer: 304', 'X-Answer: 302 Location=/elsewhere',
    'X-Answer: 301 Location=http://127.0.0.1:@UPSTREAM@/up/x', 'X-Answer: 302 Location=http://elsewhere.test/y', 'X-Answer: 201 Location=/made',
    'X-Answer: 302 Location=http://127.0.0.1:@UPSTREAM@/', 'X-Answer: 200 Set-Cookie=c=1;+path=/a/;+domain=one.test', 'X-Answer: 200 Expires=0',
    'X-Answer: 200 X-Accel-Redirect=/one.txt', 'X-Answer: 200 X-Accel-Redirect=@first', 'X-Answer: 200 X-Accel-Redirect=/a/x?y=1',
    'X-Answer: 200 Cache-Control=max-age=5', 'X-Answer: 200 Content-Type=text/html', 'X-Answer: 200 Content-Type=text/plain;+charset=x',
    'X-Answer: 206 Content-Range=bytes+0-1/9', 'X-Answer: 401 WWW-Authenticate=Basic+realm="up"', 'X-Answer: 418', 'X-Answer: 200 ETag="up"',
    f'X-Answer: 200 Last-Modified={MTIME.replace(" ", "+")}', 'X-Answer: 200 Accept-Ranges=bytes', 'X-Answer: 503 Retry-After=5',
    'X-Answer: 200 X-Accel-Charset=koi8-r', 'X-Answer: 200 Content-Encoding=x-mine', 'X-Answer: 200 Vary=X-Kind', 'X-Answer: 413',
    'X-Answer: 200 Cache-Control=no-store', 'X-Answer: 200 Cache-Control=private', 'X-Answer: 200 Cache-Control=s-maxage=60,+max-age=0',
    'X-Answer: 404 Cache-Control=max-age=60', 'X-Answer: 200 X-Accel-Expires=60', 'X-Answer: 200 X-Accel-Expires=0', 'X-Answer: 200 Vary=*',
    'X-Answer: 200 Set-Cookie=c=1', 'X-Answer: 200 Cache-Control=max-age=60,+no-cache', 'X-Answer: 200 Vary=Accept-Encoding',
)


@st.composite
def paths(draw, known):
    path = draw(st.sampled_from(known)) + draw(st.sampled_from(ENDS)) if draw(st.integers(0, 9)) < 7 else draw(st.sampled_from(PLAIN))
    if path.startswith('/') and draw(st.integers(0, 9)) == 0 and len(path) > 1:
        place = draw(st.integers(1, len(path) - 1))
        path = path[:place] + ''.join(f'%{byte:02X}' for byte in path[place].encode()) + path[place + 1:]
    return path.replace(' ', '%20').encode().decode('latin-1') if path.isascii() is False and '\xff' not in path else path.replace(' ', '%20')


@st.composite
def one_request(draw, known):
    method = draw(st.sampled_from(METHODS))
    path = draw(paths(known)) + draw(st.sampled_from(QUERIES))
    fields = draw(st.lists(st.sampled_from(FIELDS), max_size=2, unique_by=lambda field: field.split(':')[0]))
    if draw(st.integers(0, 9)) < 3:
        fields.append(draw(st.sampled_from(ANSWERS)))
    if draw(st.integers(0, 9)) < 4:
        fields.append(f'Host: {draw(st.sampled_from(HOSTS))}')
    if method in ('POST', 'PUT', 'PATCH') and draw(st.booleans()):
        fields.append(draw(st.sampled_from(('=a body', '=x', '=0123456789'))))
    if draw(st.integers(0, 9)) == 0:
        fields.append('%HTTP/1.0')
    return ' | '.join([f'{method} {path}', *fields])


@st.composite
def requests(draw, known, again=False):
    """With `again`, some requests are sent several times in a row, and some once more later, so that a cache may respond."""
    made = draw(st.lists(one_request(known), min_size=12, max_size=12, unique=True))
    if not again:
        return made
    requested = []
    for one in made[:9]:
        requested += [one] * draw(st.integers(1, 3))
    return requested + draw(st.lists(st.sampled_from(made[:9]), min_size=3, max_size=6))
