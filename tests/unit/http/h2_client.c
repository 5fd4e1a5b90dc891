/* A failed check aborts the process, so that fuzz targets can use this client, too. */
#include "h2_client.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#define HOLDS(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                   \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

void h2_client_open(struct h2_client *client, const struct table_row *rows)
{
    memset(client, 0, sizeof(*client));
    client->preface_left = sizeof(preface) - 1;
    client->initial_max = H2_WINDOW_INITIAL;
    client->frame_max = H2_FRAME_SIZE;
    HOLDS(nghttp2_hd_deflate_new(&client->deflater, 4096) == 0);
    HOLDS(nghttp2_hd_inflate_new(&client->inflater) == 0);
    table_server_open(&client->server, &protocol_http2, rows);
    HOLDS(buffer_append(&client->sent, str_of(preface, sizeof(preface) - 1)) == 0);
    h2_client_frame(client, H2_SETTINGS, 0, 0, STR(""));
}

void h2_client_close(struct h2_client *client)
{
    table_server_close(&client->server);
    nghttp2_hd_deflate_del(client->deflater);
    nghttp2_hd_inflate_del(client->inflater);
    buffer_finish(&client->sent);
    buffer_finish(&client->scanned);
    buffer_finish(&client->input);
    buffer_finish(&client->block);
    buffer_finish(&client->log);
}

void h2_client_frame(struct h2_client *client, unsigned type, uint8_t flags, uint32_t stream, struct str payload)
{
    char head[H2_FRAME_HEAD];

    h2_frame_write_head(head, payload.length, (enum h2_frame_type)type, flags, stream);
    HOLDS(buffer_append(&client->sent, str_of(head, sizeof(head))) == 0);
    HOLDS(buffer_append(&client->sent, payload) == 0);
}

void h2_client_number(struct h2_client *client, enum h2_frame_type type, uint32_t stream, uint32_t number)
{
    char frame[H2_NUMBER_FRAME];

    h2_frame_write_number(frame, type, stream, number);
    HOLDS(buffer_append(&client->sent, str_of(frame, sizeof(frame))) == 0);
}

void h2_client_setting(struct h2_client *client, enum h2_setting setting, uint32_t value)
{
    char payload[H2_SETTING_SIZE];

    h2_setting_write(payload, setting, value);
    h2_client_frame(client, H2_SETTINGS, 0, 0, str_of(payload, sizeof(payload)));
}

struct str h2_client_encode(struct h2_client *client, const char *lines)
{
    static uint8_t block[200000];
    nghttp2_nv fields[200];
    struct str rest = str_from(lines);
    size_t count = 0;
    ssize_t length;

    while (rest.length) {
        struct str value = str_cut(&rest, '\n');
        struct str name = str_cut(&value, '=');

        HOLDS(count < 200);
        fields[count++] = (nghttp2_nv){(uint8_t *)(uintptr_t)name.data, (uint8_t *)(uintptr_t)value.data, name.length,
                                       value.length, NGHTTP2_NV_FLAG_NONE};
    }
    length = nghttp2_hd_deflate_hd(client->deflater, block, sizeof(block), fields, count);
    HOLDS(length >= 0);
    return str_of((char *)block, (size_t)length);
}

void h2_client_headers(struct h2_client *client, uint32_t stream, uint8_t flags, const char *lines)
{
    h2_client_frame(client, H2_HEADERS, flags | H2_FLAG_END_HEADERS, stream, h2_client_encode(client, lines));
}

void h2_client_request(struct h2_client *client, uint32_t stream, const char *method, const char *path, bool end)
{
    char lines[300];

    snprintf(lines, sizeof(lines), ":method=%s\n:scheme=https\n:path=%s\n:authority=a\n", method, path);
    h2_client_headers(client, stream, end ? H2_FLAG_END_STREAM : 0, lines);
}

void h2_client_data(struct h2_client *client, uint32_t stream, struct str bytes, bool end)
{
    do {
        struct str part = str_slice(bytes, 0, H2_FRAME_SIZE);

        bytes = str_skip(bytes, part.length);
        h2_client_frame(client, H2_DATA, end && bytes.length == 0 ? H2_FLAG_END_STREAM : 0, stream, part);
    } while (bytes.length);
}

/* The state of a stream; NULL for identifiers that are not checked. */
static struct h2_client_stream *stream_state(struct h2_client *client, uint32_t id)
{
    return id / 2 < H2_CLIENT_STREAMS ? &client->streams[id / 2] : NULL;
}

