/*
 * Responds with a stored response: its age, its fields, its body.
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/limits.h"
#include "modules/gateway/cache/partial.h"
#include "modules/gateway/fields.h"
#include "modules/gateway/response.h"
#include "server/representation.h"

#include <errno.h>

static void hold_cache_entry(void *resource)
{
    cache_entry_ref(resource);
}

static void release_cache_entry(void *resource)
{
    cache_entry_unref(resource);
}

int64_t cached_age(const struct cached *cached, const struct stored_metadata *metadata)
{
    int64_t resident = cached_now_s(cached) - metadata->received_s;

    return metadata->initial_age_s + (resident > 0 ? resident : 0);
}

int cached_add_age(const struct cached *cached, const struct stored_metadata *metadata)
{
    struct exchange *x = cached->p->x;
    struct str age = arena_printf(&x->arena, "%lld", (long long)cached_age(cached, metadata));

    return age.data ? headers_set(&x->response.headers, &x->arena, STR("Age"), age) : -ENOMEM;
}

void cached_release_lock(struct gateway_request *p)
{
    struct cached *cached = cached_of(p);

    if (cached && cached->fill_lock)
        cache_store_fill_unlock(cached->store, &cached->origin.hash, cached->fill_lock);
    if (cached)
        cached->fill_lock = 0;
}

enum reuse cached_reuse(const struct cached *cached, const struct stored_response *stored)
{
    struct freshness now = stored->freshness;

    now.age_s = cached_age(cached, &stored->metadata);
    return freshness_evaluate(&now, &cached->request_control);
}

int cached_respond(struct cached *cached, struct cache_entry *entry, const struct stored_metadata *metadata,
                  const struct headers *headers)
{
    struct gateway_request *p = cached->p;
    struct response *response = &p->x->response;
    const struct stored_response *stored = entry->parsed;
    struct representation whole = {.size = entry->body_length,
                                   .validators = stored->validators,
                                   .max_ranges = LIMIT_RANGES,
                                   .content = entry->content,
                                   .fd = entry->fd,
                                   .hold = hold_cache_entry,
                                   .release = release_cache_entry,
                                   .resource = entry};

    if (gateway_intercept(p, metadata->status, headers))
        return 0;
    response->headers.count = 0;
    response->reason.status = metadata->status; /* a 206 or 304 made from this response gets the standard phrase */
    response->reason.text = stored->reason;
    gateway_accel_rate(p, headers);
    if (gateway_pass_fields(p, headers, &p->x->arena, &response->headers) < 0 ||
        gateway_set_charset(p, headers, &response->headers) < 0 || gateway_rewrite_head(p) < 0 ||
        cached_add_age(cached, metadata) < 0)
        return -ENOMEM;
    if (cached_is_partial(cached, entry))
        cached_partial_represent(cached, &whole);
    if (metadata->status == 200 || whole.span) {
        struct str type = headers_value(&response->headers, STR("Content-Type"));

        whole.media_type = type.data ? type : STR("");
        return representation_respond(p->x, &whole);
    }
    response->status = metadata->status;
    response->body = representation_body(p->x, &whole);
    return response->body ? 0 : -ENOMEM;
}

/*
 * Responds with a stored response, whose fields point into the entry. Takes over the reference until the end of the
 * exchange.
 */
enum outcome cached_respond_with(struct cached *cached, struct cache_entry *entry, enum cached_status status)
{
    const struct stored_response *stored = entry->parsed;
    int error;

    cached->base.status = status;
    cached->p->stage = GATEWAY_DONE;
    cached_release_lock(cached->p);
    cache_entry_unref(cached->stale);
    cached->stale = entry;
    error = cached_respond(cached, entry, &stored->metadata, &stored->headers);
    return error < 0 ? exchange_error_response(cached->p->x, 500) : OUTCOME_RESPONDED;
}
