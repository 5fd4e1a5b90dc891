/*
 * A request body: the session adds the payload of DATA frames, a module pulls it. Flow control bounds the buffered
 * bytes.
 */
#ifndef HTTP_H2_BODY_H
#define HTTP_H2_BODY_H

#include "http/h2/session.h"

/* Opens the request body of a stream whose head is complete. */
void h2_body_open(struct h2_stream *stream);
/* Adds received payload bytes; the caller has checked the windows. H2_NO_ERROR, or the code of a stream error. */
MUST_CHECK enum h2_error h2_body_receive(struct h2_stream *stream, struct str bytes);
/* Ends the body after END_STREAM or a trailer section. H2_NO_ERROR, or the code of a stream error. */
MUST_CHECK enum h2_error h2_body_end(struct h2_stream *stream);
/* The body is truncated: next returns `error` after the bytes received. */
void h2_body_fail(struct h2_stream *stream, int error);
/* True if the rest of an unread body is small enough to be received and discarded. */
bool h2_body_drainable(const struct h2_stream *stream);
/* Discards the bytes that were not pulled, and from now on all received ones. */
void h2_body_drain(struct h2_stream *stream);
/* Releases buffers, and the connection's window for the bytes that were not pulled. */
void h2_body_finish(struct h2_stream *stream);
/* Counts consumed bytes for the connection's receive window, and sends WINDOW_UPDATE when it is due. */
void h2_body_release(struct h2_session *h2, uint32_t bytes);
/* The same for the window of a stream whose body is still pulled. */
void h2_body_release_stream(struct h2_stream *stream, uint32_t bytes);

#endif
