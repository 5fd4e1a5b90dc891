/*
 * What a worker accepts from: its own listening sockets, and those of a
 * worker that died, for as long as that one has no successor.
 */
#ifndef SERVER_WORKER_LISTEN_H
#define SERVER_WORKER_LISTEN_H

#include "server/worker.h"

/* Accepts from start->sockets. 0 or -ENOMEM. */
MUST_CHECK int worker_listen(struct worker *worker, const struct worker_start *start);
/* Accepts from a dead worker's socket, too; owns fd. `place` counts endpoints, and workers within each. */
void worker_listen_for(struct worker *worker, uint32_t place, int fd);
/* Worker number `number` lives again. */
void worker_unlisten_for(struct worker *worker, uint32_t number);

/* listener_stop or listener_drain for all; worker->listeners_open counts down as they end. */
void worker_listen_end(struct worker *worker, void (*how)(struct listener *listener));
/* listener_pause or listener_resume for all, as worker->paused says. */
void worker_listen_pause(struct worker *worker);

#endif
