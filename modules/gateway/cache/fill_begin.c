/*
 * The start of storing: the key of a response by its Vary, and delays until the response is published.
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/limits.h"
#include "modules/gateway/response_body.h"

#include <errno.h>

static bool is_publishing(const struct cached *cached)
{
    return cached->publishing[0] || cached->publishing[1] || cached->head_update.task;
}

void cached_release_head(struct cached *cached)
{
    if (cached->holds_head)
        exchange_resume(cached->p->x, OUTCOME_RESPONDED);
    cached->holds_head = false;
}

/* One of the files is published, or was discarded. */
static void part_published(struct cached *cached)
{
    if (is_publishing(cached) || cached->base.fill)
        return;
    if (cached->holds_head)
        cached_release_head(cached);
    else
        gateway_wake_body(cached->p);
}

static void fill_published(struct cache_fill *fill)
{
    struct cached *cached = fill->owner;

    for (size_t i = 0; i < 2; i++) {
        if (cached->publishing[i] == fill)
            cached->publishing[i] = NULL;
    }
    part_published(cached);
}

static void head_updated(struct cache_head_update *head_update)
{
    part_published(container_of(head_update, struct cached, head_update));
}

void cached_update_head(struct cached *cached, const struct cache_entry *entry, struct str head,
                  const struct cache_hash *locked, uint64_t fill_lock)
{
    bool delays = !cached->base.background && !cached->head_update.task;

    cached->head_update.ended = head_updated;
    cache_store_update(cached->store, entry, head, locked, fill_lock, delays ? &cached->head_update : NULL);
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

/*
 * True if the head can wait: there is no body, or for a response without it (304, HEAD sent as GET) no long one.
 * cached_put ends the delay of HEAD.
 */
static bool is_stored_soon(const struct gateway_request *p)
{
    uint64_t length = p->reply.content_length;

    if (p->for_head == FOR_HEAD_FETCHES)
        return length <= LIMIT_CACHE_HEAD_DELAY || length == BODY_LENGTH_UNKNOWN;
    return length == 0 || (p->not_modified && length <= LIMIT_CACHE_HEAD_DELAY);
}

bool cached_delays_head(struct gateway_request *p)
{
    struct cached *cached = cached_of(p);

    if (!cached || cached->base.background)
        return false;
    cached->holds_head = cached->base.fill ? is_stored_soon(p) : cached->head_update.task != NULL;
    return cached->holds_head;
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
    head = stored_response_write(&metadata, STR(""), &fields, &cached->p->x->arena);
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

static void fill_writable(void *owner)
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
    cached->base.fill->writable = fill_writable;
    return 0;
}
