/*
 * The listening sockets of a generation: the master's, for as long as the address is
 * configured. One socket per address and worker (SO_REUSEPORT), so that the kernel spreads
 * connections; a worker that is replaced leaves its sockets, with what queues there, to its successor.
 */
#ifndef SERVER_SOCKETS_H
#define SERVER_SOCKETS_H

#include "server/configuration.h"

struct sockets {
    int *fds;                       /* [endpoint * workers + worker]; a unix: address has one for all */
    size_t endpoints;
    unsigned workers;
    const struct configuration *configuration; /* not owned; names the addresses */
};

/*
 * 0 where nobody listens on the address, else -errno (-EADDRINUSE). SO_REUSEPORT would let two servers of one user share a
 * port unnoticed: so it is tried without. A unix: socket that nobody answers is a left-over and is removed.
 */
MUST_CHECK int socket_probe(const struct listen_address *address);

/* Opens all. 0, or -errno after one line per refused address ("bind() to 0.0.0.0:80 failed (98: Address already in use)"); then none is open. */
MUST_CHECK int sockets_open(struct sockets *sockets, const struct configuration *configuration, unsigned workers, struct log *log);
int sockets_get(const struct sockets *sockets, size_t endpoint, unsigned worker);
/* In a worker: closes those of all others. */
void sockets_keep_own(struct sockets *sockets, unsigned worker);
/* Closes all; in the master also removes unix: paths where `unlink_paths`. Accepts a zeroed struct. */
void sockets_close(struct sockets *sockets, bool unlink_paths);

#endif
