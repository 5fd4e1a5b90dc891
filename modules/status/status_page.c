/*
 * The status page written down: as Prometheus text (exposition format 0.0.4), as JSON, and as nginx's
 * stub_status.
 */
#include "status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* Errors are kept, so that a page is written straight through. */
struct page {
    struct buffer *out;
    int error;
};

static void say(struct page *page, const char *format, ...) PRINTF_LIKE(2, 3);

static void say(struct page *page, const char *format, ...)
{
    char text[512];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (page->error == 0)
        page->error = length < 0 || (size_t)length >= sizeof(text)
                          ? -ENOBUFS
                          : buffer_append(page->out, str_of(text, (size_t)length));
}

static const uint64_t *values_of(const struct metric *metric, const struct status_values *values)
{
    return (const uint64_t *)(const void *)((const char *)values + metric->offset);
}

/* A backslash, a quote and a newline are all that either format asks to be escaped of printable text. */
static void say_label(struct page *page, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            say(page, "\\n");
        else
            say(page, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
}

/* Millionths as a decimal fraction, with no more digits than it needs. */
static const char *fraction(uint64_t value, char memory[32])
{
    int length = snprintf(memory, 32, "%llu.%06llu", (unsigned long long)(value / 1000000),
                          (unsigned long long)(value % 1000000));

    while (memory[length - 1] == '0')
        length--;
    if (memory[length - 1] == '.')
        length--;
    memory[length] = '\0';
    return memory;
}

static void say_number(struct page *page, const struct metric *metric, uint64_t value)
{
    char memory[32];

    if (metric->millionths)
        say(page, "%s", fraction(value, memory));
    else
        say(page, "%llu", (unsigned long long)value);
}

/* Each bucket with its bound and how many lie beneath. Returns how many there are in all. */
static uint64_t say_buckets(struct page *page, const struct metric *metric, const uint64_t *latency,
                            bool json)
{
    uint64_t below = 0;

    for (unsigned i = 0; i <= COUNTERS_LATENCIES; i++) {
        char memory[32] = "+Inf";

        if (i < COUNTERS_LATENCIES)
            fraction(counters_latency_bounds_us[i], memory);
        below += latency[i];
        if (json)
            say(page, "%s\"%s\": %llu", i ? ", " : "", memory, (unsigned long long)below);
        else
            say(page, "sluice_%s_bucket{le=\"%s\"} %llu\n", metric->name, memory, (unsigned long long)below);
    }
    return below;
}

static void prometheus_histogram(struct page *page, const struct metric *metric,
                                 const struct status_values *values)
{
    uint64_t count = say_buckets(page, metric, values->total.sum.latency, false);
    char memory[32];

    say(page, "sluice_%s_sum %s\n", metric->name, fraction(values->total.sum.latency_us, memory));
    say(page, "sluice_%s_count %llu\n", metric->name, (unsigned long long)count);
}

static void prometheus_sample(struct page *page, const struct metric *metric, unsigned index, uint64_t value)
{
    char memory[8];

    say(page, "sluice_%s", metric->name);
    if (metric->label) {
        say(page, "{%s=\"", metric->label);
        say_label(page, metric->label_of(index, memory));
        say(page, "\"}");
    }
    say(page, " ");
    say_number(page, metric, value);
    say(page, "\n");
}

int status_prometheus(const struct status_values *values, struct buffer *out)
{
    static const char *const types[] = {[METRIC_COUNTER] = "counter",
                                        [METRIC_GAUGE] = "gauge",
                                        [METRIC_FACT] = "gauge",
                                        [METRIC_HISTOGRAM] = "histogram"};
    struct page page = {.out = out};

    for (const struct metric *metric = status_metrics; metric->name; metric++) {
        const uint64_t *numbers = values_of(metric, values);

        say(&page, "# HELP sluice_%s %s\n", metric->name, metric->help);
        say(&page, "# TYPE sluice_%s %s\n", metric->name, types[metric->type]);
        if (metric->type == METRIC_HISTOGRAM) {
            prometheus_histogram(&page, metric, values);
            continue;
        }
        for (unsigned i = metric->first; i < metric->end; i++) {
            if (numbers[i] > 0 || !metric->sparse)
                prometheus_sample(&page, metric, i, numbers[i]);
        }
    }
    return page.error;
}

static void json_histogram(struct page *page, const struct metric *metric, const struct status_values *values)
{
    char memory[32];
    uint64_t count;

    say(page, "{\"buckets\": {");
    count = say_buckets(page, metric, values->total.sum.latency, true);
    say(page, "}, \"sum\": %s, ", fraction(values->total.sum.latency_us, memory));
    say(page, "\"count\": %llu}", (unsigned long long)count);
}

static void json_values(struct page *page, const struct metric *metric, const uint64_t *numbers)
{
    const char *comma = "";

    say(page, "{");
    for (unsigned i = metric->first; i < metric->end; i++) {
        char memory[8];

        if (numbers[i] == 0 && metric->sparse)
            continue;
        say(page, "%s\"", comma);
        say_label(page, metric->label_of(i, memory));
        say(page, "\": ");
        say_number(page, metric, numbers[i]);
        comma = ", ";
    }
    say(page, "}");
}

static void json_fact(struct page *page, const struct metric *metric)
{
    char memory[8];

    say(page, "{\"%s\": \"", metric->label);
    say_label(page, metric->label_of(0, memory));
    say(page, "\"}");
}

int status_json(const struct status_values *values, struct buffer *out)
{
    struct page page = {.out = out};

    for (const struct metric *metric = status_metrics; metric->name; metric++) {
        const uint64_t *numbers = values_of(metric, values);

        say(&page, "%s\n  \"%s\": ", metric == status_metrics ? "{" : ",", metric->name);
        if (metric->type == METRIC_HISTOGRAM)
            json_histogram(&page, metric, values);
        else if (metric->type == METRIC_FACT)
            json_fact(&page, metric);
        else if (metric->label)
            json_values(&page, metric, numbers);
        else
            say_number(&page, metric, numbers[0]);
    }
    say(&page, "\n}\n");
    return page.error;
}

int status_nginx(const struct status_values *values, struct buffer *out)
{
    const struct counters *sum = &values->total.sum;
    const uint64_t *open = sum->connections;
    struct page page = {.out = out};

    say(&page, "Active connections: %llu \nserver accepts handled requests\n",
        (unsigned long long)(open[CONNECTION_HANDSHAKE] + open[CONNECTION_READING] +
                             open[CONNECTION_WRITING] + open[CONNECTION_WAITING]));
    say(&page, " %llu %llu %llu \n", (unsigned long long)sum->accepted, (unsigned long long)sum->accepted,
        (unsigned long long)sum->requests);
    say(&page, "Reading: %llu Writing: %llu Waiting: %llu \n",
        (unsigned long long)(open[CONNECTION_HANDSHAKE] + open[CONNECTION_READING]),
        (unsigned long long)open[CONNECTION_WRITING], (unsigned long long)open[CONNECTION_WAITING]);
    return page.error;
}
