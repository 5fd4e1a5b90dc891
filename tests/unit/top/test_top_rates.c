#include "../runner.h"
#include "samples.h"

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-9)

START_TEST(values_per_second)
{
    struct samples s;

    samples_compare(&s,
                    "{\"start_time_seconds\": 7, \"requests_total\": 100, \"connections_accepted_total\": 10, "
                    "\"responses_total\": {\"2xx\": 90}, \"tls_handshakes_total\": {\"full\": 1, \"failed\": 5}, "
                    "\"sent_bytes_total\": {\"plain\": 1000, \"user\": 0, \"ktls-sendfile\": 500}, "
                    "\"transfers_total\": {\"plain\": 10}}",
                    "{\"start_time_seconds\": 7, \"requests_total\": 150, \"connections_accepted_total\": 30, "
                    "\"responses_total\": {\"2xx\": 130, \"5xx\": 2}, "
                    "\"tls_handshakes_total\": {\"full\": 11, \"failed\": 5}, "
                    "\"sent_bytes_total\": {\"plain\": 2000, \"user\": 0, \"ktls-sendfile\": 3500}, "
                    "\"transfers_total\": {\"plain\": 20}}",
                    2000000);
    NEAR(s.rates.seconds, 2);
    ck_assert(!s.rates.restarted);
    NEAR(s.rates.requests, 25);
    NEAR(s.rates.accepted, 10);
    NEAR(s.rates.responses[2], 20);
    NEAR(s.rates.responses[5], 1);
    NEAR(s.rates.handshakes[TOP_FULL], 5);
    NEAR(s.rates.handshakes[TOP_FAILED], 0);
    NEAR(s.rates.bytes, 2000);
    ck_assert_uint_eq(s.rates.path_count, 3);
    NEAR(s.rates.paths[0].bytes, 500);
    NEAR(s.rates.paths[0].share, 0.25);
    NEAR(s.rates.paths[0].transfers, 5);
    NEAR(s.rates.paths[1].share, 0);
    NEAR(s.rates.paths[2].share, 0.75);
    ck_assert(!s.rates.has_latency);
    samples_finish(&s);
}
END_TEST

/* After a restart, all counters begin at 0, also those that are already larger than before. */
START_TEST(a_restart_resets_the_counters)
{
    struct samples s;

    samples_compare(&s, "{\"start_time_seconds\": 7, \"requests_total\": 100, \"sent_bytes_total\": {\"plain\": 50}}",
                    "{\"start_time_seconds\": 9, \"requests_total\": 300, \"sent_bytes_total\": {\"plain\": 10}}",
                    1000000);
    ck_assert(s.rates.restarted);
    NEAR(s.rates.requests, 300);
    NEAR(s.rates.bytes, 10);
    NEAR(s.rates.paths[0].share, 1);
    samples_finish(&s);
}
END_TEST

START_TEST(a_counter_that_decreased_has_begun_again)
{
    struct samples s;

    samples_compare(&s, "{\"requests_total\": 100, \"connections_accepted_total\": 5}",
                    "{\"requests_total\": 30, \"connections_accepted_total\": 6}", 1000000);
    ck_assert(!s.rates.restarted);
    NEAR(s.rates.requests, 30);
    NEAR(s.rates.accepted, 1);
    samples_finish(&s);
}
END_TEST

START_TEST(extreme_values)
{
    static const char page[] = "{\"requests_total\": 18446744073709551615, \"sent_bytes_total\": "
                               "{\"a\": 18446744073709551615, \"b\": 18446744073709551615}}";
    struct samples s;

    samples_compare(&s, "{\"requests_total\": 0}", page, 0);
    ck_assert(s.rates.seconds > 0 && s.rates.requests > 1e25 && s.rates.bytes > 3e25);
    NEAR(s.rates.paths[0].share, 0.5);
    samples_finish(&s);
    samples_compare(&s, page, "{\"requests_total\": 0}", (uint64_t)-1000000); /* the times are in the wrong order */
    ck_assert(s.rates.seconds > 0);
    NEAR(s.rates.requests, 0);
    samples_finish(&s);
}
END_TEST

