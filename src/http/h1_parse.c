/* The syntax of heads: lines, request line and fields, in one pass with a table of byte classes. */
#include "http/h1_parse.h"

#include "base/limits.h"

#include <endian.h>
#include <errno.h>

enum { BYTE_TOKEN = 1, BYTE_VALUE = 2, BYTE_TARGET = 4, BYTE_UNDERSCORE = 8 };

/*
 * tchar (RFC 9110 5.6.2); bytes of field values; bytes of request targets: all visible ones, since raw UTF-8 occurs.
 */
static const uint8_t byte_classes[256] = {
    /* clang-format off */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, /* 0x00 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 0x10 */
    2, 7, 6, 7, 7, 7, 7, 7, 6, 6, 7, 7, 6, 7, 7, 6, /* 0x20 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 6, /* 0x30 */
    6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, /* 0x40 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 7, 15, /* 0x50 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, /* 0x60 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 7, 6, 7, 0, /* 0x70 */
    6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, /* 0x80 */
    6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, /* 0x90 */
    6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, /* 0xa0 */
    6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, /* 0xb0 */
    6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, /* 0xc0 */
    6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, /* 0xd0 */
    6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, /* 0xe0 */
    6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, /* 0xf0 */
    /* clang-format on */
};

static uint8_t class_of(char c)
{
    return byte_classes[(unsigned char)c];
}

/* Length of the prefix of `s` with only bytes of `class`. */
static size_t span_of(struct str s, uint8_t class)
{
    size_t length = 0;

    while (length < s.length && (class_of(s.data[length]) & class))
        length++;
    return length;
}

/* The top bit of each of eight bytes that is below 0x20 or 0x7f; exact up to the first such byte. */
static uint64_t control_bits(const char *at)
{
    const uint64_t ones = 0x0101010101010101;
    const uint64_t tops = 0x8080808080808080;
    uint64_t word;
    uint64_t deletes;

    memcpy(&word, at, 8);
    word = le64toh(word);
    deletes = word ^ (ones * 0x7f);
    return (((word - ones * 0x20) & ~word) | ((deletes - ones) & ~deletes)) & tops;
}

/*
 * span_of for BYTE_VALUE, eight bytes at a time, because most bytes of a head are in values. The tab is the only
 * control byte in the class.
 */
static size_t value_span(struct str s)
{
    size_t length = 0;

    while (s.length - length >= 8) {
        uint64_t controls = control_bits(s.data + length);

        length += controls ? (size_t)__builtin_ctzll(controls) / 8 : 8;
        if (controls && s.data[length] != '\t')
            return length;
        length += controls != 0;
    }
    return length + span_of(str_skip(s, length), BYTE_VALUE);
}

bool h1_is_token(struct str s)
{
    uint8_t all = BYTE_TOKEN;

#pragma GCC unroll 4
    for (size_t i = 0; i < s.length; i++)
        all &= class_of(s.data[i]);
    return s.length && all;
}

/* The last eight bytes are checked as one word, which may overlap checked ones. */
bool h1_is_value(struct str s)
{
    size_t length = 0;

    while (s.length - length >= 8 && control_bits(s.data + length) == 0)
        length += 8;
    if (s.length >= 8 && s.length - length < 8 && control_bits(s.data + s.length - 8) == 0)
        return true;
    s = str_skip(s, length);
    return value_span(s) == s.length;
}

/*
 * Skips a few empty lines before a request (RFC 9112 2.2). The next byte must begin a method, so that a TLS
 * handshake on a plain port is detected at once. 1: begun; 0: incomplete; -400.
 */
static int skip_empty_lines(struct h1_scan *scan, struct str bytes)
{
    while (scan->start < bytes.length) {
        const char *at = bytes.data + scan->start;
        size_t left = bytes.length - scan->start;

        if (*at != '\r')
            return (class_of(*at) & BYTE_TOKEN) ? 1 : -400;
        if (left < 2)
            return 0;
        if (at[1] != '\n' || scan->start >= 2 * LIMIT_LEADING_LINES)
            return -400;
        scan->start += 2;
        scan->line = scan->searched = scan->start;
    }
    return 0;
}

size_t h1_longest_line(const struct session_settings *settings)
{
    size_t longest = settings->large_header_size > settings->header_buffer_size
                         ? settings->large_header_size
                         : settings->header_buffer_size;

    return longest < settings->head_max ? longest : settings->head_max;
}

/* The fault of a line or head that is too long; `end` is the offset after the last byte received. */
static int line_fault(const struct h1_scan *scan, size_t longest, size_t head_max, size_t end)
{
    if (end - scan->line > longest || end - scan->start > head_max)
        return scan->lines ? -431 : -414;
    return 0;
}

