/*
 * Flow control of HTTP/2 sessions, and the rest of a request body after the end of its response.
 */
#include "h2_session_fixture.h"

#include <stdio.h>

/* Flow control of responses. */

START_TEST(body_waits_for_a_window_of_zero)
{
    open_session();
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    h2_client_request(&client, 1, "GET", "/hello", true);
    expect("SETTINGS ack\nHEADERS 1 :status=200 content-length=5\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_BLOCKED);
    h2_client_request(&client, 3, "HEAD", "/hello", true); /* needs no window */
    expect("HEADERS 3 :status=200 content-length=5 end\n");
    h2_client_number(&client, H2_WINDOW_UPDATE, 0, 1000);
    expect("");
    for (int i = 0; i < 4; i++) {
        char expected[20];

        h2_client_number(&client, H2_WINDOW_UPDATE, 1, 1);
        snprintf(expected, sizeof(expected), "DATA 1 1 %c\n", "hello"[i]);
        expect(expected);
    }
    ck_assert_int_eq(table_server_phase(server), SESSION_BLOCKED);
    h2_client_number(&client, H2_WINDOW_UPDATE, 1, 1);
    expect("DATA 1 1 o end\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    close_session();
}
END_TEST

/* SETTINGS change the windows of open streams, also below zero (RFC 9113 6.9.2). */
START_TEST(settings_change_windows)
{
    open_session();
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 3);
    h2_client_request(&client, 1, "GET", "/hello", true);
    expect("SETTINGS ack\nHEADERS 1 :status=200 content-length=5\nDATA 1 3 hel\n");
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 1); /* the window of stream 1 is -2 */
    h2_client_number(&client, H2_WINDOW_UPDATE, 1, 2);
    expect("SETTINGS ack\n");
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 2);
    expect("SETTINGS ack\nDATA 1 1 l\n");
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 100);
    expect("SETTINGS ack\nDATA 1 1 o end\n");
    close_session();
}
END_TEST

START_TEST(responses_share_the_connection_window)
{
    open_session();
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 1000000);
    client.quiet = true;
    h2_client_request(&client, 1, "GET", "/big", true);
    h2_client_request(&client, 3, "GET", "/big", true);
    h2_client_flush(&client);
    ck_assert_int_eq(client.received, 65535);
    ck_assert_int_eq(table_server_phase(server), SESSION_BLOCKED);
    h2_client_number(&client, H2_WINDOW_UPDATE, 0, 1);
    h2_client_flush(&client);
    ck_assert_int_eq(client.received, 65536);
    h2_client_number(&client, H2_WINDOW_UPDATE, 0, 200000 - 65536);
    h2_client_flush(&client);
    ck_assert_int_eq(client.received, 200000);
    ck_assert_int_eq(client.streams[0].received, 100000);
    ck_assert_int_eq(client.streams[1].received, 100000);
    ck_assert_text(buffer_str(&server->log), "GET /big 200 100000\nGET /big 200 100000\n");
    close_session();
}
END_TEST

START_TEST(overflow_of_a_window_is_a_flow_control_error)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_number(&client, H2_WINDOW_UPDATE, 1, 0x7fffffff);
    expect("RST_STREAM 1 FLOW_CONTROL_ERROR\n");
    ck_assert_text(buffer_str(&server->log), "GET /later 0 0 cancelled\n");
    h2_client_number(&client, H2_WINDOW_UPDATE, 1, 0x7fffffff); /* closed: ignored */
    expect("");
    h2_client_number(&client, H2_WINDOW_UPDATE, 0, 0x7fffffff);
    expect("GOAWAY 1 FLOW_CONTROL_ERROR\n");
    ck_assert_int_eq(server->result, 0);
    close_session();
}
END_TEST

START_TEST(settings_overflow_a_window)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_number(&client, H2_WINDOW_UPDATE, 1, 0x7fffffff - 65535);
    h2_client_setting(&client, H2_SETTINGS_INITIAL_WINDOW_SIZE, 65536);
    expect("GOAWAY 1 FLOW_CONTROL_ERROR\n");
    close_session();
}
END_TEST

/* Flow control of request bodies: reading the body enlarges the windows. */
START_TEST(request_body_opens_windows)
{
    open_session();
    h2_client_request(&client, 1, "POST", "/echo", false);
    h2_client_data(&client, 1, str_of(big, 32767), false);
    expect("PING sluicebd\n");
    h2_client_data(&client, 1, STR("b"), false);
    expect("WINDOW_UPDATE 1 32768\n");
    h2_client_data(&client, 1, str_of(big, 32768), true);
    ck_assert_ptr_nonnull(strstr(h2_client_log(&client), "HEADERS 1 :status=200 content-length=65536\n"));
    close_session();
}
END_TEST

/* The window grows if the bytes received until the acknowledgement of PING fill two thirds of it. */
START_TEST(measured_window_grows)
{
    open_session();
    h2_client_request(&client, 1, "POST", "/echo", false);
    h2_client_data(&client, 1, str_of(big, 50000), false);
    expect("PING sluicebd\nWINDOW_UPDATE 1 32774\n"); /* the server reads 7 bytes at a time */
    h2_client_frame(&client, H2_PING, H2_FLAG_ACK, 0, STR("otherbd!"));
    h2_client_frame(&client, H2_PING, H2_FLAG_ACK, 0, STR("sluicebd"));
    h2_client_data(&client, 1, STR("x"), false);
    expect("PING sluicebd\nWINDOW_UPDATE 1 82763\n");
    table_server_hang_up(server);
    h2_client_close(&client);
}
END_TEST

