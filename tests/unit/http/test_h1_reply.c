#include "http/h1_reply.h"

#include "base/limits.h"
#include "suite.h"

#include <stdio.h>

#define OPTIONS_8  "a,a,a,a,a,a,a,a"
#define OPTIONS_32 OPTIONS_8 "," OPTIONS_8 "," OPTIONS_8 "," OPTIONS_8

struct seen {
    int status;
    int interims;
    char body[256];
    size_t length;
    enum h1_reply_step end;
    struct str rest;
};

static struct arena arena;
static struct headers trailers;
static struct h1_reply reply;

static void append_body(struct seen *seen, struct str piece)
{
    ck_assert_uint_lt(seen->length + piece.length, sizeof(seen->body));
    memcpy(seen->body + seen->length, piece.data, piece.length);
    seen->length += piece.length;
}

/* Reads `bytes` in pieces of `piece` bytes, then the end of the connection. */
static struct seen read_all(const struct h1_reply_settings *settings, struct str bytes, size_t piece)
{
    struct seen seen = {.end = REPLY_MORE};
    struct str part;

    arena_init(&arena, NULL, 0);
    trailers = (struct headers){0};
    h1_reply_init(&reply, settings, &arena, &trailers);
    while (bytes.length && seen.end == REPLY_MORE) {
        struct str in = str_slice(bytes, 0, piece);
        enum h1_reply_step step;

        bytes = str_skip(bytes, in.length);
        while ((step = h1_reply_read(&reply, &in, &part)) < REPLY_WHOLE && step != REPLY_MORE) {
            seen.interims += step == REPLY_INTERIM;
            if (step == REPLY_HEAD)
                seen.status = reply.status;
            if (step == REPLY_PART)
                append_body(&seen, part);
        }
        seen.end = step;
        seen.rest = in.length ? in : bytes;
    }
    if (seen.end == REPLY_MORE)
        seen.end = h1_reply_ended(&reply, false);
    return seen;
}

static void finish_reply(void)
{
    h1_reply_finish(&reply);
    arena_reset(&arena);
}

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *bytes;
    int status;
    const char *body;
    bool keepalive;
    bool head;
} good[] = {
    {OK "Content-Length: 5\r\n\r\nhello", 200, "hello", true, false},
    {OK "Content-Length: 0\r\n\r\n", 200, "", true, false},
    {OK "content-length:5\r\nConnection: close\r\n\r\nhello", 200, "hello", false, false},
    {OK "\r\nuntil the end", 200, "until the end", false, false},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\n, w\r\n0\r\nX-T: v\r\n\r\n", 200,
     "hello, w", true, false},
    {"HTTP/1.0 200 OK\r\n\r\nold", 200, "old", false, false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", 200, "old", false, false},
    {OK "Content-Length: 1\r\nConnection: " OPTIONS_32 "\r\n\r\nx", 200, "x", true, false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection: Keep-Alive\r\n\r\nold", 200, "old", true, false},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", true, false},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", 304, "", true, false},
    {OK "Content-Length: 99\r\n\r\n", 200, "", true, true},
    {OK "Transfer-Encoding: chunked\r\n\r\n", 200, "", true, true},
    {"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", 200, "x", true, false},
    {"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx", 200, "x", true, false},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" OK
     "Content-Length: 1\r\n\r\nx",
     200, "x", true, false},
    {"HTTP/1.1 200 OK\nContent-Length: 1\n\nx", 200, "x", true, false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1\n\r\nx", 200, "x", true, false},
    {"HTTP/1.1 100 Continue\n\nHTTP/1.1 204 None\nA: b\r\n\n", 204, "", true, false},
    {"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n3;x=y\r\n, w\n0\nX-T: v\n\n", 200,
     "hello, w", true, false},
};

START_TEST(valid_responses_in_every_division)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        const struct h1_reply_settings settings = {.head = good[i].head, .head_max = 4096};

        for (size_t piece = 1; piece <= strlen(good[i].bytes); piece++) {
            struct seen seen = read_all(&settings, str_from(good[i].bytes), piece);

            ck_assert_msg(seen.end == REPLY_WHOLE, "%s: %s", good[i].bytes, reply.fault);
            ck_assert_int_eq(seen.status, good[i].status);
            ck_assert_text(str_of(seen.body, seen.length), good[i].body);
            ck_assert_msg(reply.keepalive == good[i].keepalive, "%s", good[i].bytes);
            ck_assert_uint_eq(seen.rest.length, 0);
            finish_reply();
        }
    }
}
END_TEST

