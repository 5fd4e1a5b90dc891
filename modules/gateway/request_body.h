/*
 * The body of the request as a server gets it: the client's as it comes, the same buffered, or one of the configuration.
 */
#ifndef MODULES_GATEWAY_REQUEST_BODY_H
#define MODULES_GATEWAY_REQUEST_BODY_H

#include "buffered_body.h"
#include "gateway.h"

/*
 * Reads the client's body first, where that is wanted and there is one. 0: it need not be waited for; -EAGAIN: `done` follows, with p as the owner; other -errno: it
 * broke off.
 */
MUST_CHECK int gateway_buffer_request(struct gateway_request *p, void (*done)(void *owner, int error));
/* True where a server that was asked before an internal redirect has had some of x's body, and that was not kept. */
bool gateway_body_is_lost(const struct exchange *x);
/* x's body is read whole, whichever module answers x: as buffered_body_read. */
MUST_CHECK int gateway_buffer_body(struct exchange *x, void (*done)(void *owner, int error), void *owner);
/* What was buffered of x's body, whole, is the child's body, too. 0 or -errno. */
MUST_CHECK int gateway_share_body(struct exchange *x, struct exchange *child);
/* Where the request's body is pulled from. */
struct body *gateway_request_body(struct gateway_request *p);
/* True where some of the body was given away, and cannot be had again. */
bool gateway_body_is_consumed(const struct gateway_request *p);

#endif
