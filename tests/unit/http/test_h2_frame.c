#include "http/h2/frame.h"

#include "suite.h"

#define HEAD_OF(length_, type_, flags_, stream_)                                                             \
    {                                                                                                        \
        .length = (length_), .type = (type_), .flags = (flags_), .stream = (stream_)                         \
    }

/* Lengths and streams at the edges of each type's rules. */
static const struct {
    struct h2_frame frame;
    enum h2_error error;
} heads[] = {
    {HEAD_OF(0, H2_DATA, 0, 1), H2_NO_ERROR},
    {HEAD_OF(16384, H2_DATA, 0, 1), H2_NO_ERROR},
    {HEAD_OF(16385, H2_DATA, 0, 1), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(0, H2_DATA, 0, 0), H2_PROTOCOL_ERROR},
    {HEAD_OF(0, H2_HEADERS, 0, 1), H2_NO_ERROR},
    {HEAD_OF(16385, H2_HEADERS, 0, 1), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(10, H2_HEADERS, 0, 0), H2_PROTOCOL_ERROR},
    {HEAD_OF(4, H2_PRIORITY, 0, 1), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(5, H2_PRIORITY, 0, 1), H2_NO_ERROR},
    {HEAD_OF(6, H2_PRIORITY, 0, 1), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(5, H2_PRIORITY, 0, 0), H2_PROTOCOL_ERROR},
    {HEAD_OF(3, H2_RST_STREAM, 0, 1), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(4, H2_RST_STREAM, 0, 1), H2_NO_ERROR},
    {HEAD_OF(5, H2_RST_STREAM, 0, 1), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(4, H2_RST_STREAM, 0, 0), H2_PROTOCOL_ERROR},
    {HEAD_OF(0, H2_SETTINGS, 0, 0), H2_NO_ERROR},
    {HEAD_OF(0, H2_SETTINGS, H2_FLAG_ACK, 0), H2_NO_ERROR},
    {HEAD_OF(6, H2_SETTINGS, H2_FLAG_ACK, 0), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(5, H2_SETTINGS, 0, 0), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(6, H2_SETTINGS, 0, 0), H2_NO_ERROR},
    {HEAD_OF(7, H2_SETTINGS, 0, 0), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(12, H2_SETTINGS, 0, 0), H2_NO_ERROR},
    {HEAD_OF(6, H2_SETTINGS, 0, 1), H2_PROTOCOL_ERROR},
    {HEAD_OF(3, H2_PUSH_PROMISE, 0, 1), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(4, H2_PUSH_PROMISE, 0, 1), H2_NO_ERROR},
    {HEAD_OF(4, H2_PUSH_PROMISE, 0, 0), H2_PROTOCOL_ERROR},
    {HEAD_OF(7, H2_PING, 0, 0), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(8, H2_PING, 0, 0), H2_NO_ERROR},
    {HEAD_OF(9, H2_PING, 0, 0), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(8, H2_PING, 0, 1), H2_PROTOCOL_ERROR},
    {HEAD_OF(7, H2_GOAWAY, 0, 0), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(8, H2_GOAWAY, 0, 0), H2_NO_ERROR},
    {HEAD_OF(100, H2_GOAWAY, 0, 0), H2_NO_ERROR},
    {HEAD_OF(8, H2_GOAWAY, 0, 1), H2_PROTOCOL_ERROR},
    {HEAD_OF(3, H2_WINDOW_UPDATE, 0, 0), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(4, H2_WINDOW_UPDATE, 0, 0), H2_NO_ERROR},
    {HEAD_OF(4, H2_WINDOW_UPDATE, 0, 1), H2_NO_ERROR},
    {HEAD_OF(5, H2_WINDOW_UPDATE, 0, 1), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(0, H2_CONTINUATION, 0, 1), H2_NO_ERROR},
    {HEAD_OF(0, H2_CONTINUATION, 0, 0), H2_PROTOCOL_ERROR},
    {HEAD_OF(16385, H2_CONTINUATION, 0, 1), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(3, H2_PRIORITY_UPDATE, 0, 0), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(4, H2_PRIORITY_UPDATE, 0, 0), H2_NO_ERROR},
    {HEAD_OF(4, H2_PRIORITY_UPDATE, 0, 1), H2_PROTOCOL_ERROR},
    /* Unknown types: only the length is limited. */
    {HEAD_OF(0, 10, 255, 0), H2_NO_ERROR},
    {HEAD_OF(16384, 15, 255, 7), H2_NO_ERROR},
    {HEAD_OF(16384, 255, 255, 7), H2_NO_ERROR},
    {HEAD_OF(16385, 255, 0, 0), H2_FRAME_SIZE_ERROR},
    {HEAD_OF(0xffffff, 17, 0, 0), H2_FRAME_SIZE_ERROR},
};

