/* Request heads: method, target, host, framing, persistence, and the status for invalid ones. */
#include "http/h1_parse.h"

#include "suite.h"

#include <stdio.h>

static const struct session_settings settings = {.header_buffer_size = 100,
                                                 .large_header_size = 200,
                                                 .head_max = 500,
                                                 .max_headers = 5,
                                                 .merge_slashes = true};

static struct arena arena;
static struct request request;
static bool keepalive;

static int parse(const char *head, size_t length)
{
    arena_init(&arena, NULL, 0);
    request = (struct request){0};
    return h1_parse_head(str_of(head, length), &settings, &arena, &request, &keepalive);
}

#define HOST "Host: a\r\n"
#define OPTIONS_8  "a,a,a,a,a,a,a,a"
#define OPTIONS_32 OPTIONS_8 "," OPTIONS_8 "," OPTIONS_8 "," OPTIONS_8

START_TEST(valid_heads_give_method_target_host_and_framing)
{
    static const struct {
        const char *head;
        enum method method;
        enum http_version version;
        const char *target, *path, *query, *host;
        uint64_t length;
        unsigned fields;
        bool keepalive;
        bool expects_continue;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_GET, HTTP_1_1, "/", "/", NULL, "a", 0, 1, true, false},
        {"HEAD /a%20b?c HTTP/1.0\r\n\r\n", METHOD_HEAD, HTTP_1_0, "/a%20b?c", "/a b", "c", "", 0, 0, false,
         false},
        {"GET / HTTP/1.9\r\nhost:A:80\r\n\r\n", METHOD_GET, HTTP_1_1, "/", "/", NULL, "a", 0, 1, true, false},
        {"PROPFIND / HTTP/1.1\r\nHOST:\ta \t\r\n\r\n", METHOD_OTHER, HTTP_1_1, "/", "/", NULL, "a", 0, 1,
         true, false},
        {"get / HTTP/1.1\r\n" HOST "\r\n", METHOD_OTHER, HTTP_1_1, "/", "/", NULL, "a", 0, 1, true, false},
        {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", METHOD_OPTIONS, HTTP_1_1, "*", "*", NULL, "a", 0, 1, true,
         false},
        {"OPTIONS http://b HTTP/1.1\r\n" HOST "\r\n", METHOD_OPTIONS, HTTP_1_1, "*", "*", NULL, "b", 0, 1,
         true, false},
        {"OPTIONS http://b/ HTTP/1.1\r\n" HOST "\r\n", METHOD_OPTIONS, HTTP_1_1, "/", "/", NULL, "b", 0, 1,
         true, false},
        {"OPTIONS http://b?q HTTP/1.1\r\n" HOST "\r\n", METHOD_OPTIONS, HTTP_1_1, "/?q", "/", "q", "b", 0, 1,
         true, false},
        {"GET http://b:8/x?y HTTP/1.1\r\n" HOST "\r\n", METHOD_GET, HTTP_1_1, "/x?y", "/x", "y", "b", 0, 1,
         true, false},
        {"GET http://b HTTP/1.0\r\n\r\n", METHOD_GET, HTTP_1_0, "/", "/", NULL, "b", 0, 0, false, false},
        {"GET /\xc3\xa9\"<>\\^`{|} HTTP/1.1\r\n" HOST "\r\n", METHOD_GET, HTTP_1_1, "/\xc3\xa9\"<>\\^`{|}",
         "/\xc3\xa9\"<>\\^`{|}", NULL, "a", 0, 1, true, false},
        /* framing */
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", METHOD_POST, HTTP_1_1, "/", "/", NULL, "a",
         0, 2, true, false},
        {"POST / HTTP/1.1\r\n" HOST "content-length:9223372036854775807 \r\n\r\n", METHOD_POST, HTTP_1_1, "/",
         "/", NULL, "a", INT64_MAX, 2, true, false},
        {"POST / HTTP/1.0\r\nContent-Length: 0007\r\n\r\n", METHOD_POST, HTTP_1_0, "/", "/", NULL, "", 7, 1,
         false, false},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n", METHOD_POST, HTTP_1_1, "/", "/",
         NULL, "a", BODY_LENGTH_UNKNOWN, 2, true, false},
        /* connections */
        {"GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", METHOD_GET, HTTP_1_1, "/", "/", NULL, "a", 0,
         2, false, false},
        {"GET / HTTP/1.1\r\n" HOST "Connection: a,close , b\r\n\r\n", METHOD_GET, HTTP_1_1, "/", "/", NULL,
         "a", 0, 2, false, false},
        {"GET / HTTP/1.1\r\n" HOST "Connection: " OPTIONS_32 "\r\n\r\n", METHOD_GET, HTTP_1_1, "/", "/", NULL,
         "a", 0, 2, true, false},
        {"GET / HTTP/1.1\r\n" HOST "Connection:\r\n\r\n", METHOD_GET, HTTP_1_1, "/", "/", NULL, "a", 0, 2,
         true, false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", METHOD_GET, HTTP_1_0, "/", "/", NULL, "", 0, 1,
         true, false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", METHOD_GET, HTTP_1_0, "/",
         "/", NULL, "", 0, 2, false, false},
        /* expectations */
        {"PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n", METHOD_PUT, HTTP_1_1,
         "/", "/", NULL, "a", 1, 3, true, true},
        {"PUT / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n", METHOD_PUT, HTTP_1_1, "/", "/", NULL, "a",
         0, 2, true, false},
        {"PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", METHOD_PUT, HTTP_1_0, "/",
         "/", NULL, "", 1, 2, false, false},
        /* unusual but valid fields */
        {"GET / HTTP/1.1\r\n" HOST "!#$%&'*+-.^`|~09azAZ: \x80\xff\t\"\\;,\r\n\r\n", METHOD_GET, HTTP_1_1,
         "/", "/", NULL, "a", 0, 2, true, false},
        {"GET / HTTP/1.1\r\n" HOST "A:\r\nB: \t \r\nC:c\r\n\r\n", METHOD_GET, HTTP_1_1, "/", "/", NULL, "a",
         0, 4, true, false},
        /* nginx ignores a name with an underscore, too */
        {"GET / HTTP/1.1\r\n" HOST "A_b: c\r\n\r\n", METHOD_GET, HTTP_1_1, "/", "/", NULL, "a", 0, 1, true,
         false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int status = parse(cases[i].head, strlen(cases[i].head));

        ck_assert_msg(status == 0, "%d for\n%s", status, cases[i].head);
        ck_assert_int_eq(request.method, cases[i].method);
        ck_assert_int_eq(request.version, cases[i].version);
        ck_assert_text(request.target, cases[i].target);
        ck_assert_text(request.path, cases[i].path);
        ck_assert(!request.query.data == !cases[i].query);
        ck_assert_text(request.query, cases[i].query);
        ck_assert_text(request.host, cases[i].host);
        ck_assert_uint_eq(request.content_length, cases[i].length);
        ck_assert_msg(request.headers.count == cases[i].fields, "%u fields in\n%s", request.headers.count,
                      cases[i].head);
        ck_assert_msg(keepalive == cases[i].keepalive, "keepalive of\n%s", cases[i].head);
        ck_assert_int_eq(request.expects_continue, cases[i].expects_continue);
        ck_assert_uint_eq(request.bytes, strlen(cases[i].head));
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(invalid_heads_give_their_error_status)
{
    static const struct {
        int status;
        const char *head;
    } cases[] = {
        /* request lines */
        {400, "GET\r\n\r\n"},
        {400, "GET /\r\n\r\n"},
        {400, "GET / \r\n\r\n"},
        {400, "GET  / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /  HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1 \r\n" HOST "\r\n"},
        {400, "GET\t/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\tHTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "G(T / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "G\xc3\x89T / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\x01 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\x7f HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\r HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET * HTTP/1.1\r\n" HOST "\r\n"},
        {400, "OPTIONS ** HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET a:80 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /../ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /%2e%2e/%2e%2e HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /% HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /%00 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /#a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET ftp://a/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http:///a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http://u@a/ HTTP/1.1\r\n" HOST "\r\n"},
        /* versions */
        {400, "GET / HTTP/0.9\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.10\r\n" HOST "\r\n"},
        {400, "GET / HTTP/11\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1,1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/a.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.a\r\n" HOST "\r\n"},
        {400, "GET / http/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTPS/1.1\r\n" HOST "\r\n"},
        {400, "GET / ICY/1.1.\r\n" HOST "\r\n"},
        {505, "GET / HTTP/2.0\r\n" HOST "\r\n"},
        {505, "GET / HTTP/3.0\r\n" HOST "\r\n"},
        {505, "GET / HTTP/9.9\r\n" HOST "\r\n"},
        {505, "PRI * HTTP/2.0\r\n\r\n"},
        /* CONNECT */
        {501, "CONNECT a:443 HTTP/1.1\r\n" HOST "\r\n"},
        {501, "CONNECT [::1]:443 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "CONNECT a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "CONNECT / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "CONNECT http://a:1/ HTTP/1.1\r\n" HOST "\r\n"},
        /* fields */
        {400, "GET / HTTP/1.1\r\n" HOST "A\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A\t: b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST " A: b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n " HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\r\n\tc\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A(: b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A\xc3: b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A\x01: b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "[A]: b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\r\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: \x01\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: \x7f\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: \x1b[0m\r\n\r\n"},
        /* Host */
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a,b:\x80\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "hOST: b\r\n\r\n"},
        {400, "GET / HTTP/1.0\r\n" HOST HOST "\r\n"},
        {400, "GET / HTTP/1.0\r\nHost: a..b\r\n\r\n"},
        {400, "GET http://a/ HTTP/1.1\r\n\r\n"},
        {400, "GET http://a/ HTTP/1.1\r\nHost: b c\r\n\r\n"},
        /* Connection: one option more than the limit */
        {400, "GET / HTTP/1.1\r\n" HOST "Connection: " OPTIONS_32 ",a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "Connection: " OPTIONS_32 "\r\nConnection: close\r\n\r\n"},
        /* Content-Length */
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5,5\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5 5\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5.0\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: a\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775808\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999999\r\n\r\n"},
        /* Transfer-Encoding */
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: x, gzip;a=b,\tChunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked;a=b\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked, chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, gzip\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: , chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \"gzip, chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\nContent-Length: 5\r\n\r\n"},
        {400, "POST / HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked,\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \"chunked\"\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked;a=b\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\ntransfer-encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
        /* Expect */
        {417, "POST / HTTP/1.1\r\n" HOST "Expect: 200-ok\r\n\r\n"},
        {417, "POST / HTTP/1.1\r\n" HOST "Expect:\r\n\r\n"},
        {417, "POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n"},
        /* not a request head */
        {400, ""},
        {400, "\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\r\n"},
        {400, "GET / HTTP/1.1\nHost: a\n\n"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int status = parse(cases[i].head, strlen(cases[i].head));

        ck_assert_msg(status == cases[i].status, "%d instead of %d for\n%s", status, cases[i].status,
                      cases[i].head);
        ck_assert(!keepalive);
        arena_reset(&arena);
    }
}
END_TEST

/* NUL and every other control byte, at each position. */
START_TEST(control_bytes_in_heads_are_rejected)
{
    static const char *const before[] = {"", "G", "GET /a", "GET / HTTP/1.1\r\nHost: a\r\nA",
                                         "GET / HTTP/1.1\r\nHost: a\r\nA: b"};
    static const char *const behind[] = {"ET / HTTP/1.1\r\nHost: a\r\n\r\n",
                                         "ET / HTTP/1.1\r\nHost: a\r\n\r\n", "b HTTP/1.1\r\nHost: a\r\n\r\n",
                                         "B: c\r\n\r\n", "c\r\n\r\n"};

    for (size_t i = 0; i < COUNT(before); i++) {
        for (int byte = 0; byte < 0x80; byte = byte == 0x1f ? 0x7f : byte + 1) {
            char head[200];
            int length = snprintf(head, sizeof(head), "%s*%s", before[i], behind[i]);

            if (byte == '\t' && i == 4)
                continue;
            head[strlen(before[i])] = (char)byte;
            ck_assert_msg(parse(head, (size_t)length) == 400, "byte %d behind \"%s\"", byte, before[i]);
            arena_reset(&arena);
        }
    }
}
END_TEST

START_TEST(rejected_head_keeps_parsed_fields)
{
    ck_assert_int_eq(parse("POST /x?y HTTP/1.0\r\nA b\r\n\r\n", 27), 400);
    ck_assert_text(request.line, "POST /x?y HTTP/1.0");
    ck_assert_text(request.method_name, "POST");
    ck_assert_text(request.target, "/x?y");
    ck_assert_int_eq(request.version, HTTP_1_0);
    arena_reset(&arena);

    request = (struct request){.method = METHOD_OTHER};
    h1_parse_rejected_head(STR("GET /x HTTP/1.1\r\nA"), &request);
    ck_assert_text(request.line, "GET /x HTTP/1.1");
    ck_assert_text(request.target, "/x");
    ck_assert_int_eq(request.method, METHOD_GET);
    request = (struct request){.method = METHOD_OTHER};
    h1_parse_rejected_head(STR("GET /x"), &request);
    ck_assert_text(request.line, "GET /x");
    ck_assert_text(request.method_name, "GET");
    ck_assert_text(request.target, "");
    request = (struct request){.method = METHOD_OTHER};
    h1_parse_rejected_head(STR(""), &request);
    ck_assert_text(request.line, "");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        valid_heads_give_method_target_host_and_framing, invalid_heads_give_their_error_status,
        control_bytes_in_heads_are_rejected, rejected_head_keeps_parsed_fields,
    };

    return suite_run("h1_head", tests, COUNT(tests));
}
