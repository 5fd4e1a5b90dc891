/*
 * The deadlines of streams, of an incomplete header block and of the first GOAWAY. timeout.h ends the waits.
 */
#ifndef HTTP_H2_DEADLINE_H
#define HTTP_H2_DEADLINE_H

#include "http/h2/session.h"

/* Starts or ends the wait for bytes of the request body, to be pulled or discarded: client_body_timeout. */
void h2_deadline_body(struct h2_stream *stream, bool waits);
/* Starts or ends the wait of DATA for a window of the client: send_timeout. */
void h2_deadline_send(struct h2_stream *stream, bool waits);
/*
 * Records whether a frame or a header block is incomplete: client_header_timeout. Called after each frame, or part of
 * one.
 */
void h2_deadline_head(struct h2_session *h2, bool incomplete);
/* Starts LIMIT_H2_GOAWAY_MS: the second GOAWAY follows at its end, also without an acknowledgement. */
void h2_deadline_shutdown(struct h2_session *h2);

/* The limits of the two waits of a stream. */
struct h2_wait_limits h2_deadline_body_limits(const struct h2_stream *stream);
struct h2_wait_limits h2_deadline_send_limits(const struct h2_stream *stream);
/* The deadline of an incomplete frame or header block, and that of the second GOAWAY; UINT64_MAX: none. */
uint64_t h2_deadline_of_head(const struct h2_session *h2);
uint64_t h2_deadline_of_goaway(const struct h2_session *h2);
/* Lowers the deadline of the session to `deadline_ms`; no effect if it is earlier already. */
void h2_deadline_lower(struct h2_session *h2, uint64_t deadline_ms);

#endif
