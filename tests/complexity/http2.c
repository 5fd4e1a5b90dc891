/*
 * Frames (RFC 9113) and header blocks (HPACK, RFC 7541) with literal fields.
 */
#include "http2.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>

enum frame_type { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE,
                  CONTINUATION, UNKNOWN = 0x77 };
enum { END_STREAM = 1, END_HEADERS = 4, FRAME_HEAD = 9, FRAME_MAX = 16384 };
enum { INDEXED = 0x80, STATUS_200 = INDEXED | 8, METHOD_GET = INDEXED | 2, METHOD_POST, SCHEME_HTTP = INDEXED | 6,
       DYNAMIC_FIRST = INDEXED | 62, AUTHORITY = 1, PATH = 4, ADD = 0x40, TABLE_SIZE = 0x20, TABLE_SIZE_MASK = 0xe0 };

static void put(struct buffer *into, const char *bytes, size_t length)
{
    if (buffer_append(into, str_of(bytes, length)) < 0)
        ck_abort_msg("out of memory");
}

static void put_byte(struct buffer *into, unsigned byte)
{
    put(into, &(char){(char)byte}, 1);
}

static void put_number(struct buffer *into, size_t number, unsigned width)
{
    while (width-- > 0)
        put_byte(into, (unsigned)(number >> 8 * width) & 0xff);
}

static void put_frame(struct buffer *into, enum frame_type type, unsigned flags, size_t stream, struct str payload)
{
    put_number(into, payload.length, 3);
    put_byte(into, type);
    put_byte(into, flags);
    put_number(into, stream, 4);
    put(into, payload.data, payload.length);
}

static void put_preface(struct buffer *into)
{
    put(into, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    put_frame(into, SETTINGS, 0, 0, STR(""));
}

/* A string shorter than 127 bytes, without Huffman coding. */
static void put_string(struct buffer *block, const char *text)
{
    struct str string = str_from(text);

    put_byte(block, (unsigned)string.length);
    put(block, string.data, string.length);
}

static void put_field(struct buffer *block, const char *name, const char *value)
{
    put_byte(block, 0); /* is not added to the dynamic table */
    put_string(block, name);
    put_string(block, value);
}

static void put_request_line(struct buffer *block, unsigned method, const char *path)
{
    put_byte(block, method);
    put_byte(block, SCHEME_HTTP);
    put_byte(block, PATH);
    put_string(block, path);
    put_byte(block, AUTHORITY);
    put_string(block, "localhost");
}

/* Appends the block as HEADERS and as many CONTINUATION frames as necessary. Frees the block. */
static void put_headers(struct buffer *into, size_t stream, unsigned flags, struct buffer *block)
{
    struct str rest = buffer_str(block);
    enum frame_type type = HEADERS;

    do {
        struct str piece = str_slice(rest, 0, FRAME_MAX);

        rest = str_skip(rest, piece.length);
        put_frame(into, type, (type == HEADERS ? flags : 0) | (rest.length ? 0 : END_HEADERS), stream, piece);
        type = CONTINUATION;
    } while (rest.length > 0);
    buffer_finish(block);
}

static void put_get(struct buffer *into, size_t stream, const char *path)
{
    struct buffer block = {0};

    put_request_line(&block, METHOD_GET, path);
    put_headers(into, stream, END_STREAM, &block);
}

static void put_get_with_fields(struct buffer *into, const char *path, size_t n)
{
    struct buffer block = {0};
    char name[24];

    put_preface(into);
    put_request_line(&block, METHOD_GET, path);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "x-%zu", i);
        put_field(&block, name, "0123456789012345678901234567890123456789");
    }
    put_headers(into, 1, END_STREAM, &block);
}

void make_h2_fields(struct buffer *into, size_t n)
{
    put_get_with_fields(into, "/return", n);
}

void make_h2_passed_fields(struct buffer *into, size_t n)
{
    put_get_with_fields(into, "/proxy", n);
}

void make_h2_indexed_fields(struct buffer *into, size_t n)
{
    struct buffer block = {0};

    put_preface(into);
    put_request_line(&block, METHOD_GET, "/return");
    put_byte(&block, ADD);
    put_string(&block, "x");
    put_string(&block, "0123456789012345678901234567890123456789");
    for (size_t i = 1; i < n; i++)
        put_byte(&block, DYNAMIC_FIRST);
    put_headers(into, 1, END_STREAM, &block);
}

void make_h2_cookies(struct buffer *into, size_t n)
{
    struct buffer block = {0};
    char value[24];

    put_preface(into);
    put_request_line(&block, METHOD_GET, "/return");
    for (size_t i = 0; i < n; i++) {
        snprintf(value, sizeof(value), "a%zu=1", i);
        put_field(&block, "cookie", value);
    }
    put_headers(into, 1, END_STREAM, &block);
}

/* A request with n DATA frames before the last one, which has one byte. */
static void put_post(struct buffer *into, size_t n, struct str payload)
{
    struct buffer block = {0};

    put_preface(into);
    put_request_line(&block, METHOD_POST, "/proxy");
    put_headers(into, 1, 0, &block);
    for (size_t i = 0; i < n; i++)
        put_frame(into, DATA, 0, 1, payload);
    put_frame(into, DATA, END_STREAM, 1, STR("a"));
}

void make_h2_data(struct buffer *into, size_t n)
{
    put_post(into, n - 1, STR("a"));
}

void make_h2_empty_data(struct buffer *into, size_t n)
{
    put_post(into, n, STR(""));
}

