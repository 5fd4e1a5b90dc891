/*
 * Upstreams as the configuration names them: groups of servers that requests are
 * passed to. Immutable once loaded; what a worker knows of them is upstream_pool.h's.
 */
#ifndef UPSTREAM_UPSTREAM_H
#define UPSTREAM_UPSTREAM_H

#include "conf/conf_schema.h"
#include "io/listener.h"
#include "io/resolver.h"
#include "tls/tls_client.h"

enum upstream_balance { BALANCE_ROUND_ROBIN, BALANCE_LEAST_CONN, BALANCE_IP_HASH, BALANCE_HASH, BALANCE_RANDOM,
                        BALANCE_LEAST_TIME_HEADER, BALANCE_LEAST_TIME_LAST_BYTE };

/* Who passes on to a group: the keys of its servers are made of the variables that there are. */
enum upstream_user { UPSTREAM_HTTP, UPSTREAM_STREAM, UPSTREAM_USERS };

/* One server of a group: an address, or a name that is resolved while the worker runs, and may become several. */
struct upstream_server {
    struct str text;                /* as it was written: "127.0.0.1:9001", "unix:/run/app.sock", "app.internal:80" */
    struct str host;                /* a name to be resolved; empty: `address` is known */
    struct str service;             /* of SRV records, which bring ports, priorities and weights; empty: none */
    uint16_t port;
    struct listen_address address;
    uint64_t weight;
    uint64_t max_conns;             /* of all workers; 0: no limit */
    uint64_t max_fails;             /* in a row, before it is left alone for fail_timeout; 0: never */
    uint64_t fail_timeout_ms;       /* the first pause; the next ones are longer */
    uint64_t slow_start_ms;         /* in which its weight grows after it is back */
    bool backup;                    /* asked only where no other can be */
    bool down;
};

/* A cookie that names the server which a client was sent to. */
struct upstream_sticky {
    const struct template *route;   /* its value in the request; NULL: no such cookie */
    struct str cookie;
    struct str attributes;          /* "; Path=/" and so on, as they are sent */
};

struct upstream_statuses {
    unsigned low, high;
};

/* How servers are asked whether they are well. */
struct upstream_check {
    struct str uri, host;
    int proxy_protocol;                     /* with a header of the PROXY protocol: 0 no, else its version */
    struct str proxy_header;            /* that header; empty: none */
    struct str request;             /* as it is sent; empty: to be connected is enough */
    struct upstream_statuses *match; /* the good ones */
    size_t match_count;
    uint64_t interval_ms, timeout_ms;
    uint64_t fails, passes;         /* in a row, before it counts */
    bool https;
};

struct upstream {
    struct str name;
    struct upstream_server *servers;
    size_t count;
    enum upstream_balance balance;
    const struct template *key;     /* of ip_hash and hash; NULL: none */
    struct upstream_sticky sticky;
    const struct upstream_check *check; /* NULL: none */
    const struct resolver_settings *resolver; /* for its names */
    uint64_t keepalive;             /* idle connections kept by a worker; 0: none */
    uint64_t keepalive_timeout_ms;
    uint64_t keepalive_requests;
    unsigned index;                 /* its place among all of the configuration */
    enum upstream_user user;
    bool named;                     /* an `upstream` block, not an address of a proxy_pass */
    struct upstream *next;
};

/* All of one configuration. Zeroed at first, but for the arena. */
struct upstreams {
    struct arena *arena;
    struct upstream *first;
    struct upstream **last;
    unsigned count;
    enum upstream_user user;        /* whose are being added, and found */
    const struct resolver_settings *resolver[UPSTREAM_USERS]; /* for addresses; NULL: this machine's */
    struct upstream_tls_context *tls_contexts;  /* owned: TLS, as proxy_pass and its kin want it */
};

/* Settings for names where nothing was said. */
extern const struct resolver_settings upstream_resolver_default;

/* The directives of an `upstream` block, and what they are read into. */
struct upstream_settings;
extern const struct conf_group upstream_group;

/* What the directives of the http scope say for groups that are no block. Before the first is added. 0 or -ENOMEM. */
MUST_CHECK int upstreams_begin(struct upstreams *upstreams, const struct upstream_settings *settings);
/*
 * Adds the block `name`, as its scope was read. 0, -EINVAL (reported), or -ENOMEM.
 */
MUST_CHECK int upstreams_add(struct upstreams *upstreams, struct conf_reader *reader, const struct conf_node *at, struct str name,
                             const struct upstream_settings *settings);
/*
 * The group for `authority` ("backend", "127.0.0.1:9001", "[::1]", "app.internal:80", "unix:/run/app.sock"): a block of that
 * name, else one server, made when first asked for. NULL with -EINVAL: no authority, or -ENOMEM.
 */
const struct upstream *upstreams_target(struct upstreams *upstreams, struct str authority, uint16_t default_port, int *out_error);

/*
 * Reads one authority into a server with the usual weight and patience. 0 or -EINVAL. `text` is not copied.
 */
MUST_CHECK int upstream_server_parse(struct str text, uint16_t default_port, struct upstream_server *out_server);

/* For addresses of that user. */
const struct resolver_settings *upstreams_resolver(const struct upstreams *upstreams, enum upstream_user user);
/* Makes a group of one server, with what such a group gets; `server` outlives it. */
void upstream_single(struct upstream *upstream, struct upstream_server *server);
/* Makes TLS for these settings, once. 0, or -EINVAL with a sentence in `out_error` (at least 256 bytes). Their texts outlive the configuration. */
MUST_CHECK int upstreams_add_tls(struct upstreams *upstreams, const struct tls_client_settings *settings, char *out_error, size_t error_size);
/* Frees what is not in the arena. */
void upstreams_finish(struct upstreams *upstreams);
/* For upstream_conf.c: takes a group that lies in the arena. */
void upstreams_take(struct upstreams *upstreams, struct upstream *upstream);

#endif
