/*
 * The heartbeat of a worker: a timer of its loop increments a number in shared memory, which the master checks.
 */
#ifndef SERVER_WORKER_HEARTBEAT_H
#define SERVER_WORKER_HEARTBEAT_H

#include "server/worker.h"

/* Starts the timer, if the worker has a master and worker_heartbeat_timeout is not off. */
void worker_heartbeat_start(struct worker *worker);
/* Cancels the timer. */
void worker_heartbeat_stop(struct worker *worker);

#endif
