/* Two readings of a status page, and the screen composed from them. */
#ifndef TEST_SCREEN_FIXTURE_H
#define TEST_SCREEN_FIXTURE_H

#include "top/top_screen.h"

#include "../runner.h"

#include <stdio.h>

/* A monitor with two readings, the composed screen, and the page that the second reading has. */
static struct {
    struct top_server server;
    struct top_monitor monitor;
    struct top_screen screen;
} bed;

static const char before[] = "{\"requests_total\": 0, \"start_time_seconds\": 1000}";

static const char page[] =
    "{\"build_info\": {\"version\": \"1.2.3\"}, \"start_time_seconds\": 1000, \"workers\": 4,"
    "\"requests_total\": 12345,"
    "\"connections\": {\"handshake\": 1, \"reading\": 2, \"writing\": 3, \"waiting\": 4},"
    "\"connections_accepted_total\": 7,"
    "\"responses_total\": {\"2xx\": 12000, \"3xx\": 300, \"4xx\": 40, \"5xx\": 5},"
    "\"tls_handshakes_total\": {\"full\": 2, \"resumed\": 3, \"failed\": 1},"
    "\"sent_bytes_total\": {\"plain\": 1024, \"ktls-sendfile\": 3072, \"user\": 0},"
    "\"transfers_total\": {\"plain\": 5, \"ktls-sendfile\": 6, \"user\": 0},"
    "\"request_duration_seconds\": {\"buckets\": {\"0.1\": 50, \"0.2\": 90, \"+Inf\": 100}},"
    "\"upstreams\": [{\"upstream\": \"b\", \"server\": \"one\", \"state\": \"up\", \"requests_total\": 10,"
    " \"failures_total\": 1, \"active\": 3, \"answer_seconds\": 0.25},"
    "{\"upstream\": \"a\", \"server\": \"two\", \"state\": \"unhealthy\", \"requests_total\": 30, \"active\": 1,"
    " \"answer_seconds\": 0.5},"
    "{\"upstream\": \"c\\u001b[2J\", \"server\": \"three\", \"state\": \"resting\", \"requests_total\": 20,"
    " \"failures_total\": 9}]}";

#define LOCATION(zone, requests, failures, fast, all, sum) \
    "{\"zone\": \"" zone "\", \"requests_total\": " requests ", \"responses_total\": {\"5xx\": " failures "}, " \
    "\"request_duration_seconds\": {\"buckets\": {\"0.1\": " fast ", \"1\": " all ", \"+Inf\": " all "}, " \
    "\"sum\": " sum "}}"

static const char lists[] =
    "{\"requests_total\": 1, \"sent_bytes_total\": {\"plain\": 1}, \"location_zones\": ["
    LOCATION("a.test /", "10", "1", "10", "10", "0.5") "], \"server_zones\": ["
    LOCATION("b.test", "10", "1", "10", "10", "0.5") ", " LOCATION("a.test", "20", "0", "10", "20", "1") "],"
    "\"stream_zones\": [{\"zone\": \"mail\", \"connections_total\": 2, \"active\": 5, \"sessions_total\": {\"5xx\": 1},"
    " \"session_duration_seconds\": {\"buckets\": {\"0.1\": 2, \"+Inf\": 2}, \"sum\": 0.1}},"
    " {\"zone\": \"dns\", \"connections_total\": 4}],"
    "\"caches\": [{\"cache\": \"two\\u001b[2J\", \"files\": 3, \"bytes\": 2048,"
    "\"responses_total\": {\"HIT\": 30, \"MISS\": 10}},"
    "{\"cache\": \"one\", \"max_bytes\": 1073741824, \"responses_total\": {\"MISS\": 20}}, {\"cache\": \"idle\"}],"
    "\"upstreams\": [{\"upstream\": \"u\", \"server\": \"s\"}]}";

static inline void load(const char *first, const char *second)
{
    memset(&bed, 0, sizeof(bed));
    snprintf(bed.server.url.text, sizeof(bed.server.url.text), "http://127.0.0.1/status");
    top_monitor_init(&bed.monitor, &bed.server, 1);
    ck_assert_int_eq(top_sample_parse(str_from(first), &bed.monitor.samples[0]), 0);
    ck_assert_int_eq(top_sample_parse(str_from(second), &bed.monitor.samples[1]), 0);
    bed.monitor.samples[1].read_us = 1000000;
    ck_assert_int_eq(top_rates_compute(&bed.monitor.samples[0], &bed.monitor.samples[1], &bed.monitor.rates), 0);
    bed.monitor.latest = 1;
    bed.monitor.readings = 2;
}

static inline void compose_list(enum top_list list, enum top_sort sort, unsigned columns, unsigned rows, bool help)
{
    const struct top_content content = {.monitor = &bed.monitor,
                                        .wall_s = 1061,
                                        .list = list,
                                        .sort = sort,
                                        .help = help,
                                        .interactive = list < TOP_LISTS};

    top_screen_compose(&bed.screen, &content, columns, rows);
}

static inline void compose(enum top_sort sort, unsigned columns, unsigned rows, bool help)
{
    compose_list(TOP_LIST_LOCATIONS, sort, columns, rows, help);
}

static inline void assert_line(unsigned i, const char *text)
{
    ck_assert_str_eq(bed.screen.lines[i].text, text);
}

static const char *const lines[] = {
    "sluice 1.2.3  http://127.0.0.1/status  up 00:01:01  workers 4",
    "Requests        12.3k/s   2xx 12.0k  3xx 300  4xx 40  5xx 5  other 0",
    "Sent         4.00 KiB/s",
    "Connections        10     new 7/s  handshake 1  reading 2  writing 3  waiting 4",
    "Handshakes          6/s   full 2  resumed 3  failed 1",
    "Latency p50    100 ms     p90 200 ms  p99 > 200 ms",
    "",
    "SEND PATH                           BYTES/S    SHARE  RESPONSES/S",
    "ktls-sendfile                      3.00 KiB    75.0%            6",
    "plain                              1.00 KiB    25.0%            5",
    "",
    "UPSTREAM           SERVER              STATE       REQ/S  FAIL/S ACTIVE     TIME",
    "a                  two                 unhealthy      30       0      1   500 ms",
    "c\\x1b[2J           three               resting        20       9      0     0 us",
    "b                  one                 up             10       1      3   250 ms",
};

#endif
