#include "loopback.h"

#include "base/limits.h"
#include "control/control.h"
#include "site/configuration_files.h"

#include <stdlib.h>
#include <unistd.h>

#include <stdio.h>
#include <string.h>

static struct loopback server;

#define CONFIGURATION                                                                                                  \
    "control: unix:/nonexistent/control.sock\n"                                                                        \
    "http:\n"                                                                                                          \
    "  deny: all\n"                                                                                                    \
    "  add_header: {X-Site: yes}\n"                                                                                    \
    "  upstream: {app: {server: ['127.0.0.1:1', '[::1]:2']}}\n"                                                        \
    "  server:\n"                                                                                                      \
    "    listen: 8080 ssl\n"                                                                                           \
    "    server_name: example.com\n"                                                                                   \
    "    ssl_certificate: self-signed\n"                                                                               \
    "    location: {/: {proxy_pass: 'http://app'}}\n"

static void open_server(void)
{
    loopback_open(&server, CONFIGURATION);
    server.endpoint = 1;
}

static void expect(const char *head, int status, const char *type, const char *body)
{
    loopback_request(&server, head);
    ck_assert_msg(server.status == status, "%s: %d " STR_FMT, head, server.status, STR_ARG(server.body));
    ck_assert_text(loopback_field(&server, "Content-Type"), type);
    ck_assert_text(loopback_field(&server, "Cache-Control"), "no-store");
    ck_assert_text(loopback_field(&server, "X-Site"), "");
    ck_assert_text(server.body, body);
}

#define JSON  "application/json"
#define TABLE "text/tab-separated-values; charset=utf-8"

/* Also without Host, and regardless of `deny` of http. */
START_TEST(workers_are_listed)
{
    open_server();
    server.shared->workers[0].facts = (struct worker_facts){.pid = 4711, .started_s = 1, .generation = 3};
    server.shared->workers[0].counters.requests = 41;
    loopback_request(&server, "GET /v1/workers HTTP/1.0");
    ck_assert_int_eq(server.status, 200);
    ck_assert(str_starts(server.body, STR("{\"workers\": [\n  {\"pid\": 4711, \"generation\": 3, "
                                          "\"state\": \"running\", \"seconds\": ")));
    ck_assert(str_ends(server.body, STR(", \"connections\": 1, \"requests\": 42}\n]}\n")));
    server.shared->workers[0].facts.draining = 1;
    loopback_request(&server, "GET /v1/workers?format=table HTTP/1.1\nHost: any.example");
    ck_assert(str_search(server.body, STR("\n4711\t3\tdraining\t")) > 0);
    server.shared->workers[0].facts.pid = 0;
    expect("GET /v1/workers HTTP/1.0", 200, JSON, "{\"workers\": []}\n");
    loopback_close(&server);
}
END_TEST

START_TEST(upstreams_are_listed)
{
    open_server();
    expect("GET /v1/upstreams?format=table HTTP/1.0", 200, TABLE,
           "upstream\tserver\tstate\tweight\tactive\trequests\tfailures\theader_ms\ttotal_ms\n"
           "app\t127.0.0.1:1\tup\t1\t0\t0\t0\t0\t0\napp\t[::1]:2\tup\t1\t0\t0\t0\t0\t0\n");
    upstream_zone_at(server.shared->upstreams, 0)->checked = CHECKED_BAD;
    upstream_zone_at(server.shared->upstreams, 1)->paused = 1;
    upstream_zone_at(server.shared->upstreams, 1)->header_us = 2999;
    expect("GET /v1/upstreams HTTP/1.0", 200, JSON,
           "{\"upstreams\": [\n"
           "  {\"upstream\": \"app\", \"server\": \"127.0.0.1:1\", \"state\": \"unhealthy\", \"weight\": 1, "
           "\"active\": 0, \"requests\": 0, \"failures\": 0, \"header_ms\": 0, \"total_ms\": 0},\n"
           "  {\"upstream\": \"app\", \"server\": \"[::1]:2\", \"state\": \"unavailable\", \"weight\": 1, "
           "\"active\": 0, \"requests\": 0, \"failures\": 0, \"header_ms\": 2, \"total_ms\": 0}\n]}\n");
    loopback_close(&server);
}
END_TEST

