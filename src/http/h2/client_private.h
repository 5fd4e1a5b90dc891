/*
 * Shared by the files of the client side.
 */
#ifndef HTTP_H2_CLIENT_PRIVATE_H
#define HTTP_H2_CLIENT_PRIVATE_H

#include "http/h2/client_session.h"

/* client_output.c */

/* Queues a frame. */
void h2_client_output(struct h2_client_session *session, struct str frame);
void h2_client_output_number(struct h2_client_session *session, enum h2_frame_type type, uint32_t stream,
                             uint32_t number);
/* Connection error (RFC 9113 5.4.1): GOAWAY; further input is ignored. */
void h2_client_fail(struct h2_client_session *session, enum h2_error code, const char *fault);
/* Charges an event; fails the session when the credit is used up. */
void h2_client_charge(struct h2_client_session *session, enum h2_event event);
/* Calls `wake` if produce returned -EAGAIN. */
void h2_client_wake(struct h2_client_session *session);

/* client_stream.c */

/* The open stream with this identifier, or NULL. */
struct h2_client_stream *h2_client_find(struct h2_client_session *session, uint32_t id);
/* True if the client has not opened a stream with this identifier. */
static inline bool h2_client_is_idle(const struct h2_client_session *session, uint32_t id)
{
    return id % 2 == 0 || id >= session->next_id;
}
/* Calls `visit` for every stream whose HEADERS were sent. */
void h2_client_each(struct h2_client_session *session,
                    void (*visit)(struct h2_client_stream *stream, const void *argument), const void *argument);
/* Adds the stream to the ready ones, unless its request is sent: it may have something to send. */
void h2_client_ready(struct h2_client_stream *stream);
/* Removes the stream from the ready or blocked ones. */
void h2_client_unready(struct h2_client_stream *stream);
/* Adds the stream to the updated ones: it has something to read, or its state of sending has changed. */
void h2_client_stream_updated(struct h2_client_stream *stream);
/* Ends the response with `end`, unless it has ended before. Nothing more is sent. */
void h2_client_close(struct h2_client_stream *stream, enum h2_client_end end);
/* Stream error (RFC 9113 5.4.2): RST_STREAM; the response is malformed. */
void h2_client_stream_fail(struct h2_client_stream *stream, enum h2_error code, const char *fault);
/* Ends a stream that the server has not processed (REFUSED_STREAM, GOAWAY): its request can be repeated. */
void h2_client_refused(struct h2_client_stream *stream, enum h2_error code);

/*
 * client_send.c: one step of a ready stream. 1: *out_parts has bytes; 0: none, produce continues with the next
 * stream; -ENOMEM.
 */
MUST_CHECK int h2_client_send(struct h2_client_stream *stream, size_t room, struct str out_parts[2]);

/* client_receive.c, client_control.c: one function per received frame type. */

void h2_client_headers_received(struct h2_client_session *session, struct h2_frame *frame);
void h2_client_continuation_received(struct h2_client_session *session, struct h2_frame *frame);
void h2_client_payload_received(struct h2_client_session *session, struct h2_frame *frame);
void h2_client_settings_received(struct h2_client_session *session, struct h2_frame *frame);
void h2_client_ping_received(struct h2_client_session *session, struct h2_frame *frame);
void h2_client_goaway_received(struct h2_client_session *session, struct h2_frame *frame);
void h2_client_window_update_received(struct h2_client_session *session, struct h2_frame *frame);
void h2_client_rst_stream_received(struct h2_client_session *session, struct h2_frame *frame);
void h2_client_push_promise_received(struct h2_client_session *session, struct h2_frame *frame);
/* Deprecated, and ignored (RFC 9113 5.3.2). */
void h2_client_priority_received(struct h2_client_session *session, struct h2_frame *frame);

#endif
