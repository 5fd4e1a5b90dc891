/*
 * Open entries by key. cache_zone_current checks without a lock whether an entry is still the newest; a miss reads
 * the index, and then a helper thread opens the file.
 */
#include "cache/cache_store_private.h"

#include "base/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* The opening of a file by a helper thread. May outlive the lookup. */
struct open_task {
    struct op op;
    struct cache_store *store;
    struct cache_lookup *lookup;    /* NULL: cancelled */
    struct cache_id id;
    struct cache_view view;
    struct cache_opened opened;
    int error;
    struct str key;
    char text[];
};

struct cache_store *cache_store_create(struct loop *loop, struct log *log, const struct cache_conf *conf,
                                       unsigned worker)
{
    struct cache_store *store = calloc(1, sizeof(*store));

    if (!store)
        return NULL;
    store->loop = loop;
    store->log = log;
    store->conf = conf;
    store->worker = worker;
    table_init(&store->entries, false);
    list_init(&store->used);
    cache_fill_lock_init(store);
    store->cache_manager = cache_manager_create(store);
    if (store->cache_manager)
        return store;
    free(store);
    return NULL;
}

const struct cache_conf *cache_store_conf(const struct cache_store *store)
{
    return store->conf;
}

static void entry_free(struct cache_entry *entry)
{
    cache_opened_close(&entry->opened);
    free(entry->parsed);
    free(entry);
}

/* Removes an entry from the table: it is freed with its last reference. */
static void entry_unlink(struct cache_entry *entry)
{
    if (!entry->linked)
        return;
    entry->linked = false;
    entry->store->entry_count--;
    table_remove(&entry->store->entries, entry->key);
    list_remove(&entry->link);
    if (entry->references == 0)
        entry_free(entry);
}

struct cache_entry *cache_entry_ref(struct cache_entry *entry)
{
    entry->references++;
    return entry;
}

void cache_entry_unref(struct cache_entry *entry)
{
    if (entry && --entry->references == 0 && !entry->linked)
        entry_free(entry);
}

void cache_store_stop(struct cache_store *store)
{
    if (!store)
        return;
    store->stopping = true;
    loop_cancel(store->loop, &store->wait_timer);
    cache_manager_stop(store->cache_manager);
}

void cache_store_destroy(struct cache_store *store)
{
    if (!store)
        return;
    while (!list_empty(&store->used))
        entry_unlink(container_of(store->used.next, struct cache_entry, link));
    table_finish(&store->entries);
    cache_manager_destroy(store->cache_manager);
    free(store);
}

static void link_entry(struct cache_store *store, struct cache_entry *entry)
{
    struct cache_entry *before = table_get(&store->entries, entry->key);

    if (before)
        entry_unlink(before);
    if (store->entry_count >= LIMIT_CACHE_OPEN)
        entry_unlink(container_of(store->used.next, struct cache_entry, link));
    if (table_set(&store->entries, entry->key, entry) < 0)
        return;
    list_push(&store->used, &entry->link);
    entry->linked = true;
    store->entry_count++;
}

/* Creates an entry with one reference from an opened file. NULL: out of memory; the file is closed. */
static struct cache_entry *entry_make(struct open_task *task)
{
    struct cache_entry *entry = calloc(1, sizeof(*entry));

    if (!entry) {
        cache_opened_close(&task->opened);
        return NULL;
    }
    entry->store = task->store;
    list_init(&entry->link);
    entry->references = 1;
    if (task->opened.content.data) { /* the body is in memory: saves a descriptor */
        close(task->opened.fd);
        task->opened.fd = -1;
    }
    entry->opened = task->opened;
    entry->key = entry->opened.key;
    entry->head = entry->opened.head;
    entry->body_length = entry->opened.body_length;
    entry->content = entry->opened.content;
    entry->updates = entry->opened.updates;
    entry->fd = entry->opened.fd;
    entry->id = task->id;
    entry->view = task->view;
    link_entry(task->store, entry);
    return entry;
}

