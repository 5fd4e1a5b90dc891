#include "http/h2/frame_log.h"

#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

/* The bytes of each frame, and its description. */
static const struct {
    const char *bytes;
    size_t length;
    const char *text;
} frames[] = {
#define ROW(bytes, text) {bytes, sizeof bytes - 1, text}
    ROW("\0\0\5\0\1\0\0\0\1hello", "DATA, stream 1, 5 bytes, END_STREAM"),
    ROW("\0\x40\0\0\0\0\0\0\3", "DATA, stream 3, 16384 bytes"), /* the head only */
    ROW("\0\0\1\0\x08\0\0\0\1\0", "DATA, stream 1, 1 bytes, PADDED"),
    ROW("\0\0\1\1\5\0\0\0\1\x82", "HEADERS, stream 1, 1 bytes, END_STREAM END_HEADERS"),
    ROW("\0\0\1\1\x29\0\0\0\1\x82", "HEADERS, stream 1, 1 bytes, END_STREAM PADDED PRIORITY"),
    ROW("\0\0\1\x9\4\0\0\0\1\x82", "CONTINUATION, stream 1, 1 bytes, END_HEADERS"),
    ROW("\0\0\5\2\0\0\0\0\7\0\0\0\0\0", "PRIORITY, stream 7, 5 bytes"),
    ROW("\0\0\4\3\0\0\0\0\1\0\0\0\x8", "RST_STREAM, stream 1, 4 bytes, CANCEL (8)"),
    ROW("\0\0\4\3\0\0\0\0\1\xff\0\0\0", "RST_STREAM, stream 1, 4 bytes, unknown (4278190080)"),
    ROW("\0\0\0\4\1\0\0\0\0", "SETTINGS, stream 0, 0 bytes, ACK"),
    ROW("\0\0\x12\4\0\0\0\0\0\0\1\0\0\0\0\0\3\0\0\0\x64\0\x8\0\0\0\1",
        "SETTINGS, stream 0, 18 bytes, HEADER_TABLE_SIZE=0, MAX_CONCURRENT_STREAMS=100, ENABLE_CONNECT_PROTOCOL=1"),
    ROW("\0\0\x12\4\0\0\0\0\0\0\7\0\0\0\1\0\0\0\0\0\2\xab\xcd\xff\xff\xff\xff",
        "SETTINGS, stream 0, 18 bytes, 0x0007=1, 0x0000=2, 0xabcd=4294967295"),
    ROW("\0\0\6\4\0\0\0\0\0\0\1\0", "SETTINGS, stream 0, 6 bytes"), /* incomplete */
    ROW("\0\0\4\5\4\0\0\0\1\0\0\0\2", "PUSH_PROMISE, stream 1, 4 bytes"),
    ROW("\0\0\x8\6\1\0\0\0\0\1\2\3\4\xff\0\0\1", "PING, stream 0, 8 bytes, ACK, 0x01020304ff000001"),
    ROW("\0\0\x8\7\0\0\0\0\0\x80\0\0\5\0\0\0\xb", "GOAWAY, stream 0, 8 bytes, last stream 5, ENHANCE_YOUR_CALM (11)"),
    ROW("\0\0\x4\7\0\0\0\0\0\0\0\0\5", "GOAWAY, stream 0, 4 bytes"),
    ROW("\0\0\4\x8\0\0\0\0\0\x80\0\0\x9", "WINDOW_UPDATE, stream 0, 4 bytes, increment 9"),
    ROW("\0\0\x7\x10\0\0\0\0\0\0\0\0\3u=1", "PRIORITY_UPDATE, stream 0, 7 bytes, of stream 3: \"u=1\""),
    ROW("\0\0\0\x4d\xff\0\0\0\2", "frame of unknown type 0x4d, stream 2, 0 bytes"),
    ROW("\0\0\0\xff\0\x80\0\0\2", "frame of unknown type 0xff, stream 2, 0 bytes"),
};

static struct h2_frame frame_of(size_t row)
{
    struct h2_frame frame = h2_frame_parse_head(frames[row].bytes);

    frame.payload = str_of(frames[row].bytes + H2_FRAME_HEAD, frames[row].length - H2_FRAME_HEAD);
    return frame;
}

START_TEST(each_frame_type_has_its_description)
{
    struct h2_frame frame = frame_of((size_t)_i);
    char text[300];

    ck_assert_text(str_of(text, h2_frame_describe(&frame, text, sizeof text)), frames[_i].text);
}
END_TEST

/* A description is truncated to every size, never longer. */
START_TEST(descriptions_are_truncated_at_any_size)
{
    struct h2_frame frame = frame_of((size_t)_i);
    size_t whole = strlen(frames[_i].text);

    for (size_t size = 1; size <= whole + 1; size++) {
        char *text = malloc(size);
        size_t length = h2_frame_describe(&frame, text, size);

        ck_assert_uint_eq(length, size - 1);
        ck_assert(memcmp(text, frames[_i].text, length) == 0);
        free(text);
    }
}
END_TEST

static char noted[2000];

static void record_line(void *owner, struct str text)
{
    snprintf(noted + strlen(noted), sizeof noted - strlen(noted), STR_FMT "\n", STR_ARG(text));
}

/* Whole frames one after the other; the payload of the last one need not be present. */
START_TEST(sent_frames_are_logged_only_when_traced)
{
    static const struct exchange_events traced = {.trace = record_line}, untraced = {0};
    static const char bytes[] = "\0\0\1\1\0\0\0\0\1\x82\0\0\1\x9\4\0\0\0\1\x82\0\0\5\0\1\0\0\0\1";
    struct h2_session h2 = {.events = &untraced};

    noted[0] = '\0';
    h2_log_sent(&h2, str_of(bytes, sizeof bytes - 1));
    h2_log_received(&h2, &(struct h2_frame){.type = H2_PING});
    ck_assert_str_eq(noted, "");
    h2.events = &traced;
    h2_log_sent(&h2, str_of(bytes, sizeof bytes - 1));
    h2_log_sent(&h2, STR("\0\0\0"));
    h2_log_received(&h2, &(struct h2_frame){.type = H2_PING, .length = 8});
    ck_assert_str_eq(noted, "sent HEADERS, stream 1, 1 bytes\nsent CONTINUATION, stream 1, 1 bytes, END_HEADERS\n"
                          "sent DATA, stream 1, 5 bytes, END_STREAM\nreceived PING, stream 0, 8 bytes\n");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {sent_frames_are_logged_only_when_traced};
    const struct suite_loop loops[] = {
        {each_frame_type_has_its_description, COUNT(frames)},
        {descriptions_are_truncated_at_any_size, COUNT(frames)},
    };

    return suite_run_loops("h2_frame_log", tests, COUNT(tests), loops, COUNT(loops));
}
