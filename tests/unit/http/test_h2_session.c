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

START_TEST(a_response_can_end_the_connection)
{
    open_session();
    h2_client_request(&client, 1, "GET", "/later", true);
    h2_client_request(&client, 3, "GET", "/close", true);
    expect("GOAWAY 2147483647 NO_ERROR\nPING sluicego\nHEADERS 3 :status=200 content-length=1\nDATA 3 1 x end\n");
    close_session();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        body_that_pauses_sends_each_byte_once, streams_end_independently, body_streams_both_ways, padding_is_removed,
        interim_100_is_sent_when_the_body_is_read, body_above_the_limit_is_413,
        rejected_request_leaves_the_connection_open, a_response_can_end_the_connection,
    };
    const struct suite_loop loops[] = {
        {exchanges_complete_with_input_and_output_in_pieces, COUNT(exchanges)},
        {turns_end_with_frames_while_others_wait, 12},
    };

    return suite_run_loops("h2_session", tests, COUNT(tests), loops, COUNT(loops));
}
