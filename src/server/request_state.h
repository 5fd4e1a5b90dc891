/*
 * The server's part of an exchange: where it was routed, and which module has
 * it. In the exchange's arena; x->owner points here.
 */
#ifndef SERVER_REQUEST_STATE_H
#define SERVER_REQUEST_STATE_H

#include "server/module.h"
#include "server/worker.h"

struct request_state {
    struct exchange *x;
    struct connection *connection;
    struct worker *worker;
    const struct virtual_server *server;
    const struct location *location;
    unsigned next_module;           /* index of the module to ask next */
    unsigned internal_redirects;
    const struct location *named;   /* where route_location goes next (error_page 404 = @name); else NULL */
    bool rewritten;                 /* the path is no longer the client's */
    struct str alias_rest;          /* what follows a whole alias for the current path (exchange_use_file) */
    bool has_security_policy;                /* exchange_set_security_policy */
    struct str response_type;            /* exchange_set_response_type */
    bool in_server;                 /* the server's own rules are asked: `location` is its scope */
    bool rules_checked;               /* they were asked for this URI: route_next looks for a location */
    bool rules_ended;               /* they answered an error, and its page is not asked for by them */
    const struct location *return_skipped; /* the scope of exchange_skip_return; NULL: none */
    bool internal;                  /* internally redirected: `internal` locations may answer */
    bool ends_with_client;          /* exchange_end_with_client */
    bool pending;                   /* a module keeps it */
    bool allowed;                   /* satisfy: any, and a module has allowed the request */
    int denied;                     /* or the status of a refusal that waits for the others; 0: none */
    struct headers denied_headers;  /* and what it said */
    struct headers headers_always;        /* exchange_set_headers_always */
    bool error_page;                /* an error page is being made: no second one */
    struct headers error_headers;   /* what the error said, for its page */
    int error_status;               /* the status that the error page leaves with; 0: its own */
    enum outcome resumed_with;
    struct list resumed;            /* in worker->resumed */
    struct upgraded_session *upgraded;    /* exchange_upgrade; NULL: HTTP goes on */
    bool upgrade_done;                 /* the connection is the upgraded's */
    struct request_module_state *states;     /* exchange_state: of the modules that asked for one */
    struct user_variable_values user_values;          /* of the configuration's own variables */
    uint64_t filtering;               /* bits of modules whose shape is called though they are idle: exchange_set_rate */
    uint64_t rate;                  /* exchange_set_rate; valid where `filtering` has a bit */
    bool early;                     /* it came before the handshake was over: $ssl_early_data */
    bool regex_failed;                /* a regular expression failed: 500 */
    struct exchange *parent;        /* whose child this is (subrequest.c), held; NULL: a client asks */
    struct list children;           /* struct subrequest */
    unsigned child_count;                 /* how many there are */
    char *request_id;               /* 32 hex digits once $request_id was asked for */
    bool client_known;              /* exchange_set_client: `client` is whom the request comes from, told by a peer that is trusted */
    bool trusted;                   /* and what the fields say is believed */
    union proxy_address client;
    uint8_t tls_path, tls_reason;   /* copied from the wire at the end, for the log */
    uint64_t zero_copy;
};

/* The request of an exchange whose head is whole, in its arena; x->owner is set. NULL when out of memory. */
struct request_state *request_state_create(struct exchange *x, struct connection *connection, struct worker *worker);

/* $status: what was answered; 499 (nginx's number) where the client left before that, 0 where nothing was answered for another reason. */
int request_status(const struct request_state *request);

static inline struct request_state *request_state_of(const struct exchange *x)
{
    return x->owner;
}

/* The request that a client asked for: its own, or that of the exchange it is a child of. */
static inline struct request_state *client_request_state_of(const struct exchange *x)
{
    while (request_state_of(x)->parent)
        x = request_state_of(x)->parent;
    return request_state_of(x);
}

#endif
