/*
 * The cache manager. One worker runs it for all: it scans the directory once after the start, and again after a
 * worker ended, for the temporary files of that worker. It deletes inactive files, and files beyond the size limits.
 * It works in steps of a few files on a helper thread, with a pause between them.
 */
#include "cache/cache_store_private.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct cache_manager {
    struct cache_store *store;
    struct op timer, step;
    bool stopping;
    bool shrink_requested;          /* the disk was full; atomic */
    DIR *open[CACHE_LEVELS + 1];    /* open directories of the scan, outermost first; used by the helper thread */
    char names[CACHE_LEVELS + 1][3]; /* their names: one or two digits */
    unsigned depth;                 /* number of open directories; 0: no scan in progress */
    uint64_t scan;                  /* number of the scan */
    uint64_t now_ms;                /* at the start of the step */
    bool more;                      /* the step left work to do */
    bool locked_found;              /* the scan found a temporary file that was locked */
    int scan_error;                 /* the scan left out files, because descriptors or memory ran out; 0: it did not */
    unsigned rescans;               /* scans since the requested one, for such files */
    struct log_limit scan_errors;   /* in the log */
};

static void record_scan_error(struct cache_manager *cache_manager, int error)
{
    if (cache_is_exhausted(error))
        cache_manager->scan_error = error;
}

/* Opens a subdirectory of the scan's current directory, or that of the cache (named "."). */
static void open_directory(struct cache_manager *cache_manager, int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

    if (directory) {
        snprintf(cache_manager->names[cache_manager->depth], sizeof(cache_manager->names[0]), "%s", name);
        cache_manager->open[cache_manager->depth++] = directory;
        return;
    }
    record_scan_error(cache_manager, -errno);
    if (fd >= 0)
        close(fd);
}

static void close_directory(struct cache_manager *cache_manager)
{
    closedir(cache_manager->open[--cache_manager->depth]);
}

/*
 * Returns true if the open directories are those of the file with any `levels`: the last digits of its hash. Else it
 * may be a file of another cache, whose directory has the name of a subdirectory.
 */
static bool has_levels(const struct cache_manager *cache_manager, const char *name)
{
    const char *end = name + 2 * sizeof(struct cache_hash);

    for (unsigned i = 1; i < cache_manager->depth; i++) {
        size_t length = strlen(cache_manager->names[i]);

        end -= length;
        if (memcmp(end, cache_manager->names[i], length) != 0)
            return false;
    }
    return true;
}

/* Adds a file to the index, or deletes it if it is invalid or was stored with other `levels`. */
static void index_file(struct cache_manager *cache_manager, int directory, const char *name, const struct cache_id *id)
{
    const struct cache_conf *conf = cache_manager->store->conf;
    struct cache_victims victims = {0};
    struct cache_view known = {0};
    struct cache_opened opened;
    struct stat found;
    int error;

    if (cache_zone_find(conf->zone, &id->hash, false, 0, &known, &victims) && known.sequence == id->sequence)
        return;
    error = cache_file_open(&conf->directory, id, 0, 0, &opened);
    record_scan_error(cache_manager, error);
    if (error == -ENOENT && has_levels(cache_manager, name)) /* the directory is not the one for this name */
        (void)unlinkat(directory, name, 0);
    if (error == 0) {
        error = fstat(opened.fd, &found) < 0 ? -errno : 0;
        cache_opened_close(&opened);
    }
    if (error == 0)
        error = cache_zone_adopt(conf->zone, id, (uint64_t)found.st_size,
                                 (uint32_t)(cache_manager->now_ms / 1000), &victims);
    if (error == -EBADMSG || error == -ENOSPC)
        cache_file_delete(&conf->directory, id);
    for (unsigned i = 0; i < victims.count; i++)
        cache_file_delete(&conf->directory, &victims.ids[i]);
}

