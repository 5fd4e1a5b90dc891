/*
 * Limits on the work and the memory that a client causes: the server rejects streams or closes the connection.
 */
#include "h2_session_fixture.h"

#include "http/h2/session.h"

#include <errno.h>

START_TEST(streams_above_the_limit_are_refused)
{
    open_session();
    server->settings.http2.max_concurrent_streams = 2;
    h2_client_request(&client, 1, "POST", "/echo", false);
    h2_client_request(&client, 3, "GET", "/later", true);
    h2_client_headers(&client, 5, H2_FLAG_END_STREAM,
                      ":method=GET\n:scheme=https\n:path=/hello\n:authority=a\nx-table=entry\n");
    expect("RST_STREAM 5 REFUSED_STREAM\n");
    table_server_answer(server);
    expect("HEADERS 3 :status=200 content-length=4\nDATA 3 4 late end\n");
    /* The rejected block was decoded: its entries of the dynamic table are valid. */
    h2_client_headers(&client, 7, H2_FLAG_END_STREAM,
                      ":method=GET\n:scheme=https\n:path=/hello\n:authority=a\nx-table=entry\n");
    expect(OK("7"));
    table_server_hang_up(server);
    close_session();
}
END_TEST

START_TEST(events_are_counted)
{
    const struct protocol_counters *counters;

    open_session();
    counters = &server->counters;
    server->settings.http2.max_concurrent_streams = 2;
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_request(&client, 3, "GET", "/later", true);
    h2_client_request(&client, 5, "GET", "/hello", true);
    expect("RST_STREAM 5 REFUSED_STREAM\n");
    ck_assert_uint_eq(counters->h2_streams, 2);
    ck_assert_uint_eq(counters->h2_streams_opened, 2);
    ck_assert_uint_eq(counters->h2_resets_sent[H2_REFUSED_STREAM], 1);
    h2_client_number(&client, H2_RST_STREAM, 1, H2_CANCEL);
    h2_client_number(&client, H2_RST_STREAM, 3, 0x12345678);
    h2_client_number(&client, H2_RST_STREAM, 5, H2_CANCEL);
    expect("");
    ck_assert_uint_eq(counters->h2_streams, 0);
    ck_assert_uint_eq(counters->h2_resets_received[H2_CANCEL], 1); /* stream 5 was not open */
    ck_assert_uint_eq(counters->h2_resets_received[H2_COUNTED_ERRORS - 1], 1);
    h2_client_frame(&client, H2_DATA, 0, 0, STR("x"));
    expect("GOAWAY 3 PROTOCOL_ERROR\n");
    ck_assert_uint_eq(counters->h2_connection_errors[H2_PROTOCOL_ERROR], 1);
    close_session();
}
END_TEST

static struct memory_budget *budget_of_session(void)
{
    return &container_of(server->session, struct h2_session, session)->budget;
}

/* Above the memory limit of the connection, new streams are rejected until others have ended. */
START_TEST(streams_above_the_memory_limit_are_refused)
{
    struct memory_budget *budget;

    open_session();
    budget = budget_of_session();
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_flush(&client);
    ck_assert_uint_gt(budget->used, 0);
    ck_assert_uint_eq(budget->used, server->pool.budget.used);
    budget->max = budget->used;
    h2_client_request(&client, 3, "GET", "/hello", true);
    expect("RST_STREAM 3 REFUSED_STREAM\n");
    table_server_answer(server);
    expect("HEADERS 1 :status=200 content-length=4\nDATA 1 4 late end\n");
    ck_assert_uint_eq(budget->used, 0);
    h2_client_request(&client, 5, "GET", "/hello", true);
    expect(OK("5"));
    close_session();
}
END_TEST

/* Body bytes that no module has read yet are counted; above the limit the body fails. */
START_TEST(unread_body_above_the_memory_limit_fails)
{
    struct memory_budget *budget;
    size_t before;

    open_session();
    budget = budget_of_session();
    h2_client_request(&client, 1, "POST", "/later", false);
    h2_client_flush(&client);
    before = budget->used;
    h2_client_data(&client, 1, STR("12345"), false);
    expect("PING sluicebd\n");
    ck_assert_uint_eq(budget->used, before + 5);
    budget->max = budget->used + 3;
    h2_client_data(&client, 1, STR("6789"), false); /* discarded */
    h2_client_flush(&client);
    ck_assert_uint_eq(budget->used, before + 5);
    h2_client_number(&client, H2_RST_STREAM, 1, H2_CANCEL);
    h2_client_flush(&client);
    ck_assert_uint_eq(budget->used, 0);
    ck_assert_uint_eq(server->pool.budget.used, 0);
    close_session();
}
END_TEST

