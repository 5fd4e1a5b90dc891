#include "loopback.h"

#include "master/shared.h"

#include <stdio.h>

static struct loopback server;

#define PLACES                                                                                               \
    "http:\n"                                                                                                \
    "  server:\n"                                                                                            \
    "    listen: 8080\n"                                                                                     \
    "    location:\n"                                                                                        \
    "      /on: {status: on, location: {/on/inner: {}}}\n"                                                   \
    "      /true: {status: true}\n"                                                                          \
    "      /prometheus: {status: prometheus}\n"                                                              \
    "      /json: {status: json}\n"                                                                          \
    "      /html: {status: html, security_headers: strict}\n"                                                \
    "      /off: {status: off}\n"                                                                            \
    "      /nginx: {stub_status: on}\n"

/* Sets each counter of a worker to a different value. */
static void count(struct counters *counters)
{
    struct wire_counters *wires = &counters->wires;

    counters->connections[CONNECTION_HANDSHAKE] += 1;
    counters->connections[CONNECTION_READING] += 2;
    counters->connections[CONNECTION_WRITING] += 3;
    counters->connections[CONNECTION_WAITING] += 4;
    counters->accepted += 1000;
    counters->rejected += 17;
    counters->requests += 2000;
    counters->requests_by_protocol[REQUEST_HTTP_2] += 1500;
    counters->protocols.h2_streams = 20;
    counters->protocols.h2_streams_opened = 21;
    counters->protocols.h2_resets_sent[7] = 22;
    counters->protocols.h2_resets_received[8] = 23;
    counters->protocols.h2_resets_received[H2_COUNTED_ERRORS - 1] = 24;
    counters->protocols.h2_connection_errors[11] = 25;
    for (int i = 0; i < 7; i++)
        counters_add_response(counters, 200, 1000);
    counters_add_response(counters, 206, 1001);
    counters_add_response(counters, 404, 3000000);
    counters_add_response(counters, 499, 61000000);
    counters_add_response(counters, 0, 0);
    wires->bytes[PATH_PLAIN] = 100;
    wires->bytes[PATH_USER] = 200;
    wires->bytes[PATH_PLAIN_SENDFILE] = 300;
    wires->bytes[PATH_KTLS_SENDFILE] = 400;
    wires->transfers[PATH_USER] = 5;
    wires->promotions = 6;
    wires->declines[REASON_SMALL] = 7;
    wires->declines[KTLS_NO_MODULE] = 8;
    wires->records = 9;
    wires->handshakes_full = 10;
    wires->handshakes_resumed = 11;
    wires->handshakes_failed = 12;
    counters->files.hits = 13;
    counters->files.misses = 14;
    counters->log_lines_dropped = 15;
    counters->exchange_memory = 18;
    counters->exchange_rejections = 19;
}

/* Each complete line must be present; a line that begins with "!" must be absent. */
static void expect_lines(struct str text, const char *const *lines)
{
    for (; *lines; lines++) {
        bool expected = (*lines)[0] != '!';
        char line[200];

        snprintf(line, sizeof(line), "\n%s", *lines + !expected);
        ck_assert_msg((str_search(text, str_from(line)) >= 0) == expected, "%s in:\n" STR_FMT, *lines,
                      STR_ARG(text));
    }
}