static void remove_unfinished(struct cache_manager *cache_manager, int directory, const char *name)
{
    int error = cache_file_remove_unfinished(directory, name);

    if (error == -EWOULDBLOCK)
        cache_manager->locked_found = true;
    record_scan_error(cache_manager, error);
}

/* The name of a subdirectory: one or two digits. */
static bool is_level(const char *name)
{
    return str_hex_digit(name[0]) >= 0 && (!name[1] || (str_hex_digit(name[1]) >= 0 && !name[2]));
}

/* Examines an entry of the scan's current directory. Unknown files are not deleted. */
static void examine_entry(struct cache_manager *cache_manager, const char *name)
{
    int directory = dirfd(cache_manager->open[cache_manager->depth - 1]);
    struct cache_id id;

    if (is_level(name) && cache_manager->depth <= CACHE_LEVELS)
        open_directory(cache_manager, directory, name);
    else if (cache_file_parse_name(name, &id))
        index_file(cache_manager, directory, name, &id);
    else if (cache_file_is_temporary(name))
        remove_unfinished(cache_manager, directory, name);
}

/* Runs one step of the scan. Returns true if the scan is not complete. */
static bool scan_directory(struct cache_manager *cache_manager)
{
    const struct cache_conf *conf = cache_manager->store->conf;
    struct clock now;

    for (uint64_t files = 0; files < conf->files_at_once && cache_manager->depth > 0; files++) {
        const struct dirent *entry = readdir(cache_manager->open[cache_manager->depth - 1]);

        if (entry)
            examine_entry(cache_manager, entry->d_name);
        else
            close_directory(cache_manager);
        clock_read(&now);
        if (u64_sub_sat(now.monotonic_ms, cache_manager->now_ms) >= conf->step_ms)
            break;
    }
    return cache_manager->depth > 0;
}

/* Returns the bytes that may be stored under max_size and min_free. */
static uint64_t bytes_allowed(struct cache_manager *cache_manager)
{
    const struct cache_conf *conf = cache_manager->store->conf;
    struct cache_totals totals;
    struct statvfs disk;
    uint64_t left, missing = 0;

    cache_zone_totals(conf->zone, &totals);
    if (__atomic_exchange_n(&cache_manager->shrink_requested, false, __ATOMIC_RELAXED))
        missing = totals.bytes / 16 + 1;
    else if (conf->min_free > 0 && fstatvfs(conf->directory.fd, &disk) == 0 &&
             (left = (uint64_t)disk.f_bavail * disk.f_frsize) < conf->min_free)
        missing = conf->min_free - left;
    missing = missing < totals.bytes ? missing : totals.bytes;
    return missing > 0 && totals.bytes - missing < conf->max_size ? totals.bytes - missing : conf->max_size;
}

/* Deletes files beyond the limits for one step. Returns true if there are more. */
static bool evict_files(struct cache_manager *cache_manager)
{
    const struct cache_conf *conf = cache_manager->store->conf;
    uint64_t now_s = cache_manager->now_ms / 1000, inactive_s = conf->inactive_ms / 1000;
    uint64_t max = bytes_allowed(cache_manager);
    bool more = true;

    for (uint64_t files = 0; files < conf->files_at_once && more; files += CACHE_VICTIMS) {
        struct cache_victims victims = {0};

        more = cache_zone_evict(conf->zone, now_s > inactive_s ? (uint32_t)(now_s - inactive_s) : 0, max,
                                cache_manager->now_ms, &victims);
        for (unsigned i = 0; i < victims.count; i++)
            cache_file_delete(&conf->directory, &victims.ids[i]);
    }
    return more;
}

static int step_work(void *argument)
{
    struct cache_manager *cache_manager = argument;
    bool scanning = cache_manager->depth > 0 && scan_directory(cache_manager);

    if (!scanning && cache_manager->scan_error == 0 &&
        cache_zone_scan_is_pending(cache_manager->store->conf->zone, cache_manager->scan))
        cache_zone_scan_done(cache_manager->store->conf->zone, cache_manager->scan);
    cache_manager->more = evict_files(cache_manager) || scanning;
    return 0;
}

