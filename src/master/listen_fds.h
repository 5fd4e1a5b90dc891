/*
 * Listening sockets that this process did not open: those of a service manager (socket activation, sd_listen_fds(3)),
 * and those of the master that a binary upgrade replaces.
 */
#ifndef MASTER_LISTEN_FDS_H
#define MASTER_LISTEN_FDS_H

#include "master/sockets.h"

struct listen_fds;

/*
 * Takes the sockets that LISTEN_FDS passes to this process (LISTEN_PID), from descriptor `first` on (3), and removes
 * these variables. Descriptors that are no listening stream sockets are logged and closed. NULL: no sockets.
 */
struct listen_fds *listen_fds_take(int first, struct log *log);
/*
 * Takes `count` sockets, each in the next of `slots` slots of its address. Those that are no listening stream sockets,
 * or find no slot, are logged and closed. NULL: no sockets, or out of memory (then all are closed).
 */
struct listen_fds *listen_fds_adopt(const int *fds, size_t count, unsigned slots, struct log *log);
/* Duplicates all sockets. NULL: there are none, or out of memory or descriptors (logged). */
struct listen_fds *listen_fds_duplicate(const struct sockets *sockets, struct log *log);
/* Returns the sockets in the form of an earlier generation, for sockets_open. NULL if `passed` is NULL. */
const struct sockets *listen_fds_sockets(const struct listen_fds *passed);
/*
 * Closes and frees all; logs the sockets whose address is not in `configuration` (NULL: logs none). Removes the unix:
 * paths that are not in it, unless they belong to a service manager or, with `keep_paths`, to another master. Accepts
 * NULL.
 */
void listen_fds_finish(struct listen_fds *passed, const struct configuration *configuration, bool keep_paths,
                       struct log *log);

#endif
