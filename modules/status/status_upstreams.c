/*
 * Upstream servers on the status page, with the values shared by all workers.
 */
#include "status.h"

#include "base/limits.h"
#include "upstream/upstream_mode.h"

#include <stddef.h>

struct row {
    const char *name;
    const char *title;              /* in HTML */
    const char *type;
    const char *help;
    size_t offset;                  /* offset of the value in struct upstream_shared */
    bool us;                        /* microseconds, printed as seconds */
};

#define AT(field) offsetof(struct upstream_shared, field)

static const struct row rows[] = {
    {"upstream_requests_total", "Requests", "counter", "Selections of the server for a request.", AT(requests), false},
    {"upstream_failures_total", "Failures", "counter", "Failures of the server.", AT(failures), false},
    {"upstream_active", "Connections in use", "gauge", "Connections to the server in use, of all workers.", AT(active),
     false},
    {"upstream_header_seconds", "Time to the head of a response, in seconds", "gauge",
     "Recent response time of the server, to the head.", AT(header_us), true},
    {"upstream_answer_seconds", "Time to the end of a response, in seconds", "gauge",
     "Recent response time of the server, to the end.", AT(total_us), true},
};

static const struct upstream_shared *next_peer(struct upstream_zone *zone, int *index)
{
    while (zone && *index < LIMIT_UPSTREAM_PEERS) {
        const struct upstream_shared *peer = upstream_zone_at(zone, (*index)++);

        if (shared_get(&peer->holders) > 0 && !upstream_zone_is_removed(zone, peer))
            return peer;
    }
    return NULL;
}

static void print_metric_value(struct status_page_text *page, const struct upstream_shared *peer, const struct row *row)
{
    unsigned long long number = shared_get((const uint64_t *)(const void *)((const char *)peer + row->offset));

    if (row->us)
        status_print(page, "%llu.%06llu", number / 1000000, number % 1000000);
    else
        status_print(page, "%llu", number);
}

static void print_labels(struct status_page_text *page, const struct upstream_shared *peer)
{
    struct upstream_names names = upstream_read_names(peer);

    status_print(page, "upstream=\"");
    status_print_label(page, names.group);
    status_print(page, "\",server=\"");
    status_print_label(page, names.server);
    status_print(page, "\"");
}

/* Other workers change the histogram meanwhile; each number is read whole. */
static struct latency latency_of(const struct upstream_shared *peer)
{
    struct latency latency = {.sum_us = shared_get(&peer->latency.sum_us)};

    for (unsigned i = 0; i <= LATENCY_BOUNDS; i++)
        latency.counts[i] = shared_get(&peer->latency.counts[i]);
    return latency;
}

static void print_times(struct status_page_text *page, struct upstream_zone *zone)
{
    const struct upstream_shared *peer;

    status_print_head(page, "upstream_response_duration_seconds", "histogram",
                      "Time from the selection of the server to the end of its response.");
    for (int index = 0; (peer = next_peer(zone, &index)) != NULL;) {
        struct latency latency = latency_of(peer);
        struct buffer labels = {0};
        struct status_page_text text = {.out = &labels};

        print_labels(&text, peer);
        if (page->error == 0)
            page->error = text.error;
        status_histogram_prometheus(page, "upstream_response_duration_seconds", buffer_str(&labels), &latency);
        buffer_finish(&labels);
    }
}

static bool has_peers(struct upstream_zone *zone)
{
    int index = 0;

    return next_peer(zone, &index) != NULL;
}

void status_upstreams_prometheus(struct status_page_text *page, struct upstream_zone *zone)
{
    const struct upstream_shared *peer;

    if (!has_peers(zone))
        return;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        status_print_head(page, rows[i].name, rows[i].type, rows[i].help);
        for (int index = 0; (peer = next_peer(zone, &index)) != NULL;) {
            status_print(page, "sluice_%s{", rows[i].name);
            print_labels(page, peer);
            status_print(page, "} ");
            print_metric_value(page, peer, &rows[i]);
            status_print(page, "\n");
        }
    }
    print_times(page, zone);
    status_print_head(page, "upstream_state", "gauge",
                      "State of the server: up, unavailable after failures (fail_timeout), or unhealthy by health "
                      "checks.");
    for (int index = 0; (peer = next_peer(zone, &index)) != NULL;) {
        status_print(page, "sluice_upstream_state{");
        print_labels(page, peer);
        status_print(page, ",state=\"%s\"} 1\n", upstream_state_name(peer));
    }
}

void status_upstreams_json(struct status_page_text *page, struct upstream_zone *zone)
{
    const struct upstream_shared *peer;
    const char *comma = "";

    if (!has_peers(zone))
        return;
    status_print(page, ",\n  \"upstreams\": [");
    for (int index = 0; (peer = next_peer(zone, &index)) != NULL; comma = ",") {
        struct upstream_names names = upstream_read_names(peer);
        struct latency latency = latency_of(peer);

        status_print(page, "%s\n    {\"upstream\": \"", comma);
        status_print_json(page, names.group);
        status_print(page, "\", \"server\": \"");
        status_print_json(page, names.server);
        status_print(page, "\", \"state\": \"%s\"", upstream_state_name(peer));
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            status_print(page, ", \"%s\": ", rows[i].name + sizeof("upstream_") - 1);
            print_metric_value(page, peer, &rows[i]);
        }
        status_print(page, ", \"response_duration_seconds\": ");
        status_histogram_json(page, &latency);
        status_print(page, "}");
    }
    status_print(page, "]");
}

void status_upstreams_html(struct status_page_text *page, struct upstream_zone *zone)
{
    const struct upstream_shared *peer;

    if (!has_peers(zone))
        return;
    status_print(page, "<h2>Upstream servers</h2>\n<table>\n");
    for (int index = 0; (peer = next_peer(zone, &index)) != NULL;) {
        struct upstream_names names = upstream_read_names(peer);
        struct latency latency = latency_of(peer);
        unsigned long long p99_us = latency_quantile_us(&latency, 990);

        status_print(page, "<tr><td>");
        status_print_html(page, names.group);
        status_print(page, ": ");
        status_print_html(page, names.server);
        status_print(page, "<td>%s\n", upstream_state_name(peer));
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            status_print(page, "<tr><td>&emsp;%s<td>", rows[i].title);
            print_metric_value(page, peer, &rows[i]);
            status_print(page, "\n");
        }
        status_print(page, "<tr><td>&emsp;99th percentile of that time<td>%llu.%06llu\n", p99_us / 1000000,
                     p99_us % 1000000);
    }
    status_print(page, "</table>\n");
}
