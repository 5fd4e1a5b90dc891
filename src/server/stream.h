/*
 * Connections below HTTP: a client, a server behind, and bytes both ways until both have said all.
 */
#ifndef SERVER_STREAM_H
#define SERVER_STREAM_H

#include "server/journey.h"

/* The listener of a server of `stream` handed us a socket (`owner` is the worker). */
void stream_accept(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer);
/* At once, everything. */
void stream_abort_all(struct worker *worker);

#endif
