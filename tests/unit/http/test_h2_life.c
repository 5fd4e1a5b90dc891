/*
 * The life of HTTP/2 sessions: resets by the client, shutdown, timeouts and priorities.
 */
#include "h2_session_fixture.h"

#include <errno.h>
#include <stdio.h>

/* Produces at most `room` bytes, and accounts for them as the wire does. */
static void produce_bytes(size_t room, struct chunk *out)
{
    ck_assert_int_eq(protocol_http2.produce(server->session, CHUNK_BYTES, room, out), 1);
    if (out->transfer)
        out->transfer->total += out->bytes.length;
}

/* Feeds the queued frames, without taking output. */
static void send_frames(void)
{
    struct buffer sent = client.sent;

    client.sent = (struct buffer){0};
    ck_assert_uint_eq(protocol_http2.consume(server->session, buffer_str(&sent)), sent.length);
    buffer_finish(&sent);
}

/* Takes one chunk of output, at most `room` bytes of it. */
static void receive_chunk(size_t room)
{
    struct chunk chunk;

    produce_bytes(room, &chunk);
    ck_assert_int_eq(buffer_append(&server->out, chunk.bytes), 0);
    h2_client_read(&client);
}

/* Feeds the queued frames, then takes output up to the first payload byte of DATA. */
static void send_into_payload(void)
{
    send_frames();
    while (client.input.length != H2_FRAME_HEAD + 1 || client.input.data[3] != H2_DATA)
        receive_chunk(1);
}

/* The server completes a frame whose head it has sent; otherwise the client would misread the following frames. */
START_TEST(frame_of_a_reset_stream_is_completed)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/hello", true);
    h2_client_request(&client, 3, "GET", "/later", true);
    send_into_payload();
    h2_client_number(&client, H2_RST_STREAM, 1, H2_CANCEL);
    h2_client_frame(&client, H2_PING, 0, 0, STR("12345678"));
    expect("HEADERS 1 :status=200 content-length=5\nDATA 1 5 hello end\nPING 12345678 ack\n");
    ck_assert_text(buffer_str(&server->log), "GET /hello 200 5 cancelled\n");
    table_server_answer(server);
    expect("HEADERS 3 :status=200 content-length=4\nDATA 3 4 late end\n");
    close_session();
}
END_TEST

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

/* The wire may still send the file or pipe of the last chunk: the next produce closes its body. */
START_TEST(body_stays_open_until_its_last_chunk_is_sent)
{
    struct chunk chunk;

    open_session();
    h2_client_request(&client, 1, "GET", "/hello", true);
    send_into_payload();
    produce_bytes(100, &chunk);
    ck_assert_text(chunk.bytes, "ello");
    ck_assert_int_eq(protocol_http2.consume(server->session, STR("\0\0\4\3\0\0\0\0\1\0\0\0\x8")), 13);
    ck_assert_uint_eq(server->finished, 0);
    ck_assert_int_eq(buffer_append(&server->out, chunk.bytes), 0);
    expect("HEADERS 1 :status=200 content-length=5\nDATA 1 5 hello end\n");
    ck_assert_uint_eq(server->finished, 1);
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    close_session();
}
END_TEST

/* A stream that the client has reset is closed at once, also while its frame is being sent (RFC 9113 5.1.2). */
START_TEST(reset_stream_is_not_counted)
{
    open_session();
    server->settings.http2.max_concurrent_streams = 1;
    h2_client_request(&client, 1, "GET", "/hello", true);
    send_into_payload();
    h2_client_number(&client, H2_RST_STREAM, 1, H2_CANCEL);
    h2_client_request(&client, 3, "GET", "/hello", true);
    h2_client_request(&client, 5, "GET", "/hello", true);
    expect("HEADERS 1 :status=200 content-length=5\nDATA 1 5 hello end\nRST_STREAM 5 REFUSED_STREAM\n" OK("3"));
    close_session();
}
END_TEST