/* The counts include the connection and the request that read them. */
START_TEST(every_value_has_its_prometheus_line)
{
    static const char *const lines[] = {
        "# HELP sluice_requests_total Requests whose head was received.\n# TYPE sluice_requests_total counter\n"
        "sluice_requests_total 2001\n#",
        "sluice_requests_by_protocol_total{protocol=\"HTTP/1.0\"} 0\n"
        "sluice_requests_by_protocol_total{protocol=\"HTTP/1.1\"} 1\n"
        "sluice_requests_by_protocol_total{protocol=\"HTTP/2.0\"} 1500\n#",
        "sluice_http2_streams 20\n",
        "sluice_http2_streams_total 21\n",
        "sluice_http2_resets_sent_total{code=\"REFUSED_STREAM\"} 22\n#",
        "sluice_http2_resets_received_total{code=\"CANCEL\"} 23\n"
        "sluice_http2_resets_received_total{code=\"unknown\"} 24\n#",
        "sluice_http2_connection_errors_total{code=\"ENHANCE_YOUR_CALM\"} 25\n#",
        "sluice_generation 1\n",
        "sluice_workers 1\n",
        "sluice_worker_restarts_total 16\n",
        "sluice_start_time_seconds 1234567890\n",
        "sluice_connections{state=\"handshake\"} 1\nsluice_connections{state=\"reading\"} 2\n"
        "sluice_connections{state=\"writing\"} 3\nsluice_connections{state=\"waiting\"} 5\n#",
        "sluice_connections_accepted_total 1001\n",
        "sluice_connections_refused_total 17\n",
        "sluice_exchange_memory_bytes 18\n",
        "sluice_exchange_memory_refusals_total 19\n",
        "sluice_responses_total{class=\"other\"} 1\nsluice_responses_total{class=\"1xx\"} 0\n"
        "sluice_responses_total{class=\"2xx\"} 8\nsluice_responses_total{class=\"3xx\"} 0\n"
        "sluice_responses_total{class=\"4xx\"} 2\nsluice_responses_total{class=\"5xx\"} 0\n#",
        "sluice_responses_by_status_total{status=\"000\"} 1\n"
        "sluice_responses_by_status_total{status=\"200\"} 7\n"
        "sluice_responses_by_status_total{status=\"206\"} 1\n"
        "sluice_responses_by_status_total{status=\"404\"} 1\n"
        "sluice_responses_by_status_total{status=\"499\"} 1\n#",
        "# TYPE sluice_request_duration_seconds histogram\n"
        "sluice_request_duration_seconds_bucket{le=\"0.001\"} 8\n"
        "sluice_request_duration_seconds_bucket{le=\"0.0025\"} 9\n",
        "sluice_request_duration_seconds_bucket{le=\"2.5\"} 9\n"
        "sluice_request_duration_seconds_bucket{le=\"5\"} 10\n"
        "sluice_request_duration_seconds_bucket{le=\"10\"} 10\n"
        "sluice_request_duration_seconds_bucket{le=\"60\"} 10\n"
        "sluice_request_duration_seconds_bucket{le=\"+Inf\"} 11\n"
        "sluice_request_duration_seconds_sum 64.008001\n"
        "sluice_request_duration_seconds_count 11\n#",
        "sluice_sent_bytes_total{path=\"plain\"} 100\n",
        "sluice_sent_bytes_total{path=\"ktls-sendfile\"} 400\n",
        "!sluice_sent_bytes_total{path=\"-\"}",
        "sluice_transfers_total{path=\"user\"} 5\n",
        "sluice_zero_copy_bytes_total 700\n",
        "sluice_zero_copy_ratio 0.7\n",
        "sluice_ktls_promotions_total 6\n",
        "sluice_ktls_declines_total{reason=\"no-module\"} 8\n",
        "sluice_ktls_declines_total{reason=\"small\"} 7\n",
        "!sluice_ktls_declines_total{reason=\"ok\"}",
        "!sluice_ktls_declines_total{reason=\"plain\"}",
        "sluice_tls_records_total 9\n",
        "sluice_aead_ipsec_mb{cipher=\"AES-128-GCM\"} 0\nsluice_aead_ipsec_mb{cipher=\"AES-256-GCM\"} 1\n"
        "sluice_aead_ipsec_mb{cipher=\"ChaCha20-Poly1305\"} 0\n#",
        "sluice_ktls_kernel_ns_per_kib{cipher=\"AES-128-GCM\"} 131\n"
        "sluice_ktls_kernel_ns_per_kib{cipher=\"AES-256-GCM\"} 0\n",
        "sluice_ktls_user_ns_per_kib{cipher=\"AES-128-GCM\"} 95\n",
        "sluice_tls_handshakes_total{result=\"full\"} 10\nsluice_tls_handshakes_total{result=\"resumed\"} "
        "11\n"
        "sluice_tls_handshakes_total{result=\"failed\"} 12\n#",
        "sluice_open_file_cache_lookups_total{result=\"hit\"} 13\n"
        "sluice_open_file_cache_lookups_total{result=\"miss\"} 14\n#",
        "sluice_access_log_lines_dropped_total 15\n",
        NULL};

    loopback_open(&server, PLACES);
    count(server.worker.counters);
    server.shared->restarts = 16;
    server.shared->aead.kind[RECORD_AES_256_GCM] = AEAD_IPSEC_MB;
    server.shared->ktls_choice.figures[RECORD_AES_128_GCM] =
        (struct ktls_figures){.kernel_ns = {[KTLS_SIZES - 1] = 131 << 10}, .user_ns = {[KTLS_SIZES - 1] = 95 << 10}};
    server.shared->started_s = 1234567890;
    loopback_request(&server, "GET /prometheus HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(loopback_field(&server, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    ck_assert_text(loopback_field(&server, "Cache-Control"), "no-store");
    expect_lines(server.body, lines);
    ck_assert(str_ends(server.body, STR("\n")));
    counters_reset_current(server.worker.counters);
    loopback_close(&server);
}
END_TEST

START_TEST(json_has_every_value)
{
    static const char *const lines[] = {
        "  \"generation\": 1,\n",
        "  \"connections\": {\"handshake\": 1, \"reading\": 2, \"writing\": 3, \"waiting\": 5},\n",
        "  \"requests_total\": 2001,\n",
        "  \"responses_total\": {\"other\": 1, \"1xx\": 0, \"2xx\": 8, \"3xx\": 0, \"4xx\": 2, \"5xx\": "
        "0},\n",
        "  \"responses_by_status_total\": {\"000\": 1, \"200\": 7, \"206\": 1, \"404\": 1, \"499\": 1},\n",
        "  \"request_duration_seconds\": {\"buckets\": {\"0.001\": 8, \"0.0025\": 9, ",
        "  \"zero_copy_ratio\": 0.7,\n",
        "  \"tls_handshakes_total\": {\"full\": 10, \"resumed\": 11, \"failed\": 12},\n",
        NULL};

    loopback_open(&server, PLACES);
    count(server.worker.counters);
    loopback_request(&server, "GET /json HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(loopback_field(&server, "Content-Type"), "application/json");
    ck_assert_text(loopback_field(&server, "Cache-Control"), "no-store");
    expect_lines(server.body, lines);
    ck_assert(str_search(server.body, STR("\"+Inf\": 11}, \"sum\": 64.008001, \"count\": 11},\n")) >= 0);
    ck_assert(str_starts(server.body, STR("{\n")));
    ck_assert(str_ends(server.body, STR("\n}\n")));
    counters_reset_current(server.worker.counters);
    loopback_close(&server);
}
END_TEST

START_TEST(html_has_every_value)
{
    static const char *const lines[] = {
        "<p class=\"note\">Started 2009-02-13 23:31:30 UTC, generation 1 of the workers.</p>\n",
        "<tr><td>Requests whose head was received.<td>2&#8239;001\n",
        "<tr><td>Open connections by state.<td>\n<tr><td>&emsp;handshake<td>1\n<tr><td>&emsp;reading<td>2\n",
        "<tr><td>&emsp;404<td>1\n<tr><td>&emsp;499<td>1\n",
        "!<tr><td>&emsp;201<td>0\n",
        "<tr><td>&emsp;up to 5.000 s<td>1\n",
        "<tr><td>&emsp;more than 60.000 s<td>1\n",
        "<tr><td>Share of bytes sent without a copy in user space, from 0 to 1.<td>0.700000\n",
        NULL};

    loopback_open(&server, PLACES);
    count(server.worker.counters);
    server.shared->started_s = 1234567890;
    loopback_request(&server, "GET /html HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(loopback_field(&server, "Content-Type"), "text/html; charset=utf-8");
    ck_assert_text(loopback_field(&server, "Cache-Control"), "no-store");
    ck_assert(str_starts(loopback_field(&server, "Content-Security-Policy"),
                         STR("default-src 'none'; style-src 'sha256-")));
    expect_lines(server.body, lines);
    ck_assert(str_starts(server.body, STR("<!doctype html>\n")));
    ck_assert(str_ends(server.body, STR("</html>\n")));
    ck_assert(str_search(server.body, STR("<script")) < 0);
    counters_reset_current(server.worker.counters);
    loopback_close(&server);
}
END_TEST

START_TEST(stub_status_has_the_format_of_nginx)
{
    loopback_open(&server, PLACES);
    count(server.worker.counters);
    loopback_request(&server, "GET /nginx HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(loopback_field(&server, "Content-Type"), "text/plain");
    ck_assert_text(server.body, "Active connections: 11 \n"
                                "server accepts handled requests\n"
                                " 1001 1001 2001 \n"
                                "Reading: 3 Writing: 4 Waiting: 4 \n");
    counters_reset_current(server.worker.counters);
    loopback_close(&server);
}
END_TEST

START_TEST(page_of_a_new_server)
{
    loopback_open(&server, PLACES);
    loopback_request(&server, "GET /prometheus HTTP/1.1");
    ck_assert(str_search(server.body, STR("\nsluice_zero_copy_ratio 0\n")) >= 0);
    ck_assert(str_search(server.body, STR("\nsluice_responses_by_status_total")) < 0);
    ck_assert(str_search(server.body, STR("\nsluice_request_duration_seconds_sum 0\n")) >= 0);
    loopback_request(&server, "GET /json HTTP/1.1");
    ck_assert(str_search(server.body, STR("\"responses_by_status_total\": {\"200\": 1},\n")) >= 0);
    loopback_close(&server);
}
END_TEST

#define TEXT "text/plain; version=0.0.4; charset=utf-8"
#define JSON "application/json"
#define HTML "text/html; charset=utf-8"

static const struct {
    const char *request;
    int status;
    const char *type; /* NULL: not checked */
} cases[] = {
    {"GET /on HTTP/1.1", 200, TEXT},
    {"GET /true HTTP/1.1", 200, TEXT},
    {"GET /on HTTP/1.1\nAccept: application/json", 200, JSON},
    {"GET /on HTTP/1.1\nAccept: APPLICATION/json ; q=0.001", 200, JSON},
    {"GET /on HTTP/1.1\nAccept: application/json;q=0", 200, TEXT},
    {"GET /on HTTP/1.1\nAccept: application/json;q=0.000", 200, TEXT},
    {"GET /on HTTP/1.1\nAccept: text/html, */*", 200, HTML},
    {"GET /on HTTP/1.1\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 200, HTML},
    {"GET /on HTTP/1.1\nAccept: text/html;q=0.1, text/plain;q=0.2", 200, TEXT},
    {"GET /on?format=html HTTP/1.1\nAccept: text/plain", 200, HTML},
    {"GET /on?format=htm HTTP/1.1\nAccept: text/html", 400, HTML},
    {"GET /html?format=json HTTP/1.1\nAccept: text/plain", 200, HTML},
    {"GET /on HTTP/1.1\nAccept: application/json, text/plain, */*", 200, JSON},
    {"GET /on HTTP/1.1\nAccept: text/plain, application/json", 200, TEXT},
    {"GET /on HTTP/1.1\nAccept: text/plain;q=0.5\nAccept: application/json;level=1;Q=0.51", 200, JSON},
    {"GET /on HTTP/1.1\nAccept: text/plain;q=0.6, application/json;q=0.59", 200, TEXT},
    {"GET /on HTTP/1.1\nAccept: text/plain;q=1, application/json;q=0.999", 200, TEXT},
    {"GET /on HTTP/1.1\nAccept: "
     "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
     200, TEXT},
    {"GET /on HTTP/1.1\nAccept: ;q=, application/json;q=, ,", 200, JSON},
    {"GET /on?format=json HTTP/1.1\nAccept: text/plain", 200, JSON},
    {"GET /on?a=b&format=prometheus HTTP/1.1\nAccept: application/json", 200, TEXT},
    {"GET /on?format=xml HTTP/1.1", 400, HTML},
    {"GET /on?format HTTP/1.1", 400, HTML},
    {"GET /on?formats=xml HTTP/1.1", 200, TEXT},
    {"GET /prometheus?format=json HTTP/1.1\nAccept: application/json", 200, TEXT},
    {"GET /json?format=prometheus HTTP/1.1\nAccept: text/plain", 200, JSON},
    {"GET /nginx?format=json HTTP/1.1", 200, "text/plain"},
    {"HEAD /on HTTP/1.1", 200, TEXT},
    {"POST /on HTTP/1.1\nContent-Length: 0", 405, HTML},
    {"DELETE /nginx HTTP/1.1", 405, HTML},
    {"OPTIONS /json HTTP/1.1", 405, HTML},
    {"BREW /json HTTP/1.1", 501, HTML},
    {"GET /on/inner HTTP/1.1", 404, HTML},
    {"GET /off HTTP/1.1", 404, HTML},
    {"GET / HTTP/1.1", 404, HTML},
};

START_TEST(responds_to_each_case)
{
    loopback_open(&server, PLACES);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        loopback_request(&server, cases[i].request);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", cases[i].request, server.status);
        ck_assert_msg(str_equal(loopback_field(&server, "Content-Type"), str_from(cases[i].type)),
                      "%s: " STR_FMT, cases[i].request, STR_ARG(loopback_field(&server, "Content-Type")));
        ck_assert_text(loopback_field(&server, "Allow"),
                       server.status == 405 || server.status == 501 ? "GET, HEAD" : "");
        ck_assert_text(loopback_field(&server, "Cache-Control"), server.status == 200 ? "no-store" : "");
        ck_assert((server.body.length == 0) == (cases[i].request[0] == 'H'));
    }
    loopback_close(&server);
}
END_TEST

static const struct {
    const char *text;
    const char *expected;
} mistakes[] = {
    {"status: on", "status"},
    {"location: {/: {status: maybe}}", "prometheus"},
    {"location: {/: {status: }}", "status"},
    {"location: {/: {stub_status: json}}", "stub_status"},
    {"location: {/: {status: json, stub_status: on}}", "cannot be used in one location"},
};

START_TEST(invalid_configurations_are_rejected)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        loopback_configuration_rejected(mistakes[i].text, mistakes[i].expected);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_value_has_its_prometheus_line, json_has_every_value, html_has_every_value,
        stub_status_has_the_format_of_nginx, page_of_a_new_server, responds_to_each_case,
        invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("status", tests);
}
