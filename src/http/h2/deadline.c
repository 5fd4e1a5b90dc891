/*
 * session->deadline_ms is at most the earliest deadline of all waits: a wait lowers it when it begins, and only
 * h2_timeout_check, which visits all streams, raises it.
 */
#include "http/h2/deadline.h"

#include "base/limits.h"
#include "http/h2/stream.h"

void h2_deadline_lower(struct h2_session *h2, uint64_t deadline_ms)
{
    if (deadline_ms < h2->deadline_ms)
        h2->deadline_ms = deadline_ms;
}

struct h2_wait_limits h2_deadline_body_limits(const struct h2_stream *stream)
{
    const struct session_settings *settings = stream->x.settings;

    return (struct h2_wait_limits){settings->http2.body_timeout_ms, settings->http2.min_rate};
}

/* The rate is measured only if the stream's own window is used up: all streams share the connection's window. */
struct h2_wait_limits h2_deadline_send_limits(const struct h2_stream *stream)
{
    const struct session_settings *settings = stream->x.settings;

    return (struct h2_wait_limits){settings->http2.send_timeout_ms, stream->window <= 0 ? settings->http2.min_rate : 0};
}

static void set_wait(struct h2_session *h2, struct h2_wait *wait, bool waits, struct h2_wait_limits limits)
{
    if (waits)
        h2_wait_begin(wait, h2->clock->monotonic_ms);
    else
        h2_wait_end(wait, h2->clock->monotonic_ms);
    h2_deadline_lower(h2, h2_wait_deadline(wait, limits));
}

void h2_deadline_body(struct h2_stream *stream, bool waits)
{
    set_wait(stream->session, &stream->body_wait, waits, h2_deadline_body_limits(stream));
}

void h2_deadline_send(struct h2_stream *stream, bool waits)
{
    set_wait(stream->session, &stream->send_wait, waits, h2_deadline_send_limits(stream));
}

uint64_t h2_deadline_of_head(const struct h2_session *h2)
{
    uint64_t timeout_ms = h2->settings->http2.header_timeout_ms;

    if (!h2->head_incomplete)
        return UINT64_MAX;
    return timeout_ms > UINT64_MAX - h2->head_since_ms ? UINT64_MAX : h2->head_since_ms + timeout_ms;
}

void h2_deadline_head(struct h2_session *h2, bool incomplete)
{
    if (incomplete && !h2->head_incomplete)
        h2->head_since_ms = h2->clock->monotonic_ms;
    h2->head_incomplete = incomplete;
    h2_deadline_lower(h2, h2_deadline_of_head(h2));
}

uint64_t h2_deadline_of_goaway(const struct h2_session *h2)
{
    return h2->shutdown == H2_ANNOUNCED ? h2->announced_ms + LIMIT_H2_GOAWAY_MS : UINT64_MAX;
}

void h2_deadline_shutdown(struct h2_session *h2)
{
    h2->announced_ms = h2->clock->monotonic_ms;
    h2_deadline_lower(h2, h2_deadline_of_goaway(h2));
}
