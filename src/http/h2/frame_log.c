/*
 * Describes frames as text. Header fields are not described: they may hold credentials.
 */
#include "http/h2/frame_log.h"

#include <stdio.h>

/* A text that is truncated at its end. */
struct description {
    char *text;
    size_t size, length;
};

PRINTF_LIKE(2, 3)
static void description_add(struct description *to, const char *format, ...)
{
    size_t room = to->size - to->length;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(to->text + to->length, room, format, args);
    va_end(args);
    if (length > 0)
        to->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void add_type(struct description *to, uint8_t type)
{
    static const char *const names[] = {
        [H2_DATA] = "DATA",         [H2_HEADERS] = "HEADERS",           [H2_PRIORITY] = "PRIORITY",
        [H2_RST_STREAM] = "RST_STREAM", [H2_SETTINGS] = "SETTINGS",     [H2_PUSH_PROMISE] = "PUSH_PROMISE",
        [H2_PING] = "PING",         [H2_GOAWAY] = "GOAWAY",             [H2_WINDOW_UPDATE] = "WINDOW_UPDATE",
        [H2_CONTINUATION] = "CONTINUATION", [H2_PRIORITY_UPDATE] = "PRIORITY_UPDATE",
    };

    if (type < sizeof names / sizeof names[0] && names[type])
        description_add(to, "%s", names[type]);
    else
        description_add(to, "frame of unknown type 0x%02x", type);
}

static void add_flags(struct description *to, const struct h2_frame *frame)
{
    bool acks = frame->type == H2_SETTINGS || frame->type == H2_PING;
    bool ends = frame->type == H2_DATA || frame->type == H2_HEADERS;
    bool heads = frame->type == H2_HEADERS || frame->type == H2_CONTINUATION;
    const struct {
        uint8_t flag;
        bool applies;
        const char *name;
    } flags[] = {
        {H2_FLAG_ACK, acks, "ACK"},
        {H2_FLAG_END_STREAM, ends, "END_STREAM"},
        {H2_FLAG_END_HEADERS, heads, "END_HEADERS"},
        {H2_FLAG_PADDED, ends, "PADDED"},
        {H2_FLAG_PRIORITY, frame->type == H2_HEADERS, "PRIORITY"},
    };
    const char *before = ",";

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (!flags[i].applies || !(frame->flags & flags[i].flag))
            continue;
        description_add(to, "%s %s", before, flags[i].name);
        before = "";
    }
}

static void add_settings(struct description *to, struct str payload)
{
    static const char *const names[] = {
        [H2_SETTINGS_HEADER_TABLE_SIZE] = "HEADER_TABLE_SIZE",
        [H2_SETTINGS_ENABLE_PUSH] = "ENABLE_PUSH",
        [H2_SETTINGS_MAX_CONCURRENT_STREAMS] = "MAX_CONCURRENT_STREAMS",
        [H2_SETTINGS_INITIAL_WINDOW_SIZE] = "INITIAL_WINDOW_SIZE",
        [H2_SETTINGS_MAX_FRAME_SIZE] = "MAX_FRAME_SIZE",
        [H2_SETTINGS_MAX_HEADER_LIST_SIZE] = "MAX_HEADER_LIST_SIZE",
        [H2_SETTINGS_ENABLE_CONNECT_PROTOCOL] = "ENABLE_CONNECT_PROTOCOL",
        [H2_SETTINGS_NO_RFC7540_PRIORITIES] = "NO_RFC7540_PRIORITIES",
    };

    for (; payload.length >= H2_SETTING_SIZE; payload = str_skip(payload, H2_SETTING_SIZE)) {
        unsigned id = (unsigned char)payload.data[0] << 8 | (unsigned char)payload.data[1];

        if (id < sizeof names / sizeof names[0] && names[id])
            description_add(to, ", %s=%u", names[id], h2_read_u32(payload.data + 2));
        else
            description_add(to, ", 0x%04x=%u", id, h2_read_u32(payload.data + 2));
    }
}

static void add_payload(struct description *to, const struct h2_frame *frame)
{
    struct str payload = frame->payload;

    if (frame->type == H2_SETTINGS)
        add_settings(to, payload);
    else if (frame->type == H2_RST_STREAM && payload.length >= 4)
        description_add(to, ", %s (%u)", h2_error_name(h2_read_u32(payload.data)), h2_read_u32(payload.data));
    else if (frame->type == H2_WINDOW_UPDATE && payload.length >= 4)
        description_add(to, ", increment %u", h2_read_u32(payload.data) & H2_WINDOW_MAX);
    else if (frame->type == H2_GOAWAY && payload.length >= 8)
        description_add(to, ", last stream %u, %s (%u)", h2_read_u32(payload.data) & H2_STREAM_MAX,
                        h2_error_name(h2_read_u32(payload.data + 4)), h2_read_u32(payload.data + 4));
    else if (frame->type == H2_PING && payload.length >= 8)
        description_add(to, ", 0x%08x%08x", h2_read_u32(payload.data), h2_read_u32(payload.data + 4));
    else if (frame->type == H2_PRIORITY_UPDATE && payload.length >= 4)
        description_add(to, ", of stream %u: \"" STR_FMT "\"", h2_read_u32(payload.data) & H2_STREAM_MAX,
                        STR_ARG(str_slice(payload, 4, payload.length)));
}

size_t h2_frame_describe(const struct h2_frame *frame, char *text, size_t size)
{
    struct description description = {.text = text, .size = size};

    add_type(&description, frame->type);
    description_add(&description, ", stream %u, %u bytes", frame->stream, frame->length);
    add_flags(&description, frame);
    add_payload(&description, frame);
    return description.length;
}

static void log_frame(const struct h2_session *h2, const char *direction, const struct h2_frame *frame)
{
    char text[300];
    int length = snprintf(text, sizeof text, "%s ", direction);

    length += (int)h2_frame_describe(frame, text + length, sizeof text - (size_t)length);
    h2->events->trace(h2->owner, str_of(text, (size_t)length));
}

void h2_frame_log_received(const struct h2_session *h2, const struct h2_frame *frame)
{
    log_frame(h2, "received", frame);
}

void h2_frame_log_sent(const struct h2_session *h2, struct str frames)
{
    while (frames.length >= H2_FRAME_HEAD) {
        struct h2_frame frame = h2_frame_parse_head(frames.data);

        frame.payload = str_slice(frames, H2_FRAME_HEAD, H2_FRAME_HEAD + (size_t)frame.length);
        log_frame(h2, "sent", &frame);
        frames = str_skip(frames, H2_FRAME_HEAD + (size_t)frame.length);
    }
}
