/*
 * The keeper: one worker, for all, walks the folder once after the start (and again where a worker died, for what it
 * left behind), and deletes what is inactive or too much. All in steps of a few files, on a helper thread, with a
 * pause between two.
 */
#include "cache/cache_store_private.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct cache_keeper {
    struct cache_store *store;
    struct op timer, step;
    bool stopping;
    bool pressed;                   /* the disk was full; atomic */
    DIR *open[CACHE_LEVELS + 1];    /* the way to where the walk is; the helper thread's while a step runs */
    unsigned depth;                 /* how many are open; 0: no walk */
    uint64_t walk;                  /* its number */
    uint64_t walked;                /* walks that are done */
    uint64_t now_ms;                /* of the step */
    bool more;                      /* of the step: it was not all */
};

static unsigned level_count(const struct cache_folder *folder)
{
    unsigned count = 0;

    while (count < CACHE_LEVELS && folder->levels[count])
        count++;
    return count;
}

/* Opens a folder of the walk, below the one before. */
static bool descend(struct cache_keeper *keeper, int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;

    if (folder)
        keeper->open[keeper->depth++] = folder;
    else if (fd >= 0)
        close(fd);
    return folder != NULL;
}

static void ascend(struct cache_keeper *keeper)
{
    closedir(keeper->open[--keeper->depth]);
}

/* A file with the name of an entry is one, or goes. */
static void adopt(struct cache_keeper *keeper, const struct cache_id *id)
{
    const struct cache_conf *conf = keeper->store->conf;
    struct cache_victims victims = {0};
    struct cache_view known = {0};
    struct cache_opened opened;
    struct stat found;
    int error;

    if (cache_zone_find(conf->zone, &id->hash, false, 0, &known, &victims) && known.sequence == id->sequence)
        return;
    error = cache_file_open(&conf->folder, id, 0, 0, &opened);
    if (error == 0) {
        error = fstat(opened.fd, &found) < 0 ? -errno : 0;
        cache_opened_drop(&opened);
    }
    if (error == 0)
        error = cache_zone_adopt(conf->zone, id, (uint64_t)found.st_size, (uint32_t)(keeper->now_ms / 1000), &victims);
    if (error == -EBADMSG || error == -ENOSPC)
        cache_file_delete(&conf->folder, id);
    for (unsigned i = 0; i < victims.count; i++)
        cache_file_delete(&conf->folder, &victims.ids[i]);
}

/* An entry of the folder that the walk is in. What is not ours stays. */
static void look_at(struct cache_keeper *keeper, const char *name)
{
    int folder = dirfd(keeper->open[keeper->depth - 1]);
    struct cache_id id;

    if (keeper->depth <= level_count(&keeper->store->conf->folder)) {
        if (name[0] != '.')
            (void)descend(keeper, folder, name);
        return;
    }
    if (cache_file_parse_name(name, &id))
        adopt(keeper, &id);
    else if (cache_file_is_temporary(name))
        cache_file_sweep(folder, name);
}

/* Some way on the walk. True: it is not at its end. */
static bool walk_on(struct cache_keeper *keeper)
{
    const struct cache_conf *conf = keeper->store->conf;
    struct clock now;

    for (uint64_t files = 0; files < conf->files_at_once && keeper->depth > 0; files++) {
        const struct dirent *entry = readdir(keeper->open[keeper->depth - 1]);

        if (entry)
            look_at(keeper, entry->d_name);
        else
            ascend(keeper);
        clock_read(&now);
        if (u64_sub_sat(now.monotonic_ms, keeper->now_ms) >= conf->step_ms)
            break;
    }
    return keeper->depth > 0;
}

/* Bytes that may be stored: max_size, and what min_free leaves. */
static uint64_t allowed(struct cache_keeper *keeper)
{
    const struct cache_conf *conf = keeper->store->conf;
    struct cache_totals totals;
    struct statvfs disk;
    uint64_t left, missing = 0;

    cache_zone_totals(conf->zone, &totals);
    if (__atomic_exchange_n(&keeper->pressed, false, __ATOMIC_RELAXED))
        missing = totals.bytes / 16 + 1;
    else if (conf->min_free > 0 && fstatvfs(conf->folder.fd, &disk) == 0 &&
             (left = (uint64_t)disk.f_bavail * disk.f_frsize) < conf->min_free)
        missing = conf->min_free - left;
    missing = missing < totals.bytes ? missing : totals.bytes;
    return missing > 0 && totals.bytes - missing < conf->max_size ? totals.bytes - missing : conf->max_size;
}

