/*
 * The life of HTTP/2 sessions: resets by the client, shutdown, timeouts and priorities.
 */
#include "h2_session_fixture.h"

#include <errno.h>
#include <stdio.h>

/* The path of the newest exchange in progress, and the number of exchanges. */
static void assert_current(const char *path, unsigned expected_count)
{
    unsigned count = 99;
    const struct exchange *x = protocol_http2.current(server->session, &count);

    ck_assert_uint_eq(count, expected_count);
    ck_assert_text(x ? x->request.path : STR(""), path);
}

START_TEST(current_exchange_is_the_newest)
{
    open_session();
    assert_current("", 0);
    h2_client_request(&client, 1, "POST", "/small", false);
    h2_client_flush(&client);
    assert_current("/small", 1);
    h2_client_request(&client, 3, "POST", "/echo", false);
    h2_client_flush(&client);
    assert_current("/echo", 2);
    h2_client_number(&client, H2_RST_STREAM, 3, H2_CANCEL);
    h2_client_flush(&client);
    assert_current("/small", 1);
    h2_client_number(&client, H2_RST_STREAM, 1, H2_CANCEL);
    h2_client_flush(&client);
    assert_current("", 0);
    close_session();
}
END_TEST

START_TEST(reset_of_a_request_cancels_its_exchange)
{
    open_session();
    h2_client_request(&client, 1, "POST", "/echo", false);
    h2_client_data(&client, 1, STR("abc"), false);
    h2_client_number(&client, H2_RST_STREAM, 1, H2_CANCEL);
    expect("PING sluicebd\n");
    ck_assert_text(buffer_str(&server->log), "POST /echo 0 0 cancelled\n");
    h2_client_number(&client, H2_RST_STREAM, 1, H2_CANCEL); /* closed: ignored */
    h2_client_data(&client, 1, STR("abc"), false);
    expect("RST_STREAM 1 STREAM_CLOSED\n");
    h2_client_data(&client, 1, STR("abc"), false); /* may have been sent before the reset arrived */
    expect("");
    h2_client_request(&client, 3, "GET", "/hello", true);
    expect(OK("3"));
    close_session();
}
END_TEST

START_TEST(reset_of_a_blocked_response_cancels_its_exchange)
{
    open_session();
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    h2_client_request(&client, 1, "GET", "/hello", true);
    expect("SETTINGS ack\nHEADERS 1 :status=200 content-length=5\n");
    h2_client_number(&client, H2_RST_STREAM, 1, H2_CANCEL);
    h2_client_number(&client, H2_WINDOW_UPDATE, 0, 1);
    expect("");
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    ck_assert_text(buffer_str(&server->log), "GET /hello 200 0 cancelled\n");
    close_session();
}
END_TEST

START_TEST(goaway_in_two_steps)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_flush(&client);
    table_server_signal(server, SESSION_DRAIN);
    table_server_signal(server, SESSION_DRAIN);
    expect("GOAWAY 2147483647 NO_ERROR\nPING sluicego\n");
    h2_client_request(&client, 3, "GET", "/hello", true); /* sent before GOAWAY arrived */
    expect(OK("3"));
    h2_client_frame(&client, H2_PING, H2_FLAG_ACK, 0, STR("sluicego"));
    expect("GOAWAY 3 NO_ERROR\n");
    h2_client_request(&client, 5, "GET", "/hello", true); /* not processed */
    h2_client_frame(&client, H2_PING, H2_FLAG_ACK, 0, STR("sluicego"));
    expect("");
    ck_assert_int_eq(server->result, -EAGAIN);
    table_server_answer(server);
    expect("HEADERS 1 :status=200 content-length=4\nDATA 1 4 late end\n");
    ck_assert_int_eq(server->result, 0);
    ck_assert_int_eq(table_server_phase(server), SESSION_OVER);
    ck_assert_uint_eq(server->begun, 2);
    close_session();
}
END_TEST

