#include "h2_origin.h"
#include "suite.h"

#include <errno.h>
#include <stdio.h>

static struct h2_origin origin;

#define PREFACE "SETTINGS 0\nWINDOW_UPDATE 0 4128769\n"
#define expect(text) ck_assert_str_eq(h2_origin_log(&origin), text)

/* One GET that was sent, and the server's SETTINGS. */
static void open_session(void)
{
    h2_origin_open(&origin);
    h2_origin_request(&origin, 0, "GET", 0, "", 0);
    h2_origin_turn(&origin);
    expect(PREFACE "HEADERS 1 end\n");
    h2_origin_script(&origin, "settings");
    expect("SETTINGS 0 ack\n");
}

static const struct {
    const char *script, *log;
} answers[] = {
    {"headers 1 end :status=204", "1: 204 no body\n1: whole\n"},
    {"headers 1 :status=200 content-length=5\ndata 1 end hello", "1: 200 content-length=5\n1: \"hello\"\n1: whole\n"},
    {"headers 1 :status=200\ndata 1 hel\ndata 1 lo\nheaders 1 end grpc-status=0",
     "1: 200\n1: \"hello\"\n1: whole grpc-status=0\n"},
    {"headers 1 :status=103 link=a\nheaders 1 :status=200\ndata 1 end x",
     "1: 103 link=a\n1: 200\n1: \"x\"\n1: whole\n"},
    {"headers 1 :status=103 link=a\nheaders 1 :status=102 link=b\nheaders 1 end :status=204",
     "1: 102 link=b\n1: 204 no body\n1: whole\n"},
    {"headers 1 end :status=200 grpc-status=12", "1: 200 grpc-status=12 no body\n1: whole\n"},
    {"headers 1 end :status=304 content-length=5", "1: 304 content-length=5 no body\n1: whole\n"},
    {"ping", "PING 0 ack\n"},
    {"settings 4=5", "SETTINGS 0 ack\n"},
    {"raw 0000000b00000000017878", ""}, /* an unknown type, and the start of a frame */
    {"rst 1 7", "1: the stream was refused\n"},
    {"rst 1 8", "1: the stream was reset\n"},
    {"headers 1 :status=200\ndata 1 part\nrst 1 2", "1: 200\n1: \"part\"\n1: the stream was reset\n"},
    {"goaway 0 0", "1: the stream was refused\n"},
    {"goaway 1 0\nheaders 1 end :status=204", "1: 204 no body\n1: whole\n"},
    {"headers 1 :status=200\nraw 00000a0008000000010378787878787878303030", "1: 200\n1: \"xxxxxx\"\n"},
    {"headers 1 :status=200\nraw 00000700090000000103787979000000", "1: 200\n1: \"xyy\"\n1: whole\n"}, /* padded */
};

START_TEST(responses_are_read_with_interims_and_trailers)
{
    open_session();
    h2_origin_script(&origin, answers[_i].script);
    expect(answers[_i].log);
    h2_origin_close(&origin);
}
END_TEST

/* Each resets the stream, and leaves the connection usable. */
static const struct {
    const char *script, *fault;
} malformed[] = {
    {"headers 1 end x=y", "a response without :status"},
    {"headers 1 end :status=200 :status=200", "more than one :status"},
    {"headers 1 end x=y :status=200", "a pseudo-header field after regular fields"},
    {"headers 1 end :status=20", "an invalid :status"},
    {"headers 1 end :status=600", "an invalid :status"},
    {"headers 1 end :status=2x0", "an invalid :status"},
    {"headers 1 :status=101", "status 101, which HTTP/2 does not have"},
    {"headers 1 end :status=200 :path=/", "an invalid pseudo-header field"},
    {"headers 1 end :status=200 connection=close", "an invalid header field"},
    {"headers 1 end :status=200 transfer-encoding=chunked", "an invalid header field"},
    {"headers 1 end :status=200 ^Upper=x", "an invalid header field"},
    {"headers 1 end :status=200 a\x01=x", "an invalid header field"},
    {"headers 1 end :status=200 a=x\x01", "an invalid header field"},
    {"headers 1 :status=200 content-length=x", "an invalid Content-Length"},
    {"headers 1 :status=200 content-length=1 content-length=1", "more than one Content-Length"},
    {"headers 1 end :status=200 content-length=1", "a body that is shorter than its Content-Length"},
    {"headers 1 end :status=103", "a 1xx response that ends the stream"},
    {"data 1 hello", "a body before the response head"},
    {"data 1 end ", "a body before the response head"},
    {"headers 1 end :status=200"
     " a=0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
     " b=0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012",
     "too big header"},
};

