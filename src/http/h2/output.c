/*
 * Control frames are sent before frames of streams, so that large bodies do not delay acknowledgements.
 */
#include "http/h2/output.h"

#include "base/limits.h"
#include "http/h2/frame_log.h"

#include <errno.h>

_Static_assert(H2_COUNTED_ERRORS == H2_ERRORS + 1, "each error code is counted");

void h2_session_wake(struct h2_session *h2)
{
    if (!h2->wake_pending)
        return;
    h2->wake_pending = false;
    h2->events->wake(h2->owner);
}

void h2_session_break(struct h2_session *h2, int error)
{
    if (!h2->error)
        h2->error = (int16_t)error;
    buffer_finish(&h2->control);
    h2->control_at = 0;
    h2_session_wake(h2);
}

void h2_output_frame(struct h2_session *h2, struct str frame)
{
    int error;

    if (h2_session_over(h2))
        return;
    h2_log_sent(h2, frame);
    h2->control.max = LIMIT_H2_CONTROL_BYTES;
    error = buffer_append(&h2->control, frame);
    if (error)
        h2_session_break(h2, error);
    else
        h2_session_wake(h2);
}

void h2_output_number(struct h2_session *h2, enum h2_frame_type type, uint32_t stream, uint32_t number)
{
    char frame[H2_NUMBER_FRAME];

    h2_frame_write_number(frame, type, stream, number);
    h2_output_frame(h2, str_of(frame, sizeof frame));
}

void h2_session_fail(struct h2_session *h2, enum h2_error error)
{
    char frame[H2_GOAWAY_FRAME];

    if (h2_session_over(h2))
        return;
    protocol_count_error(h2->counters->h2_connection_errors, error);
    h2_frame_write_goaway(frame, h2->last_accepted, error);
    h2_output_frame(h2, str_of(frame, sizeof frame));
    h2->shutdown = H2_OVER;
}

void h2_session_charge(struct h2_session *h2, enum h2_event event)
{
    if (!h2_credit_charge(&h2->credit, event, h2->clock->monotonic_ms))
        h2_session_fail(h2, H2_ENHANCE_YOUR_CALM);
}