/* Length of the line end: 2 for CRLF, 1 for a bare LF if allowed; 0: neither. */
static size_t line_ending(const struct h1_scan *scan, const char *feed, size_t end)
{
    if (end - scan->line >= 2 && feed[-1] == '\r')
        return 2;
    return scan->line_feeds ? 1 : 0;
}

int h1_head_end(struct h1_scan *scan, const struct session_settings *settings, struct str bytes)
{
    int begun = scan->lines ? 1 : skip_empty_lines(scan, bytes);
    size_t longest = h1_longest_line(settings);

    if (begun <= 0)
        return begun;
    while (scan->searched < bytes.length) {
        const char *feed = memchr(bytes.data + scan->searched, '\n', bytes.length - scan->searched);
        size_t end = feed ? (size_t)(feed - bytes.data) + 1 : bytes.length;
        int fault = line_fault(scan, longest, settings->head_max, end);
        size_t ending;

        if (fault)
            return fault;
        scan->searched = (uint32_t)end;
        if (!feed)
            return 0;
        ending = line_ending(scan, feed, end);
        if (ending == 0)
            return -400;
        if (end - scan->line == ending)
            return (int)end;
        /* The request line and max_headers fields. */
        if (scan->lines > settings->max_headers)
            return -431;
        scan->lines++;
        scan->line = (uint32_t)end;
    }
    return 0;
}

/* Parses one field line from the front of *rest. */
static int parse_field(struct str *rest, struct header *out_field, bool *out_underscore)
{
    const char *at = rest->data;
    const char *end = at + rest->length;
    const char *value;
    uint8_t seen = 0;

    while (at < end && (class_of(*at) & BYTE_TOKEN))
        seen |= class_of(*at++);
    if (at == rest->data || at == end || *at != ':')
        return -EBADMSG;
    out_field->name = str_of(rest->data, (size_t)(at - rest->data));
    *out_underscore = seen & BYTE_UNDERSCORE;
    for (at++; at < end && (*at == ' ' || *at == '\t'); at++)
        ;
    value = at;
    at += value_span(str_of(at, (size_t)(end - at)));
    if (end - at < 2 || at[0] != '\r' || at[1] != '\n')
        return -EBADMSG;
    *rest = str_of(at + 2, (size_t)(end - at) - 2);
    while (at > value && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    out_field->value = str_of(value, (size_t)(at - value));
    return 0;
}

int h1_parse_fields(struct str lines, bool underscores, struct arena *arena, struct headers *headers)
{
    while (lines.length) {
        struct header field;
        bool underscore;
        int error = parse_field(&lines, &field, &underscore);

        if (!error && (!underscore || (underscores && !header_imitates(field.name))))
            error = headers_add(headers, arena, field.name, field.value);
        if (error)
            return error;
    }
    return 0;
}

/* HTTP-version (RFC 9112 2.3). Higher minor versions are accepted; 0.9 has no version. */
static int parse_version(struct str text, enum http_version *out_version)
{
    const char *digits = text.data + 5;

    if (text.length != 8 || !str_starts(text, STR("HTTP/")) || digits[1] != '.' || digits[0] < '1' ||
        digits[0] > '9' || digits[2] < '0' || digits[2] > '9')
        return 400;
    if (digits[0] > '1')
        return 505;
    *out_version = digits[2] == '0' ? HTTP_1_0 : HTTP_1_1;
    return 0;
}

int h1_parse_request_line(struct str line, struct request *request)
{
    struct str rest = line;
    size_t length = span_of(rest, BYTE_TOKEN);

    request->line = line;
    if (length == 0 || length == rest.length || rest.data[length] != ' ')
        return 400;
    request->method_name = str_slice(rest, 0, length);
    request->method = method_parse(request->method_name);
    rest = str_skip(rest, length + 1);
    length = span_of(rest, BYTE_TARGET);
    if (length == 0 || length == rest.length || rest.data[length] != ' ')
        return 400;
    request->target = str_slice(rest, 0, length);
    return parse_version(str_skip(rest, length + 1), &request->version);
}

void h1_parse_rejected_head(struct str bytes, struct request *request)
{
    ssize_t end = str_find(bytes, '\n');
    struct str line = end < 0 ? bytes : str_slice(bytes, 0, (size_t)end);

    if (line.length && line.data[line.length - 1] == '\r')
        line.length--;
    if (request->line.length == 0)
        h1_parse_request_line(line, request);
}