/* Feeds three requests whose responses take turns, and takes output up to the end of the last one. */
static void receive_three(uint32_t first, const char *path)
{
    char fields[200];

    snprintf(fields, sizeof fields, ":method=GET\n:scheme=https\n:path=%s\n:authority=a\npriority=u=1, i\n", path);
    for (uint32_t id = first; id < first + 6; id += 2)
        h2_client_headers(&client, id, H2_FLAG_END_STREAM, fields);
    send_frames();
    while (!client.streams[(first + 4) / 2].ended)
        receive_chunk(1000);
}

/* A stream is closed with the last frame of its response: the client may open another one at once (RFC 9113 5.1.2). */
START_TEST(completed_responses_are_not_counted)
{
    open_session();
    server->settings.http2.max_concurrent_streams = 3;
    receive_three(1, "/hello");
    receive_three(7, "/none");
    receive_three(13, "/trailers");
    receive_three(19, "/unknown");
    receive_three(25, "/hello");
    h2_client_flush(&client);
    ck_assert_uint_eq(server->counters.h2_resets_sent[H2_REFUSED_STREAM], 0);
    ck_assert_uint_eq(server->finished, 15);
    close_session();
}
END_TEST

START_TEST(goaway_follows_the_frame_in_progress)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/hello", true);
    send_into_payload();
    h2_client_frame(&client, H2_PING, 0, 3, STR("12345678"));
    expect("HEADERS 1 :status=200 content-length=5\nDATA 1 5 hello end\nGOAWAY 1 PROTOCOL_ERROR\n");
    ck_assert_int_eq(server->result, 0);
    close_session();
}
END_TEST

/* The client uses up its credit by resetting the stream whose frame is being sent. */
START_TEST(goaway_for_abuse_follows_the_frame_in_progress)
{
    open_session();
    for (uint32_t i = 0; i < 397; i++)
        h2_client_frame(&client, H2_PING, 0, 0, STR("12345678"));
    h2_client_flush(&client);
    client.log.length = 0;
    h2_client_request(&client, 1, "GET", "/hello", true);
    send_into_payload();
    h2_client_number(&client, H2_RST_STREAM, 1, H2_CANCEL);
    expect("HEADERS 1 :status=200 content-length=5\nDATA 1 5 hello end\nGOAWAY 1 ENHANCE_YOUR_CALM\n");
    ck_assert_int_eq(server->result, 0);
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

/* Shutdown (RFC 9113 6.8). */

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

START_TEST(peer_closes_within_a_frame)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/hello", true);
    send_into_payload();
    table_server_signal(server, SESSION_PEER_CLOSED);
    expect("HEADERS 1 :status=200 content-length=5\nDATA 1 5 hello end\n");
    ck_assert_int_eq(server->result, 0);
    close_session();
}
END_TEST

/* Timeouts: of streams in test_h2_timeout.c. */

START_TEST(idle_connection_times_out_with_goaway)
{
    open_session();
    table_server_signal(server, SESSION_TIMEOUT);
    expect("GOAWAY 0 NO_ERROR\n");
    ck_assert_int_eq(server->result, 0);
    close_session();
}
END_TEST

/* RFC 9218. */

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
        frame_of_a_reset_stream_is_completed,
        current_exchange_is_the_newest,
        body_stays_open_until_its_last_chunk_is_sent,
        reset_stream_is_not_counted,
        completed_responses_are_not_counted,
        goaway_follows_the_frame_in_progress,
        goaway_for_abuse_follows_the_frame_in_progress,
        reset_of_a_request_cancels_its_exchange,
        reset_of_a_blocked_response_cancels_its_exchange,
        goaway_in_two_steps,
        idle_connection_is_retired,
        unacknowledged_goaway_times_out,
        unacknowledged_goaway_with_a_stream,
        connection_ends_after_keepalive_requests,
        connection_without_keepalive_ends_after_one_response,
        end_of_the_peer_ends_all_exchanges,
        peer_closes_within_a_frame,
        idle_connection_times_out_with_goaway,
        urgent_responses_are_sent_first,
        priority_is_updated,
    };

    return suite_run("h2_life", tests, COUNT(tests));
}
