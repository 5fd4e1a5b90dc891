/*
 * Observation of a worker: `sluice explain` sends one request through a worker of its own and records the result. A
 * worker that serves clients has no trace.
 */
#ifndef SERVER_TRACE_H
#define SERVER_TRACE_H

#include "server/module.h"

struct request_state;

struct trace {
    /*
     * Called in place of module `index` of module_table: calls the module and returns its outcome, or returns
     * another outcome without calling it.
     */
    enum outcome (*ask)(struct trace *trace, struct request_state *request, unsigned index);
    /* The request has ended: its response was sent or cut. Its memory is still valid. */
    void (*finished)(struct trace *trace, struct request_state *request);
};

#endif
