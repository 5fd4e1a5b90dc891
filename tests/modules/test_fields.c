#include "loopback.h"

#include <stdio.h>

/* Response fields and hints: expires, security_headers, cors, preload, add_trailer. */
static struct loopback server;

static const char configuration[] =
    "http:\n"
    "  map: {$arg_e $lasting: {default: off, long: max, never: epoch, day: 1d, bad: soon}}\n"
    "  security_headers: on\n"
    "  server:\n"
    "    listen: 8080\n"
    "    default_type: text/html\n"
    "    error_page: [404 '@lost', 410 =200 '@gone', 409 = '@gone', 408 https://example.com/late, 411 =301 "
    "https://example.com/long]\n"
    "    location:\n"
    "      /day: {expires: 1d, return: 200 x}\n"
    "      /mixed: {expires: 1h30m, return: 200 x}\n"
    "      /past: {expires: -1, return: 200 x}\n"
    "      /epoch: {expires: epoch, return: 200 x}\n"
    "      /max: {expires: max, return: 200 x}\n"
    "      /outer: {expires: max, return: 200 x, location: {/outer/off: {expires: off, return: 200 x}}}\n"
    "      /daily: {expires: '@23h59m', return: 200 x}\n"
    "      /mapped: {expires: $lasting, return: 200 x}\n"
    "      /failed: {expires: max, return: 403 x}\n"
    "      /file: {expires: modified 1d, root: '@/', return: 404}\n"
    "      /strict: {security_headers: strict, add_header: X-Frame-Options DENY always, return: 200 x}\n"
    "      /bare: {security_headers: off, hsts: on, return: 200 x}\n"
    "      /cors: {cors: {origins: [https://a.test, 'https://*.b.test:8443'], methods: GET PUT, headers: "
    "X-One X-Two, "
    "expose: X-Three, credentials: on, max_age: 10m}, return: 200 x}\n"
    "      /open: {cors: {origins: '*'}, return: 200 x}\n"
    "      /hints: {default_type: text/html, preload: [/a.css as=style, '/$arg_f as=font crossorigin', "
    "'https://c.test preconnect'], return: 200 x}\n"
    "      /trailer: {add_trailer: [X-Sent $body_bytes_sent, X-None $arg_none], return: 200 12345}\n"
    "      /gone: {return: 410}\n"
    "      /conflict: {return: 409}\n"
    "      /late: {return: 408}\n"
    "      /long: {return: 411}\n"
    "      /deep: {recursive_error_pages: on, error_page: [404 '@deep'], return: 404}\n"
    "      /round: {recursive_error_pages: on, error_page: [404 '@round'], return: 404}\n"
    "      /flat: {error_page: [404 '@flat'], return: 404}\n"
    "      '@flat': {root: '@/nowhere', error_page: [404 '@gone']}\n"
    "      '@deep': {error_page: [404 '@gone'], recursive_error_pages: on, root: '@/nowhere'}\n"
    "      '@round': {error_page: [404 '@round'], recursive_error_pages: on, root: '@/nowhere'}\n"
    "      '@gone': {default_type: text/plain, return: 202 gone}\n"
    "      '@lost': {return: 200 lost}\n";

