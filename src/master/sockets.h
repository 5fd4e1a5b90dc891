/*
 * The listening sockets of a generation: the master's, for as long as the address is
 * configured. One socket per address and worker (SO_REUSEPORT), so that the kernel spreads
 * connections; a worker that is replaced leaves its sockets, with what queues there, to its successor, and so does a
 * generation. Where that has fewer workers, some have several sockets of an address: closing one would reset its queue.
 */
#ifndef MASTER_SOCKETS_H
#define MASTER_SOCKETS_H

#include "site/configuration.h"

struct sockets {
    int *fds;                       /* [endpoint * slots + slot]; -1: none. A unix: address has one for all */
    size_t endpoints;
    unsigned workers;
    unsigned slots;                 /* as many as workers, or more; a slot is worker number slot % workers's */
    const struct configuration *configuration; /* not owned; names the addresses */
};

/*
 * 0 where nobody listens on the address, else -errno (-EADDRINUSE). SO_REUSEPORT would let two servers of one user share a
 * port unnoticed: so it is tried without. A unix: socket that nobody answers is a left-over and is removed.
 */
MUST_CHECK int socket_probe(const struct listen_address *address);

/*
 * Opens all. 0, or -errno after one line per refused address ("bind() to 0.0.0.0:80 failed (98: Address already in use)"); then none is
 * open. Addresses that `before` has too are its sockets, so that nobody who is queued there is lost; NULL: there is none.
 */
MUST_CHECK int sockets_open(struct sockets *sockets, const struct configuration *configuration, unsigned workers,
                            const struct sockets *before, struct log *log);
/* The socket at a slot, or -1. */
int sockets_get(const struct sockets *sockets, size_t endpoint, unsigned slot);
/* In a worker: closes those of all others. */
void sockets_close_others(struct sockets *sockets, unsigned worker);
/* Closes all; in the master also removes unix: paths where `unlink_paths`. Accepts a zeroed struct. */
void sockets_close(struct sockets *sockets, bool unlink_paths);
/* Closes all, and removes the unix: paths that `others` has not. */
void sockets_leave_to(struct sockets *sockets, const struct sockets *others);

#endif
