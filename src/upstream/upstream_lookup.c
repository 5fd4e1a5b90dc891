/*
 * One query of a name, by the resolver of its group.
 */
#include "upstream/upstream_lookup.h"

#include "upstream/upstream_group.h"

#include <errno.h>

static void name_resolved(void *owner, const struct resolver_answer *answer)
{
    struct upstream_lookup *lookup = owner;

    lookup->query = NULL;
    if (answer->count > 0)
        upstream_addresses_store(lookup->group, &lookup->server, answer);
    lookup->done(lookup, answer->count > 0 ? NULL : answer->reason ? answer->reason : "it has no address");
}

int upstream_lookup_start(struct upstream_lookup *lookup, struct upstream_group *group,
                          const struct upstream_server *server)
{
    struct resolver *resolver = upstream_group_resolver(group);

    lookup->group = group;
    lookup->server = *server;
    lookup->query = resolver ? resolver_query_start(resolver, server->host, server->port, server->service,
                                                    name_resolved, lookup)
                             : NULL;
    return lookup->query ? 0 : -ENOMEM;
}

void upstream_lookup_cancel(struct upstream_lookup *lookup)
{
    resolver_query_cancel(lookup->query);
    lookup->query = NULL;
}
