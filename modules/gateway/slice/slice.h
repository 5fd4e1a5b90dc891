/*
 * `slice`: what is large is fetched and stored in pieces of one size, and answers to any range of it are put together of them.
 * What all pieces have in common (the facts: length, validators, fields) is stored under a key of its own.
 *
 *      slice_begin -> facts known -> answered -> piece after piece
 *      a miss            -> the first piece is asked for -> slice_response_head learns the facts -> answered
 */
#ifndef MODULES_GATEWAY_SLICE_SLICE_H
#define MODULES_GATEWAY_SLICE_SLICE_H

#include "cache/cache_store.h"
#include "http/freshness.h"
#include "http/range.h"
#include "modules/gateway/cache/response_cache.h"

struct slice_body;

/* Slicing as the cache sees it. */
extern const struct cache_slices slices;

/* What is known of the whole. */
struct slice_facts {
    uint64_t total;
    struct stored_metadata metadata;        /* its salt is a part of the keys of the pieces: they are those of these facts and no others */
    struct headers headers;         /* in the arena of the exchange that is answered with it */
    struct validators validators;
};

/* One exchange that is answered with pieces. In its arena. */
struct slicing {
    struct gateway_request *p;
    struct str key;                 /* of the facts */
    struct cache_lookup lookup;
    struct cache_waiter waiter;
    struct cache_origin origin;     /* of the facts, which `fill_lock` is of */
    uint64_t fill_lock;                 /* the right to find out; 0: none */
    struct cache_entry *stale;      /* referenced: facts that are not to be used without asking; NULL: there are none */
    struct slice_facts facts;
    bool known;                     /* they are */
    bool plain;                     /* it is asked for without slices: it has none, or nothing of it may be kept */
    bool waited;                    /* for somebody who asks for the first piece already */
    bool serve_stale;                   /* the server has failed, and `stale` may be used all the same */
    bool begun;                     /* the exchange was answered */
    int error;                      /* its pieces do not belong together: what is being sent breaks off */
    uint64_t first;                 /* the piece that is asked for first */
    struct exchange *child;         /* who has a piece, or fetches it; NULL: nobody */
    uint64_t index;                 /* of that piece */
    uint64_t at;                    /* where in the whole its next byte stands */
    bool answered;                  /* it was */
    struct slice_body *waiting;     /* for it to be answered; NULL: nobody */
};

/* slice_facts.c */

/* Fields of the whole, into s->facts: those of one piece are left out. 0 or -ENOMEM. */
MUST_CHECK int slice_copy_fields(struct slicing *s, const struct headers *from);
/* As struct cache_slices has them. */
struct range slice_range(const struct slice_part *slice);
MUST_CHECK int slice_response_head(struct gateway_request *child, struct arrival *arrival, struct stored_metadata *metadata);

#endif
