/*
 * The response cache of gateways: the state of one exchange, and the functions of its steps. Private to
 * modules/gateway/cache.
 *
 * cached_lookup -> (found) -> hit | stale | fetch -> cached_request_fields, cached_response_head, cached_put,
 * cached_fill_end
 */
#ifndef MODULES_GATEWAY_CACHE_RESPONSE_CACHE_H
#define MODULES_GATEWAY_CACHE_RESPONSE_CACHE_H

#include "cache/cache_store.h"
#include "cache/stored_metadata.h"
#include "http/conditional.h"
#include "http/freshness.h"
#include "modules/gateway/gateway.h"

struct cached_partial;
struct gateway_request;

/* Parsed metadata; the `parsed` of a cache_entry. */
struct stored_response {
    struct stored_metadata metadata;
    struct str reason;              /* a slice of the entry's head; empty: the standard phrase */
    struct headers headers;         /* slices of the entry's head, too */
    struct freshness freshness;     /* without age_s */
    struct validators validators;
    struct header items[];
};

/* The state of one exchange. In its arena. */
struct cached {
    struct gateway_cached base;             /* p->cached */
    struct gateway_request *p;
    struct cache_store *store;
    struct cache_lookup lookup;
    struct cache_waiter waiter;             /* store NULL: not waiting */
    unsigned waits;                         /* number of waits */
    uint64_t began_wait_ms;
    struct cached_partial *partial;         /* NULL: incomplete responses are not stored */
    struct cache_control request_control;   /* of the client's request */
    struct str primary;                     /* the key without Vary */
    struct str key;                         /* the primary key, or that of the variant */
    struct str names;                       /* field names of Vary; data NULL: unknown */
    uint64_t salt;
    struct cache_entry *stale;              /* referenced: stored and stale, or the response being sent */
    bool hashed;                            /* `origin.hash` is set */
    /* Hash of `primary`, which `fill_lock` belongs to, and start of the fetch. */
    struct cache_origin origin;
    uint64_t fill_lock;                     /* 0: none */
    bool sliced;                            /* the response is assembled from slices */
    bool stores;                            /* the response is stored if allowed */
    bool storable;                          /* no field of the response forbids to store it */
    bool revalidates;                       /* the request was conditional for `stale` */
    int64_t request_sent_s;
    /* Complete, not yet published: the response, and the entry with its Vary names. */
    struct cache_fill *publishing[2];
    struct cache_head_update head_update;   /* the new head of a stored response is being written */
    bool holds_head;                        /* the response's head waits for publication */
    uint64_t stored_bytes;                  /* body bytes added to the fill */
    struct str head;                        /* to be stored */
};

static inline struct cached *cached_of(const struct gateway_request *p)
{
    return p->cached ? container_of(p->cached, struct cached, base) : NULL;
}

/* The table of functions (response_cache.c). */
extern const struct gateway_cache response_cache;

/* Seconds of the wall clock. */
static inline int64_t cached_now_s(const struct cached *cached)
{
    return clock_wall_s(exchange_clock(cached->p->x));
}

/* settings.c: the directives, and tests of a request against them. */

directive_row gateway_read_cache_valid, gateway_read_cache_purge, gateway_read_cache_range_offset;
/* Finds the cache that `proxy_cache` names, and adds GET and HEAD to the methods. 0, or -EINVAL (reported). */
int gateway_cache_check(struct gateway_cache_conf *conf, struct conf_reader *reader, const struct conf_node *at);
/* Checks that proxy_cache_key is set if POST responses are stored. 0, or -EINVAL (reported). */
int gateway_cache_check_methods(const struct gateway_cache_conf *conf, struct conf_reader *reader,
                                const struct conf_node *at);
/* True if the range begins at proxy_cache_max_range_offset or later: it is requested unchanged and not stored. */
bool cached_exceeds_range_offset(const struct gateway_request *p);
/* True if the request is served from slices. */
bool cached_uses_slices(const struct gateway_request *p);
/* 1 if the value of at least one template is neither empty nor "0"; 0, or -ENOMEM. */
MUST_CHECK int cached_test_predicates(struct exchange *x, const struct conf_templates *templates);

/* stored_response.c: the head of a cache entry. */

/*
 * Metadata, reason phrase and fields as text; data NULL: out of memory. A phrase that is standard, too long or invalid
 * is omitted.
 */
struct str stored_response_write(const struct stored_metadata *metadata, struct str reason,
                                 const struct headers *headers, struct arena *arena);
/* Adds Date with `received_s` if the response has no valid one (RFC 9110 6.6.1). 0 or -ENOMEM. */
MUST_CHECK int stored_response_date(struct headers *headers, struct arena *arena, int64_t received_s);
/* The validators of a response received at `received_s`; the tag points into its fields. */
void stored_response_validators(const struct headers *headers, int64_t received_s, int64_t now_s,
                                struct validators *out);
