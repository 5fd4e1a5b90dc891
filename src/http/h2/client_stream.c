/*
 * Streams of the client side: opened, read, ended.
 */
#include "http/h2/client_private.h"

static struct list *bucket_of(struct h2_client_session *session, uint32_t id)
{
    return &session->streams[id / 2 % H2_CLIENT_BUCKETS];
}

struct h2_client_stream *h2_client_find(struct h2_client_session *session, uint32_t id)
{
    struct list *bucket = bucket_of(session, id);

    for (struct list *link = bucket->next; link != bucket; link = link->next) {
        struct h2_client_stream *stream = container_of(link, struct h2_client_stream, link);

        if (stream->id == id)
            return stream;
    }
    return NULL;
}

void h2_client_each(struct h2_client_session *session,
                    void (*visit)(struct h2_client_stream *stream, const void *argument), const void *argument)
{
    for (unsigned i = 0; i < H2_CLIENT_BUCKETS; i++) {
        struct list *bucket = &session->streams[i];

        for (struct list *link = bucket->next, *next; link != bucket; link = next) {
            next = link->next;
            visit(container_of(link, struct h2_client_stream, link), argument);
        }
    }
}

void h2_client_ready(struct h2_client_stream *stream)
{
    if (stream->stage == H2_CLIENT_SENT)
        return;
    list_remove(&stream->send_link);
    list_push(&stream->session->ready, &stream->send_link);
    h2_client_wake(stream->session);
}

void h2_client_unready(struct h2_client_stream *stream)
{
    list_remove(&stream->send_link);
}

void h2_client_stream_updated(struct h2_client_stream *stream)
{
    if (list_empty(&stream->updated))
        list_push(&stream->session->updated, &stream->updated);
}

void h2_client_stream_open(struct h2_client_session *session, struct h2_client_stream *stream)
{
    stream->session = session;
    list_init(&stream->link);
    list_init(&stream->send_link);
    list_init(&stream->updated);
    arena_init(&stream->interim, stream->arena->pool, 0);
    h2_receive_window_init(&stream->receive, LIMIT_H2_UPSTREAM_WINDOW);
    stream->window = (int32_t)session->peer.initial_window;
    stream->left = stream->request->content_length;
    stream->content_length = BODY_LENGTH_UNKNOWN;
    session->stream_count++;
    h2_client_ready(stream);
}

void h2_client_stream_wake(struct h2_client_stream *stream)
{
    if (stream->session)
        h2_client_ready(stream);
}

void h2_client_stream_receive(struct h2_client_stream *stream)
{
    if (stream->input_at < stream->input.length || stream->interim_seen || stream->head_seen != stream->head_read ||
        (stream->end != H2_CLIENT_OPEN && !stream->finished))
        h2_client_stream_updated(stream);
}

bool h2_client_stream_is_blocked(const struct h2_client_stream *stream)
{
    return stream->stage == H2_CLIENT_HEAD ||
           (stream->stage == H2_CLIENT_BODY &&
            (stream->part.length || stream->window <= 0 || stream->session->window <= 0));
}

/* Removes a stream that is closed in both directions from the table; nothing more is sent. */
static void stream_detach(struct h2_client_stream *stream)
{
    if (!list_empty(&stream->link))
        list_remove(&stream->link);
    h2_client_unready(stream);
    stream->stage = H2_CLIENT_SENT;
    stream->part = STR("");
}

void h2_client_close(struct h2_client_stream *stream, enum h2_client_end end)
{
    if (stream->end == H2_CLIENT_OPEN)
        stream->end = (uint8_t)end;
    stream_detach(stream);
    h2_client_stream_updated(stream);
}

void h2_client_stream_fail(struct h2_client_stream *stream, enum h2_error code, const char *fault)
{
    h2_client_output_number(stream->session, H2_RST_STREAM, stream->id, code);
    h2_client_charge(stream->session, H2_EVENT_SERVER_RESET);
    stream->fault = fault;
    h2_client_close(stream, H2_CLIENT_MALFORMED);
}

void h2_client_refused(struct h2_client_stream *stream, enum h2_error code)
{
    stream->unprocessed = true;
    stream->code = code;
    h2_client_close(stream, H2_CLIENT_RESET);
}

/* Releases the window for bytes that were read. */
static void release_window(struct h2_client_stream *stream, uint32_t bytes)
{
    uint32_t due = stream->end == H2_CLIENT_OPEN ? h2_receive_window_release(&stream->receive, bytes) : 0;

    if (due)
        h2_client_output_number(stream->session, H2_WINDOW_UPDATE, stream->id, due);
}

static enum h1_reply_step read_interim(struct h2_client_stream *stream)
{
    stream->interim_seen = false;
    stream->status = stream->interim_status;
    stream->headers = stream->interim_headers;
    return REPLY_INTERIM;
}

static enum h1_reply_step read_part(struct h2_client_stream *stream, size_t room, struct str *out_part)
{
    *out_part = str_slice(str_skip(buffer_str(&stream->input), stream->input_at), 0, room);
    if (str_empty(*out_part))
        return REPLY_MORE;
    stream->input_at += out_part->length;
    release_window(stream, (uint32_t)out_part->length);
    return REPLY_PART;
}

static enum h1_reply_step read_end(struct h2_client_stream *stream)
{
    if (stream->end == H2_CLIENT_OPEN || stream->finished)
        return REPLY_MORE;
    stream->finished = true;
    if (stream->end == H2_CLIENT_WHOLE)
        return REPLY_WHOLE;
    if (stream->end == H2_CLIENT_RESET)
        stream->fault = stream->unprocessed ? "the stream was refused" : "the stream was reset";
    return stream->end == H2_CLIENT_LOST ? REPLY_NO_MEMORY : REPLY_BAD;
}

enum h1_reply_step h2_client_stream_read(struct h2_client_stream *stream, size_t room, struct str *out_part)
{
    if (stream->interim_seen)
        return read_interim(stream);
    if (stream->head_seen && !stream->head_read) {
        stream->head_read = true;
        stream->status = stream->final_status;
        stream->headers = stream->final_headers;
        return REPLY_HEAD;
    }
    if (stream->input_at < stream->input.length)
        return read_part(stream, room, out_part);
    if (stream->input.length) {
        buffer_finish(&stream->input);
        stream->input_at = 0;
    }
    return read_end(stream);
}

/* True if the server may still send or expect frames of the stream. */
static bool is_open(const struct h2_client_stream *stream)
{
    return stream->id && (stream->end == H2_CLIENT_OPEN ||
                          (stream->end == H2_CLIENT_WHOLE && stream->stage != H2_CLIENT_SENT));
}

void h2_client_stream_end(struct h2_client_stream *stream)
{
    struct h2_client_session *session = stream->session;

    if (!session)
        return;
    if (is_open(stream))
        h2_client_output_number(session, H2_RST_STREAM, stream->id, H2_CANCEL);
    if (session->receiving == stream)
        session->receiving = NULL;
    stream_detach(stream);
    list_remove(&stream->updated);
    buffer_finish(&stream->input);
    arena_reset(&stream->interim);
    session->stream_count--;
    stream->session = NULL;
}
