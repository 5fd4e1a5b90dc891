/*
 * Cache-Control (RFC 9111 5.2, RFC 5861), of requests and of responses, and Vary. Read so that whatever is
 * malformed or says two things at once keeps less, and shorter.
 */
#ifndef HTTP_CACHE_CONTROL_H
#define HTTP_CACHE_CONTROL_H

#include "http/headers.h"

#define DELTA_NONE (-1)             /* not said */
#define DELTA_MOST 2147483648       /* RFC 9111 1.2.2: whatever is longer counts as this */

enum cache_side { CACHE_OF_REQUEST, CACHE_OF_RESPONSE };

/* Seconds are DELTA_NONE, or 0 to DELTA_MOST. */
struct cache_control {
    bool no_store, no_cache, no_transform, only_if_cached;
    bool malformed;                 /* a member is no directive (5.2): what it hides is not known */
    bool is_public, is_private, must_revalidate, proxy_revalidate, must_understand;
    int64_t max_age;                /* of a response that says it badly, or twice differently: 0 (4.2.1) */
    int64_t s_maxage;               /* the same */
    int64_t max_stale, min_fresh;   /* max-stale without a value: DELTA_MOST */
    int64_t stale_while_revalidate, stale_if_error;
};

/*
 * All fields of that name together. What names fields (private="Set-Cookie") counts as if it named none; values may be quoted;
 * unknown directives are skipped. In a request without the field, Pragma: no-cache stands for it.
 */
void cache_control_read(const struct headers *headers, enum cache_side side, struct cache_control *out);

/* Nothing is said. */
void cache_control_clear(struct cache_control *out);
/* One directive, perhaps with a value: a known one is noted, with what was noted before in mind. */
void cache_control_note(struct cache_control *control, enum cache_side side, struct str name, struct str value, bool has_value);
/*
 * The same of a targeted field (RFC 9213) of a response: a Dictionary of RFC 9651, in which the last of several members of one name counts. 0, and *out is filled;
 * -ENOENT: it is absent or empty; -EINVAL: malformed, and so to be ignored.
 */
MUST_CHECK int cache_control_read_targeted(const struct headers *headers, struct str name, struct cache_control *out);

/* delta-seconds, perhaps in quotes, at most DELTA_MOST. 0 or -EINVAL. */
MUST_CHECK int delta_read(struct str text, int64_t *out_seconds);

/*
 * The names in Vary, lower case, sorted, each once, joined by ','; empty: the answer depends on no field. 0; -ENOTSUP where it depends on
 * something that cannot be known: "*" anywhere in it, a name that is none, or more than LIMIT_VARY_FIELDS; or -ENOMEM.
 */
MUST_CHECK int vary_read(const struct headers *headers, struct arena *arena, struct str *out_names);
/*
 * What a request says in these names (of vary_read), as text: two requests that may have the same answer have the same text (RFC 9111 4.1:
 * lines joined, blanks around members gone). data NULL: out of memory.
 */
struct str vary_text(struct str names, const struct headers *asked, struct arena *arena);

#endif
