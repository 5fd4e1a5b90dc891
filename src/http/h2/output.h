/*
 * Queued control frames, and the end of a connection.
 */
#ifndef HTTP_H2_OUTPUT_H
#define HTTP_H2_OUTPUT_H

#include "http/h2/session.h"

/* Wakes the owner if produce returned -EAGAIN. */
void h2_session_wake(struct h2_session *h2);
/*
 * Queues a control frame. Closes the connection if more than LIMIT_H2_CONTROL_BYTES are queued, because the client does
 * not read them.
 */
void h2_output_frame(struct h2_session *h2, struct str frame);
/* As h2_output_frame, for RST_STREAM and WINDOW_UPDATE. */
void h2_output_number(struct h2_session *h2, enum h2_frame_type type, uint32_t stream, uint32_t number);
/* Connection error (RFC 9113 5.4.1): GOAWAY, then the connection closes. Further input is ignored. */
void h2_session_fail(struct h2_session *h2, enum h2_error error);
/* Aborts the connection without GOAWAY: produce returns `error`. */
void h2_session_break(struct h2_session *h2, int error);
/* Charges an event; fails the connection when the credit is used up. */
void h2_session_charge(struct h2_session *h2, enum h2_event event);
/* True if the connection ends: input is ignored. */
static inline bool h2_session_over(const struct h2_session *h2)
{
    return h2->error || h2->shutdown == H2_OVER;
}

#endif
