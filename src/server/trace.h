/*
 * Hooks of `sluice explain`, which sends one request through a separate worker and records the modules called. A
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
    enum outcome (*call_module)(struct trace *trace, struct request_state *request, unsigned index);
    /* Called after the response was sent or aborted, before the request's memory is freed. */
    void (*finished)(struct trace *trace, struct request_state *request);
};

#endif
