/*
 * The response cache as a gateway sees it: what the configuration says of it, and a table of functions. A location without a cache has no table, and
 * runs none of its code.
 *
 *      lookup -> (miss) -> request_fields -> response_head -> fill->put ... -> fill->end
 */
#ifndef MODULES_GATEWAY_GATEWAY_CACHE_H
#define MODULES_GATEWAY_GATEWAY_CACHE_H

#include "base/cidr.h"
#include "cache/cache_store.h"
#include "conf/directive.h"
#include "server/module.h"

struct cache_slices;
struct gateway_request;

/* Why a server gave no usable response. */
enum gateway_failure {
    GATEWAY_FAILED_ERROR,           /* no connection, or it broke */
    GATEWAY_FAILED_TIMEOUT,
    GATEWAY_FAILED_INVALID_HEADER,
    GATEWAY_FAILED_STATUS,          /* none of these: what reply.status says */
};

/* A response body on its way into the cache. Called only where `cached` is there. */
struct gateway_fill {
    /* A part of the body has come. */
    void (*put)(struct gateway_request *p, struct str part);
    /* The body is whole and is published; or it broke off, and nothing is stored. */
    void (*end)(struct gateway_request *p, bool whole);
    /* True where reading pauses for the disk; gateway_read follows. */
    bool (*is_full)(const struct gateway_request *p);
    /*
     * True while the rest of the response waits until all of it is stored, so that a client that has had the response finds it in the cache; the body is woken
     * after that.
     */
    bool (*delays_body)(const struct gateway_request *p);
    /* True where the head waits as well, since there is no body that could; the exchange is resumed after that. */
    bool (*delays_head)(struct gateway_request *p);
};

struct gateway_cache {
    /*
     * Before a server is asked: what is stored may be the response. OUTCOME_ANSWERED; OUTCOME_PENDING (gateway_resume follows); or OUTCOME_PASS: a server is
     * asked.
     */
    enum outcome (*lookup)(struct gateway_request *p);
    /* The request's fields as they leave: for a whole response, for a slice, or to validate what is stored. 0 or -ENOMEM. */
    int (*request_fields)(struct gateway_request *p, struct headers *fields);
    /*
     * The response's head has come: stored, or what is stored is updated or removed. 0; 1 where x->response was filled with what is stored (304); -EAGAIN where the
     * server is to be asked again, without conditions; or -ENOMEM.
     */
    int (*response_head)(struct gateway_request *p);
    /* The fields and the status of a response that is made of a stored part and of the body that comes; NULL: it is as the server gives it. */
    const struct headers *(*combined_fields)(const struct gateway_request *p, int *out_status);
    /* Puts that stored part before or behind the body in x->response. 0 or -ENOMEM. */
    int (*combine)(struct gateway_request *p);
    /* True where x->response was filled with a stale stored response, since the server has failed. */
    bool (*serve_stale)(struct gateway_request *p, enum gateway_failure failure);
    /* Other requests need not wait for this one any more. */
    void (*release_lock)(struct gateway_request *p);
    /* This pass of the exchange through the gateway is over: releases all of it but what waits for the next pass. */
    void (*end)(struct gateway_request *p);
    /* The exchange is over. */
    void (*finish)(struct gateway_request *p);
    const struct gateway_fill *fill;
};

/* proxy_cache_valid: how long a response of these statuses is fresh that does not say so itself. */
struct gateway_cache_valid {
    unsigned *statuses;             /* count 0: any */
    size_t count;
    uint64_t seconds;
};

/* proxy_cache_purge */
struct gateway_cache_purge {
    struct str method;              /* empty: off */
    struct cidr *from;
    size_t count;
};

/* proxy_cache_max_range_offset */
struct gateway_cache_far {
    uint64_t bytes;
    bool set;
};

/* proxy_cache_use_stale: bits in the order of its words. */
enum gateway_stale {
    STALE_ERROR = 1 << 0,
    STALE_TIMEOUT = 1 << 1,
    STALE_INVALID_HEADER = 1 << 2,
    STALE_UPDATING = 1 << 3,
    STALE_HTTP_500 = 1 << 4,
    STALE_HTTP_502 = 1 << 5,
    STALE_HTTP_503 = 1 << 6,
    STALE_HTTP_504 = 1 << 7,
    STALE_HTTP_403 = 1 << 8,
    STALE_HTTP_404 = 1 << 9,
    STALE_HTTP_429 = 1 << 10,
    STALE_OFF = 1 << 11,
};

struct gateway_cache_conf {
    const struct gateway_cache *functions; /* NULL: off */
    struct conf_rows paths;         /* struct cache_conf * */
    struct str name;                /* "off", or whose */
    const struct cache_conf *cache; /* NULL: off */
    const struct template *key;     /* NULL: the default key */
    struct conf_rows valid;         /* struct gateway_cache_valid */
    unsigned methods;               /* enum method as bits; GET and HEAD always */
    struct conf_templates bypass, no_cache;
    uint64_t heuristic_ms;          /* the longest heuristic lifetime; 0: none */
    struct conf_words targeted;     /* names of fields that take the place of Cache-Control, the first that can be read */
    uint64_t min_uses;
    unsigned ignore;                /* enum gateway_ignore */
    unsigned use_stale;             /* enum gateway_stale */
    uint64_t slice;                 /* bytes of one slice; 0: whole */
    const struct cache_slices *slices; /* NULL: whole */
    bool partial;                   /* incomplete responses are stored, and completed */
    bool revalidate, lock, background_update, obey;
    uint64_t lock_timeout_ms, lock_age_ms;
    struct gateway_cache_far far;
    bool convert_head;
    struct gateway_cache_purge purge;
};

/* $upstream_cache_status */
enum cached_status {
    CACHED_NOT,                     /* the cache was not asked */
    CACHED_MISS,
    CACHED_BYPASS,
    CACHED_EXPIRED,
    CACHED_STALE,
    CACHED_UPDATING,
    CACHED_REVALIDATED,
    CACHED_PARTIAL,                 /* a part was stored, and the rest was asked for */
    CACHED_HIT,
};

/* The part of a cache in one exchange that the gateway sees. */
struct gateway_cached {
    enum cached_status status;
    bool background;                /* a child of the exchange that has answered already: the body is only stored */
    struct cache_fill *fill;        /* owned; NULL: nothing is being stored */
};

/* A right to fetch that waits for who is to use it: given back, or taken over, once. */
struct cache_update {
    struct cache_store *store;
    struct cache_hash hash;
    uint64_t fill_lock;                 /* 0: none */
};

#endif