/* Parses an entry's head, once; the result belongs to the entry. NULL: out of memory, or malformed. */
const struct stored_response *stored_response_of(struct cache_entry *entry, int64_t now_s);

/* key.c: keys, and the removal of entries. */

/* The primary key: proxy_cache_key, or the default. data NULL: out of memory. */
struct str cached_primary_key(struct gateway_request *p);
/* The key of a variant by its field values (vary_text). data NULL: out of memory. */
struct str cached_key(const struct cached *cached, struct str text);
/* The key of the metadata that all slices share. data NULL: out of memory. */
struct str cached_metadata_key(struct gateway_request *p, struct str key);
/* Removes the entries of a key: complete, sliced and incomplete. False: there were none. */
bool cached_remove(struct gateway_request *p, struct cache_store *store, struct str key);
/* True for a purge request. */
bool cached_is_purge(const struct gateway_request *p);
/*
 * Removes the entries of the request with all variants, and responds: 204, 404 if there were none, 403 if
 * proxy_cache_purge excludes the client.
 */
enum outcome cached_purge(struct gateway_request *p);
/* Removes the entries that an unsafe method may have changed (RFC 9111 4.4). */
void cached_invalidate(struct gateway_request *p);

/* respond.c: responds with a stored response. */

/* The current age of a stored response in seconds (RFC 9111 4.2.3). */
int64_t cached_age(const struct cached *cached, const struct stored_metadata *metadata);
/* Adds Age. 0 or -ENOMEM. */
MUST_CHECK int cached_add_age(const struct cached *cached, const struct stored_metadata *metadata);
/* Whether a stored response may be reused for this request. */
enum reuse cached_reuse(const struct cached *cached, const struct stored_response *stored);
/* Fills x->response from an entry with this metadata. 0 or -errno. */
MUST_CHECK int cached_respond(struct cached *cached, struct cache_entry *entry, const struct stored_metadata *metadata,
                             const struct headers *headers);
/*
 * Responds with a stored response, whose fields point into the entry. Takes over the reference until the end of the
 * exchange.
 */
enum outcome cached_respond_with(struct cached *cached, struct cache_entry *entry, enum cached_status status);
/* Releases the fill lock: the response is stored, or will not be. */
void cached_release_lock(struct gateway_request *p);

/* policy.c: whether a response may be stored, and how long it is fresh. */

/*
 * Copies the response's fields without those of proxy_ignore_headers, and evaluates them: a targeted field (RFC
 * 9213) replaces Cache-Control and Expires; X-Accel-Expires takes precedence, and only extensions and rules for
 * stale use remain beside it. 0 or -ENOMEM.
 */
MUST_CHECK int cached_policy(const struct gateway_request *p, const struct headers *from, int64_t received_s,
                             struct headers *to, struct cache_control *out);
/* Sets lifetime, age and rules for stale use in `metadata`. */
void cached_set_times(const struct gateway_request *p, const struct received_response *received,
                      struct stored_metadata *metadata);
/* 1 if request, response and `proxy_no_cache` permit storing; sets the times and cached->storable. 0, or -ENOMEM. */
MUST_CHECK int cached_may_store(struct gateway_request *p, const struct received_response *received,
                                struct stored_metadata *metadata);
/* Maximum size of a stored response in bytes. */
uint64_t cached_max_stored_size(const struct gateway_request *p);

/* fetch.c: a request that is not answered from the cache. */

/* The hash that identifies a fetch for all workers. A hit does not compute it. */
const struct cache_hash *cached_hash(struct cached *cached);
/* Continues without the stored response: the request is sent to the upstream server. OUTCOME_DECLINED. */
enum outcome cached_fetch(struct cached *cached);
/*
 * Called before the request is sent to the upstream server; with proxy_cache_lock one request at a time is sent.
 * OUTCOME_DECLINED: send it; OUTCOME_PENDING: it waits for another request.
 */
enum outcome cached_fetch_alone(struct cached *cached);

/* child.c, convert_head.c: subrequests that fetch for the cache. */

/* A subrequest has its response: the body is read to the end only if it is being stored. */
void cached_child_release(struct exchange *child);
/*
 * Redirects the parent to the X-Accel-Redirect in the reply of its subrequest `from`: the location of the parent does
 * not apply to the response of the target, and the access modules of the target's location run.
 */
enum outcome cached_child_follow_redirect(struct gateway_request *p, const struct gateway_request *from);
/*
 * Before the lookup, starts a subrequest by GET for a HEAD, if configured. OUTCOME_PENDING: the response follows; or
 * OUTCOME_DECLINED.
 */
enum outcome cached_convert_head(struct gateway_request *p);

/* serve_stale.c: stale responses. `reason` is an enum gateway_stale. */

