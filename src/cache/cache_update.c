/*
 * Appends a new head to the file of an entry, on a helper thread.
 */
#include "cache/cache_store_private.h"

#include <stdlib.h>

struct cache_update_task {
    struct op op;
    struct cache_store *store;
    const struct cache_conf *conf;
    struct cache_id id;
    struct cache_view view;
    struct buffer head;
    struct cache_hash locked;
    uint64_t fill_lock;             /* released afterwards; 0: none */
    struct cache_head_update *head_update; /* waits for the head; NULL: none */
};

static int update_work(void *argument)
{
    struct cache_update_task *task = argument;

    return cache_file_update(&task->conf->directory, task->conf->zone, &task->id, &task->view,
                             buffer_str(&task->head));
}

static void update_done(struct op *op, int result)
{
    struct cache_update_task *task = container_of(op, struct cache_update_task, op);

    cache_store_fill_unlock(task->store, &task->locked, task->fill_lock);
    if (task->head_update) {
        task->head_update->task = NULL;
        task->head_update->ended(task->head_update);
    }
    buffer_finish(&task->head);
    free(task);
}

void cache_store_update(struct cache_store *store, const struct cache_entry *entry, struct str head,
                        const struct cache_hash *locked, uint64_t fill_lock, struct cache_head_update *head_update)
{
    struct cache_update_task *task = calloc(1, sizeof(*task));

    if (!task || buffer_append(&task->head, head) < 0) {
        free(task);
        cache_store_fill_unlock(store, locked, fill_lock);
        return;
    }
    task->op.done = update_done;
    task->store = store;
    task->conf = store->conf;
    task->id = entry->id;
    task->view = entry->view;
    task->locked = *locked;
    task->fill_lock = fill_lock;
    task->head_update = head_update;
    if (head_update)
        head_update->task = task;
    loop_offload(store->loop, &task->op, update_work, task);
}

void cache_head_update_cancel(struct cache_head_update *head_update)
{
    if (head_update->task)
        head_update->task->head_update = NULL;
    head_update->task = NULL;
}
