/*
 * Received frames that control a connection or a stream (RFC 9113 6, RFC 9218 7.1). Each function handles one frame
 * that passed h2_frame_check.
 */
#ifndef HTTP_H2_CONTROL_FRAMES_H
#define HTTP_H2_CONTROL_FRAMES_H

#include "http/h2/session.h"

void h2_settings_received(struct h2_session *h2, struct h2_frame *frame);
void h2_ping_received(struct h2_session *h2, struct h2_frame *frame);
void h2_goaway_received(struct h2_session *h2, struct h2_frame *frame);
void h2_window_update_received(struct h2_session *h2, struct h2_frame *frame);
void h2_rst_stream_received(struct h2_session *h2, struct h2_frame *frame);
void h2_priority_received(struct h2_session *h2, struct h2_frame *frame);
void h2_priority_update_received(struct h2_session *h2, struct h2_frame *frame);
/* A client must not send PUSH_PROMISE (RFC 9113 8.4). */
void h2_push_promise_received(struct h2_session *h2, struct h2_frame *frame);

#endif
