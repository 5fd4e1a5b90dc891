/*
 * The cache of open files. A hit is one look into a hash table. A miss is opened
 * at once where the kernel can do so without waiting, else on a helper thread,
 * once for all who ask meanwhile. Looking again after valid_ms is opening again:
 * nothing cheaper sees a file replaced and stays beneath the root.
 */
#include "io/file_cache.h"

#include "io/file_open.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define KEY_MAX          (2 * PATH_MAX + 4)
#define EVICT_WHEN_FULL  16         /* entries given up when descriptors run out */
#define ERRORS_PART      4          /* at most this part of the entries may be of absent files */

enum { LRU_FILES, LRU_ERRORS, LRU_COUNT };

struct lru {
    struct list entries;
    unsigned count;
    unsigned max;
};

struct file_cache {
    struct loop *loop;
    struct file_cache_limits limits;
    struct table table;
    struct lru lrus[LRU_COUNT];
    size_t content_bytes;
    const struct roots *granted;    /* not owned; may be NULL */
    struct table openings;          /* under way on helper threads, by key */
    struct str root;                /* the root asked for last, and its descriptor */
    int root_fd;
    uint64_t root_checked_ms;
    bool walk;                      /* openat2 is missing */
    struct file_cache_counters *counters; /* `own` where nobody gave others */
    struct file_cache_counters own;
};

/* One open on a helper thread. */
struct opening {
    struct op op;
    struct file_cache *cache;
    struct str key;
    const char *root;               /* parts of the key, terminated */
    const char *path;
    enum symlinks symlinks;
    bool walk;
    bool again;                     /* descriptors had run out: once more after an eviction */
    struct opened_file file;
    struct list waiting;
};

struct file_cache *file_cache_create(struct loop *loop, const struct file_cache_limits *limits)
{
    struct file_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return NULL;
    cache->loop = loop;
    cache->limits = *limits;
    cache->root_fd = -1;
    cache->counters = &cache->own;
    for (int i = 0; i < LRU_COUNT; i++) {
        list_init(&cache->lrus[i].entries);
        cache->lrus[i].max = i == LRU_FILES ? limits->max_entries : limits->max_entries / ERRORS_PART;
    }
    table_init(&cache->table, false);
    table_init(&cache->openings, false);
    return cache;
}

void file_cache_grant(struct file_cache *cache, const struct roots *roots)
{
    cache->granted = roots;
}

void file_cache_count(struct file_cache *cache, struct file_cache_counters *counters)
{
    cache->counters = counters;
}

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

static struct lru *lru_of(struct file_cache *cache, const struct file_entry *entry)
{
    return &cache->lrus[entry->error ? LRU_ERRORS : LRU_FILES];
}

static void entry_unlink(struct file_cache *cache, struct file_entry *entry)
{
    table_remove(&cache->table, entry->key);
    list_remove(&entry->link);
    lru_of(cache, entry)->count--;
    cache->content_bytes -= entry->content.length;
    entry->linked = false;
    if (entry->references == 0)
        entry_free(entry);
}

static struct file_entry *lru_last(const struct lru *lru)
{
    return list_empty(&lru->entries) ? NULL : container_of(lru->entries.previous, struct file_entry, link);
}

static void evict(struct file_cache *cache, unsigned count)
{
    struct file_entry *last;

    while (count-- > 0 && (last = lru_last(&cache->lrus[LRU_FILES])) != NULL)
        entry_unlink(cache, last);
}

/* A few of those that nobody asked for in inactive_ms; called on every miss, so that no timer is needed. */
static void evict_inactive(struct file_cache *cache)
{
    uint64_t now = cache->loop->clock.monotonic_ms;

    for (int i = 0; i < LRU_COUNT * 2; i++) {
        struct file_entry *last = lru_last(&cache->lrus[i % LRU_COUNT]);

        if (last && now - last->used_ms > cache->limits.inactive_ms)
            entry_unlink(cache, last);
    }
}

void file_cache_destroy(struct file_cache *cache)
{
    if (!cache)
        return;
    for (int i = 0; i < LRU_COUNT; i++) {
        struct file_entry *last;

        while ((last = lru_last(&cache->lrus[i])) != NULL)
            entry_unlink(cache, last);
    }
    table_finish(&cache->table);
    table_finish(&cache->openings);
    if (cache->root_fd >= 0)
        close(cache->root_fd);
    free((char *)(uintptr_t)cache->root.data);
    free(cache);
}

/* Drops what there is of older use until the entry fits; where it cannot, its content is dropped. */
static void make_room(struct file_cache *cache, struct file_entry *entry)
{
    struct lru *lru = lru_of(cache, entry);
    size_t most = cache->limits.max_content_bytes;

    while (lru->count > 0 && lru->count >= lru->max)
        entry_unlink(cache, lru_last(lru));
    if (entry->content.length > most) {
        free((char *)(uintptr_t)entry->content.data);
        entry->content = (struct str){NULL, 0};
    }
    while (cache->content_bytes > most - entry->content.length)
        entry_unlink(cache, lru_last(&cache->lrus[LRU_FILES]));
}

