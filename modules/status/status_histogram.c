/*
 * Histograms on the status page.
 */
#include "status.h"

#include <stdio.h>

const char *status_format_millionths(uint64_t value, char memory[32])
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

/* The bound of a bucket in seconds. */
static const char *bound_text(unsigned bucket, char memory[32])
{
    return bucket < LATENCY_BOUNDS ? status_format_millionths(latency_bounds_us[bucket], memory) : "+Inf";
}

static void print_sample(struct status_page_text *page, const char *name, const char *suffix, struct str labels)
{
    status_print(page, "sluice_%s%s", name, suffix);
    if (!str_empty(labels)) {
        status_print(page, "{");
        status_print_text(page, labels);
        status_print(page, "}");
    }
}

void status_histogram_prometheus(struct status_page_text *page, const char *name, struct str labels,
                                 const struct latency *latency)
{
    uint64_t below = 0;
    char memory[32];

    for (unsigned i = 0; i <= LATENCY_BOUNDS; i++) {
        below += latency->counts[i];
        status_print(page, "sluice_%s_bucket{", name);
        status_print_text(page, labels);
        status_print(page, "%sle=\"%s\"} %llu\n", str_empty(labels) ? "" : ",", bound_text(i, memory),
                     (unsigned long long)below);
    }
    print_sample(page, name, "_sum", labels);
    status_print(page, " %s\n", status_format_millionths(latency->sum_us, memory));
    print_sample(page, name, "_count", labels);
    status_print(page, " %llu\n", (unsigned long long)below);
}

void status_histogram_json(struct status_page_text *page, const struct latency *latency)
{
    uint64_t below = 0;
    char memory[32];

    status_print(page, "{\"buckets\": {");
    for (unsigned i = 0; i <= LATENCY_BOUNDS; i++) {
        below += latency->counts[i];
        status_print(page, "%s\"%s\": %llu", i ? ", " : "", bound_text(i, memory), (unsigned long long)below);
    }
    status_print(page, "}, \"sum\": %s, \"count\": %llu}", status_format_millionths(latency->sum_us, memory),
                 (unsigned long long)below);
}