static const struct {
    const char *bytes;
    const char *fault;
} bad[] = {
    {"\nHTTP/1.1 200 OK\n\n", "invalid HTTP"},
    {"HTTP/1.1 200 OK\nA: b\n c\n\n", "header field"},
    {"HTTP/1.1 200 OK\rA: b\n\n", "an invalid status line"},
    {"HTTP/1.1 200 OK\r\r\n\r\n", "an invalid status line"},
    {"\r\nHTTP/1.1 200 OK\r\n\r\n", "invalid HTTP"},
    {"\x16\x03\x01\x02garbage", "invalid HTTP"},
    {"SSH-2.0-OpenSSH\r\n\r\n", "an invalid status line"},
    {"HTTP/2.0 200 OK\r\n\r\n", "an invalid status line"},
    {"HTTP/1.1  200 OK\r\n\r\n", "an invalid status"},
    {"HTTP/1.1 20 OK\r\n\r\n", "an invalid status"},
    {"HTTP/1.1 2000 OK\r\n\r\n", "an invalid status line"},
    {"HTTP/1.1 099 OK\r\n\r\n", "an invalid status"},
    {"HTTP/1.1 600 OK\r\n\r\n", "an invalid status"},
    {"HTTP/1.1 +20 OK\r\n\r\n", "an invalid status"},
    {"HTTP/1.1 200 O\x01K\r\n\r\n", "an invalid status line"},
    {"HTTP/1.1 101 Switching\r\n\r\n", "101"},
    {OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "more than one"},
    {OK "Content-Length: 1, 1\r\n\r\nx", "an invalid Content-Length"},
    {OK "Content-Length: +1\r\n\r\nx", "an invalid Content-Length"},
    {OK "Content-Length: -1\r\n\r\nx", "an invalid Content-Length"},
    {OK "Content-Length: 0x1\r\n\r\nx", "an invalid Content-Length"},
    {OK "Content-Length: 99999999999999999999\r\n\r\nx", "an invalid Content-Length"},
    {OK "Content-Length: 9223372036854775808\r\n\r\nx", "an invalid Content-Length"},
    {OK "Content-Length:\r\n\r\nx", "an invalid Content-Length"},
    {OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "both"},
    {OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "transfer coding"},
    {OK "Transfer-Encoding: identity\r\n\r\n", "transfer coding"},
    {OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "transfer coding"},
    {OK "Transfer-Encoding:\r\n\r\n", "transfer coding"},
    {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "transfer coding"},
    {OK "Content-Length : 1\r\n\r\nx", "header field"},
    {OK " folded: x\r\n\r\n", "header field"},
    {OK "A: b\r\n c\r\n\r\n", "header field"},
    {OK "A\r\n\r\n", "header field"},
    {OK "A: \x01\r\n\r\n", "header field"},
    {OK ": b\r\n\r\n", "header field"},
    {OK "Connection: " OPTIONS_32 ",a\r\n\r\n", "too many options in Connection"},
    {"HTTP/1.1 103 Early Hints\r\nConnection: " OPTIONS_32 ",a\r\n\r\n", "too many options in Connection"},
    {OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "invalid chunk"},
    {OK "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n", "invalid chunk"},
    {OK "Transfer-Encoding: chunked\r\n\r\n1\rx\r\n", "invalid chunk"},
    {OK "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r1\r\n", "invalid chunk"},
    {OK "Transfer-Encoding: chunked\r\n\r\n-1\r\n", "invalid chunk"},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", "before the end of the body"},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", "before the end of the body"},
    {OK "Content-Length: 5\r\n\r\nhell", "before the end of the body"},
    {"HTTP/1.1 200 OK\r\nContent-", "before the end of the header"},
    {"HTTP/1.1 100 Continue\r\n\r\n", "before the end of the header"},
};

START_TEST(invalid_responses_in_every_division)
{
    const struct h1_reply_settings settings = {.head_max = 4096};

    for (size_t i = 0; i < COUNT(bad); i++) {
        for (size_t piece = 1; piece <= strlen(bad[i].bytes); piece++) {
            struct seen seen = read_all(&settings, str_from(bad[i].bytes), piece);

            ck_assert_msg(seen.end == REPLY_BAD, "%s: taken", bad[i].bytes);
            ck_assert_msg(strstr(reply.fault, bad[i].fault) != NULL, "%s: %s", bad[i].bytes, reply.fault);
            finish_reply();
        }
    }
}
END_TEST

START_TEST(bytes_after_the_response_are_left)
{
    const struct h1_reply_settings settings = {.head_max = 4096};
    struct seen seen = read_all(&settings, STR(OK "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"), 1000);

    ck_assert_int_eq(seen.end, REPLY_WHOLE);
    ck_assert_text(seen.rest, "HTTP/1.1 200 OK\r\n");
    finish_reply();
}
END_TEST

