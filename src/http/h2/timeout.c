/*
 * session->deadline_ms is at most the earliest deadline of all waits: a wait lowers it when it begins, and only
 * h2_timeout_check, which visits all streams, raises it.
 */
#include "http/h2/timeout.h"

#include "base/limits.h"
#include "http/h2/body.h"
#include "http/h2/output.h"
#include "http/h2/shutdown.h"
#include "http/h2/stream.h"
#include "http/h2/stream_end.h"

#include <errno.h>

static void lower_deadline(struct h2_session *h2, uint64_t deadline_ms)
{
    if (deadline_ms < h2->deadline_ms)
        h2->deadline_ms = deadline_ms;
}

static struct h2_wait_limits body_limits(const struct h2_stream *stream)
{
    const struct session_settings *settings = stream->x.settings;

    return (struct h2_wait_limits){settings->http2.body_timeout_ms, settings->http2.min_rate};
}

/* The rate is measured only if the stream's own window is used up: the client divides the connection's window. */
static struct h2_wait_limits send_limits(const struct h2_stream *stream)
{
    const struct session_settings *settings = stream->x.settings;

    return (struct h2_wait_limits){settings->http2.send_timeout_ms, stream->window <= 0 ? settings->http2.min_rate : 0};
}

void h2_timeout_body(struct h2_stream *stream, bool waits)
{
    struct h2_session *h2 = stream->session;

    if (waits)
        h2_wait_begin(&stream->body_wait, h2->clock->monotonic_ms);
    else
        h2_wait_end(&stream->body_wait, h2->clock->monotonic_ms);
    lower_deadline(h2, h2_wait_deadline(&stream->body_wait, body_limits(stream)));
}

void h2_timeout_send(struct h2_stream *stream, bool waits)
{
    struct h2_session *h2 = stream->session;

    if (waits)
        h2_wait_begin(&stream->send_wait, h2->clock->monotonic_ms);
    else
        h2_wait_end(&stream->send_wait, h2->clock->monotonic_ms);
    lower_deadline(h2, h2_wait_deadline(&stream->send_wait, send_limits(stream)));
}

static uint64_t head_deadline(const struct h2_session *h2)
{
    uint64_t timeout_ms = h2->settings->http2.header_timeout_ms;

    if (!h2->head_incomplete)
        return UINT64_MAX;
    return timeout_ms > UINT64_MAX - h2->head_since_ms ? UINT64_MAX : h2->head_since_ms + timeout_ms;
}

void h2_timeout_head(struct h2_session *h2, bool incomplete)
{
    if (incomplete && !h2->head_incomplete)
        h2->head_since_ms = h2->clock->monotonic_ms;
    h2->head_incomplete = incomplete;
    lower_deadline(h2, head_deadline(h2));
}

static uint64_t goaway_deadline(const struct h2_session *h2)
{
    return h2->shutdown == H2_ANNOUNCED ? h2->announced_ms + LIMIT_H2_GOAWAY_MS : UINT64_MAX;
}

void h2_timeout_shutdown(struct h2_session *h2)
{
    h2->announced_ms = h2->clock->monotonic_ms;
    lower_deadline(h2, goaway_deadline(h2));
}

/*
 * No later frame can be parsed. The streams that were accepted before are completed; without any, the connection ends.
 */
static void head_timed_out(struct h2_session *h2)
{
    struct h2_stream *stream = h2->receiving;

    h2->head_incomplete = false;
    h2->receiving = NULL;
    if (stream)
        h2_stream_end(stream, true);
    if (h2->stream_count == 0) {
        h2_session_fail(h2, H2_NO_ERROR);
        return;
    }
    h2_shutdown_start(h2);
    h2_shutdown_acknowledged(h2);
    h2->input_ignored = true;
}

/* While the connection's window is used up, the client must not send: the buffered bytes belong to other streams. */
static bool may_client_send(const struct h2_session *h2)
{
    return h2->receive.left > 0;
}

/* True if the stream has failed: it may have ended. */
static bool check_stream(struct h2_stream *stream, uint64_t now_ms)
{
    if (h2_wait_expired(&stream->send_wait, now_ms, send_limits(stream))) {
        h2_stream_reset(stream, H2_CANCEL);
        return true;
    }
    if (!may_client_send(stream->session))
        h2_wait_restart(&stream->body_wait, now_ms);
    if (!h2_wait_expired(&stream->body_wait, now_ms, body_limits(stream)))
        return false;
    if (stream->draining) {
        h2_stream_reset(stream, H2_NO_ERROR);
        return true;
    }
    h2_wait_end(&stream->body_wait, now_ms);
    h2_body_fail(stream, -ETIMEDOUT);
    return false;
}

static void visit_stream(struct h2_stream *stream, const void *argument)
{
    struct h2_session *h2 = stream->session;
    const uint64_t *now_ms = argument;

    if (stream->cancelled_in_frame || check_stream(stream, *now_ms))
        return;
    lower_deadline(h2, h2_wait_deadline(&stream->send_wait, send_limits(stream)));
    lower_deadline(h2, h2_wait_deadline(&stream->body_wait, body_limits(stream)));
}

void h2_timeout_check(struct h2_session *h2)
{
    uint64_t now_ms = h2->clock->monotonic_ms;

    h2->deadline_ms = UINT64_MAX;
    if (head_deadline(h2) <= now_ms)
        head_timed_out(h2);
    if (goaway_deadline(h2) <= now_ms)
        h2_shutdown_acknowledged(h2);
    h2_stream_each(h2, visit_stream, &now_ms);
    lower_deadline(h2, head_deadline(h2));
    lower_deadline(h2, goaway_deadline(h2));
}