static void patch(const char *path, const char *body, int status, const char *expected)
{
    char request[2048];

    snprintf(request, sizeof(request), "PATCH %s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", path, strlen(body), body);
    loopback_request_raw(&server, str_from(request));
    ck_assert_msg(server.status == status && str_search(server.body, str_from(expected)) >= 0, "%s: %d " STR_FMT, body,
                  server.status, STR_ARG(server.body));
}

START_TEST(upstream_servers_are_changed)
{
    struct upstream_shared *peer;

    open_server();
    peer = upstream_zone_at(server.shared->upstreams, 1);
    patch("/v1/upstreams", "{\"upstream\": \"app\", \"server\": \"[::1]:2\", \"state\": \"draining\"}", 200,
          "{\"upstreams\": [\n"
          "  {\"upstream\": \"app\", \"server\": \"[::1]:2\", \"state\": \"draining\", \"weight\": 1, ");
    ck_assert_uint_eq(peer->mode, UPSTREAM_DRAINING);
    ck_assert(loopback_logged(&server, "[notice]"));
    ck_assert(loopback_logged(&server, "control: upstream server [::1]:2 of \"app\" is draining, before: up\n"));
    patch("/v1/upstreams?format=table",
          "{\"upstream\":\"app\",\"server\":\"[::1]:2\",\"weight\":65535,\"state\":\"up\"}", 200,
          "\napp\t[::1]:2\tup\t65535\t0\t");
    ck_assert_uint_eq(peer->mode, UPSTREAM_UP);
    ck_assert_uint_eq(peer->weight, 65535);
    ck_assert(loopback_logged(&server, "[::1]:2 of \"app\" has the weight 65535, before: 1\n"));
    server.logged.length = 0;
    patch("/v1/upstreams", "{\"upstream\":\"app\",\"server\":\"[::1]:2\",\"weight\":65535}", 200, "65535");
    ck_assert(!loopback_logged(&server, "weight"));
    ck_assert_uint_eq(upstream_zone_at(server.shared->upstreams, 0)->weight, 1);
    loopback_close(&server);
}
END_TEST

#define APP "\"upstream\": \"app\", \"server\": \"127.0.0.1:1\", "

START_TEST(wrong_bodies_are_refused)
{
    static const struct {
        const char *body;
        int status;
        const char *error;
    } cases[] = {
        {"{" APP "\"state\": \"off\"}", 400, "the field \\\"state\\\" is one of up, draining, down"},
        {"{" APP "\"state\": 1}", 400, "the field \\\"state\\\" is one of up, draining, down"},
        {"{" APP "\"state\": null}", 400, "the field \\\"state\\\" is one of"},
        {"{" APP "\"weight\": 0}", 400, "the field \\\"weight\\\" is a number from 1 to 65535"},
        {"{" APP "\"weight\": 65536}", 400, "is a number from 1 to 65535"},
        {"{" APP "\"weight\": 1.5}", 400, "is a number from 1 to 65535"},
        {"{" APP "\"weight\": \"2\"}", 400, "is a number from 1 to 65535"},
        {"{" APP "\"weight\": 99999999999999999999}", 400, "is a number from 1 to 65535"},
        {"{" APP "\"frob\": 1}", 400,
         "there is no field \\\"frob\\\"; /v1/upstreams takes upstream, server, state, weight"},
        {"{\"upstream\": \"app\", \"state\": \"up\"}", 400, "the field \\\"server\\\" is missing"},
        {"{\"upstream\": \"\", \"state\": \"up\"}", 400, "the field \\\"upstream\\\" is a text that is not empty"},
        {"{\"upstream\": true}", 400, "the field \\\"upstream\\\" is a text"},
        {"{" APP "}", 400, "the body is not a JSON object: a name in quotation marks is expected at byte"},
        {"state=up", 400, "the body is not a JSON object: { is expected at byte 1"},
        {"{\"upstream\": \"app\", \"server\": \"127.0.0.1:1\"}", 400,
         "one of the fields \\\"state\\\" and \\\"weight\\\" is required"},
        {"", 400, "the field \\\"upstream\\\" is missing"},
        {"{\"upstream\": \"other\", \"server\": \"127.0.0.1:1\", \"state\": \"up\"}", 404,
         "there is no upstream \\\"other\\\"; the upstreams are app"},
        {"{\"upstream\": \"app\", \"server\": \"127.0.0.1:2\", \"state\": \"up\"}", 404,
         "the upstream \\\"app\\\" has no server \\\"127.0.0.1:2\\\"; its servers are 127.0.0.1:1, [::1]:2"},
    };

    open_server();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        patch("/v1/upstreams", cases[i].body, cases[i].status, cases[i].error);
        ck_assert(str_starts(server.body, STR("{\"error\": \"")) && str_ends(server.body, STR("\"}\n")));
        ck_assert_uint_eq(upstream_zone_at(server.shared->upstreams, 0)->mode, UPSTREAM_UP);
        ck_assert_uint_eq(upstream_zone_at(server.shared->upstreams, 0)->weight, 1);
    }
    patch("/v1/workers", "{}", 405, "/v1/workers takes GET");
    loopback_close(&server);
}
END_TEST

