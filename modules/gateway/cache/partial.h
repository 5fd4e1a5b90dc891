/*
 * Partial content in the cache (RFC 9111 3.3 and 3.4): one contiguous span of a representation, with a strong validator, stored under a key beside that of the whole.
 * It answers ranges inside it. What is missing before it or behind it is asked for with If-Range, and the two are stored as one.
 *
 *      cached_lookup -> miss -> cached_partial_look -> hit, stale, or miss -> cached_partial_fields -> cached_partial_head
 */
#ifndef MODULES_GATEWAY_CACHE_PARTIAL_H
#define MODULES_GATEWAY_CACHE_PARTIAL_H

#include "http/range.h"
#include "modules/gateway/cache/response_cache.h"

struct representation;

/* A part of a representation of `total` bytes; total 0: none. */
struct partial_content {
    struct range span;
    uint64_t total;
};

/* What the server is asked for. */
enum partial_request {
    PARTIAL_WHOLE,                  /* as without partial content */
    PARTIAL_RANGE,                  /* the client's range, as it is */
    PARTIAL_COVERED,                /* the same, which is stored and stale */
    PARTIAL_MISSING,                /* what is missing beside the stored span */
};

/* One exchange's part, where proxy_cache_partial is on. In its arena. */
struct cached_partial {
    struct cached *cached;          /* set before it is looked for */
    bool takes_range;               /* the client asks for one range, and that is what the server is asked for */
    enum outcome (*judged)(struct cached *cached, struct cache_entry *entry); /* once it was */
    bool looked;                    /* the incomplete entry has been looked for */
    struct cache_lookup lookup;
    struct str key;                 /* of the incomplete entry */
    struct cache_entry *entry;      /* referenced; NULL: there is none, or it is of no use */
    struct partial_content held;    /* of the entry */
    struct range wanted;            /* by the client, of that total */
    bool satisfiable, whole;        /* `wanted` is known; it is everything, and the answer is 200 */
    enum partial_request request;
    struct range missing;           /* of PARTIAL_MISSING */
    bool combined;                  /* the answer is made of the stored span and what comes */
    struct headers fields;          /* its fields */
    struct partial_content storing; /* what the entry that is being stored will have, once all of it has come */
    struct stored_metadata metadata;        /* of the same, and its fields */
    struct headers stored;
    bool splices;                   /* it begins or ends with the stored span */
    uint64_t worth;                 /* a span that is not longer than this is not kept of an answer that breaks off */
};

/* partial.c */

/* Sets cached->partial where the configuration and the request allow it. 0 or -ENOMEM. */
MUST_CHECK int cached_partial_begin(struct cached *cached);
/* The lookup begins anew: what was found before is forgotten. */
void cached_partial_reset(struct cached *cached);
/* True where an incomplete entry is still to be looked for. */
bool cached_partial_unlooked(const struct cached *cached);
/* Looks for it. `judged` is called once it was, here or later: with an entry that covers what is asked for, whose reference is handed over, or NULL. */
enum outcome cached_partial_look(struct cached *cached, enum outcome (*judged)(struct cached *cached, struct cache_entry *entry));
/* True for an entry that is the incomplete one. */
bool cached_is_partial(const struct cached *cached, const struct cache_entry *entry);
/* The whole that the span is a part of: bodies of ranges inside the span can be made. */
void cached_partial_represent(struct cached *cached, struct representation *whole);
/* A body of a range inside the span, which holds the entry. NULL: out of memory, or it is not inside. */
struct body *cached_partial_body(struct cached *cached, uint64_t at, uint64_t length);
/* The entry is of no use: it is forgotten, by others too. */
void cached_partial_drop(struct cached *cached);
/* The exchange is over. */
void cached_partial_end(struct cached *cached);
/* The key of what is incomplete, beside that of the whole. data NULL: out of memory. */
struct str cached_partial_key(struct gateway_request *p, struct str key);

/* partial_fetch.c */

/* True where the request's fields go on as they are. */
bool cached_partial_passes(struct cached *cached);
/* Range and If-Range, where what the client says of them was removed. 1: conditions for the whole are not to be added; 0; or -ENOMEM. */
MUST_CHECK int cached_partial_fields(struct cached *cached, struct headers *fields);
/*
 * The answer's head has come. 0: it is passed on, and stored where cached->base.fill is set; -ENOTSUP: it is judged as without partial content; -EAGAIN: the server
 * is to be asked again; or -ENOMEM.
 */
MUST_CHECK int cached_partial_head(struct cached *cached, struct arrival *arrival, struct stored_metadata *metadata);
/* Fields and status of an answer that is made of the stored span and what comes; NULL: it is as the server gives it. */
const struct headers *cached_combined_fields(const struct gateway_request *p, int *out_status);
/* Puts the stored span before or behind the body in x->response. 0 or -ENOMEM. */
MUST_CHECK int cached_combine(struct gateway_request *p);

/* partial_store.c */

/* True where the answer can be told from another version of it, byte for byte. `received_s`: when it came. */
bool partial_validated(const struct headers *headers, int64_t received_s, int64_t now_s);
/* True where two answers are of the same version: strong validators, and the coding if both say it. */
bool partial_same_version(const struct headers *said, const struct headers *known);
/*
 * What a 206 has: one well-formed Content-Range that the framing agrees with. 0 or -EINVAL.
 */
MUST_CHECK int partial_content_of(const struct gateway_request *p, struct partial_content *out);
/* Stores what comes as `content`; of the entry's span what lies outside what comes is copied. 0 (cached->base.fill is set where it is stored) or -ENOMEM. */
MUST_CHECK int cached_partial_store(struct cached *cached, const struct headers *counting, const struct headers *fields, const struct stored_metadata *metadata,
                                    const struct partial_content *content);
/* An answer with status 200 is being stored: what may be kept of it if it breaks off. */
void cached_partial_note(struct cached *cached, const struct headers *fields, const struct stored_metadata *metadata);
/* All has come: false where it is not what was to come. What is incomplete is forgotten where the whole is stored. */
bool cached_partial_whole(struct cached *cached);
/* The answer breaks off: what has come of it is stored where that is worth it; cached->base.fill is NULL then. */
void cached_partial_keep(struct cached *cached);

#endif