START_TEST(trailers_are_read_and_lengths_are_those_of_the_body)
{
    const struct h1_reply_settings settings = {.head_max = 4096};
    const struct h1_reply_settings to_head = {.head = true, .head_max = 4096};
    const char *chunked = OK "Transfer-Encoding: chunked\r\n\r\n0\r\nX-T: v\r\nContent-Length: 9\r\n\r\n";
    struct seen seen = read_all(&settings, str_from(chunked), 7);

    ck_assert_int_eq(seen.end, REPLY_WHOLE);
    ck_assert_uint_eq(trailers.count, 1);
    ck_assert_text(headers_value(&trailers, STR("x-t")), "v");
    ck_assert_text(reply.reason, "OK");
    ck_assert_uint_eq(reply.content_length, BODY_LENGTH_UNKNOWN);
    finish_reply();
    chunked = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\nX-T: v\nX-U: w\r\nX-V: x\n\n";
    seen = read_all(&settings, str_from(chunked), 7);
    ck_assert_int_eq(seen.end, REPLY_WHOLE);
    ck_assert_uint_eq(trailers.count, 3);
    ck_assert_text(headers_value(&trailers, STR("x-t")), "v");
    ck_assert_text(headers_value(&trailers, STR("x-v")), "x");
    finish_reply();
    seen = read_all(&to_head, STR(OK "Content-Length: 77\r\n\r\n"), 7);
    ck_assert_int_eq(seen.end, REPLY_WHOLE);
    ck_assert_uint_eq(reply.content_length, 77);
    ck_assert(reply.bodiless);
    finish_reply();
}
END_TEST

START_TEST(upgraded_connection_passes_all_bytes)
{
    const struct h1_reply_settings settings = {.upgrade = true, .head_max = 4096};
    struct seen seen =
        read_all(&settings, STR("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\x81\x01z"), 9);

    ck_assert_int_eq(seen.end, REPLY_WHOLE);
    ck_assert_int_eq(seen.status, 101);
    ck_assert_text(str_of(seen.body, seen.length), "\x81\x01z");
    ck_assert(!reply.keepalive);
    finish_reply();
}
END_TEST

START_TEST(truncated_body_without_length_is_invalid)
{
    static const struct {
        const char *bytes;
        enum h1_reply_step expected;
    } rows[] = {
        {OK "\r\nuntil the end", REPLY_BAD},
        {OK "Content-Length: 5\r\n\r\nhello", REPLY_WHOLE},
        {"HTTP/1.1 101 Switching Protocols\r\n\r\nbytes", REPLY_WHOLE},
    };
    const struct h1_reply_settings settings = {.upgrade = true, .head_max = 4096};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str in = str_from(rows[i].bytes);
        struct str part;

        arena_init(&arena, NULL, 0);
        h1_reply_init(&reply, &settings, &arena, &trailers);
        ck_assert_int_eq(h1_reply_read(&reply, &in, &part), REPLY_HEAD);
        ck_assert_int_eq(h1_reply_read(&reply, &in, &part), REPLY_PART);
        ck_assert_int_eq(h1_reply_ended(&reply, true), rows[i].expected);
        finish_reply();
    }
}
END_TEST

START_TEST(response_head_above_the_limit_is_invalid)
{
    const struct h1_reply_settings settings = {.head_max = 128};
    struct seen seen;
    struct buffer bytes = {0};

    ck_assert_int_eq(buffer_printf(&bytes, OK "A: %0200d\r\n\r\n", 1), 0);
    seen = read_all(&settings, buffer_str(&bytes), 50);
    ck_assert_int_eq(seen.end, REPLY_BAD);
    ck_assert_str_eq(reply.fault, "too big header");
    finish_reply();
    bytes.length = 0;
    buffer_finish(&bytes);
}
END_TEST

/* Each 1xx response releases the memory of the one before. */
START_TEST(interim_responses_need_constant_memory)
{
    const struct h1_reply_settings settings = {.head_max = 4096};
    struct buffer bytes = {0};
    struct seen seen;

    for (unsigned i = 0; i < 10000; i++)
        ck_assert_int_eq(buffer_printf(&bytes, "HTTP/1.1 102 Processing\r\nX-Progress: %u\r\n\r\n", i), 0);
    ck_assert_int_eq(buffer_printf(&bytes, "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n"), 0);
    seen = read_all(&settings, buffer_str(&bytes), 1000);
    ck_assert_int_eq(seen.end, REPLY_WHOLE);
    ck_assert_int_eq(seen.interims, 10000);
    ck_assert_text(headers_value(&reply.headers, STR("A")), "b");
    ck_assert_uint_eq(reply.headers.count, 1);
    ck_assert_uint_eq(reply.interim.size, 0);
    ck_assert_uint_le(arena.size, 2 * ARENA_BLOCK_SIZE);
    finish_reply();
    buffer_finish(&bytes);
}
END_TEST

START_TEST(out_of_memory_is_not_a_bad_response)
{
    const struct h1_reply_settings settings = {.head_max = 4096};
    struct str in = STR(OK "Content-Length: 1\r\n\r\nx");
    struct str part;

    arena_init(&arena, NULL, 1);
    h1_reply_init(&reply, &settings, &arena, &trailers);
    ck_assert_int_eq(h1_reply_read(&reply, &in, &part), REPLY_NO_MEMORY);
    finish_reply();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        valid_responses_in_every_division, invalid_responses_in_every_division, bytes_after_the_response_are_left,
        trailers_are_read_and_lengths_are_those_of_the_body, upgraded_connection_passes_all_bytes,
        response_head_above_the_limit_is_invalid, interim_responses_need_constant_memory,
        out_of_memory_is_not_a_bad_response, truncated_body_without_length_is_invalid,
    };

    return suite_run("h1_reply", tests, COUNT(tests));
}
