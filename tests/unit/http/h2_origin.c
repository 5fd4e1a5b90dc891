#include "h2_origin.h"

#include "http/h2/hpack_encode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void log_text(struct h2_origin *origin, const char *format, ...) PRINTF_LIKE(2, 3);

static void log_text(struct h2_origin *origin, const char *format, ...)
{
    struct frame_log *log = &origin->log;
    va_list args;
    int count;

    if (origin->quiet)
        return;
    va_start(args, format);
    count = vsnprintf(log->text + log->length, sizeof log->text - log->length, format, args);
    va_end(args);
    log->length += (size_t)count;
    if (log->length >= sizeof log->text)
        abort();
}

const char *h2_origin_log(struct h2_origin *origin)
{
    origin->log.text[origin->log.length] = '\0';
    origin->log.length = 0;
    return origin->log.text;
}

static void woken(void *owner)
{
    (void)owner;
}

static int body_next(void *owner, size_t room, struct chunk *out)
{
    struct h2_client_stream *stream = owner;
    struct h2_origin *origin = container_of(stream->arena, struct h2_origin, arena);
    unsigned i = (unsigned)(stream - origin->streams);
    struct str part = str_slice(origin->bodies[i], 0, room);

    if (str_empty(part))
        return origin->after[i];
    origin->bodies[i] = str_skip(origin->bodies[i], part.length);
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = part};
    return 1;
}

void h2_origin_open(struct h2_origin *origin)
{
    memset(origin, 0, sizeof *origin);
    origin->clock.monotonic_ms = 1000;
    arena_init(&origin->arena, NULL, 0);
    h2_client_session_init(&origin->session, woken, origin, &origin->clock);
}

void h2_origin_request(struct h2_origin *origin, unsigned i, const char *method, uint64_t length, const char *body,
                       int after)
{
    origin->requests[i] = (struct h2_client_request){
        .pseudo = {str_from(method), STR("http"), STR("a.test"), STR("/x")},
        .headers = &origin->fields,
        .content_length = length,
        .send_content_length = length && length != BODY_LENGTH_UNKNOWN,
        .head = strcmp(method, "HEAD") == 0,
    };
    origin->bodies[i] = str_from(body);
    origin->after[i] = after;
    origin->streams[i] = (struct h2_client_stream){
        .request = &origin->requests[i],
        .next = body_next,
        .owner = &origin->streams[i],
        .arena = &origin->arena,
        .trailers = &origin->trailers[i],
        .head_max = 200,
    };
    h2_client_stream_open(&origin->session, &origin->streams[i]);
}

void h2_origin_close(struct h2_origin *origin)
{
    for (unsigned i = 0; i < H2_ORIGIN_STREAMS; i++)
        h2_client_stream_end(&origin->streams[i]);
    h2_client_session_finish(&origin->session);
    buffer_finish(&origin->sent);
    arena_reset(&origin->arena);
}

static const char *const types[] = {"DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH", "PING", "GOAWAY",
                                    "WINDOW_UPDATE", "CONTINUATION"};

static void log_frame(struct h2_origin *origin, const struct h2_frame *frame)
{
    log_text(origin, "%s %u", types[frame->type], frame->stream);
    if (frame->type == H2_DATA)
        log_text(origin, " %u", frame->length);
    if (frame->type == H2_RST_STREAM || frame->type == H2_WINDOW_UPDATE)
        log_text(origin, " %u", h2_read_u32(frame->payload.data));
    if (frame->type == H2_GOAWAY)
        log_text(origin, " %s", h2_error_name(h2_read_u32(frame->payload.data + 4)));
    if ((frame->type == H2_SETTINGS || frame->type == H2_PING) && (frame->flags & H2_FLAG_ACK))
        log_text(origin, " ack");
    if ((frame->type == H2_DATA || frame->type == H2_HEADERS) && (frame->flags & H2_FLAG_END_STREAM))
        log_text(origin, " end");
    log_text(origin, "\n");
}

