/*
 * `slice`: large resources are fetched and stored in slices of one size, and responses to any range are assembled
 * from them. Common metadata (length, validators, fields) is stored under a key of their own.
 *
 * slice_begin -> metadata known -> response -> slice after slice
 * a miss      -> the first slice is requested -> slice_response_head sets the metadata -> response
 */
#ifndef MODULES_GATEWAY_SLICE_SLICE_H
#define MODULES_GATEWAY_SLICE_SLICE_H

#include "cache/cache_store.h"
#include "http/freshness.h"
#include "http/range.h"
#include "modules/gateway/cache/response_cache.h"

struct slice_body;

/* The slicing interface for the cache. */
extern const struct cache_slices slices;

/* The metadata of the complete representation. */
struct slice_metadata {
    uint64_t total;
    struct stored_metadata stored;  /* its salt is part of the keys of the slices */
    struct headers headers;         /* in the arena of the exchange */
    struct validators validators;
};

/* The state of one exchange that is answered from slices. In its arena. */
struct slice_request {
    struct gateway_request *p;
    /* The subrequest has a response, and `begun` is not set. */
    void (*responded)(struct slice_request *s);
    struct str key;                 /* of the metadata */
    struct cache_lookup lookup;
    struct cache_waiter waiter;
    struct cache_origin origin;     /* hash of the metadata, which `fill_lock` belongs to */
    uint64_t fill_lock;             /* held while the first slice is fetched; 0: none */
    struct cache_entry *stale;      /* referenced: metadata that needs revalidation; NULL: none */
    struct slice_metadata metadata;
    bool known;                     /* the metadata is known */
    bool plain;                     /* continue without slices: the response is not a slice, or must not be stored */
    bool waited;                    /* has waited for another request's first slice */
    bool serve_stale;               /* the upstream server failed, and `stale` may be used */
    bool begun;                     /* the response has begun */
    int error;                      /* slices of different versions: the response is aborted */
    uint64_t first;                 /* index of the first slice requested */
    struct exchange *child;         /* the subrequest with the current slice; NULL: none */
    uint64_t index;                 /* index of that slice */
    uint64_t at;                    /* offset of its next byte in the representation */
    bool has_response;              /* the subrequest has a response */
    struct slice_body *waiting;     /* to be woken by that response; NULL: none */
};

/* The size of all slices except the last one. */
static inline uint64_t slice_size(const struct slice_request *s)
{
    return s->p->conf->cache.slice;
}

/*
 * slice_body.c: starts a subrequest for a slice, and releases the previous one; s->responded or the body follows. 0 or
 * -errno.
 */
MUST_CHECK int slice_child_request(struct slice_request *s, uint64_t index);
/* Releases the subrequest, if there is one. One that has no response yet continues detached. */
void slice_child_release(struct slice_request *s);
/* Responds with the response of the subrequest if that is not a slice: a whole body or an error. 0 or -ENOMEM. */
MUST_CHECK int slice_child_pass_on(struct slice_request *s);
/*
 * A body of the bytes [at, at + length) of the representation; `resource` is a struct slice_request. NULL: out of
 * memory.
 */
struct body *slice_span(struct arena *arena, void *resource, uint64_t at, uint64_t length);

/*
 * slice_metadata.c: copies the fields of the complete representation into s->metadata, without those of a slice. 0 or
 * -ENOMEM.
 */
MUST_CHECK int slice_copy_fields(struct slice_request *s, const struct headers *from);
/* See struct cache_slices. */
struct range slice_range(const struct slice_part *slice);
MUST_CHECK int slice_response_head(struct gateway_request *child, struct received_response *received,
                                   struct stored_metadata *metadata);

#endif