START_TEST(malformed_response_resets_its_stream_only)
{
    char wanted[200];

    open_session();
    h2_origin_script(&origin, malformed[_i].script);
    snprintf(wanted, sizeof wanted, "RST_STREAM 1 1\n1: %s\n", malformed[_i].fault);
    expect(wanted);
    h2_client_stream_end(&origin.streams[0]);
    h2_origin_request(&origin, 1, "GET", 0, "", 0);
    h2_origin_turn(&origin);
    h2_origin_script(&origin, "data 1 late\nheaders 3 end :status=204");
    expect("HEADERS 3 end\n3: 204 no body\n3: whole\n");
    h2_origin_close(&origin);
}
END_TEST

/* Errors after the head. */
static const struct {
    const char *script, *log;
} late_errors[] = {
    {"headers 1 :status=200 content-length=3\ndata 1 four",
     "RST_STREAM 1 1\n1: 200 content-length=3\n1: a body that is longer than its Content-Length\n"},
    {"headers 1 :status=200 content-length=3\ndata 1 end fo",
     "RST_STREAM 1 1\n1: 200 content-length=3\n1: \"fo\"\n1: a body that is shorter than its Content-Length\n"},
    {"headers 1 :status=204\ndata 1 end x", "RST_STREAM 1 1\n1: 204 no body\n1: a body in a response that has none\n"},
    {"headers 1 :status=200\nheaders 1 a=b", "RST_STREAM 1 1\n1: 200\n1: trailers that do not end the stream\n"},
    {"headers 1 :status=200\nheaders 1 end :status=200",
     "RST_STREAM 1 1\n1: 200\n1: a pseudo-header field in trailers\n"},
    {"window 1 2147483647", "RST_STREAM 1 3\n1: a window above the maximum\n"},
    {"window 1 0", "RST_STREAM 1 1\n1: a window increment of 0\n"},
};

START_TEST(error_after_the_head_fails_the_body)
{
    open_session();
    h2_origin_script(&origin, late_errors[_i].script);
    expect(late_errors[_i].log);
    h2_origin_close(&origin);
}
END_TEST

/* Each ends the connection. */
static const struct {
    const char *script, *log;
} fatal[] = {
    {"headers 2 end :status=200", "GOAWAY 0 PROTOCOL_ERROR\nerror: a response on a stream that is not open\n"},
    {"headers 3 end :status=200", "GOAWAY 0 PROTOCOL_ERROR\nerror: a response on a stream that is not open\n"},
    {"data 3 x", "GOAWAY 0 PROTOCOL_ERROR\nerror: data on a stream that is not open\n"},
    {"rst 3 8", "GOAWAY 0 PROTOCOL_ERROR\nerror: a reset of a stream that is not open\n"},
    {"window 3 8", "GOAWAY 0 PROTOCOL_ERROR\nerror: a window of a stream that is not open\n"},
    {"window 0 0", "GOAWAY 0 PROTOCOL_ERROR\nerror: a window increment of 0\n"},
    {"window 0 2147483647", "GOAWAY 0 FLOW_CONTROL_ERROR\nerror: a window above the maximum\n"},
    {"settings 2=1", "GOAWAY 0 PROTOCOL_ERROR\nerror: invalid SETTINGS\n"},
    {"settings 4=2147483648", "GOAWAY 0 FLOW_CONTROL_ERROR\nerror: invalid SETTINGS\n"},
    {"window 1 2147418112\nsettings 4=65537", "GOAWAY 0 FLOW_CONTROL_ERROR\nerror: a window above the maximum\n"},
    {"raw 00000405000000000100000002", "GOAWAY 0 PROTOCOL_ERROR\nerror: PUSH_PROMISE although pushes are disabled\n"},
    {"raw 00000109000000000100", "GOAWAY 0 PROTOCOL_ERROR\nerror: a frame out of order\n"},
    {"headers 1 open :status=200\nping", "GOAWAY 0 PROTOCOL_ERROR\nerror: a frame out of order\n"},
    {"raw 000001010400000001be", "GOAWAY 0 COMPRESSION_ERROR\nerror: an invalid header block\n"},
    {"raw 00000000080000000100", "GOAWAY 0 FRAME_SIZE_ERROR\nerror: wrong padding\n"},
    {"raw 000002000800000001ff00", "GOAWAY 0 PROTOCOL_ERROR\nerror: wrong padding\n"},
    {"raw 000002010c00000001ff00", "GOAWAY 0 PROTOCOL_ERROR\nerror: an invalid HEADERS frame\n"},
    {"raw ffffff000000000001", "GOAWAY 0 FRAME_SIZE_ERROR\nerror: an invalid frame\n"},
    {"raw 0000070600000000003132333435363738", "GOAWAY 0 FRAME_SIZE_ERROR\nerror: an invalid frame\n"},
    {"raw 000000040100000001", "GOAWAY 0 PROTOCOL_ERROR\nerror: an invalid frame\n"},
};