/* Every frame of the client is well-formed; the first one follows the preface. */
static void log_sent(struct h2_origin *origin)
{
    struct str rest = buffer_str(&origin->sent);

    if (!origin->preface_seen && rest.length < 24)
        return;
    if (!origin->preface_seen) {
        if (!str_starts(rest, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
            abort();
        rest = str_skip(rest, 24);
        origin->preface_seen = true;
    }
    while (rest.length >= H2_FRAME_HEAD) {
        struct h2_frame frame = h2_frame_parse_head(rest.data);

        if (h2_frame_check(&frame) || frame.type > H2_CONTINUATION)
            abort();
        if (rest.length < H2_FRAME_HEAD + frame.length)
            break;
        frame.payload = str_of(rest.data + H2_FRAME_HEAD, frame.length);
        log_frame(origin, &frame);
        rest = str_skip(rest, H2_FRAME_HEAD + frame.length);
    }
    buffer_consume(&origin->sent, origin->sent.length - rest.length);
}

static void receive_all(struct h2_origin *origin)
{
    size_t room = origin->room ? origin->room : 65536;
    struct str parts[2];

    while (h2_client_session_produce(&origin->session, room, parts) == 1) {
        if (parts[0].length + parts[1].length > room || buffer_append(&origin->sent, parts[0]) < 0 ||
            buffer_append(&origin->sent, parts[1]) < 0)
            abort();
        log_sent(origin);
    }
}

static void log_item(struct h2_origin *origin, struct h2_client_stream *stream, enum h1_reply_step step,
                     struct str part)
{
    const struct headers *trailers = stream->trailers;

    log_text(origin, "%u: ", stream->id);
    switch (step) {
    case REPLY_INTERIM:
    case REPLY_HEAD:
        log_text(origin, "%d", stream->status);
        for (unsigned i = 0; i < stream->headers.count; i++)
            log_text(origin, " " STR_FMT "=" STR_FMT, STR_ARG(stream->headers.items[i].name),
                     STR_ARG(stream->headers.items[i].value));
        log_text(origin, stream->bodiless && step == REPLY_HEAD ? " no body\n" : "\n");
        break;
    case REPLY_PART:
        log_text(origin, "\"" STR_FMT "\"\n", STR_ARG(str_slice(part, 0, 40)));
        break;
    case REPLY_WHOLE:
        log_text(origin, "whole");
        for (unsigned i = 0; i < trailers->count; i++)
            log_text(origin, " " STR_FMT "=" STR_FMT, STR_ARG(trailers->items[i].name),
                     STR_ARG(trailers->items[i].value));
        log_text(origin, "\n");
        break;
    default:
        log_text(origin, "%s\n", step == REPLY_NO_MEMORY ? "no memory" : stream->fault);
    }
}

static void read_updates(struct h2_origin *origin)
{
    struct h2_client_stream *stream;
    enum h1_reply_step step;
    struct str part;

    while ((stream = h2_client_session_next_updated(&origin->session)) != NULL) {
        while ((step = h2_client_stream_read(stream, 1000, &part)) != REPLY_MORE)
            log_item(origin, stream, step, part);
        if (stream->body_error)
            log_text(origin, "%u: body %d\n", stream->id, stream->body_error);
        if (stream->body_error)
            h2_client_stream_end(stream);
    }
}

void h2_origin_turn(struct h2_origin *origin)
{
    receive_all(origin);
    read_updates(origin);
    receive_all(origin);
}

void h2_origin_feed(struct h2_origin *origin, struct str bytes)
{
    bool over = origin->session.error;
    int error = h2_client_session_consume(&origin->session, bytes);

    h2_origin_turn(origin);
    if (error && !over)
        log_text(origin, "error: %s\n", origin->session.fault ? origin->session.fault : strerror(-error));
}

static char *write_settings(char *at, char *rest)
{
    char *payload = at + H2_FRAME_HEAD, *end = payload, *word;

    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        char *value = strchr(word, '=');

        end = h2_setting_write(end, (enum h2_setting)atoi(word), (uint32_t)strtoul(value + 1, NULL, 10));
    }
    h2_frame_write_head(at, (size_t)(end - payload), H2_SETTINGS, 0, 0);
    return end;
}

static char *write_headers(char *at, char *rest)
{
    uint32_t stream = (uint32_t)strtoul(strtok_r(rest, " ", &rest), NULL, 10);
    char *payload = at + H2_FRAME_HEAD, *end = payload, *word;
    uint8_t flags = H2_FLAG_END_HEADERS;

    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        char *value = strchr(word + 1, '=');

        if (strcmp(word, "end") == 0)
            flags |= H2_FLAG_END_STREAM;
        else if (strcmp(word, "open") == 0)
            flags &= (uint8_t)~H2_FLAG_END_HEADERS;
        else if (word[0] == '^') { /* not converted to lower case */
            *end++ = 0;
            *end++ = (char)(value - word - 1);
            memcpy(end, word + 1, (size_t)(value - word - 1));
            end += value - word - 1;
            *end++ = (char)strlen(value + 1);
            memcpy(end, value + 1, strlen(value + 1));
            end += strlen(value + 1);
        } else
            end = hpack_encode_field(end, str_of(word, (size_t)(value - word)), str_from(value + 1));
    }
    h2_frame_write_head(at, (size_t)(end - payload), H2_HEADERS, flags, stream);
    return end;
}

