/*
 * Subrequests: exchanges without a client, created by another exchange of the same server and routed like a client's
 * request; the owner receives the response. The functions for modules are exchange_subrequest* in module.h.
 */
#ifndef SERVER_SUBREQUEST_H
#define SERVER_SUBREQUEST_H

#include "server/request_state.h"

/* Returns true if the exchange, or a subrequest that it waits for, ends when the client half-closes. */
bool subrequest_ends_with_client(const struct request_state *request);
/* Aborts all subrequests without a parent at once. */
void subrequest_abort_all(struct worker *worker);

#endif