START_TEST(bodies_are_bounded)
{
    static char text[LIMIT_CONTROL_REQUEST + 200];
    int head = snprintf(text, sizeof(text), "PATCH /v1/upstreams HTTP/1.0\r\nContent-Length: %d\r\n\r\n",
                        LIMIT_CONTROL_REQUEST + 1);

    open_server();
    memset(text + head, ' ', LIMIT_CONTROL_REQUEST + 1);
    loopback_request_raw(&server, str_of(text, (size_t)head + LIMIT_CONTROL_REQUEST + 1));
    ck_assert_int_eq(server.status, 413);
    ck_assert_text(server.body, "{\"error\": \"the body has more than 16384 bytes\"}\n");
    loopback_request_raw(&server, STR("PATCH /v1/upstreams HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                                      "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"));
    ck_assert_text(server.body, "{\"error\": \"the field \\\"upstream\\\" is missing\"}\n");
    loopback_request_raw(&server, STR("PATCH /v1/upstreams HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                                      "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nx\r\n\r\n"));
    ck_assert_int_eq(server.status, 400);
    ck_assert_text(server.body, "{\"error\": \"the body is incomplete or malformed\"}\n");
    loopback_disconnect(&server, "PATCH /v1/upstreams HTTP/1.1\nHost: a\nContent-Length: 5", 3);
    loopback_close(&server);
}
END_TEST

START_TEST(certificates_have_days_left)
{
    open_server();
    loopback_request(&server, "GET /v1/certificates?format=table HTTP/1.0");
    ck_assert_int_eq(server.status, 200);
    ck_assert(str_search(server.body, STR("\nexample.com\t0.0.0.0:8080\tCN=example.com,O=sluice self-signed\t")) > 0);
    ck_assert_msg(str_search(server.body, STR("\tEC\t20")) > 0, STR_FMT, STR_ARG(server.body));
    ck_assert_msg(str_ends(server.body, STR("Z\t397\n")) || str_ends(server.body, STR("Z\t396\n")), STR_FMT,
                  STR_ARG(server.body));
    loopback_close(&server);
}
END_TEST

START_TEST(days_left_are_rounded_down)
{
    const int64_t until_s = 1700000000, day_s = 86400;

    ck_assert_int_eq(control_days_left(until_s, until_s - 2 * day_s), 2);
    ck_assert_int_eq(control_days_left(until_s, until_s - 2 * day_s + 1), 1);
    ck_assert_int_eq(control_days_left(until_s, until_s), 0);
    ck_assert_int_eq(control_days_left(until_s, until_s + 1), -1);
    ck_assert_int_eq(control_days_left(until_s, until_s + day_s), -1);
    ck_assert_int_eq(control_days_left(until_s, until_s + day_s + 1), -2);
}
END_TEST

START_TEST(configuration_has_its_age)
{
    open_server();
    server.configuration->loaded_s = 951782400;
    server.configuration->number = 12;
    loopback_request(&server, "GET /v1/configuration HTTP/1.0");
    ck_assert_int_eq(server.status, 200);
    ck_assert_msg(str_search(server.body, STR("\"generation\": 12, \"loaded\": \"2000-02-29T00:00:00Z\", "
                                              "\"seconds\": ")) > 0, STR_FMT, STR_ARG(server.body));
    loopback_close(&server);
}
END_TEST

START_TEST(configuration_files_have_digests)
{
    char digest[CONFIGURATION_DIGEST], body[256], head[256];

    open_server();
    ck_assert_int_eq(configuration_file_digest(STR(CONFIGURATION), digest), 0);
    snprintf(body, sizeof(body), "path\tbytes\tsha256\n(built-in)\t%zu\t%s\n", strlen(CONFIGURATION), digest);
    expect("GET /v1/configuration/files?format=table HTTP/1.0", 200, TABLE, body);
    snprintf(head, sizeof(head), "GET /v1/configuration/text?sha256=%s HTTP/1.0", digest);
    expect(head, 200, "text/plain; charset=utf-8", CONFIGURATION);
    expect("GET /v1/configuration/text?sha256=0 HTTP/1.0", 404, JSON,
           "{\"error\": \"no file of the configuration has this sha256; /v1/configuration/files lists them, and "
           "?sha256= selects one\"}\n");
    expect("GET /v1/configuration/text?format=table HTTP/1.0", 404, TABLE,
           "no file of the configuration has this sha256; /v1/configuration/files lists them, and ?sha256= selects "
           "one\n");
    loopback_close(&server);
}
END_TEST

static void expect_post(const char *path, const char *body, int status, const char *expected)
{
    char request[512];

    snprintf(request, sizeof(request), "POST %s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", path, strlen(body), body);
    loopback_request_raw(&server, str_from(request));
    ck_assert_msg(server.status == status, "%s: %d " STR_FMT, body, server.status, STR_ARG(server.body));
    ck_assert_text(server.body, expected);
}

START_TEST(caches_are_listed_and_purged)
{
    char folder[] = "/tmp/sluice-control-XXXXXX";
    char text[1024];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(text, sizeof(text),
             "control: unix:/nonexistent/control.sock\n"
             "http:\n"
             "  proxy_cache_path: {path: %s, keys_zone: 'one:1m', max_size: 1g}\n"
             "  server: {listen: 8080, location: {/: {return: 204}}}\n", folder);
    loopback_open(&server, text);
    server.endpoint = 1;
    loopback_request(&server, "GET /v1/caches HTTP/1.0");
    ck_assert_int_eq(server.status, 200);
    ck_assert_msg(str_search(server.body, STR("\"entries\": 0, \"bytes\": 0, \"max_size\": 1073741824, ")) > 0,
                  STR_FMT, STR_ARG(server.body));
    for (unsigned i = 0; i < 1000 && !cache_zone_loaded(server.configuration->caches.items[0]->zone); i++)
        loopback_turn(&server, 5);
    expect_post("/v1/caches/purge", "{\"cache\": \"one\", \"key\": \"/a\"}", 200,
                "{\"purged\": [\n  {\"cache\": \"one\", \"removed\": 0}\n]}\n");
    ck_assert(loopback_logged(&server, "control: cache \"one\": purged the key \"/a\", entries removed: 0\n"));
    expect_post("/v1/caches/purge", "{\"cache\": \"one\", \"prefix\": \"/\"}", 200,
                "{\"purged\": [\n  {\"cache\": \"one\", \"removed\": 0}\n]}\n");
    ck_assert(loopback_logged(&server, "control: cache \"one\": purged the prefix \"/\", entries removed: 0\n"));
    expect_post("/v1/caches/purge", "{\"cache\": \"one\", \"all\": true}", 200,
                "{\"purged\": [\n  {\"cache\": \"one\", \"removed\": 0}\n]}\n");
    ck_assert(loopback_logged(&server, "control: cache \"one\": purged all keys, entries removed: 0\n"));
    expect_post("/v1/caches/purge", "{\"cache\": \"two\", \"key\": \"/a\"}", 404,
                "{\"error\": \"there is no cache \\\"two\\\"; the caches are: one\"}\n");
    loopback_close(&server);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(limits_are_listed)
{
    static const char row[] = "\n127.0.0.1\t0\t1\t20";

    loopback_open(&server, "control: unix:/nonexistent/control.sock\n"
                           "http:\n"
                           "  limit_req_zone: '$binary_remote_addr zone=one:1m rate=1r/m'\n"
                           "  limit_conn_zone: '$server_name zone=two:1m'\n"
                           "  server: {listen: 8080, limit_req: zone=one, location: {/: {return: 204}}}\n");
    loopback_request(&server, "GET / HTTP/1.1\nHost: a");
    loopback_request(&server, "GET / HTTP/1.1\nHost: a");
    ck_assert_int_eq(server.status, 429);
    server.endpoint = 1;
    loopback_request(&server, "GET /v1/limits?format=table HTTP/1.0");
    ck_assert_msg(str_search(server.body, STR("\none\tlimit_req\t$binary_remote_addr\t1\t")) > 0 &&
                      str_search(server.body, STR("\t0\t1\ntwo\tlimit_conn\t$server_name\t0\t")) > 0,
                  STR_FMT, STR_ARG(server.body));
    loopback_request(&server, "GET /v1/limits/keys?format=table HTTP/1.0");
    ck_assert_msg(str_search(server.body, STR("\none\t")) > 0 && str_search(server.body, str_from(row + 1)) > 0,
                  STR_FMT, STR_ARG(server.body));
    loopback_close(&server);
}
END_TEST

START_TEST(errors_are_json_with_a_reason)
{
    open_server();
    expect("GET /v1/frob HTTP/1.0", 404, JSON, "{\"error\": \"there is no /v1/frob; GET /v1 lists the resources\"}\n");
    expect("GET / HTTP/1.0", 404, JSON, "{\"error\": \"there is no /; GET /v1 lists the resources\"}\n");
    expect("POST /v1/workers HTTP/1.0\nContent-Length: 0", 405, JSON, "{\"error\": \"/v1/workers takes GET\"}\n");
    ck_assert_text(loopback_field(&server, "Allow"), "GET, HEAD");
    expect("FROB /v1/workers HTTP/1.0", 405, JSON, "{\"error\": \"/v1/workers takes GET\"}\n");
    expect("DELETE /v1?format=table HTTP/1.0", 405, TABLE, "/v1 takes GET\n");
    loopback_close(&server);
}
END_TEST

START_TEST(the_list_names_every_resource)
{
    open_server();
    loopback_request(&server, "GET /v1?format=table HTTP/1.0");
    ck_assert_int_eq(server.status, 200);
    ck_assert(str_starts(server.body, STR("method\tpath\tfields\thelp\nGET\t/v1\t-\tthis list\n")));
    ck_assert(str_search(server.body, STR("\nGET\t/v1/workers\t")) > 0);
    ck_assert(str_search(server.body, STR("\nPATCH\t/v1/upstreams\tupstream, server, state, weight\t")) > 0);
    loopback_close(&server);
}
END_TEST

/* Modules with directives are not called on the socket, and the control module only there. */
START_TEST(the_api_exists_on_the_socket_only)
{
    loopback_open(&server, "control: unix:/nonexistent/control.sock\n"
                           "http: {server: {listen: 8080, location: {/: {return: 204}}}}\n");
    loopback_request(&server, "GET /v1/workers HTTP/1.1\nHost: a");
    ck_assert_int_eq(server.status, 204);
    server.endpoint = 1;
    loopback_request(&server, "GET /other HTTP/1.1\nHost: a");
    ck_assert_int_eq(server.status, 404);
    loopback_close(&server);
}
END_TEST

START_TEST(a_head_request_has_no_body)
{
    open_server();
    loopback_request(&server, "HEAD /v1/upstreams HTTP/1.0");
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(loopback_field(&server, "Content-Type"), JSON);
    ck_assert_text(server.body, "");
    loopback_close(&server);
}
END_TEST

int main(void)
{
    return loopback_run("control", (const TTest *const[]){
            workers_are_listed, upstreams_are_listed, upstream_servers_are_changed, wrong_bodies_are_refused,
            bodies_are_bounded, certificates_have_days_left, days_left_are_rounded_down, configuration_has_its_age,
            configuration_files_have_digests,
            caches_are_listed_and_purged, limits_are_listed,
            errors_are_json_with_a_reason, the_list_names_every_resource, the_api_exists_on_the_socket_only,
            a_head_request_has_no_body, NULL});
}
