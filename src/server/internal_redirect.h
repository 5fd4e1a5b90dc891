/*
 * Header fields that a module sets on the final response of an internal redirect (exchange_set_headers_always).
 */
#ifndef SERVER_INTERNAL_REDIRECT_H
#define SERVER_INTERNAL_REDIRECT_H

#include "server/request_state.h"

/* Sets the fields on the response, replacing its own. Returns 0 or -ENOMEM. */
MUST_CHECK int internal_redirect_set_headers(struct request_state *request);

#endif
