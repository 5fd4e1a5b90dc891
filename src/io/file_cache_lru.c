/* Adds, finds and evicts the entries of the file cache. */
#include "io/file_cache_lru.h"

#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define EVICTED_AT_ONCE 4           /* unused entries examined per miss */
#define ERRORS_PART     4           /* max_entries divided by this is the maximum number of errors */

static void entry_free(struct file_entry *entry)
{
    if (entry->fd >= 0)
        close(entry->fd);
    free((char *)(uintptr_t)entry->content.data);
    free(entry);
}

struct file_entry *file_entry_ref(struct file_entry *entry)
{
    entry->references++;
    return entry;
}

void file_entry_unref(struct file_entry *entry)
{
    if (entry && --entry->references == 0 && !entry->linked)
        entry_free(entry);
}

static struct file_lru *lru_of(struct file_cache_lru *cache, const struct file_entry *entry)
{
    return entry->error ? &cache->errors : &cache->files;
}

static void entry_unlink(struct file_cache_lru *cache, struct file_entry *entry)
{
    table_remove(&cache->table, entry->key);
    list_remove(&entry->link);
    lru_of(cache, entry)->count--;
    cache->content_bytes = u64_sub_sat(cache->content_bytes, entry->content.length);
    entry->linked = false;
    if (entry->references == 0)
        entry_free(entry);
}

static struct file_entry *lru_last(const struct file_lru *lru)
{
    return list_empty(&lru->entries) ? NULL : container_of(lru->entries.previous, struct file_entry, link);
}

void file_cache_lru_evict(struct file_cache_lru *cache, unsigned count)
{
    struct file_entry *last;

    while (count-- > 0 && (last = lru_last(&cache->files)) != NULL)
        entry_unlink(cache, last);
}

void file_cache_lru_evict_inactive(struct file_cache_lru *cache)
{
    uint64_t now = cache->loop->clock.monotonic_ms;

    for (int i = 0; i < EVICTED_AT_ONCE; i++) {
        struct file_entry *last = lru_last(i % 2 ? &cache->errors : &cache->files);

        if (last && u64_sub_sat(now, last->used_ms) > cache->limits.inactive_ms)
            entry_unlink(cache, last);
    }
}

/* Evicts least recently used entries until the entry fits; drops its contents if they exceed max_content_bytes. */
static void make_room(struct file_cache_lru *cache, struct file_entry *entry)
{
    struct file_lru *lru = lru_of(cache, entry);
    size_t max = cache->limits.max_content_bytes;
    struct file_entry *last;

    while (lru->count >= lru->max && (last = lru_last(lru)) != NULL)
        entry_unlink(cache, last);
    if (entry->content.length > max) {
        free((char *)(uintptr_t)entry->content.data);
        entry->content = (struct str){NULL, 0};
    }
    while (cache->content_bytes > max - entry->content.length && (last = lru_last(&cache->files)) != NULL)
        entry_unlink(cache, last);
}

/* True for success and for errors that the file causes; false for errors of this process (descriptors, memory). */
static bool is_cacheable(int error)
{
    switch (error) {
    case 0:
    case -ENOENT:
    case -ENOTDIR:
    case -EACCES:
    case -ELOOP:
    case -EXDEV:
    case -ENAMETOOLONG:
        return true;
    default:
        return false;
    }
}

static void entry_link(struct file_cache_lru *cache, struct file_entry *entry)
{
    struct file_lru *lru = lru_of(cache, entry);

    if (lru->max == 0)
        return;
    make_room(cache, entry);
    if (table_set(&cache->table, entry->key, entry) < 0)
        return;
    list_insert_before(lru->entries.next, &entry->link);
    lru->count++;
    cache->content_bytes += entry->content.length;
    entry->linked = true;
}

static struct file_entry *entry_create(const struct loop *loop, struct str key, const struct opened_file *file)
{
    struct file_entry *entry = malloc(sizeof(*entry) + key.length);
    char *name = (char *)(entry + 1);

