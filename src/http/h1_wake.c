/*
 * Calls the owner's `wake`, for the request body and for the response.
 */
#include "http/h1_session.h"

void h1_session_wake(struct h1_session *session)
{
    if (!session->wake_pending)
        return;
    session->wake_pending = false;
    session->events->wake(session->owner);
}

void h1_session_resume_input(struct h1_session *session)
{
    if (!session->input_blocked)
        return;
    session->input_blocked = session->wake_pending = false;
    session->events->wake(session->owner);
}

void h1_session_break(struct h1_session *h1, int error)
{
    h1->error = (int16_t)error;
    h1->input_closed = true;
    h1_session_wake(h1);
}
