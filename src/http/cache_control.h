/*
 * Cache-Control of requests and responses (RFC 9111 5.2, RFC 5861), and Vary. Malformed or contradictory directives
 * get their most restrictive meaning: fewer responses are stored, for a shorter time.
 */
#ifndef HTTP_CACHE_CONTROL_H
#define HTTP_CACHE_CONTROL_H

#include "http/headers.h"

#define DELTA_NONE (-1)             /* absent */
#define DELTA_MAX 2147483648        /* RFC 9111 1.2.2: larger values are lowered to this */

enum cache_side { CACHE_OF_REQUEST, CACHE_OF_RESPONSE };

/* Seconds are DELTA_NONE, or 0 to DELTA_MAX. */
struct cache_control {
    bool no_store, no_cache, no_transform, only_if_cached;
    bool malformed;                 /* a member does not have the syntax of a directive (5.2) */
    bool is_public, is_private, must_revalidate, proxy_revalidate, must_understand;
    int64_t max_age;                /* 0 for an invalid value or for contradictory values (4.2.1) */
    int64_t s_maxage;               /* the same */
    int64_t max_stale, min_fresh;   /* max-stale without a value: DELTA_MAX */
    int64_t stale_while_revalidate, stale_if_error;
};

/*
 * Parses all Cache-Control fields together. Field names in a value (private="Set-Cookie") are ignored; values may be
 * quoted; unknown directives are skipped. In a request without Cache-Control, Pragma: no-cache sets `no_cache`.
 */
void cache_control_read(const struct headers *headers, enum cache_side side, struct cache_control *out);

/* Sets all directives to absent. */
void cache_control_clear(struct cache_control *out);
/* Records one directive, merged with its earlier occurrences; unknown names are ignored. */
void cache_control_add(struct cache_control *control, enum cache_side side, struct str name, struct str value,
                       bool has_value);
/*
 * Parses a targeted field (RFC 9213) of a response: an RFC 9651 Dictionary, in which the last of several members of
 * one name counts. 0 with *out set; -ENOENT: absent or empty; -EINVAL: malformed, to be ignored.
 */
MUST_CHECK int cache_control_read_targeted(const struct headers *headers, struct str name, struct cache_control *out);

/* Parses delta-seconds, optionally quoted, limited to DELTA_MAX. 0 or -EINVAL. */
MUST_CHECK int delta_seconds_parse(struct str text, int64_t *out_seconds);

/*
 * The names in Vary, in lower case, sorted, without duplicates, joined by ','; empty: none. 0; -ENOTSUP for "*", an
 * invalid name or more than LIMIT_VARY_FIELDS names: the response cannot be selected by fields; or -ENOMEM.
 */
MUST_CHECK int vary_read(const struct headers *headers, struct arena *arena, struct str *out_names);
/*
 * The values of these fields (names from vary_read) in a request as text: equal texts select the same response (RFC
 * 9111 4.1: lines joined, whitespace around members removed). data NULL: out of memory.
 */
struct str vary_text(struct str names, const struct headers *request_headers, struct arena *arena);

#endif
