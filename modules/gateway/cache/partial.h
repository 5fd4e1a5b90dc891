/*
 * Partial content in the cache (RFC 9111 3.3 and 3.4): one contiguous span of a representation with a strong
 * validator, stored under a key beside that of the complete response. Ranges inside the span are hits. Bytes missing
 * before or after it are requested with If-Range, and stored together with it.
 *
 * cached_lookup -> miss -> cached_partial_lookup -> hit, stale, or miss -> cached_partial_fields ->
 * cached_partial_head
 */
#ifndef MODULES_GATEWAY_CACHE_PARTIAL_H
#define MODULES_GATEWAY_CACHE_PARTIAL_H

#include "http/range.h"
#include "modules/gateway/cache/response_cache.h"

struct representation;

/* A span of a representation of `total` bytes; total 0: none. */
struct partial_content {
    struct range span;
    uint64_t total;
};

/* The request to the upstream server. */
enum partial_request {
    PARTIAL_WHOLE,                  /* the complete response, as without partial content */
    PARTIAL_RANGE,                  /* the client's range, unchanged */
    PARTIAL_COVERED,                /* the client's range, which is stored and stale */
    PARTIAL_MISSING,                /* the bytes missing beside the stored span */
};

/* The state of one exchange if proxy_cache_partial is on. In its arena. */
struct cached_partial {
    struct cached *cached;              /* set before the lookup */
    bool takes_range;                   /* the client requests one range, which may be passed on unchanged */
    /* Called after the lookup. */
    enum outcome (*done)(struct cached *cached, struct cache_entry *entry);
    bool looked_up;                     /* the lookup of the incomplete entry is done */
    struct cache_lookup lookup;
    struct str key;                     /* of the incomplete entry */
    struct cache_entry *entry;          /* referenced; NULL: none, or unusable */
    struct partial_content cached_part; /* of the entry */
    struct range requested;             /* requested by the client */
    bool satisfiable, whole;            /* `requested` is valid; it is the complete representation (status 200) */
    enum partial_request request;
    struct range missing;               /* of PARTIAL_MISSING */
    struct headers fields;              /* of the combined response */
    struct partial_content storing;     /* the span of the entry being stored, once it is complete */
    struct stored_metadata metadata;    /* of the entry being stored, with its fields */
    struct headers stored;
    bool splices;                       /* the entry being stored begins or ends with a copy of the stored span */
    uint64_t minimum_length;            /* the span of an interrupted response is stored if it has more bytes */
};

/*
 * partial.c: sets cached->partial if the request allows it, with proxy_cache_partial. 0 or -ENOMEM. All other functions
 * require cached->partial: without the directive none of them is called.
 */
MUST_CHECK int cached_partial_begin(struct cached *cached);
/* Resets the state for another lookup. */
void cached_partial_reset(struct cached *cached);
/*
 * Looks up the incomplete entry and calls `done`, inside this call or later: with the entry, whose reference `done`
 * takes over, if it has the requested range; else with NULL.
 */
enum outcome cached_partial_lookup(struct cached *cached,
                                   enum outcome (*done)(struct cached *cached, struct cache_entry *entry));
/* True if `entry` (may be NULL) is the incomplete one; false if cached->partial is NULL. */
static inline bool cached_is_partial(const struct cached *cached, const struct cache_entry *entry)
{
    return cached->partial && entry && cached->partial->entry == entry;
}

/* Describes the complete representation; bodies can be made for ranges inside the span only. */
void cached_partial_represent(struct cached *cached, struct representation *whole);
/* A body for a range inside the span; it references the entry. NULL: out of memory, or outside the span. */
struct body *cached_partial_body(struct cached *cached, uint64_t at, uint64_t length);
/* Removes the unusable entry from the cache. */
void cached_partial_remove(struct cached *cached);
/*
 * Stores an interrupted response like cached_partial_store_interrupted, and releases the state at the end of the
 * exchange.
 */
void cached_partial_end(struct cached *cached);
/* The key of the incomplete entry, derived from that of the complete one. data NULL: out of memory. */
struct str cached_partial_key(struct gateway_request *p, struct str key);

/* partial_fetch.c: true if the request's fields are passed on unchanged. */
bool cached_partial_passes(struct cached *cached);
/*
 * Adds Range and If-Range after those of the client were removed. 1: add no conditions for the complete response; 0;
 * or -ENOMEM.
 */
MUST_CHECK int cached_partial_fields(struct cached *cached, struct headers *fields);
/*
 * Processes the response head. 0: it is passed on, and stored if cached->base.fill is set; -ENOTSUP: handle it as
 * without partial content; -EAGAIN: send the request again; or -ENOMEM.
 */
MUST_CHECK int cached_partial_head(struct cached *cached, struct received_response *received,
                                   struct stored_metadata *metadata);
/* Fields and status of a combined response (cached->base.combined). */
const struct headers *cached_combined_fields(const struct gateway_request *p, int *out_status);
/* Adds the stored span before or after the body in x->response. 0 or -ENOMEM. */
MUST_CHECK int cached_combine(struct gateway_request *p);

/* partial_store.c: true if the response has a strong validator. `received_s`: when it was received. */
bool partial_validated(const struct headers *headers, int64_t received_s, int64_t now_s);
/* True if two responses are of the same version: equal strong validators, and equal codings if both name one. */
bool partial_same_version(const struct headers *received, const struct headers *known);
/* Parses Content-Range of a 206, which must be single, well-formed and consistent with the framing. 0 or -EINVAL. */
MUST_CHECK int partial_content_of(const struct gateway_request *p, struct partial_content *out);
/*
 * Stores the received bytes as `content`, completed by the part of the stored span outside it. 0 (cached->base.fill
 * is set if it is stored) or -ENOMEM.
 */
MUST_CHECK int cached_partial_store(struct cached *cached, const struct headers *counting, const struct headers *fields,
                                    const struct stored_metadata *metadata, const struct partial_content *content);
/* Records fields and metadata of a 200 that is being stored, to store the received span if it is interrupted. */
void cached_partial_record(struct cached *cached, const struct headers *fields, const struct stored_metadata *metadata);
/*
 * Called when the response is complete. Removes the incomplete entry if the complete response is stored. False: the
 * number of bytes differs from Content-Length.
 */
bool cached_partial_whole(struct cached *cached);
/*
 * Stores the received span of an interrupted response, if it is longer than `minimum_length`; base.fill is then NULL.
 */
void cached_partial_store_interrupted(struct cached *cached);

#endif
