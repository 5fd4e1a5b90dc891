#include "loopback.h"

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
           "upstream\tserver\tstate\tactive\trequests\tfailures\theader_ms\ttotal_ms\n"
           "app\t127.0.0.1:1\tup\t0\t0\t0\t0\t0\napp\t[::1]:2\tup\t0\t0\t0\t0\t0\n");
    upstream_zone_at(server.shared->upstreams, 0)->checked = CHECKED_BAD;
    upstream_zone_at(server.shared->upstreams, 1)->paused = 1;
    upstream_zone_at(server.shared->upstreams, 1)->header_us = 2999;
    expect("GET /v1/upstreams HTTP/1.0", 200, JSON,
           "{\"upstreams\": [\n"
           "  {\"upstream\": \"app\", \"server\": \"127.0.0.1:1\", \"state\": \"unhealthy\", "
           "\"active\": 0, \"requests\": 0, \"failures\": 0, \"header_ms\": 0, \"total_ms\": 0},\n"
           "  {\"upstream\": \"app\", \"server\": \"[::1]:2\", \"state\": \"unavailable\", "
           "\"active\": 0, \"requests\": 0, \"failures\": 0, \"header_ms\": 2, \"total_ms\": 0}\n]}\n");
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
    ck_assert(str_starts(server.body, STR("method\tpath\thelp\nGET\t/v1\tthis list\n")));
    ck_assert(str_search(server.body, STR("\nGET\t/v1/workers\t")) > 0);
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
            workers_are_listed, upstreams_are_listed, certificates_have_days_left, configuration_has_its_age,
            errors_are_json_with_a_reason, the_list_names_every_resource, the_api_exists_on_the_socket_only,
            a_head_request_has_no_body, NULL});
}
