#include "otlp/otlp.h"

#include "../runner.h"

#include <errno.h>

static const struct {
    const char *text, *host, *port, *authority, *path;
} valid[] = {
    {"http://127.0.0.1:4318/v1/traces", "127.0.0.1", "4318", "127.0.0.1:4318", "/v1/traces"},
    {"http://collector", "collector", "4318", "collector", "/v1/traces"},
    {"http://collector:80/", "collector", "80", "collector:80", "/v1/traces"},
    {"collector.example.org:4318", "collector.example.org", "4318", "collector.example.org:4318", "/v1/traces"},
    {"http://[::1]", "::1", "4318", "[::1]", "/v1/traces"},
    {"http://[::1]:9/a?b=c", "::1", "9", "[::1]:9", "/a?b=c"},
};

static const char *const invalid[] = {
    "",           "http://",      "http://:4318", "http://a:",     "http://a:0",         "http://a:65536",
    "http://a:x", "http://a b",   "http://a/b c", "http://a\r\n",  "http://a/\r\nX: y",  "http://[::1",
    "http://[]",  "ftp://a",      "http://u@a",   "http://a/#f",   "http://[::1]x",
};

START_TEST(valid_endpoints_are_split)
{
    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
        struct otlp_endpoint endpoint;

        ck_assert_int_eq(otlp_endpoint_parse(str_from(valid[i].text), &endpoint), 0);
        ck_assert(str_equal(endpoint.url, str_from(valid[i].text)));
        ck_assert(str_equal(endpoint.host, str_from(valid[i].host)));
        ck_assert(str_equal(endpoint.port, str_from(valid[i].port)));
        ck_assert(str_equal(endpoint.path, str_from(valid[i].path)));
        ck_assert(str_equal(endpoint.authority, str_from(valid[i].authority)));
    }
}
END_TEST

START_TEST(invalid_endpoints_are_rejected)
{
    struct otlp_endpoint endpoint;

    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
        ck_assert_msg(otlp_endpoint_parse(str_from(invalid[i]), &endpoint) == -EINVAL, "%s", invalid[i]);
    ck_assert_int_eq(otlp_endpoint_parse(STR("https://a"), &endpoint), -EPROTONOSUPPORT);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {valid_endpoints_are_split, invalid_endpoints_are_rejected, NULL};

    return run_tests("otlp_endpoint", tests);
}
