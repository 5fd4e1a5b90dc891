#include "upstream/upstream.h"

#include "../http/suite.h"

#include <errno.h>

static const struct {
    const char *text;
    const char *shown; /* NULL: invalid; "name": must be resolved */
    unsigned port;
} servers[] = {
    {"127.0.0.1:9001", "127.0.0.1:9001", 9001},
    {"127.0.0.1", "127.0.0.1:80", 80},
    {"[::1]:9001", "[::1]:9001", 9001},
    {"[::1]", "[::1]:80", 80},
    {"unix:/run/app.sock", "unix:/run/app.sock", 0},
    {"app", "name", 80},
    {"app.internal:81", "name", 81},
    {"a_b-c.d:1", "name", 1},
    {"", NULL, 0},
    {":80", NULL, 0},
    {"a:", NULL, 0},
    {"a:0", NULL, 0},
    {"a:65536", NULL, 0},
    {"a:b", NULL, 0},
    {"a:-1", NULL, 0},
    {"::1", NULL, 0},
    {"[::1", NULL, 0},
    {"[]", NULL, 0},
    {"[::g]", NULL, 0},
    {"[127.0.0.1]", NULL, 0},
    {"unix:", NULL, 0},
    {"-a", NULL, 0},
    {".a", NULL, 0},
    {"a b", NULL, 0},
    {"a/b", NULL, 0},
    {"u@a", NULL, 0},
    {"*:80", NULL, 0},
};

START_TEST(servers_are_parsed)
{
    for (size_t i = 0; i < COUNT(servers); i++) {
        struct upstream_server server;
        char shown[128];
        int result = upstream_server_parse(str_from(servers[i].text), 80, &server);

        ck_assert_msg(result == (servers[i].shown ? 0 : -EINVAL), "%s: %d", servers[i].text, result);
        if (result < 0)
            continue;
        if (strcmp(servers[i].shown, "name") == 0)
            ck_assert_uint_gt(server.host.length, 0);
        else
            ck_assert_text(listen_address_format(&server.address, shown, sizeof(shown)), servers[i].shown);
        ck_assert_uint_eq(server.port, servers[i].port);
    }
}
END_TEST

START_TEST(targets_are_created_once)
{
    struct arena arena;
    struct upstreams upstreams = {.arena = &arena};
    const struct str portless[] = {STR("[::1]"), STR("127.0.0.1"), STR("app.internal")};
    const struct upstream *one;
    int error;

    arena_init(&arena, NULL, 0);
    one = upstreams_target(&upstreams, STR("127.0.0.1:1"), 80, &error);
    ck_assert_ptr_nonnull(one);
    ck_assert_ptr_eq(upstreams_target(&upstreams, STR("127.0.0.1:1"), 80, &error), one);
    ck_assert_ptr_ne(upstreams_target(&upstreams, STR("127.0.0.1:2"), 80, &error), one);
    ck_assert_uint_eq(upstreams.count, 2);
    for (size_t i = 0; i < COUNT(portless); i++) { /* the port defaults to 80 for http and to 443 for https */
        const struct upstream *http = upstreams_target(&upstreams, portless[i], 80, &error);
        const struct upstream *https = upstreams_target(&upstreams, portless[i], 443, &error);

        ck_assert_uint_eq(http->servers->port, 80);
        ck_assert_uint_eq(https->servers->port, 443);
        ck_assert_ptr_eq(upstreams_target(&upstreams, portless[i], 80, &error), http);
        ck_assert_ptr_eq(upstreams_target(&upstreams, portless[i], 443, &error), https);
    }
    ck_assert_ptr_null(upstreams_target(&upstreams, STR("a:b"), 80, &error));
    ck_assert_int_eq(error, -EINVAL);
    arena_reset(&arena);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {servers_are_parsed, targets_are_created_once};

    return suite_run("upstream", tests, COUNT(tests));
}
