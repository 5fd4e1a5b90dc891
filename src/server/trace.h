/*
 * Looking on while a worker serves: `sluice explain` asks a worker of its own one request, and is told what
 * became of it. A worker of a server has no trace.
 */
#ifndef SERVER_TRACE_H
#define SERVER_TRACE_H

#include "server/module.h"

struct request_state;

struct trace {
    /* Asks the module `index` of module_table in the worker's place, and returns what it said; or does not, and says something for it. */
    enum outcome (*ask)(struct trace *trace, struct request_state *request, unsigned index);
    /* The request is over: its answer has left, or was cut. What it has is still there. */
    void (*finished)(struct trace *trace, struct request_state *request);
};

#endif
