/*
 * HTTP/2 streams and sessions that end while their output is taken in parts: the frame in progress is completed.
 */
#include "h2_session_fixture.h"

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

int main(void)
{
    const TTest *const tests[] = {
        frame_of_a_reset_stream_is_completed, body_stays_open_until_its_last_chunk_is_sent, reset_stream_is_not_counted,
        completed_responses_are_not_counted, goaway_follows_the_frame_in_progress,
        goaway_for_abuse_follows_the_frame_in_progress, peer_closes_within_a_frame,
    };

    return suite_run("h2_partial_output", tests, COUNT(tests));
}