START_TEST(connection_error_fails_all_streams)
{
    struct str parts[2];

    open_session();
    h2_origin_script(&origin, fatal[_i].script);
    expect(fatal[_i].log);
    ck_assert_uint_eq(h2_client_session_capacity(&origin.session), 0);
    ck_assert_int_eq(h2_client_session_produce(&origin.session, 100, parts), -EAGAIN);
    h2_origin_script(&origin, "headers 1 end :status=200"); /* ignored */
    expect("");
    h2_origin_close(&origin);
}
END_TEST

static const char *const no_http2[] = {
    "raw 485454502f312e31203430300d0a0d0a", /* HTTP/1.1 400 */
    "headers 1 end :status=200",
    "ack",
    "ping",
    "raw 15030300020246ffffffffff", /* a TLS alert */
};

START_TEST(server_without_http2_is_detected)
{
    h2_origin_open(&origin);
    h2_origin_request(&origin, 0, "GET", 0, "", 0);
    h2_origin_turn(&origin);
    h2_origin_log(&origin);
    h2_origin_script(&origin, no_http2[_i]);
    ck_assert_ptr_nonnull(strstr(h2_origin_log(&origin), "error: the server does not use HTTP/2\n"));
    h2_origin_close(&origin);
}
END_TEST

/* Floods of frames without effect end the connection before memory grows. */
static const char *const floods[] = {"settings", "ping", "raw 000000000000000001", "headers 1 :status=103",
                                     "raw 0000000b0000000000", "window 1 1", "ack", "raw 0000050200000000010000000000"};

START_TEST(floods_end_the_connection)
{
    unsigned turns = 0;

    open_session();
    if (_i == 2)
        h2_origin_script(&origin, "headers 1 :status=200");
    origin.quiet = true;
    for (; turns < 5000 && !origin.session.error; turns++)
        h2_origin_script(&origin, floods[_i]);
    ck_assert_uint_lt(turns, 5000);
    ck_assert_str_eq(origin.session.fault, "too many frames without effect");
    h2_origin_close(&origin);
}
END_TEST

START_TEST(request_bodies_are_sent_and_short_ones_reset)
{
    h2_origin_open(&origin);
    h2_origin_request(&origin, 0, "POST", 5, "hello", 0);
    h2_origin_request(&origin, 1, "POST", BODY_LENGTH_UNKNOWN, "hi", 0);
    h2_origin_request(&origin, 2, "POST", BODY_LENGTH_UNKNOWN, "", -EAGAIN);
    h2_origin_request(&origin, 3, "POST", 5, "hell", 0); /* shorter than announced */
    h2_origin_turn(&origin);
    expect(PREFACE "HEADERS 1\nHEADERS 3\nHEADERS 5\nHEADERS 7\nDATA 1 5 end\nDATA 3 2\nDATA 7 4\nDATA 3 0 end\n"
           "7: body -71\nRST_STREAM 7 8\n");
    ck_assert(h2_client_stream_is_sent(&origin.streams[0]));
    ck_assert(!h2_client_stream_is_sent(&origin.streams[2]));
    origin.bodies[2] = STR("later");
    h2_client_stream_wake(&origin.streams[2]);
    h2_origin_turn(&origin);
    expect("DATA 5 5\n");
    h2_client_stream_end(&origin.streams[2]);
    h2_origin_turn(&origin);
    expect("RST_STREAM 5 8\n");
    h2_origin_close(&origin);
}
END_TEST

