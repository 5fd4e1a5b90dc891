/*
 * The server's part of an exchange: where it was routed, and which module has
 * it. In the exchange's arena; x->owner points here.
 */
#ifndef SERVER_VISIT_H
#define SERVER_VISIT_H

#include "server/module.h"
#include "server/worker.h"

struct visit {
    struct exchange *x;
    struct journey *journey;
    struct worker *worker;
    const struct virtual_server *server;
    const struct location *location;
    unsigned next_module;           /* index of the module to ask next */
    unsigned reroutes;
    bool internal;                  /* rerouted: `internal` locations may answer */
    bool pending;                   /* a module keeps it */
    bool error_page;                /* an error page is being made: no second one */
    enum outcome resumed_with;
    struct list resumed;            /* in worker->resumed */
    void **states;                  /* exchange_state, by module index */
    struct str captures;
    uint8_t tls_path, tls_reason;   /* copied from the wire at the end, for the log */
    uint64_t zero_copy;
};

static inline struct visit *visit_of(const struct exchange *x)
{
    return x->owner;
}

#endif
