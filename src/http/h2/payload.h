/*
 * Received DATA frames: the payload is passed on as it arrives.
 */
#ifndef HTTP_H2_PAYLOAD_H
#define HTTP_H2_PAYLOAD_H

#include "http/h2/session.h"

/* Handles the head of a DATA frame: checks stream and windows. `frame->payload` is not set. */
void h2_payload_started(struct h2_session *h2, const struct h2_frame *frame);
/* Takes bytes of the payload, while h2->data_left is not 0. Returns their number. */
size_t h2_payload_received(struct h2_session *h2, struct str bytes);

#endif
