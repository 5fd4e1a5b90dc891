/*
 * Lists stored responses. The index contains hashes only: keys and metadata are read from the files, in steps on a
 * helper thread; other tasks run between two steps.
 */
#include "cache/cache_list.h"

#include "base/saturate.h"
#include "cache/cache_store_private.h"

#include <errno.h>
#include <stdlib.h>

/* May outlive its owner. */
struct list_task {
    struct op op;
    struct cache_store *store;
    struct cache_page *page;        /* NULL: cancelled */
    uint64_t since;                 /* files with a newer sequence number are not listed */
    uint32_t cursor;
    bool more;                      /* the index has more nodes after `cursor` */
    bool full;                      /* the page has no room for further entries */
    struct buffer text;             /* the keys of the entries */
    struct buffer start;            /* of the file being read */
    struct cache_listed *entries;
    size_t count, max, max_text;
    struct str prefix;
    char prefix_text[];
};

static void task_free(struct list_task *task)
{
    buffer_finish(&task->text);
    buffer_finish(&task->start);
    free(task->entries);
    free(task);
}

/* Adds an entry, whose key is set when the page is complete: until then `text` may move. */
static int add_entry(struct list_task *task, const struct cache_file *file, const struct cache_file_start *start,
                     uint32_t now_s)
{
    struct cache_listed *entry = &task->entries[task->count];
    int error = buffer_append(&task->text, start->key);

    if (error < 0)
        return error;
    *entry = (struct cache_listed){.key.length = start->key.length,
                                   .body_length = start->body_length,
                                   .idle_s = now_s > file->used_s ? now_s - file->used_s : 0};
    entry->has_metadata = stored_metadata_read(start->head, &entry->metadata) == 0;
    task->count++;
    task->full = task->count == task->max || task->text.length >= task->max_text;
    return 0;
}

/* Lists the file if its key has the prefix. 0, or -errno if its key is not known. */
static int examine_file(struct list_task *task, const struct cache_file *file, uint32_t now_s)
{
    struct cache_file_start start;
    int error = cache_file_read_start(&task->store->conf->directory, &file->id, file->size,
                                      sizeof(struct stored_metadata), &task->start, &start);

    if (error < 0)
        return cache_is_exhausted(error) ? error : 0;
    return str_starts(start.key, task->prefix) ? add_entry(task, file, &start, now_s) : 0;
}

/* Examines files until the page is full; then the cursor is the position of the last one examined. 0 or -errno. */
static int examine_files(struct list_task *task, const struct cache_file *files, unsigned count, uint32_t now_s)
{
    for (unsigned i = 0; i < count; i++) {
        int error = examine_file(task, &files[i], now_s);

        if (error < 0)
            return error;
        if (task->full) {
            task->more |= i + 1 < count;
            task->cursor = files[i].node;
            break;
        }
    }
    return 0;
}

/* One step. */
static int list_work(void *argument)
{
    struct list_task *task = argument;
    const struct cache_conf *conf = task->store->conf;
    struct cache_file files[CACHE_VICTIMS];
    struct clock began, now;
    uint64_t seen = 0;
    int error;

    clock_read(&began);
    do {
        unsigned count = cache_zone_files(conf->zone, &task->cursor, task->since, files, &task->more);

        error = examine_files(task, files, count, (uint32_t)(began.monotonic_ms / 1000));
        seen += count;
        clock_read(&now);
    } while (error == 0 && !task->full && task->more && seen < conf->files_at_once &&
             u64_sub_sat(now.monotonic_ms, began.monotonic_ms) < conf->step_ms);
    return error;
}

/* Passes the entries to the owner. */
static void end_page(struct list_task *task, struct cache_page *page, int result)
{
    const char *at = task->text.data;

    for (size_t i = 0; i < task->count; i++) {
        task->entries[i].key.data = task->entries[i].key.length > 0 ? at : "";
        at += task->entries[i].key.length;
    }
    page->task = NULL;
    page->entries = task->entries;
    page->count = result == 0 ? task->count : 0;
    page->cursor = result == 0 && task->more ? task->cursor : 0;
    page->ended(page, result); /* may free the page */
}

static void list_step_done(struct op *op, int result)
{
    struct list_task *task = container_of(op, struct list_task, op);
    struct cache_page *page = task->page;

    if (page && result == 0 && task->more && !task->full && !task->store->stopping) {
        loop_offload(task->store->loop, &task->op, list_work, task);
        return;
    }
    if (page)
        end_page(task, page, result);
    task_free(task);
}

static struct list_task *task_create(struct cache_store *store, struct cache_page *page, struct str prefix)
{
    struct list_task *task = calloc(1, sizeof(*task) + prefix.length);

    if (!task)
        return NULL;
    task->entries = calloc(page->max, sizeof(*task->entries));
    if (!task->entries) {
        free(task);
        return NULL;
    }
    if (prefix.length > 0)
        memcpy(task->prefix_text, prefix.data, prefix.length);
    task->prefix = str_of(task->prefix_text, prefix.length);
    task->op.done = list_step_done;
    task->store = store;
    task->page = page;
    task->cursor = page->cursor;
    task->max = page->max;
    task->max_text = page->max_text;
    return task;
}

int cache_list(struct cache_store *store, struct cache_page *page, struct str prefix)
{
    struct list_task *task = task_create(store, page, prefix);

    if (!task)
        return -ENOMEM;
    task->since = cache_zone_sequence(store->conf->zone);
    page->task = task;
    loop_offload(store->loop, &task->op, list_work, task);
    return 0;
}

void cache_list_cancel(struct cache_page *page)
{
    if (page->task)
        page->task->page = NULL;
    page->task = NULL;
}
