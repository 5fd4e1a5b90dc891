/*
 * Timeouts of streams: a stream that waits too long for its client ends, and other streams proceed.
 */
#include "h2_session_fixture.h"

#include "http/h2/session.h"

#include <errno.h>

static const struct h2_wait_limits minute = {60000, 0}, slow = {60000, 240};

START_TEST(wait_without_progress_expires_after_the_timeout)
{
    struct h2_wait wait = {0};

    ck_assert_uint_eq(h2_wait_deadline(&wait, minute), UINT64_MAX);
    ck_assert(!h2_wait_expired(&wait, UINT64_MAX, minute));
    h2_wait_begin(&wait, 1000);
    h2_wait_begin(&wait, 2000); /* no effect */
    ck_assert_uint_eq(h2_wait_deadline(&wait, minute), 61000);
    ck_assert(!h2_wait_expired(&wait, 60999, minute));
    ck_assert(h2_wait_expired(&wait, 61000, minute));
    h2_wait_end(&wait, 61000);
    ck_assert(!h2_wait_expired(&wait, 100000, minute));
    h2_wait_begin(&wait, 60000); /* the same stall */
    ck_assert(h2_wait_expired(&wait, 61000, minute));
    ck_assert(!h2_wait_expired(&wait, UINT64_MAX - 1, (struct h2_wait_limits){UINT64_MAX, 0}));
}
END_TEST

START_TEST(progress_extends_the_wait)
{
    struct h2_wait wait = {0};

    h2_wait_begin(&wait, 0);
    h2_wait_progress(&wait, 50000, 1);
    ck_assert(!h2_wait_expired(&wait, 60000, minute));
    ck_assert_uint_eq(h2_wait_deadline(&wait, minute), 110000);
    h2_wait_end(&wait, 50000);
    h2_wait_begin(&wait, 200000); /* the time between the waits does not count */
    ck_assert(!h2_wait_expired(&wait, 259999, minute));
    ck_assert(h2_wait_expired(&wait, 260000, minute));
}
END_TEST

/* Only the time of waiting counts; a window without any byte has 60 s. */
START_TEST(wait_below_the_least_rate_expires)
{
    struct h2_wait wait = {0};

    for (int i = 0; i < 3; i++) {
        h2_wait_begin(&wait, (uint64_t)i * 100000);
        ck_assert_uint_eq(h2_wait_deadline(&wait, slow),
                          (uint64_t)i * 100000 + (i ? 30000 : 60000) - (uint64_t)i * 10000);
        h2_wait_progress(&wait, (uint64_t)i * 100000 + 10000, 2399);
        ck_assert(h2_wait_expired(&wait, (uint64_t)i * 100000 + 10000, slow) == (i == 2));
        h2_wait_end(&wait, (uint64_t)i * 100000 + 10000);
    }
    wait = (struct h2_wait){0};
    h2_wait_begin(&wait, 0);
    h2_wait_progress(&wait, 29000, 7200);
    ck_assert(!h2_wait_expired(&wait, 30000, slow));
    ck_assert_uint_eq(h2_wait_deadline(&wait, slow), 89000); /* the timeout; the next window ends at 90000 */
    ck_assert(!h2_wait_expired(&wait, 88999, slow));
    ck_assert(h2_wait_expired(&wait, 89000, slow));
    ck_assert(!h2_wait_expired(&wait, 88999, minute));
}
END_TEST

/* A timeout above the windows of the rate: a stall is limited by the rate. */
START_TEST(wait_without_any_byte_is_limited_by_the_rate)
{
    const struct h2_wait_limits patient = {600000, 240}, without_rate = {600000, 0};
    struct h2_wait wait = {0};

    h2_wait_begin(&wait, 1000);
    ck_assert_uint_eq(h2_wait_deadline(&wait, patient), 61000);
    ck_assert(!h2_wait_expired(&wait, 60999, patient));
    ck_assert(!h2_wait_expired(&wait, 61000, without_rate));
    ck_assert(h2_wait_expired(&wait, 61000, patient));
    wait = (struct h2_wait){0};
    h2_wait_begin(&wait, 0);
    h2_wait_progress(&wait, 45000, 240 * 60);
    ck_assert(!h2_wait_expired(&wait, 45000, patient)); /* enough for 60 s */
    ck_assert_uint_eq(h2_wait_deadline(&wait, patient), 105000);
    h2_wait_progress(&wait, 60000, 1);
    ck_assert(h2_wait_expired(&wait, 75000, patient));
}
END_TEST

START_TEST(continuations_do_not_extend_the_head_timeout)
{
    open_session();
    h2_client_frame(&client, H2_HEADERS, 0, 1, STR("\x82"));
    h2_client_flush(&client);
    ck_assert_int_eq(table_server_phase(server), SESSION_HEAD);
    advance_clock(59000);
    h2_client_frame(&client, H2_CONTINUATION, 0, 1, STR("\x82")); /* does not extend it */
    expect("");
    advance_clock(1000);
    expect("GOAWAY 0 NO_ERROR\n");
    ck_assert_int_eq(server->result, 0);
    close_session();
    /* An incomplete frame. */
    open_session();
    h2_client_feed(&client, STR("\0\0"));
    ck_assert_int_eq(table_server_phase(server), SESSION_HEAD);
    advance_clock(60000);
    expect("GOAWAY 0 NO_ERROR\n");
    close_session();
}
END_TEST

