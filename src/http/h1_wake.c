/*
 * Wakes of the session's owner, by the request body and by the response.
 */
#include "http/h1_session.h"

void h1_session_wake(struct h1_session *session)
{
    if (!session->wake_owed)
        return;
    session->wake_owed = false;
    session->events->wake(session->owner);
}

void h1_session_resume_input(struct h1_session *session)
{
    if (!session->held_back)
        return;
    session->held_back = session->wake_owed = false;
    session->events->wake(session->owner);
}

void h1_session_break(struct h1_session *h1, int error)
{
    h1->error = (int16_t)error;
    h1->input_closed = true;
    h1_session_wake(h1);
}
