/*
 * The start of a fill: the key of a response by its Vary, and delays until the response is published.
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/limits.h"
#include "modules/gateway/response_body.h"

#include <errno.h>

static bool is_publishing(const struct cached *cached)
{
    return cached->publishing[0] || cached->publishing[1];
}

static void fill_published(struct cache_fill *fill)
{
    struct cached *cached = fill->owner;

    for (size_t i = 0; i < 2; i++) {
        if (cached->publishing[i] == fill)
            cached->publishing[i] = NULL;
    }
    if (is_publishing(cached) || cached->base.fill)
        return;
    if (cached->holds_head)
        exchange_resume(cached->p->x, OUTCOME_ANSWERED);
    else
        gateway_wake_body(cached->p);
    cached->holds_head = false;
}

void cached_publish(struct cached *cached, struct cache_fill *fill)
{
    size_t place = cached->publishing[0] ? 1 : 0;

    if (cached->base.background || cached->publishing[place])
        return;
    cached->publishing[place] = fill;
    fill->owner = cached;
    fill->ended = fill_published;
}

bool cached_delays_body(const struct gateway_request *p)
{
    const struct cached *cached = cached_of(p);

    if (!cached || cached->base.background)
        return false;
    return cached->base.fill ? cached->stored_bytes == p->reply.content_length : is_publishing(cached);
}

bool cached_delays_head(struct gateway_request *p)
{
    struct cached *cached = cached_of(p);

    if (!cached || !cached->base.fill || cached->base.background || p->reply.content_length != 0)
        return false;
    cached->holds_head = true;
    return true;
}

/* The entry of the primary key holds the field names of Vary. */
static int store_names(struct cached *cached, struct str names)
{
    struct stored_metadata metadata = {.salt = cached->salt};
    struct headers fields = {0};
    struct cache_fill *fill;
    struct str head;

    if (headers_add(&fields, &cached->p->x->arena, STR("Vary"), names) < 0)
        return -ENOMEM;
    head = stored_response_write(&metadata, &fields, &cached->p->x->arena);
    fill = head.data ? cache_fill_begin(cached->store, cached->primary, &cached->origin, 0) : NULL;
    if (!fill)
        return -ENOMEM;
    cached_publish(cached, fill);
    cache_fill_end(fill, head);
    return 0;
}

int cached_find_key(struct cached *cached, const struct headers *counting)
{
    struct arena *arena = &cached->p->x->arena;
    struct str names;
    int error = vary_read(counting, arena, &names);

    if (error < 0)
        return error;
    if (str_empty(names)) {
        cached->key = cached->primary;
        return 0;
    }
    if (!cached->names.data || !str_equal(names, cached->names)) {
        cached->names = names;
        cached->salt = cache_zone_sequence(cache_store_conf(cached->store)->zone);
        error = store_names(cached, names);
    }
    if (error < 0)
        return error;
    cached->key = cached_key(cached, vary_text(names, &cached->p->x->request.headers, arena));
    return cached->key.data && cached->key.length <= LIMIT_CACHE_KEY ? 0 : -ENOTSUP;
}

static void fill_has_room(void *owner)
{
    gateway_read(owner);
}

int cached_fill_begin(struct cached *cached, struct str key)
{
    cached->base.fill = cache_fill_begin(cached->store, key, &cached->origin, cached->fill_lock);
    if (!cached->base.fill)
        return -ENOMEM;
    cached->fill_lock = 0;
    cached->base.fill->owner = cached->p;
    cached->base.fill->room = fill_has_room;
    return 0;
}
