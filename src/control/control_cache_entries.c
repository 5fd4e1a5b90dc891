/*
 * The stored responses of a cache, in pages. Keys and metadata are read from the files on helper threads.
 */
#include "control/control.h"

#include "base/limits.h"
#include "cache/cache_list.h"
#include "cache/cache_purge.h"
#include "http/freshness.h"

#include <errno.h>
#include <stdlib.h>

/* A listing in progress; freed when it ends. */
struct entries_task {
    struct cache_page page;
    struct control_call *call;
};

#define ABSENT ((struct str){NULL, 0})

/* By the suffix of the key, which begins with a line feed. */
static const char *kind_of(const struct cache_listed *entry)
{
    ssize_t end = str_find(entry->key, '\n');
    struct str suffix = end < 0 ? STR("") : str_skip(entry->key, (size_t)end);

    if (str_equal(suffix, STR(CACHE_KEY_SLICES)))
        return "slices";
    if (str_starts(suffix, STR(CACHE_KEY_SLICES "\n")))
        return "slice";
    if (str_equal(suffix, STR(CACHE_KEY_PARTIAL)))
        return "partial";
    if (!str_empty(suffix))
        return "variant";
    return entry->has_metadata && entry->metadata.status == 0 ? "vary" : "response";
}

static int64_t age_of(const struct stored_metadata *metadata, int64_t now_s)
{
    int64_t resident_s = now_s - metadata->received_s;

    return metadata->initial_age_s + (resident_s > 0 ? resident_s : 0);
}

static void write_times(struct report *report, const struct stored_metadata *metadata, int64_t now_s)
{
    int64_t age_s = age_of(metadata, now_s);
    bool fresh = !metadata->no_cache && metadata->lifetime_s > age_s;

    report_signed(report, age_s);
    if (metadata->lifetime_s == DELTA_NONE)
        report_text(report, ABSENT);
    else
        report_time(report, metadata->received_s + metadata->lifetime_s - metadata->initial_age_s);
    report_text(report, fresh ? STR("fresh") : STR("stale"));
}

static void write_entry(struct report *report, const struct cache_listed *entry, int64_t now_s)
{
    bool has_response = entry->has_metadata && entry->metadata.status != 0;
    ssize_t end = str_find(entry->key, '\n');

    report_row(report);
    report_text(report, str_from(kind_of(entry)));
    if (has_response)
        report_signed(report, entry->metadata.status);
    else
        report_text(report, ABSENT);
    report_number(report, entry->body_length);
    report_number(report, entry->idle_s);
    if (has_response)
        write_times(report, &entry->metadata, now_s);
    for (unsigned i = 0; i < 3 && !has_response; i++)
        report_text(report, ABSENT);
    report_text(report, end < 0 ? entry->key : str_slice(entry->key, 0, (size_t)end));
}

static int report_page(struct control_call *call, const struct cache_page *page)
{
    static const char *const columns[] = {"kind", "status", "size", "idle", "age", "expires", "validity", "key", NULL};
    const struct report_note notes[] = {
        {.name = "cursor", .text = "there are more entries; continue with cursor", .number = page->cursor},
        {.name = NULL}};
    int64_t now_s = clock_wall_s(exchange_clock(call->x));

    report_begin(&call->report, "entries", columns);
    for (size_t i = 0; i < page->count; i++)
        write_entry(&call->report, &page->entries[i], now_s);
    report_end_partial(&call->report, notes);
    return 200;
}

static void page_ended(struct cache_page *page, int result)
{
    struct entries_task *task = container_of(page, struct entries_task, page);
    struct control_call *call = task->call;
    int status = result == 0 ? report_page(call, page)
                             : control_fail(call, 503, "the entries could not be read (%d: %s)", -result,
                                            strerror(-result));

    free(task);
    control_finish(call, status);
}

static void page_cancelled(struct control_call *call)
{
    struct entries_task *task = call->task;

    cache_list_cancel(&task->page);
    free(task);
}

static int start_page(struct control_call *call, const struct cache_conf *conf, struct str prefix, uint32_t cursor)
{
    struct entries_task *task = calloc(1, sizeof(*task));

    if (!task)
        return control_fail(call, 500, "out of memory");
    task->call = call;
    task->page = (struct cache_page){.ended = page_ended,
                                     .max = LIMIT_CONTROL_ENTRIES,
                                     .max_text = LIMIT_CONTROL_ENTRY_KEYS,
                                     .cursor = cursor};
    if (cache_list(worker_cache(call->worker, conf), &task->page, prefix) < 0) {
        free(task);
        return control_fail(call, 500, "out of memory");
    }
    call->task = task;
    call->cancelled = page_cancelled;
    return CONTROL_PENDING;
}

int control_caches_entries(struct control_call *call)
{
    struct str name = ABSENT, prefix = ABSENT;
    uint64_t cursor = 0;
    const struct cache_conf *conf;
    int status = control_query_text(call, "cache", &name);

    if (status == 200)
        status = control_query_text(call, "prefix", &prefix);
    if (status == 200)
        status = control_query_number(call, "cursor", UINT32_MAX, &cursor);
    if (status != 200)
        return status;
    if (!name.data)
        return control_fail(call, 400, "the parameter \"cache\" is missing");
    conf = caches_find(&call->worker->configuration->caches, name);
    return conf ? start_page(call, conf, str_or_empty(prefix), (uint32_t)cursor) : control_no_such_cache(call, name);
}