static void settings_sent(struct h2_client *client, struct str payload)
{
    for (; payload.length >= H2_SETTING_SIZE; payload = str_skip(payload, H2_SETTING_SIZE)) {
        uint32_t value = h2_read_u32(payload.data + 2);

        if (payload.data[0] == 0 && payload.data[1] == H2_SETTINGS_INITIAL_WINDOW_SIZE &&
            value > client->initial_max)
            client->initial_max = value;
        if (payload.data[0] == 0 && payload.data[1] == H2_SETTINGS_MAX_FRAME_SIZE && value > client->frame_max)
            client->frame_max = value;
    }
}

static void frame_sent(struct h2_client *client, const struct h2_frame *frame)
{
    struct h2_client_stream *stream = stream_state(client, frame->stream);
    uint32_t increment;

    if (frame->type == H2_SETTINGS)
        settings_sent(client, frame->payload);
    if (frame->type != H2_WINDOW_UPDATE || frame->length != 4)
        return;
    increment = h2_read_u32(frame->payload.data) & H2_WINDOW_MAX;
    if (frame->stream == 0)
        client->increments += increment;
    else if (stream)
        stream->increments += increment;
}

/* Removes the complete frames from the buffer and passes each to `visit`. */
static void consume_frames(struct h2_client *client, struct buffer *buffer,
                           void (*visit)(struct h2_client *client, const struct h2_frame *frame))
{
    while (buffer->length >= H2_FRAME_HEAD) {
        struct h2_frame frame = h2_frame_parse_head(buffer->data);

        if (buffer->length < H2_FRAME_HEAD + frame.length)
            return;
        frame.payload = str_of(buffer->data + H2_FRAME_HEAD, frame.length);
        visit(client, &frame);
        buffer_consume(buffer, H2_FRAME_HEAD + frame.length);
    }
}

/* Records the windows and frame sizes that the client has announced. */
static void scan_sent(struct h2_client *client, struct str bytes)
{
    size_t skipped = bytes.length < client->preface_left ? bytes.length : client->preface_left;

    client->preface_left -= skipped;
    HOLDS(buffer_append(&client->scanned, str_skip(bytes, skipped)) == 0);
    consume_frames(client, &client->scanned, frame_sent);
}

static void log_text(struct h2_client *client, const char *format, ...) PRINTF_LIKE(2, 3);
static void log_text(struct h2_client *client, const char *format, ...)
{
    char text[2000];
    va_list arguments;

    if (client->quiet)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    HOLDS(buffer_append(&client->log, str_from(text)) == 0);
}

/* Decodes a header block. Returns the status, or 0. */
static int decode_block(struct h2_client *client, struct str block)
{
    int flags = 0;
    int status = 0;

    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv field;
        ssize_t taken = nghttp2_hd_inflate_hd2(client->inflater, &field, &flags, (const uint8_t *)block.data,
                                               block.length, 1);

        HOLDS(taken >= 0);
        block = str_skip(block, (size_t)taken);
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
            continue;
        if (field.namelen == 7 && memcmp(field.name, ":status", 7) == 0)
            status = atoi((char *)field.value);
        if (field.namelen != 4 || memcmp(field.name, "date", 4) != 0)
            log_text(client, " %.*s=%.*s", (int)field.namelen, (char *)field.name, (int)field.valuelen,
                     (char *)field.value);
    }
    nghttp2_hd_inflate_end_headers(client->inflater);
    return status;
}

static void block_received(struct h2_client *client, uint32_t id)
{
    struct h2_client_stream *stream = stream_state(client, id);
    int status;

    log_text(client, "HEADERS %u", id);
    status = decode_block(client, buffer_str(&client->block));
    log_text(client, "%s\n", client->block_ends ? " end" : "");
    client->block.length = 0;
    client->open_block = 0;
    if (!stream)
        return;
    HOLDS(!stream->ended);
    HOLDS(stream->headed == (status == 0));           /* a second head has no status: trailers */
    HOLDS(status != 0 || client->block_ends);         /* trailers end the stream */
    HOLDS(status == 0 || status >= 200 || !client->block_ends);
    stream->headed |= status >= 200;
    stream->ended = client->block_ends;
}

