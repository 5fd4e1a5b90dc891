/*
 * The listening sockets of a generation, owned by the master as long as the address is configured. One socket per
 * address and worker (SO_REUSEPORT), so that the kernel distributes connections. The replacement of a worker
 * and the next generation inherit the sockets with their queues. If the next generation has fewer workers, some get
 * several sockets of an address, because closing one would reset its queued connections.
 */
#ifndef MASTER_SOCKETS_H
#define MASTER_SOCKETS_H

#include "site/configuration.h"

struct sockets {
    /* [endpoint * slots + slot]; -1: none. A unix: address, or one from LISTEN_FDS, has one socket for all. */
    int *fds;
    size_t endpoints;
    unsigned workers;
    unsigned slots;                             /* at least `workers`; a slot belongs to worker number slot % workers */
    bool keep_paths;                            /* unix: paths of a service manager or another master */
    const struct configuration *configuration;  /* not owned; has the addresses */
};

/*
 * Opens all sockets. Returns 0, -ENOMEM, or another -errno after one log line per failed address ("bind() to
 * 0.0.0.0:80 failed (98: Address already in use)"); then none is open. Sockets of addresses that are also in `before`
 * are inherited, with their queued connections; NULL: none.
 */
MUST_CHECK int sockets_open(struct sockets *sockets, const struct configuration *configuration, unsigned workers,
                            const struct sockets *before, struct log *log);
/* Returns the socket in a slot, or -1. */
int sockets_get(const struct sockets *sockets, size_t endpoint, unsigned slot);
/*
 * Writes the descriptors without repetition, slot by slot within each endpoint, to `out_fds` (endpoints * slots).
 * Returns their number.
 */
size_t sockets_list(const struct sockets *sockets, int *out_fds);
/* In a worker: closes the sockets of all others. */
void sockets_close_others(struct sockets *sockets, unsigned worker);
/* Closes all; in the master also removes unix: paths if `unlink_paths`. Accepts a zeroed struct. */
void sockets_close(struct sockets *sockets, bool unlink_paths);
/* Closes all, and removes the unix: paths that are not in `others`. */
void sockets_close_except(struct sockets *sockets, const struct sockets *others);

#endif
