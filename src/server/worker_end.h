/*
 * The end of a worker. worker.c waits for the end of its connections.
 */
#ifndef SERVER_WORKER_END_H
#define SERVER_WORKER_END_H

#include "server/worker.h"

/* Ends all connections at once. */
void worker_stop(struct worker *worker);
/*
 * Accepts no connections, and completes open requests. `retiring`: kept-alive connections may send one more request,
 * until a second call without it closes the idle ones.
 */
void worker_drain(struct worker *worker, bool retiring);

#endif
