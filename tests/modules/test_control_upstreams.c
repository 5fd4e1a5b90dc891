/* POST /v1/upstreams/add and /v1/upstreams/remove. */
#include "loopback.h"

#include "base/limits.h"
#include "upstream/upstream_follow.h"

#include <stdio.h>
#include <string.h>

static struct loopback server;

static void open_server(void)
{
    loopback_open(&server,
                  "control: unix:/nonexistent/control.sock\n"
                  "http:\n"
                  "  upstream:\n"
                  "    app: {server: ['127.0.0.1:1', '127.0.0.1:2 backup'], zone: app 64k}\n"
                  "    fixed: {server: '127.0.0.1:3'}\n"
                  "    both: {server: '127.0.0.1:4', zone: both}\n"
                  "  server: {listen: 8080, location: {/: {proxy_pass: 'http://app'}}}\n"
                  "stream:\n"
                  "  upstream: {both: {server: '127.0.0.1:4', zone: both}}\n"
                  "  server: {listen: 8081, proxy_pass: both}\n");
    server.endpoint = server.configuration->endpoint_count - 1;
    server.worker.ports.any = true;
    upstream_pool_follow(server.worker.upstreams, 1);
}

static void close_server(void)
{
    sandbox_ports_finish(&server.worker.ports);
    loopback_close(&server);
}

static void post(const char *verb, const char *body, int status, const char *expected)
{
    char request[2048];

    snprintf(request, sizeof(request), "POST /v1/upstreams/%s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", verb,
             strlen(body), body);
    loopback_request_raw(&server, str_from(request));
    ck_assert_msg(server.status == status && str_search(server.body, str_from(expected)) >= 0, "%s: %d " STR_FMT, body,
                  server.status, STR_ARG(server.body));
}

static const struct upstream_server *find_server(const char *name)
{
    struct upstream_choice choice = {0};
    const struct upstream_peer *peer;
    int error;

    do
        peer = upstream_choose(upstream_pool_group(server.worker.upstreams, server.configuration->upstreams.first),
                               &choice, &error);
    while (peer && strcmp(peer->name, name) != 0);
    return peer ? peer->server : NULL;
}

START_TEST(servers_are_added_and_removed)
{
    const struct upstream_server *added;

    open_server();
    post("add", "{\"upstream\": \"app\", \"server\": \"10.0.0.1\"}", 200,
         "{\"upstreams\": [\n"
         "  {\"upstream\": \"app\", \"server\": \"10.0.0.1:80\", \"state\": \"up\", \"weight\": 1, ");
    ck_assert(loopback_logged(&server, "[notice]"));
    ck_assert(loopback_logged(&server,
                              "control: upstream server 10.0.0.1:80 was added to \"app\" with the weight 1\n"));
    post("add",
         "{\"upstream\":\"app\",\"server\":\"[::1]:7\",\"weight\":3,\"max_conns\":4,\"max_fails\":5,"
         "\"fail_timeout\":\"1m\",\"backup\":true}",
         200, "\"server\": \"[::1]:7\", \"state\": \"up\", \"weight\": 3, ");
    ck_assert(loopback_logged(&server, "was added to \"app\" with the weight 3, as a backup\n"));
    added = find_server("[::1]:7");
    ck_assert_ptr_nonnull(added);
    ck_assert_uint_eq(added->weight, 3);
    ck_assert_uint_eq(added->max_conns, 4);
    ck_assert_uint_eq(added->max_fails, 5);
    ck_assert_uint_eq(added->fail_timeout_ms, 60000);
    ck_assert(added->backup);
    post("add", "{\"upstream\": \"app\", \"server\": \"10.0.0.5\", \"slow_start\": \"2m\"}", 200, "\"up\"");
    added = find_server("10.0.0.5:80");
    ck_assert_ptr_nonnull(added);
    ck_assert_uint_eq(added->slow_start_ms, 120000);
    post("add", "{\"upstream\": \"app\", \"server\": \"10.0.0.6\", \"down\": true}", 200, "\"state\": \"down\"");
    ck_assert(loopback_logged(&server, "10.0.0.6:80 was added to \"app\" with the weight 1, down\n"));
    ck_assert_ptr_null(find_server("10.0.0.6:80"));
    post("add", "{\"upstream\": \"app\", \"server\": \"unix:/run/a.sock\"}", 200, "\"server\": \"unix:/run/a.sock\"");
    post("remove", "{\"upstream\": \"app\", \"server\": \"10.0.0.1\"}", 200,
         "{\"upstreams\": [\n  {\"upstream\": \"app\", \"server\": \"10.0.0.1:80\", \"state\": \"removed\", ");
    ck_assert(loopback_logged(&server, "control: upstream server 10.0.0.1:80 was removed from \"app\"\n"));
    ck_assert_ptr_null(find_server("10.0.0.1:80"));
    ck_assert_ptr_nonnull(find_server("127.0.0.1:1"));
    close_server();
}
END_TEST

