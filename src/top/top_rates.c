/*
 * Computes the rates. Floating-point sums cannot overflow, whatever the counters are.
 */
#include "top/top_rates.h"

#include "base/saturate.h"

#include <errno.h>

const char *const top_quantile_names[TOP_QUANTILES] = {"p50", "p90", "p99"};
static const double quantile_shares[TOP_QUANTILES] = {0.5, 0.9, 0.99};

/* Two samples being compared. */
struct pair {
    const struct top_sample *before, *now;
    double seconds;
    bool restarted;
};

static uint64_t count_since(const struct pair *pair, uint64_t before, uint64_t now)
{
    return pair->restarted || now < before ? now : now - before;
}

static double rate_of(const struct pair *pair, uint64_t before, uint64_t now)
{
    return (double)count_since(pair, before, now) / pair->seconds;
}

static void rates_of(const struct pair *pair, const uint64_t *before, const uint64_t *now, unsigned count, double *out)
{
    for (unsigned i = 0; i < count; i++)
        out[i] = rate_of(pair, before[i], now[i]);
}

static struct top_path path_before(const struct top_sample *sample, struct str name)
{
    for (unsigned i = 0; i < sample->path_count; i++) {
        if (str_equal(sample->paths[i].name, name))
            return sample->paths[i];
    }
    return (struct top_path){.name = name};
}

static void compare_paths(const struct pair *pair, struct top_rates *rates)
{
    rates->path_count = pair->now->path_count;
    for (unsigned i = 0; i < rates->path_count; i++) {
        const struct top_path *now = &pair->now->paths[i];
        struct top_path before = path_before(pair->before, now->name);

        rates->paths[i].name = now->name;
        rates->paths[i].bytes = rate_of(pair, before.bytes, now->bytes);
        rates->paths[i].transfers = rate_of(pair, before.transfers, now->transfers);
        rates->bytes += rates->paths[i].bytes;
    }
    for (unsigned i = 0; i < rates->path_count && rates->bytes > 0; i++)
        rates->paths[i].share = rates->paths[i].bytes / rates->bytes;
}

static uint64_t count_within(const struct top_histogram *histogram, uint64_t bound_us)
{
    for (unsigned i = 0; i < histogram->count; i++) {
        if (histogram->buckets[i].bound_us == bound_us)
            return histogram->buckets[i].count;
    }
    return 0;
}

/* A histogram in both samples. */
struct histogram_pair {
    const struct pair *pair;
    const struct top_histogram *before, *now;
};

/* The requests of the interval that took at most the bound of bucket `i`. */
static uint64_t count_between(const struct histogram_pair *both, unsigned i)
{
    const struct top_bucket *bucket = &both->now->buckets[i];

    return count_since(both->pair, count_within(both->before, bucket->bound_us), bucket->count);
}

/* Interpolates in the bucket that holds the quantile. `total` is not 0. */
static struct top_quantile quantile_of(const struct histogram_pair *both, double share, uint64_t total)
{
    const struct top_bucket *buckets = both->now->buckets;
    double rank = share * (double)total;
    double below = 0, start = 0;

    for (unsigned i = 0; i < both->now->count && buckets[i].bound_us < UINT64_MAX; i++) {
        double within = (double)count_between(both, i);
        double end = (double)buckets[i].bound_us / 1e6;

        if (within >= rank && within > below)
            return (struct top_quantile){.seconds = start + (end - start) * (rank - below) / (within - below)};
        below = within;
        start = end;
    }
    return (struct top_quantile){.seconds = start, .beyond = true};
}

/* Returns false if no request ended. */
static bool compare_latency(const struct pair *pair, const struct top_histogram *before,
                            const struct top_histogram *now, struct top_quantile out[TOP_QUANTILES])
{
    const struct histogram_pair both = {pair, before, now};
    uint64_t total = now->count > 0 ? count_between(&both, now->count - 1) : 0;

    for (unsigned i = 0; i < TOP_QUANTILES && total > 0; i++)
        out[i] = quantile_of(&both, quantile_shares[i], total);
    return total > 0;
}

static bool is_same(const struct top_upstream *a, const struct top_upstream *b)
{
    return str_equal(a->group, b->group) && str_equal(a->server, b->server);
}

/* The server in the earlier sample; NULL: it is new. The same position is tried first, as names may repeat. */
static const struct top_upstream *upstream_before(const struct top_sample *before, const struct top_upstream *now,
                                                  unsigned at)
{
    if (at < before->upstream_count && is_same(&before->upstreams[at], now))
        return &before->upstreams[at];
    for (unsigned i = 0; i < before->upstream_count; i++) {
        if (is_same(&before->upstreams[i], now))
            return &before->upstreams[i];
    }
    return NULL;
}