/* Repeats an event, at most `max` times, until the server closes. Returns the number of events. */
static unsigned flood(void (*event)(unsigned number), unsigned max)
{
    unsigned number = 0;

    client.quiet = true;
    while (number < max && table_server_phase(server) != SESSION_OVER) {
        event(number++);
        h2_client_flush(&client);
    }
    return number;
}

static void expect_enhance_your_calm(void)
{
    ck_assert_int_eq(table_server_phase(server), SESSION_OVER);
    ck_assert_int_eq(server->result, 0);
    ck_assert_uint_eq(client.goaway, H2_ENHANCE_YOUR_CALM);
}

static void rapid_reset(unsigned number)
{
    h2_client_request(&client, 1 + 2 * number, "GET", "/later", true);
    h2_client_number(&client, H2_RST_STREAM, 1 + 2 * number, H2_CANCEL);
}

static void settings(unsigned number)
{
    h2_client_frame(&client, H2_SETTINGS, 0, 0, STR(""));
}

static void ping(unsigned number)
{
    h2_client_frame(&client, H2_PING, 0, 0, STR("12345678"));
}

static void priority(unsigned number)
{
    h2_client_frame(&client, H2_PRIORITY, 0, 1, STR("\0\0\0\3\x10"));
}

static void priority_update(unsigned number)
{
    h2_client_frame(&client, H2_PRIORITY_UPDATE, 0, 0, STR("\0\0\0\1u=1"));
}

static void window_update(unsigned number)
{
    h2_client_number(&client, H2_WINDOW_UPDATE, 0, 1);
}

static void unknown_frame(unsigned number)
{
    h2_client_frame(&client, 99, 0, 0, STR("x"));
}

static void empty_data(unsigned number)
{
    if (number == 0)
        h2_client_request(&client, 1, "POST", "/echo", false);
    h2_client_frame(&client, H2_DATA, 0, 1, STR(""));
}

static void padded_data(unsigned number)
{
    if (number == 0)
        h2_client_request(&client, 1, "POST", "/echo", false);
    h2_client_frame(&client, H2_DATA, H2_FLAG_PADDED, 1, STR("\1\0"));
}

static void continuation(unsigned number)
{
    h2_client_frame(&client, number ? H2_CONTINUATION : H2_HEADERS, 0, 1, STR(""));
}

static void long_continuation(unsigned number)
{
    static char zeros[16384]; /* literal fields without name and value */

    h2_client_frame(&client, number ? H2_CONTINUATION : H2_HEADERS, 0, 1, str_of(zeros, sizeof(zeros)));
}

static void refused_stream(unsigned number)
{
    server->settings.http2.max_concurrent_streams = 0;
    h2_client_request(&client, 1 + 2 * number, "GET", "/hello", true);
}

static void malformed_request(unsigned number)
{
    h2_client_headers(&client, 1 + 2 * number, H2_FLAG_END_STREAM, "X=y\n");
}

/* Violations that make the server reset a stream whose request was begun (CVE-2025-8671). */
static void overflow_stream(unsigned number)
{
    h2_client_request(&client, 1 + 2 * number, "GET", "/later", true);
    h2_client_number(&client, H2_WINDOW_UPDATE, 1 + 2 * number, 0x7fffffff);
}

static void zero_increment(unsigned number)
{
    h2_client_request(&client, 1 + 2 * number, "GET", "/later", true);
    h2_client_number(&client, H2_WINDOW_UPDATE, 1 + 2 * number, 0);
}

static void depend_on_itself(unsigned number)
{
    char payload[5] = {0, 0, (char)((1 + 2 * number) >> 8), (char)(1 + 2 * number), 0};

    h2_client_request(&client, 1 + 2 * number, "GET", "/later", true);
    h2_client_frame(&client, H2_PRIORITY, 0, 1 + 2 * number, str_of(payload, sizeof(payload)));
}

static void data_behind_the_end(unsigned number)
{
    h2_client_request(&client, 1 + 2 * number, "GET", "/later", true);
    h2_client_data(&client, 1 + 2 * number, STR("x"), false);
}

