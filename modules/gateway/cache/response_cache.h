/*
 * The proxy's cache: what the configuration says of it, and one exchange's part in it. Private to the module.
 *
 *      cached_lookup -> (found) -> hit | stale | fetch -> cached_request_fields, cached_response_head, cached_put, cached_fill_end
 */
#ifndef MODULES_GATEWAY_CACHE_RESPONSE_CACHE_H
#define MODULES_GATEWAY_CACHE_RESPONSE_CACHE_H

#include "cache/cache_store.h"
#include "http/conditional.h"
#include "http/freshness.h"
#include "modules/gateway/gateway.h"

struct cached_partial;
struct gateway_request;

/* What is stored of an answer, in front of its fields. */
struct stored_metadata {
    int32_t status;                 /* 0: no answer, but the names by which there are several (fields: Vary) */
    uint32_t fields;
    int64_t received_s;
    int64_t initial_age_s;
    int64_t lifetime_s;
    int64_t stale_while_revalidate, stale_if_error; /* as in struct freshness; of the fields that count */
    bool no_cache, never_stale;     /* the same */
    unsigned char unused[6];
    uint64_t salt;                  /* of the several: those of another are not found any more */
};

/* The same as read; cache_entry's `parsed`. */
struct stored_response {
    struct stored_metadata metadata;
    struct headers headers;         /* point into the entry's head */
    struct freshness freshness;     /* but for age_s */
    struct validators validators;
    struct header items[];
};

/* One exchange's part. In its arena. */
struct cached {
    struct gateway_cached base;     /* p->cached */
    struct gateway_request *p;
    struct cache_store *store;
    struct cache_lookup lookup;
    struct cache_waiter waiter;     /* store NULL: it waits for nothing */
    unsigned waits;                 /* how often it has waited */
    uint64_t began_wait_ms;
    struct cached_partial *partial; /* NULL: nothing incomplete is kept */
    struct cache_control request_control;     /* by the client */
    struct str primary;             /* the key, whatever the request's fields */
    struct str key;                 /* the same, or of the one among several that fits them */
    struct str names;               /* by which there are several; data NULL: none are known */
    uint64_t salt;
    struct cache_entry *stale;      /* referenced: stored, and not to be said without asking; or what is said */
    bool hashed;                    /* the hash in `origin` is known */
    struct cache_origin origin;     /* of `primary`, which `fill_lock` is of, and when it was asked for */
    uint64_t fill_lock;                 /* the right to fetch; 0: none */
    bool sliced;                    /* the response is looked for in slices */
    bool stores;                    /* what comes is stored where it may be */
    bool revalidates;               /* the server was asked whether `stale` still holds */
    int64_t request_sent_s;
    struct cache_fill *publishing[2]; /* whole, and not yet found by others: the answer, and what it is found by */
    bool holds_head;                /* the answer is held back until then, since it has no body */
    uint64_t stored_bytes;                  /* bytes of the body that were given to it */
    struct str head;                /* what will be stored of it */
};

static inline struct cached *cached_of(const struct gateway_request *p)
{
    return p->cached ? container_of(p->cached, struct cached, base) : NULL;
}

/* The cache as a gateway sees it. */
extern const struct gateway_cache response_cache;

/* settings.c */

directive_row gateway_read_cache_valid, gateway_read_cache_purge, gateway_read_cache_far;
/* The request asks for a range that begins so far in that its server is asked for that alone, and nothing is kept. */
bool cached_is_far(const struct gateway_request *p);
int gateway_cache_check(struct gateway_cache_conf *conf, struct conf_reader *reader, const struct conf_node *at);
/* For a location that passes requests on: answers to POST are stored only under a key that the configuration gives. 0, or -EINVAL (reported). */
int gateway_cache_check_methods(const struct gateway_cache_conf *conf, struct conf_reader *reader, const struct conf_node *at);
/* True where the request is one for slices. */
bool cached_wants_slices(const struct gateway_request *p);
/* 1 where one of them is neither empty nor "0"; 0, or -ENOMEM. */
MUST_CHECK int cached_any_holds(struct exchange *x, const struct conf_templates *templates);

/* stored_response.c */

