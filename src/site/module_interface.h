/*
 * A module: a table of directives and a few functions, each optional. modules/meson.build lists the modules in the
 * order in which `handler` is called; `filter` is called from last to first. The functions they may call are declared
 * in server/module.h.
 */
#ifndef SITE_MODULE_INTERFACE_H
#define SITE_MODULE_INTERFACE_H

#include "conf/directive.h"

struct exchange;
struct stream;
struct worker;

enum outcome {
    OUTCOME_DECLINED,               /* not handled: continue with the next module */
    OUTCOME_RESPONDED,              /* x->response has its status, headers and body */
    OUTCOME_PENDING,                /* kept: the module calls exchange_resume() exactly once, unless cancelled */
    OUTCOME_ALLOWED,                /* an access module allows the request (for `satisfy: any`) */
    OUTCOME_INTERNAL_REDIRECT,      /* x has a new URI: locate again (at most LIMIT_INTERNAL_REDIRECTS times) */
};

/* How `sluice explain` handles a module that would make network requests. */
enum explain_mode {
    EXPLAIN_CALL,       /* called like any other module */
    EXPLAIN_SKIP,       /* not called: OUTCOME_DECLINED is assumed */
    EXPLAIN_UPSTREAM,   /* not called: the response would come from the network */
};

/* A module's functions in `stream`, which has no exchange. */
struct stream_part {
    /*
     * Called when a connection's virtual server is selected, before its upstream server. Returns 0: continue; or the
     * status of the rejection (403, 503).
     */
    int (*connected)(struct stream *stream, const void *conf, void *state);
    /* Called when a connection has ended, also without `connected`. May be NULL. */
    void (*ended)(struct stream *stream, const void *conf);
};

/*
 * The part of a module in the server-level rules, which run in the server's own scope before a location is found (as
 * in nginx). They run for the request, and again after each internal redirect to a URI. No other modules run then,
 * unless one of the rules `responds`.
 */
enum server_rule {
    SERVER_RULE_NONE,
    SERVER_RULE_PREPARES, /* runs if a rule that may respond does */
    SERVER_RULE_RESPONDS, /* may respond or change the URI */
};

struct module {
    const char *name;
    const struct directive *directives; /* terminated by a row without a name; NULL: none */
    size_t conf_size;
    int (*conf_check)(void *conf, struct conf_reader *reader, const struct conf_node *at);
    /*
     * Returns true if the module does nothing in this scope: then neither `handler` nor `filter` is called with this
     * conf. NULL: never idle.
     */
    bool (*idle)(const void *conf);
    bool (*upgrades)(const void *conf); /* true if it may respond with 101, unless idle. NULL: it never does */
    int (*worker_start)(struct worker *worker, void **out_state);
    void (*worker_stop)(void *state);
    enum outcome (*handler)(struct exchange *x, const void *conf, void *state);
    /* Called before the head is sent: may edit it and wrap the body. 0 or -errno (status 500). */
    int (*filter)(struct exchange *x, const void *conf);
    /*
     * Called with the response's fields set. True if the filter needs the whole body: no range may be served. NULL: it
     * never does.
     */
    bool (*needs_whole_body)(const struct exchange *x, const void *conf);
    /* Called once per exchange, in every location. */
    void (*finish)(struct exchange *x, const void *conf);
    /* False: `finish` is needed in no location of this configuration. NULL: it is. */
    bool (*finishes)(const void *conf);
    /* The exchange ends while PENDING: release resources, do not resume. */
    void (*cancel)(struct exchange *x, void *state);
    const struct variable_table *variables;
    bool limits_rate;                   /* its filter applies exchange_set_rate, and then runs even if idle */
    enum server_rule server_rule;       /* its part before a location is found */
    /*
     * With a server_rule: returns true if it will respond; then all modules of the server's own scope run, too. NULL:
     * not known.
     */
    bool (*responds)(const struct exchange *x, const void *conf);
    /* An access check that `satisfy` counts. Such modules are adjacent in the list. */
    bool access;
    enum explain_mode explain_mode;     /* for `sluice explain` */
    bool control;                       /* called for requests on the control socket (`control`), and for no others */
    const struct stream_part *stream;   /* NULL: none */
};

/* Every module of this build in calling order, NULL-terminated. Generated from modules/meson.build. */
extern const struct module *const module_table[];

#endif
