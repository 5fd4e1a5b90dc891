/*
 * The server's part of an exchange: its location, and the module that handles it. In the exchange's arena; x->owner
 * points to it.
 */
#ifndef SERVER_REQUEST_STATE_H
#define SERVER_REQUEST_STATE_H

#include "server/module.h"
#include "server/worker.h"

enum { STATUS_CLOSE = 444 };        /* as in nginx: the connection is closed without a response */

struct request_state {
    struct exchange *x;
    struct connection *connection;
    struct worker *worker;
    const struct virtual_server *server;
    const struct location *location;    /* the server's own scope until a location is found */
    unsigned next_module;           /* index of the module to call next */
    unsigned internal_redirects;
    const struct location *named;   /* next target of route_location (error_page 404 = @name); else NULL */
    bool rewritten;                 /* the path differs from the client's */
    struct str alias_rest;          /* appended to a whole alias to map the current path (exchange_rewrite_to_file) */
    bool has_security_policy;       /* exchange_set_security_policy */
    struct str response_type;       /* exchange_set_response_type */
    bool in_server_rules;           /* the server-level rules run: `location` is the server's scope */
    bool rules_checked;             /* they ran for this URI: route_next finds a location */
    bool rules_ended;               /* they responded with an error: they do not run for its page */
    /* Scope whose `return` is disabled (exchange_skip_return); NULL: none. */
    const struct location *return_skipped;
    bool internal;                  /* internally redirected: `internal` locations may respond */
    bool ends_with_client;          /* exchange_end_with_client */
    bool pending;                   /* a module keeps the exchange (OUTCOME_PENDING) */
    bool access_allowed;            /* satisfy: any, and an access module allowed the request */
    int access_denied_status;       /* status of a denial, kept until all access modules have run; 0: none */
    struct headers denied_headers;  /* and its fields */
    struct headers override_headers;  /* exchange_override_headers */
    bool error_page;                /* an error page is in progress */
    bool error_page_final;          /* no second one follows: recursive_error_pages was off where the first one began */
    struct headers error_headers;   /* the error's fields, for its page */
    int error_status;               /* status to send with the error page; 0: the page's own */
    enum outcome resumed_with;
    struct list resumed;            /* in worker->resumed */
    /* exchange_upgrade; NULL: HTTP continues. */
    struct upgraded_session *upgraded;
    bool upgrade_done;              /* the connection belongs to the upgraded session */
    /* exchange_state: of the modules that called it. */
    struct request_module_state *states;
    /* Values of the variables defined by the configuration. */
    struct user_variable_values user_values;
    uint64_t filtering;             /* bits of modules whose `filter` runs although they are idle: exchange_set_rate */
    uint64_t rate;                  /* exchange_set_rate; valid where `filtering` has a bit */
    bool early;                     /* received before the handshake completed: $ssl_early_data */
    bool regex_failed;              /* a regular expression failed: 500 */
    struct exchange *parent;        /* parent exchange of a subrequest (subrequest.c), held; NULL: a client's request */
    struct list children;           /* struct subrequest */
    unsigned child_count;           /* number of children */
    char *request_id;               /* 32 hex digits once $request_id was evaluated */
    bool client_known;              /* exchange_set_client: `client` is the address given by a trusted peer */
    bool trusted;                   /* and the forwarding fields are trusted */
    union proxy_address client;
    uint8_t tls_path, tls_reason;   /* copied from the wire when the response ends, for the log */
    uint64_t zero_copy;
};

/*
 * Creates the request state of an exchange whose head is complete, in its arena, and sets x->owner. NULL when out of
 * memory.
 */
struct request_state *request_state_create(struct exchange *x, struct connection *connection, struct worker *worker);

/*
 * Returns $status: the status of the response. Without a response: 499 (nginx's number) if the client closed the
 * connection, else 0.
 */
int request_status(const struct request_state *request);

/* Applies the sizes and timeouts of the request's location from now on. */
void request_apply_settings(struct request_state *request);

static inline struct request_state *request_state_of(const struct exchange *x)
{
    return x->owner;
}

/* Returns the client's request: the exchange's own, or that of the exchange of which it is a subrequest. */
static inline struct request_state *client_request_state_of(const struct exchange *x)
{
    while (request_state_of(x)->parent)
        x = request_state_of(x)->parent;
    return request_state_of(x);
}

#endif
