#include "top/top_sample.h"

#include "../runner.h"
#include "base/buffer.h"

#include <errno.h>
#include <stdio.h>

static const char page[] =
    "{\n  \"build_info\": {\"version\": \"1.2.3\"},\n  \"start_time_seconds\": 1700000000,\n  \"generation\": 3,\n"
    "  \"workers\": 4,\n  \"worker_restarts_total\": 5,\n"
    "  \"connections\": {\"handshake\": 1, \"reading\": 2, \"writing\": 3, \"waiting\": 4, \"new state\": 9},\n"
    "  \"connections_accepted_total\": 10,\n  \"requests_total\": 20,\n"
    "  \"responses_total\": {\"other\": 0, \"1xx\": 1, \"2xx\": 2, \"3xx\": 3, \"4xx\": 4, \"5xx\": 5},\n"
    "  \"request_duration_seconds\": {\"buckets\": {\"0.001\": 1, \"0.25\": 3, \"+Inf\": 4}, \"sum\": 1.5, "
    "\"count\": 4},\n"
    "  \"sent_bytes_total\": {\"plain\": 100, \"ktls-sendfile\": 900},\n"
    "  \"transfers_total\": {\"ktls-sendfile\": 9, \"user\": 1},\n"
    "  \"tls_handshakes_total\": {\"full\": 7, \"resumed\": 8, \"failed\": 9},\n  \"unknown\": [{\"a\": [1]}],\n"
    "  \"upstreams\": [\n    {\"upstream\": \"app\", \"server\": \"127.0.0.1:1\", \"state\": \"up\", "
    "\"requests_total\": 11, \"failures_total\": 1, \"active\": 2, \"header_seconds\": 0.000500, "
    "\"answer_seconds\": 1.000000, \"more\": {}},\n"
    "    {\"upstream\": \"a\\u001b\\\"b\", \"server\": \"two\", \"state\": \"unhealthy\"}]\n}\n";

static void same(struct str got, const char *expected)
{
    ck_assert_msg(str_equal(got, str_from(expected)), STR_FMT ", not %s", STR_ARG(got), expected);
}

START_TEST(all_values)
{
    struct top_sample sample;

    ck_assert_int_eq(top_sample_parse(str_from(page), &sample), 0);
    same(sample.version, "1.2.3");
    ck_assert(sample.started_s == 1700000000 && sample.generation == 3 && sample.workers == 4 && sample.restarts == 5);
    for (unsigned i = 0; i < TOP_CONNECTIONS; i++)
        ck_assert_uint_eq(sample.connections[i], i + 1);
    ck_assert(sample.accepted == 10 && sample.requests == 20);
    for (unsigned i = 0; i < TOP_CLASSES; i++)
        ck_assert_uint_eq(sample.responses[i], i);
    for (unsigned i = 0; i < TOP_HANDSHAKES; i++)
        ck_assert_uint_eq(sample.handshakes[i], i + 7);
    ck_assert_uint_eq(sample.path_count, 3);
    same(sample.paths[1].name, "ktls-sendfile");
    ck_assert(sample.paths[0].bytes == 100 && sample.paths[0].transfers == 0);
    ck_assert(sample.paths[1].bytes == 900 && sample.paths[1].transfers == 9);
    ck_assert(sample.paths[2].bytes == 0 && sample.paths[2].transfers == 1);
    ck_assert_uint_eq(sample.latency.count, 3);
    ck_assert(sample.latency.buckets[1].bound_us == 250000 && sample.latency.buckets[1].count == 3);
    ck_assert(sample.latency.buckets[2].bound_us == UINT64_MAX && sample.latency.buckets[2].count == 4);
    top_sample_finish(&sample);
}
END_TEST

