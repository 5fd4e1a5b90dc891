/* Request bodies of HTTP/1: the buffer of unconsumed bytes, its limit, and bodies that nothing consumes. */
#include "http/h1_session.h"

#include "session_rows.h"
#include "suite.h"

#include <errno.h>
#include <stdio.h>

START_TEST(interim_100_precedes_the_body)
{
    static const char head[] =
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n";
    struct table_server server;

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, str_from(head), 0);
    ck_assert_text(table_server_take(&server), "HTTP/1.1 100 Continue\r\n\r\n");
    table_server_feed(&server, STR("12345"), 1);
    ck_assert_text(table_server_take(&server), ECHOED("5", "12345"));
    ck_assert_int_eq(server.result, -EAGAIN);
    table_server_close(&server);
}
END_TEST

START_TEST(body_applies_backpressure)
{
    struct table_server server;
    char bytes[3000];

    memset(bytes, 'b', sizeof(bytes));
    table_server_open(&server, &protocol_http1, rows);
    server.settings.body_buffer_size = 1000;
    table_server_feed(&server, STR("POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n"), 0);
    table_server_feed(&server, str_of(bytes, sizeof(bytes)), 0);
    ck_assert_uint_eq(server.unread.length, 2000);
    table_server_answer(&server);
    ck_assert_uint_eq(server.unread.length, 0);
    ck_assert_text(table_server_take(&server), ECHOED("5", "later"));
    table_server_feed(&server, STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n"), 0);
    table_server_feed(&server, str_of(bytes, sizeof(bytes)), 0);
    ck_assert_uint_eq(server.unread.length, 0);
    ck_assert_uint_gt(server.out.length, 3000);
    ck_assert_int_eq(server.result, -EAGAIN);
    table_server_close(&server);
}
END_TEST

static const struct resized {
    const char *framing;
    size_t before, after; /* body_buffer_size before and after the first 2000 bytes */
    size_t stored;          /* unconsumed bytes after all 3000 */
} resized[] = {
    {"Content-Length: 3000", 16384, 1000, 2000},      {"Content-Length: 3000", 16384, 2000, 2000},
    {"Content-Length: 3000", 16384, 0, 3000},         {"Content-Length: 3000", 2000, 16384, 2048},
    {"Content-Length: 3000", 2048, 1, 2000},          {"Transfer-Encoding: chunked", 16384, 1000, 2000},
    {"Transfer-Encoding: chunked", 16384, 2500, 2500}, {"Transfer-Encoding: chunked", 2048, 1, 2000},
};

static void resize_body_buffer(const struct resized *row)
{
    bool chunked = str_starts(str_from(row->framing), STR("Transfer"));
    struct session_settings other;
    struct table_server server;
    struct h1_exchange *h;
    char head[200];
    char bytes[3000];

    memset(bytes, 'b', sizeof(bytes));
    snprintf(head, sizeof(head), "POST /later HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n%s", row->framing,
             chunked ? "bb8\r\n" : "");
    table_server_open(&server, &protocol_http1, rows);
    server.settings.body_buffer_size = row->before;
    table_server_feed(&server, str_from(head), 0);
    table_server_feed(&server, str_of(bytes, 2000), 0);
    h = (struct h1_exchange *)server.later;
    other = server.settings;
    other.body_buffer_size = row->after;
    h->x.settings = &other;
    table_server_feed(&server, str_of(bytes, 1000), 0);
    ck_assert_uint_eq(h->input.length, row->stored);
    ck_assert_uint_le(row->stored, h->input.capacity);
    ck_assert_uint_eq(server.unread.length, 3000 - row->stored);
    table_server_answer(&server);
    if (chunked)
        table_server_feed(&server, STR("\r\n0\r\n\r\n"), 0);
    ck_assert_uint_eq(server.unread.length, 0);
    ck_assert_text(table_server_take(&server), ECHOED("5", "later"));
    table_server_close(&server);
}

/* An internal redirect may change client_body_buffer_size while the body arrives. */
START_TEST(body_buffer_is_resized)
{
    for (size_t i = 0; i < COUNT(resized); i++)
        resize_body_buffer(&resized[i]);
}
END_TEST

static void count_wake(void *owner)
{
    ++*(unsigned *)owner;
}

/* After its response, a module is not woken for the rest of the request body. */
START_TEST(no_wake_after_the_end)
{
    struct table_server server;
    struct request *request;
    struct chunk chunk;
    unsigned wakes = 0;

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n"), 0);
    request = &server.later->request;
    request->body->wake = count_wake;
    request->body->owner = &wakes;
    ck_assert_int_eq(request->body->ops->next(request->body, CHUNK_BYTES, 100, &chunk), -EAGAIN);
    table_server_feed(&server, STR("12"), 0);
    ck_assert_uint_eq(wakes, 1);
    ck_assert_int_eq(request->body->ops->next(request->body, CHUNK_BYTES, 100, &chunk), 1);
    ck_assert_int_eq(request->body->ops->next(request->body, CHUNK_BYTES, 100, &chunk), -EAGAIN);
    table_server_answer(&server);
    table_server_feed(&server, STR("3456"), 1);
    ck_assert_uint_eq(wakes, 1);
    ck_assert_text(table_server_take(&server), ECHOED("5", "later"));
    ck_assert_int_eq(table_server_phase(&server), SESSION_IDLE);
    table_server_close(&server);
}
END_TEST

/* At most a limited number of unread chunks is discarded. */
START_TEST(discarded_body_is_limited)
{
    struct table_server server;

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("POST /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
                      0);
    for (int i = 0; i < 40; i++)
        table_server_feed(&server, STR("4\r\n1234\r\n"), 0);
    ck_assert_int_eq(server.result, -EAGAIN);
    for (int i = 0; i < 10000; i++)
        table_server_feed(&server, STR("4\r\n1234\r\n"), 0);
    ck_assert_int_eq(server.result, 0);
    ck_assert_text(table_server_take(&server), HELLO);
    table_server_close(&server);
}
END_TEST

START_TEST(body_is_streamed)
{
    struct table_server server;

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("POST /stream HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
                      0);
    ck_assert_text(table_server_take(&server),
                   "HTTP/1.1 200 OK\r\n" DATED "Transfer-Encoding: chunked\r\n\r\n");
    ck_assert_int_eq(table_server_phase(&server), SESSION_BODY);
    table_server_feed(&server, STR("5\r\nabcde\r\n"), 0);
    ck_assert_text(table_server_take(&server), "5\r\nabcde\r\n");
    server.room = 7;
    table_server_feed(&server, STR("10\r\n0123456789abcdef\r\n0\r\n\r\n"), 0);
    ck_assert_text(table_server_take(&server), "7\r\n0123456\r\n7\r\n789abcd\r\n2\r\nef\r\n0\r\n\r\n");
    ck_assert_int_eq(table_server_phase(&server), SESSION_IDLE);
    table_server_close(&server);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        interim_100_precedes_the_body, body_applies_backpressure, body_buffer_is_resized, no_wake_after_the_end,
        discarded_body_is_limited, body_is_streamed,
    };

    return suite_run("h1_body", tests, COUNT(tests));
}
