/*
 * Upstreams of the configuration: groups of servers that requests are passed to. Immutable once loaded; the run-time
 * state of a worker is in upstream_pool.h.
 */
#ifndef UPSTREAM_UPSTREAM_H
#define UPSTREAM_UPSTREAM_H

#include "conf/conf_schema.h"
#include "io/listener.h"
#include "io/resolver.h"
#include "tls/tls_client.h"

enum upstream_balance { BALANCE_ROUND_ROBIN, BALANCE_LEAST_CONN, BALANCE_IP_HASH, BALANCE_HASH, BALANCE_RANDOM,
                        BALANCE_LEAST_TIME_HEADER, BALANCE_LEAST_TIME_LAST_BYTE };

/* The part of the server that uses a group: the group's variables are those of http or of stream. */
enum upstream_user { UPSTREAM_HTTP, UPSTREAM_STREAM, UPSTREAM_USERS };

/* One server of a group: an address, or a name resolved at run time, which may give several addresses. */
struct upstream_server {
    struct str text;                /* as written: "127.0.0.1:9001", "unix:/run/app.sock", "app.internal:80" */
    struct str host;                /* name to be resolved; empty: `address` is set */
    struct str service;             /* SRV service, whose records have ports, priorities and weights; empty: none */
    uint16_t port;
    struct listen_address address;
    uint64_t weight;
    uint64_t max_conns;             /* over all workers; 0: no limit */
    uint64_t max_fails;             /* failures, each within fail_timeout of the last, before it pauses; 0: never */
    uint64_t fail_timeout_ms;       /* the first pause; later ones are longer */
    uint64_t slow_start_ms;         /* ramp-up time of its weight after recovery */
    bool backup;                    /* used only if no other server is available */
    bool down;
};

/* A cookie that names the server of the client's session. */
struct upstream_sticky {
    const struct template *route;   /* the cookie's value in the request; NULL: no sticky sessions */
    struct str cookie;
    struct str attributes;          /* "; Path=/" and so on, as sent */
};

struct h2_client_request;

struct upstream_statuses {
    unsigned low, high;
};

/* Active health checks. */
struct upstream_check {
    struct str uri, host;
    int proxy_protocol;                     /* version of the PROXY protocol header that begins a check; 0: none */
    struct str proxy_header;                /* the header; empty: none */
    struct str request;                     /* over HTTP/1.1: the request as sent; empty: the check only connects */
    const struct h2_client_request *http2;  /* over HTTP/2, in place of `request`; NULL: HTTP/1.1 */
    struct upstream_statuses *match;        /* accepted statuses */
    size_t match_count;
    uint64_t interval_ms, timeout_ms;
    uint64_t fails, passes;                 /* consecutive results before the state changes */
    bool https;
    bool by_http2;                          /* upstream_check_complete sets `http2` */
};

/* TCP ports to which the sandbox of workers permits connections, for servers added at run time. */
struct upstream_ports {
    const struct upstream_port_range {
        uint16_t first, last;
    } *ranges;
    size_t count;
    bool any;
};

struct upstream {
    struct str name;
    struct upstream_server *servers;
    size_t count;
    enum upstream_balance balance;
    const struct template *key;                 /* of ip_hash and hash; NULL: none */
    struct upstream_sticky sticky;
    const struct upstream_check *check;         /* NULL: none */
    const struct resolver_settings *resolver;   /* for the names of its servers */
    uint64_t keepalive;                         /* idle connections kept per worker; 0: none */
    uint64_t keepalive_timeout_ms;
    uint64_t keepalive_requests;
    unsigned index;                             /* index among all groups of the configuration */
    enum upstream_user user;
    bool zone;                                  /* servers can be added and removed at run time */
    struct upstream_ports ports;                /* of `zone` */
    bool named;                                 /* an `upstream` block, not an address of a proxy_pass */
    struct upstream *next;
};

/* All groups of a configuration. Zeroed at first, except the arena. */
struct upstreams {
    struct arena *arena;
    struct upstream *first;
    struct upstream **last;
    unsigned count;
    bool any_address;                           /* variables choose the address of a server at run time */
    enum upstream_user user;                    /* the user of groups being added or searched */
    /* For addresses; NULL: the system's. */
    const struct resolver_settings *resolver[UPSTREAM_USERS];
    struct upstream_tls_context *tls_contexts;  /* owned: TLS contexts for proxy_pass and other gateways */
};

/* Default resolver settings. */
extern const struct resolver_settings upstream_resolver_default;

/* The settings of an `upstream` block, filled by its directives. */
struct upstream_settings;
extern const struct conf_group upstream_group;

/*
 * Sets the resolver of the http or stream scope (upstreams->user) for groups without a block. Called before the first
 * addition. 0 or -ENOMEM.
 */
MUST_CHECK int upstreams_begin(struct upstreams *upstreams, const struct upstream_settings *settings);
/* Adds the block `name`, whose scope was read. 0, -EINVAL (reported), or -ENOMEM. */
MUST_CHECK int upstreams_add(struct upstreams *upstreams, struct conf_reader *reader, const struct conf_node *at,
                             struct str name, const struct upstream_settings *settings);
/*
 * The group for `authority` ("backend", "127.0.0.1:9001", "[::1]", "app.internal:80", "unix:/run/app.sock"): a block
 * of that name, else a group of one server, created on first use. NULL with -EINVAL (malformed) or -ENOMEM.
 */
const struct upstream *upstreams_target(struct upstreams *upstreams, struct str authority, uint16_t default_port,
                                        int *out_error);

/* Parses an authority into a server with default parameters. 0 or -EINVAL. `text` is not copied. */
MUST_CHECK int upstream_server_parse(struct str text, uint16_t default_port, struct upstream_server *out_server);

/* The resolver settings for groups without a block. */
const struct resolver_settings *upstreams_resolver(const struct upstreams *upstreams, enum upstream_user user);
/* Initializes a group of one server with default settings; `server` must outlive it. */
void upstream_single(struct upstream *upstream, struct upstream_server *server);
/*
 * Creates a TLS context for these settings, unless there is one. 0, or -EINVAL with an error text in `out_error` (at
 * least 256 bytes). The texts of the settings outlive the configuration.
 */
MUST_CHECK int upstreams_add_tls(struct upstreams *upstreams, const struct tls_client_settings *settings,
                                 char *out_error, size_t error_size);
/* Frees all memory outside the arena. */
void upstreams_finish(struct upstreams *upstreams);
/* For upstream_conf.c: adds a group that is in the arena. */
void upstreams_append(struct upstreams *upstreams, struct upstream *upstream);

#endif
