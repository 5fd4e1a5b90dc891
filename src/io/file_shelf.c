/* The entries that are kept: see file_shelf.h. */
#include "io/file_shelf.h"

#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define EVICTED_AT_ONCE 4           /* unused entries examined per miss */
#define ERRORS_PART     4           /* at most this fraction of the entries may be missing files */

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

static struct file_lru *lru_of(struct file_shelf *shelf, const struct file_entry *entry)
{
    return entry->error ? &shelf->errors : &shelf->files;
}

static void entry_unlink(struct file_shelf *shelf, struct file_entry *entry)
{
    table_remove(&shelf->table, entry->key);
    list_remove(&entry->link);
    lru_of(shelf, entry)->count--;
    shelf->content_bytes = u64_sub_sat(shelf->content_bytes, entry->content.length);
    entry->linked = false;
    if (entry->references == 0)
        entry_free(entry);
}

static struct file_entry *lru_last(const struct file_lru *lru)
{
    return list_empty(&lru->entries) ? NULL : container_of(lru->entries.previous, struct file_entry, link);
}

void file_shelf_evict(struct file_shelf *shelf, unsigned count)
{
    struct file_entry *last;

    while (count-- > 0 && (last = lru_last(&shelf->files)) != NULL)
        entry_unlink(shelf, last);
}

void file_shelf_evict_inactive(struct file_shelf *shelf)
{
    uint64_t now = shelf->loop->clock.monotonic_ms;

    for (int i = 0; i < EVICTED_AT_ONCE; i++) {
        struct file_entry *last = lru_last(i % 2 ? &shelf->errors : &shelf->files);

        if (last && u64_sub_sat(now, last->used_ms) > shelf->limits.inactive_ms)
            entry_unlink(shelf, last);
    }
}

/* Evicts least recently used contents until the entry fits; if it cannot fit, drops its contents. */
static void make_room(struct file_shelf *shelf, struct file_entry *entry)
{
    struct file_lru *lru = lru_of(shelf, entry);
    size_t most = shelf->limits.max_content_bytes;

    while (lru->count > 0 && lru->count >= lru->max)
        entry_unlink(shelf, lru_last(lru));
    if (entry->content.length > most) {
        free((char *)(uintptr_t)entry->content.data);
        entry->content = (struct str){NULL, 0};
    }
    while (shelf->content_bytes > most - entry->content.length)
        entry_unlink(shelf, lru_last(&shelf->files));
}

/* True for errors caused by the file and not by this process. */
static bool worth_keeping(int error)
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

static void entry_link(struct file_shelf *shelf, struct file_entry *entry)
{
    struct file_lru *lru = lru_of(shelf, entry);

    if (lru->max == 0)
        return;
    make_room(shelf, entry);
    if (table_set(&shelf->table, entry->key, entry) < 0)
        return;
    list_insert_before(lru->entries.next, &entry->link);
    lru->count++;
    shelf->content_bytes += entry->content.length;
    entry->linked = true;
}

static struct file_entry *entry_create(const struct loop *loop, struct str key, const struct opened_file *file)
{
    struct file_entry *entry = malloc(sizeof(*entry) + key.length);
    char *kept = (char *)(entry + 1);

    if (!entry)
        return NULL;
    memcpy(kept, key.data, key.length);
    *entry = (struct file_entry){
        .key = {kept, key.length},
        .error = file->error,
        .fd = file->fd,
        .stat = file->stat,
        .content = {file->content, file->content ? (size_t)file->stat.st_size : 0},
        .checked_ms = loop->clock.monotonic_ms,
        .used_ms = loop->clock.monotonic_ms,
        .settled = file_settled(&file->stat, loop->clock.wall_ms),
    };
    list_init(&entry->link);
    return entry;
}

static bool unchanged(const struct file_entry *entry, const struct opened_file *file)
{
    if (entry->error || file->error)
        return entry->error == file->error;
    return entry->settled && file_same(&entry->stat, &file->stat);
}

static void entry_touch(struct file_shelf *shelf, struct file_entry *entry)
{
    struct list *entries = &lru_of(shelf, entry)->entries;

    entry->used_ms = shelf->loop->clock.monotonic_ms;
    if (entries->next == &entry->link)
        return;
    list_remove(&entry->link);
    list_insert_before(entries->next, &entry->link);
}

/* Instead of a file requested too seldom to be cached: an entry without a descriptor that counts its uses. */
static void entry_count(struct file_shelf *shelf, const struct file_entry *entry)
{
    struct opened_file none = {.fd = -1, .stat = entry->stat};
    struct file_entry *counted = entry_create(shelf->loop, entry->key, &none);

    if (!counted)
        return;
    counted->counted = true;
    counted->uses = entry->uses;
    entry_link(shelf, counted);
    if (!counted->linked)
        entry_free(counted);
}

static void entry_keep(struct file_shelf *shelf, struct file_entry *entry)
{
    if (!shelf->limits.enabled || !worth_keeping(entry->error) || (entry->error && shelf->limits.forget_errors))
        return;
    if (entry->fd >= 0 && entry->uses < shelf->limits.min_uses)
        entry_count(shelf, entry);
    else
        entry_link(shelf, entry);
}

struct file_entry *file_shelf_adopt(struct file_shelf *shelf, struct str key, struct opened_file *file)
{
    struct file_entry *entry = table_get(&shelf->table, key);
    unsigned uses = entry ? entry->uses : 0;

    if (entry && !entry->counted && unchanged(entry, file)) {
        opened_file_drop(file);
        entry->checked_ms = shelf->loop->clock.monotonic_ms;
        entry_touch(shelf, entry);
        return file_entry_ref(entry);
    }
    if (entry)
        entry_unlink(shelf, entry);
    entry = entry_create(shelf->loop, key, file);
    if (!entry) {
        opened_file_drop(file);
        return NULL;
    }
    entry->uses = uses + 1;
    file_entry_ref(entry);
    entry_keep(shelf, entry);
    return entry;
}

struct file_entry *file_shelf_find(struct file_shelf *shelf, struct str key)
{
    struct file_entry *entry = table_get(&shelf->table, key);
    uint64_t now = shelf->loop->clock.monotonic_ms;

    if (!entry || entry->counted || u64_sub_sat(now, entry->checked_ms) >= shelf->limits.valid_ms)
        return NULL;
    entry_touch(shelf, entry);
    return file_entry_ref(entry);
}

struct file_entry *file_entry_refused(const struct loop *loop, int error)
{
    struct opened_file none = {.error = error, .fd = -1};
    struct file_entry *entry = entry_create(loop, STR(""), &none);

    return entry ? file_entry_ref(entry) : NULL;
}

void file_shelf_init(struct file_shelf *shelf, const struct loop *loop, const struct file_cache_limits *limits)
{
    *shelf = (struct file_shelf){
        .loop = loop,
        .limits = *limits,
        .files.max = limits->max_entries,
        .errors.max = limits->max_entries / ERRORS_PART,
    };
    list_init(&shelf->files.entries);
    list_init(&shelf->errors.entries);
    table_init(&shelf->table, false);
}

static void lru_empty(struct file_shelf *shelf, const struct file_lru *lru)
{
    struct file_entry *last;

    while ((last = lru_last(lru)) != NULL)
        entry_unlink(shelf, last);
}

void file_shelf_finish(struct file_shelf *shelf)
{
    lru_empty(shelf, &shelf->files);
    lru_empty(shelf, &shelf->errors);
    table_finish(&shelf->table);
}