START_TEST(length_and_stream_follow_the_rules_of_the_type)
{
    ck_assert_int_eq(h2_frame_check(&heads[_i].frame), heads[_i].error);
}
END_TEST

START_TEST(written_head_is_parsed_back)
{
    static const struct h2_frame frames[] = {
        HEAD_OF(0, H2_DATA, 0, 0),
        HEAD_OF(0x123456, H2_PRIORITY_UPDATE, 0xa5, 0x12345678),
        HEAD_OF(0xffffff, 255, 255, H2_STREAM_MAX),
    };

    for (size_t i = 0; i < COUNT(frames); i++) {
        char bytes[H2_FRAME_HEAD];
        struct h2_frame seen;

        ck_assert_ptr_eq(h2_frame_write_head(bytes, frames[i].length, frames[i].type, frames[i].flags,
                                             frames[i].stream),
                         bytes + sizeof(bytes));
        seen = h2_frame_parse_head(bytes);
        ck_assert_uint_eq(seen.length, frames[i].length);
        ck_assert_uint_eq(seen.type, frames[i].type);
        ck_assert_uint_eq(seen.flags, frames[i].flags);
        ck_assert_uint_eq(seen.stream, frames[i].stream);
    }
}
END_TEST

/* The reserved bit of a stream identifier is ignored (RFC 9113 4.1). */
START_TEST(reserved_bit_of_the_stream_is_ignored)
{
    ck_assert_uint_eq(h2_frame_parse_head("\0\0\0\0\0\xff\xff\xff\xff").stream, 0x7fffffff);
    ck_assert_uint_eq(h2_frame_parse_head("\0\0\0\0\0\x80\0\0\0").stream, 0);
}
END_TEST

#define BYTES(text) {(text), sizeof(text) - 1}
static const struct {
    enum h2_frame_type type;
    uint8_t flags;
    struct str payload, rest;
    uint32_t depends;
    enum h2_error error;
} paddings[] = {
    {H2_DATA, 0, BYTES("abc"), BYTES("abc"), 0, H2_NO_ERROR},
    {H2_DATA, 0, BYTES(""), BYTES(""), 0, H2_NO_ERROR},
    {H2_DATA, H2_FLAG_PADDED, BYTES(""), BYTES(""), 0, H2_FRAME_SIZE_ERROR},
    {H2_DATA, H2_FLAG_PADDED, BYTES("\0"), BYTES(""), 0, H2_NO_ERROR},
    {H2_DATA, H2_FLAG_PADDED, BYTES("\0abc"), BYTES("abc"), 0, H2_NO_ERROR},
    {H2_DATA, H2_FLAG_PADDED, BYTES("\2abc"), BYTES("a"), 0, H2_NO_ERROR},
    {H2_DATA, H2_FLAG_PADDED, BYTES("\3abc"), BYTES(""), 0, H2_NO_ERROR},
    {H2_DATA, H2_FLAG_PADDED, BYTES("\4abc"), BYTES(""), 0, H2_PROTOCOL_ERROR},
    {H2_DATA, H2_FLAG_PADDED, BYTES("\xff\0\0"), BYTES(""), 0, H2_PROTOCOL_ERROR},
    {H2_DATA, H2_FLAG_PRIORITY, BYTES("abc"), BYTES("abc"), 0, H2_NO_ERROR},
    {H2_HEADERS, H2_FLAG_PRIORITY, BYTES("\x80\0\0\7\1ab"), BYTES("ab"), 7, H2_NO_ERROR},
    {H2_HEADERS, H2_FLAG_PRIORITY, BYTES("\0\0\0\7\1"), BYTES(""), 7, H2_NO_ERROR},
    {H2_HEADERS, H2_FLAG_PRIORITY, BYTES("\0\0\0\7"), BYTES(""), 0, H2_FRAME_SIZE_ERROR},
    {H2_HEADERS, H2_FLAG_PRIORITY | H2_FLAG_PADDED, BYTES("\2\0\0\0\7\1abc"), BYTES("a"), 7, H2_NO_ERROR},
    {H2_HEADERS, H2_FLAG_PRIORITY | H2_FLAG_PADDED, BYTES("\3\0\0\0\7\1abc"), BYTES(""), 7, H2_NO_ERROR},
    {H2_HEADERS, H2_FLAG_PRIORITY | H2_FLAG_PADDED, BYTES("\4\0\0\0\7\1abc"), BYTES(""), 7,
     H2_PROTOCOL_ERROR},
    {H2_HEADERS, H2_FLAG_PRIORITY | H2_FLAG_PADDED, BYTES("\0\0\0\0\7"), BYTES(""), 0, H2_FRAME_SIZE_ERROR},
};

