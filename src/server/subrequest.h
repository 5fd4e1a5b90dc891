/*
 * Exchanges that have no client: asked by another exchange, of the same server, routed like any other, and their answer is
 * the owner's. What modules see of them is exchange_child, in module.h.
 */
#ifndef SERVER_SUBREQUEST_H
#define SERVER_SUBREQUEST_H

#include "server/request_state.h"

/*
 * An exchange ends: the children that somebody waits for end with it, and those that nobody waits for go on without it, on
 * worker->orphaned_sockets, unless it was cut off.
 */
void subrequest_part(struct request_state *request);
/* Whether the exchange, or a child that it waits for, is to end with a client that ends its stream. */
bool subrequest_ends_with_client(const struct request_state *request);
/* At once, all that have no parent any more. */
void subrequest_abort_all(struct worker *worker);

#endif