/* Both windows are respected, also after SETTINGS made one negative. */
START_TEST(bodies_stay_within_the_stream_windows)
{
    h2_origin_open(&origin);
    h2_origin_script(&origin, "settings 4=3");
    h2_origin_log(&origin);
    h2_origin_request(&origin, 0, "POST", 10, "0123456789", 0);
    h2_origin_request(&origin, 1, "POST", BODY_LENGTH_UNKNOWN, "abc", 0);
    h2_origin_turn(&origin);
    expect("HEADERS 1\nHEADERS 3\nDATA 1 3\nDATA 3 3\nDATA 3 0 end\n"); /* an end needs no window */
    ck_assert(h2_client_stream_is_blocked(&origin.streams[0]));
    h2_origin_script(&origin, "settings 4=1");
    expect("SETTINGS 0 ack\n"); /* the window is -2 */
    h2_origin_script(&origin, "window 1 2");
    expect("");
    h2_origin_script(&origin, "window 1 4");
    expect("DATA 1 4\n");
    h2_origin_script(&origin, "settings 4=100");
    expect("SETTINGS 0 ack\nDATA 1 3 end\n");
    h2_origin_close(&origin);
}
END_TEST

START_TEST(bodies_stay_within_the_connection_window)
{
    static char body[70001];

    memset(body, 'b', sizeof body - 1);
    h2_origin_open(&origin);
    h2_origin_script(&origin, "settings 4=1000000");
    h2_origin_log(&origin);
    h2_origin_request(&origin, 0, "POST", 70000, body, 0);
    h2_origin_turn(&origin);
    expect("HEADERS 1\nDATA 1 16384\nDATA 1 16384\nDATA 1 16384\nDATA 1 16383\n");
    ck_assert(h2_client_stream_is_blocked(&origin.streams[0]));
    h2_origin_script(&origin, "window 0 100");
    expect("DATA 1 1\nDATA 1 99\n");
    h2_origin_script(&origin, "window 0 100000");
    expect("DATA 1 4365 end\n");
    h2_origin_close(&origin);
}
END_TEST

/* Frames that do not fit are continued; none is longer than the room. */
START_TEST(frames_are_sent_through_small_buffers)
{
    for (size_t room = 1; room < 40; room++) {
        h2_origin_open(&origin);
        origin.room = room;
        h2_origin_request(&origin, 0, "POST", 30, "012345678901234567890123456789", 0);
        h2_origin_turn(&origin);
        expect(PREFACE "HEADERS 1\nDATA 1 30 end\n");
        h2_origin_close(&origin);
    }
}
END_TEST

START_TEST(trailers_follow_the_request_body)
{
    struct headers trailers = {0};

    h2_origin_open(&origin);
    ck_assert_int_eq(headers_add(&trailers, &origin.arena, STR("digest"), STR("x")), 0);
    h2_origin_request(&origin, 0, "POST", BODY_LENGTH_UNKNOWN, "hi", 0);
    origin.requests[0].trailers = &trailers;
    h2_origin_turn(&origin);
    expect(PREFACE "HEADERS 1\nDATA 1 2\nHEADERS 1 end\n");
    h2_origin_close(&origin);
}
END_TEST

/* The whole response arrived before the request was sent: the rest of the request is cancelled. */
START_TEST(early_response_cancels_the_request_body)
{
    h2_origin_open(&origin);
    h2_origin_request(&origin, 0, "POST", BODY_LENGTH_UNKNOWN, "", -EAGAIN);
    h2_origin_turn(&origin);
    h2_origin_log(&origin);
    h2_origin_script(&origin, "settings\nheaders 1 end :status=413\nrst 1 0");
    expect("SETTINGS 0 ack\n1: 413 no body\n1: whole\n");
    ck_assert(h2_client_stream_is_sent(&origin.streams[0]));
    h2_client_stream_end(&origin.streams[0]);
    h2_origin_turn(&origin);
    expect("");
    h2_origin_close(&origin);
}
END_TEST

