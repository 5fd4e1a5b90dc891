/*
 * Status pages, as `sluice top` reads them: all values are within their limits, and the rates between the page and an
 * empty one, in both directions, are finite and print as JSON.
 */
#include "fuzz.h"

#include "top/top_json.h"

#include <math.h>
#include <string.h>

static void check_rates(const struct top_sample *before, struct top_sample *now)
{
    struct buffer text = {0};
    struct top_rates rates;

    HOLDS(top_rates_compute(before, now, &rates) == 0);
    HOLDS(rates.seconds > 0 && isfinite(rates.requests) && isfinite(rates.bytes) && rates.bytes >= 0);
    for (unsigned i = 0; i < rates.path_count; i++)
        HOLDS(rates.paths[i].share >= 0 && rates.paths[i].share <= 1);
    for (unsigned i = 0; i < TOP_QUANTILES && rates.has_latency; i++)
        HOLDS(isfinite(rates.quantiles[i].seconds) &&
              rates.quantiles[i].seconds >= rates.quantiles[i ? i - 1 : 0].seconds);
    for (unsigned i = 0; i < rates.cache_count; i++)
        HOLDS(rates.caches[i].hits >= 0 && rates.caches[i].hits <= rates.caches[i].responses);
    HOLDS(top_json_print(&rates, now, &text) == 0);
    for (size_t i = 0; i < text.length; i++)
        HOLDS((unsigned char)text.data[i] >= ' ' || text.data[i] == '\n');
    buffer_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct top_sample sample, empty;

    HOLDS(top_sample_parse(STR("{\"requests_total\": 0}"), &empty) == 0);
    if (top_sample_parse(str_of((const char *)bytes, size), &sample) == 0) {
        HOLDS(sample.path_count <= LIMIT_TOP_PATHS && sample.latency.count <= LIMIT_TOP_BUCKETS);
        HOLDS(sample.zones[TOP_LOCATIONS].count <= LIMIT_STATUS_ZONES);
        HOLDS(sample.zones[TOP_SERVERS].count <= LIMIT_STATUS_ZONES && sample.cache_count <= LIMIT_STATUS_ZONES);
        HOLDS(sample.upstream_count <= LIMIT_UPSTREAM_PEERS && sample.version.length <= LIMIT_TOP_NAME);
        sample.read_us = 1000000;
        check_rates(&empty, &sample);
        empty.read_us = 2000000;
        check_rates(&sample, &empty);
    }
    top_sample_finish(&sample);
    top_sample_finish(&empty);
    return 0;
}