static int compare_upstreams(const struct pair *pair, struct top_sample *now, struct top_rates *rates)
{
    static const struct top_upstream none;

    rates->upstreams = arena_zalloc(&now->arena, now->upstream_count, sizeof(*rates->upstreams));
    if (!rates->upstreams && now->upstream_count > 0)
        return -ENOMEM;
    rates->upstream_count = now->upstream_count;
    for (unsigned i = 0; i < now->upstream_count; i++) {
        const struct top_upstream *upstream = &now->upstreams[i];
        const struct top_upstream *earlier = upstream_before(pair->before, upstream, i);

        earlier = earlier ? earlier : &none;
        rates->upstreams[i] = (struct top_upstream_rate){
            .upstream = upstream,
            .requests = rate_of(pair, earlier->requests, upstream->requests),
            .failures = rate_of(pair, earlier->failures, upstream->failures),
        };
    }
    return 0;
}

/* The zone in the earlier sample; NULL: it is new. Most zones are at the same position. */
static const struct top_zone *zone_before(const struct top_zones *before, struct str name, unsigned at)
{
    if (at < before->count && str_equal(before->items[at].name, name))
        return &before->items[at];
    for (unsigned i = 0; i < before->count; i++) {
        if (str_equal(before->items[i].name, name))
            return &before->items[i];
    }
    return NULL;
}

static int compare_zones(const struct pair *pair, enum top_zone_kind kind, struct top_sample *now,
                         struct top_rates *rates)
{
    static const struct top_zone none;
    const struct top_zones *zones = &now->zones[kind];
    struct top_zone_rate *items = arena_zalloc(&now->arena, zones->count, sizeof(*items));

    if (!items && zones->count > 0)
        return -ENOMEM;
    for (unsigned i = 0; i < zones->count; i++) {
        const struct top_zone *zone = &zones->items[i];
        const struct top_zone *earlier = zone_before(&pair->before->zones[kind], zone->name, i);

        earlier = earlier ? earlier : &none;
        items[i].zone = zone;
        items[i].requests = rate_of(pair, earlier->requests, zone->requests);
        items[i].failures = rate_of(pair, earlier->responses[5], zone->responses[5]);
        items[i].active = kind == TOP_STREAMS ? (double)zone->active
                                              : rate_of(pair, earlier->latency.sum_us, zone->latency.sum_us) / 1e6;
        items[i].has_latency = compare_latency(pair, &earlier->latency, &zone->latency, items[i].quantiles);
    }
    rates->zones[kind] = (struct top_zone_rates){items, zones->count};
    return 0;
}

static struct top_cache cache_before(const struct top_sample *before, struct str name)
{
    for (unsigned i = 0; i < before->cache_count; i++) {
        if (str_equal(before->caches[i].name, name))
            return before->caches[i];
    }
    return (struct top_cache){.name = name};
}

static int compare_caches(const struct pair *pair, struct top_sample *now, struct top_rates *rates)
{
    rates->caches = arena_zalloc(&now->arena, now->cache_count, sizeof(*rates->caches));
    if (!rates->caches && now->cache_count > 0)
        return -ENOMEM;
    rates->cache_count = now->cache_count;
    for (unsigned i = 0; i < now->cache_count; i++) {
        const struct top_cache *cache = &now->caches[i];
        struct top_cache earlier = cache_before(pair->before, cache->name);
        double responses = rate_of(pair, earlier.responses, cache->responses);
        double hits = rate_of(pair, earlier.hits, cache->hits);

        /* Counters of the page may be invalid: hits are limited to responses. */
        rates->caches[i] = (struct top_cache_rate){
            .cache = cache, .responses = responses, .hits = hits < responses ? hits : responses};
    }
    return 0;
}

static int compare_lists(const struct pair *pair, struct top_sample *now, struct top_rates *rates)
{
    int error = compare_upstreams(pair, now, rates);

    for (enum top_zone_kind kind = 0; kind < TOP_ZONE_KINDS && error == 0; kind++)
        error = compare_zones(pair, kind, now, rates);
    return error == 0 ? compare_caches(pair, now, rates) : error;
}

int top_rates_compute(const struct top_sample *before, struct top_sample *now, struct top_rates *out_rates)
{
    uint64_t us = u64_sub_sat(now->read_us, before->read_us);
    struct pair pair = {before, now, us > 0 ? (double)us / 1e6 : 1e-6, before->started_s != now->started_s};
    struct top_rates rates = {.seconds = pair.seconds, .restarted = pair.restarted};
    int error = compare_lists(&pair, now, &rates);

    if (error < 0)
        return error;
    rates.accepted = rate_of(&pair, before->accepted, now->accepted);
    rates.requests = rate_of(&pair, before->requests, now->requests);
    rates_of(&pair, before->responses, now->responses, TOP_CLASSES, rates.responses);
    rates_of(&pair, before->handshakes, now->handshakes, TOP_HANDSHAKES, rates.handshakes);
    compare_paths(&pair, &rates);
    rates.has_latency = compare_latency(&pair, &before->latency, &now->latency, rates.quantiles);
    *out_rates = rates;
    return 0;
}
