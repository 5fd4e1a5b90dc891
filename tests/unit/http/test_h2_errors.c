/* Errors of HTTP/2 clients: those of a stream, and those that end the connection. */
#include "h2_session_fixture.h"

#include <stdio.h>

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
        invalid_preface_ends_the_connection, stream_error_leaves_other_streams_open, header_blocks_are_not_interrupted,
        settings_are_the_first_frame, stream_identifiers_increase,
    };
    const struct suite_loop loops[] = {{connection_error_sends_goaway_and_closes, COUNT(violations)}};

    return suite_run_loops("h2_errors", tests, COUNT(tests), loops, COUNT(loops));
}