static int open_work(void *argument)
{
    struct open_task *task = argument;
    const struct cache_conf *conf = task->store->conf;

    task->error = cache_file_open(&conf->directory, &task->id, task->view.size, LIMIT_FILE_CACHE_CONTENT,
                                  &task->opened);
    return 0;
}

/* Makes an entry of the opened file. Removes an invalid file; a file with another key of the same hash is a miss. */
static struct cache_entry *check_opened(struct open_task *task)
{
    struct cache_store *store = task->store;
    struct cache_victims victims = {0};

    if (task->error == -ENOENT || task->error == -EBADMSG || task->error == -ELOOP) {
        if (task->error == -EBADMSG)
            log_write(store->log, LOG_ERROR, "cache \"" STR_FMT "\": a damaged file is deleted",
                      STR_ARG(store->conf->name));
        if (cache_zone_remove(store->conf->zone, &task->id.hash, task->id.sequence, &victims))
            cache_store_delete(store, &victims);
        return NULL;
    }
    if (task->error < 0)
        return NULL;
    if (!task->lookup || !str_equal(task->opened.key, task->key)) {
        cache_opened_close(&task->opened);
        return NULL;
    }
    return entry_make(task);
}

static void open_done(struct op *op, int result)
{
    struct open_task *task = container_of(op, struct open_task, op);
    struct cache_lookup *lookup = task->lookup;
    struct cache_entry *entry;

    if (result < 0) /* the queue of the helper threads is full, or the worker ends: a miss */
        task->error = result;
    entry = check_opened(task);
    free(task);
    if (!lookup)
        return;
    lookup->task = NULL;
    lookup->found(lookup, entry);
}

static bool open_entry(struct cache_store *store, struct cache_lookup *lookup, struct str key,
                       const struct cache_view *view)
{
    struct open_task *task = calloc(1, sizeof(*task) + key.length);

    if (!task)
        return false;
    task->op.done = open_done;
    task->store = store;
    task->lookup = lookup;
    task->id = (struct cache_id){lookup->hash, view->sequence};
    task->view = *view;
    task->opened.fd = -1;
    memcpy(task->text, key.data, key.length);
    task->key = str_of(task->text, key.length);
    lookup->task = task;
    loop_offload(store->loop, &task->op, open_work, task);
    return true;
}

/* Returns the open entry of the key, referenced, if it is still the newest; else NULL. */
static struct cache_entry *get_open(struct cache_store *store, struct str key)
{
    struct cache_entry *entry = table_get(&store->entries, key);

    if (!entry)
        return NULL;
    if (!cache_zone_current(store->conf->zone, entry->view.node, entry->id.sequence, entry->view.size,
                            cache_now_s(store))) {
        entry_unlink(entry);
        return NULL;
    }
    list_remove(&entry->link);
    list_push(&store->used, &entry->link);
    return cache_entry_ref(entry);
}

struct cache_entry *cache_store_get(struct cache_store *store, struct cache_lookup *lookup, struct str key,
                                    bool *out_pending)
{
    struct cache_entry *entry = get_open(store, key);
    struct cache_victims victims = {0};
    struct cache_view view = {0};
    bool known;

    *out_pending = false;
    if (entry)
        return entry;
    cache_hash_key(key, &lookup->hash);
    known = cache_zone_find(store->conf->zone, &lookup->hash, true, cache_now_s(store), &view, &victims);
    cache_store_delete(store, &victims);
    lookup->uses = known ? view.uses : 1;
    if (known && view.sequence)
        *out_pending = open_entry(store, lookup, key, &view);
    return NULL;
}

struct cache_entry *cache_store_peek(struct cache_store *store, struct cache_lookup *lookup, struct str key,
                                     bool *out_pending)
{
    struct cache_victims none = {0};
    struct cache_view view = {0};
    struct cache_hash hash;

    *out_pending = false;
    cache_hash_key(key, &hash);
    if (!cache_zone_find(store->conf->zone, &hash, false, 0, &view, &none) || view.sequence == 0)
        return NULL;
    return cache_store_get(store, lookup, key, out_pending);
}

void cache_lookup_cancel(struct cache_lookup *lookup)
{
    if (lookup->task)
        lookup->task->lookup = NULL;
    lookup->task = NULL;
}