START_TEST(request_body_exceeds_window)
{
    open_session();
    h2_client_request(&client, 1, "POST", "/later", false);
    h2_client_data(&client, 1, str_of(big, 65536), false);
    expect("PING sluicebd\n");
    h2_client_data(&client, 1, STR("x"), false);
    expect("RST_STREAM 1 FLOW_CONTROL_ERROR\n");
    h2_client_request(&client, 3, "GET", "/hello", true);
    expect(OK("3"));
    close_session();
}
END_TEST

/* Body bytes of closed streams use the window of the connection, which WINDOW_UPDATE then restores. */
START_TEST(connection_window_is_not_lost)
{
    open_session();
    client.quiet = true;
    for (uint32_t i = 0; i < 40; i++) {
        h2_client_request(&client, 1 + 2 * i, "POST", "/later", false);
        h2_client_data(&client, 1 + 2 * i, str_of(big, 60000), false);
        h2_client_number(&client, H2_RST_STREAM, 1 + 2 * i, H2_CANCEL);
        h2_client_data(&client, 1 + 2 * i, str_of(big, 10000), true);
        h2_client_flush(&client);
        ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    }
    close_session();
}
END_TEST

/* The end of a response before the end of its request body. */

START_TEST(rest_of_a_body_is_drained)
{
    open_session();
    h2_client_request(&client, 1, "POST", "/hello", false);
    expect(OK("1"));
    ck_assert_text(buffer_str(&server->log), "POST /hello 200 5\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_BODY);
    h2_client_data(&client, 1, str_of(big, 65536), false);
    expect("PING sluicebd\nWINDOW_UPDATE 1 32768\nWINDOW_UPDATE 1 32768\n");
    h2_client_data(&client, 1, STR("x"), false); /* more than LIMIT_PIPELINE_DRAIN */
    expect("RST_STREAM 1 NO_ERROR\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    h2_client_request(&client, 3, "POST", "/hello", false);
    h2_client_data(&client, 3, STR("x"), true);
    expect(OK("3"));
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    h2_client_request(&client, 5, "POST", "/hello", false);
    h2_client_headers(&client, 5, H2_FLAG_END_STREAM, "x=y\n");
    expect(OK("5"));
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    close_session();
}
END_TEST

/* The unread bytes of a drained body enlarge the window again, so that the client can send the rest. */
START_TEST(drained_body_opens_its_window)
{
    open_session();
    h2_client_headers(&client, 1, 0,
                      ":method=POST\n:scheme=https\n:path=/later\n:authority=a\ncontent-length=100000\n");
    h2_client_data(&client, 1, str_of(big, 65536), false);
    expect("PING sluicebd\n");
    table_server_answer(server);
    expect("HEADERS 1 :status=200 content-length=4\nDATA 1 4 late end\nWINDOW_UPDATE 1 65536\n");
    h2_client_data(&client, 1, str_of(big, 100000 - 65536), true);
    expect("WINDOW_UPDATE 1 32768\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    close_session();
}
END_TEST

START_TEST(long_rest_of_a_body_is_rejected)
{
    open_session();
    h2_client_headers(&client, 1, 0,
                      ":method=POST\n:scheme=https\n:path=/hello\n:authority=a\ncontent-length=65537\n");
    expect(OK("1") "PING sluicere\n");
    for (int i = 0; i < 2; i++) /* sent before the response arrived: ignored, without WINDOW_UPDATE */
        h2_client_data(&client, 1, str_of(big, 16384), false);
    expect("PING sluicebd\n");
    h2_client_frame(&client, H2_PING, H2_FLAG_ACK, 0, STR("sluicere"));
    expect("RST_STREAM 1 NO_ERROR\n");
    h2_client_data(&client, 1, str_of(big, 16384), true); /* sent before the reset arrived */
    expect("");
    h2_client_request(&client, 3, "GET", "/hello", true);
    expect(OK("3"));
    close_session();
}
END_TEST

/* A drained body above its size limit is still received: the client's timeout applies. */
START_TEST(drained_body_over_its_limit)
{
    open_session();
    h2_client_request(&client, 1, "POST", "/limited", false);
    expect("HEADERS 1 :status=200 content-length=1\nDATA 1 1 x end\n");
    h2_client_data(&client, 1, STR("123456"), false);
    expect("PING sluicebd\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_BODY);
    advance_clock(60000);
    expect("RST_STREAM 1 NO_ERROR\n");
    close_session();
}
END_TEST

/* The server sends no RST_STREAM if the client ends the stream before it acknowledges the PING. */
START_TEST(reset_is_omitted_after_the_client_ended_the_stream)
{
    open_session();
    for (unsigned stream = 1; stream <= 3; stream += 2) {
        h2_client_headers(&client, stream, 0,
                          ":method=POST\n:scheme=https\n:path=/hello\n:authority=a\ncontent-length=70000\n");
        expect(stream == 1 ? OK("1") "PING sluicere\n" : OK("3") "PING sluicere\n");
        h2_client_frame(&client, H2_RST_STREAM, 0, stream, STR("\0\0\0\10"));
        h2_client_frame(&client, H2_PING, H2_FLAG_ACK, 0, STR("sluicere"));
        expect("");
    }
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    close_session();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        body_waits_for_a_window_of_zero,
        settings_change_windows,
        responses_share_the_connection_window,
        overflow_of_a_window_is_a_flow_control_error,
        settings_overflow_a_window,
        request_body_opens_windows,
        measured_window_grows,
        request_body_exceeds_window,
        connection_window_is_not_lost,
        rest_of_a_body_is_drained,
        drained_body_opens_its_window,
        long_rest_of_a_body_is_rejected,
        drained_body_over_its_limit,
        reset_is_omitted_after_the_client_ended_the_stream,
    };

    return suite_run("h2_windows", tests, COUNT(tests));
}
