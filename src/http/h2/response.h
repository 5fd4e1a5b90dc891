/*
 * The response of one stream: encoded when the server provides it, then pulled frame by frame.
 */
#ifndef HTTP_H2_RESPONSE_H
#define HTTP_H2_RESPONSE_H

#include "http/h2/session.h"

extern const struct exchange_ops h2_exchange_ops;

/*
 * One step of a stream that is scheduled, or whose frame is incomplete. 1: *out is given; 0: call again for the next
 * stream. The stream may have ended.
 */
MUST_CHECK int h2_response_produce(struct h2_stream *stream, unsigned accept, size_t room, struct chunk *out);
/*
 * The chunk given last was consumed. If a frame ended with it, other streams may send; a stream that was cancelled
 * meanwhile ends: its body owned the bytes of the chunk.
 */
void h2_response_chunk_consumed(struct h2_session *h2);

#endif