/* Handles a stale entry. `allowed`: it permits use during an update. Takes over the reference. */
enum outcome cached_expired(struct cached *cached, struct cache_entry *entry, bool allowed);
/* True if a stale entry may be used because the upstream server failed by `reason`. */
bool cached_may_serve_stale(const struct cached *cached, struct cache_entry *entry, unsigned reason);
/* True if x->response was filled with a stale response because the upstream server failed by `reason`. */
bool cached_serve_stale(struct gateway_request *p, unsigned reason);
/* As cached_serve_stale, for a status of the upstream server. */
bool cached_serve_stale_for_status(struct gateway_request *p, int status);

/* fill_begin.c: begins to store, and delays the response to the client until it is published. */

/* Sets cached->key from the response's Vary. 0; -ENOTSUP: cannot be stored; or -ENOMEM. */
MUST_CHECK int cached_find_key(struct cached *cached, const struct headers *counting);
/* Starts to store a response under `key`, in cached->base.fill. 0 or -ENOMEM. */
MUST_CHECK int cached_fill_begin(struct cached *cached, struct str key);
/* Delays the response until `fill` is published; cache_fill_end follows. */
void cached_publish(struct cached *cached, struct cache_fill *fill);
/* Replaces the head of an entry, and delays the response until then. Last two parameters as in cache_store_update. */
void cached_update_head(struct cached *cached, const struct cache_entry *entry, struct str head,
                        const struct cache_hash *locked, uint64_t fill_lock);
/*
 * True while the rest of the response is delayed until it is stored, so that the client's next request is a hit.
 * Afterwards the body is woken or, with `holds_head`, the exchange is resumed.
 */
bool cached_delays_body(const struct gateway_request *p);
/* True if the head is delayed: of a response without a body, of one from the cache after a 304, or of one to HEAD. */
bool cached_delays_head(struct gateway_request *p);
/* Sends a head that is delayed. */
void cached_release_head(struct cached *cached);

/* request_fields.c */

/* Sets the fields of the upstream request for a complete response or a revalidation. 0 or -ENOMEM. */
MUST_CHECK int cached_request_fields(struct gateway_request *p, struct headers *fields);

/* validate.c: a 304 of the upstream server. */

/*
 * Merges the fields of a 304 into those stored, except fields that describe the body (RFC 9111 3.2). 0 or -ENOMEM.
 */
MUST_CHECK int stored_response_merge(struct gateway_request *p, const struct stored_response *stored,
                                     struct headers *out);
/*
 * A 304 arrived: the stored response is updated and used. 1; -EAGAIN if the 304 concerns another version: the entry
 * is removed, send the request again; or -ENOMEM.
 */
MUST_CHECK int cached_revalidated(struct gateway_request *p, struct received_response *received);

/* not_modified.c: the client's conditions and a response that is being stored. */

/*
 * True for a 200 to GET or HEAD if If-None-Match, or without it If-Modified-Since, matches its validators. The response
 * is being stored, or, as in nginx, it is not stored for a reason other than its fields: it has no lifetime, is too
 * long, or `proxy_no_cache` excludes it. Date does not replace Last-Modified: the response was not stored when the
 * client got its version.
 */
bool cached_is_not_modified(const struct gateway_request *p);
/* As `detach` of struct gateway_fill. */
struct gateway_cached *cached_detach(struct gateway_request *p, struct gateway_request *rest);

/* fill.c: stores a response while it is passed on. */

/*
 * Processes the response head: stores or updates. 0; 1: x->response was filled from the cache (304); -EAGAIN: send
 * the request again without conditions; or -ENOMEM.
 */
MUST_CHECK int cached_response_head(struct gateway_request *p);
/* Adds a part of the body to the fill. */
void cached_put(struct gateway_request *p, struct str part);
/* True while too many bytes wait to be written to the disk; gateway_read is called afterwards. */
bool cached_fill_is_full(const struct gateway_request *p);
/* The body is complete. */
void cached_fill_end(struct gateway_request *p);
/* The body was interrupted: discards the fill, unless it can be completed later. */
void cached_fill_failed(struct gateway_request *p);

/* lookup.c: the lookup, and the end of the exchange. */

/*
 * Looks for a stored response before an upstream server is contacted. OUTCOME_RESPONDED; OUTCOME_PENDING
 * (gateway_resume or a response follows); or OUTCOME_DECLINED: contact the upstream server.
 */
enum outcome cached_lookup(struct gateway_request *p);
/* Handles a miss of slices. As cached_lookup. */
enum outcome cached_slices_missed(struct gateway_request *p);
/* Continues after the lookup of slices, from the loop. OUTCOME_DECLINED: without slices. */
void cached_slices_looked_up(struct gateway_request *p, enum outcome outcome);
/* Releases the fill lock of an update that did not start. */
void cached_update_release(struct cache_update *update);
/* Releases all references and locks, at the end of the exchange or after an internal redirect. */
void cached_end(struct gateway_request *p);

#endif
