/*
 * Ends streams: the server is notified once, then the memory is freed.
 */
#include "http/h2/stream_end.h"

#include "http/h2/body.h"
#include "http/h2/output.h"
#include "http/h2/stream.h"

static void free_stream(struct h2_stream *stream)
{
    h2_stream_unlink(stream);
    h2_body_finish(stream);
    buffer_finish(&stream->interims);
    arena_set_budget(&stream->x.arena, stream->session->budget.parent); /* an operation may hold the exchange longer */
    exchange_release(&stream->x);
}

static void notify_server(struct h2_stream *stream, bool cancelled)
{
    if (!stream->announced || stream->draining)
        return;
    stream->x.cancelled = cancelled;
    body_close(&stream->x.response.body);
    stream->session->events->finished(stream->session->owner, &stream->x);
    stream->x.session = NULL;
}

void h2_stream_drain(struct h2_stream *stream)
{
    notify_server(stream, false);
    stream->draining = true;
    h2_stream_unready(stream);
    h2_body_drain(stream);
}

void h2_stream_end(struct h2_stream *stream, bool cancelled)
{
    struct h2_session *h2 = stream->session;

    if (h2->sending == stream && cancelled) {
        /* `part` belongs to the body, and the frame must be completed, also before GOAWAY. */
        stream->cancelled_in_frame = true;
        if (h2->receiving == stream)
            h2->receiving = NULL;
        return;
    }
    notify_server(stream, cancelled);
    free_stream(stream);
}

void h2_stream_reset(struct h2_stream *stream, enum h2_error error)
{
    h2_stream_refuse(stream->session, stream->id, error);
    h2_stream_end(stream, true);
}

void h2_stream_fail(struct h2_stream *stream, enum h2_error error)
{
    h2_session_charge(stream->session, H2_EVENT_SERVER_RESET);
    h2_stream_reset(stream, error);
}
