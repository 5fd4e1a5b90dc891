/*
 * The table of streams: creation and search, and the streams that can send.
 */
#ifndef HTTP_H2_STREAM_H
#define HTTP_H2_STREAM_H

#include "http/h2/session.h"

/*
 * Creates a stream for a new request, without x.ops; counted as open. NULL when out of memory, or past
 * LIMIT_CONNECTION_MEMORY.
 */
struct h2_stream *h2_stream_create(struct h2_session *h2, uint32_t id);
/* The open stream with this identifier, or NULL; also NULL for a stream with cancelled_in_frame. */
struct h2_stream *h2_stream_find(const struct h2_session *h2, uint32_t id);
/* Bytes are left that must follow the last chunk, before those of another stream. */
bool h2_stream_in_frame(const struct h2_stream *stream);
/* The last frame of the response was given to the wire. */
bool h2_stream_response_given(const struct h2_stream *stream);
/* The number of open streams (RFC 9113 5.1.2), without one that is closed by both sides but was not ended yet. */
unsigned h2_stream_open_count(const struct h2_session *h2);
/* Calls `visit` for every open stream, which it may end. */
void h2_stream_each(struct h2_session *h2, void (*visit)(struct h2_stream *stream, const void *argument),
                    const void *argument);
/* The stream may have something to send: it takes part in the schedule. */
void h2_stream_ready(struct h2_stream *stream);
/* The stream has nothing to send for now, or waits for a window. */
void h2_stream_unready(struct h2_stream *stream);
/* Sends RST_STREAM for a stream that is not open; late frames of it are ignored. */
void h2_stream_refuse(struct h2_session *h2, uint32_t id, enum h2_error error);
/* Removes a stream from the table, the schedule and the blocked streams. Its memory is not freed. */
void h2_stream_unlink(struct h2_stream *stream);
/* True if the server reset this stream recently: the client may have sent frames before it received RST_STREAM. */
bool h2_stream_recent(const struct h2_session *h2, uint32_t id);
/* The client has reset the stream, too: no late frames of it follow. */
void h2_stream_clear_recent(struct h2_session *h2, uint32_t id);

#endif
