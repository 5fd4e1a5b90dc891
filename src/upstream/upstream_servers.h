/*
 * Servers of groups with `zone`, added and removed while the workers run (upstream_follow.h).
 */
#ifndef UPSTREAM_UPSTREAM_SERVERS_H
#define UPSTREAM_UPSTREAM_SERVERS_H

#include "upstream/upstream_pool.h"

/*
 * Adds a server to a group with `zone` in all workers, where its slow_start begins now. `server` has an address, not a
 * name, and may be discarded. Returns 0, -EEXIST if the group has a server with this address, -ENOSPC if the table of
 * changes or of shared peers is full, -ESTALE if there is a change for a newer configuration, -ENOMEM, or -EOPNOTSUPP
 * without upstream_pool_follow.
 */
MUST_CHECK int upstream_group_add_server(struct upstream_group *group, const struct upstream_server *server);
/*
 * Removes the servers with this address ("127.0.0.1:9001") from a group with `zone` in all workers. Their running requests
 * are completed. Returns 0, -ENOENT if there is none, -EADDRNOTAVAIL if it is an address of a name, -EBUSY if no server
 * would be left that is not a backup, or an error as above.
 */
MUST_CHECK int upstream_group_remove_server(struct upstream_group *group, struct str name);

#endif