/* Its entry exists until all workers have noticed. */
START_TEST(a_removed_server_is_not_changed)
{
    const char *body = "{\"upstream\": \"app\", \"server\": \"127.0.0.1:2\", \"state\": \"up\"}";
    char request[256];

    open_server();
    post("remove", "{\"upstream\": \"app\", \"server\": \"127.0.0.1:2\"}", 200, "\"state\": \"removed\"");
    snprintf(request, sizeof(request), "PATCH /v1/upstreams HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
             body);
    shared_add(&upstream_zone_at(server.shared->upstreams, 1)->holders, 1); /* of another worker */
    loopback_request_raw(&server, str_from(request));
    ck_assert_int_eq(server.status, 404);
    ck_assert(str_search(server.body, STR("has no server \\\"127.0.0.1:2\\\"; its servers are 127.0.0.1:1\"")) > 0);
    post("add", "{\"upstream\": \"app\", \"server\": \"127.0.0.1:2\"}", 200, "\"state\": \"up\"");
    ck_assert(str_search(server.body, STR("removed")) < 0);
    loopback_request_raw(&server, str_from(request));
    ck_assert_int_eq(server.status, 200);
    close_server();
}
END_TEST

#define LONG "a-name-of-forty-letters-at-most-63-would."
#define APP  "{\"upstream\": \"app\", \"server\": "

