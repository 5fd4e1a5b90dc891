/*
 * Probes whether a listening address is free, without SO_REUSEPORT, which would let two servers of one user share a
 * port unnoticed. A unix: socket that rejects connections is removed.
 */
#ifndef MASTER_SOCKET_PROBE_H
#define MASTER_SOCKET_PROBE_H

#include "io/listener.h"

/* Returns 0 if the address is free, else -errno (-EADDRINUSE). */
MUST_CHECK int socket_probe(const struct listen_address *address);
/*
 * The same, but waits up to half a second for the address: the kernel closes the sockets used by io_uring some time
 * after the exit of the process.
 */
MUST_CHECK int socket_probe_again(const struct listen_address *address);

#endif
