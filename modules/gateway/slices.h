/*
 * The interface of slicing for the cache: a large response is fetched and stored in slices of one size, each by a
 * subrequest. A location without slices has no table and runs none of its code.
 */
#ifndef MODULES_GATEWAY_SLICES_H
#define MODULES_GATEWAY_SLICES_H

#include "http/range.h"
#include "server/module.h"

struct received_response;
struct cache_slices;
struct gateway_request;
struct slice_request;
struct stored_metadata;

/* The state of a subrequest for a slice. */
struct slice_part {
    const struct cache_slices *functions;   /* NULL: not such a subrequest */
    struct slice_request *of;               /* the parent's state */
    uint64_t index;
    bool fits;                              /* its response is the requested slice */
    bool redirected;                        /* the reply has X-Accel-Redirect, which the parent follows */
};

struct cache_slices {
    /*
     * Called before the upstream server is contacted: OUTCOME_RESPONDED, OUTCOME_PENDING, or OUTCOME_DECLINED: continue
     * without slices, up to a miss.
     */
    enum outcome (*begin)(struct gateway_request *p);
    /* On a miss: fetches the first slice. As `begin`; OUTCOME_DECLINED: request the complete response. */
    enum outcome (*fetch)(struct gateway_request *p);
    /* The key of a subrequest's slice; empty: the length is still unknown. data NULL: out of memory. */
    struct str (*key)(const struct gateway_request *child);
    /* The byte range of a subrequest's slice. */
    struct range (*range)(const struct slice_part *slice);
    /*
     * Processes the head of a subrequest's response: the first one determines length and validators for all others.
     * 1: store the slice; 0: do not; -ENOTSUP: not a slice, handle it as any response; or -ENOMEM. Sets `response`
     * and `metadata` as for any response.
     */
    int (*response_head)(struct gateway_request *child, struct received_response *received,
                         struct stored_metadata *metadata);
    /* The upstream server of a subrequest failed by `reason` (enum gateway_stale): stale slices may be used. */
    void (*failed)(struct gateway_request *child, unsigned reason);
    /* Ends the exchange. */
    void (*end)(struct gateway_request *p);
};

static inline uint64_t slice_length(const struct slice_part *slice)
{
    struct range range = slice->functions->range(slice);

    return range.last - range.first + 1;
}

#endif
