/*
 * Removes responses from the index, and deletes their files on a helper thread. No request waits for it.
 */
#include "cache/cache_store_private.h"

#include <errno.h>
#include <stdlib.h>

struct delete_task {
    struct op op;
    const struct cache_conf *conf;
    struct cache_victims victims;
};

static int delete_work(void *argument)
{
    struct delete_task *task = argument;

    for (unsigned i = 0; i < task->victims.count; i++)
        cache_file_delete(&task->conf->directory, &task->victims.ids[i]);
    return 0;
}

/* Deletes the files here if no helper thread did: the index no longer contains them. */
static void delete_done(struct op *op, int result)
{
    struct delete_task *task = container_of(op, struct delete_task, op);

    if (result == -EBUSY || result == -ECANCELED)
        (void)delete_work(task);
    free(task);
}

void cache_store_delete(struct cache_store *store, const struct cache_victims *victims)
{
    struct delete_task *task = victims->count > 0 ? calloc(1, sizeof(*task)) : NULL;

    if (!task)
        return;
    task->op.done = delete_done;
    task->conf = store->conf;
    task->victims = *victims;
    loop_offload(store->loop, &task->op, delete_work, task);
}

bool cache_store_remove(struct cache_store *store, struct str key)
{
    struct cache_victims victims = {0};
    struct cache_hash hash;
    bool removed;

    cache_hash_key(key, &hash);
    removed = cache_zone_purge(store->conf->zone, &hash, cache_now_s(store), &victims);
    cache_store_delete(store, &victims);
    return removed;
}

bool cache_store_discard(struct cache_store *store, struct str key)
{
    struct cache_victims victims = {0};
    struct cache_view view = {0};
    struct cache_hash hash;

    cache_hash_key(key, &hash);
    if (!cache_zone_find(store->conf->zone, &hash, false, 0, &view, &victims) || view.sequence == 0 ||
        !cache_zone_remove(store->conf->zone, &hash, view.sequence, &victims))
        return false;
    cache_store_delete(store, &victims);
    return true;
}

void cache_store_remove_entry(struct cache_store *store, const struct cache_entry *entry)
{
    struct cache_victims victims = {0};

    (void)cache_zone_remove(store->conf->zone, &entry->id.hash, entry->id.sequence, &victims);
    cache_store_delete(store, &victims);
}
