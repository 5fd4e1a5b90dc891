/*
 * Resolves the name of a server that is about to be added at run time.
 */
#ifndef UPSTREAM_UPSTREAM_LOOKUP_H
#define UPSTREAM_UPSTREAM_LOOKUP_H

#include "upstream/upstream_pool.h"

/* Embedded in its owner. */
struct upstream_lookup {
    struct upstream_group *group;
    struct upstream_server server;
    struct resolver_query *query;   /* NULL: none is in progress */
    /* Called once, from the loop. `reason`: an error; NULL: the addresses are stored for all workers. */
    void (*done)(struct upstream_lookup *lookup, const char *reason);
};

/*
 * Starts the query, with the resolver of the group. The caller has set `done`; the text of the server must outlive
 * the lookup. 0 or -ENOMEM; then `done` is not called.
 */
MUST_CHECK int upstream_lookup_start(struct upstream_lookup *lookup, struct upstream_group *group,
                                     const struct upstream_server *server);
/* Cancels the query; `done` is not called. No effect after `done`. */
void upstream_lookup_cancel(struct upstream_lookup *lookup);

#endif
