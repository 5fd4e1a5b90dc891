/*
 * Servers of groups with `zone`, added and removed while the workers run (upstream_follow.h).
 */
#ifndef UPSTREAM_UPSTREAM_SERVERS_H
#define UPSTREAM_UPSTREAM_SERVERS_H

#include "upstream/upstream_pool.h"

/* The name of a server in messages and for its removal: "10.0.0.1:80", "app.internal:80". Empty: longer than `size`. */
struct str upstream_server_name(const struct upstream_server *server, char *text, size_t size);
/*
 * Adds a server to a group with `zone` in all workers, where its slow_start begins now. Copies `server`. The
 * workers resolve a name periodically; they begin with the addresses that upstream_lookup_start stored. Returns 0,
 * -EEXIST if the group has a server with this address or name, -ENOSPC if the table of changes or of shared peers is
 * full, -ESTALE if there is a change for a newer configuration, -ENAMETOOLONG, -ENOMEM, or -EOPNOTSUPP without
 * upstream_pool_follow.
 */
MUST_CHECK int upstream_group_add_server(struct upstream_group *group, const struct upstream_server *server);
/* Sets the items of `entries`, by index in the zone, of all addresses of a name that was added at run time. */
void upstream_group_find_server(const struct upstream_group *group, struct str name,
                                bool entries[LIMIT_UPSTREAM_PEERS]);
/*
 * Removes the servers with this address ("127.0.0.1:9001"), or the name that was added at run time, from a group with
 * `zone` in all workers. Their running requests are completed. Returns 0, -ENOENT if there is none, -EADDRNOTAVAIL if
 * it is a name of the configuration or an address of a name, -EBUSY if no server would be left that is not a backup, or
 * an error as above.
 */
MUST_CHECK int upstream_group_remove_server(struct upstream_group *group, struct str name);

#endif
