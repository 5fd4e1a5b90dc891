/*
 * The listeners of a worker: its own listening sockets, and those of a dead worker until that is replaced.
 */
#ifndef SERVER_WORKER_LISTEN_H
#define SERVER_WORKER_LISTEN_H

#include "server/worker.h"

/* Starts accepting from args->sockets. Returns 0 or -ENOMEM. */
MUST_CHECK int worker_listen(struct worker *worker, const struct worker_args *args);
/* Accepts also from a dead worker's socket; owns fd. `socket_index`: endpoint * workers + that worker's number. */
void worker_listen_for(struct worker *worker, uint32_t socket_index, int fd);
/* Stops accepting from the sockets of worker `number`, which was replaced. */
void worker_unlisten_for(struct worker *worker, uint32_t number);

/* Calls listener_stop or another function of io/listener.h for all; worker->listeners_open counts down as they stop. */
void worker_for_all_listeners(struct worker *worker, void (*operation)(struct listener *listener));
/* Calls listener_pause or listener_resume for all, according to worker->paused. */
void worker_listen_pause(struct worker *worker);

#endif
