/*
 * HTTP/2 sessions: each test sends frames and compares the frames of the server, which h2_client logs as lines.
 */
#include "h2_session_fixture.h"

#include <errno.h>
#include <stdio.h>

/* Complete exchanges: request head, body, trailers; the response. */
static const struct {
    const char *method, *path, *body, *trailers;
    const char *received, *log;
} exchanges[] = {
    {"GET", "/hello", NULL, NULL, OK("1"), "GET /hello 200 5\n"},
    {"HEAD", "/hello", NULL, NULL, "HEADERS 1 :status=200 content-length=5 end\n", "HEAD /hello 200 0\n"},
    {"GET", "/none", NULL, NULL, "HEADERS 1 :status=204 end\n", "GET /none 204 0\n"},
    {"GET", "/other", NULL, NULL, "HEADERS 1 :status=404 content-length=1\nDATA 1 1 ? end\n", "GET /other 404 1\n"},
    {"GET", "/type", NULL, NULL,
     "HEADERS 1 :status=200 content-type=text/plain content-length=1\nDATA 1 1 x end\n", "GET /type 200 1\n"},
    {"GET", "/connection", NULL, NULL, "HEADERS 1 :status=200 content-length=1\nDATA 1 1 x end\n",
     "GET /connection 200 1\n"},
    {"GET", "/name", NULL, NULL, "HEADERS 1 :status=500 content-length=0 end\n", "GET /name 500 0\n"},
    {"GET", "/hints", NULL, NULL,
     "HEADERS 1 :status=103 link=</a>\nHEADERS 1 :status=200 content-length=1\nDATA 1 1 x end\n",
     "GET /hints 200 1\n"},
    {"GET", "/unknown", NULL, NULL, "HEADERS 1 :status=200\nDATA 1 2 hi\nDATA 1 0  end\n", "GET /unknown 200 2\n"},
    {"HEAD", "/unknown", NULL, NULL, "HEADERS 1 :status=200 end\n", "HEAD /unknown 200 0\n"},
    {"GET", "/trailers", NULL, NULL, "HEADERS 1 :status=200\nDATA 1 2 hi\nHEADERS 1 digest=x end\n",
     "GET /trailers 200 2\n"},
    {"POST", "/echo", "hello", NULL, "PING sluicebd\n" OK("1"), "POST /echo 200 5\n"},
    {"POST", "/echo", "", NULL, "HEADERS 1 :status=200 content-length=0 end\n", "POST /echo 200 0\n"},
    {"POST", "/echo", NULL, NULL, "HEADERS 1 :status=200 content-length=0 end\n", "POST /echo 200 0\n"},
    {"POST", "/echo", "hello world", "x=y\nz=\n",
     "PING sluicebd\nHEADERS 1 :status=200 content-length=17\nDATA 1 17 hello world[x][z] end\n",
     "POST /echo 200 17\n"},
    {"POST", "/small", "12345", NULL,
     "PING sluicebd\nHEADERS 1 :status=200 content-length=5\nDATA 1 5 12345 end\n", "POST /small 200 5\n"},
    {"GET", "/broken", NULL, NULL, "HEADERS 1 :status=200\nDATA 1 4 part\nRST_STREAM 1 INTERNAL_ERROR\n",
     "GET /broken 200 4 cancelled\n"},
    {"GET", "/short", NULL, NULL,
     "HEADERS 1 :status=200 content-length=5\nDATA 1 4 part\nRST_STREAM 1 INTERNAL_ERROR\n",
     "GET /short 200 4 cancelled\n"},
    {"GET", "/long", NULL, NULL, "HEADERS 1 :status=200 content-length=3\nRST_STREAM 1 INTERNAL_ERROR\n",
     "GET /long 200 0 cancelled\n"},
};

static void run_exchange(size_t row, size_t piece, size_t room)
{
    open_session();
    client.piece = piece;
    server->room = room;
    h2_client_request(&client, 1, exchanges[row].method, exchanges[row].path, !exchanges[row].body);
    if (exchanges[row].body)
        h2_client_data(&client, 1, str_from(exchanges[row].body), !exchanges[row].trailers);
    if (exchanges[row].trailers)
        h2_client_headers(&client, 1, H2_FLAG_END_STREAM, exchanges[row].trailers);
    expect(exchanges[row].received);
    ck_assert_text(buffer_str(&server->log), exchanges[row].log);
    ck_assert_int_eq(server->result, -EAGAIN);
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    close_session();
}

