/*
 * Formats the status page as Prometheus text (exposition format 0.0.4), as JSON, and as nginx's stub_status.
 */
#include "status.h"

#include <errno.h>
#include <stdio.h>

const uint64_t *status_values_of(const struct metric *metric, const struct status_values *values)
{
    return (const uint64_t *)(const void *)((const char *)values + metric->offset);
}

static void print_metric_value(struct status_page_text *page, const struct metric *metric, uint64_t value)
{
    char memory[32];

    if (metric->millionths)
        status_print(page, "%s", status_format_millionths(value, memory));
    else
        status_print(page, "%llu", (unsigned long long)value);
}

static void prometheus_sample(struct status_page_text *page, const struct metric *metric, unsigned index,
                              uint64_t value)
{
    char memory[8];

    status_print(page, "sluice_%s", metric->name);
    if (metric->label) {
        status_print(page, "{%s=\"", metric->label);
        status_print_label(page, metric->label_of(index, memory));
        status_print(page, "\"}");
    }
    status_print(page, " ");
    print_metric_value(page, metric, value);
    status_print(page, "\n");
}

int status_prometheus(const struct status_values *values, struct buffer *out)
{
    static const char *const types[] = {[METRIC_COUNTER] = "counter",
                                        [METRIC_GAUGE] = "gauge",
                                        [METRIC_FACT] = "gauge",
                                        [METRIC_HISTOGRAM] = "histogram"};
    struct status_page_text page = {.out = out};

    for (const struct metric *metric = status_metrics; metric->name; metric++) {
        const uint64_t *numbers = status_values_of(metric, values);

        status_print_head(&page, metric->name, types[metric->type], metric->help);
        if (metric->type == METRIC_HISTOGRAM) {
            status_histogram_prometheus(&page, metric->name, STR(""), &values->total.sum.latency);
            continue;
        }
        for (unsigned i = metric->first; i < metric->end; i++) {
            if (numbers[i] > 0 || !metric->sparse)
                prometheus_sample(&page, metric, i, numbers[i]);
        }
    }
    status_zones_prometheus(&page, values);
    status_upstreams_prometheus(&page, values->upstreams);
    status_caches_prometheus(&page, values);
    status_limits_prometheus(&page, values);
    status_acme_prometheus(&page, values->acme);
    return page.error;
}

static void json_values(struct status_page_text *page, const struct metric *metric, const uint64_t *numbers)
{
    const char *comma = "";

    status_print(page, "{");
    for (unsigned i = metric->first; i < metric->end; i++) {
        char memory[8];

        if (numbers[i] == 0 && metric->sparse)
            continue;
        status_print(page, "%s\"", comma);
        status_print_json(page, metric->label_of(i, memory));
        status_print(page, "\": ");
        print_metric_value(page, metric, numbers[i]);
        comma = ", ";
    }
    status_print(page, "}");
}

static void json_property(struct status_page_text *page, const struct metric *metric)
{
    char memory[8];

    status_print(page, "{\"%s\": \"", metric->label);
    status_print_json(page, metric->label_of(0, memory));
    status_print(page, "\"}");
}

int status_json(const struct status_values *values, struct buffer *out)
{
    struct status_page_text page = {.out = out};

    for (const struct metric *metric = status_metrics; metric->name; metric++) {
        const uint64_t *numbers = status_values_of(metric, values);

        status_print(&page, "%s\n  \"%s\": ", metric == status_metrics ? "{" : ",", metric->name);
        if (metric->type == METRIC_HISTOGRAM)
            status_histogram_json(&page, &values->total.sum.latency);
        else if (metric->type == METRIC_FACT)
            json_property(&page, metric);
        else if (metric->label)
            json_values(&page, metric, numbers);
        else
            print_metric_value(&page, metric, numbers[0]);
    }
    status_zones_json(&page, values);
    status_upstreams_json(&page, values->upstreams);
    status_caches_json(&page, values);
    status_limits_json(&page, values);
    status_acme_json(&page, values->acme);
    status_print(&page, "\n}\n");
    return page.error;
}

int status_nginx(const struct status_values *values, struct buffer *out)
{
    const struct counters *sum = &values->total.sum;
    const uint64_t *open = sum->connections;
    struct status_page_text page = {.out = out};

    status_print(&page, "Active connections: %llu \nserver accepts handled requests\n",
        (unsigned long long)(open[CONNECTION_HANDSHAKE] + open[CONNECTION_READING] +
                             open[CONNECTION_WRITING] + open[CONNECTION_WAITING]));
    status_print(&page, " %llu %llu %llu \n", (unsigned long long)sum->accepted, (unsigned long long)sum->accepted,
        (unsigned long long)sum->requests);
    status_print(&page, "Reading: %llu Writing: %llu Waiting: %llu \n",
        (unsigned long long)(open[CONNECTION_HANDSHAKE] + open[CONNECTION_READING]),
        (unsigned long long)open[CONNECTION_WRITING], (unsigned long long)open[CONNECTION_WAITING]);
    return page.error;
}
