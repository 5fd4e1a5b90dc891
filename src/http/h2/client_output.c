/*
 * Queued frames of the client side, and connection errors.
 */
#include "http/h2/client_private.h"

#include <errno.h>

void h2_client_wake(struct h2_client_session *session)
{
    if (!session->wake_pending)
        return;
    session->wake_pending = false;
    session->wake(session->owner);
}

void h2_client_output(struct h2_client_session *session, struct str frame)
{
    if (session->error)
        return;
    if (session->output.length - session->output_at > LIMIT_H2_CONTROL_BYTES + LIMIT_H2_HEADER_BLOCK ||
        buffer_append(&session->output, frame) < 0) {
        session->error = -ENOMEM;
        session->fault = "too many frames wait to be sent";
    }
    h2_client_wake(session);
}

void h2_client_output_number(struct h2_client_session *session, enum h2_frame_type type, uint32_t stream,
                             uint32_t number)
{
    char frame[H2_NUMBER_FRAME];

    h2_frame_write_number(frame, type, stream, number);
    h2_client_output(session, str_of(frame, sizeof frame));
}

void h2_client_session_goaway(struct h2_client_session *session, enum h2_error code)
{
    char frame[H2_GOAWAY_FRAME];

    h2_frame_write_goaway(frame, 0, code);
    h2_client_output(session, str_of(frame, sizeof frame));
}

void h2_client_fail(struct h2_client_session *session, enum h2_error code, const char *fault)
{
    if (session->error)
        return;
    h2_client_session_goaway(session, code);
    session->fault = session->settings_received ? fault : "the server does not use HTTP/2";
    session->error = -EPROTO;
}

void h2_client_charge(struct h2_client_session *session, enum h2_event event)
{
    if (!h2_credit_charge(&session->credit, event, session->clock->monotonic_ms))
        h2_client_fail(session, H2_ENHANCE_YOUR_CALM, "too many frames without effect");
}
