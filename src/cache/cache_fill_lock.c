/*
 * Lets one of several concurrent requests for a hash fetch the response. The end of a fill in this worker wakes the
 * waiters; for fills of other workers a timer checks the lock.
 */
#include "cache/cache_store_private.h"

#include "base/limits.h"

#include <errno.h>

static void wait_timer_done(struct op *op, int result);

void cache_fill_lock_init(struct cache_store *store)
{
    list_init(&store->waiters);
    store->wait_timer.done = wait_timer_done;
}

uint64_t cache_store_fill_lock(struct cache_store *store, const struct cache_hash *hash, uint64_t max_ms)
{
    uint64_t now_ms = store->loop->clock.monotonic_ms;
    uint64_t fill_lock = ++store->fill_locks * LIMIT_WORKERS + store->worker;
    struct cache_victims victims = {0};
    bool taken = cache_zone_fill_lock(store->conf->zone, hash, fill_lock, now_ms, now_ms + max_ms, &victims);

    cache_store_delete(store, &victims);
    return taken ? fill_lock : 0;
}

/* Wakes the waiters for that hash (NULL: for any hash without a fill in progress), and those past their timeout. */
static void wake_waiters(struct cache_store *store, const struct cache_hash *hash)
{
    uint64_t now_ms = store->loop->clock.monotonic_ms;
    struct list due;
    struct list *link;

    list_init(&due);
    for (link = store->waiters.next; link != &store->waiters;) {
        struct cache_waiter *waiter = container_of(link, struct cache_waiter, link);
        bool is_free = hash ? memcmp(hash, &waiter->hash, sizeof(*hash)) == 0
                            : !cache_zone_fill_locked(store->conf->zone, &waiter->hash, now_ms);

        link = link->next;
        if (is_free || now_ms >= waiter->until_ms) {
            list_remove(&waiter->link);
            list_push(&due, &waiter->link);
        }
    }
    while ((link = list_pop(&due)) != NULL) {
        struct cache_waiter *waiter = container_of(link, struct cache_waiter, link);

        waiter->woken(waiter, now_ms >= waiter->until_ms);
    }
}

static void wait_timer_done(struct op *op, int result)
{
    struct cache_store *store = container_of(op, struct cache_store, wait_timer);

    if (result == -ECANCELED)
        return;
    wake_waiters(store, NULL);
    if (!list_empty(&store->waiters) && op_idle(op))
        loop_timer(store->loop, op, store->loop->clock.monotonic_ms + LIMIT_CACHE_CHECK_MS);
}

void cache_store_fill_unlock(struct cache_store *store, const struct cache_hash *hash, uint64_t fill_lock)
{
    if (fill_lock == 0)
        return;
    cache_zone_fill_unlock(store->conf->zone, hash, fill_lock);
    wake_waiters(store, hash);
}

void cache_store_wait(struct cache_store *store, struct cache_waiter *waiter)
{
    list_init(&waiter->link);
    list_push(&store->waiters, &waiter->link);
    if (!store->stopping && op_idle(&store->wait_timer))
        loop_timer(store->loop, &store->wait_timer, store->loop->clock.monotonic_ms + LIMIT_CACHE_CHECK_MS);
}

void cache_waiter_cancel(struct cache_waiter *waiter)
{
    if (waiter->link.next)
        list_remove(&waiter->link);
}
