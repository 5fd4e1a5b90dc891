/*
 * `proxy_limit_rate`: limits the rate of reading a response.
 */
#ifndef MODULES_GATEWAY_RATE_LIMIT_H
#define MODULES_GATEWAY_RATE_LIMIT_H

#include "gateway.h"

/* Starts the limit after the head, if configured. `due` is called when reading may continue. 0 or -ENOMEM. */
MUST_CHECK int gateway_rate_limit_begin(struct gateway_request *p, void (*due)(struct gateway_request *p));
/* True while reading pauses: `due` follows. */
bool gateway_is_rate_limited(struct gateway_request *p);
/* Stops the limit. Accepts a request without one. */
void gateway_rate_limit_end(struct gateway_request *p);

#endif