static const struct {
    const char *request;
    int status;
    const char *field;
    const char *value; /* NULL: any value */
} cases[] = {
    {"GET /day HTTP/1.1", 200, "Cache-Control", "max-age=86400"},
    {"GET /day HTTP/1.1", 200, "Expires", NULL},
    {"GET /mixed HTTP/1.1", 200, "Cache-Control", "max-age=5400"},
    {"GET /past HTTP/1.1", 200, "Cache-Control", "no-cache"},
    {"GET /epoch HTTP/1.1", 200, "Expires", "Thu, 01 Jan 1970 00:00:01 GMT"},
    {"GET /epoch HTTP/1.1", 200, "Cache-Control", "no-cache"},
    {"GET /max HTTP/1.1", 200, "Cache-Control", "max-age=315360000"},
    {"GET /max HTTP/1.1", 200, "Expires", "Thu, 31 Dec 2037 23:55:55 GMT"},
    {"GET /outer/off HTTP/1.1", 200, "Cache-Control", ""},
    {"GET /daily HTTP/1.1", 200, "Cache-Control", NULL},
    {"GET /mapped HTTP/1.1", 200, "Cache-Control", ""},
    {"GET /mapped?e=day HTTP/1.1", 200, "Cache-Control", "max-age=86400"},
    {"GET /mapped?e=never HTTP/1.1", 200, "Cache-Control", "no-cache"},
    {"GET /mapped?e=bad HTTP/1.1", 200, "Cache-Control", ""},
    {"GET /failed HTTP/1.1", 403, "Cache-Control", ""},
    {"GET /day HTTP/1.1", 200, "X-Content-Type-Options", "nosniff"},
    {"GET /failed HTTP/1.1", 403, "X-Frame-Options", "SAMEORIGIN"},
    {"GET /day HTTP/1.1", 200, "Content-Security-Policy", ""},
    {"GET /strict HTTP/1.1", 200, "Cross-Origin-Opener-Policy", "same-origin"},
    {"GET /strict HTTP/1.1", 200, "X-Content-Type-Options", "nosniff"},
    {"GET /bare HTTP/1.1", 200, "X-Content-Type-Options", ""},
    {"GET /bare HTTP/1.1", 200, "Strict-Transport-Security", ""}, /* only over TLS */
    {"GET /cors HTTP/1.1", 200, "Vary", "Origin"},
    {"GET /cors HTTP/1.1", 200, "Access-Control-Allow-Origin", ""},
    {"GET /cors HTTP/1.1\nOrigin: https://a.test", 200, "Access-Control-Allow-Origin", "https://a.test"},
    {"GET /cors HTTP/1.1\nOrigin: https://a.test", 200, "Access-Control-Allow-Credentials", "true"},
    {"GET /cors HTTP/1.1\nOrigin: https://a.test", 200, "Access-Control-Expose-Headers", "X-Three"},
    {"GET /cors HTTP/1.1\nOrigin: http://a.test", 200, "Access-Control-Allow-Origin", ""},
    {"GET /cors HTTP/1.1\nOrigin: https://a.test.evil", 200, "Access-Control-Allow-Origin", ""},
    {"GET /cors HTTP/1.1\nOrigin: https://x.b.test:8443", 200, "Access-Control-Allow-Origin",
     "https://x.b.test:8443"},
    {"GET /cors HTTP/1.1\nOrigin: https://.b.test:8443", 200, "Access-Control-Allow-Origin", ""},
    {"GET /cors HTTP/1.1\nOrigin: https://x.b.test", 200, "Access-Control-Allow-Origin", ""},
    {"OPTIONS /cors HTTP/1.1\nOrigin: https://a.test\nAccess-Control-Request-Method: PUT", 204,
     "Access-Control-Allow-Methods", "GET, PUT"},
    {"OPTIONS /cors HTTP/1.1\nOrigin: https://a.test\nAccess-Control-Request-Method: PUT", 204,
     "Access-Control-Allow-Headers", "X-One, X-Two"},
    {"OPTIONS /cors HTTP/1.1\nOrigin: https://a.test\nAccess-Control-Request-Method: PUT", 204,
     "Access-Control-Max-Age", "600"},
    {"OPTIONS /cors HTTP/1.1\nOrigin: https://a.test\nAccess-Control-Request-Method: PUT", 204,
     "Access-Control-Allow-Origin", "https://a.test"},
    {"OPTIONS /cors HTTP/1.1\nOrigin: https://evil.test\nAccess-Control-Request-Method: PUT", 204,
     "Access-Control-Allow-Methods", ""},
    {"OPTIONS /cors HTTP/1.1\nOrigin: https://evil.test\nAccess-Control-Request-Method: PUT", 204,
     "Access-Control-Allow-Origin", ""},
    {"GET /open HTTP/1.1", 200, "Access-Control-Allow-Origin", "*"},
    {"GET /open HTTP/1.1\nOrigin: null", 200, "Vary", ""},
    {"OPTIONS /open HTTP/1.1\nOrigin: null\nAccess-Control-Request-Method: "
     "GET\nAccess-Control-Request-Headers: x-a",
     204, "Access-Control-Allow-Headers", "x-a"},
    {"GET /hints HTTP/1.1\nSec-Fetch-Mode: navigate", 200, "Link",
     "</a.css>; rel=preload; as=style"}, /* no 103 precedes it */
    {"GET /trailer HTTP/1.1", 200, "Transfer-Encoding", "chunked"},
    {"GET /trailer HTTP/1.0", 200, "Content-Length", "5"},
    {"HEAD /trailer HTTP/1.1", 200, "Content-Length", "5"},
    {"GET /gone HTTP/1.1", 200, "Content-Type", "text/plain; charset=utf-8"},
    {"GET /conflict HTTP/1.1", 202, "Content-Type", "text/plain; charset=utf-8"},
    {"GET /late HTTP/1.1", 302, "Location", "https://example.com/late"},
    {"GET /long HTTP/1.1", 301, "Location", "https://example.com/long"},
    {"GET /deep HTTP/1.1", 404, "Content-Type", "text/plain; charset=utf-8"},
    {"GET /flat HTTP/1.1", 404, "Content-Type", "text/html; charset=utf-8"},
    {"GET /round HTTP/1.1", 500, "Content-Type", NULL},
};

