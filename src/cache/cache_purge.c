/*
 * Removes stored responses by their keys. The index contains hashes only, so a purge by prefix reads the key of each
 * file, in steps on a helper thread: other tasks run between two steps.
 */
#include "cache/cache_purge.h"

#include "base/saturate.h"
#include "cache/cache_store_private.h"

#include <errno.h>
#include <stdlib.h>

/* May outlive its owner. */
struct purge_task {
    struct op op;
    struct cache_store *store;
    struct cache_prefix_purge *purge; /* NULL: cancelled */
    uint64_t since;                 /* files with a newer sequence number stay */
    uint32_t cursor;
    uint64_t removed;
    bool more;
    struct buffer key;              /* of the file being examined */
    struct str prefix;
    char text[];
};

/* Removes the entry of a key with this suffix. */
static bool remove_with_suffix(struct cache_store *store, struct str key, struct str suffix,
                               bool (*remove)(struct cache_store *store, struct str key))
{
    struct buffer text = {0};
    bool removed = buffer_append(&text, key) == 0 && buffer_append(&text, suffix) == 0 &&
                   remove(store, buffer_str(&text));

    buffer_finish(&text);
    return removed;
}

unsigned cache_purge_key(struct cache_store *store, struct str key)
{
    unsigned removed = cache_store_remove(store, key);

    removed += remove_with_suffix(store, key, STR(CACHE_KEY_SLICES), cache_store_remove);
    removed += remove_with_suffix(store, key, STR(CACHE_KEY_PARTIAL), cache_store_discard);
    return removed;
}

static void remove_file(struct purge_task *task, const struct cache_file *file)
{
    const struct cache_conf *conf = task->store->conf;

    if (!cache_zone_purge_file(conf->zone, &file->id, task->since))
        return;
    cache_file_delete(&conf->directory, &file->id);
    task->removed++;
}

/* Removes the file if its key has the prefix. 0, or -errno if its key is not known. */
static int examine_file(struct purge_task *task, const struct cache_file *file)
{
    struct cache_file_start start = {.key = STR("")};
    int error = str_empty(task->prefix) ? 0
                                        : cache_file_read_start(&task->store->conf->directory, &file->id, file->size,
                                                                0, &task->key, &start);

    if (error == 0 && str_starts(start.key, task->prefix))
        remove_file(task, file);
    return cache_is_exhausted(error) ? error : 0;
}

/* One step. */
static int purge_work(void *argument)
{
    struct purge_task *task = argument;
    const struct cache_conf *conf = task->store->conf;
    struct cache_file files[CACHE_VICTIMS];
    struct clock began, now;
    uint64_t seen = 0;
    int error = 0;

    clock_read(&began);
    do {
        unsigned count = cache_zone_files(conf->zone, &task->cursor, task->since, files, &task->more);

        for (unsigned i = 0; i < count && error == 0; i++)
            error = examine_file(task, &files[i]);
        seen += count;
        clock_read(&now);
    } while (error == 0 && task->more && seen < conf->files_at_once &&
             u64_sub_sat(now.monotonic_ms, began.monotonic_ms) < conf->step_ms);
    return error;
}

static void purge_step_done(struct op *op, int result)
{
    struct purge_task *task = container_of(op, struct purge_task, op);
    struct cache_prefix_purge *purge = task->purge;

    if (purge)
        purge->removed = task->removed;
    if (purge && result == 0 && task->more && !task->store->stopping) {
        loop_offload(task->store->loop, &task->op, purge_work, task);
        return;
    }
    buffer_finish(&task->key);
    free(task);
    if (!purge)
        return;
    purge->task = NULL;
    purge->ended(purge, result);
}

int cache_purge_prefix(struct cache_store *store, struct cache_prefix_purge *purge, struct str prefix)
{
    struct purge_task *task;

    if (!cache_zone_loaded(store->conf->zone))
        return -EAGAIN;
    task = calloc(1, sizeof(*task) + prefix.length);
    if (!task)
        return -ENOMEM;
    task->op.done = purge_step_done;
    task->store = store;
    task->purge = purge;
    if (prefix.length > 0)
        memcpy(task->text, prefix.data, prefix.length);
    task->prefix = str_of(task->text, prefix.length);
    task->since = cache_zone_refuse_fetches(store->conf->zone);
    purge->removed = 0;
    purge->task = task;
    loop_offload(store->loop, &task->op, purge_work, task);
    return 0;
}

void cache_purge_cancel(struct cache_prefix_purge *purge)
{
    if (purge->task)
        purge->task->purge = NULL;
    purge->task = NULL;
}