START_TEST(wrong_requests_are_refused)
{
    static const struct {
        const char *verb, *body;
        int status;
        const char *error;
    } cases[] = {
        {"add", APP "\"10.0.0.1:99999\"}", 400,
         "is not an address of a server: 10.0.0.1:80, [::1]:80, app.internal:80 or unix:/path"},
        {"add", APP "\"10.0.0.1:0\"}", 400, "is not an address of a server"},
        {"add", APP "\"unix:\"}", 400, "is not an address of a server"},
        {"add", APP "\"unix:/a\\nb\"}", 400, "is not an address of a server"},
        {"add", APP "\"unix:/a\\u0000b\"}", 400, "is not "},
        {"add", APP "\"app internal:80\"}", 400, "is not an address of a server"},
        {"add", APP "\"app.internal:0\"}", 400, "is not an address of a server"},
        {"remove", APP "\"app.internal:80\"}", 404, "has no server app.internal:80"},
        {"add", APP "\"" LONG LONG LONG ".internal:80\"}", 400, "is too long to be added at run time"},
        {"add", APP "\"10.0.0.1\", \"weight\": 0}", 400, "the field \\\"weight\\\" is a number from 1 to 65535"},
        {"add", APP "\"10.0.0.1\", \"max_conns\": 4294967296}", 400, "a number from 0 to 4294967295"},
        {"add", APP "\"10.0.0.1\", \"fail_timeout\": \"5\"}", 400, "the field \\\"fail_timeout\\\" is a time"},
        {"add", APP "\"10.0.0.1\", \"fail_timeout\": \"1000h\"}", 200, "10.0.0.1:80"},
        {"add", APP "\"10.0.0.2\", \"fail_timeout\": \"2000h\"}", 400, "the field \\\"fail_timeout\\\" is a time"},
        {"add", APP "\"10.0.0.2\", \"slow_start\": \"5\"}", 400, "the field \\\"slow_start\\\" is a time"},
        {"add", APP "\"10.0.0.2\", \"slow_start\": \"2000h\"}", 400, "the field \\\"slow_start\\\" is a time"},
        {"add", APP "\"10.0.0.2\", \"down\": \"yes\"}", 400, "the field \\\"down\\\" is true or false"},
        {"add", APP "\"10.0.0.2\", \"frob\": 1}", 400,
         "takes upstream, server, weight, max_conns, max_fails, fail_timeout, slow_start, backup, down"},
        {"remove", APP "\"10.0.0.1\", \"weight\": 1}", 400, "/v1/upstreams/remove takes upstream, server"},
        {"add", "{\"server\": \"10.0.0.2\"}", 400, "the field \\\"upstream\\\" is missing"},
        {"add", "{\"upstream\": \"none\", \"server\": \"10.0.0.2\"}", 404,
         "there is no upstream \\\"none\\\"; the upstreams are app, fixed, both, both"},
        {"add", "{\"upstream\": \"fixed\", \"server\": \"10.0.0.2\"}", 409,
         "the upstream \\\"fixed\\\" has no zone; write \\\"zone: fixed 64k\\\" there and reload"},
        {"remove", "{\"upstream\": \"fixed\", \"server\": \"127.0.0.1:3\"}", 409, "has no zone"},
        {"add", "{\"upstream\": \"both\", \"server\": \"10.0.0.2\"}", 409, "http and stream both have an upstream"},
        {"add", APP "\"127.0.0.1:1\"}", 409, "the upstream \\\"app\\\" has a server 127.0.0.1:1 already"},
        {"add", APP "\"10.0.0.1:80\"}", 409, "has a server 10.0.0.1:80 already"},
        {"remove", APP "\"10.0.0.3\"}", 404, "the upstream \\\"app\\\" has no server 10.0.0.3:80"},
        {"remove", APP "\"10.0.0.1\"}", 200, "removed"},
        {"remove", APP "\"127.0.0.1:1\"}", 409,
         "127.0.0.1:1 is the last server of the upstream \\\"app\\\" that is not a backup"},
    };

    open_server();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        post(cases[i].verb, cases[i].body, cases[i].status, cases[i].error);
    server.worker.draining = true;
    post("add", APP "\"10.0.0.9\"}", 409, "this worker has an older configuration");
    server.worker.draining = false;
    close_server();
}
END_TEST

START_TEST(a_full_table_refuses_servers)
{
    char body[128];

    open_server();
    for (int i = 0; i < LIMIT_UPSTREAM_CHANGES; i++) {
        snprintf(body, sizeof(body), APP "\"10.0.0.1:%d\"}", i + 1);
        post("add", body, 200, "\"up\"");
    }
    post("add", APP "\"10.0.0.2\"}", 409, "no space: until the next reload at most 128 servers are added and removed");
    post("remove", APP "\"10.0.0.1:1\"}", 200, "removed");
    post("add", APP "\"10.0.0.2\"}", 200, "10.0.0.2:80");
    close_server();
}
END_TEST

START_TEST(ports_outside_the_sandbox_are_refused)
{
    open_server();
    server.worker.ports.any = false;
    ck_assert_int_eq(sandbox_ports_add(&server.worker.ports, 8081), 0);
    post("add", APP "\"10.0.0.1:8080\"}", 409,
         "the sandbox of the workers permits no connection to port 8080; add it to the zone of \\\"app\\\" "
         "(\\\"ports=8080\\\") and reload");
    post("add", APP "\"10.0.0.1:8081\"}", 200, "10.0.0.1:8081");
    post("add", APP "\"unix:/run/a.sock\"}", 200, "unix:/run/a.sock");
    close_server();
}
END_TEST

int main(void)
{
    return loopback_run("control_upstreams", (const TTest *const[]){
            servers_are_added_and_removed, a_removed_server_is_not_changed, wrong_requests_are_refused,
            a_full_table_refuses_servers, ports_outside_the_sandbox_are_refused, NULL});
}