START_TEST(padding_is_removed_or_rejected)
{
    struct h2_frame frame = {
        .type = paddings[_i].type, .flags = paddings[_i].flags, .payload = paddings[_i].payload};
    uint32_t depends = 99;
    enum h2_error error = h2_frame_unpad(&frame, &depends);

    ck_assert_int_eq(error, paddings[_i].error);
    if (error)
        return;
    ck_assert(str_equal(frame.payload, paddings[_i].rest));
    ck_assert_uint_eq(depends, paddings[_i].depends);
}
END_TEST

static const struct {
    unsigned setting;
    uint32_t value;
    enum h2_error error;
    struct h2_peer_settings after;
} settings[] = {
    {H2_SETTINGS_HEADER_TABLE_SIZE, UINT32_MAX, H2_NO_ERROR, {100, 16384}},
    {H2_SETTINGS_ENABLE_PUSH, 0, H2_NO_ERROR, {100, 16384}},
    {H2_SETTINGS_ENABLE_PUSH, 1, H2_NO_ERROR, {100, 16384}},
    {H2_SETTINGS_ENABLE_PUSH, 2, H2_PROTOCOL_ERROR, {100, 16384}},
    {H2_SETTINGS_MAX_CONCURRENT_STREAMS, 0, H2_NO_ERROR, {100, 16384}},
    {H2_SETTINGS_INITIAL_WINDOW_SIZE, 0, H2_NO_ERROR, {0, 16384}},
    {H2_SETTINGS_INITIAL_WINDOW_SIZE, 0x7fffffff, H2_NO_ERROR, {0x7fffffff, 16384}},
    {H2_SETTINGS_INITIAL_WINDOW_SIZE, 0x80000000, H2_FLOW_CONTROL_ERROR, {100, 16384}},
    {H2_SETTINGS_MAX_FRAME_SIZE, 16383, H2_PROTOCOL_ERROR, {100, 16384}},
    {H2_SETTINGS_MAX_FRAME_SIZE, 16384, H2_NO_ERROR, {100, 16384}},
    {H2_SETTINGS_MAX_FRAME_SIZE, 16777215, H2_NO_ERROR, {100, 16777215}},
    {H2_SETTINGS_MAX_FRAME_SIZE, 16777216, H2_PROTOCOL_ERROR, {100, 16384}},
    {H2_SETTINGS_MAX_HEADER_LIST_SIZE, 0, H2_NO_ERROR, {100, 16384}},
    {H2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1, H2_NO_ERROR, {100, 16384}},
    {H2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 2, H2_PROTOCOL_ERROR, {100, 16384}},
    {H2_SETTINGS_NO_RFC7540_PRIORITIES, 1, H2_NO_ERROR, {100, 16384}},
    {H2_SETTINGS_NO_RFC7540_PRIORITIES, 2, H2_PROTOCOL_ERROR, {100, 16384}},
    {0, UINT32_MAX, H2_NO_ERROR, {100, 16384}},
    {0xff05, 1, H2_NO_ERROR, {100, 16384}},
};

