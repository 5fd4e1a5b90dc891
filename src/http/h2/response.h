/*
 * The response of one stream: encoded when the server provides it, then pulled frame by frame.
 */
#ifndef HTTP_H2_RESPONSE_H
#define HTTP_H2_RESPONSE_H

#include "http/h2/session.h"

struct h2_section;

/* response_head.c: respond, inform and abort of an exchange. */
extern const struct exchange_ops h2_exchange_ops;
/* Formats the frames of a section in the arena as the stream's `pending` bytes. 0 or -ENOMEM. */
MUST_CHECK int h2_response_write_section(struct h2_stream *stream, const struct h2_section *section, bool end_stream);

/*
 * One step of a stream that is scheduled, or whose frame is incomplete. 1 with *out filled in; 0: call again for the
 * next stream. The stream may have ended.
 */
MUST_CHECK int h2_response_produce(struct h2_stream *stream, unsigned accept, size_t room, struct chunk *out);
/*
 * Called when the wire has consumed the chunk returned last. If its frame is complete, other streams may send. A stream
 * whose response is complete or cancelled ends only now, because its body owned the bytes of the chunk.
 */
void h2_response_chunk_consumed(struct h2_session *h2);

#endif