#define HISTOGRAM(a, b, c, d) \
    "{\"requests_total\": 1, \"request_duration_seconds\": {\"buckets\": {\"0.1\": " #a ", \"0.2\": " #b \
    ", \"1\": " #c ", \"+Inf\": " #d "}}}"

static const struct {
    const char *before, *now;
    bool has_latency;
    double p50, p90, p99;
    unsigned beyond; /* bit i: quantile i */
} latencies[] = {
    {HISTOGRAM(5, 5, 5, 5), HISTOGRAM(5, 5, 5, 5), false, 0, 0, 0, 0},
    {HISTOGRAM(5, 5, 5, 5), HISTOGRAM(105, 105, 105, 105), true, 0.05, 0.09, 0.099, 0},
    {HISTOGRAM(0, 0, 0, 0), HISTOGRAM(0, 100, 100, 100), true, 0.15, 0.19, 0.199, 0},
    {HISTOGRAM(0, 0, 0, 0), HISTOGRAM(50, 90, 100, 100), true, 0.1, 0.2, 0.92, 0},
    {HISTOGRAM(0, 0, 0, 0), HISTOGRAM(50, 90, 90, 100), true, 0.1, 0.2, 1, 4},
    {HISTOGRAM(9, 9, 9, 9), HISTOGRAM(0, 0, 0, 1), true, 1, 1, 1, 7}, /* counters began again */
    {"{\"requests_total\": 1}", HISTOGRAM(1, 1, 1, 1), true, 0.05, 0.09, 0.099, 0},
};

START_TEST(quantiles)
{
    for (size_t i = 0; i < sizeof(latencies) / sizeof(latencies[0]); i++) {
        const double expected[TOP_QUANTILES] = {latencies[i].p50, latencies[i].p90, latencies[i].p99};
        struct samples s;

        samples_compare(&s, latencies[i].before, latencies[i].now, 1000000);
        ck_assert_int_eq(s.rates.has_latency, latencies[i].has_latency);
        for (unsigned q = 0; q < TOP_QUANTILES; q++) {
            ck_assert_msg(s.rates.quantiles[q].beyond == (latencies[i].beyond >> q & 1), "%zu %u", i, q);
            ck_assert_double_eq_tol(s.rates.quantiles[q].seconds, expected[q], 1e-9);
        }
        samples_finish(&s);
    }
}
END_TEST

#define SERVER(group, server, requests, failures) \
    "{\"upstream\": \"" group "\", \"server\": \"" server "\", \"requests_total\": " #requests \
    ", \"failures_total\": " #failures "}"
#define UPSTREAMS(...) "{\"requests_total\": 1, \"upstreams\": [" __VA_ARGS__ "]}"

#define ZONE(zone, requests, failures, fast, all, sum) \
    "{\"zone\": \"" zone "\", \"requests_total\": " #requests ", \"responses_total\": {\"5xx\": " #failures \
    "}, \"request_duration_seconds\": {\"buckets\": {\"0.1\": " #fast ", \"+Inf\": " #all "}, \"sum\": " #sum "}}"
#define ZONES(...) "{\"requests_total\": 1, \"location_zones\": [" __VA_ARGS__ "]}"

/* The order changes, one goes, one comes, one begins again at 0. */
START_TEST(locations_are_found_by_name)
{
    struct samples s;

    samples_compare(&s,
                    ZONES(ZONE("a", 10, 1, 10, 10, 1) "," ZONE("gone", 9, 9, 9, 9, 9) ","
                          ZONE("again", 50, 5, 50, 50, 5)),
                    ZONES(ZONE("again", 4, 2, 3, 4, 0.5) "," ZONE("a", 30, 1, 30, 30, 5) "," ZONE("new", 2, 0, 0, 2, 8)
                          ",{\"zone\": \"idle\"}"), 2000000);
    ck_assert_uint_eq(s.rates.zones[TOP_LOCATIONS].count, 4);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[0].requests, 2);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[0].failures, 1);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[0].active, 0.25);
    ck_assert(s.rates.zones[TOP_LOCATIONS].items[0].quantiles[TOP_P99].beyond);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[1].requests, 10);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[1].failures, 0);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[1].active, 2);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[1].quantiles[TOP_P50].seconds, 0.05);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[1].quantiles[TOP_P99].seconds, 0.099);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[2].requests, 1);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[2].active, 4);
    ck_assert(!s.rates.zones[TOP_LOCATIONS].items[3].has_latency);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[3].requests, 0);
    samples_finish(&s);
}
END_TEST

