/*
 * `proxy_limit_rate`: a response is read from its server at no more than so many bytes a second.
 */
#ifndef MODULES_GATEWAY_RATE_LIMIT_H
#define MODULES_GATEWAY_RATE_LIMIT_H

#include "gateway.h"

directive_row gateway_read_rate;
/* The head has come: what is read from now on is counted, where the configuration says so. `due` is called when more is to be read. 0 or -ENOMEM. */
MUST_CHECK int gateway_rate_limit_begin(struct gateway_request *p, void (*due)(struct gateway_request *p));
/* True where nothing more is to be read yet: `due` follows. */
bool gateway_is_rate_limited(struct gateway_request *p);
/* Nothing is read any more. Accepts a request without a rate limit. */
void gateway_rate_limit_end(struct gateway_request *p);

#endif