START_TEST(upstream_servers)
{
    struct top_sample sample;

    ck_assert_int_eq(top_sample_parse(str_from(page), &sample), 0);
    ck_assert_uint_eq(sample.upstream_count, 2);
    same(sample.upstreams[0].group, "app");
    same(sample.upstreams[0].server, "127.0.0.1:1");
    same(sample.upstreams[0].state, "up");
    ck_assert(sample.upstreams[0].requests == 11 && sample.upstreams[0].failures == 1);
    ck_assert_uint_eq(sample.upstreams[0].active, 2);
    ck_assert(sample.upstreams[0].header_us == 500 && sample.upstreams[0].answer_us == 1000000);
    same(sample.upstreams[1].group, "a\033\"b");
    same(sample.upstreams[1].state, "unhealthy");
    top_sample_finish(&sample);
}
END_TEST

/* Each prefix of a page is an error, without a read past its end (sanitizers) or a leak. */
START_TEST(truncated_pages)
{
    for (size_t length = 0; length + 2 < sizeof(page) - 1; length++) {
        char *copy = malloc(length + 1);
        struct top_sample sample;

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, page, length);
        ck_assert_msg(top_sample_parse(str_of(copy, length), &sample) == -EBADMSG, "%zu", length);
        top_sample_finish(&sample);
        free(copy);
    }
}
END_TEST

static const struct {
    const char *page;
    int result;
} pages[] = {
    {"{\"requests_total\": 1}", 0},
    {"{\"requests_total\": 1, \"sent_bytes_total\": {\"\": 1}}", 0},
    {"{\"requests_total\": \"1\"}", 0},
    {"{}", -EBADMSG},
    {"{\"requests\": 1}", -EBADMSG},
    {"<html>", -EBADMSG},
    {"sluice_requests_total 1\n", -EBADMSG},
    {"{\"requests_total\": -1}", -EBADMSG},
    {"{\"requests_total\": 1.5}", -EBADMSG},
    {"{\"requests_total\": null}", -EBADMSG},
    {"{\"requests_total\": 1, \"connections\": 7}", -EBADMSG},
    {"{\"requests_total\": 1, \"connections\": {\"waiting\": []}}", -EBADMSG},
    {"{\"requests_total\": 1, \"build_info\": \"1\"}", -EBADMSG},
    {"{\"requests_total\": 1, \"build_info\": {\"version\": {}}}", -EBADMSG},
    {"{\"requests_total\": 1, \"upstreams\": {}}", -EBADMSG},
    {"{\"requests_total\": 1, \"upstreams\": [1]}", -EBADMSG},
    {"{\"requests_total\": 1, \"upstreams\": [{\"active\": \"x\"}]}", -EBADMSG},
    {"{\"requests_total\": 1, \"location_zones\": []}", 0},
    {"{\"requests_total\": 1, \"location_zones\": [{\"new\": [1]}]}", 0},
    {"{\"requests_total\": 1, \"location_zones\": {}}", -EBADMSG},
    {"{\"requests_total\": 1, \"location_zones\": [1]}", -EBADMSG},
    {"{\"requests_total\": 1, \"location_zones\": [{\"requests_total\": -1}]}", -EBADMSG},
    {"{\"requests_total\": 1, \"location_zones\": [{\"request_duration_seconds\": {\"buckets\": {\"1\": 2, \"2\": 1}"
     "}}]}", -EBADMSG},
    {"{\"requests_total\": 1, \"location_zones\": [{\"request_duration_seconds\": {\"sum\": \"x\"}}]}", -EBADMSG},
    {"{\"requests_total\": 1, \"server_zones\": [{\"requests_total\": -1}]}", -EBADMSG},
    {"{\"requests_total\": 1, \"stream_zones\": [{\"active\": -1}]}", -EBADMSG},
    {"{\"requests_total\": 1, \"stream_zones\": [{\"session_duration_seconds\": []}]}", -EBADMSG},
    {"{\"requests_total\": 1, \"caches\": [{\"cache\": \"a\", \"new\": 1, \"responses_total\": {}}]}", 0},
    {"{\"requests_total\": 1, \"caches\": {}}", -EBADMSG},
    {"{\"requests_total\": 1, \"caches\": [1]}", -EBADMSG},
    {"{\"requests_total\": 1, \"caches\": [{\"responses_total\": 1}]}", -EBADMSG},
    {"{\"requests_total\": 1, \"caches\": [{\"responses_total\": {\"HIT\": \"x\"}}]}", -EBADMSG},
    {"{\"requests_total\": 1, \"request_duration_seconds\": {\"buckets\": {\"1\": 1, \"0.5\": 2}}}", -EBADMSG},
    {"{\"requests_total\": 1, \"request_duration_seconds\": {\"buckets\": {\"1\": 2, \"2\": 1}}}", -EBADMSG},
    {"{\"requests_total\": 1, \"request_duration_seconds\": {\"buckets\": {\"+Inf\": 1, \"+Inf\": 1}}}", -EBADMSG},
    {"{\"requests_total\": 1, \"request_duration_seconds\": {\"buckets\": {\"x\": 1}}}", -EBADMSG},
};

