/*
 * The settings shared by all gateways: target, connecting, sending, receiving.
 */
#ifndef MODULES_GATEWAY_GATEWAY_CONF_H
#define MODULES_GATEWAY_GATEWAY_CONF_H

#include "modules/gateway/gateway_cache.h"
#include "server/module.h"
#include "upstream/upstream_pool.h"
#include "upstream/upstream_ssl.h"
#include "wire/proxy_header.h"

struct gateway;

/* A parsed "http://backend/uri". */
struct gateway_target {
    bool https;
    struct str authority;           /* "backend", "127.0.0.1:9001", "unix:/run/app.sock" */
    struct str uri;                 /* from the slash on; data NULL: none */
};

struct gateway_pass {
    const struct template *text;        /* NULL: not passed on */
    struct gateway_target target;       /* if it has no variable */
    const struct upstream *upstream;    /* if it has no variable; else the group is found per request */
    bool set_in_location;               /* set in a location: nested locations do not inherit it */
};

/* Conditions for another attempt: bits in the order of gateway_next_words. */
enum gateway_next {
    NEXT_ERROR = 1 << 0,
    NEXT_TIMEOUT = 1 << 1,
    NEXT_INVALID_HEADER = 1 << 2,
    NEXT_NON_IDEMPOTENT = 1 << 3,
    NEXT_OFF = 1 << 4,
    NEXT_HTTP_403 = 1 << 5,
    NEXT_HTTP_404 = 1 << 6,
    NEXT_HTTP_429 = 1 << 7,
    NEXT_HTTP_500 = 1 << 8,
    NEXT_HTTP_502 = 1 << 9,
    NEXT_HTTP_503 = 1 << 10,
    NEXT_HTTP_504 = 1 << 11,
};

/* Ignored response fields: bits in the order of gateway_ignored_headers. */
enum gateway_ignore {
    IGNORE_X_ACCEL_EXPIRES = 1 << 0, /* this and the next four concern the cache */
    IGNORE_EXPIRES = 1 << 1,
    IGNORE_CACHE_CONTROL = 1 << 2,
    IGNORE_SET_COOKIE = 1 << 3,
    IGNORE_VARY = 1 << 4,
    IGNORE_X_ACCEL_REDIRECT = 1 << 5,
    IGNORE_X_ACCEL_BUFFERING = 1 << 6,
    IGNORE_X_ACCEL_LIMIT_RATE = 1 << 7,
    IGNORE_X_ACCEL_CHARSET = 1 << 8,
};

/* Buffering of bodies. */
struct gateway_buffering {
    bool requests;                  /* the request body is read before the upstream server is contacted */
    bool responses;                 /* the response is read as fast as the upstream server sends */
    uint64_t count, size;           /* buffers in memory: number, and bytes of one */
    uint64_t file_max;
    struct str directory;
};

struct gateway_conf {
    const struct gateway *gateway;
    struct gateway_pass pass;
    struct gateway_buffering buffering;
    struct conf_words hide_headers, pass_headers;
    uint64_t connect_timeout_ms, send_timeout_ms, read_timeout_ms;
    uint64_t buffer_size;               /* maximum head of a response */
    unsigned next;                      /* enum gateway_next */
    uint64_t next_tries;                /* 0: the number of servers */
    uint64_t next_timeout_ms;           /* 0: no limit */
    struct upstream_ssl_conf ssl;
    bool ignore_client_abort;
    const struct template *method;      /* NULL: the client's */
    const struct template *set_body;    /* NULL: the client's body, if any */
    bool drop_body;                     /* the client's body is not sent */
    bool intercept_errors;
    bool force_ranges;
    const struct template *limit_rate;  /* NULL: none */
    union proxy_address bind;           /* the local address of connections; AF_UNSPEC: the system chooses it */
    int proxy_protocol;                 /* PROXY protocol header before the request: 0: none; else its version */
    struct gateway_cache_conf cache;
    /* For the fields that are always set. */
    const struct template *remote_addr, *peer_addr, *scheme;
};

extern const char *const gateway_ignored_headers[]; /* in the order of enum gateway_ignore */
extern const char *const gateway_next_words[]; /* in the order of enum gateway_next */

/* Reads "8 8k", a number and a size, into two uint64_t. */
directive_row gateway_read_buffers;
/* Compiles the templates that every gateway needs. 0, -EINVAL (reported) or -ENOMEM. */
MUST_CHECK int gateway_conf_complete(struct gateway_conf *conf, struct conf_reader *reader, const struct conf_node *at);

#endif
