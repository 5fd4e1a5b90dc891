/* The table of inputs, and a configuration in which each input reaches as many parts of the server as possible. */
#include "complexity.h"

#include "binary.h"
#include "http2.h"

const char complexity_configuration[] =
    "http:\n"
    "  log_format:\n"
    "    all: '$http_x $http_cookie $cookie_b $arg_b $http_user_agent "
    "$upstream_http_x $upstream_addr $sent_http_set_cookie'\n"
    "  large_client_header_buffers: 1 1m\n"
    "  client_max_body_size: 100m\n"
    "  client_header_timeout: 1h\n"
    "  client_body_timeout: 1h\n"
    "  send_timeout: 1h\n"
    "  max_headers: 1000\n"
    "  keepalive_requests: 1000000\n"
    "  keepalive_timeout: 1h\n"
    "  proxy_buffer_size: 1m\n"
    "  proxy_read_timeout: 1h\n"
    "  fastcgi_buffer_size: 1m\n"
    "  fastcgi_read_timeout: 1h\n"
    "  access_log: @/access.log all\n"
    "  root: @/\n"
    "  set_real_ip_from: [0.0.0.0/0, 127.0.0.1]\n"
    "  real_ip_header: X-Forwarded-For\n"
    "  real_ip_recursive: on\n"
    "  proxy_cache_path: {path: '@/cache', keys_zone: 'one:1m'}\n"
    "  map: {$http_x $mapped: {default: none, '~^(a+)b$': one, '~*c$': two}}\n"
    "  server:\n"
    "    listen: [8080, 8443 ssl, 8081 proxy_protocol]\n"
    "    ssl_certificate: self-signed\n"
    "    location:\n"
    "      /return: {return: 200 ok}\n"
    "      /map: {return: 200 $mapped}\n"
    "      '~ ^/regex/(.*)/end': {return: 200 $1}\n"
    "      /rewrite/: {rewrite: '^/rewrite/(.*)$ /return?to=$1 last'}\n"
    "      /try/: {try_files: '$uri /return'}\n"
    "      /cors: {cors: {origins: ['https://a.example', 'https://*.b.example'], methods: GET PUT, "
    "headers: X-A}, return: 200 ok}\n"
    "      /gzip: {gzip: on, brotli: on, zstd: on, gzip_proxied: any, gzip_min_length: 1, "
    "proxy_pass: 'http://unix:@/http'}\n"
    "      /list/: {autoindex: on, autoindex_format: json}\n"
    "      /status: {status: on}\n"
    "      /forwarded: {real_ip_header: Forwarded, return: 200 ok}\n"
    "      /auth: {auth_basic: x, auth_basic_user_file: '@/users', return: 200 ok}\n"
    "      /protected: {auth_request: /upstream, auth_request_set: '$auth_field $upstream_http_x', return: 200 ok}\n"
    "      /upstream: {proxy_pass: 'http://unix:@/http'}\n"
    "      /mirror: {mirror: /upstream, proxy_pass: 'http://unix:@/http'}\n"
    "      /proxy: {proxy_pass: 'http://unix:@/http', proxy_set_header: {X-Forwarded: $proxy_add_x_forwarded_for, "
    "X-A: ''}, proxy_hide_header: [X-1, X-2]}\n"
    "      /buffered: {proxy_pass: 'http://unix:@/http', proxy_request_buffering: on}\n"
    "      /cookies: {proxy_pass: 'http://unix:@/http', proxy_cookie_path: /app/ /, "
    "proxy_cookie_domain: internal.example $host, proxy_cookie_flags: c secure httponly}\n"
    "      /ranges: {proxy_pass: 'http://unix:@/http', proxy_force_ranges: on}\n"
    "      /intercept: {proxy_pass: 'http://unix:@/http', proxy_intercept_errors: on, error_page: 404 /return}\n"
    "      /cache: {proxy_pass: 'http://unix:@/http', proxy_cache: one, proxy_cache_revalidate: on}\n"
    "      /fastcgi: {fastcgi_pass: 'unix:@/fastcgi', fastcgi_split_path_info: '^(/fastcgi)(/.*)$'}\n"
    "stream:\n"
    "  ssl_preread: on\n"
    "  preread_buffer_size: 32k\n"
    "  preread_timeout: 1h\n"
    "  proxy_timeout: 1h\n"
    "  log_format: {all: '$ssl_preread_server_name $ssl_preread_alpn_protocols $ssl_preread_protocol'}\n"
    "  access_log: @/access.log all\n"
    "  map: {$ssl_preread_server_name $by_name: {default: none, x.example: x, '~^(a+)b$': one, '~*c$': two}, "
    "$ssl_preread_alpn_protocols $by_alpn: {default: none, '~^(a,)+b$': one, '~h2': two}}\n"
    "  server:\n"
    "    - {listen: 9001, proxy_pass: 'unix:@/http'}\n"
    "    - {listen: 9002, return: \"HTTP/1.1 200 $by_name $by_alpn $ssl_preread_server_name\\r\\n\"}\n";

