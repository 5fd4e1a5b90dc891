/*
 * The end of a stream: completed, cancelled by the client, or reset by the server.
 */
#ifndef HTTP_H2_STREAM_END_H
#define HTTP_H2_STREAM_END_H

#include "http/h2/session.h"

/*
 * Ends a stream: calls `finished` if `begun` or `rejected` was called, then frees its memory. `cancelled`: the response
 * is incomplete. A cancelled stream whose frame is being sent ends after that frame.
 */
void h2_stream_end(struct h2_stream *stream, bool cancelled);
/* After a complete response: calls `finished`, and discards the request body. The stream ends with that body. */
void h2_stream_drain(struct h2_stream *stream);
/* Stream error (RFC 9113 5.4.2): RST_STREAM, then the end. */
void h2_stream_reset(struct h2_stream *stream, enum h2_error error);
/* As h2_stream_reset, after a violation by the client: costs credit (CVE-2025-8671). */
void h2_stream_fail(struct h2_stream *stream, enum h2_error error);

#endif