START_TEST(responds_to_each_case)
{
    loopback_open(&server, configuration);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str value;

        loopback_request(&server, cases[i].request);
        value = loopback_field(&server, cases[i].field);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", cases[i].request, server.status);
        ck_assert_msg(cases[i].value ? str_equal(value, str_from(cases[i].value)) : value.length > 0,
                      "%s: %s: " STR_FMT, cases[i].request, cases[i].field, STR_ARG(value));
    }
    loopback_request(&server, "GET /trailer HTTP/1.1");
    ck_assert_text(server.body, "5\r\n12345\r\n0\r\nX-Sent: 5\r\n\r\n");
    loopback_request(&server, "GET /strict HTTP/1.1");
    ck_assert(str_search(server.head, STR("X-Frame-Options: DENY")) > 0);
    ck_assert(str_search(server.head, STR("\r\nX-Frame-Options: SAMEORIGIN")) < 0);
    loopback_request(&server, "GET /hints?f=x.woff2 HTTP/1.1");
    ck_assert(str_search(server.head, STR("Link: </x.woff2>; rel=preload; as=font; crossorigin\r\n")) > 0);
    ck_assert(str_search(server.head, STR("Link: <https://c.test>; rel=preconnect\r\n")) > 0);
    loopback_request(&server, "GET /hints?f=a>b HTTP/1.1");
    ck_assert(str_search(server.head, STR("a>b")) < 0);
    loopback_close(&server);
}
END_TEST

static const struct {
    const char *text;
    const char *expected;
} mistakes[] = {
    {"expires: soon", "\"soon\" is not a time"},
    {"expires: 30q", "\"30q\" is not a time"},
    {"expires: '@25h'", "\"@25h\" is not a time"},
    {"expires: modified max", "\"max\" is not a time"},
    {"expires: 1d 2d", "expires takes a time, optionally preceded by modified"},
    {"expires: 9999999999999999999999y", "is not a time"},
    {"security_headers: loose", "'security_headers' cannot be 'loose'"},
    {"hsts: 365", "unit"},
    {"hsts: 365d everywhere", "hsts has no parameter \"everywhere\""},
    {"cors: {methods: GET}", "cors has no origins"},
    {"cors: {origins: a.test}", "\"a.test\" is not an origin"},
    {"cors: {origins: https://a.test/}", "\"https://a.test/\" is not an origin"},
    {"cors: {origins: '*', credentials: on}", "credentials cannot be combined with origins: '*'"},
    {"preload: /a.css", "preload takes a URL and as=..., or a URL and preconnect"},
    {"preload: /a.css as=", "preload takes a URL and as=..., or a URL and preconnect"},
    {"preload: /a.css as=style quickly", "preload takes a URL and as=..., or a URL and preconnect"},
    {"preload: https://a.test as=style preconnect",
     "preload takes a URL and as=..., or a URL and preconnect"},
    {"add_trailer: X-A", "add_trailer takes a name and a value"},
    {"add_trailer: 'X@A b'", "\"X@A\" is not a field name"},
    {"add_trailer: Content-Type b", "Content-Type cannot be a trailer field"},
};

START_TEST(invalid_configurations_are_rejected)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        loopback_configuration_rejected(mistakes[i].text, mistakes[i].expected);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {responds_to_each_case, invalid_configurations_are_rejected, NULL};

    return loopback_run("fields", tests);
}
