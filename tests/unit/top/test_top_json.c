#include "top/top_json.h"

#include "../runner.h"
#include "samples.h"

static void compare(const char *before, const char *now, const char *expected)
{
    struct buffer text = {0};
    struct samples s;

    samples_compare(&s, before, now, 1000000);
    ck_assert_int_eq(top_json_print(&s.rates, &s.now, &text), 0);
    ck_assert_msg(str_equal(buffer_str(&text), str_from(expected)), STR_FMT, STR_ARG(buffer_str(&text)));
    buffer_finish(&text);
    samples_finish(&s);
}

#define HEAD(version, started, restarted) \
    "{\n  \"version\": \"" version "\",\n  \"start_time_seconds\": " started ",\n  \"generation\": 0,\n" \
    "  \"workers\": 0,\n  \"worker_restarts\": 0,\n  \"interval_seconds\": 1.000,\n  \"restarted\": " restarted ",\n" \
    "  \"connections\": {\"handshake\": 0, \"reading\": 0, \"writing\": 0, \"waiting\": 0},\n" \
    "  \"accepted_per_second\": 0.000,\n"
#define MIDDLE \
    "  \"responses_per_second\": {\"other\": 0.000, \"1xx\": 0.000, \"2xx\": 0.000, \"3xx\": 0.000, \"4xx\": 0.000, " \
    "\"5xx\": 0.000},\n" \
    "  \"tls_handshakes_per_second\": {\"full\": 0.000, \"resumed\": 0.000, \"failed\": 0.000},\n"

START_TEST(an_idle_server)
{
    compare("{\"requests_total\": 1}", "{\"requests_total\": 1}",
            HEAD("", "0", "false") "  \"requests_per_second\": 0.000,\n" MIDDLE
                                   "  \"bytes_per_second\": 0.000,\n  \"paths\": [],\n  \"latency_seconds\": null,\n"
                                   "  \"locations\": [],\n  \"server_zones\": [],\n"
                                   "  \"stream_zones\": [],\n  \"caches\": [],\n"
                                   "  \"upstreams\": []\n}\n");
}
END_TEST

/* Control characters and quotes of the page are escaped; a quantile without a bound is null. */
START_TEST(a_restarted_server)
{
    compare("{\"requests_total\": 9}",
            "{\"requests_total\": 4, \"start_time_seconds\": 5, \"build_info\": {\"version\": \"\\e[2J\\\"\"}, "
            "\"sent_bytes_total\": {\"a\\n\": 3, \"b\": 1}, \"transfers_total\": {\"b\": 2}, "
            "\"request_duration_seconds\": {\"buckets\": {\"0.5\": 3, \"+Inf\": 4}}, "
            "\"location_zones\": [{\"zone\": \"a\\\"b\", \"requests_total\": 3, \"responses_total\": {\"5xx\": 1}, "
            "\"request_duration_seconds\": {\"buckets\": {\"0.1\": 2, \"+Inf\": 4}, \"sum\": 0.5}}, {}], "
            "\"server_zones\": [{\"zone\": \"s\", \"requests_total\": 2}], "
            "\"stream_zones\": [{\"zone\": \"t\", \"connections_total\": 3, \"active\": 7}], "
            "\"caches\": [{\"cache\": \"\\e\", \"files\": 3, \"bytes\": 4, \"max_bytes\": 5, "
            "\"responses_total\": {\"HIT\": 6, \"MISS\": 2}}, {}], "
            "\"upstreams\": [{\"upstream\": \"\\x00\", \"server\": \"s\", \"state\": \"up\", \"active\": 6, "
            "\"answer_seconds\": 0.25}]}",
            HEAD("\\u001B[2J\\\"", "5", "true") "  \"requests_per_second\": 4.000,\n" MIDDLE
            "  \"bytes_per_second\": 4.000,\n  \"paths\": [\n"
            "    {\"path\": \"a\\n\", \"bytes_per_second\": 3.000, \"share\": 0.750000, "
            "\"responses_per_second\": 0.000},\n"
            "    {\"path\": \"b\", \"bytes_per_second\": 1.000, \"share\": 0.250000, "
            "\"responses_per_second\": 2.000}\n  ],\n"
            "  \"latency_seconds\": {\"p50\": 0.333333, \"p90\": null, \"p99\": null},\n"
            "  \"locations\": [\n"
            "    {\"zone\": \"a\\\"b\", \"requests_per_second\": 3.000, \"failures_per_second\": 1.000, "
            "\"active\": 0.500, \"latency_seconds\": {\"p50\": 0.100000, \"p90\": null, \"p99\": null}},\n"
            "    {\"zone\": \"\", \"requests_per_second\": 0.000, \"failures_per_second\": 0.000, "
            "\"active\": 0.000, \"latency_seconds\": null}\n  ],\n  \"server_zones\": [\n"
            "    {\"zone\": \"s\", \"requests_per_second\": 2.000, \"failures_per_second\": 0.000, "
            "\"active\": 0.000, \"latency_seconds\": null}\n  ],\n  \"stream_zones\": [\n"
            "    {\"zone\": \"t\", \"connections_per_second\": 3.000, \"failures_per_second\": 0.000, "
            "\"active\": 7.000, \"latency_seconds\": null}\n  ],\n  \"caches\": [\n"
            "    {\"cache\": \"\\u001B\", \"files\": 3, \"bytes\": 4, \"max_bytes\": 5, "
            "\"responses_per_second\": 8.000, \"hits_per_second\": 6.000, \"hit_ratio\": 0.750000},\n"
            "    {\"cache\": \"\", \"files\": 0, \"bytes\": 0, \"max_bytes\": null, \"responses_per_second\": 0.000, "
            "\"hits_per_second\": 0.000, \"hit_ratio\": null}\n  ],\n  \"upstreams\": [\n"
            "    {\"upstream\": \"\\u0000\", \"server\": \"s\", \"state\": \"up\", "
            "\"requests_per_second\": 0.000, \"failures_per_second\": 0.000, \"active\": 6, "
            "\"header_seconds\": 0.000000, \"answer_seconds\": 0.250000}\n"
            "  ]\n}\n");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {an_idle_server, a_restarted_server, NULL};

    return run_tests("top_json", tests);
}