    if (!entry)
        return NULL;
    memcpy(name, key.data, key.length);
    *entry = (struct file_entry){
        .key = {name, key.length},
        .error = file->error,
        .fd = file->fd,
        .stat = file->stat,
        .content = {file->content, file->content ? (size_t)file->stat.st_size : 0},
        .checked_ms = loop->clock.monotonic_ms,
        .used_ms = loop->clock.monotonic_ms,
        .unchanging = file_is_unchanging(&file->stat, loop->clock.wall_ms),
    };
    list_init(&entry->link);
    return entry;
}

static bool file_unchanged(const struct file_entry *entry, const struct opened_file *file)
{
    if (entry->error || file->error)
        return entry->error == file->error;
    return entry->unchanging && file_same(&entry->stat, &file->stat);
}

static void entry_touch(struct file_cache_lru *cache, struct file_entry *entry)
{
    struct list *entries = &lru_of(cache, entry)->entries;

    entry->used_ms = cache->loop->clock.monotonic_ms;
    if (entries->next == &entry->link)
        return;
    list_remove(&entry->link);
    list_insert_before(entries->next, &entry->link);
}

/* Adds an entry without a descriptor that counts the uses of a file that is not cached yet (min_uses). */
static void entry_count(struct file_cache_lru *cache, const struct file_entry *entry)
{
    struct opened_file none = {.fd = -1, .stat = entry->stat};
    struct file_entry *counted = entry_create(cache->loop, entry->key, &none);

    if (!counted)
        return;
    counted->counted = true;
    counted->uses = entry->uses;
    entry_link(cache, counted);
    if (!counted->linked)
        entry_free(counted);
}

static void entry_store(struct file_cache_lru *cache, struct file_entry *entry)
{
    if (!cache->limits.enabled || !is_cacheable(entry->error) || (entry->error && cache->limits.skip_errors))
        return;
    if (entry->fd >= 0 && entry->uses < cache->limits.min_uses)
        entry_count(cache, entry);
    else
        entry_link(cache, entry);
}

struct file_entry *file_cache_lru_insert(struct file_cache_lru *cache, struct str key, struct opened_file *file)
{
    struct file_entry *entry = table_get(&cache->table, key);
    unsigned uses = entry ? entry->uses : 0;

    if (entry && !entry->counted && file_unchanged(entry, file)) {
        opened_file_close(file);
        entry->checked_ms = cache->loop->clock.monotonic_ms;
        entry_touch(cache, entry);
        return file_entry_ref(entry);
    }
    if (entry)
        entry_unlink(cache, entry);
    entry = entry_create(cache->loop, key, file);
    if (!entry) {
        opened_file_close(file);
        return NULL;
    }
    entry->uses = uses + 1;
    file_entry_ref(entry);
    entry_store(cache, entry);
    return entry;
}

struct file_entry *file_cache_lru_find(struct file_cache_lru *cache, struct str key)
{
    struct file_entry *entry = table_get(&cache->table, key);
    uint64_t now = cache->loop->clock.monotonic_ms;

    if (!entry || entry->counted || u64_sub_sat(now, entry->checked_ms) >= cache->limits.valid_ms)
        return NULL;
    entry_touch(cache, entry);
    return file_entry_ref(entry);
}

struct file_entry *file_entry_of_error(const struct loop *loop, int error)
{
    struct opened_file none = {.error = error, .fd = -1};
    struct file_entry *entry = entry_create(loop, STR(""), &none);

    return entry ? file_entry_ref(entry) : NULL;
}

void file_cache_lru_init(struct file_cache_lru *cache, const struct loop *loop, const struct file_cache_limits *limits)
{
    *cache = (struct file_cache_lru){
        .loop = loop,
        .limits = *limits,
        .files.max = limits->max_entries,
        .errors.max = limits->max_entries / ERRORS_PART,
    };
    list_init(&cache->files.entries);
    list_init(&cache->errors.entries);
    table_init(&cache->table, false);
}

static void lru_empty(struct file_cache_lru *cache, const struct file_lru *lru)
{
    struct file_entry *last;

    while ((last = lru_last(lru)) != NULL)
        entry_unlink(cache, last);
}

void file_cache_lru_finish(struct file_cache_lru *cache)
{
    lru_empty(cache, &cache->files);
    lru_empty(cache, &cache->errors);
    table_finish(&cache->table);
}
