/*
 * Streams are found by identifier in a small hash table; their memory is their exchange's arena.
 */
#include "http/h2/stream.h"

#include "http/h2/deadline.h"
#include "http/h2/output.h"

static struct h2_stream **bucket_of(struct h2_session *h2, uint32_t id)
{
    return &h2->streams[id / 2 % H2_BUCKETS]; /* a client's identifiers are odd */
}

struct h2_stream *h2_stream_create(struct h2_session *h2, uint32_t id)
{
    bool full = h2->budget.used >= h2->budget.max;
    struct exchange *x = full ? NULL : exchange_create(h2->pool, sizeof(struct h2_stream));
    struct h2_stream **bucket = bucket_of(h2, id);
    struct h2_stream *stream;

    if (!x)
        return NULL;
    stream = container_of(x, struct h2_stream, x);
    x->session = h2;
    x->settings = h2->settings;
    x->started_us = h2->clock->monotonic_us;
    x->request.version = HTTP_2;
    x->request.stream_id = id;
    stream->session = h2;
    arena_set_budget(&x->arena, &h2->budget);
    stream->id = id;
    stream->window = (int32_t)h2->peer.initial_window;
    h2_schedule_entry_init(&stream->schedule_entry, (struct h2_priority){.urgency = H2_URGENCY_DEFAULT});
    list_init(&stream->blocked);
    h2_receive_window_init(&stream->receive, h2->settings->http2.body_preread_size);
    stream->next = *bucket;
    *bucket = stream;
    h2->stream_count++;
    h2->counters->h2_streams++;
    h2->counters->h2_streams_opened++;
    return stream;
}

struct h2_stream *h2_stream_find(const struct h2_session *h2, uint32_t id)
{
    struct h2_stream *stream = h2->streams[id / 2 % H2_BUCKETS];

    while (stream && stream->id != id)
        stream = stream->next;
    return stream && !stream->cancelled_in_frame ? stream : NULL;
}

bool h2_stream_in_frame(const struct h2_stream *stream)
{
    return stream->interims_at < stream->interims.length || stream->pending.length || stream->frame_left;
}

bool h2_stream_response_produced(const struct h2_stream *stream)
{
    bool last = stream->stage == H2_STAGE_END || (stream->stage == H2_STAGE_HEAD && stream->bodiless);

    return last && !stream->failed && !h2_stream_in_frame(stream);
}

unsigned h2_stream_open_count(const struct h2_session *h2)
{
    const struct h2_stream *stream = h2->sending; /* only this one may be closed, but not ended */
    bool closed = stream && (stream->cancelled_in_frame || (stream->body_whole && h2_stream_response_produced(stream)));

    return h2->stream_count - (closed ? 1 : 0);
}

void h2_stream_each(struct h2_session *h2, void (*visit)(struct h2_stream *stream, const void *argument),
                    const void *argument)
{
    for (unsigned i = 0; i < H2_BUCKETS; i++) {
        struct h2_stream *next;

        for (struct h2_stream *stream = h2->streams[i]; stream; stream = next) {
            next = stream->next;
            visit(stream, argument);
        }
    }
}

void h2_stream_ready(struct h2_stream *stream)
{
    struct h2_session *h2 = stream->session;

    if (!list_empty(&stream->blocked))
        h2_deadline_send(stream, false);
    list_remove(&stream->blocked);
    h2_schedule_add(&h2->schedule, &stream->schedule_entry);
    h2_session_wake(h2);
}

void h2_stream_unready(struct h2_stream *stream)
{
    h2_schedule_remove(&stream->session->schedule, &stream->schedule_entry);
}

void h2_stream_unlink(struct h2_stream *stream)
{
    struct h2_session *h2 = stream->session;
    struct h2_stream **link = bucket_of(h2, stream->id);

    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    h2->stream_count--;
    h2->counters->h2_streams--;
    h2_stream_unready(stream);
    list_remove(&stream->blocked);
    if (h2->receiving == stream)
        h2->receiving = NULL;
    if (h2->sending == stream)
        h2->sending = NULL;
}

bool h2_stream_recent(const struct h2_session *h2, uint32_t id)
{
    for (unsigned i = 0; i < H2_RECENT; i++) {
        if (h2->recent[i] == id)
            return true;
    }
    return false;
}

void h2_stream_clear_recent(struct h2_session *h2, uint32_t id)
{
    for (unsigned i = 0; i < H2_RECENT; i++) {
        if (h2->recent[i] == id)
            h2->recent[i] = 0;
    }
}

void h2_stream_refuse(struct h2_session *h2, uint32_t id, enum h2_error error)
{
    protocol_count_error(h2->counters->h2_resets_sent, error);
    h2->recent[h2->recent_at++ % H2_RECENT] = id;
    h2_output_number(h2, H2_RST_STREAM, id, error);
}