START_TEST(other_pages)
{
    struct top_sample sample;

    ck_assert_msg(top_sample_parse(str_from(pages[_i].page), &sample) == pages[_i].result, "%s", pages[_i].page);
    ck_assert_uint_eq(sample.path_count, 0);
    top_sample_finish(&sample);
}
END_TEST

/* A page with `count` entries of `format`, which may use the number of the entry. */
static int parse_many(const char *head, const char *format, unsigned count, const char *tail, struct top_sample *out)
{
    struct buffer text = {0};
    int error = buffer_append(&text, str_from(head));

    for (unsigned i = 0; i < count && error == 0; i++) {
        error = buffer_append(&text, i ? STR(", ") : STR(""));
        if (error == 0)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            error = buffer_printf(&text, format, i + 1, i + 1);
#pragma GCC diagnostic pop
    }
    if (error == 0)
        error = buffer_append(&text, str_from(tail));
    ck_assert_int_eq(error, 0);
    error = top_sample_parse(buffer_str(&text), out);
    buffer_finish(&text);
    return error;
}

/* The sum of the responses does not wrap around. */
START_TEST(responses_of_caches)
{
    static const char text[] =
        "{\"requests_total\": 1, \"caches\": [{\"cache\": \"one\", \"files\": 2, \"bytes\": 3, \"max_bytes\": 4,"
        "\"responses_total\": {\"MISS\": 5, \"HIT\": 7, \"STALE\": 1}},"
        "{\"responses_total\": {\"MISS\": 18446744073709551615, \"HIT\": 18446744073709551615}}]}";
    struct top_sample sample;

    ck_assert_int_eq(top_sample_parse(str_from(text), &sample), 0);
    ck_assert_uint_eq(sample.cache_count, 2);
    ck_assert(str_equal(sample.caches[0].name, STR("one")));
    ck_assert_uint_eq(sample.caches[0].files, 2);
    ck_assert_uint_eq(sample.caches[0].bytes, 3);
    ck_assert_uint_eq(sample.caches[0].max_bytes, 4);
    ck_assert_uint_eq(sample.caches[0].responses, 13);
    ck_assert_uint_eq(sample.caches[0].hits, 7);
    ck_assert_uint_eq(sample.caches[1].responses, UINT64_MAX);
    top_sample_finish(&sample);
}
END_TEST

