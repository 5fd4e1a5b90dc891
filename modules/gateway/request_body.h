/*
 * The request body as sent: streamed, buffered, or replaced.
 */
#ifndef MODULES_GATEWAY_REQUEST_BODY_H
#define MODULES_GATEWAY_REQUEST_BODY_H

#include "buffered_body.h"
#include "gateway.h"

/*
 * Buffers the client's body, if configured and present. 0: no wait; -EAGAIN: `done` follows with p as the owner;
 * other -errno: it was interrupted.
 */
MUST_CHECK int gateway_buffer_request(struct gateway_request *p, void (*done)(void *owner, int error));
/* True if an attempt before an internal redirect consumed a part of x's body that was not buffered. */
bool gateway_body_is_lost(const struct exchange *x);
/* Buffers x's body for any module: as buffered_body_read. */
MUST_CHECK int gateway_buffer_body(struct exchange *x, void (*done)(void *owner, int error), void *owner);
/* Shares x's complete buffered body with a subrequest. 0 or -errno. */
MUST_CHECK int gateway_share_body(struct exchange *x, struct exchange *child);
/* After a 101 to extended CONNECT: the client's bytes follow the request on the upstream connection. */
void gateway_send_tunnel(struct gateway_request *p);
/* The body from which the bytes of the request are pulled. */
struct body *gateway_request_body(struct gateway_request *p);
/* True if a part of the body was consumed and cannot be repeated. */
bool gateway_body_is_consumed(const struct gateway_request *p);

#endif
