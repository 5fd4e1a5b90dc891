/*
 * `slice` as the cache sees it: a large response is fetched and stored in slices of one size, each by a child of the exchange. A location without slices has no
 * table, and runs none of its code.
 */
#ifndef MODULES_GATEWAY_SLICES_H
#define MODULES_GATEWAY_SLICES_H

#include "http/range.h"
#include "server/module.h"

struct arrival;
struct cache_slices;
struct gateway_request;
struct slicing;
struct stored_metadata;

/* A child's part: which piece it is. */
struct slice_part {
    const struct cache_slices *functions; /* NULL: it is no such child */
    struct slicing *of;             /* the same */
    uint64_t index;
    bool fits;                      /* its answer is that piece */
};

struct cache_slices {
    /* Before a server is asked: OUTCOME_ANSWERED, OUTCOME_PENDING, or OUTCOME_PASS: go on as without slices, up to a miss. */
    enum outcome (*begin)(struct gateway_request *p);
    /* Nothing is stored: the first slice is fetched. As above; OUTCOME_PASS: a server is asked for it as it is. */
    enum outcome (*fetch)(struct gateway_request *p);
    /* The key of a child's slice; empty: the length of the whole is not known yet. data NULL: out of memory. */
    struct str (*key)(const struct gateway_request *child);
    /* Bytes of a child's slice. */
    struct range (*range)(const struct slice_part *slice);
    /*
     * The head of a response to a child has come: the facts are learned of the first one, and hold for all others. 1: the slice is to be stored, 0: not, -ENOTSUP: it
     * is none, and to be judged as any response; or -ENOMEM. `arrival` and `metadata` are filled in as for any response.
     */
    int (*response_head)(struct gateway_request *child, struct arrival *arrival, struct stored_metadata *metadata);
    /* The server of a child has failed by `reason` (enum gateway_stale): the whole may be a stale one. */
    void (*failed)(struct gateway_request *child, unsigned reason);
    /* The exchange is over. */
    void (*end)(struct gateway_request *p);
};

static inline uint64_t slice_length(const struct slice_part *slice)
{
    struct range range = slice->functions->range(slice);

    return range.last - range.first + 1;
}

#endif