/* Errors that say something of the file, and not of us. */
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

static void entry_link(struct file_cache *cache, struct file_entry *entry)
{
    struct lru *lru = lru_of(cache, entry);

    if (!cache->limits.enabled || !worth_keeping(entry->error) || lru->max == 0)
        return;
    make_room(cache, entry);
    if (table_set(&cache->table, entry->key, entry) < 0)
        return;
    list_insert_before(lru->entries.next, &entry->link);
    lru->count++;
    cache->content_bytes += entry->content.length;
    entry->linked = true;
}

static struct file_entry *entry_create(struct file_cache *cache, struct str key, const struct opened_file *file)
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
        .checked_ms = cache->loop->clock.monotonic_ms,
        .used_ms = cache->loop->clock.monotonic_ms,
        .settled = file_settled(&file->stat, cache->loop->clock.wall_ms),
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

static void entry_touch(struct file_cache *cache, struct file_entry *entry)
{
    struct list *entries = &lru_of(cache, entry)->entries;

    entry->used_ms = cache->loop->clock.monotonic_ms;
    if (entries->next == &entry->link)
        return;
    list_remove(&entry->link);
    list_insert_before(entries->next, &entry->link);
}

/* What was opened becomes an entry, or confirms the one there is. Referenced for the caller; NULL: out of memory. */
static struct file_entry *entry_adopt(struct file_cache *cache, struct str key, struct opened_file *file)
{
    struct file_entry *entry = table_get(&cache->table, key);

    if (entry && unchanged(entry, file)) {
        opened_file_drop(file);
        entry->checked_ms = cache->loop->clock.monotonic_ms;
        entry_touch(cache, entry);
        return file_entry_ref(entry);
    }
    if (entry)
        entry_unlink(cache, entry);
    entry = entry_create(cache, key, file);
    if (!entry) {
        opened_file_drop(file);
        return NULL;
    }
    file_entry_ref(entry);
    entry_link(cache, entry);
    return entry;
}

/* The descriptor of `root`, opened anew after valid_ms, so that a root that is a link to the current release works. */
static int root_descriptor(struct file_cache *cache, const char *root)
{
    uint64_t now = cache->loop->clock.monotonic_ms;
    uint64_t valid_ms = cache->limits.enabled ? cache->limits.valid_ms : 0;
    struct str name = str_from(root);
    char *copy;
    int fd;

    if (cache->root_fd >= 0 && now - cache->root_checked_ms < valid_ms && str_equal(cache->root, name))
        return cache->root_fd;
    fd = root_open(root, cache->granted, false);
    if (fd < 0)
        return fd;
    copy = strdup(root);
    if (!copy) {
        close(fd);
        return -ENOMEM;
    }
    if (cache->root_fd >= 0)
        close(cache->root_fd);
    free((char *)(uintptr_t)cache->root.data);
    cache->root = str_of(copy, name.length);
    cache->root_fd = fd;
    cache->root_checked_ms = now;
    return fd;
}

/* As file_open without waiting; what the root itself refuses is the file's error. */
static int open_at_once(struct file_cache *cache, const char *root, const char *path, enum symlinks symlinks,
                        struct opened_file *out_file)
{
    int fd = root_descriptor(cache, root);
    int error;

    if (fd == -EAGAIN)
        return fd;
    if (fd < 0) {
        *out_file = (struct opened_file){.error = fd, .fd = -1};
        return 0;
    }
    error = file_open(fd, path, symlinks, false, cache->walk, out_file);
    if (error == -ENOSYS)
        cache->walk = true;
    return error;
}

/* On a helper thread: waits for the disk, touches only the opening (and the granted roots, which never change). */
static int open_work(void *argument)
{
    struct opening *opening = argument;
    int fd = root_open(opening->root, opening->cache->granted, true);
    int error;

    opening->file = (struct opened_file){.error = fd, .fd = -1};
    if (fd < 0)
        return 0;
    error = file_open(fd, opening->path, opening->symlinks, true, opening->walk, &opening->file);
    if (error == -ENOSYS)
        error = file_open(fd, opening->path, opening->symlinks, true, true, &opening->file);
    if (error < 0)
        opening->file = (struct opened_file){.error = error, .fd = -1};
    close(fd);
    return 0;
}

static bool out_of_descriptors(const struct opened_file *file)
{
    return file->error == -EMFILE || file->error == -ENFILE;
}

