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
/* True if bytes of the current frame are left, which must be sent before other frames. */
bool h2_stream_in_frame(const struct h2_stream *stream);
/* True if produce has returned the last frame of the response. */
bool h2_stream_response_produced(const struct h2_stream *stream);
/* The number of open streams (RFC 9113 5.1.2), without one that is closed by both sides but was not ended yet. */
unsigned h2_stream_open_count(const struct h2_session *h2);
/* Calls `visit` for every open stream, which it may end. */
void h2_stream_each(struct h2_session *h2, void (*visit)(struct h2_stream *stream, const void *argument),
                    const void *argument);
/* Adds the stream to the schedule, and removes it from the blocked ones: it may have something to send. */
void h2_stream_ready(struct h2_stream *stream);
/* Removes the stream from the schedule: it has nothing to send, or waits for a window. */
void h2_stream_unready(struct h2_stream *stream);
/* Sends RST_STREAM, and records the stream as recently reset. */
void h2_stream_refuse(struct h2_session *h2, uint32_t id, enum h2_error error);
/* Removes a stream from the table, the schedule and the blocked streams. Its memory is not freed. */
void h2_stream_unlink(struct h2_stream *stream);
/* True if the server reset this stream recently: the client may have sent frames before it received RST_STREAM. */
bool h2_stream_recent(const struct h2_session *h2, uint32_t id);
/* Removes the record of a reset: the client has reset the stream, too, and sends no more frames of it. */
void h2_stream_clear_recent(struct h2_session *h2, uint32_t id);

#endif