/* Bytes that are not read stay within the window of the stream, which opens as they are read. */
START_TEST(receive_window_opens_as_the_body_is_read)
{
    static char frame[H2_FRAME_HEAD + H2_FRAME_SIZE];
    struct str part;
    size_t rest = LIMIT_H2_UPSTREAM_WINDOW;

    open_session();
    h2_origin_script(&origin, "headers 1 :status=200");
    expect("1: 200\n");
    h2_frame_write_head(frame, H2_FRAME_SIZE, H2_DATA, 0, 1);
    for (; rest >= H2_FRAME_SIZE; rest -= H2_FRAME_SIZE)
        ck_assert_int_eq(h2_client_session_consume(&origin.session, str_of(frame, sizeof frame)), 0);
    ck_assert_uint_eq(rest, 0);
    ck_assert_int_eq(h2_client_stream_read(&origin.streams[0], 0, &part), REPLY_MORE);
    ck_assert_int_eq(h2_client_stream_read(&origin.streams[0], LIMIT_H2_UPSTREAM_WINDOW / 2, &part), REPLY_PART);
    ck_assert_uint_eq(part.length, LIMIT_H2_UPSTREAM_WINDOW / 2);
    ck_assert_ptr_eq(h2_client_session_next_updated(&origin.session), &origin.streams[0]);
    h2_origin_turn(&origin);
    expect("WINDOW_UPDATE 1 131072\n");
    for (rest = LIMIT_H2_UPSTREAM_WINDOW / 2; rest >= H2_FRAME_SIZE; rest -= H2_FRAME_SIZE)
        ck_assert_int_eq(h2_client_session_consume(&origin.session, str_of(frame, sizeof frame)), 0);
    origin.quiet = true;
    ck_assert_int_eq(h2_client_session_consume(&origin.session, str_of(frame, sizeof frame)), 0);
    h2_origin_turn(&origin);
    ck_assert_str_eq(origin.streams[0].fault, "more data than the stream's window");
    h2_origin_close(&origin);
}
END_TEST

START_TEST(capacity_follows_settings_and_open_streams)
{
    h2_origin_open(&origin);
    ck_assert_uint_eq(h2_client_session_capacity(&origin.session), LIMIT_H2_UPSTREAM_STREAMS);
    h2_origin_script(&origin, "settings 3=2");
    ck_assert_uint_eq(h2_client_session_capacity(&origin.session), 2);
    h2_origin_request(&origin, 0, "GET", 0, "", 0);
    h2_origin_request(&origin, 1, "GET", 0, "", 0);
    ck_assert_uint_eq(h2_client_session_capacity(&origin.session), 0);
    h2_client_stream_end(&origin.streams[0]); /* never sent: no frame */
    ck_assert_uint_eq(h2_client_session_capacity(&origin.session), 1);
    h2_origin_log(&origin);
    h2_origin_turn(&origin);
    expect("HEADERS 1 end\n");
    h2_origin_script(&origin, "goaway 1 0");
    ck_assert_uint_eq(h2_client_session_capacity(&origin.session), 0);
    ck_assert(!origin.streams[1].unprocessed);
    h2_origin_close(&origin);
}
END_TEST

START_TEST(refused_and_excluded_streams_are_unprocessed)
{
    h2_origin_open(&origin);
    for (unsigned i = 0; i < 3; i++)
        h2_origin_request(&origin, i, "POST", BODY_LENGTH_UNKNOWN, "", -EAGAIN);
    h2_origin_turn(&origin);
    h2_origin_script(&origin, "settings\nrst 1 7\ngoaway 3 2");
    ck_assert(origin.streams[0].unprocessed);
    ck_assert(!origin.streams[1].unprocessed);
    ck_assert(origin.streams[2].unprocessed);
    ck_assert(origin.session.going_away);
    h2_origin_close(&origin);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {request_bodies_are_sent_and_short_ones_reset, bodies_stay_within_the_stream_windows,
                                  bodies_stay_within_the_connection_window, frames_are_sent_through_small_buffers,
                                  trailers_follow_the_request_body, early_response_cancels_the_request_body,
                                  receive_window_opens_as_the_body_is_read, capacity_follows_settings_and_open_streams,
                                  refused_and_excluded_streams_are_unprocessed};
    const struct suite_loop loops[] = {
        {responses_are_read_with_interims_and_trailers, COUNT(answers)},
        {malformed_response_resets_its_stream_only, COUNT(malformed)},
        {error_after_the_head_fails_the_body, COUNT(late_errors)},
        {connection_error_fails_all_streams, COUNT(fatal)},
        {server_without_http2_is_detected, COUNT(no_http2)},
        {floods_end_the_connection, COUNT(floods)},
    };

    return suite_run_loops("h2_client_session", tests, COUNT(tests), loops, COUNT(loops));
}