START_TEST(idle_connection_is_retired)
{
    open_session();
    table_server_signal(server, SESSION_RETIRE);
    expect("GOAWAY 2147483647 NO_ERROR\nPING sluicego\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_CLOSING);
    h2_client_frame(&client, H2_PING, H2_FLAG_ACK, 0, STR("sluicego"));
    expect("GOAWAY 0 NO_ERROR\n");
    ck_assert_int_eq(server->result, 0);
    close_session();
}
END_TEST

START_TEST(unacknowledged_goaway_times_out)
{
    open_session();
    advance_clock(50000);
    table_server_signal(server, SESSION_DRAIN);
    advance_clock(LIMIT_H2_GOAWAY_MS - 1);
    expect("GOAWAY 2147483647 NO_ERROR\nPING sluicego\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_CLOSING);
    advance_clock(1);
    expect("GOAWAY 0 NO_ERROR\n");
    ck_assert_int_eq(server->result, 0);
    close_session();
}
END_TEST

/* The second GOAWAY does not wait for the streams, and its wait begins with the first. */
START_TEST(unacknowledged_goaway_with_a_stream)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_flush(&client);
    table_server_signal(server, SESSION_DRAIN);
    advance_clock(LIMIT_H2_GOAWAY_MS - 500);
    table_server_signal(server, SESSION_DEADLINE); /* too early, as for the deadline of an ended stream */
    expect("GOAWAY 2147483647 NO_ERROR\nPING sluicego\n");
    advance_clock(500);
    h2_client_request(&client, 3, "GET", "/hello", true); /* not processed */
    expect("GOAWAY 1 NO_ERROR\n");
    table_server_answer(server);
    expect("HEADERS 1 :status=200 content-length=4\nDATA 1 4 late end\n");
    ck_assert_int_eq(server->result, 0);
    ck_assert_uint_eq(server->begun, 1);
    close_session();
}
END_TEST

START_TEST(connection_ends_after_keepalive_requests)
{
    open_session();
    server->settings.keepalive_requests = 2;
    h2_client_request(&client, 1, "GET", "/hello", true);
    expect(OK("1"));
    h2_client_request(&client, 3, "GET", "/hello", true);
    expect("GOAWAY 2147483647 NO_ERROR\nPING sluicego\n" OK("3"));
    h2_client_request(&client, 5, "GET", "/hello", true);
    expect(OK("5"));
    h2_client_frame(&client, H2_PING, H2_FLAG_ACK, 0, STR("sluicego"));
    expect("GOAWAY 5 NO_ERROR\n");
    ck_assert_int_eq(server->result, 0);
    close_session();
}
END_TEST

START_TEST(connection_without_keepalive_ends_after_one_response)
{
    open_session();
    server->settings.keepalive = false;
    h2_client_request(&client, 1, "GET", "/hello", true);
    expect("GOAWAY 2147483647 NO_ERROR\nPING sluicego\n" OK("1"));
    close_session();
}
END_TEST

START_TEST(end_of_the_peer_ends_all_exchanges)
{
    open_session();
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 3);
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_request(&client, 3, "POST", "/later", false);
    h2_client_request(&client, 5, "GET", "/hello", true);
    h2_client_frame(&client, H2_HEADERS, 0, 7, STR("\x82"));
    h2_client_flush(&client);
    table_server_signal(server, SESSION_PEER_CLOSED);
    ck_assert_int_eq(server->result, 0);
    ck_assert_int_eq(table_server_phase(server), SESSION_OVER);
    table_server_hang_up(server);
    ck_assert_uint_eq(server->begun, 3);
    ck_assert_uint_eq(server->finished, 3);
    close_session();
}
END_TEST

START_TEST(idle_connection_times_out_with_goaway)
{
    open_session();
    table_server_signal(server, SESSION_TIMEOUT);
    expect("GOAWAY 0 NO_ERROR\n");
    ck_assert_int_eq(server->result, 0);
    close_session();
}
END_TEST

static void request_with_priority(uint32_t stream, const char *value)
{
    char lines[200];

    snprintf(lines, sizeof(lines), ":method=GET\n:scheme=https\n:path=/hello\n:authority=a\npriority=%s\n", value);
    h2_client_headers(&client, stream, H2_FLAG_END_STREAM, lines);
}

START_TEST(urgent_responses_are_sent_first)
{
    open_session();
    request_with_priority(1, "u=7");
    request_with_priority(3, "u=2, i");
    request_with_priority(5, "u=2, i");
    request_with_priority(7, "u=0");
    expect(OK("7") "HEADERS 3 :status=200 content-length=5\nHEADERS 5 :status=200 content-length=5\n"
                   "DATA 3 5 hello end\nDATA 5 5 hello end\n" OK("1"));
    close_session();
}
END_TEST

START_TEST(priority_is_updated)
{
    open_session();
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    request_with_priority(1, "u=1");
    request_with_priority(3, "u=6");
    expect("SETTINGS ack\nHEADERS 1 :status=200 content-length=5\nHEADERS 3 :status=200 content-length=5\n");
    h2_client_frame(&client, H2_PRIORITY_UPDATE, 0, 0, STR("\0\0\0\3u=0"));
    h2_client_frame(&client, H2_PRIORITY_UPDATE, 0, 0, STR("\0\0\0\7u=0")); /* idle: ignored */
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 100);
    expect("SETTINGS ack\nDATA 3 5 hello end\nDATA 1 5 hello end\n");
    close_session();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        current_exchange_is_the_newest, reset_of_a_request_cancels_its_exchange,
        reset_of_a_blocked_response_cancels_its_exchange, goaway_in_two_steps, idle_connection_is_retired,
        unacknowledged_goaway_times_out, unacknowledged_goaway_with_a_stream, connection_ends_after_keepalive_requests,
        connection_without_keepalive_ends_after_one_response, end_of_the_peer_ends_all_exchanges,
        idle_connection_times_out_with_goaway, urgent_responses_are_sent_first, priority_is_updated,
    };

    return suite_run("h2_life", tests, COUNT(tests));
}
