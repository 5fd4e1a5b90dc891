#include "http/h1_parse.h"

#include "suite.h"

#include <stdio.h>

static const struct session_settings settings = {.header_buffer_size = 100,
                                                 .large_header_size = 200,
                                                 .head_max = 500,
                                                 .max_headers = 5,
                                                 .merge_slashes = true};

/* Feeds the bytes in pieces. Returns the length of the head, or minus the status. */
static int head_end(struct str bytes, size_t piece)
{
    struct h1_scan scan = {0};
    int end = 0;

    for (size_t have = piece; end == 0; have += piece) {
        end = h1_head_end(&scan, &settings, str_slice(bytes, 0, have));
        if (have >= bytes.length)
            break;
    }
    return end;
}

START_TEST(head_ends_at_the_empty_line)
{
    static const struct {
        const char *bytes;
        int end;
    } cases[] = {
        {"", 0},
        {"G", 0},
        {"GET / HTTP/1.1", 0},
        {"GET / HTTP/1.1\r", 0},
        {"GET / HTTP/1.1\r\n", 0},
        {"GET / HTTP/1.1\r\n\r", 0},
        {"GET / HTTP/1.1\r\n\r\n", 18},
        {"GET / HTTP/1.1\r\n\r\nrest", 18},
        {"GET / HTTP/1.1\r\na: b\r\n\r\nGET", 24},
        {"\r\nG\r\n\r\n", 7},
        {"\r\n\r\n\r\n\r\nG\r\n\r\n", 13},
        {"\r", 0},
        {"\r\n", 0},
        {"\r\n\r", 0},
        {"\n", -400},
        {"\r\r", -400},
        {"\rG", -400},
        {"\r\n\r\n\r\n\r\n\r\nG\r\n\r\n", -400},
        {" GET / HTTP/1.1\r\n\r\n", -400},
        {"\tGET", -400},
        {"\x16\x03\x01", -400},
        {"{}", -400},
        {"\"", -400},
        {":", -400},
        {"\x80", -400},
        {"G\n", -400},
        {"G\n\n", -400},
        {"G\r\n\n", -400},
        {"G\r\na: b\n\r\n", -400},
        {"G\r\na: b\r\n\n", -400},
        {"G\r\r\n\r\n", 6},
        {"G\r\n1\r\n2\r\n3\r\n4\r\n5\r\n\r\n", 20},
        {"G\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n\r\n", -431},
        {"G\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\n\r\n", -431},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str bytes = str_from(cases[i].bytes);

        for (size_t piece = 1; piece <= bytes.length + 1; piece++) {
            int end = head_end(bytes, piece);

            ck_assert_msg(end == cases[i].end, "row %zu in pieces of %zu: %d instead of %d", i, piece, end,
                          cases[i].end);
        }
    }
}
END_TEST

/* Lines of the greatest permitted length, and lines with one byte more. */
START_TEST(longest_lines_are_accepted_and_longer_rejected)
{
    static const struct {
        size_t first;
        size_t others;
        size_t count;
        int end;
    } cases[] = {
        {200, 0, 0, 202},   {201, 0, 0, -414},   {900, 0, 0, -414},   {10, 200, 1, 212},  {10, 201, 1, -431},
        {200, 149, 2, 500}, {200, 150, 2, -431}, {200, 200, 3, -431}, {10, 900, 1, -431},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char bytes[2000];
        char *at = bytes;

        for (size_t line = 0; line <= cases[i].count; line++) {
            size_t length = line ? cases[i].others : cases[i].first;

            memset(at, 'a', length);
            memcpy(at + length - 2, "\r\n", 2);
            at += length;
        }
        memcpy(at, "\r\n", 2);
        at += 2;
        for (size_t piece = 1; piece < 1500; piece = piece * 2 + 1) {
            int end = head_end(str_of(bytes, (size_t)(at - bytes)), piece);

            ck_assert_msg(end == cases[i].end, "row %zu in pieces of %zu: %d", i, piece, end);
        }
    }
}
END_TEST

/* A line that is too long is rejected before its end arrives. */
START_TEST(long_lines_are_rejected_early)
{
    char bytes[600];

    memset(bytes, 'a', sizeof(bytes));
    ck_assert_int_eq(head_end(str_of(bytes, 200), 200), 0);
    ck_assert_int_eq(head_end(str_of(bytes, 201), 201), -414);
    memcpy(bytes, "G\r\n", 3);
    ck_assert_int_eq(head_end(str_of(bytes, 203), 203), 0);
    ck_assert_int_eq(head_end(str_of(bytes, 204), 204), -431);
}
END_TEST

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

START_TEST(names_with_underscores_are_dropped_unless_permitted)
{
    struct headers headers = {0};

    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(h1_parse_fields(STR("A_b: 1\r\nC: 2\r\n"), true, &arena, &headers), 0);
    ck_assert_uint_eq(headers.count, 2);
    ck_assert_int_eq(h1_parse_fields(STR("A_b: 1\r\nC: 2\r\n"), false, &arena, &headers), 0);
    ck_assert_uint_eq(headers.count, 3);
    /* A name similar to that of a field that the server adds is always dropped. */
    ck_assert_int_eq(h1_parse_fields(STR("X_Forwarded_For: 1\r\nx-real_ip: 2\r\nX_Forwarded: 3\r\n"), true, &arena,
                                     &headers), 0);
    ck_assert_uint_eq(headers.count, 4);
    arena_reset(&arena);
}
END_TEST

START_TEST(tokens_and_values_have_permitted_bytes_only)
{
    ck_assert(h1_is_token(STR("Content-Type")));
    ck_assert(!h1_is_token(STR("")));
    ck_assert(!h1_is_token(STR("a b")));
    ck_assert(!h1_is_token(STR("a:")));
    ck_assert(h1_is_value(STR("")));
    ck_assert(h1_is_value(STR("a\tb \xff")));
    ck_assert(!h1_is_value(STR("a\r")));
    ck_assert(!h1_is_value(STR("a\nb")));
    ck_assert(!h1_is_value(STR("a\0b")));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        head_ends_at_the_empty_line, longest_lines_are_accepted_and_longer_rejected, long_lines_are_rejected_early,
        valid_heads_give_method_target_host_and_framing, invalid_heads_give_their_error_status,
        control_bytes_in_heads_are_rejected, rejected_head_keeps_parsed_fields,
        names_with_underscores_are_dropped_unless_permitted, tokens_and_values_have_permitted_bytes_only,
    };

    return suite_run("h1_parse", tests, COUNT(tests));
}