START_TEST(exchanges_complete_with_input_and_output_in_pieces)
{
    static const size_t pieces[] = {0, 1, 2, 7, 10};

    for (size_t i = 0; i < COUNT(pieces); i++) {
        run_exchange((size_t)_i, pieces[i], 0);
        run_exchange((size_t)_i, pieces[i], 1);
        run_exchange((size_t)_i, pieces[i], 8);
    }
}
END_TEST

/* A body that has used `out` before -EAGAIN: only the chunks it returns are sent, each once. */
START_TEST(body_that_pauses_sends_each_byte_once)
{
    static const size_t pieces[] = {1, 3, 8, 9, 10, 11};
    static const size_t rooms[] = {0, 1, 9, 10};
    static const char body[] = "0123456789";
    char expected[400];

    for (size_t i = 0; i < COUNT(pieces) * COUNT(rooms); i++) {
        size_t piece = pieces[i / COUNT(rooms)];
        int length = snprintf(expected, sizeof expected, "HEADERS 1 :status=200 content-length=10\n");

        for (size_t at = 0; at < 10; at += piece) {
            size_t count = at + piece < 10 ? piece : 10 - at;

            length += snprintf(expected + length, sizeof expected - (size_t)length, "DATA 1 %d %.*s%s\n",
                               (int)count, (int)count, body + at, at + count == 10 ? " end" : "");
        }
        open_session();
        server->room = rooms[i % COUNT(rooms)];
        server->pause_piece = piece;
        h2_client_request(&client, 1, "GET", "/pauses", true);
        expect(expected);
        close_session();
    }
}
END_TEST