START_TEST(setting_values_are_applied_or_rejected)
{
    struct h2_peer_settings peer = {100, 16384};
    char bytes[H2_SETTING_SIZE];

    ck_assert_ptr_eq(h2_setting_write(bytes, settings[_i].setting, settings[_i].value),
                     bytes + sizeof(bytes));
    ck_assert_int_eq(h2_settings_apply(&peer, str_of(bytes, sizeof(bytes))), settings[_i].error);
    ck_assert_uint_eq(peer.initial_window, settings[_i].after.initial_window);
    ck_assert_uint_eq(peer.max_frame_size, settings[_i].after.max_frame_size);
}
END_TEST

/* Parameters apply in order: the last value counts, and an error ends them. */
START_TEST(settings_apply_in_order_until_an_error)
{
    struct h2_peer_settings peer = {100, 16384};
    char bytes[4 * H2_SETTING_SIZE];
    char *at = h2_setting_write(bytes, H2_SETTINGS_INITIAL_WINDOW_SIZE, 1);

    at = h2_setting_write(at, H2_SETTINGS_INITIAL_WINDOW_SIZE, 2);
    at = h2_setting_write(at, H2_SETTINGS_ENABLE_PUSH, 2);
    h2_setting_write(at, H2_SETTINGS_INITIAL_WINDOW_SIZE, 3);
    ck_assert_int_eq(h2_settings_apply(&peer, str_of(bytes, 2 * H2_SETTING_SIZE)), H2_NO_ERROR);
    ck_assert_uint_eq(peer.initial_window, 2);
    ck_assert_int_eq(h2_settings_apply(&peer, str_of(bytes, sizeof(bytes))), H2_PROTOCOL_ERROR);
    ck_assert_uint_eq(peer.initial_window, 2);
    ck_assert_int_eq(h2_settings_apply(&peer, STR("")), H2_NO_ERROR);
}
END_TEST

START_TEST(control_frames_are_written_byte_by_byte)
{
    char number[H2_NUMBER_FRAME];
    char ping[H2_PING_FRAME];
    char goaway[H2_GOAWAY_FRAME];

    ck_assert_ptr_eq(h2_frame_write_number(number, H2_RST_STREAM, 5, H2_CANCEL), number + sizeof(number));
    ck_assert_mem_eq(number, "\0\0\4\3\0\0\0\0\5\0\0\0\x8", sizeof(number));
    ck_assert_ptr_eq(h2_frame_write_ping(ping, H2_FLAG_ACK, "12345678"), ping + sizeof(ping));
    ck_assert_mem_eq(ping, "\0\0\x8\6\1\0\0\0\0"
                           "12345678",
                     sizeof(ping));
    ck_assert_ptr_eq(h2_frame_write_goaway(goaway, 0x01020304, H2_ENHANCE_YOUR_CALM),
                     goaway + sizeof(goaway));
    ck_assert_mem_eq(goaway, "\0\0\x8\7\0\0\0\0\0\1\2\3\4\0\0\0\xb", sizeof(goaway));
    ck_assert_uint_eq(h2_read_u32("\xff\0\1\2"), 0xff000102);
}
END_TEST

START_TEST(each_error_code_has_its_name)
{
    static const char *const names[] = {
        "NO_ERROR",       "PROTOCOL_ERROR", "INTERNAL_ERROR",      "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",  "FRAME_SIZE_ERROR", "REFUSED_STREAM",    "CANCEL",             "COMPRESSION_ERROR",
        "CONNECT_ERROR",  "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    };

    ck_assert_uint_eq(COUNT(names), H2_ERRORS);
    for (uint32_t code = 0; code < H2_ERRORS; code++)
        ck_assert_str_eq(h2_error_name(code), names[code]);
    ck_assert_str_eq(h2_error_name(H2_ERRORS), "unknown");
    ck_assert_str_eq(h2_error_name(UINT32_MAX), "unknown");
    ck_assert_int_eq(H2_HTTP_1_1_REQUIRED, 0xd);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {written_head_is_parsed_back, reserved_bit_of_the_stream_is_ignored,
                                  settings_apply_in_order_until_an_error, control_frames_are_written_byte_by_byte,
                                  each_error_code_has_its_name};
    const struct suite_loop loops[] = {
        {length_and_stream_follow_the_rules_of_the_type, COUNT(heads)},
        {padding_is_removed_or_rejected, COUNT(paddings)},
        {setting_values_are_applied_or_rejected, COUNT(settings)},
    };

    return suite_run_loops("h2_frame", tests, COUNT(tests), loops, COUNT(loops));
}