static void fragment_received(struct h2_client *client, const struct h2_frame *frame)
{
    HOLDS(frame->stream % 2 == 1);
    HOLDS((frame->type == H2_CONTINUATION) == (client->open_block != 0));
    if (frame->type == H2_HEADERS)
        client->block_ends = frame->flags & H2_FLAG_END_STREAM;
    client->open_block = frame->stream;
    HOLDS(buffer_append(&client->block, frame->payload) == 0);
    if (frame->flags & H2_FLAG_END_HEADERS)
        block_received(client, frame->stream);
}

static void data_received(struct h2_client *client, const struct h2_frame *frame)
{
    struct h2_client_stream *stream = stream_state(client, frame->stream);
    bool end = frame->flags & H2_FLAG_END_STREAM;

    client->received += frame->length;
    HOLDS(client->received <= H2_WINDOW_INITIAL + client->increments);
    HOLDS(frame->length || end);
    HOLDS(frame->stream % 2 == 1);
    log_text(client, "DATA %u %u %.*s%s\n", frame->stream, frame->length, frame->length > 40 ? 0 : (int)frame->length,
             frame->payload.data, end ? " end" : "");
    if (!stream)
        return;
    stream->received += frame->length;
    HOLDS(stream->received <= client->initial_max + stream->increments);
    HOLDS(stream->headed && !stream->ended);
    stream->ended = end;
}

static void reset_received(struct h2_client *client, const struct h2_frame *frame)
{
    struct h2_client_stream *stream = stream_state(client, frame->stream);

    log_text(client, "RST_STREAM %u %s\n", frame->stream, h2_error_name(h2_read_u32(frame->payload.data)));
    if (stream)
        stream->ended = true;
}

static void control_received(struct h2_client *client, const struct h2_frame *frame)
{
    const char *at = frame->payload.data;
    const char *ack = frame->flags & H2_FLAG_ACK ? " ack" : "";

    switch (frame->type) {
    case H2_SETTINGS:
        log_text(client, "SETTINGS%s\n", ack);
        break;
    case H2_PING:
        log_text(client, "PING %.8s%s\n", at, ack);
        break;
    case H2_GOAWAY:
        client->goaway = h2_read_u32(at + 4);
        log_text(client, "GOAWAY %u %s\n", h2_read_u32(at), h2_error_name(h2_read_u32(at + 4)));
        break;
    case H2_WINDOW_UPDATE:
        HOLDS(h2_read_u32(at) > 0 && h2_read_u32(at) <= H2_WINDOW_MAX);
        log_text(client, "WINDOW_UPDATE %u %u\n", frame->stream, h2_read_u32(at));
        break;
    default:
        HOLDS(!"a frame type that a server does not send");
    }
}

static void frame_received(struct h2_client *client, const struct h2_frame *frame)
{
    HOLDS(h2_frame_check(frame) == H2_NO_ERROR);
    HOLDS(frame->length <= client->frame_max);
    HOLDS(!client->open_block || (frame->type == H2_CONTINUATION && frame->stream == client->open_block));
    switch (frame->type) {
    case H2_HEADERS:
    case H2_CONTINUATION:
        fragment_received(client, frame);
        break;
    case H2_DATA:
        data_received(client, frame);
        break;
    case H2_RST_STREAM:
        reset_received(client, frame);
        break;
    default:
        control_received(client, frame);
    }
}

void h2_client_read(struct h2_client *client)
{
    HOLDS(buffer_append(&client->input, table_server_take(&client->server)) == 0);
    consume_frames(client, &client->input, frame_received);
}

void h2_client_feed(struct h2_client *client, struct str bytes)
{
    size_t piece = client->piece ? client->piece : bytes.length;

    while (bytes.length) {
        struct str part = str_slice(bytes, 0, piece);

        bytes = str_skip(bytes, part.length);
        scan_sent(client, part);
        table_server_feed(&client->server, part, 0);
        h2_client_read(client);
    }
}

void h2_client_flush(struct h2_client *client)
{
    struct buffer sent = client->sent;

    client->sent = (struct buffer){0};
    h2_client_feed(client, buffer_str(&sent));
    buffer_finish(&sent);
    table_server_pump(&client->server);
    h2_client_read(client);
}

const char *h2_client_log(struct h2_client *client)
{
    static char text[65536];

    h2_client_flush(client);
    HOLDS(client->log.length < sizeof(text));
    memcpy(text, client->log.length ? client->log.data : "", client->log.length);
    text[client->log.length] = '\0';
    client->log.length = 0;
    return text;
}

void h2_client_check_end(const struct h2_client *client)
{
    HOLDS(client->input.length == 0);
    HOLDS(client->open_block == 0);
}