/* Each frame, and each header block, has its own time. */
START_TEST(each_head_has_its_own_timeout)
{
    open_session();
    for (uint32_t stream = 1; stream < 9; stream += 2) {
        struct str block;

        h2_client_frame(&client, H2_PING, 0, 0, STR("01234567"));
        expect("PING 01234567 ack\n");
        block = h2_client_encode(&client, ":method=GET\n:scheme=http\n:authority=a\n:path=/hello\n");
        h2_client_frame(&client, H2_HEADERS, H2_FLAG_END_STREAM, stream, str_slice(block, 0, 3));
        h2_client_flush(&client);
        advance_clock(30000);
        h2_client_frame(&client, H2_CONTINUATION, H2_FLAG_END_HEADERS, stream, str_skip(block, 3));
        h2_client_flush(&client);
        ck_assert_uint_eq(server->finished, (stream + 1) / 2);
        (void)h2_client_log(&client);
        h2_client_feed(&client, STR("\0\0"));
        advance_clock(30000);
        h2_client_feed(&client, STR("\x8\6\0\0\0\0\0" "01234567"));
        expect("PING 01234567 ack\n");
    }
    close_session();
}
END_TEST

/* The other streams are completed: their responses do not depend on the block that does not end. */
START_TEST(streams_complete_after_a_head_timeout)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_request(&client, 3, "POST", "/stream", false);
    h2_client_frame(&client, H2_HEADERS, 0, 5, STR("\x82"));
    expect("HEADERS 3 :status=200\n");
    advance_clock(59000);
    expect("");
    advance_clock(1000);
    expect("GOAWAY 2147483647 NO_ERROR\nPING sluicego\nGOAWAY 3 NO_ERROR\nRST_STREAM 3 INTERNAL_ERROR\n");
    h2_client_request(&client, 7, "GET", "/hello", true); /* ignored */
    expect("");
    ck_assert_int_eq(server->result, -EAGAIN);
    table_server_answer(server);
    expect("HEADERS 1 :status=200 content-length=4\nDATA 1 4 late end\n");
    ck_assert_int_eq(server->result, 0);
    close_session();
}
END_TEST

