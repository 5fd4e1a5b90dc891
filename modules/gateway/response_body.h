/*
 * The body of a response between its server and the client: read while there is room, and pulled.
 */
#ifndef MODULES_GATEWAY_RESPONSE_BODY_H
#define MODULES_GATEWAY_RESPONSE_BODY_H

#include "gateway.h"

void gateway_body_init(struct gateway_request *p);
/* Reads on where there is room for all that one receive may bring. */
void gateway_read(struct gateway_request *p);
/* Wakes the reader of the body, once for each -EAGAIN. */
void gateway_wake_body(struct gateway_request *p);
/* The connection is gone while the body was on its way. */
void gateway_body_fail(struct gateway_request *p, int error);
/* The response is whole, and the connection may carry another; `surplus`: if the server had not sent more than that. */
void gateway_response_end(struct gateway_request *p, bool surplus);

#endif