START_TEST(limits)
{
    static const char upstreams[] = "{\"requests_total\": 1, \"upstreams\": [";
    static const char locations[] = "{\"requests_total\": 1, \"location_zones\": [";
    static const char caches[] = "{\"requests_total\": 1, \"caches\": [";
    static const char buckets[] = "{\"requests_total\": 1, \"request_duration_seconds\": {\"buckets\": {";
    static const char paths[] = "{\"requests_total\": 1, \"sent_bytes_total\": {";
    struct top_sample sample;

    ck_assert_int_eq(parse_many(upstreams, "{\"active\": %u}", LIMIT_UPSTREAM_PEERS, "]}", &sample), 0);
    ck_assert_uint_eq(sample.upstreams[LIMIT_UPSTREAM_PEERS - 1].active, LIMIT_UPSTREAM_PEERS);
    top_sample_finish(&sample);
    ck_assert_int_eq(parse_many(upstreams, "{\"active\": %u}", LIMIT_UPSTREAM_PEERS + 1, "]}", &sample), -E2BIG);
    top_sample_finish(&sample);
    ck_assert_int_eq(parse_many(locations, "{\"requests_total\": %u}", LIMIT_STATUS_ZONES, "]}", &sample), 0);
    ck_assert_uint_eq(sample.zones[TOP_LOCATIONS].items[LIMIT_STATUS_ZONES - 1].requests, LIMIT_STATUS_ZONES);
    top_sample_finish(&sample);
    ck_assert_int_eq(parse_many(locations, "{\"requests_total\": %u}", LIMIT_STATUS_ZONES + 1, "]}", &sample), -E2BIG);
    top_sample_finish(&sample);
    ck_assert_int_eq(parse_many(caches, "{\"files\": %u}", LIMIT_STATUS_ZONES, "]}", &sample), 0);
    ck_assert_uint_eq(sample.caches[LIMIT_STATUS_ZONES - 1].files, LIMIT_STATUS_ZONES);
    top_sample_finish(&sample);
    ck_assert_int_eq(parse_many(caches, "{\"files\": %u}", LIMIT_STATUS_ZONES + 1, "]}", &sample), -E2BIG);
    top_sample_finish(&sample);
    ck_assert_int_eq(parse_many(buckets, "\"%u\": %u", LIMIT_TOP_BUCKETS, "}}}", &sample), 0);
    ck_assert_uint_eq(sample.latency.count, LIMIT_TOP_BUCKETS);
    top_sample_finish(&sample);
    ck_assert_int_eq(parse_many(buckets, "\"%u\": %u", LIMIT_TOP_BUCKETS + 1, "}}}", &sample), -E2BIG);
    top_sample_finish(&sample);
    ck_assert_int_eq(parse_many(paths, "\"path%u\": %u", LIMIT_TOP_PATHS + 9, "}}", &sample), 0);
    ck_assert_uint_eq(sample.path_count, LIMIT_TOP_PATHS);
    top_sample_finish(&sample);
}
END_TEST

START_TEST(long_pages_and_texts)
{
    size_t size = LIMIT_TOP_PAGE + 1;
    char *text = malloc(size);
    struct top_sample sample;
    int length = snprintf(text, size, "{\"requests_total\": 1, \"build_info\": {\"version\": \"");

    memset(text + length, 'v', size - (size_t)length);
    memcpy(text + size - 4, "\"}}", 3);
    ck_assert_int_eq(top_sample_parse(str_of(text, size - 1), &sample), 0);
    ck_assert_uint_eq(sample.version.length, LIMIT_TOP_NAME);
    top_sample_finish(&sample);
    ck_assert_int_eq(top_sample_parse(str_of(text, size), &sample), -E2BIG);
    top_sample_finish(&sample);
    free(text);
}
END_TEST

START_TEST(each_error_has_a_sentence)
{
    ck_assert(strstr(top_sample_fault(-EBADMSG), "JSON"));
    ck_assert(strstr(top_sample_fault(-E2BIG), "more values"));
    ck_assert_str_eq(top_sample_fault(-ENOMEM), "out of memory");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, all_values);
    tcase_add_test(tcase, upstream_servers);
    tcase_add_test(tcase, truncated_pages);
    tcase_add_loop_test(tcase, other_pages, 0, sizeof(pages) / sizeof(pages[0]));
    tcase_add_test(tcase, responses_of_caches);
    tcase_add_test(tcase, limits);
    tcase_add_test(tcase, long_pages_and_texts);
    tcase_add_test(tcase, each_error_has_a_sentence);
}

int main(void)
{
    return run_suite("top_sample", add_tests);
}