/* Deletes some of what is too much. True: it was not all. */
static bool thin_out(struct cache_keeper *keeper)
{
    const struct cache_conf *conf = keeper->store->conf;
    uint64_t now_s = keeper->now_ms / 1000, inactive_s = conf->inactive_ms / 1000;
    uint64_t most = allowed(keeper);
    bool more = true;

    for (uint64_t files = 0; files < conf->files_at_once && more; files += CACHE_VICTIMS) {
        struct cache_victims victims = {0};

        more = cache_zone_evict(conf->zone, now_s > inactive_s ? (uint32_t)(now_s - inactive_s) : 0, most,
                                keeper->now_ms, &victims);
        for (unsigned i = 0; i < victims.count; i++)
            cache_file_delete(&conf->folder, &victims.ids[i]);
    }
    return more;
}

static int step_work(void *argument)
{
    struct cache_keeper *keeper = argument;
    bool walking = keeper->depth > 0 && walk_on(keeper);

    if (!walking && cache_zone_unwalked(keeper->store->conf->zone, keeper->walk))
        cache_zone_walked(keeper->store->conf->zone, keeper->walk);
    keeper->more = thin_out(keeper) || walking;
    return 0;
}

/* Begins a walk that was asked for and nobody has done. */
static void begin_walk(struct cache_keeper *keeper)
{
    const struct cache_conf *conf = keeper->store->conf;
    uint64_t walks = cache_zone_walks(conf->zone);

    if (keeper->depth > 0 || !cache_zone_unwalked(conf->zone, walks))
        return;
    keeper->walk = walks;
    (void)descend(keeper, conf->folder.fd, ".");
}

static void plan(struct cache_keeper *keeper, uint64_t delay_ms)
{
    if (!keeper->stopping)
        loop_timer(keeper->store->loop, &keeper->timer, keeper->store->loop->clock.monotonic_ms + delay_ms);
}

static void stepped(struct op *op, int result)
{
    struct cache_keeper *keeper = container_of(op, struct cache_keeper, step);

    plan(keeper, result == 0 && !keeper->more ? LIMIT_CACHE_KEEP_MS : keeper->store->conf->pause_ms);
}

static void due(struct op *op, int result)
{
    struct cache_keeper *keeper = container_of(op, struct cache_keeper, timer);
    struct loop *loop = keeper->store->loop;

    if (result == -ECANCELED || keeper->stopping)
        return;
    keeper->now_ms = loop->clock.monotonic_ms;
    if (!cache_zone_lead(keeper->store->conf->zone, keeper->store->worker, keeper->now_ms, LIMIT_CACHE_LEAD_MS)) {
        plan(keeper, LIMIT_CACHE_KEEP_MS);
        return;
    }
    begin_walk(keeper);
    loop_offload(loop, &keeper->step, step_work, keeper);
}

struct cache_keeper *cache_keeper_create(struct cache_store *store)
{
    struct cache_keeper *keeper = calloc(1, sizeof(*keeper));

    if (!keeper)
        return NULL;
    keeper->store = store;
    keeper->timer.done = due;
    keeper->step.done = stepped;
    plan(keeper, 0);
    return keeper;
}

void cache_keeper_press(struct cache_keeper *keeper)
{
    __atomic_store_n(&keeper->pressed, true, __ATOMIC_RELAXED);
}

void cache_keeper_stop(struct cache_keeper *keeper)
{
    keeper->stopping = true;
    loop_cancel(keeper->store->loop, &keeper->timer);
}

void cache_keeper_destroy(struct cache_keeper *keeper)
{
    while (keeper->depth > 0)
        ascend(keeper);
    free(keeper);
}
