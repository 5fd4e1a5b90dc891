/*
 * The response body between the upstream server and the client: read while there is room, and pulled.
 */
#ifndef MODULES_GATEWAY_RESPONSE_BODY_H
#define MODULES_GATEWAY_RESPONSE_BODY_H

#include "gateway.h"

/* Resets the response body for a new attempt. */
void gateway_body_init(struct gateway_request *p);
/* Reads on if there is room for one receive. */
void gateway_read(struct gateway_request *p);
/* True if the next receive may have LIMIT_RECEIVE_LARGE bytes: the body is large, and there is room for them. */
bool gateway_receives_large(const struct gateway_request *p);
/* Wakes the puller of the body, once per -EAGAIN. */
void gateway_wake_body(struct gateway_request *p);
/* The connection failed during the body. */
void gateway_body_fail(struct gateway_request *p, int error);
/* Ends a complete response. The connection may be reused unless `surplus`: the upstream server has sent more bytes. */
void gateway_response_end(struct gateway_request *p, bool surplus);

#endif
