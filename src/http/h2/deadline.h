/*
 * The deadlines of streams, of an incomplete header block and of the first GOAWAY. timeout.h ends the waits.
 */
#ifndef HTTP_H2_DEADLINE_H
#define HTTP_H2_DEADLINE_H

#include "http/h2/session.h"

/* The module, or the discarding of a rest, waits for bytes of the request body: client_body_timeout. */
void h2_deadline_body(struct h2_stream *stream, bool waits);
/* DATA waits for a window of the client: send_timeout. */
void h2_deadline_send(struct h2_stream *stream, bool waits);
/* A frame, or a header block, is incomplete: client_header_timeout. Called after each frame, or part of one. */
void h2_deadline_head(struct h2_session *h2, bool incomplete);
/* The first GOAWAY was queued: the second one follows after LIMIT_H2_GOAWAY_MS, also without an acknowledgement. */
void h2_deadline_shutdown(struct h2_session *h2);

/* The limits of the two waits of a stream. */
struct h2_wait_limits h2_deadline_body_limits(const struct h2_stream *stream);
struct h2_wait_limits h2_deadline_send_limits(const struct h2_stream *stream);
/* UINT64_MAX: no header block is incomplete, or no acknowledgement is awaited. */
uint64_t h2_deadline_of_head(const struct h2_session *h2);
uint64_t h2_deadline_of_goaway(const struct h2_session *h2);
/* Sets the deadline of the session, unless it is earlier. */
void h2_deadline_lower(struct h2_session *h2, uint64_t deadline_ms);

#endif
