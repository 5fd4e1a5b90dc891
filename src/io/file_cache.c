/*
 * The cache of open files. A hit is one hash lookup. On a miss the file is opened at once if the kernel does not have
 * to wait for the disk, else on a helper thread, once for all concurrent lookups. Revalidation after valid_ms opens
 * the file again: no cheaper call detects a replaced file without leaving the root.
 */
#include "io/file_cache.h"

#include "base/saturate.h"
#include "io/file_cache_lru.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define KEY_MAX          (2 * PATH_MAX + 4)
#define EVICT_WHEN_FULL  16         /* entries evicted when descriptors run out */

struct file_cache {
    struct loop *loop;
    struct file_cache_lru lru;
    const struct root_directories *roots;      /* not owned; may be NULL */
    struct table open_tasks;          /* pending on helper threads, by key */
    struct str root;                /* the most recent root and its descriptor */
    int root_fd;
    uint64_t root_checked_ms;
    bool walk;                      /* openat2 is missing */
    struct file_cache_counters *counters; /* `own` by default */
    struct file_cache_counters own;
};

/* One open on a helper thread. */
struct open_task {
    struct op op;
    struct file_cache *cache;
    struct str key;
    const char *root;               /* parts of the key, terminated */
    const char *path;
    enum symlinks symlinks;
    bool walk;
    bool again;                     /* descriptors had run out: second attempt after an eviction */
    struct opened_file file;
    struct list waiting;
};

struct file_cache *file_cache_create(struct loop *loop, const struct file_cache_limits *limits)
{
    struct file_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return NULL;
    cache->loop = loop;
    cache->root_fd = -1;
    cache->counters = &cache->own;
    file_cache_lru_init(&cache->lru, loop, limits);
    table_init(&cache->open_tasks, false);
    return cache;
}

const struct root_directories *file_cache_roots(const struct file_cache *cache)
{
    return cache->roots;
}

void file_cache_set_roots(struct file_cache *cache, const struct root_directories *roots)
{
    cache->roots = roots;
}

void file_cache_set_counters(struct file_cache *cache, struct file_cache_counters *counters)
{
    cache->counters = counters;
}

void file_cache_destroy(struct file_cache *cache)
{
    if (!cache)
        return;
    file_cache_lru_finish(&cache->lru);
    table_finish(&cache->open_tasks);
    if (cache->root_fd >= 0)
        close(cache->root_fd);
    free((char *)(uintptr_t)cache->root.data);
    free(cache);
}

/* The descriptor of `root`, reopened after valid_ms: the root may be a symbolic link that was changed. */
static int root_descriptor(struct file_cache *cache, const char *root)
{
    uint64_t now = cache->loop->clock.monotonic_ms;
    uint64_t valid_ms = cache->lru.limits.enabled ? cache->lru.limits.valid_ms : 0;
    struct str name = str_from(root);
    char *copy;
    int fd;

    if (cache->root_fd >= 0 && u64_sub_sat(now, cache->root_checked_ms) < valid_ms && str_equal(cache->root, name))
        return cache->root_fd;
    fd = root_open(root, cache->roots, false);
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

/* Calls file_open without waiting for the disk. An error of the root becomes the error of the file. */
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

/* Runs on a helper thread and may wait for the disk. Uses only the open_task and the constant `roots`. */
static int open_task_work(void *argument)
{
    struct open_task *task = argument;
    int fd = root_open(task->root, task->cache->roots, true);
    int error;

    task->file = (struct opened_file){.error = fd, .fd = -1};
    if (fd < 0)
        return 0;
    error = file_open(fd, task->path, task->symlinks, true, task->walk, &task->file);
    if (error == -ENOSYS)
        error = file_open(fd, task->path, task->symlinks, true, true, &task->file);
    if (error < 0)
        task->file = (struct opened_file){.error = error, .fd = -1};
    close(fd);
    return 0;
}

static bool out_of_descriptors(const struct opened_file *file)
{
    return file->error == -EMFILE || file->error == -ENFILE;
}

static void open_task_finish(struct open_task *task, struct file_entry *entry)
{
    struct list *link;

    table_remove(&task->cache->open_tasks, task->key);
    while ((link = list_pop(&task->waiting)) != NULL) {
        struct file_lookup *lookup = container_of(link, struct file_lookup, waiting);
        bool notified = entry && !lookup->cancelled;

        lookup->found(lookup, notified ? file_entry_ref(entry) : NULL);
    }
    file_entry_unref(entry);
    free(task);
}

static void open_task_done(struct op *op, int result)
{
    struct open_task *task = container_of(op, struct open_task, op);

    if (result < 0) {
        task->file = (struct opened_file){.error = result, .fd = -1};
    } else if (out_of_descriptors(&task->file) && !task->again) {
        task->again = true;
        file_cache_lru_evict(&task->cache->lru, EVICT_WHEN_FULL);
        loop_offload(task->cache->loop, &task->op, open_task_work, task);
        return;
    }
    open_task_finish(task, file_cache_lru_insert(&task->cache->lru, task->key, &task->file));
}

static struct open_task *open_task_start(struct file_cache *cache, struct str key, size_t path_at,
                                         enum symlinks symlinks)
{
    struct open_task *task = malloc(sizeof(*task) + key.length + 1);
    char *name = (char *)(task + 1);

    if (!task)
        return NULL;
    memcpy(name, key.data, key.length + 1);
    *task = (struct open_task){
        .op.done = open_task_done,
        .cache = cache,
        .key = {name, key.length},
        .root = name,
        .path = name + path_at,
        .symlinks = symlinks,
        .walk = cache->walk,
    };
    list_init(&task->waiting);
    if (table_set(&cache->open_tasks, task->key, task) < 0) {
        free(task);
        return NULL;
    }
    loop_offload(cache->loop, &task->op, open_task_work, task);
    return task;
}

static struct file_entry *wait_for_open_task(struct file_cache *cache, struct file_lookup *lookup, struct str key,
                                             size_t path_at, enum symlinks symlinks, bool *out_pending)
{
    struct open_task *task = table_get(&cache->open_tasks, key);

    if (!task)
        task = open_task_start(cache, key, path_at, symlinks);
    if (task) {
        lookup->cancelled = false;
        list_push(&task->waiting, &lookup->waiting);
        *out_pending = true;
    }
    return NULL;
}

/* Joins root, NUL, path, NUL, policy. 0, -ENAMETOOLONG, or -ENOENT: a NUL in a part would end the path. */
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
        return file_entry_of_error(cache->loop, error);
    entry = file_cache_lru_find(&cache->lru, key);
    if (entry) {
        cache->counters->hits++;
        return entry;
    }
    cache->counters->misses++;
    file_cache_lru_evict_inactive(&cache->lru);
    error = open_at_once(cache, memory, memory + root.length + 1, symlinks, &file);
    if (error == 0 && out_of_descriptors(&file)) {
        file_cache_lru_evict(&cache->lru, EVICT_WHEN_FULL);
        error = open_at_once(cache, memory, memory + root.length + 1, symlinks, &file);
    }
    if (error < 0)
        return wait_for_open_task(cache, lookup, key, root.length + 1, symlinks, out_pending);
    return file_cache_lru_insert(&cache->lru, key, &file);
}

void file_lookup_cancel(struct file_lookup *lookup)
{
    lookup->cancelled = true;
}
