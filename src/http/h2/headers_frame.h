/*
 * Received HEADERS and CONTINUATION frames: they open a stream, or end one with trailers.
 */
#ifndef HTTP_H2_HEADERS_FRAME_H
#define HTTP_H2_HEADERS_FRAME_H

#include "http/h2/session.h"

void h2_headers_received(struct h2_session *h2, struct h2_frame *frame);
void h2_continuation_received(struct h2_session *h2, struct h2_frame *frame);

#endif
