/*
 * The timeouts of streams, of an incomplete header block and of the first GOAWAY. Each is checked when the session's
 * deadline passes, so that the events of other streams do not extend it.
 */
#ifndef HTTP_H2_TIMEOUT_H
#define HTTP_H2_TIMEOUT_H

#include "http/h2/session.h"

/* The module, or the discarding of a rest, waits for bytes of the request body: client_body_timeout. */
void h2_timeout_body(struct h2_stream *stream, bool waits);
/* DATA waits for a window of the client: send_timeout. */
void h2_timeout_send(struct h2_stream *stream, bool waits);
/* A frame, or a header block, is incomplete: client_header_timeout. Called after each frame, or part of one. */
void h2_timeout_head(struct h2_session *h2, bool incomplete);
/* The first GOAWAY was queued: the second one follows after LIMIT_H2_GOAWAY_MS, also without an acknowledgement. */
void h2_timeout_shutdown(struct h2_session *h2);
/* SESSION_DEADLINE: fails streams whose time has passed, and sets the next deadline. */
void h2_timeout_check(struct h2_session *h2);

#endif
