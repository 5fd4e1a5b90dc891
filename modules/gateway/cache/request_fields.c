/*
 * Request fields for fetching a complete response or a slice, and for revalidation.
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/limits.h"
#include "modules/gateway/cache/partial.h"

#include <errno.h>

/* Conditions and ranges of the client, which are removed to request the complete response. */
static const char *const of_client[] = {"Range",         "If-Range",          "If-Match",
                                        "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"};

static int set_range(struct gateway_request *p, struct headers *fields)
{
    struct range range = p->slice.functions->range(&p->slice);
    struct str value = arena_printf(&p->x->arena, "bytes=%llu-%llu", (unsigned long long)range.first,
                                    (unsigned long long)range.last);

    return value.data ? headers_add(fields, &p->x->arena, STR("Range"), value) : -ENOMEM;
}

int cached_request_fields(struct gateway_request *p, struct headers *fields)
{
    struct cached *cached = cached_of(p);
    struct arena *arena = &p->x->arena;
    const struct stored_response *stored;
    struct str modified;
    int error;

    if (!cached || (!cached->stores && !p->slice.of))
        return 0;
    if (cached->partial && cached_partial_passes(cached))
        return 0;
    for (size_t i = 0; i < sizeof(of_client) / sizeof(of_client[0]); i++)
        headers_remove(fields, str_from(of_client[i]));
    if (p->slice.of)
        return set_range(p, fields);
    error = cached->partial ? cached_partial_fields(cached, fields) : 0;
    if (error != 0)
        return error < 0 ? error : 0;
    if (!cached->stale || !p->conf->cache.revalidate || cached->stale->updates >= LIMIT_CACHE_UPDATES)
        return 0;
    if (p->sent.content_length != 0) /* the request cannot be repeated */
        return 0;
    stored = cached->stale->parsed;
    modified = headers_value(&stored->headers, STR("Last-Modified"));
    cached->revalidates = stored->validators.etag.length > 0 || modified.length > 0;
    if (stored->validators.etag.length > 0 &&
        headers_add(fields, arena, STR("If-None-Match"), arena_copy(arena, stored->validators.etag)) < 0)
        return -ENOMEM;
    return modified.length > 0 ? headers_add(fields, arena, STR("If-Modified-Since"), arena_copy(arena, modified)) : 0;
}
