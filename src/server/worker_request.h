/*
 * Requests of a worker to the master: changes in all processes, for the control socket. The master handles those of a
 * worker in their order. Also applies the changes that the master sends to all workers.
 */
#ifndef SERVER_WORKER_REQUEST_H
#define SERVER_WORKER_REQUEST_H

#include "server/worker.h"

/* Part of its owner. Zeroed: not sent. */
struct worker_request {
    struct list link;               /* in worker->requests while it waits */
    uint32_t number;
    /* The master has handled it: it may have failed, or another one followed. */
    void (*done)(struct worker_request *request);
};

/*
 * Sends a request of `kind` with `index`. `done`, set by the caller, is called once, not inside this function, unless
 * worker_request_cancel precedes it. 0; -EAGAIN: the master does not read; or another -errno.
 */
MUST_CHECK int worker_request_send(struct worker *worker, struct worker_request *request, enum channel_kind kind,
                                   uint32_t index);
/* For a request that was sent: `done` is not called any more. The master handles the request nevertheless. */
void worker_request_cancel(struct worker_request *request);
/* CHANNEL_DONE: the master has handled all requests up to this number. */
void worker_requests_done(struct worker *worker, uint32_t number);
/* CHANNEL_LOG_LEVEL: changes the level of the error log, and the debug log of open connections with it. */
void worker_change_log_level(struct worker *worker, uint32_t level);

#endif
