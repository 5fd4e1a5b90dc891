/*
 * The interface of the response cache for gateways: its configuration and a table of functions. A location without a
 * cache has no table and runs none of its code.
 *
 * lookup -> (miss) -> request_fields -> response_head -> fill->put ... -> fill->end
 */
#ifndef MODULES_GATEWAY_GATEWAY_CACHE_H
#define MODULES_GATEWAY_GATEWAY_CACHE_H

#include "base/cidr.h"
#include "cache/cache_store.h"
#include "cache/cached_status.h"
#include "conf/directive.h"
#include "server/module.h"

struct cache_slices;
struct gateway_request;

/* The reason why an upstream server gave no usable response. */
enum gateway_failure {
    GATEWAY_FAILED_ERROR,           /* no connection, or it failed */
    GATEWAY_FAILED_TIMEOUT,
    GATEWAY_FAILED_INVALID_HEADER,
    GATEWAY_FAILED_STATUS,          /* none of these: see reply.status */
};

/* A response body being stored. Called only if `cached` is set. */
struct gateway_fill {
    /* Adds a part of the body. */
    void (*put)(struct gateway_request *p, struct str part);
    /* The body is complete and is published; or it was interrupted, and the fill is discarded. */
    void (*end)(struct gateway_request *p, bool whole);
    /* True while too many bytes wait to be written to the disk; gateway_read is called afterwards. */
    bool (*is_full)(const struct gateway_request *p);
    /*
     * True while the rest of the response is delayed until it is stored, so that the client's next request is a hit.
     * The body is woken afterwards.
     */
    bool (*delays_body)(const struct gateway_request *p);
    /* True if the head is delayed until the response is stored; the exchange is resumed afterwards. */
    bool (*delays_head)(struct gateway_request *p);
    /* True if the response is or could be stored, and the client has it by its If-None-Match or If-Modified-Since. */
    bool (*is_not_modified)(const struct gateway_request *p);
    /* Continues as a background update. Returns a cache state for `rest` with the same status; NULL: out of memory. */
    struct gateway_cached *(*detach)(struct gateway_request *p, struct gateway_request *rest);
};

struct gateway_cache {
    /*
     * Looks for a stored response before the upstream server is contacted. OUTCOME_RESPONDED; OUTCOME_PENDING
     * (gateway_resume follows); or OUTCOME_DECLINED: contact the upstream server.
     */
    enum outcome (*lookup)(struct gateway_request *p);
    /* Sets the request's fields for a complete response, a slice, or a revalidation. 0 or -ENOMEM. */
    int (*request_fields)(struct gateway_request *p, struct headers *fields);
    /*
     * Processes the response head: stores, updates or removes. 0; 1: x->response was filled from the cache (304);
     * -EAGAIN: send the request again without conditions; or -ENOMEM.
     */
    int (*response_head)(struct gateway_request *p);
    /* Fields and status of a combined response. */
    const struct headers *(*combined_fields)(const struct gateway_request *p, int *out_status);
    /* Adds the stored span before or after the body in x->response. 0 or -ENOMEM. */
    int (*combine)(struct gateway_request *p);
    /* True if x->response was filled with a stale response because the upstream server failed. */
    bool (*serve_stale)(struct gateway_request *p, enum gateway_failure failure);
    /* Releases the fill lock. */
    void (*release_lock)(struct gateway_request *p);
    /* Ends this pass through the gateway; keeps the state that the next pass needs. */
    void (*end)(struct gateway_request *p);
    /* Ends the exchange. */
    void (*finish)(struct gateway_request *p);
    const struct gateway_fill *fill;
};

/* proxy_cache_valid: the lifetime of responses without one, by status. */
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
struct gateway_cache_range_offset {
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
    const struct gateway_cache *functions;  /* NULL: off */
    struct conf_rows paths;                 /* struct cache_conf * */
    struct str name;                        /* "off", or the name of a cache */
    const struct cache_conf *cache;         /* NULL: off */
    const struct template *key;             /* NULL: the default key */
    struct conf_rows valid;                 /* struct gateway_cache_valid */
    unsigned methods;                       /* enum method as bits; GET and HEAD always */
    struct conf_templates bypass, no_cache;
    uint64_t heuristic_ms;                  /* the longest heuristic lifetime; 0: none */
    struct conf_words targeted;             /* fields that replace Cache-Control; the first valid one counts */
    uint64_t min_uses;
    unsigned ignore;                        /* enum gateway_ignore */
    unsigned use_stale;                     /* enum gateway_stale */
    uint64_t slice;                         /* bytes of one slice; 0: no slices */
    const struct cache_slices *slices;      /* NULL: no slices */
    bool partial;                           /* incomplete responses are stored, and completed */
    bool revalidate, lock, background_update, obey;
    uint64_t lock_timeout_ms, lock_age_ms;
    struct gateway_cache_range_offset max_range_offset;
    bool convert_head;
    struct gateway_cache_purge purge;
};

/* The part of the cache's state of an exchange that gateways access. */
struct gateway_cached {
    enum cached_status status;
    bool combined;                  /* the response is a stored span and the received body: see combined_fields */
    bool background;                /* a background update, or gateway_detach: the body is stored and not sent */
    struct cache_fill *fill;        /* owned; NULL: not storing */
};

/* A fill lock that is passed to a subrequest, which takes it over or releases it. */
struct cache_update {
    struct cache_store *store;
    struct cache_hash hash;
    uint64_t fill_lock;                 /* 0: none */
};

#endif