/* Note and fields as text; data NULL: out of memory. */
struct str stored_response_write(const struct stored_metadata *metadata, const struct headers *headers, struct arena *arena);
/* Gives an answer that came at `received_s` that Date, where it has none that can be read (RFC 9110 6.6.1). 0 or -ENOMEM. */
MUST_CHECK int stored_response_date(struct headers *headers, struct arena *arena, int64_t received_s);
/* Validators of an answer that came at `received_s`; the tag points into its fields. */
void stored_response_validators(const struct headers *headers, int64_t received_s, int64_t now_s, struct validators *out);
/* What an entry's head says, read once. NULL: out of memory, or not to be understood. */
const struct stored_response *stored_response_of(struct cache_entry *entry, int64_t now_s);

/* lookup.c */

/*
 * Before a server is asked: what is stored may be the answer. OUTCOME_ANSWERED, OUTCOME_PENDING (proxy_fetch follows, or an answer), or
 * OUTCOME_PASS: a server is to be asked.
 */
enum outcome cached_lookup(struct gateway_request *p);
/* Fills x->response with an entry, of which this is stored. 0 or -errno. */
MUST_CHECK int cached_answer(struct cached *cached, struct cache_entry *entry, const struct stored_metadata *metadata,
                             const struct headers *headers);
/* answer.c, fetch.c: for the files of the cache alone */

/* Seconds of the wall clock. */
static inline int64_t cached_now_s(const struct cached *cached)
{
    return clock_wall_s(exchange_clock(cached->p->x));
}
/* The age that a stored response has now. */
int64_t cached_age(const struct cached *cached, const struct stored_metadata *metadata);
/* What a fetch is known by, to all workers. A hit needs none of that. */
const struct cache_hash *cached_hash(struct cached *cached);
/* What is stored is the answer. Takes the reference over, to the end: its fields are pointed into, body or none. */
enum outcome cached_answer_with(struct cached *cached, struct cache_entry *entry, enum cached_status status);
/* A server is asked. OUTCOME_PASS. */
enum outcome cached_fetch(struct cached *cached);
/* A server is asked: with proxy_cache_lock by one request alone, the others wait. OUTCOME_PASS: ask it, or OUTCOME_PENDING. */
enum outcome cached_fetch_alone(struct cached *cached);

/* validate.c */

/* RFC 9111 3.2: what an answer of the same version says takes the place of what was stored, but for what tells of the bytes of the body. 0 or -ENOMEM. */
MUST_CHECK int stored_response_merge(struct gateway_request *p, const struct stored_response *stored, struct headers *out);

/*
 * 304 came: what is stored is the answer, and what is stored of it is what 304 says. 1; -EAGAIN where the 304 is about another version: the entry is dropped, and the
 * server is to be asked again; or -ENOMEM.
 */
MUST_CHECK int cached_revalidated(struct gateway_request *p, struct arrival *arrival);

/* serve_stale.c */

/* True where what is stored and stale may be the response, since the server has failed by `reason` (enum gateway_stale). */
bool cached_may_serve_stale(const struct cached *cached, struct cache_entry *entry, unsigned reason);

/* Stale. `allowed`: what is stored says that it may be used while it is updated. Takes the reference over. */
enum outcome cached_expired(struct cached *cached, struct cache_entry *entry, bool allowed);
/* True where the answer is a stored one though it is stale, since the server has failed by `reason` (enum gateway_stale); x->response is filled. */
bool cached_serve_stale(struct gateway_request *p, unsigned reason);
/* The same for a status of the server's own. */
bool cached_serve_stale_for_status(struct gateway_request *p, int status);

/* lookup.c */

/* Lets go of everything: the exchange, or its part in the proxy, is over. */
void cached_end(struct gateway_request *p);
/* What it will answer with is known, and stored or not to be: others need not wait for it any more. */
void cached_release_lock(struct gateway_request *p);
/* Whoever was to use the right to fetch did not come here, or not for that. */
void cached_update_release(struct cache_update *update);
/* What a miss does: one asks, or somebody does already. As cached_lookup. */
enum outcome cached_slices_missed(struct gateway_request *p);
/* Goes on with what was found of slices, from the loop: OUTCOME_PASS: as without them. */
void cached_slices_looked_up(struct gateway_request *p, enum outcome outcome);
/* Whether something stored may be said to who asks so. */
enum reuse cached_reuse(const struct cached *cached, const struct stored_response *stored);
/* The Age of what is said. 0 or -ENOMEM. */
MUST_CHECK int cached_add_age(const struct cached *cached, const struct stored_metadata *metadata);

