/*
 * Fields of an internal redirect when the answer has come: fields that the redirecting module sets on the final response (exchange_set_headers_always).
 */
#ifndef SERVER_INTERNAL_REDIRECT_H
#define SERVER_INTERNAL_REDIRECT_H

#include "server/request_state.h"

/* Puts them into the answer, in the place of its own. 0 or -ENOMEM. */
MUST_CHECK int internal_redirect_set_headers(struct request_state *request);

#endif
