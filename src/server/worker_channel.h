/*
 * The worker's end of the channel to the master (master/channel.h).
 */
#ifndef SERVER_WORKER_CHANNEL_H
#define SERVER_WORKER_CHANNEL_H

#include "master/channel.h"
#include "server/worker.h"

/*
 * Applies messages of the master from now on; without a master it does nothing. When the master exits, the worker
 * stops.
 */
void worker_channel_start(struct worker *worker);
/* Sends the master a message without index and descriptor; an error is logged. Without a master it does nothing. */
void worker_channel_send(struct worker *worker, enum channel_kind kind);

#endif
