/*
 * A module: a table of directives and a few functions, each optional. modules/meson.build lists modules in the order in which they are
 * asked; `filter` runs from last to first. What they may call is declared in server/module.h.
 */
#ifndef SITE_MODULE_INTERFACE_H
#define SITE_MODULE_INTERFACE_H

#include "conf/directive.h"

struct exchange;
struct stream;
struct worker;

enum outcome {
    OUTCOME_PASS,       /* not mine: ask the next module */
    OUTCOME_ANSWERED,   /* x->response has its status, headers and body */
    OUTCOME_PENDING,    /* I keep x and will call exchange_resume() exactly once, unless cancelled */
    OUTCOME_ALLOWED,      /* an access module is content (for `satisfy: any`) */
    OUTCOME_INTERNAL_REDIRECT,    /* x has a new URI: route again (at most LIMIT_INTERNAL_REDIRECTS times) */
};

/* What `sluice explain` says for a module that it does not ask, since that would ask others over the network. */
enum others {
    OTHERS_NOT_ASKED,   /* it is asked like any other */
    OTHERS_PASS,        /* what it would learn is taken for granted */
    OTHERS_ANSWER,      /* its answer comes from there */
};

/* What a module does in `stream`, which has no exchange. */
struct stream_part {
    /* A client has come, and its server is known, though not the one behind it. 0: go on; else the status that it is refused with (403, 503). */
    int (*connected)(struct stream *stream, const void *conf, void *state);
    /* A connection is over, whether it came as far as `connected` or not. NULL: nothing is to be done. */
    void (*ended)(struct stream *stream, const void *conf);
};

/*
 * The part of a module in the rules of a server, which are asked in the server's own scope before a location is looked for (as in nginx), for
 * the request and again after each internal redirect to a URI. Nothing else is asked then, unless one of them `settles`.
 */
enum server_rule {
    SERVER_RULE_NONE,
    SERVER_RULE_PREPARES, /* asked where another one decides */
    SERVER_RULE_DECIDES,  /* may answer, or change the URI */
};

struct module {
    const char *name;
    const struct directive *directives;             /* ends with a row without a name; NULL: none */
    size_t conf_size;
    int (*conf_check)(void *conf, struct conf_reader *reader, const struct conf_node *at);
    /* Of a scope as it was loaded: there is nothing for it to do, so neither answer nor shape is ever called with this conf. NULL: there always is. */
    bool (*idle)(const void *conf);
    int (*worker_start)(struct worker *worker, void **out_state);
    void (*worker_stop)(void *state);
    enum outcome (*answer)(struct exchange *x, const void *conf, void *state);
    int (*filter)(struct exchange *x, const void *conf); /* head unsent: edit it, wrap the body. 0 or -errno (answered 500) */
    bool (*wants_whole)(const struct exchange *x, const void *conf); /* of an answer whose fields are there: its shape needs all of it, and no part is to be given */
    void (*finish)(struct exchange *x, const void *conf); /* once for each exchange, wherever it was routed */
    void (*cancel)(struct exchange *x, void *state);   /* the client is gone while PENDING: let go, do not resume */
    const struct variable_table *variables;
    bool limits_rate;                               /* its shape applies what exchange_set_rate says, and is called then though it is idle */
    enum server_rule server_rule;                   /* its part before a location is looked for */
    /* Of a server_rule: it will answer, so that all modules before it are asked for the server, too. NULL: it cannot tell. */
    bool (*settles)(const struct exchange *x, const void *conf);
    bool access;                                    /* its answer says who may: `satisfy` counts it. Such modules stand together in the list */
    enum others others;                             /* whom it asks */
    const struct stream_part *stream;               /* NULL: it has no part there */
};

/* Every module of this build, in the order in which they are asked; NULL at the end. Generated from modules/meson.build. */
extern const struct module *const module_table[];

#endif