static void opening_finish(struct opening *opening, struct file_entry *entry)
{
    struct list *link;

    table_remove(&opening->cache->openings, opening->key);
    while ((link = list_pop(&opening->waiting)) != NULL) {
        struct file_lookup *lookup = container_of(link, struct file_lookup, waiting);
        bool told = entry && !lookup->cancelled;

        lookup->found(lookup, told ? file_entry_ref(entry) : NULL);
    }
    file_entry_unref(entry);
    free(opening);
}

static void opening_done(struct op *op, int result)
{
    struct opening *opening = container_of(op, struct opening, op);

    if (result < 0) {
        opening->file = (struct opened_file){.error = result, .fd = -1};
    } else if (out_of_descriptors(&opening->file) && !opening->again) {
        opening->again = true;
        evict(opening->cache, EVICT_WHEN_FULL);
        loop_offload(opening->cache->loop, &opening->op, open_work, opening);
        return;
    }
    opening_finish(opening, entry_adopt(opening->cache, opening->key, &opening->file));
}

static struct opening *opening_start(struct file_cache *cache, struct str key, size_t path_at, enum symlinks symlinks)
{
    struct opening *opening = malloc(sizeof(*opening) + key.length + 1);
    char *kept = (char *)(opening + 1);

    if (!opening)
        return NULL;
    memcpy(kept, key.data, key.length + 1);
    *opening = (struct opening){
        .op.done = opening_done,
        .cache = cache,
        .key = {kept, key.length},
        .root = kept,
        .path = kept + path_at,
        .symlinks = symlinks,
        .walk = cache->walk,
    };
    list_init(&opening->waiting);
    if (table_set(&cache->openings, opening->key, opening) < 0) {
        free(opening);
        return NULL;
    }
    loop_offload(cache->loop, &opening->op, open_work, opening);
    return opening;
}

static struct file_entry *wait_for_opening(struct file_cache *cache, struct file_lookup *lookup, struct str key,
                                           size_t path_at, enum symlinks symlinks, bool *out_pending)
{
    struct opening *opening = table_get(&cache->openings, key);

    if (!opening)
        opening = opening_start(cache, key, path_at, symlinks);
    if (opening) {
        lookup->cancelled = false;
        list_push(&opening->waiting, &lookup->waiting);
        *out_pending = true;
    }
    return NULL;
}

/* root, NUL, path, NUL, policy. 0, or -ENAMETOOLONG; a NUL within would be another path to the kernel than to us. */
static int make_key(char *into, struct str root, struct str path, enum symlinks symlinks, struct str *out_key)
{
    size_t length = root.length + 1 + path.length + 1;

    if (root.length >= PATH_MAX || path.length >= PATH_MAX)
        return -ENAMETOOLONG;
    if (str_empty(root) || str_find(root, '\0') >= 0 || str_find(path, '\0') >= 0)
        return -ENOENT;
    memcpy(into, root.data, root.length);
    into[root.length] = '\0';
    if (path.length)
        memcpy(into + root.length + 1, path.data, path.length);
    into[length - 1] = '\0';
    into[length] = (char)('0' + symlinks);
    into[length + 1] = '\0';
    *out_key = str_of(into, length + 1);
    return 0;
}

static struct file_entry *entry_refused(struct file_cache *cache, int error)
{
    struct opened_file none = {.error = error, .fd = -1};
    struct file_entry *entry = entry_create(cache, STR(""), &none);

    return entry ? file_entry_ref(entry) : NULL;
}

static struct file_entry *entry_fresh(struct file_cache *cache, struct str key)
{
    struct file_entry *entry = table_get(&cache->table, key);
    uint64_t now = cache->loop->clock.monotonic_ms;

    if (!entry || now - entry->checked_ms >= cache->limits.valid_ms)
        return NULL;
    entry_touch(cache, entry);
    return file_entry_ref(entry);
}

struct file_entry *file_cache_get(struct file_cache *cache, struct file_lookup *lookup, struct str root,
                                  struct str path, enum symlinks symlinks, bool *out_pending)
{
    char memory[KEY_MAX];
    struct opened_file file;
    struct file_entry *entry;
    struct str key;
    int error = make_key(memory, root, path, symlinks, &key);

    *out_pending = false;
    if (error < 0)
        return entry_refused(cache, error);
    entry = entry_fresh(cache, key);
    if (entry) {
        cache->counters->hits++;
        return entry;
    }
    cache->counters->misses++;
    evict_inactive(cache);
    error = open_at_once(cache, memory, memory + root.length + 1, symlinks, &file);
    if (error == 0 && out_of_descriptors(&file)) {
        evict(cache, EVICT_WHEN_FULL);
        error = open_at_once(cache, memory, memory + root.length + 1, symlinks, &file);
    }
    if (error < 0)
        return wait_for_opening(cache, lookup, key, root.length + 1, symlinks, out_pending);
    return entry_adopt(cache, key, &file);
}

void file_lookup_cancel(struct file_lookup *lookup)
{
    lookup->cancelled = true;
}