static const struct {
    void (*event)(unsigned number);
    unsigned max;
} floods[] = {
    {rapid_reset, LIMIT_H2_CREDIT / 10},
    {settings, LIMIT_H2_CREDIT / 10},
    {ping, LIMIT_H2_CREDIT / 5},
    {priority, LIMIT_H2_CREDIT},
    {priority_update, LIMIT_H2_CREDIT},
    {window_update, LIMIT_H2_CREDIT},
    {unknown_frame, LIMIT_H2_CREDIT / 2},
    {empty_data, LIMIT_H2_CREDIT / 5},
    {padded_data, LIMIT_H2_CREDIT / 5},
    {continuation, LIMIT_H2_CREDIT / 5 + 1},
    {long_continuation, LIMIT_H2_HEADER_BLOCK / 16384 + 1},
    {refused_stream, LIMIT_H2_CREDIT / 20},
    {malformed_request, LIMIT_H2_CREDIT / 20},
    {overflow_stream, LIMIT_H2_CREDIT / 20},
    {zero_increment, LIMIT_H2_CREDIT / 20},
    {depend_on_itself, LIMIT_H2_CREDIT / 20},
    {data_behind_the_end, LIMIT_H2_CREDIT / 20},
};

START_TEST(floods_end_the_connection)
{
    unsigned events;

    open_session();
    events = flood(floods[_i].event, floods[_i].max + 1);
    ck_assert_msg(events <= floods[_i].max, "%u events", events);
    expect_enhance_your_calm();
    table_server_hang_up(server);
    ck_assert_uint_eq(server->begun, server->finished);
    close_session();
}
END_TEST

/* Completed responses restore the credit that the resets of an ordinary page load cost. */
START_TEST(ordinary_clients_keep_their_connection)
{
    open_session();
    client.quiet = true;
    for (uint32_t i = 0; i < 1000; i++) {
        h2_client_request(&client, 1 + 4 * i, "GET", "/hello", true);
        h2_client_number(&client, H2_WINDOW_UPDATE, 0, 5);
        h2_client_request(&client, 3 + 4 * i, "GET", i % 4 ? "/hello" : "/later", true);
        if (i % 4 == 0)
            h2_client_number(&client, H2_RST_STREAM, 3 + 4 * i, H2_CANCEL);
        server->settings.keepalive_requests = UINT32_MAX;
        h2_client_flush(&client);
    }
    ck_assert_uint_eq(server->begun, 2000);
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    close_session();
}
END_TEST

/* One byte refers to a field of 3000 bytes in the dynamic table. */
START_TEST(decompressed_heads_are_limited)
{
    static char lines[4100] = "x=";
    static char block[16384];

    open_session();
    memset(lines + 2, 'a', 3000);
    h2_client_headers(&client, 1, H2_FLAG_END_STREAM, lines); /* malformed, but the field enters the dynamic table */
    expect("RST_STREAM 1 PROTOCOL_ERROR\n");
    memset(block, 0x80 | 62, sizeof(block));
    h2_client_frame(&client, H2_HEADERS, H2_FLAG_END_HEADERS, 3, str_of(block, 200));
    expect("RST_STREAM 3 PROTOCOL_ERROR\n"); /* no method */
    h2_client_frame(&client, H2_HEADERS, H2_FLAG_END_HEADERS, 5, str_of(block, sizeof(block)));
    expect("GOAWAY 0 ENHANCE_YOUR_CALM\n");
    close_session();
}
END_TEST

/* A client sends PING frames and reads no acknowledgements. */
START_TEST(queued_control_frames_are_limited)
{
    struct chunk chunk;

    open_session();
    server->clock.monotonic_ms = 0;
    for (int i = 0; i < 5000 && table_server_phase(server) != SESSION_OVER; i++) {
        struct buffer sent;

        ping(0);
        sent = client.sent;
        client.sent = (struct buffer){0};
        protocol_http2.consume(server->session, buffer_str(&sent));
        buffer_finish(&sent);
        server->clock.monotonic_ms += 1000; /* the time restores the credit */
    }
    ck_assert_int_eq(table_server_phase(server), SESSION_OVER);
    ck_assert_int_eq(protocol_http2.produce(server->session, CHUNK_BYTES, 100, &chunk), -ENOBUFS);
    close_session();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        streams_above_the_limit_are_refused, events_are_counted,
        streams_above_the_memory_limit_are_refused,
        unread_body_above_the_memory_limit_fails,
        ordinary_clients_keep_their_connection,
        decompressed_heads_are_limited,
        queued_control_frames_are_limited,
    };
    const struct suite_loop loops[] = {
        {floods_end_the_connection, COUNT(floods)},
    };

    return suite_run_loops("h2_flood", tests, COUNT(tests), loops, COUNT(loops));
}
