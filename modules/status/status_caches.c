/*
 * The response caches on the status page: their sizes, and responses by $upstream_cache_status.
 */
#include "status.h"

#include <errno.h>
#include <stdio.h>

static uint64_t files_of(const struct status_cache_value *value)
{
    return value->totals.files;
}

static uint64_t bytes_of(const struct status_cache_value *value)
{
    return value->totals.bytes;
}

static uint64_t max_bytes_of(const struct status_cache_value *value)
{
    return value->max_bytes;
}

/* The metrics with one value per cache; UINT64_MAX is omitted. */
static const struct row {
    const char *name;
    const char *help;
    uint64_t (*value)(const struct status_cache_value *value);
} rows[] = {
    {"files", "Stored responses.", files_of},
    {"bytes", "Bytes of all stored responses.", bytes_of},
    {"max_bytes", "max_size of proxy_cache_path; absent if it is unlimited.", max_bytes_of},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

int status_caches_collect(struct status_values *values, struct arena *arena, const struct caches *caches)
{
    values->caches = arena_zalloc(arena, caches->count + 1, sizeof(*values->caches));
    if (!values->caches)
        return -ENOMEM;
    for (size_t i = 0; i < caches->count; i++) {
        const struct cache_conf *cache = caches->items[i];
        struct status_cache_value *value = &values->caches[i];

        value->name = arena_copy(arena, cache->name).data;
        if (!value->name)
            return -ENOMEM;
        value->max_bytes = cache->max_size;
        cache_zone_totals(cache->zone, &value->totals);
        cache_zone_counts(cache->zone, value->responses);
    }
    values->cache_count = caches->count;
    return 0;
}

static void prometheus_row(struct status_page_text *page, const struct status_values *values, const struct row *row)
{
    for (size_t i = 0; i < values->cache_count; i++) {
        uint64_t number = row->value(&values->caches[i]);

        if (number == UINT64_MAX)
            continue;
        status_print(page, "sluice_cache_%s{cache=\"", row->name);
        status_print_label(page, values->caches[i].name);
        status_print(page, "\"} %llu\n", (unsigned long long)number);
    }
}

static void prometheus_responses(struct status_page_text *page, const struct status_cache_value *value)
{
    for (unsigned status = CACHED_NOT + 1; status < CACHED_STATUSES; status++) {
        status_print(page, "sluice_cache_responses_total{cache=\"");
        status_print_label(page, value->name);
        status_print(page, "\",status=\"%s\"} %llu\n", cached_status_name(status),
                     (unsigned long long)value->responses[status]);
    }
}

void status_caches_prometheus(struct status_page_text *page, const struct status_values *values)
{
    if (values->cache_count == 0)
        return;
    for (size_t i = 0; i < ROWS; i++) {
        char name[32];

        snprintf(name, sizeof(name), "cache_%s", rows[i].name);
        status_print_head(page, name, "gauge", rows[i].help);
        prometheus_row(page, values, &rows[i]);
    }
    status_print_head(page, "cache_responses_total", "counter", "Responses by $upstream_cache_status.");
    for (size_t i = 0; i < values->cache_count; i++)
        prometheus_responses(page, &values->caches[i]);
}

static void json_cache(struct status_page_text *page, const struct status_cache_value *value)
{
    status_print(page, "{\"cache\": \"");
    status_print_json(page, value->name);
    status_print(page, "\"");
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].value(value) != UINT64_MAX)
            status_print(page, ", \"%s\": %llu", rows[i].name, (unsigned long long)rows[i].value(value));
    }
    status_print(page, ", \"responses_total\": {");
    for (unsigned status = CACHED_NOT + 1; status < CACHED_STATUSES; status++)
        status_print(page, "%s\"%s\": %llu", status > CACHED_NOT + 1 ? ", " : "", cached_status_name(status),
                     (unsigned long long)value->responses[status]);
    status_print(page, "}}");
}

void status_caches_json(struct status_page_text *page, const struct status_values *values)
{
    if (values->cache_count == 0)
        return;
    status_print(page, ",\n  \"caches\": [");
    for (size_t i = 0; i < values->cache_count; i++) {
        status_print(page, "%s\n    ", i > 0 ? "," : "");
        json_cache(page, &values->caches[i]);
    }
    status_print(page, "]");
}

static void html_cache(struct status_page_text *page, const struct status_cache_value *value)
{
    uint64_t all = 0;

    for (unsigned status = CACHED_NOT + 1; status < CACHED_STATUSES; status++)
        all += value->responses[status];
    status_print(page, "<tr><td>");
    status_print_html(page, value->name);
    status_print(page, "<td>");
    status_print_number(page, value->totals.files);
    status_print(page, "<td>");
    status_print_number(page, value->totals.bytes);
    status_print(page, "<td>");
    status_print_number(page, all);
    status_print(page, "<td>");
    status_print_number(page, value->responses[CACHED_HIT]);
    status_print(page, "\n");
}

void status_caches_html(struct status_page_text *page, const struct status_values *values)
{
    if (values->cache_count == 0)
        return;
    status_print(page, "<h2>Caches</h2>\n<table>\n<tr><th>Cache<th>Files<th>Bytes<th>Responses<th>Hits\n");
    for (size_t i = 0; i < values->cache_count; i++)
        html_cache(page, &values->caches[i]);
    status_print(page, "</table>\n");
}
