/*
 * The session accepts new streams until it sends the second GOAWAY.
 */
#include "http/h2/shutdown.h"

#include "http/h2/deadline.h"
#include "http/h2/output.h"

static void send_goaway(struct h2_session *h2, uint32_t last_stream)
{
    char frame[H2_GOAWAY_FRAME];

    h2_frame_write_goaway(frame, last_stream, H2_NO_ERROR);
    h2_output_frame(h2, str_of(frame, sizeof frame));
}

void h2_ping_send(struct h2_session *h2, const char *opaque)
{
    char frame[H2_PING_FRAME];

    h2_frame_write_ping(frame, 0, opaque);
    h2_output_frame(h2, str_of(frame, sizeof frame));
}

void h2_shutdown_start(struct h2_session *h2)
{
    if (h2->shutdown != H2_RUNNING)
        return;
    h2->shutdown = H2_ANNOUNCED;
    send_goaway(h2, H2_STREAM_MAX);
    h2_ping_send(h2, H2_PING_SHUTDOWN);
    h2_deadline_shutdown(h2);
}

void h2_shutdown_acknowledged(struct h2_session *h2)
{
    if (h2->shutdown != H2_ANNOUNCED)
        return;
    h2->shutdown = H2_LAST_STREAM;
    send_goaway(h2, h2->last_accepted);
}

void h2_shutdown_check(struct h2_session *h2)
{
    if (h2->shutdown == H2_LAST_STREAM && h2->stream_count == 0)
        h2->shutdown = H2_OVER;
}
