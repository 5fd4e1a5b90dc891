/*
 * Ends streams, header blocks and waits for an acknowledgement whose deadline has passed.
 */
#include "http/h2/timeout.h"

#include "http/h2/body.h"
#include "http/h2/deadline.h"
#include "http/h2/output.h"
#include "http/h2/shutdown.h"
#include "http/h2/stream.h"
#include "http/h2/stream_end.h"

#include <errno.h>

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

/* False while the connection's window is used up: the time does not count for the body timeouts. */
static bool may_client_send(const struct h2_session *h2)
{
    return h2->receive.left > 0;
}

/* True if the stream has failed: it may have ended. */
static bool check_stream(struct h2_stream *stream, uint64_t now_ms)
{
    if (h2_wait_expired(&stream->send_wait, now_ms, h2_deadline_send_limits(stream))) {
        h2_stream_reset(stream, H2_CANCEL);
        return true;
    }
    if (!may_client_send(stream->session))
        h2_wait_restart(&stream->body_wait, now_ms);
    if (!h2_wait_expired(&stream->body_wait, now_ms, h2_deadline_body_limits(stream)))
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
    h2_deadline_lower(h2, h2_wait_deadline(&stream->send_wait, h2_deadline_send_limits(stream)));
    h2_deadline_lower(h2, h2_wait_deadline(&stream->body_wait, h2_deadline_body_limits(stream)));
}

void h2_timeout_check(struct h2_session *h2)
{
    uint64_t now_ms = h2->clock->monotonic_ms;

    h2->deadline_ms = UINT64_MAX;
    if (h2_deadline_of_head(h2) <= now_ms)
        head_timed_out(h2);
    if (h2_deadline_of_goaway(h2) <= now_ms)
        h2_shutdown_acknowledged(h2);
    h2_stream_each(h2, visit_stream, &now_ms);
    h2_deadline_lower(h2, h2_deadline_of_head(h2));
    h2_deadline_lower(h2, h2_deadline_of_goaway(h2));
}
