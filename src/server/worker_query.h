/*
 * A query of this worker for all workers, for the control socket (server/connection_query.h). The master forwards it,
 * and sends this worker the descriptor from which it reads the responses.
 */
#ifndef SERVER_WORKER_QUERY_H
#define SERVER_WORKER_QUERY_H

#include "server/connection_query.h"

struct worker_query;

struct query_events {
    /* A packet that passed query_response_valid. */
    void (*response)(void *owner, const struct query_response *response);
    /*
     * All workers have responded, or the time is over. `workers`: count of running workers; 0: the master did not
     * forward the query.
     */
    void (*ended)(void *owner, uint64_t workers, uint64_t responded);
};

/*
 * Sends a query: `number` is the connection to be closed, 0 lists connections. The events are called later, `ended`
 * once and last. NULL: out of memory, too many queries in progress, or the master cannot be reached. Above a rate,
 * queries are sent later.
 */
struct worker_query *worker_query_start(struct worker *worker, uint64_t number, const struct query_events *events,
                                        void *owner);
/* Cancels the events. The query must not be used afterwards. */
void worker_query_cancel(struct worker_query *query);
/* CHANNEL_RESPONSES: the responses to query `index` of this worker, from `workers` workers, arrive on `fd` (owned). */
void worker_query_responses(struct worker *worker, uint32_t index, uint64_t workers, int fd);

#endif
