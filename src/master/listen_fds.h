/*
 * Socket activation (sd_listen_fds(3)): listening sockets that a service manager opened and passes as descriptors.
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
/* Returns the sockets in the form of an earlier generation, for sockets_open. NULL if `passed` is NULL. */
const struct sockets *listen_fds_sockets(const struct listen_fds *passed);
/* Closes and frees all; logs the sockets whose address is not in `configuration` (NULL: logs none). Accepts NULL. */
void listen_fds_finish(struct listen_fds *passed, const struct configuration *configuration, struct log *log);

#endif
