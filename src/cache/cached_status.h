/*
 * How the response cache took part in a response: the values of $upstream_cache_status.
 */
#ifndef CACHE_CACHED_STATUS_H
#define CACHE_CACHED_STATUS_H

enum cached_status {
    CACHED_NOT,                     /* no cache lookup */
    CACHED_MISS,
    CACHED_BYPASS,
    CACHED_EXPIRED,
    CACHED_STALE,
    CACHED_UPDATING,
    CACHED_REVALIDATED,
    CACHED_PARTIAL,                 /* a part was stored, the rest was requested */
    CACHED_HIT,
    CACHED_STATUSES,
};

/* The word of $upstream_cache_status, such as "HIT". NULL: CACHED_NOT. */
const char *cached_status_name(enum cached_status status);

#endif