/*
 * Starts a requested scan that has not been done, or repeats one that was incomplete, or found locked files: with
 * io_uring, the kernel releases the files of a killed process some time after its exit.
 */
static void start_scan(struct cache_manager *cache_manager)
{
    const struct cache_conf *conf = cache_manager->store->conf;
    uint64_t newest = cache_zone_scans_requested(conf->zone);
    bool requested = cache_zone_scan_is_pending(conf->zone, newest);

    if (cache_manager->depth > 0 || (!requested && cache_manager->scan_error == 0 &&
                                     (!cache_manager->locked_found || cache_manager->rescans >= LIMIT_CACHE_RESCANS)))
        return;
    cache_manager->scan = newest;
    cache_manager->rescans = requested || cache_manager->scan_error ? 0 : cache_manager->rescans + 1;
    cache_manager->locked_found = false;
    cache_manager->scan_error = 0;
    open_directory(cache_manager, conf->directory.fd, ".");
}

static void schedule_step(struct cache_manager *cache_manager, uint64_t delay_ms)
{
    if (!cache_manager->stopping)
        loop_timer(cache_manager->store->loop, &cache_manager->timer,
                   cache_manager->store->loop->clock.monotonic_ms + delay_ms);
}

/* Logs that a scan ended incomplete, once per second. */
static void log_scan_error(struct cache_manager *cache_manager)
{
    struct cache_store *store = cache_manager->store;
    int error = cache_manager->scan_error;

    if (cache_manager->depth == 0 && error &&
        log_limit_allows(&cache_manager->scan_errors, store->loop->clock.monotonic_ms))
        log_write(store->log, LOG_ERROR,
                  "cache \"" STR_FMT "\": the scan of the directory is incomplete, and is repeated (%d: %s)",
                  STR_ARG(store->conf->name), -error, strerror(-error));
}

static void step_done(struct op *op, int result)
{
    struct cache_manager *cache_manager = container_of(op, struct cache_manager, step);

    log_scan_error(cache_manager);
    schedule_step(cache_manager,
                  result == 0 && !cache_manager->more ? LIMIT_CACHE_IDLE_MS : cache_manager->store->conf->pause_ms);
}

static void step_timer_done(struct op *op, int result)
{
    struct cache_manager *cache_manager = container_of(op, struct cache_manager, timer);
    struct loop *loop = cache_manager->store->loop;

    if (result == -ECANCELED || cache_manager->stopping)
        return;
    cache_manager->now_ms = loop->clock.monotonic_ms;
    if (!cache_zone_acquire_leadership(cache_manager->store->conf->zone, cache_manager->store->worker,
                                       cache_manager->now_ms, LIMIT_CACHE_LEAD_MS)) {
        schedule_step(cache_manager, LIMIT_CACHE_IDLE_MS);
        return;
    }
    start_scan(cache_manager);
    loop_offload(loop, &cache_manager->step, step_work, cache_manager);
}

struct cache_manager *cache_manager_create(struct cache_store *store)
{
    struct cache_manager *cache_manager = calloc(1, sizeof(*cache_manager));

    if (!cache_manager)
        return NULL;
    cache_manager->store = store;
    cache_manager->timer.done = step_timer_done;
    cache_manager->step.done = step_done;
    schedule_step(cache_manager, 0);
    return cache_manager;
}

void cache_manager_shrink(struct cache_manager *cache_manager)
{
    __atomic_store_n(&cache_manager->shrink_requested, true, __ATOMIC_RELAXED);
}

void cache_manager_stop(struct cache_manager *cache_manager)
{
    cache_manager->stopping = true;
    loop_cancel(cache_manager->store->loop, &cache_manager->timer);
}

void cache_manager_destroy(struct cache_manager *cache_manager)
{
    while (cache_manager->depth > 0)
        close_directory(cache_manager);
    free(cache_manager);
}
