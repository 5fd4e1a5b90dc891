/*
 * Formats the status page as HTML: one row per value, with the help text of the metric.
 */
#include "status.h"

#include "build_options.h"
#include "server/page/page.h"

#include <time.h>

static void print_value(struct status_page_text *page, const struct metric *metric, uint64_t value)
{
    status_print_number(page, metric->millionths ? value / 1000000 : value);
    if (metric->millionths)
        status_print(page, ".%06llu", (unsigned long long)(value % 1000000));
}

/* Prints one value, after the label value or, if `label` is NULL, after the help text. */
static void print_row(struct status_page_text *page, const struct metric *metric, const char *label, uint64_t value)
{
    status_print(page, "<tr><td>");
    if (label) {
        status_print(page, "&emsp;");
        status_print_html(page, label);
    } else {
        status_print_html(page, metric->help);
    }
    status_print(page, "<td>");
    print_value(page, metric, value);
    status_print(page, "\n");
}

static void print_labelled(struct status_page_text *page, const struct metric *metric, const uint64_t *numbers)
{
    status_print(page, "<tr><td>");
    status_print_html(page, metric->help);
    status_print(page, "<td>\n");
    for (unsigned i = metric->first; i < metric->end; i++) {
        char memory[8];

        if (numbers[i] > 0 || !metric->sparse)
            print_row(page, metric, metric->label_of(i, memory), numbers[i]);
    }
}

/* Prints one row for each bound of the histogram: the number of requests between the previous bound and it. */
static void print_durations(struct status_page_text *page, const struct metric *metric, const uint64_t *latency)
{
    status_print(page, "<tr><td>");
    status_print_html(page, metric->help);
    status_print(page, "<td>\n");
    for (unsigned i = 0; i <= LATENCY_BOUNDS; i++) {
        uint64_t bound = latency_bounds_us[i < LATENCY_BOUNDS ? i : LATENCY_BOUNDS - 1];

        status_print(page, "<tr><td>&emsp;%s %llu.%03llu s<td>", i < LATENCY_BOUNDS ? "up to" : "more than",
                     (unsigned long long)bound / 1000000, (unsigned long long)bound % 1000000 / 1000);
        status_print_number(page, latency[i]);
        status_print(page, "\n");
    }
}

static void print_metric(struct status_page_text *page, const struct metric *metric, const struct status_values *values)
{
    const uint64_t *numbers = status_values_of(metric, values);

    if (metric->type == METRIC_HISTOGRAM)
        print_durations(page, metric, numbers);
    else if (metric->type != METRIC_FACT && metric->label)
        print_labelled(page, metric, numbers);
    else if (metric->type != METRIC_FACT)
        print_row(page, metric, NULL, numbers[0]);
}

static void print_summary(struct status_page_text *page, const struct status_values *values)
{
    time_t started = (time_t)values->total.started_s;
    char text[32] = "";
    struct tm when;

    if (gmtime_r(&started, &when))
        (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &when);
    status_print(page, "<h1>sluice %s</h1>\n<p class=\"note\">Started %s UTC, generation %llu of the workers.</p>\n",
                 SLUICE_VERSION, text, (unsigned long long)values->total.generation);
}

int status_html(const struct status_values *values, struct buffer *out)
{
    struct status_page_text page = {.out = out};

    status_print_text(&page, page_start);
    status_print(&page, "<meta http-equiv=\"refresh\" content=\"5\">\n<title>sluice status</title>\n");
    print_summary(&page, values);
    status_zones_html(&page, values);
    status_upstreams_html(&page, values->upstreams);
    status_caches_html(&page, values);
    status_limits_html(&page, values);
    status_acme_html(&page, values->acme, values->now_s);
    status_print(&page, "<h2>Counters</h2>\n<table>\n");
    for (const struct metric *metric = status_metrics; metric->name; metric++)
        print_metric(&page, metric, values);
    status_print(&page, "</table>\n</html>\n");
    return page.error;
}