static char *write_data(char *at, char *rest)
{
    uint32_t stream = (uint32_t)strtoul(strtok_r(rest, " ", &rest), NULL, 10);
    bool last = strncmp(rest, "end", 3) == 0;
    char *text = last ? rest + 3 + (rest[3] == ' ') : rest;

    h2_frame_write_head(at, strlen(text), H2_DATA, last ? H2_FLAG_END_STREAM : 0, stream);
    memcpy(at + H2_FRAME_HEAD, text, strlen(text));
    return at + H2_FRAME_HEAD + strlen(text);
}

static char *write_raw(char *at, const char *hex)
{
    unsigned byte;

    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        *at++ = (char)byte;
    return at;
}

static char *write_line(char *at, char *line)
{
    char *rest = line, *command = strtok_r(line, " ", &rest);
    unsigned long a = strtoul(rest, NULL, 10), b = strchr(rest, ' ') ? strtoul(strchr(rest, ' '), NULL, 10) : 0;

    if (strcmp(command, "settings") == 0)
        return write_settings(at, rest);
    if (strcmp(command, "ack") == 0)
        return h2_frame_write_head(at, 0, H2_SETTINGS, H2_FLAG_ACK, 0);
    if (strcmp(command, "headers") == 0)
        return write_headers(at, rest);
    if (strcmp(command, "data") == 0)
        return write_data(at, rest);
    if (strcmp(command, "rst") == 0)
        return h2_frame_write_number(at, H2_RST_STREAM, (uint32_t)a, (uint32_t)b);
    if (strcmp(command, "window") == 0)
        return h2_frame_write_number(at, H2_WINDOW_UPDATE, (uint32_t)a, (uint32_t)b);
    if (strcmp(command, "goaway") == 0)
        return h2_frame_write_goaway(at, (uint32_t)a, (enum h2_error)b);
    if (strcmp(command, "ping") == 0)
        return h2_frame_write_ping(at, 0, "12345678");
    if (strcmp(command, "raw") == 0)
        return write_raw(at, rest);
    abort();
}

void h2_origin_script(struct h2_origin *origin, const char *script)
{
    static char bytes[65536];
    char *copy = strdup(script), *rest = copy, *line, *at = bytes;

    while ((line = strtok_r(rest, "\n", &rest)) != NULL)
        at = write_line(at, line);
    h2_origin_feed(origin, str_of(bytes, (size_t)(at - bytes)));
    free(copy);
}
