/*
 * Parses and formats frames. A table has the rules for the length and the stream of each type.
 */
#include "http/h2/frame.h"

#include <endian.h>

enum stream_rule { STREAM_ANY, STREAM_REQUIRED, STREAM_FORBIDDEN };

/* Length and stream of each type (RFC 9113 6.1 to 6.10, RFC 9218 7.1). */
static const struct {
    uint32_t min, max;
    enum stream_rule stream;
} rules[] = {
    [H2_DATA] = {0, H2_FRAME_SIZE, STREAM_REQUIRED},
    [H2_HEADERS] = {0, H2_FRAME_SIZE, STREAM_REQUIRED},
    [H2_PRIORITY] = {5, 5, STREAM_REQUIRED},
    [H2_RST_STREAM] = {4, 4, STREAM_REQUIRED},
    [H2_SETTINGS] = {0, H2_FRAME_SIZE, STREAM_FORBIDDEN},
    [H2_PUSH_PROMISE] = {4, H2_FRAME_SIZE, STREAM_REQUIRED},
    [H2_PING] = {8, 8, STREAM_FORBIDDEN},
    [H2_GOAWAY] = {8, H2_FRAME_SIZE, STREAM_FORBIDDEN},
    [H2_WINDOW_UPDATE] = {4, 4, STREAM_ANY},
    [H2_CONTINUATION] = {0, H2_FRAME_SIZE, STREAM_REQUIRED},
    [H2_PRIORITY_UPDATE] = {4, H2_FRAME_SIZE, STREAM_FORBIDDEN},
};

static const char *const error_names[H2_ERRORS] = {
    "NO_ERROR",          "PROTOCOL_ERROR",      "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",     "FRAME_SIZE_ERROR",    "REFUSED_STREAM", "CANCEL",             "COMPRESSION_ERROR",
    "CONNECT_ERROR",     "ENHANCE_YOUR_CALM",   "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
};

const char *h2_error_name(uint32_t code)
{
    return code < H2_ERRORS ? error_names[code] : "unknown";
}

uint32_t h2_read_u32(const char *at)
{
    uint32_t number;

    memcpy(&number, at, sizeof number);
    return be32toh(number);
}

static char *write_number(char *at, uint32_t number)
{
    number = htobe32(number);
    memcpy(at, &number, sizeof number);
    return at + sizeof number;
}

struct h2_frame h2_frame_parse_head(const char *head)
{
    return (struct h2_frame){
        .length = h2_read_u32(head) >> 8,
        .type = (uint8_t)head[3],
        .flags = (uint8_t)head[4],
        .stream = h2_read_u32(head + 5) & H2_STREAM_MAX,
    };
}

static bool is_known(const struct h2_frame *frame)
{
    return frame->type < sizeof rules / sizeof rules[0] && rules[frame->type].max;
}

enum h2_error h2_frame_check(const struct h2_frame *frame)
{
    if (frame->length > H2_FRAME_SIZE)
        return H2_FRAME_SIZE_ERROR;
    if (!is_known(frame))
        return H2_NO_ERROR;
    if ((rules[frame->type].stream == STREAM_REQUIRED && frame->stream == 0) ||
        (rules[frame->type].stream == STREAM_FORBIDDEN && frame->stream != 0))
        return H2_PROTOCOL_ERROR;
    if (frame->length < rules[frame->type].min || frame->length > rules[frame->type].max)
        return H2_FRAME_SIZE_ERROR;
    if (frame->type == H2_SETTINGS && frame->length % H2_SETTING_SIZE)
        return H2_FRAME_SIZE_ERROR;
    if (frame->type == H2_SETTINGS && (frame->flags & H2_FLAG_ACK) && frame->length)
        return H2_FRAME_SIZE_ERROR;
    return H2_NO_ERROR;
}

enum h2_error h2_frame_unpad(struct h2_frame *frame, uint32_t *out_depends)
{
    struct str payload = frame->payload;
    size_t padding = 0;

    *out_depends = 0;
    if (frame->flags & H2_FLAG_PADDED) {
        if (str_empty(payload))
            return H2_FRAME_SIZE_ERROR;
        padding = (unsigned char)payload.data[0];
        payload = str_skip(payload, 1);
    }
    if (frame->type == H2_HEADERS && (frame->flags & H2_FLAG_PRIORITY)) {
        if (payload.length < 5)
            return H2_FRAME_SIZE_ERROR;
        *out_depends = h2_read_u32(payload.data) & H2_STREAM_MAX;
        payload = str_skip(payload, 5);
    }
    if (padding > payload.length)
        return H2_PROTOCOL_ERROR;
    frame->payload = str_slice(payload, 0, payload.length - padding);
    return H2_NO_ERROR;
}

char *h2_frame_write_head(char *at, size_t length, enum h2_frame_type type, uint8_t flags, uint32_t stream)
{
    write_number(at, (uint32_t)length << 8);
    at[3] = (char)type;
    at[4] = (char)flags;
    return write_number(at + 5, stream);
}

char *h2_frame_write_number(char *at, enum h2_frame_type type, uint32_t stream, uint32_t number)
{
    return write_number(h2_frame_write_head(at, 4, type, 0, stream), number);
}

char *h2_frame_write_ping(char *at, uint8_t flags, const char *opaque)
{
    at = h2_frame_write_head(at, 8, H2_PING, flags, 0);
    memcpy(at, opaque, 8);
    return at + 8;
}

char *h2_frame_write_goaway(char *at, uint32_t last_stream, enum h2_error code)
{
    return write_number(write_number(h2_frame_write_head(at, 8, H2_GOAWAY, 0, 0), last_stream), code);
}

char *h2_setting_write(char *at, enum h2_setting setting, uint32_t value)
{
    at[0] = (char)(setting >> 8);
    at[1] = (char)(setting & 255);
    return write_number(at + 2, value);
}

static enum h2_error apply_setting(struct h2_peer_settings *settings, unsigned setting, uint32_t value)
{
    switch (setting) {
    case H2_SETTINGS_ENABLE_PUSH:
        settings->push = value == 1;
        return value > 1 ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
    case H2_SETTINGS_MAX_CONCURRENT_STREAMS:
        settings->max_streams = value;
        return H2_NO_ERROR;
    case H2_SETTINGS_INITIAL_WINDOW_SIZE:
        if (value > H2_WINDOW_MAX)
            return H2_FLOW_CONTROL_ERROR;
        settings->initial_window = value;
        return H2_NO_ERROR;
    case H2_SETTINGS_MAX_FRAME_SIZE:
        if (value < H2_FRAME_SIZE || value > 0xffffff)
            return H2_PROTOCOL_ERROR;
        settings->max_frame_size = value;
        return H2_NO_ERROR;
    case H2_SETTINGS_ENABLE_CONNECT_PROTOCOL:
    case H2_SETTINGS_NO_RFC7540_PRIORITIES:
        return value > 1 ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
    default:
        return H2_NO_ERROR;
    }
}

enum h2_error h2_settings_apply(struct h2_peer_settings *settings, struct str payload)
{
    while (payload.length >= H2_SETTING_SIZE) {
        unsigned setting = (unsigned)(unsigned char)payload.data[0] << 8 | (unsigned char)payload.data[1];
        enum h2_error error = apply_setting(settings, setting, h2_read_u32(payload.data + 2));

        if (error)
            return error;
        payload = str_skip(payload, H2_SETTING_SIZE);
    }
    return H2_NO_ERROR;
}
