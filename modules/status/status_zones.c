/*
 * The zones of `status_zone` on the status page: requests of servers and of locations, with their times.
 */
#include "status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *metric;             /* first part of the names of its metrics */
    const char *list;               /* member of the JSON object */
    const char *title;
} kinds[STATUS_ZONE_KINDS] = {
    [STATUS_ZONE_SERVER] = {"server_zone", "server_zones", "Servers"},
    [STATUS_ZONE_LOCATION] = {"location_zone", "location_zones", "Locations"},
};

static uint64_t requests_of(const struct status_zone_counts *counts)
{
    return latency_count(&counts->latency);
}

static uint64_t sent_of(const struct status_zone_counts *counts)
{
    return counts->sent;
}

static uint64_t received_of(const struct status_zone_counts *counts)
{
    return counts->received;
}

/* The metrics with one value per zone. */
static const struct row {
    const char *name;
    const char *help;
    uint64_t (*value)(const struct status_zone_counts *counts);
} rows[] = {
    {"requests_total", "Completed requests.", requests_of},
    {"sent_bytes_total", "Bytes of responses, as in $bytes_sent.", sent_of},
    {"received_bytes_total", "Bytes of requests, as in $request_length.", received_of},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The label with its name, escaped for Prometheus text once for all samples. data NULL: out of memory. */
static struct str make_label(struct arena *arena, const char *name)
{
    struct buffer text = {0};
    struct status_page_text label = {.out = &text};
    struct str copy = {NULL, 0};

    status_print(&label, "zone=\"");
    status_print_label(&label, name);
    status_print(&label, "\"");
    if (label.error == 0)
        copy = arena_copy(arena, buffer_str(&text));
    buffer_finish(&text);
    return copy;
}

int status_zones_collect(struct status_values *values, struct arena *arena, const struct status_zones *zones,
                         unsigned slots)
{
    values->zones = arena_zalloc(arena, zones->count + 1, sizeof(*values->zones));
    if (!values->zones)
        return -ENOMEM;
    for (size_t i = 0; i < zones->count; i++) {
        struct status_zone_value *value = &values->zones[i];

        value->kind = zones->items[i]->kind;
        value->name = arena_copy(arena, zones->items[i]->name).data;
        value->label = value->name ? make_label(arena, value->name) : STR("");
        if (!value->name || !value->label.data)
            return -ENOMEM;
        status_zone_sum(zones->items[i], slots, &value->counts);
    }
    values->zone_count = zones->count;
    return 0;
}

/* The next zone of that kind from *at on; NULL: none. */
static const struct status_zone_value *next_zone(const struct status_values *values, enum status_zone_kind kind,
                                                 size_t *at)
{
    while (*at < values->zone_count) {
        const struct status_zone_value *value = &values->zones[(*at)++];

        if (value->kind == kind)
            return value;
    }
    return NULL;
}

static bool has_zones(const struct status_values *values, enum status_zone_kind kind)
{
    size_t at = 0;

    return next_zone(values, kind, &at) != NULL;
}

static void print_head(struct status_page_text *page, enum status_zone_kind kind, const char *name, const char *type,
                       const char *help)
{
    status_print(page, "# HELP sluice_%s_%s %s\n# TYPE sluice_%s_%s %s\n", kinds[kind].metric, name, help,
                 kinds[kind].metric, name, type);
}

static void prometheus_rows(struct status_page_text *page, const struct status_values *values,
                            enum status_zone_kind kind)
{
    const struct status_zone_value *value;

    for (size_t i = 0; i < ROWS; i++) {
        print_head(page, kind, rows[i].name, "counter", rows[i].help);
        for (size_t at = 0; (value = next_zone(values, kind, &at)) != NULL;) {
            status_print(page, "sluice_%s_%s{", kinds[kind].metric, rows[i].name);
            status_print_text(page, value->label);
            status_print(page, "} %llu\n", (unsigned long long)rows[i].value(&value->counts));
        }
    }
}

static void prometheus_classes(struct status_page_text *page, const struct status_values *values,
                               enum status_zone_kind kind)
{
    const struct status_zone_value *value;

    print_head(page, kind, "responses_total", "counter", "Completed requests by class of status.");
    for (size_t at = 0; (value = next_zone(values, kind, &at)) != NULL;) {
        for (unsigned i = 0; i < STATUS_ZONE_CLASSES; i++) {
            status_print(page, "sluice_%s_responses_total{", kinds[kind].metric);
            status_print_text(page, value->label);
            status_print(page, ",class=\"%s\"} %llu\n", status_class_names[i],
                         (unsigned long long)value->counts.classes[i]);
        }
    }
}

static void prometheus_times(struct status_page_text *page, const struct status_values *values,
                             enum status_zone_kind kind)
{
    const char *name = kind == STATUS_ZONE_SERVER ? "server_zone_request_duration_seconds"
                                                  : "location_zone_request_duration_seconds";
    const struct status_zone_value *value;

    print_head(page, kind, "request_duration_seconds", "histogram",
               "Time from the first byte of a request to the end of its response.");
    for (size_t at = 0; (value = next_zone(values, kind, &at)) != NULL;)
        status_histogram_prometheus(page, name, value->label, &value->counts.latency);
}

void status_zones_prometheus(struct status_page_text *page, const struct status_values *values)
{
    for (unsigned kind = 0; kind < STATUS_ZONE_KINDS; kind++) {
        if (!has_zones(values, kind))
            continue;
        prometheus_rows(page, values, kind);
        prometheus_classes(page, values, kind);
        prometheus_times(page, values, kind);
    }
}

static void json_zone(struct status_page_text *page, const struct status_zone_value *value)
{
    status_print(page, "{\"zone\": \"");
    status_print_json(page, value->name);
    status_print(page, "\"");
    for (size_t i = 0; i < ROWS; i++)
        status_print(page, ", \"%s\": %llu", rows[i].name, (unsigned long long)rows[i].value(&value->counts));
    status_print(page, ", \"responses_total\": {");
    for (unsigned i = 0; i < STATUS_ZONE_CLASSES; i++)
        status_print(page, "%s\"%s\": %llu", i ? ", " : "", status_class_names[i],
                     (unsigned long long)value->counts.classes[i]);
    status_print(page, "}, \"request_duration_seconds\": ");
    status_histogram_json(page, &value->counts.latency);
    status_print(page, "}");
}

void status_zones_json(struct status_page_text *page, const struct status_values *values)
{
    for (unsigned kind = 0; kind < STATUS_ZONE_KINDS; kind++) {
        const struct status_zone_value *value;
        const char *comma = "";

        if (!has_zones(values, kind))
            continue;
        status_print(page, ",\n  \"%s\": [", kinds[kind].list);
        for (size_t at = 0; (value = next_zone(values, kind, &at)) != NULL; comma = ",") {
            status_print(page, "%s\n    ", comma);
            json_zone(page, value);
        }
        status_print(page, "]");
    }
}

/* By kind; the slowest first, then in the order of their names. */
static int compare_zones(const void *a, const void *b)
{
    const struct status_zone_value *one = a, *other = b;
    uint64_t one_us = latency_quantile_us(&one->counts.latency, 990);
    uint64_t other_us = latency_quantile_us(&other->counts.latency, 990);

    if (one->kind != other->kind)
        return one->kind < other->kind ? -1 : 1;
    if (one_us != other_us)
        return one_us > other_us ? -1 : 1;
    return strcmp(one->name, other->name);
}

static void print_ms(struct status_page_text *page, uint64_t us)
{
    status_print(page, "<td>%llu.%llu", (unsigned long long)us / 1000, (unsigned long long)us % 1000 / 100);
}

static void html_zone(struct status_page_text *page, const struct status_zone_value *value)
{
    const struct status_zone_counts *counts = &value->counts;
    uint64_t count = latency_count(&counts->latency);

    status_print(page, "<tr><td>");
    status_print_html(page, value->name);
    status_print(page, "<td>");
    status_print_number(page, count);
    status_print(page, "<td>");
    status_print_number(page, counts->classes[5]);
    print_ms(page, count ? counts->latency.sum_us / count : 0);
    print_ms(page, latency_quantile_us(&counts->latency, 990));
    status_print(page, "\n");
}

void status_zones_html(struct status_page_text *page, const struct status_values *values)
{
    qsort(values->zones, values->zone_count, sizeof(*values->zones), compare_zones);
    for (unsigned kind = 0; kind < STATUS_ZONE_KINDS; kind++) {
        const struct status_zone_value *value;

        if (!has_zones(values, kind))
            continue;
        status_print(page,
                     "<h2>%s</h2>\n<p class=\"note\">Mean and 99th percentile in milliseconds.</p>\n<table>\n"
                     "<tr><th>Zone<th>Requests<th>5xx<th>Mean<th>p99\n",
                     kinds[kind].title);
        for (size_t at = 0; (value = next_zone(values, kind, &at)) != NULL;)
            html_zone(page, value);
        status_print(page, "</table>\n");
    }
}