START_TEST(invalid_preface_ends_the_connection)
{
    static const char bad[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r";

    for (size_t piece = 0; piece < 3; piece++) {
        h2_client_open(&client, rows);
        client.sent.length = 0;
        client.piece = piece;
        ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
        h2_client_feed(&client, str_slice(str_from(bad), 0, 22));
        ck_assert_int_eq(table_server_phase(server), SESSION_HEAD);
        h2_client_feed(&client, str_skip(str_from(bad), 22));
        expect("SETTINGS\nWINDOW_UPDATE 0 983041\nGOAWAY 0 PROTOCOL_ERROR\n");
        ck_assert_int_eq(server->result, 0);
        ck_assert_int_eq(table_server_phase(server), SESSION_OVER);
        close_session();
    }
}
END_TEST

START_TEST(streams_end_independently)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_request(&client, 5, "GET", "/hello", true);
    expect(OK("5"));
    ck_assert_int_eq(table_server_phase(server), SESSION_WAITING);
    table_server_answer(server);
    expect("HEADERS 1 :status=200 content-length=4\nDATA 1 4 late end\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    close_session();
}
END_TEST

/* Where others are ready to send, the last chunk of a frame ends the turn of a stream. */
START_TEST(turns_end_with_frames_while_others_wait)
{
    open_session();
    server->room = (size_t)_i;
    h2_client_request(&client, 1, "GET", "/hello", true);
    expect(OK("1"));
    ck_assert_uint_eq(server->turns, 0);
    h2_client_request(&client, 3, "GET", "/hello", true);
    h2_client_request(&client, 5, "GET", "/hello", true);
    expect(OK("3") OK("5"));
    ck_assert_uint_eq(server->turns, 2); /* HEADERS and DATA of the first one */
    close_session();
}
END_TEST

/* The response returns the request body while it still arrives. */
START_TEST(body_streams_both_ways)
{
    open_session();
    h2_client_request(&client, 1, "POST", "/stream", false);
    expect("HEADERS 1 :status=200\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_BODY);
    h2_client_data(&client, 1, STR("one"), false);
    expect("PING sluicebd\nDATA 1 3 one\n");
    h2_client_data(&client, 1, STR("two"), true);
    expect("DATA 1 3 two\nDATA 1 0  end\n");
    close_session();
}
END_TEST

START_TEST(padding_is_removed)
{
    open_session();
    for (client.piece = 0; client.piece < 3; client.piece++) {
        uint32_t stream = 1 + 2 * (uint32_t)client.piece;
        char expected[100];

        h2_client_request(&client, stream, "POST", "/echo", false);
        h2_client_frame(&client, H2_DATA, H2_FLAG_PADDED, stream, STR("\3abc\0\0\0"));
        h2_client_frame(&client, H2_DATA, H2_FLAG_PADDED, stream, STR("\0de"));
        h2_client_frame(&client, H2_DATA, H2_FLAG_PADDED | H2_FLAG_END_STREAM, stream, STR("\2\0\0"));
        snprintf(expected, sizeof(expected), "%sHEADERS %u :status=200 content-length=5\nDATA %u 5 abcde end\n",
                 client.piece ? "" : "PING sluicebd\n", stream, stream);
        expect(expected);
    }
    close_session();
}
END_TEST

/* 100 (Continue) is sent at the first read of the body (RFC 9110 10.1.1). */
START_TEST(interim_100_is_sent_when_the_body_is_read)
{
    open_session();
    h2_client_headers(&client, 1, 0, ":method=POST\n:scheme=https\n:path=/echo\n:authority=a\nexpect=100-continue\n");
    expect("HEADERS 1 :status=100\n");
    h2_client_data(&client, 1, STR("hello"), true);
    expect("PING sluicebd\n" OK("1"));
    /* The module responds without reading: no 100 is sent, and the client sends no body. */
    h2_client_headers(&client, 3, 0, ":method=POST\n:scheme=https\n:path=/hello\n:authority=a\nexpect=100-continue\n");
    expect(OK("3") "PING sluicere\n");
    h2_client_frame(&client, H2_PING, H2_FLAG_ACK, 0, STR("sluicere"));
    expect("RST_STREAM 3 NO_ERROR\n");
    close_session();
}
END_TEST

START_TEST(body_above_the_limit_is_413)
{
    open_session();
    h2_client_request(&client, 1, "POST", "/small", false);
    h2_client_data(&client, 1, STR("123456"), false);
    expect("PING sluicebd\nHEADERS 1 :status=413 content-length=2\nDATA 1 2 no end\nPING sluicere\n");
    h2_client_frame(&client, H2_PING, H2_FLAG_ACK, 0, STR("sluicere"));
    expect("RST_STREAM 1 NO_ERROR\n");
    close_session();
}
END_TEST

START_TEST(rejected_request_leaves_the_connection_open)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/%zz", true);
    expect("HEADERS 1 :status=400 content-length=7\nDATA 1 7 refused end\n");
    h2_client_headers(&client, 3, 0, ":method=CONNECT\n:authority=a:1\n");
    expect("HEADERS 3 :status=501 content-length=7\nDATA 3 7 refused end\n");
    h2_client_data(&client, 3, STR("x"), true);
    expect("PING sluicebd\n");
    h2_client_headers(&client, 5, 0,
                      ":method=POST\n:scheme=https\n:path=/\n:authority=a\ncontent-length=99999999999999999999\n");
    h2_client_data(&client, 5, STR("x"), true);
    expect("HEADERS 5 :status=413 content-length=7\nDATA 5 7 refused end\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
    ck_assert_uint_eq(server->rejected, 3);
    close_session();
}
END_TEST

/* Stream errors: the other streams continue. */
START_TEST(stream_error_leaves_other_streams_open)
{
    open_session();
    h2_client_headers(&client, 1, H2_FLAG_END_STREAM, ":method=GET\n:path=/\nX=y\n");
    expect("RST_STREAM 1 PROTOCOL_ERROR\n");
    h2_client_headers(&client, 3, 0,
                      ":method=POST\n:scheme=https\n:path=/echo\n:authority=a\ncontent-length=3\n");
    h2_client_data(&client, 3, STR("1234"), false);
    expect("PING sluicebd\nRST_STREAM 3 PROTOCOL_ERROR\n");
    h2_client_headers(&client, 5, 0,
                      ":method=POST\n:scheme=https\n:path=/echo\n:authority=a\ncontent-length=3\n");
    h2_client_data(&client, 5, STR("12"), true);
    expect("RST_STREAM 5 PROTOCOL_ERROR\n");
    h2_client_request(&client, 7, "POST", "/echo", false);
    h2_client_headers(&client, 7, 0, "x=y\n"); /* trailers without END_STREAM */
    expect("RST_STREAM 7 PROTOCOL_ERROR\n");
    h2_client_request(&client, 9, "POST", "/echo", false);
    h2_client_headers(&client, 9, H2_FLAG_END_STREAM, ":path=/\n");
    expect("RST_STREAM 9 PROTOCOL_ERROR\n");
    h2_client_request(&client, 11, "GET", "/later", true);
    h2_client_data(&client, 11, STR("x"), true);
    expect("RST_STREAM 11 STREAM_CLOSED\n");
    h2_client_request(&client, 13, "GET", "/later", true);
    h2_client_number(&client, H2_WINDOW_UPDATE, 13, 0);
    expect("RST_STREAM 13 PROTOCOL_ERROR\n");
    h2_client_request(&client, 15, "GET", "/later", true);
    h2_client_frame(&client, H2_PRIORITY, 0, 15, STR("\0\0\0\x0f\x10"));
    expect("RST_STREAM 15 PROTOCOL_ERROR\n");
    h2_client_request(&client, 17, "GET", "/hello", true);
    expect(OK("17"));
    ck_assert_uint_eq(server->begun, server->finished);
    close_session();
}
END_TEST

/* Connection errors: frames that must not be sent in this state. */
static const struct {
    unsigned type;
    uint8_t flags;
    uint32_t stream;
    struct str payload;
    const char *error;
} violations[] = {
    {H2_DATA, 0, 0, {"x", 1}, "PROTOCOL_ERROR"},
    {H2_DATA, 0, 3, {"x", 1}, "PROTOCOL_ERROR"},
    {H2_DATA, 0, 2, {"x", 1}, "PROTOCOL_ERROR"},
    {H2_DATA, H2_FLAG_PADDED, 1, {"", 0}, "FRAME_SIZE_ERROR"},
    {H2_DATA, H2_FLAG_PADDED, 1, {"\1", 1}, "PROTOCOL_ERROR"},
    {H2_DATA, H2_FLAG_PADDED, 1, {"\3ab", 3}, "PROTOCOL_ERROR"},
    {H2_HEADERS, H2_FLAG_END_HEADERS, 0, {"\x82", 1}, "PROTOCOL_ERROR"},
    {H2_HEADERS, H2_FLAG_END_HEADERS, 2, {"\x82", 1}, "PROTOCOL_ERROR"},
    {H2_HEADERS, H2_FLAG_END_HEADERS, 3, {"\x80", 1}, "COMPRESSION_ERROR"},
    {H2_HEADERS, H2_FLAG_END_HEADERS, 3, {"\x40", 1}, "COMPRESSION_ERROR"},
    {H2_HEADERS, H2_FLAG_END_HEADERS | H2_FLAG_PADDED, 3, {"\2\x82", 2}, "PROTOCOL_ERROR"},
    {H2_HEADERS, H2_FLAG_END_HEADERS | H2_FLAG_PRIORITY, 3, {"\x82", 1}, "FRAME_SIZE_ERROR"},
    {H2_PRIORITY, 0, 3, {"\0\0\0\3\x10", 5}, "PROTOCOL_ERROR"},
    {H2_RST_STREAM, 0, 3, {"\0\0\0\0", 4}, "PROTOCOL_ERROR"},
    {H2_RST_STREAM, 0, 2, {"\0\0\0\0", 4}, "PROTOCOL_ERROR"},
    {H2_RST_STREAM, 0, 1, {"\0\0\0", 3}, "FRAME_SIZE_ERROR"},
    {H2_SETTINGS, 0, 0, {"\0\2\0\0\0\2", 6}, "PROTOCOL_ERROR"},
    {H2_SETTINGS, 0, 0, {"\0\4\x80\0\0\0", 6}, "FLOW_CONTROL_ERROR"},
    {H2_SETTINGS, H2_FLAG_ACK, 0, {"\0\2\0\0\0\0", 6}, "FRAME_SIZE_ERROR"},
    {H2_PUSH_PROMISE, H2_FLAG_END_HEADERS, 1, {"\0\0\0\2", 4}, "PROTOCOL_ERROR"},
    {H2_PING, 0, 1, {"12345678", 8}, "PROTOCOL_ERROR"},
    {H2_PING, 0, 0, {"1234567", 7}, "FRAME_SIZE_ERROR"},
    {H2_WINDOW_UPDATE, 0, 0, {"\0\0\0\0", 4}, "PROTOCOL_ERROR"},
    {H2_WINDOW_UPDATE, 0, 3, {"\0\0\0\1", 4}, "PROTOCOL_ERROR"},
    {H2_CONTINUATION, H2_FLAG_END_HEADERS, 1, {"\x82", 1}, "PROTOCOL_ERROR"},
    {H2_PRIORITY_UPDATE, 0, 0, {"\0\0\0\2u=1", 7}, "PROTOCOL_ERROR"},
};

START_TEST(connection_error_sends_goaway_and_closes)
{
    for (size_t piece = 0; piece < 2; piece++) {
        char expected[100];

        open_session();
        h2_client_request(&client, 1, "POST", "/later", false);
        expect("");
        client.piece = piece;
        h2_client_frame(&client, violations[_i].type, violations[_i].flags, violations[_i].stream,
                        violations[_i].payload);
        h2_client_request(&client, 5, "GET", "/hello", true); /* ignored */
        snprintf(expected, sizeof(expected), "GOAWAY 1 %s\n", violations[_i].error);
        if (violations[_i].type == H2_DATA && violations[_i].payload.length && violations[_i].stream)
            snprintf(expected, sizeof(expected), "PING sluicebd\nGOAWAY 1 %s\n", violations[_i].error);
        expect(expected);
        ck_assert_int_eq(server->result, 0);
        ck_assert_int_eq(table_server_phase(server), SESSION_OVER);
        ck_assert_uint_eq(server->finished, 0);
        table_server_hang_up(server);
        ck_assert_text(buffer_str(&server->log), "POST /later 0 0 cancelled\n");
        close_session();
    }
}
END_TEST

START_TEST(header_blocks_are_not_interrupted)
{
    struct str block;

    open_session();
    block = h2_client_encode(&client, ":method=GET\n:scheme=https\n:path=/hello\n:authority=a\n");
    h2_client_frame(&client, H2_HEADERS, H2_FLAG_END_STREAM, 1, str_slice(block, 0, 2));
    expect("");
    ck_assert_int_eq(table_server_phase(server), SESSION_HEAD);
    h2_client_frame(&client, H2_CONTINUATION, 0, 1, str_slice(block, 2, 3));
    h2_client_frame(&client, H2_CONTINUATION, 0, 1, STR(""));
    h2_client_frame(&client, H2_CONTINUATION, H2_FLAG_END_HEADERS, 1, str_skip(block, 3));
    expect(OK("1"));
    h2_client_frame(&client, H2_HEADERS, H2_FLAG_END_STREAM, 3, STR("\x82"));
    h2_client_frame(&client, H2_PING, 0, 0, STR("12345678"));
    expect("GOAWAY 1 PROTOCOL_ERROR\n");
    close_session();
}
END_TEST

START_TEST(a_response_can_end_the_connection)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_request(&client, 3, "GET", "/close", true);
    expect("GOAWAY 2147483647 NO_ERROR\nPING sluicego\nHEADERS 3 :status=200 content-length=1\nDATA 3 1 x end\n");
    close_session();
}
END_TEST

START_TEST(settings_are_the_first_frame)
{
    h2_client_open(&client, rows);
    client.sent.length = 24;
    h2_client_frame(&client, H2_PING, 0, 0, STR("12345678"));
    expect("SETTINGS\nWINDOW_UPDATE 0 983041\nGOAWAY 0 PROTOCOL_ERROR\n");
    close_session();
}
END_TEST

START_TEST(stream_identifiers_increase)
{
    open_session();
    h2_client_request(&client, 5, "GET", "/hello", true);
    expect(OK("5"));
    h2_client_request(&client, 3, "GET", "/hello", true);
    expect("GOAWAY 5 STREAM_CLOSED\n");
    close_session();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        invalid_preface_ends_the_connection,
        body_that_pauses_sends_each_byte_once,
        streams_end_independently,
        body_streams_both_ways,
        padding_is_removed,
        interim_100_is_sent_when_the_body_is_read,
        body_above_the_limit_is_413,
        rejected_request_leaves_the_connection_open,
        stream_error_leaves_other_streams_open,
        header_blocks_are_not_interrupted,
        a_response_can_end_the_connection,
        settings_are_the_first_frame,
        stream_identifiers_increase,
    };
    const struct suite_loop loops[] = {
        {exchanges_complete_with_input_and_output_in_pieces, COUNT(exchanges)},
        {turns_end_with_frames_while_others_wait, 12},
        {connection_error_sends_goaway_and_closes, COUNT(violations)},
    };

    return suite_run_loops("h2_session", tests, COUNT(tests), loops, COUNT(loops));
}