void make_h2_proxied(struct buffer *into, size_t n)
{
    put_preface(into);
    put_get(into, 1, "/proxy");
}

static void put_frames_and_get(struct buffer *into, size_t n, enum frame_type type, struct str payload)
{
    put_preface(into);
    for (size_t i = 0; i < n; i++)
        put_frame(into, type, 0, 0, payload);
    put_get(into, 1, "/return");
}

void make_h2_window_updates(struct buffer *into, size_t n)
{
    put_frames_and_get(into, n, WINDOW_UPDATE, str_of("\0\0\0\1", 4));
}

void make_h2_pings(struct buffer *into, size_t n)
{
    put_frames_and_get(into, n, PING, STR("12345678"));
}

void make_h2_unknown_frames(struct buffer *into, size_t n)
{
    put_frames_and_get(into, n, UNKNOWN, STR("12345678"));
}

void make_h2_settings(struct buffer *into, size_t n)
{
    put_frames_and_get(into, n, SETTINGS, STR(""));
}

void make_h2_windows_of_a_byte(struct buffer *into, size_t n)
{
    put_preface(into);
    put_frame(into, SETTINGS, 0, 0, str_of("\0\4\0\0\0\0", 6)); /* SETTINGS_INITIAL_WINDOW_SIZE 0 */
    put_get(into, 1, "/file");
    for (size_t i = 0; i < n; i++)
        put_frame(into, WINDOW_UPDATE, 0, 1, str_of("\0\0\0\1", 4));
    put_frame(into, WINDOW_UPDATE, 0, 1, str_of("\0\1\0\0", 4));
}

void make_h2_priorities(struct buffer *into, size_t n)
{
    put_preface(into);
    for (size_t i = 0; i < n; i++)
        put_frame(into, PRIORITY, 0, 3, str_of("\0\0\0\0\20", 5));
    put_get(into, 1, "/return");
}

/* n requests for an upstream server, each followed by a frame for its stream, and one request that is answered. */
static void put_ended_requests(struct buffer *into, size_t n, enum frame_type type, struct str payload)
{
    put_preface(into);
    for (size_t i = 0; i < n; i++) {
        put_get(into, 2 * i + 1, "/upstream");
        put_frame(into, type, 0, 2 * i + 1, payload);
    }
    put_get(into, 2 * n + 1, "/return");
}

void make_h2_cancelled(struct buffer *into, size_t n)
{
    put_ended_requests(into, n, RST_STREAM, str_of("\0\0\0\10", 4));
}

void make_h2_reset_by_server(struct buffer *into, size_t n)
{
    put_ended_requests(into, n, WINDOW_UPDATE, str_of("\0\0\0\0", 4));
}

void make_h2_continuations(struct buffer *into, size_t n)
{
    struct buffer block = {0};
    struct str rest;

    put_preface(into);
    put_request_line(&block, METHOD_GET, "/return");
    for (size_t i = 0; i < 10; i++)
        put_field(&block, "x", "0123456789012345678901234567890123456789");
    rest = buffer_str(&block);
    put_frame(into, HEADERS, END_STREAM, 1, str_slice(rest, 0, rest.length - n));
    for (rest = str_skip(rest, rest.length - n); rest.length > 0; rest = str_skip(rest, 1))
        put_frame(into, CONTINUATION, rest.length == 1 ? END_HEADERS : 0, 1, str_slice(rest, 0, 1));
    buffer_finish(&block);
}

void make_h2_requests(struct buffer *into, size_t n)
{
    put_preface(into);
    for (size_t i = 0; i < n; i++)
        put_get(into, 2 * i + 1, "/return");
}

/* Cuts the first frame off. False: there is no whole one. */
static bool next_frame(struct str *frames, enum frame_type *out_type, unsigned *out_flags, struct str *out_payload)
{
    const unsigned char *head = (const unsigned char *)frames->data;
    size_t length;

    if (frames->length < FRAME_HEAD)
        return false;
    length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    if (frames->length - FRAME_HEAD < length)
        return false;
    *out_type = (enum frame_type)head[3];
    *out_flags = head[4];
    *out_payload = str_slice(*frames, FRAME_HEAD, FRAME_HEAD + length);
    *frames = str_skip(*frames, FRAME_HEAD + length);
    return true;
}

/* The first field of a response is its status. It may follow a change of the dynamic table to a size below 31 bytes. */
static bool has_status_200(struct str block)
{
    if (block.length > 0 && ((unsigned char)block.data[0] & TABLE_SIZE_MASK) == TABLE_SIZE)
        block = str_skip(block, 1);
    return block.length > 0 && (unsigned char)block.data[0] == STATUS_200;
}

static bool is_answer(enum frame_type type, unsigned flags, struct str payload)
{
    (void)flags;
    return type == HEADERS && has_status_200(payload);
}

static bool ends_stream(enum frame_type type, unsigned flags, struct str payload)
{
    (void)payload;
    return type == RST_STREAM || ((type == HEADERS || type == DATA) && (flags & END_STREAM));
}

static size_t count_frames(struct str frames, bool (*counts)(enum frame_type type, unsigned flags, struct str payload))
{
    enum frame_type type;
    struct str payload;
    unsigned flags;
    size_t count = 0;

    while (next_frame(&frames, &type, &flags, &payload))
        count += counts(type, flags, payload);
    return count;
}

size_t h2_count_answers(struct str frames)
{
    return count_frames(frames, is_answer);
}

size_t h2_count_ends(struct str frames)
{
    return count_frames(frames, ends_stream);
}