#define HEAD(target) "GET " target " HTTP/1.1\r\nHost: localhost\r\n"
#define POST(target) "POST " target " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
#define END          "Connection: close\r\n\r\n"
#define OK           "HTTP/1.1 200 OK\r\n"
#define RECORD_END   "\1\3^\1^\10^^^^^^^^^^"
#define BODY         "Content-Length: 2\r\n\r\nok"

const struct kind kinds[] = {
    /* Request heads. */
    {.name = "fields", .n = 495,
     .request = {HEAD("/return"), "X-#: 1\r\n", END}, .status = 200},
    {.name = "fields of one name, logged", .n = 495,
     .request = {HEAD("/return"), "X: 1\r\n", END}, .status = 200},
    {.name = "long fields of one name, logged", .n = 495,
     .request = {HEAD("/return"), "X: 0123456789012345678901234567890123456789\r\n", END}, .status = 200},
    {.name = "Cookie fields", .n = 495,
     .request = {HEAD("/return"), "Cookie: a#=1\r\n", END}, .status = 200},
    {.name = "cookies", .n = 10000,
     .request = {HEAD("/return") "Cookie: ", "a#=1; ", "\r\n" END}, .status = 200},
    {.name = "arguments", .n = 15000,
     .request = {"GET /return?", "a#=1&", " HTTP/1.1\r\nHost: localhost\r\n" END}, .status = 200},
    {.name = "path segments", .n = 30000,
     .request = {"GET /return", "/a", " HTTP/1.1\r\nHost: localhost\r\n" END}, .status = 200},
    {.name = "path segments removed", .n = 30000,
     .request = {"GET /return", "/a/..", " HTTP/1.1\r\nHost: localhost\r\n" END}, .status = 200},
    {.name = "slashes", .n = 50000,
     .request = {"GET /return", "/", " HTTP/1.1\r\nHost: localhost\r\n" END}, .status = 200},
    {.name = "escapes in the path", .n = 30000,
     .request = {"GET /return", "%c3", " HTTP/1.1\r\nHost: localhost\r\n" END}, .status = 200},
    {.name = "escapes passed on", .n = 20000,
     .request = {"GET /proxy/", "%c3/", " HTTP/1.1\r\nHost: localhost\r\n" END}, .status = 200},
    {.name = "a path for a regular expression", .n = 8000,
     .request = {"GET /regex/", "a/", "end HTTP/1.1\r\nHost: localhost\r\n" END}, .status = 200},
    {.name = "a path rewritten", .n = 20000,
     .request = {"GET /rewrite/", "a/", " HTTP/1.1\r\nHost: localhost\r\n" END}, .status = 200},
    {.name = "a path for try_files", .n = 20000,
     .request = {"GET /try/", "a/", " HTTP/1.1\r\nHost: localhost\r\n" END}, .status = 200},
    {.name = "input of map", .n = 2000,
     .request = {HEAD("/map") "X: ", "a", "\r\n" END}, .status = 200},
    {.name = "bytes escaped in the log", .n = 20000,
     .request = {HEAD("/return") "User-Agent: ", "\xff\"", "\r\n" END}, .status = 200},
    {.name = "options of Connection", .n = 15,
     .request = {HEAD("/proxy") "Connection: ", "a#,", "\r\n" END}, .status = 200},
    {.name = "fields beside Connection", .n = 495,
     .request = {HEAD("/proxy") "Connection: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p\r\n", "x#: 1\r\n", END}, .status =
     200},
    {.name = "members of Accept-Encoding", .n = 15000,
     .request = {HEAD("/gzip") "Accept-Encoding: ", "x#;q=0.1,", "\r\n" END}, .status = 200},
    {.name = "members of Accept", .n = 15000,
     .request = {HEAD("/list/") "Accept: ", "a/#;q=1,", "\r\n" END}, .status = 200},
    {.name = "members of Accept for the status page", .n = 15000,
     .request = {HEAD("/status") "Accept: ", "a/#;q=1,", "\r\n" END}, .status = 200},
    {.name = "members of Via", .n = 15000,
     .request = {HEAD("/gzip") "Accept-Encoding: gzip\r\nVia: ", "a,", "\r\n" END}, .status = 200},
    {.name = "members of TE and Trailer", .n = 20000,
     .request = {HEAD("/proxy") "TE: trailers\r\nTrailer: ", "a,", "\r\n" END}, .status = 200},
    {.name = "members of Cache-Control", .n = 10000,
     .request = {HEAD("/cache/cc-~") "Cache-Control: ", "a#,", "\r\n" END}, .status = 200, .times = 2,
     .first_response = {OK "Cache-Control: max-age=60\r\n" BODY, "", ""}},
    {.name = "members of If-None-Match", .n = 15000,
     .request = {HEAD("/file") "If-None-Match: ", "\"a#\",", "\r\n" END}, .status = 200},
    {.name = "members of If-Match", .n = 15000,
     .request = {HEAD("/file") "If-Match: ", "\"a#\",", "\r\n" END}, .status = 412},
    {.name = "ranges", .n = 49,
     .request = {HEAD("/file") "Range: bytes=0-0", ",#0-#0", "\r\n" END}, .status = 206},
    {.name = "overlapping ranges", .n = 49,
     .request = {HEAD("/file") "Range: bytes=0-1", ",0-9", "\r\n" END}, .status = 206},
    {.name = "too many ranges", .n = 15000,
     .request = {HEAD("/file") "Range: bytes=0-1", ",0-9", "\r\n" END}, .status = 200},
    {.name = "ranges of a forwarded response", .n = 50,
     .request = {HEAD("/ranges") "Range: bytes=0-0", ",0-1", "\r\n" END}, .status = 200},
    {.name = "members of X-Forwarded-For", .n = 15000,
     .request = {HEAD("/proxy") "X-Forwarded-For: ", "10.0.0.1, ", "\r\n" END}, .status = 200},
    {.name = "X-Forwarded-For fields", .n = 495,
     .request = {HEAD("/proxy"), "X-Forwarded-For: 10.0.0.1\r\n", END}, .status = 200},
    {.name = "members of Forwarded", .n = 15000,
     .request = {HEAD("/forwarded") "Forwarded: ", "for=10.0.0.1,", "\r\n" END}, .status = 200},
    {.name = "parts of a member of Forwarded", .n = 30000,
     .request = {HEAD("/forwarded") "Forwarded: ", "x=1;", "for=10.0.0.1\r\n" END}, .status = 200},
    {.name = "Forwarded fields", .n = 495,
     .request = {HEAD("/proxy"), "Forwarded: for=10.0.0.1\r\n", END}, .status = 200},
    {.name = "Authorization", .n = 30000,
     .request = {HEAD("/auth") "Authorization: Basic ", "AAAA", "\r\n" END}, .status = 401},
    {.name = "fields named by a preflight", .n = 15000,
     .request = {"OPTIONS /cors HTTP/1.1\r\nHost: localhost\r\nOrigin: https://a.b.example\r\n"
     "Access-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: ", "a#,", "\r\n" END}, .status = 204},
    {.name = "labels of Origin", .n = 30000,
     .request = {HEAD("/cors") "Origin: https://", "a.", "b.example\r\n" END}, .status = 200},
    {.name = "fields passed on", .n = 495,
     .request = {HEAD("/proxy"), "X-#: 1\r\n", END}, .status = 200},
    {.name = "fields for auth_request", .n = 495,
     .request = {HEAD("/protected"), "X-#: 1\r\n", END}, .status = 200},
    {.name = "fields mirrored", .n = 495,
     .request = {HEAD("/mirror"), "X-#: 1\r\n", END}, .status = 200},
    {.name = "FastCGI parameters", .n = 495,
     .request = {HEAD("/fastcgi"), "X-#: 1\r\n", END}, .status = 200,
     .first_response = {"\1\6^\1^\21^^Status: 200\r\n\r\nok" RECORD_END, "", ""}},
    {.name = "a head in one-byte pieces", .n = 10000,
     .request = {HEAD("/return") "X: ", "a", "\r\n" END}, .status = 200, .piece = 1},
    {.name = "fields in one-byte pieces", .n = 495,
     .request = {HEAD("/return"), "X: 1\r\n", END}, .status = 200, .piece = 1},
    {.name = "pipelined requests", .n = 500,
     .request = {"", HEAD("/return") "\r\n", HEAD("/return") END}, .status = 200, .connection_persists = true},
    {.name = "pipelined requests, forwarded", .n = 300,
     .request = {"", HEAD("/proxy") "\r\n", HEAD("/proxy") END}, .status = 200, .connection_persists = true},
    /* Request bodies. */
    {.name = "chunks", .n = 20000, .body = true,
     .request = {POST("/proxy") "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", "0\r\n\r\n"}, .status = 200},
    {.name = "chunks, buffered", .n = 20000, .body = true,
     .request = {POST("/buffered") "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n",
     "4\r\n\r\n\r\n\r\n0\r\n\r\n"}, .status = 200},
    {.name = "chunk extensions", .n = 2000, .body = true,
     .request = {POST("/proxy") "Transfer-Encoding: chunked\r\n\r\n", "1;a=b\r\na\r\n", "0\r\n\r\n"}, .status =
     200},
    {.name = "chunks in one-byte pieces", .n = 1000, .body = true,
     .request = {POST("/proxy") "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", "0\r\n\r\n"}, .status = 200,
     .piece = 1},
    {.name = "request trailers", .n = 400, .body = true,
     .request = {POST("/proxy") "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", "x#: 1\r\n", "\r\n"}, .status =
     200},
    {.name = "request trailers that are not allowed", .n = 200, .body = true,
     .request = {POST("/proxy") "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", "Content-Length: 1\r\n",
     "\r\n"}, .status = 200},
    {.name = "FastCGI parameters of one name", .n = 495,
     .request = {HEAD("/fastcgi"), "X: 0123456789012345678901234567890123456789\r\n", END}, .status = 200,
     .first_response = {"\1\6^\1^\21^^Status: 200\r\n\r\nok" RECORD_END, "", ""}},
    /* Responses of upstream servers. */
    {.name = "FastCGI records", .n = 15000,
     .request = {HEAD("/fastcgi") END, "", ""}, .status = 200,
     .first_response = {"\1\6^\1^\21^^Status: 200\r\n\r\nok", "\1\6^\1^\1^^a", RECORD_END}},
    {.name = "FastCGI records of a head", .n = 15000,
     .request = {HEAD("/fastcgi") END, "", ""}, .status = 200,
     .first_response = {"\1\6^\1^\20^^Status: 200\r\nX: ", "\1\6^\1^\1^^a", "\1\6^\1^\4^^\r\n\r\n" RECORD_END}},
    {.name = "FastCGI fields", .n = 495,
     .request = {HEAD("/fastcgi") END, "", ""}, .status = 200,
     .first_response = {"\1\6^\1^\15^^Status: 200\r\n", "\1\6^\1^\6^^X: 1\r\n", "\1\6^\1^\4^^\r\n\r\n" RECORD_END}},
    {.name = "FastCGI log records", .n = 15000,
     .request = {HEAD("/fastcgi") END, "", ""}, .status = 200,
     .first_response = {"", "\1\7^\1^\1^^a", "\1\6^\1^\21^^Status: 200\r\n\r\nok" RECORD_END}},
    {.name = "response fields", .n = 495,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200,
     .first_response = {OK, "X-#: 1\r\n", BODY}},
    {.name = "response fields of one name", .n = 495,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200,
     .first_response = {OK, "X: 1\r\n", BODY}},
    {.name = "response fields beside Connection", .n = 495,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200,
     .first_response = {OK "Connection: a,b,c,d,e,f,g,h,i,j,k,l\r\n", "x#: 1\r\n", BODY}},
    {.name = "Set-Cookie fields", .n = 495,
     .request = {HEAD("/cookies") END, "", ""}, .status = 200,
     .first_response = {OK, "Set-Cookie: c=#; Path=/app/; Domain=internal.example\r\n", BODY}},
    {.name = "attributes of Set-Cookie", .n = 10000,
     .request = {HEAD("/cookies") END, "", ""}, .status = 200,
     .first_response = {OK "Set-Cookie: c=1", "; Path=/app/", "\r\n" BODY}},
    {.name = "Location", .n = 30000,
     .request = {HEAD("/proxy") END, "", ""}, .status = 302,
     .first_response = {"HTTP/1.1 302 Found\r\nLocation: http://localhost", "/a", "\r\n" BODY}},
    {.name = "Vary of a response", .n = 15,
     .request = {HEAD("/cache/vary-~") END, "", ""}, .status = 200, .times = 2,
     .first_response = {OK "Cache-Control: max-age=60\r\nVary: ", "x#,", "\r\n" BODY}},
    {.name = "Vary of a response, too long", .n = 15000,
     .request = {HEAD("/cache/vary-long-~") END, "", ""}, .status = 200, .times = 2,
     .first_response = {OK "Cache-Control: max-age=60\r\nVary: ", "x#,", "\r\n" BODY}},
    {.name = "Vary of an encoded response", .n = 15000,
     .request = {HEAD("/gzip") "Accept-Encoding: gzip\r\n" END, "", ""}, .status = 200,
     .first_response = {OK "Content-Type: text/html\r\nVary: ", "x#,", "\r\n" BODY}},
    {.name = "members of a field in Vary", .n = 15000,
     .request = {HEAD("/cache/members-~") "A: ", "a,", "\r\n" END}, .status = 200, .times = 2,
     .first_response = {OK "Cache-Control: max-age=60\r\nVary: A\r\n" BODY, "", ""}},
    {.name = "Cache-Control of a response", .n = 10000,
     .request = {HEAD("/cache/control-~") END, "", ""}, .status = 200, .times = 2,
     .first_response = {OK "Cache-Control: max-age=60, ", "x#,", "\r\n" BODY}},
    {.name = "fields of a stored response", .n = 495,
     .request = {HEAD("/cache/fields-~") END, "", ""}, .status = 200, .times = 2,
     .first_response = {OK "Cache-Control: max-age=60\r\n", "X-#: 1\r\n", BODY}},
    {.name = "fields of a 304", .n = 495,
     .request = {HEAD("/cache/304-~") END, "", ""}, .status = 200, .times = 2,
     .first_response = {OK "Cache-Control: no-cache\r\nETag: \"a\"\r\n", "X-#: 1\r\n", BODY},
     .later_response = {"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n", "X-#: 1\r\n", "\r\n"}},
    {.name = "fields of an intercepted error", .n = 495,
     .request = {HEAD("/intercept") END, "", ""}, .status = 404,
     .first_response = {"HTTP/1.1 404 No\r\n", "X-#: 1\r\n", BODY}},
    {.name = "fields of an auth_request response", .n = 495,
     .request = {HEAD("/protected") END, "", ""}, .status = 401,
     .first_response = {"HTTP/1.1 401 No\r\n", "WWW-Authenticate: Basic\r\n", BODY}},
    {.name = "Set-Cookie with X-Accel-Redirect", .n = 495,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200,
     .first_response = {OK "X-Accel-Redirect: /return\r\n", "Set-Cookie: a#=1\r\n", BODY}},
    {.name = "Set-Cookie with X-Accel-Redirect to an upstream", .n = 495,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200,
     .first_response = {OK "X-Accel-Redirect: /upstream\r\n", "Set-Cookie: a#=1\r\n", BODY},
     .later_response = {OK, "X-#: 1\r\n", BODY}},
    {.name = "interim responses", .n = 500,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200,
     .first_response = {"", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", OK BODY}},
    {.name = "fields of an interim response", .n = 495,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200,
     .first_response = {"HTTP/1.1 103 Early Hints\r\n", "X-#: 1\r\n", "\r\n" OK BODY}},
    {.name = "response chunks", .n = 20000,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200,
     .first_response = {OK "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", "0\r\n\r\n"}},
    {.name = "response trailers", .n = 400,
     .request = {HEAD("/proxy") "TE: trailers\r\n" END, "", ""}, .status = 200,
     .first_response = {OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", "x#: 1\r\n", "\r\n"}},
    {.name = "response trailers that are not allowed", .n = 200,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200,
     .first_response = {OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", "Content-Length: 1\r\n", "\r\n"}},
    {.name = "a response in one-byte pieces", .n = 10000,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200, .piece = 1,
     .first_response = {OK "X: ", "a", "\r\n" BODY}},
    {.name = "response chunks in one-byte pieces", .n = 1000,
     .request = {HEAD("/proxy") END, "", ""}, .status = 200, .piece = 1,
     .first_response = {OK "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", "0\r\n\r\n"}},
    /* HTTP/2. LIMIT_H2_CREDIT limits frames that do no useful work. */
    {.name = "HTTP/2 fields", .n = 495, .http2 = true, .make = make_h2_fields, .status = 200},
    {.name = "HTTP/2 fields in one-byte pieces", .n = 495, .http2 = true, .make = make_h2_fields, .status = 200,
     .piece = 1},
    {.name = "HTTP/2 fields from the dynamic table", .n = 495, .http2 = true, .make = make_h2_indexed_fields,
     .status = 200},
    {.name = "HTTP/2 Cookie fields", .n = 495, .http2 = true, .make = make_h2_cookies, .status = 200},
    {.name = "HTTP/2 fields passed on", .n = 495, .http2 = true, .make = make_h2_passed_fields, .status = 200},
    {.name = "HTTP/2 DATA frames of a byte", .n = 5000, .http2 = true, .make = make_h2_data, .status = 200,
     .body = true},
    {.name = "HTTP/2 WINDOW_UPDATE frames", .n = 900, .http2 = true, .make = make_h2_window_updates, .status = 200},
    {.name = "HTTP/2 windows of a byte", .n = 900, .http2 = true, .make = make_h2_windows_of_a_byte, .status = 200,
     .piece = 13},
    {.name = "HTTP/2 PING frames", .n = 190, .http2 = true, .make = make_h2_pings, .status = 200},
    {.name = "HTTP/2 SETTINGS frames", .n = 90, .http2 = true, .make = make_h2_settings, .status = 200},
    {.name = "HTTP/2 PRIORITY frames", .n = 900, .http2 = true, .make = make_h2_priorities, .status = 200},
    {.name = "HTTP/2 CONTINUATION frames of a byte", .n = 190, .http2 = true, .make = make_h2_continuations,
     .status = 200},
    {.name = "HTTP/2 requests that the client cancels", .n = 90, .http2 = true, .make = make_h2_cancelled,
     .status = 200},
    {.name = "HTTP/2 requests that the server resets", .n = 45, .http2 = true, .make = make_h2_reset_by_server,
     .status = 200, .server_resets = true},
    {.name = "HTTP/2 DATA frames without payload", .n = 190, .http2 = true, .make = make_h2_empty_data, .status = 200,
     .body = true},
    {.name = "HTTP/2 frames of an unknown type", .n = 490, .http2 = true, .make = make_h2_unknown_frames,
     .status = 200},
    {.name = "HTTP/2 requests", .n = 400, .http2 = true, .make = make_h2_requests, .status = 200, .piece = 256,
     .connection_persists = true},
    {.name = "response chunks to HTTP/2", .n = 10000, .http2 = true, .make = make_h2_proxied, .status = 200,
     .first_response = {OK "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", "0\r\n\r\n"}},
    {.name = "response fields to HTTP/2", .n = 495, .http2 = true, .make = make_h2_proxied, .status = 200,
     .first_response = {OK, "X-#: 1\r\n", BODY}},
    /* PROXY protocol headers. */
    {.name = "TLVs of a PROXY protocol header", .n = 678,
     .entrance = AT_PROXY_PROTOCOL, .make = make_tlvs, .status = 200},
    {.name = "TLVs of a PROXY protocol header in one-byte pieces", .n = 678, .entrance = AT_PROXY_PROTOCOL,
     .make = make_tlvs, .status = 200, .piece = 1},
    {.name = "a PROXY protocol line in one-byte pieces", .n = 45, .entrance = AT_PROXY_PROTOCOL,
     .request = {"PROXY UNKNOWN ", "a", "\r\n" HEAD("/return") END}, .status = 200, .piece = 1},
    /* ClientHellos that `stream` reads and passes on. */
    {.name = "extensions of a preread ClientHello", .n = 2040, .entrance = AT_STREAM, .make = make_hello_extensions,
     .status = 200},
    {.name = "extensions of a preread ClientHello in one-byte pieces", .n = 2040, .entrance = AT_STREAM,
     .make = make_hello_extensions, .status = 200, .piece = 1},
    {.name = "records of a preread ClientHello", .n = 2680, .entrance = AT_STREAM, .make = make_hello_records,
     .status = 200},
    {.name = "records of a preread ClientHello in one-byte pieces", .n = 2680, .entrance = AT_STREAM,
     .make = make_hello_records, .status = 200, .piece = 1},
    {.name = "a preread server name", .n = 127, .entrance = AT_STREAM, .make = make_hello_name, .status = 200},
    {.name = "a preread server name in one-byte pieces", .n = 127, .entrance = AT_STREAM, .make = make_hello_name,
     .status = 200, .piece = 1},
    {.name = "preread server names of other types", .n = 2700, .entrance = AT_STREAM, .make = make_hello_names,
     .status = 200},
    {.name = "preread ALPN names", .n = 4080, .entrance = AT_STREAM, .make = make_hello_alpn, .status = 200},
    {.name = "preread versions", .n = 63, .entrance = AT_STREAM, .make = make_hello_versions, .status = 200},
    {.name = "preread cipher suites", .n = 4080, .entrance = AT_STREAM, .make = make_hello_ciphers, .status = 200},
    {.name = "a preread server name for map", .n = 127, .entrance = AT_STREAM_TEXT, .make = make_hello_name,
     .status = 200},
    {.name = "preread ALPN names for map", .n = 63, .entrance = AT_STREAM_TEXT, .make = make_hello_alpn,
     .status = 200},
    {.name = "bytes proxied by stream, one by one", .n = 4000, .entrance = AT_STREAM,
     .request = {"not TLS", "a", "\r\n\r\n"}, .status = 200, .piece = 1},
    {.name = "response bytes proxied by stream, one by one", .n = 4000, .entrance = AT_STREAM,
     .request = {"not TLS\r\n\r\n", "", ""}, .status = 200, .piece = 1,
     .first_response = {OK, "a", ""}},
    /* TLS records. */
    {.name = "records of a ClientHello", .n = 8000, .entrance = AT_TLS, .hello = true, .hello_record = 1,
     .request = {HEAD("/return") END, "", ""}, .status = 200, .record = 16384},
    {.name = "a ClientHello in one-byte pieces", .n = 8000, .entrance = AT_TLS, .hello = true,
     .request = {HEAD("/return") END, "", ""}, .status = 200, .record = 16384, .piece = 1},
    {.name = "TLS records of one field", .n = 4000, .entrance = AT_TLS, .record = 1,
     .request = {HEAD("/return") "X: ", "a", "\r\n" END}, .status = 200},
    {.name = "TLS records of fields", .n = 495, .entrance = AT_TLS, .record = 1,
     .request = {HEAD("/return"), "X: 1\r\n", END}, .status = 200},
    {.name = "TLS records of fields, in one-byte pieces", .n = 495, .entrance = AT_TLS, .record = 6,
     .request = {HEAD("/return"), "X: 1\r\n", END}, .status = 200, .piece = 1},
    {.name = "TLS records of chunks", .n = 600, .entrance = AT_TLS, .record = 1, .body = true,
     .request = {POST("/proxy") "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", "0\r\n\r\n"}, .status = 200},
    {.name = "pipelined requests in TLS records", .n = 200, .entrance = AT_TLS, .record = 1,
     .request = {"", HEAD("/return") "\r\n", HEAD("/return") END}, .status = 200, .connection_persists = true},
};

const size_t kind_count = sizeof(kinds) / sizeof(kinds[0]);
