/*
 * Header fields that a module sets on the final response after an internal redirect (exchange_override_headers).
 */
#ifndef SERVER_INTERNAL_REDIRECT_H
#define SERVER_INTERNAL_REDIRECT_H

#include "server/request_state.h"

/* Sets the fields on a response below 300 or a 304, replacing its own; not on an error page. Returns 0 or -ENOMEM. */
MUST_CHECK int internal_redirect_override_headers(struct request_state *request);

#endif
