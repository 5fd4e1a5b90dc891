/*
 * The zones of `status_zone` on the status page: requests of servers and of locations, and connections of stream's
 * servers, with their times.
 */
#include "status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The metrics of a zone; the first ones are counters with one value. */
enum zone_metric {
    ZONE_COUNT,
    ZONE_SENT,
    ZONE_RECEIVED,
    ZONE_NUMBERS,
    ZONE_CLASSES = ZONE_NUMBERS,
    ZONE_TIMES,
    ZONE_ACTIVE,                    /* of connections only: a gauge */
    ZONE_METRICS,
};

struct zone_metric_text {
    const char *name;
    const char *help;
};

static const struct zone_metric_text of_requests[ZONE_METRICS] = {
    [ZONE_COUNT] = {"requests_total", "Completed requests."},
    [ZONE_SENT] = {"sent_bytes_total", "Bytes of responses, as in $bytes_sent."},
    [ZONE_RECEIVED] = {"received_bytes_total", "Bytes of requests, as in $request_length."},
    [ZONE_CLASSES] = {"responses_total", "Completed requests by class of status."},
    [ZONE_TIMES] = {"request_duration_seconds", "Time from the first byte of a request to the end of its response."},
};

static const struct zone_metric_text of_connections[ZONE_METRICS] = {
    [ZONE_COUNT] = {"connections_total", "Ended connections."},
    [ZONE_SENT] = {"sent_bytes_total", "Bytes sent to clients, as in $bytes_sent."},
    [ZONE_RECEIVED] = {"received_bytes_total", "Bytes received from clients, as in $bytes_received."},
    [ZONE_CLASSES] = {"sessions_total", "Ended connections by class of status."},
    [ZONE_TIMES] = {"session_duration_seconds", "Time from the acceptance of a connection to its end."},
    [ZONE_ACTIVE] = {"active", "Open connections."},
};

static const struct {
    const char *metric;             /* first part of the names of its metrics */
    const char *list;               /* member of the JSON object */
    const char *title;
    const char *count;              /* heading of the table in HTML */
    const struct zone_metric_text *metrics;
} kinds[STATUS_ZONE_KINDS] = {
    [STATUS_ZONE_SERVER] = {"server_zone", "server_zones", "Servers", "Requests", of_requests},
    [STATUS_ZONE_LOCATION] = {"location_zone", "location_zones", "Locations", "Requests", of_requests},
    [STATUS_ZONE_STREAM] = {"stream_zone", "stream_zones", "Servers of stream", "Connections", of_connections},
};

/* The value of a metric that has one. */
static uint64_t number_of(const struct status_zone_counts *counts, enum zone_metric metric)
{
    const uint64_t numbers[ZONE_METRICS] = {[ZONE_COUNT] = latency_count(&counts->latency),
                                            [ZONE_SENT] = counts->sent,
                                            [ZONE_RECEIVED] = counts->received,
                                            [ZONE_ACTIVE] = counts->active};

    return numbers[metric];
}

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

static void print_head(struct status_page_text *page, enum status_zone_kind kind, enum zone_metric metric,
                       const char *type)
{
    const struct zone_metric_text *text = &kinds[kind].metrics[metric];

    status_print(page, "# HELP sluice_%s_%s %s\n# TYPE sluice_%s_%s %s\n", kinds[kind].metric, text->name, text->help,
                 kinds[kind].metric, text->name, type);
}

static void prometheus_number(struct status_page_text *page, const struct status_values *values,
                              enum status_zone_kind kind, enum zone_metric metric, const char *type)
{
    const struct status_zone_value *value;

    if (!kinds[kind].metrics[metric].name)
        return;
    print_head(page, kind, metric, type);
    for (size_t at = 0; (value = next_zone(values, kind, &at)) != NULL;) {
        status_print(page, "sluice_%s_%s{", kinds[kind].metric, kinds[kind].metrics[metric].name);
        status_print_text(page, value->label);
        status_print(page, "} %llu\n", (unsigned long long)number_of(&value->counts, metric));
    }
}

static void prometheus_numbers(struct status_page_text *page, const struct status_values *values,
                               enum status_zone_kind kind)
{
    for (enum zone_metric metric = 0; metric < ZONE_NUMBERS; metric++)
        prometheus_number(page, values, kind, metric, "counter");
    prometheus_number(page, values, kind, ZONE_ACTIVE, "gauge");
}

static void prometheus_classes(struct status_page_text *page, const struct status_values *values,
                               enum status_zone_kind kind)
{
    const struct status_zone_value *value;

    print_head(page, kind, ZONE_CLASSES, "counter");
    for (size_t at = 0; (value = next_zone(values, kind, &at)) != NULL;) {
        for (unsigned i = 0; i < STATUS_ZONE_CLASSES; i++) {
            status_print(page, "sluice_%s_%s{", kinds[kind].metric, kinds[kind].metrics[ZONE_CLASSES].name);
            status_print_text(page, value->label);
            status_print(page, ",class=\"%s\"} %llu\n", status_class_names[i],
                         (unsigned long long)value->counts.classes[i]);
        }
    }
}

static void prometheus_times(struct status_page_text *page, const struct status_values *values,
                             enum status_zone_kind kind)
{
    const struct status_zone_value *value;
    char name[64];

    snprintf(name, sizeof(name), "%s_%s", kinds[kind].metric, kinds[kind].metrics[ZONE_TIMES].name);
    print_head(page, kind, ZONE_TIMES, "histogram");
    for (size_t at = 0; (value = next_zone(values, kind, &at)) != NULL;)
        status_histogram_prometheus(page, name, value->label, &value->counts.latency);
}

void status_zones_prometheus(struct status_page_text *page, const struct status_values *values)
{
    for (unsigned kind = 0; kind < STATUS_ZONE_KINDS; kind++) {
        if (!has_zones(values, kind))
            continue;
        prometheus_numbers(page, values, kind);
        prometheus_classes(page, values, kind);
        prometheus_times(page, values, kind);
    }
}

static void json_zone(struct status_page_text *page, const struct status_zone_value *value)
{
    const struct zone_metric_text *metrics = kinds[value->kind].metrics;

    status_print(page, "{\"zone\": \"");
    status_print_json(page, value->name);
    status_print(page, "\"");
    for (enum zone_metric i = 0; i < ZONE_NUMBERS; i++)
        status_print(page, ", \"%s\": %llu", metrics[i].name, (unsigned long long)number_of(&value->counts, i));
    if (metrics[ZONE_ACTIVE].name)
        status_print(page, ", \"%s\": %llu", metrics[ZONE_ACTIVE].name, (unsigned long long)value->counts.active);
    status_print(page, ", \"%s\": {", metrics[ZONE_CLASSES].name);
    for (unsigned i = 0; i < STATUS_ZONE_CLASSES; i++)
        status_print(page, "%s\"%s\": %llu", i ? ", " : "", status_class_names[i],
                     (unsigned long long)value->counts.classes[i]);
    status_print(page, "}, \"%s\": ", metrics[ZONE_TIMES].name);
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
    if (kinds[value->kind].metrics[ZONE_ACTIVE].name) {
        status_print_number(page, counts->active);
        status_print(page, "<td>");
    }
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
                     "<tr><th>Zone<th>%s%s<th>5xx<th>Mean<th>p99\n",
                     kinds[kind].title, kinds[kind].count, kinds[kind].metrics[ZONE_ACTIVE].name ? "<th>Open" : "");
        for (size_t at = 0; (value = next_zone(values, kind, &at)) != NULL;)
            html_zone(page, value);
        status_print(page, "</table>\n");
    }
}
