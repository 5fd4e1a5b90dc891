/*
 * The end of a stream: completed, cancelled by the client, or reset by the server.
 */
#ifndef HTTP_H2_STREAM_END_H
#define HTTP_H2_STREAM_END_H

#include "http/h2/session.h"

/*
 * Ends a stream: `finished` if its request was handed over, then its memory is freed. `cancelled`: the response is
 * incomplete. A stream whose frame is being sent ends after that frame.
 */
void h2_stream_end(struct h2_stream *stream, bool cancelled);
/* The response is complete: `finished` is called, and the stream stays open until its request body has ended. */
void h2_stream_drain(struct h2_stream *stream);
/* Stream error (RFC 9113 5.4.2): RST_STREAM, then the end. */
void h2_stream_reset(struct h2_stream *stream, enum h2_error error);
/* The same for a rule that the client broke: it costs credit (CVE-2025-8671). */
void h2_stream_fail(struct h2_stream *stream, enum h2_error error);

#endif