START_TEST(zones_of_servers_are_not_those_of_locations)
{
    static const char before[] = "{\"requests_total\": 1, \"server_zones\": [" ZONE("a", 10, 1, 10, 10, 1)
        "], \"location_zones\": [" ZONE("a", 3, 0, 3, 3, 1) "]}";
    static const char now[] = "{\"requests_total\": 1, \"server_zones\": [" ZONE("a", 30, 2, 30, 30, 2)
        "], \"location_zones\": [" ZONE("a", 4, 0, 4, 4, 1) "]}";
    struct samples s;

    samples_compare(&s, before, now, 1000000);
    ck_assert_uint_eq(s.rates.zones[TOP_SERVERS].count, 1);
    NEAR(s.rates.zones[TOP_SERVERS].items[0].requests, 20);
    NEAR(s.rates.zones[TOP_SERVERS].items[0].failures, 1);
    NEAR(s.rates.zones[TOP_LOCATIONS].items[0].requests, 1);
    samples_finish(&s);
}
END_TEST

#define CACHE(name, miss, hit) \
    "{\"cache\": \"" name "\", \"responses_total\": {\"MISS\": " #miss ", \"HIT\": " #hit "}}"
#define CACHES(...) "{\"requests_total\": 1, \"caches\": [" __VA_ARGS__ "]}"

/* The order changes, one goes, one comes, one begins again at 0. */
START_TEST(caches_are_found_by_name)
{
    struct samples s;

    samples_compare(&s, CACHES(CACHE("a", 10, 20) "," CACHE("gone", 9, 9) "," CACHE("again", 50, 50)),
                    CACHES(CACHE("again", 2, 4) "," CACHE("a", 20, 50) "," CACHE("new", 0, 8) ",{\"cache\": \"idle\"}"),
                    2000000);
    ck_assert_uint_eq(s.rates.cache_count, 4);
    NEAR(s.rates.caches[0].responses, 3);
    NEAR(s.rates.caches[0].hits, 2);
    NEAR(s.rates.caches[1].responses, 20);
    NEAR(s.rates.caches[1].hits, 15);
    NEAR(s.rates.caches[2].responses, 4);
    NEAR(s.rates.caches[2].hits, 4);
    NEAR(s.rates.caches[3].responses, 0);
    samples_finish(&s);
}
END_TEST

/* The order changes, one server goes, one comes; two have the same name. */
START_TEST(upstream_servers_are_found_by_name)
{
    struct samples s;

    samples_compare(&s,
                    UPSTREAMS(SERVER("a", "x", 10, 1) "," SERVER("a", "y", 20, 2) "," SERVER("d", "d", 5, 0) ","
                              SERVER("d", "d", 7, 0)),
                    UPSTREAMS(SERVER("b", "x", 3, 0) "," SERVER("a", "x", 14, 2) "," SERVER("d", "d", 6, 0) ","
                              SERVER("d", "d", 9, 0)),
                    1000000);
    ck_assert_uint_eq(s.rates.upstream_count, 4);
    NEAR(s.rates.upstreams[0].requests, 3);
    NEAR(s.rates.upstreams[1].requests, 4);
    NEAR(s.rates.upstreams[1].failures, 1);
    NEAR(s.rates.upstreams[2].requests, 1);
    NEAR(s.rates.upstreams[3].requests, 2);
    ck_assert(str_equal(s.rates.upstreams[1].upstream->server, STR("x")));
    samples_finish(&s);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {values_per_second, a_restart_resets_the_counters,
                                         a_counter_that_decreased_has_begun_again, extreme_values, quantiles,
                                         upstream_servers_are_found_by_name, locations_are_found_by_name,
                                         zones_of_servers_are_not_those_of_locations, caches_are_found_by_name, NULL};

    return run_tests("top_rates", tests);
}