/* child.c */

/* A child was answered: of what others may use all is read; of what lies in the cache, or is of no use, nothing more. */
void cached_child_release(struct exchange *child);

/* convert_head.c */

/* Before the cache is: a child asks by GET what the client asks by HEAD, where that is wanted. OUTCOME_PENDING: the answer follows; or OUTCOME_PASS: as it is. */
enum outcome cached_convert_head(struct gateway_request *p);

/* key.c */

/* Under it stands what all slices have in common. data NULL: out of memory. */
struct str cached_facts_key(struct gateway_request *p, struct str key);
/* Forgets what is stored under a key, in slices and incomplete, too. False: nothing was. */
bool cached_remove(struct gateway_request *p, struct cache_store *store, struct str key);
/* What the answer is looked for by: proxy_cache_key, or all that the server is told of where the request goes. data NULL: out of memory. */
struct str cached_primary_key(struct gateway_request *p);
/* The key of one among several, by what the request says in their names (vary_text). data NULL: out of memory. */
struct str cached_key(const struct cached *cached, struct str text);
/* True where it is asked to forget what is stored under the request's key. */
bool cached_is_purge(const struct gateway_request *p);
/* Forgets it, in all its variants, where this client may. */
enum outcome cached_purge(struct gateway_request *p);
/* RFC 9111 4.4: what an unsafe method may have changed is asked for anew. */
void cached_invalidate(struct gateway_request *p);

/* request_fields.c, policy.c, fill.c */

/* The fields with which the server is asked for something whole, or whether what is stored holds. 0 or -ENOMEM. */
MUST_CHECK int cached_request_fields(struct gateway_request *p, struct headers *fields);
/*
 * Fields of an answer without those of proxy_ignore_headers, and what they say to this cache: in the place of Cache-Control and Expires, a targeted field (RFC 9213).
 * X-Accel-Expires has precedence: beside it only extensions and what concerns stale answers are left. 0 or -ENOMEM.
 */
MUST_CHECK int cached_policy(const struct gateway_request *p, const struct headers *from, int64_t received_s, struct headers *to, struct cache_control *out);
/* How long it is fresh, how old it is, and what it says of being stale, into `metadata`. */
void cached_set_times(const struct gateway_request *p, const struct arrival *arrival, struct stored_metadata *metadata);
/*
 * The answer's head has come: whether it is kept, and what is kept no longer. 0; 1 where x->response was filled with what was stored (304); -EAGAIN where the server
 * is to be asked again, without conditions; or -ENOMEM.
 */
MUST_CHECK int cached_response_head(struct gateway_request *p);
/* 1 where request, answer and `proxy_no_cache` allow it to be kept: times are stored. 0, or -ENOMEM. */
MUST_CHECK int cached_may_store(struct gateway_request *p, const struct arrival *arrival, struct stored_metadata *metadata);
/* cached->key becomes the key of this answer, by its Vary. 0; -ENOTSUP where it has none; or -ENOMEM. */
MUST_CHECK int cached_find_key(struct cached *cached, const struct headers *counting);
/* Begins to store under a key, into cached->base.fill. 0 or -ENOMEM. */
MUST_CHECK int cached_fill_begin(struct cached *cached, struct str key);
/* Bytes of the largest answer that is stored. */
uint64_t cached_most_kept(const struct gateway_request *p);
/* A piece of the body. */
void cached_put(struct gateway_request *p, struct str part);
/*
 * True while what is left of the answer waits until all of it is stored, so that a client that has had the answer finds it in the cache; the body is woken after that, or
 * the exchange resumed (`holds_head`).
 */
bool cached_delays_body(const struct gateway_request *p);
/* The head is known. True where it waits, too: the answer has no body that could. */
bool cached_delays_head(struct gateway_request *p);
/* The body broke off: nothing is stored but what may be completed later, and nothing waits for that. */
void cached_fill_failed(struct gateway_request *p);
/* The answer waits for `fill`, which cache_fill_end follows, too. */
void cached_publish(struct cached *cached, struct cache_fill *fill);
/* True where more of it is to wait for the disk; gateway_read follows. */
bool cached_fill_is_full(const struct gateway_request *p);
/* The body is whole. */
void cached_fill_end(struct gateway_request *p);

#endif
