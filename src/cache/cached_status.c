/*
 * The words of $upstream_cache_status.
 */
#include "cache/cached_status.h"

const char *cached_status_name(enum cached_status status)
{
    static const char *const names[CACHED_STATUSES] = {
        [CACHED_MISS] = "MISS",         [CACHED_BYPASS] = "BYPASS",     [CACHED_EXPIRED] = "EXPIRED",
        [CACHED_STALE] = "STALE",       [CACHED_UPDATING] = "UPDATING", [CACHED_REVALIDATED] = "REVALIDATED",
        [CACHED_PARTIAL] = "PARTIAL",   [CACHED_HIT] = "HIT",
    };

    return names[status];
}
