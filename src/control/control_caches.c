/*
 * The caches: their sizes, and removal of stored responses. Their indexes are in memory that all workers share.
 */
#include "control/control.h"

#include "base/limits.h"
#include "cache/cache_purge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { FIELD_CACHE, FIELD_KEY, FIELD_PREFIX, FIELD_ALL };

const struct control_field control_caches_purge_fields[] = {
    [FIELD_CACHE] = {.name = "cache", .type = CONTROL_TEXT, .required = true},
    [FIELD_KEY] = {.name = "key", .type = CONTROL_TEXT},
    [FIELD_PREFIX] = {.name = "prefix", .type = CONTROL_TEXT},
    [FIELD_ALL] = {.name = "all", .type = CONTROL_SWITCH},
    {.name = NULL},
};

/* A purge by prefix; freed when it ends. */
struct caches_task {
    struct cache_prefix_purge purge;
    struct control_call *call;
    struct str name;                /* of the cache; in the arena of the exchange */
};

static void write_cache(struct report *report, const struct cache_conf *conf)
{
    struct cache_totals totals;

    cache_zone_totals(conf->zone, &totals);
    report_row(report);
    report_text(report, conf->name);
    report_text(report, conf->path);
    report_number(report, totals.files);
    report_number(report, totals.bytes);
    if (conf->max_size == UINT64_MAX)
        report_text(report, (struct str){NULL, 0});
    else
        report_number(report, conf->max_size);
    report_text(report, cache_zone_loaded(conf->zone) ? STR("complete") : STR("loading"));
}

int control_caches(struct control_call *call)
{
    static const char *const columns[] = {"cache", "path", "entries", "bytes", "max_size", "index", NULL};
    const struct caches *caches = &call->worker->configuration->caches;

    report_begin(&call->report, "caches", columns);
    for (size_t i = 0; i < caches->count; i++)
        write_cache(&call->report, caches->items[i]);
    report_end(&call->report);
    return 200;
}

static int report_purged(struct control_call *call, struct str name, uint64_t removed)
{
    static const char *const columns[] = {"cache", "removed", NULL};

    report_begin(&call->report, "purged", columns);
    report_row(&call->report);
    report_text(&call->report, name);
    report_number(&call->report, removed);
    report_end(&call->report);
    return 200;
}

int control_no_such_cache(struct control_call *call, struct str name)
{
    const struct caches *caches = &call->worker->configuration->caches;
    struct str names = STR("");

    for (size_t i = 0; i < caches->count && names.data; i++)
        names = arena_join(&call->x->arena,
                           (const struct str[]){names, str_from(i > 0 ? ", " : ""), caches->items[i]->name}, 3);
    if (str_empty(names))
        return control_fail(call, 404, "the configuration has no cache; proxy_cache_path defines one");
    return control_fail(call, 404, "there is no cache \"" STR_FMT "\"; the caches are: " STR_FMT,
                        STR_ARG(str_slice(name, 0, 64)), STR_ARG(names));
}

/* `complete`: false if entries of the prefix may be left. */
static void log_purge(struct control_call *call, uint64_t removed, bool complete)
{
    const struct control_value *key = &call->values[FIELD_KEY];
    const struct control_value *prefix = &call->values[FIELD_PREFIX];
    const char *scope = key->given ? "the key \"" : prefix->given ? "the prefix \"" : "all keys";
    struct str text = key->given ? key->text : str_or_empty(prefix->text);

    log_write(call->worker->log, LOG_NOTICE,
              "control: cache \"" STR_FMT "\": purged %s" STR_FMT "%s, entries removed%s: %" PRIu64,
              STR_ARG(call->values[FIELD_CACHE].text), scope, STR_ARG(str_slice(text, 0, 512)),
              str_empty(text) ? "" : "\"", complete ? "" : " before it ended early", removed);
}

static void prefix_purge_ended(struct cache_prefix_purge *purge, int result)
{
    struct caches_task *task = container_of(purge, struct caches_task, purge);
    struct control_call *call = task->call;
    int status = result == 0 ? report_purged(call, task->name, purge->removed)
                             : control_fail(call, 503, "the purge ended early, after %llu entries (%d: %s); repeat it",
                                            (unsigned long long)purge->removed, -result, strerror(-result));

    log_purge(call, purge->removed, result == 0);
    free(task);
    control_finish(call, status);
}

static void prefix_purge_cancelled(struct control_call *call)
{
    struct caches_task *task = call->task;

    cache_purge_cancel(&task->purge);
    log_purge(call, task->purge.removed, false);
    free(task);
}

static int purge_prefix(struct control_call *call, const struct cache_conf *conf, struct str prefix)
{
    struct caches_task *task = calloc(1, sizeof(*task));
    int error;

    if (!task)
        return control_fail(call, 500, "out of memory");
    task->call = call;
    task->name = conf->name;
    task->purge.ended = prefix_purge_ended;
    error = cache_purge_prefix(worker_cache(call->worker, conf), &task->purge, prefix);
    if (error == 0) {
        call->task = task;
        call->cancelled = prefix_purge_cancelled;
        return CONTROL_PENDING;
    }
    free(task);
    if (error != -EAGAIN)
        return control_fail(call, 500, "out of memory");
    return control_fail(call, 503, "the index of the cache is being loaded from its directory; repeat the purge when "
                        "GET /v1/caches reports it as complete");
}

int control_caches_purge(struct control_call *call)
{
    const struct control_value *name = &call->values[FIELD_CACHE];
    const struct control_value *key = &call->values[FIELD_KEY];
    const struct control_value *prefix = &call->values[FIELD_PREFIX];
    bool all = call->values[FIELD_ALL].number != 0;
    const struct cache_conf *conf = caches_find(&call->worker->configuration->caches, name->text);
    unsigned removed;

    if (key->given + prefix->given + all != 1)
        return control_fail(call, 400, "%s takes one of \"key\", \"prefix\" and \"all\": true", call->resource->path);
    if (!conf)
        return control_no_such_cache(call, name->text);
    if (!key->given)
        return purge_prefix(call, conf, all ? STR("") : prefix->text);
    removed = cache_purge_key(worker_cache(call->worker, conf), key->text);
    log_purge(call, removed, true);
    return report_purged(call, conf->name, removed);
}