/* Bytes of stream 3 do not extend the time of stream 1. */
START_TEST(other_streams_do_not_extend_the_body_timeout)
{
    open_session();
    server->settings.http2.min_rate = 0;
    h2_client_request(&client, 1, "POST", "/echo", false);
    h2_client_flush(&client);
    ck_assert_int_eq(table_server_phase(server), SESSION_BODY);
    advance_clock(50000);
    h2_client_data(&client, 1, STR("x"), false); /* progress */
    expect("PING sluicebd\n");
    h2_client_request(&client, 3, "POST", "/stream", false);
    expect("HEADERS 3 :status=200\n");
    for (int i = 0; i < 5; i++) {
        h2_client_data(&client, 3, STR("12345678"), false);
        expect("DATA 3 8 12345678\n");
        advance_clock(10000);
    }
    ck_assert_uint_eq(server->finished, 0);
    advance_clock(10000);
    expect("HEADERS 1 :status=408 content-length=2\nDATA 1 2 no end\nPING sluicere\n");
    h2_client_data(&client, 3, STR("y"), true);
    expect("DATA 3 1 y\nDATA 3 0  end\n");
    advance_clock(60000); /* the client is silent */
    expect("RST_STREAM 1 NO_ERROR\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    close_session();
}
END_TEST

/* client_min_rate: progress, but too little of it. */
START_TEST(body_below_the_least_rate_is_408)
{
    open_session();
    h2_client_request(&client, 1, "POST", "/echo", false);
    h2_client_flush(&client);
    for (int i = 0; i < 29; i++) {
        h2_client_data(&client, 1, STR("x"), false);
        h2_client_flush(&client);
        advance_clock(1000);
    }
    expect("PING sluicebd\n");
    advance_clock(1000);
    expect("HEADERS 1 :status=408 content-length=2\nDATA 1 2 no end\nPING sluicere\n");
    advance_clock(60000);
    close_session();
    open_session();
    server->settings.http2.min_rate = 0;
    h2_client_request(&client, 1, "POST", "/echo", false);
    for (int i = 0; i < 100; i++) {
        h2_client_data(&client, 1, STR("x"), false);
        h2_client_flush(&client);
        advance_clock(1000);
    }
    expect("PING sluicebd\n");
    table_server_hang_up(server);
    close_session();
}
END_TEST

START_TEST(drained_body_times_out)
{
    open_session();
    h2_client_request(&client, 1, "POST", "/hello", false);
    expect(OK("1"));
    advance_clock(59000);
    expect("");
    advance_clock(1000);
    expect("RST_STREAM 1 NO_ERROR\n");
    close_session();
}
END_TEST

/* The connection's window is used up by a stream whose body is not read: the client must not send. */
START_TEST(body_does_not_time_out_without_a_connection_window)
{
    struct h2_session *h2;

    open_session();
    h2 = container_of(server->session, struct h2_session, session);
    h2_client_request(&client, 1, "POST", "/later", false);
    h2_client_request(&client, 3, "POST", "/echo", false);
    h2_client_flush(&client);
    h2->receive.left = 0;
    advance_clock(200000);
    expect("");
    h2->receive.left = LIMIT_H2_CONNECTION_WINDOW;
    advance_clock(60000);
    expect("HEADERS 3 :status=408 content-length=2\nDATA 3 2 no end\nPING sluicere\n");
    table_server_hang_up(server);
    close_session();
}
END_TEST

/* Frames of other streams do not extend the time of stream 1, nor does a window of the connection. */
START_TEST(other_streams_do_not_extend_a_blocked_response)
{
    open_session();
    server->settings.http2.min_rate = 0;
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    h2_client_request(&client, 1, "GET", "/hello", true);
    h2_client_request(&client, 3, "GET", "/later", true);
    expect("SETTINGS ack\nHEADERS 1 :status=200 content-length=5\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_BLOCKED);
    advance_clock(40000);
    h2_client_number(&client, H2_WINDOW_UPDATE, 1, 1); /* progress */
    expect("DATA 1 1 h\n");
    for (uint32_t stream = 5; stream < 15; stream += 2) {
        h2_client_request(&client, stream, "GET", "/none", true);
        h2_client_number(&client, H2_WINDOW_UPDATE, 0, 1000);
        h2_client_flush(&client);
        advance_clock(10000);
    }
    (void)h2_client_log(&client);
    ck_assert_uint_eq(server->finished, 5);
    advance_clock(10000);
    expect("RST_STREAM 1 CANCEL\n");
    ck_assert_ptr_nonnull(memmem(server->log.data, server->log.length, "GET /hello 200 1 cancelled\n", 27));
    ck_assert_int_eq(table_server_phase(server), SESSION_WAITING); /* the other stream waits for the server */
    advance_clock(100000);
    expect("");
    table_server_answer(server);
    h2_client_number(&client, H2_WINDOW_UPDATE, 3, 10);
    expect("HEADERS 3 :status=200 content-length=4\nDATA 3 4 late end\n");
    close_session();
}
END_TEST

/* Small windows: each is progress, and too little of it. */
START_TEST(response_read_below_the_least_rate_is_cancelled)
{
    open_session();
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    h2_client_request(&client, 1, "GET", "/big", true);
    h2_client_flush(&client);
    for (int i = 0; i < 29; i++) {
        h2_client_number(&client, H2_WINDOW_UPDATE, 1, 100);
        h2_client_flush(&client);
        advance_clock(1000);
    }
    ck_assert_uint_eq(server->finished, 0);
    advance_clock(1000);
    ck_assert_text(buffer_str(&server->log), "GET /big 200 2900 cancelled\n");
    (void)h2_client_log(&client);
    close_session();
}
END_TEST

/* A response that waits for the server between two windows: the first wait does not count for the second. */
START_TEST(waits_before_and_after_the_server_do_not_add_up)
{
    open_session();
    server->settings.http2.min_rate = 0;
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    h2_client_request(&client, 1, "POST", "/stream", false);
    h2_client_data(&client, 1, STR("x"), false);
    h2_client_flush(&client);
    advance_clock(50000);
    h2_client_number(&client, H2_WINDOW_UPDATE, 1, 1);
    h2_client_flush(&client);
    h2_client_data(&client, 1, STR("y"), false);
    h2_client_flush(&client);
    advance_clock(50000);
    h2_client_number(&client, H2_WINDOW_UPDATE, 1, 100);
    h2_client_data(&client, 1, STR("z"), true);
    h2_client_flush(&client);
    ck_assert_text(buffer_str(&server->log), "POST /stream 200 3\n");
    (void)h2_client_log(&client);
    close_session();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        wait_without_progress_expires_after_the_timeout,
        progress_extends_the_wait,
        wait_below_the_least_rate_expires,
        wait_without_any_byte_is_limited_by_the_rate,
        continuations_do_not_extend_the_head_timeout,
        each_head_has_its_own_timeout,
        streams_complete_after_a_head_timeout,
        other_streams_do_not_extend_the_body_timeout,
        body_below_the_least_rate_is_408,
        drained_body_times_out,
        body_does_not_time_out_without_a_connection_window,
        other_streams_do_not_extend_a_blocked_response,
        response_read_below_the_least_rate_is_cancelled,
        waits_before_and_after_the_server_do_not_add_up,
    };

    return suite_run("h2_timeout", tests, COUNT(tests));
}
