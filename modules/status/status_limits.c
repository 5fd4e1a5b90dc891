/*
 * The zones of limit_req and limit_conn on the status page: keys, and requests that were delayed or rejected.
 */
#include "status.h"

#include <errno.h>
#include <stdio.h>

static uint64_t keys_of(const struct limit_zone_totals *totals)
{
    return totals->keys;
}

static uint64_t keys_max_of(const struct limit_zone_totals *totals)
{
    return totals->keys_max;
}

static uint64_t delayed_of(const struct limit_zone_totals *totals)
{
    return totals->counts[LIMIT_DELAYED];
}

static uint64_t rejected_of(const struct limit_zone_totals *totals)
{
    return totals->counts[LIMIT_REJECTED];
}

static const struct row {
    const char *name;               /* of the metric, without the prefix "sluice_limit_", and in the JSON object */
    const char *type;
    const char *help;
    const char *title;              /* in HTML; NULL: not there */
    uint64_t (*value)(const struct limit_zone_totals *totals);
} rows[] = {
    {"keys", "gauge", "Keys in the zone; of limit_conn one for each worker and key.", "Keys", keys_of},
    {"keys_max", "gauge", "The most keys that the zone holds.", NULL, keys_max_of},
    {"delayed_total", "counter", "Requests that a limit delayed.", "Delayed", delayed_of},
    {"rejected_total", "counter", "Requests or connections that a limit rejected.", "Rejected", rejected_of},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

int status_limits_collect(struct status_values *values, struct arena *arena, const struct limits *limits)
{
    values->limits = arena_zalloc(arena, limits->count + 1, sizeof(*values->limits));
    if (!values->limits)
        return -ENOMEM;
    for (size_t i = 0; i < limits->count; i++) {
        const struct limit_conf *limit = limits->items[i];
        struct status_limit_value *value = &values->limits[i];

        value->name = arena_copy(arena, limit->name).data;
        if (!value->name)
            return -ENOMEM;
        value->directive = limit_kind_names[limit->kind];
        limit_zone_totals(limit->zone, &value->totals);
    }
    values->limit_count = limits->count;
    return 0;
}

static void prometheus_row(struct status_page_text *page, const struct status_values *values, const struct row *row)
{
    for (size_t i = 0; i < values->limit_count; i++) {
        status_print(page, "sluice_limit_%s{zone=\"", row->name);
        status_print_label(page, values->limits[i].name);
        status_print(page, "\",limit=\"%s\"} %llu\n", values->limits[i].directive,
                     (unsigned long long)row->value(&values->limits[i].totals));
    }
}

void status_limits_prometheus(struct status_page_text *page, const struct status_values *values)
{
    if (values->limit_count == 0)
        return;
    for (size_t i = 0; i < ROWS; i++) {
        char name[32];

        snprintf(name, sizeof(name), "limit_%s", rows[i].name);
        status_print_head(page, name, rows[i].type, rows[i].help);
        prometheus_row(page, values, &rows[i]);
    }
}

static void json_limit(struct status_page_text *page, const struct status_limit_value *value)
{
    status_print(page, "{\"zone\": \"");
    status_print_json(page, value->name);
    status_print(page, "\", \"limit\": \"%s\"", value->directive);
    for (size_t i = 0; i < ROWS; i++)
        status_print(page, ", \"%s\": %llu", rows[i].name, (unsigned long long)rows[i].value(&value->totals));
    status_print(page, "}");
}

void status_limits_json(struct status_page_text *page, const struct status_values *values)
{
    if (values->limit_count == 0)
        return;
    status_print(page, ",\n  \"limits\": [");
    for (size_t i = 0; i < values->limit_count; i++) {
        status_print(page, "%s\n    ", i > 0 ? "," : "");
        json_limit(page, &values->limits[i]);
    }
    status_print(page, "]");
}

static void html_limit(struct status_page_text *page, const struct status_limit_value *value)
{
    status_print(page, "\n<tr><td>");
    status_print_html(page, value->name);
    status_print(page, " (%s)", value->directive);
    for (size_t i = 0; i < ROWS; i++) {
        if (!rows[i].title)
            continue;
        status_print(page, "<td>");
        status_print_number(page, rows[i].value(&value->totals));
    }
}

void status_limits_html(struct status_page_text *page, const struct status_values *values)
{
    if (values->limit_count == 0)
        return;
    status_print(page, "<h2>Limits</h2>\n<table>\n<tr><th>Zone");
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].title)
            status_print(page, "<th>%s", rows[i].title);
    }
    for (size_t i = 0; i < values->limit_count; i++)
        html_limit(page, &values->limits[i]);
    status_print(page, "\n</table>\n");
}
